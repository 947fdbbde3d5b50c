"""What the operator puts out of streams with gaps and simultaneous tuples is what the pure model of SECRET reports."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.harness.nights import AT_NIGHT
from tests.harness.running import Row, Running
from xmlstream.punct_ns.errors import MalformedInput, QueryError, UsageError
from xmlstream.punct_ns.pattern import Range
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.secret.model import (
    CORAL8,
    PROFILES,
    STREAMBASE,
    Profile,
    Reporting,
    Secret,
    Tick,
    Windows,
    rounded,
    stream,
)
from xmlstream.secret.reported_windows import secret_window
from xmlstream.session.engines import is_in_process

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

SCHEMA = Schema.parse("val INT, time INT NOT NULL, bid INT NOT NULL")
Reported = dict[tuple[int, int, int, int], list[int]]


def modelled(rows: list[Row], windows: Windows, engine: Profile) -> Reported:
    """Contents by tuple, instant, and where the window begins and ends, by the pure model."""
    found: Reported = {}
    secret = Secret(stream(rows), windows, engine)
    for report in secret.reports():
        if report.is_reported:
            numbers = [element.sys for element in report.content]
            assert report.scope is not None
            begin, end = (numbers[0] - 1, numbers[-1]) if windows.of_tuples else (report.scope.start, report.instant)
            found[report.arrival.sys, report.instant, begin, end] = [int(element.value) for element in report.content]
    return found


def of_spark(session: Session, slices: list[list[Row]], windows: Windows, engine: Profile) -> Reported:
    """The same by the operator, which restarts after each slice; nothing is kept once the stream is closed."""
    found: Reported = defaultdict(list)
    with tempfile.TemporaryDirectory() as directory:
        operator = secret_window(engine, windows, "time", "bid")
        running = Running(session, Path(directory), operator, SCHEMA, positioned=True)
        told, said = list[Row](), list[Punctuation]()
        for rows in slices:
            done = running.slice((rows, []))
            for val, _, _, begin, end, at, number in done.tuples:
                assert not any(p.matches((0, 0, 0, begin, end, at, number)) for p in said)
                found[number, at, begin, end].append(val)
            said += done.punctuations
            told += rows
            if rows:
                assert [closed(said, place) for place in range(3, 7)] == list(later(told, windows, engine))
            running.restart()
        last = running.slice(([], [Punctuation.all(SCHEMA)]))
        assert (last.kept, [p.is_all for p in last.punctuations]) == (0, [True])
    return {key: sorted(values) for key, values in found.items()}


def closed(said: list[Punctuation], place: int) -> int:
    """The last value of an attribute that the punctuations close by a prefix."""
    alone = [p.patterns[place] for p in said if p.restricted == (place,)]
    return max(pattern.high for pattern in alone if isinstance(pattern, Range) and isinstance(pattern.high, int))


def later(rows: list[Row], windows: Windows, engine: Profile) -> tuple[int, int, int, int]:
    """The last start, end, instant and tuple that no continuation reports: reports go on with the window of now."""
    secret, number = Secret(stream(rows), windows, engine), len(rows)
    time = rows[-1][1] if windows.of_tuples else max(rows[-1][1], secret.t0)
    scope = secret.scope(number if windows.of_tuples else time)
    assert scope is not None
    return scope.start - 1, scope.end - 1, time - 1, number


@st.composite
def streams(draw: st.DrawFn) -> list[list[Row]]:
    """Slices of a stream in order, with gaps, simultaneous tuples and batches; a value is the tuple's number."""
    steps = draw(st.lists(st.tuples(st.sampled_from([0, 0, 1, 1, 2, 3, 9]), st.booleans()), min_size=1, max_size=14))
    time, batch, rows = draw(st.integers(-5, 40)), 1, list[Row]()
    for number, (step, another) in enumerate(steps):
        time, batch = time + step, batch + (number > 0 and (step > 0 or another))
        rows.append((number + 1, time, batch))
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=2)))
    return [rows[low:high] for low, high in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


OTHERS = [
    Profile("whenever", rounded, Reporting(non_empty=True), Tick.TUPLE),
    Profile("complete", rounded, Reporting(window_close=True, non_empty=True), Tick.BATCH),
]


def test_spark_reports_what_the_model_reports(session: Session) -> None:
    """Of a stream Spark takes a second, and by day has few."""
    searches = AT_NIGHT or is_in_process(session)

    @settings(
        max_examples=max(20, settings().max_examples // 10) if searches else 4,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(
        streams(), st.integers(1, 6), st.integers(1, 5), st.booleans(),
        st.sampled_from([*PROFILES.values(), *PROFILES.values(), *OTHERS]),
    )  # fmt: skip
    # DuckDB pushes a Bloom filter down to a table of Arrow, which has none.
    @example([[(1, 38, 1), (2, 38, 2), (3, 39, 3), (4, 39, 4)], [(5, 48, 5), (6, 49, 6)]], 2, 3, True, OTHERS[1])
    def holds(slices: list[list[Row]], size: int, slide: int, of_tuples: bool, engine: Profile) -> None:
        windows = Windows(size, slide, of_tuples=of_tuples)
        rows = [row for rows in slices for row in rows]
        assert of_spark(session, slices, windows, engine) == modelled(rows, windows, engine)

    holds()


def test_a_stream_that_goes_back_in_time_is_malformed(session: Session, tmp_path: Path) -> None:
    running = Running(session, tmp_path, secret_window(STREAMBASE, Windows(5, 1), "time"), SCHEMA, positioned=True)
    running.slice(([(1, 3, 1)], []))
    with pytest.raises(MalformedInput, match="tuple 2 is behind the one before it in time"):
        running.slice(([(1, 2, 1)], []))
    batches = secret_window(CORAL8, Windows(5, 1), "time", "bid")
    with pytest.raises(MalformedInput, match="another time than those before it in its batch"):
        Running(session, tmp_path / "torn", batches, SCHEMA, positioned=True).slice(([(1, 3, 1), (1, 4, 1)], []))
    with pytest.raises(QueryError, match="order of a source"):
        Running(session, tmp_path / "merged", batches, SCHEMA).slice(([(1, 3, 1)], []))


def test_what_cannot_be_run_is_refused() -> None:
    with pytest.raises(UsageError, match="empty windows"):
        secret_window(Profile("any", rounded, Reporting(), Tick.TUPLE), Windows(5, 1), "time")
    with pytest.raises(QueryError, match="val must be an integer that is never null"):
        secret_window(STREAMBASE, Windows(5, 1), "val").schema(SCHEMA)
