"""When windows go out: with what closes them, whatever follows; and what comes too far ahead, or late, harms nobody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lxml import etree

import xmlstream as xs
from xmlstream.builder.query import Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import Session

ROOT = '<readings xmlns:punct="http://www.cse.ogi.edu/dot/niagara/punct">{}</readings>'
SCHEMA = "sid INT, ts TIMESTAMP NOT NULL, v INT"


def moment(second: int) -> str:
    return f"2024-01-01T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z"


def reading(second: int, sid: int = 1) -> str:
    return f"<r><sid>{sid}</sid><ts>{moment(second)}</ts><v>{second}</v></r>"


def until(second: int) -> str:
    return f"<punct:r><ts>(,{moment(second)})</ts></punct:r>"


def readings(session: Session, directory: Path, slices: Sequence[str]) -> Query:
    """A source of one document a slice."""
    (directory / "in").mkdir()
    for number, items in enumerate(slices):
        (directory / "in" / f"{number:03d}.xml").write_text(ROOT.format(items), encoding="utf-8")
    return xs.read(session, directory / "in", schema=SCHEMA, rowTag="r", schemes="ts prefix", maxFilesPerSlice="1")


def written(directory: Path) -> dict[int, list[tuple[str | None, ...]]]:
    """The rows of the result, by the number of their slice."""
    found = {}
    for path in sorted((directory / "out").glob("slice-*.xml")):
        items = [item for item in etree.parse(path).getroot() if not str(item.tag).startswith("{")]
        found[int(path.stem.rpartition("-")[2])] = [tuple(leaf.text for leaf in item) for item in items]
    return {number: rows for number, rows in found.items() if rows}


TUMBLING, HOPPING = "window(ts, '10 seconds')", "window(ts, '10 seconds', '5 seconds')"
SESSION = "session_window(ts, '0.5 seconds')"
"""Of readings each second, each is a session of its own."""


def begins(second: int) -> str:
    return f"{moment(second)[:-1]}.000000Z" if second >= 0 else f"2023-12-31T23:59:{60 + second:02d}.000000Z"


@pytest.mark.parametrize("as_written", [False, True])
@pytest.mark.parametrize(
    ("window", "starts"),
    [(TUMBLING, {1: [0], 2: [10]}), (HOPPING, {1: [-5, 0], 2: [5, 10]})],
)
def test_the_last_window_comes_with_its_punctuation_though_no_tuple_follows(
    window: str, starts: dict[int, list[int]], as_written: bool, session: Session, tmp_path: Path
) -> None:
    source = readings(session, tmp_path, [reading(3) + reading(12), until(10), until(20)])
    counted = source.group_by(window).agg("count(*) AS n")
    counted.select("window.start", "n").run(tmp_path / "out", keep_open=True, as_written=as_written)
    found = {number: sorted(rows) for number, rows in written(tmp_path).items()}
    assert found == {number: [(begins(second), "1") for second in each] for number, each in starts.items()}


@pytest.mark.parametrize("as_written", [False, True])
def test_a_session_comes_with_its_punctuation_though_no_tuple_follows(
    as_written: bool, session: Session, tmp_path: Path
) -> None:
    source = readings(session, tmp_path, [reading(3), reading(7), until(17), until(18)])
    sessions = source.group_by("sid", xs.session_window("ts", "10 seconds")).agg("count(*) AS n", "max(v) AS v")
    found = sessions.select("session_window.end", "n", "v")
    found.run(tmp_path / "out", keep_open=True, as_written=as_written)
    assert written(tmp_path) == {3: [(moment(17)[:-1] + ".000000Z", "2", "7")]}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("window", "counts"),
    [
        (TUMBLING, {1: ["10"], 2: ["10"], 3: ["10"]}),
        (HOPPING, {0: ["5"], 1: ["10", "10"], 2: ["10", "10"], 3: ["10", "10"]}),
        (SESSION, {0: ["1"] * 9, 1: ["1"] * 10, 2: ["1"] * 10, 3: ["1"] * 10}),
    ],
)
def test_one_tuple_far_in_the_future_closes_nothing_and_stops_nothing(
    window: str, counts: dict[int, list[str]], spark: SparkSession, tmp_path: Path
) -> None:
    slices = ["".join(reading(second) for second in range(start, start + 10)) for start in (0, 10, 20, 30)]
    slices[1] += reading(80_000)
    rule = xs.ByOrder("ts", max_ahead=timedelta(hours=1))
    counted = readings(spark, tmp_path, slices).punctuate(rule, "divert").group_by(window).agg("count(*) AS n")
    reports: list[dict[str, Any]] = []
    counted.select("n").run(tmp_path / "out", keep_open=True, on_slice=reports.append)
    assert {number: [n for (n,) in rows] for number, rows in written(tmp_path).items()} == counts
    assert [report["set_aside"] for report in reports] == [0, 1, 0, 0]
    assert moment(80_000)[:-1] in "".join(
        path.read_text(encoding="utf-8") for path in (tmp_path / "out" / "_dead_letters").iterdir()
    )


@pytest.mark.parametrize(
    ("window", "first", "later", "counts"),
    [(TUMBLING, 0, 1, {"10"}), (HOPPING, 1, 2, {"5", "10"}), (SESSION, 9, 10, {"1"})],
)
def test_a_slow_sensor_closes_its_own_windows_late_and_nobody_elses(
    window: str, first: int, later: int, counts: set[str], session: Session, tmp_path: Path
) -> None:
    # Sensor 7 lags by two slices.
    slices = [
        "".join(
            reading(second - (20 if sid == 7 else 0), sid)
            for second in range(start, start + 10)
            for sid in range(10)
            if sid != 7 or second >= 20
        )
        for start in range(0, 60, 10)
    ]
    source = readings(session, tmp_path, slices).punctuate(xs.ByOrder("ts", per="sid"))
    counted = source.group_by("sid", window).agg("count(*) AS n").select("sid", "n")
    counted.run(tmp_path / "out", keep_open=True)
    out = written(tmp_path)
    assert {n for rows in out.values() for _, n in rows} == counts
    windows = Counter((number, sid == "7") for number, rows in out.items() for sid, _ in rows)
    assert windows == +Counter(
        {
            (0, False): 9 * first,
            **{(number, False): 9 * later for number in range(1, 6)},
            (2, True): first,
            **{(number, True): later for number in range(3, 6)},
        }
    )
