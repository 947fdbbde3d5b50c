from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.clock import Clock
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.slices import POSITION
from xmlstream.sources.generators import sensors
from xmlstream.sources.places import Document
from xmlstream.sources.xml.grammar.check import check_grammar
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import RangeParser
from xmlstream.sources.xml.splits.byte_ranges import ByteRange


def source(path: Path) -> SourceOptions:
    schema = "sid STRING, hour INT, min INT, currtmp DECIMAL(5,1)"
    return SourceOptions.parse(
        {"path": str(path), "rowTag": "tempdata", "schema": schema, "domains": "hour 0.., min 0..59"}
    )


def stream(path: Path) -> list[tuple[str | None, ...]]:
    """The items in order: the values of a tuple, the patterns of a punctuation behind a `p`."""
    rows = []
    for parsed in RangeParser(source(path)).parse(ByteRange(Document.at(path), 0, 0, path.stat().st_size, ends="root")):
        assert not parsed.malformed
        rows += parsed.tuples.to_pylist() + [{**row, "p": "p"} for row in parsed.punctuations.to_pylist()]
    rows.sort(key=lambda row: row[POSITION])
    return [
        (*(["p"] if "p" in row else []), *(str(row[name]) for name in ("sid", "hour", "min", "currtmp")))
        for row in rows
    ]


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = [path.read_bytes() for path in sensors.write_sensors(tmp_path / "a", 2, 30, 2, 60, seed=7)]
    monkeypatch.setattr(sensors, "HOURS_AT_ONCE", 7)
    assert [path.read_bytes() for path in sensors.write_sensors(tmp_path / "b", 2, 30, 2, 60, seed=7)] == first
    assert first[0] != first[1]
    assert [path.read_bytes() for path in sensors.write_sensors(tmp_path / "c", 2, 30, 2, 60, seed=8)] != first
    assert sensors.write_sensors(tmp_path / "d", 3, 30, 2, 60, seed=7)[0].read_bytes() == first[0]


def test_elements_are_those_of_the_paper(tmp_path: Path) -> None:
    (path,) = sensors.write_sensors(tmp_path, 1, 1, 1, 1, seed=1)
    lines = path.read_text().splitlines()
    assert lines[1] == '<readings xmlns:punct="http://www.cse.ogi.edu/dot/niagara/punct">'
    assert lines[2].startswith("<tempdata><sid>S1</sid><hour>0</hour><min>0</min><currtmp>")
    assert lines[3:] == [
        "<punct:tempdata><sid>*</sid><hour>0</hour><min>*</min><currtmp>*</currtmp></punct:tempdata>",
        "</readings>",
    ]


@pytest.mark.parametrize("reports", [0, 1, 7, 60, 90])
@pytest.mark.parametrize("k", [0, 1, 2, 7, 15, 30, 60])
def test_k_punctuations_an_hour_say_its_parts_and_the_last_the_whole(tmp_path: Path, k: int, reports: int) -> None:
    (path,) = sensors.write_sensors(tmp_path, 1, 3, k, reports, seed=3)
    items = stream(path)
    for hour in range(3):
        said = [item[3] for item in items if item[0] == "p" and item[2] == str(hour)]
        parts = [(60 * part // k, 60 * (part + 1) // k - 1) for part in range(k)]
        assert said == [f"[{low},{high}]" if low < high else str(low) for low, high in parts[:-1]] + ["*"] * (k > 0)
        minutes = [int(str(item[2])) for item in items if item[0] == "S1" and item[1] == str(hour)]
        assert minutes == [60 * number // reports for number in range(reports)]
    assert check_grammar(source(path)).violation is None
    hours = [int(str(item[2] if item[0] == "p" else item[1])) for item in items]
    assert hours == sorted(hours)


def test_a_punctuation_comes_as_soon_as_its_part_is_over(tmp_path: Path) -> None:
    (path,) = sensors.write_sensors(tmp_path, 1, 1, 2, 4, seed=1)
    assert [(item[0], item[3] if item[0] == "p" else item[2]) for item in stream(path)] == [
        ("S1", "0"),
        ("S1", "15"),
        ("p", "[0,29]"),
        ("S1", "30"),
        ("S1", "45"),
        ("p", "*"),
    ]


def test_live_sensors_report_at_their_rate_and_write_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    clock.governs_live(monkeypatch)
    live = sensors.write_sensors(tmp_path / "live", 2, 2, 1, 30, seed=5, rate=240)
    assert 0.4 < clock.now < 0.6
    at_once = sensors.write_sensors(tmp_path / "once", 2, 2, 1, 30, seed=5)
    assert [path.read_bytes() for path in live] == [path.read_bytes() for path in at_once]


@pytest.mark.parametrize(
    "numbers", [{"sensors": 0}, {"hours": -1}, {"punctuations_per_hour": 61}, {"reports_per_hour": -1}, {"rate": 0.0}]
)
def test_numbers_that_mean_nothing_are_refused(tmp_path: Path, numbers: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        sensors.write_sensors(tmp_path, **numbers)
