from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.running import Running
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice
from xmlstream.operators.window import Window
from xmlstream.punct_ns.pattern import Constant, Range, canonical
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import format_schemes, parse_schemes

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

READINGS = Schema.parse("sid INT, ts TIMESTAMP")
MIDNIGHT = datetime(2024, 1, 1, tzinfo=UTC)


def at(second: float) -> datetime:
    return MIDNIGHT + timedelta(seconds=second)


def seconds(*windows: tuple[float, float]) -> list[tuple[datetime, datetime]]:
    return [(at(start), at(end)) for start, end in windows]


@pytest.mark.parametrize(
    ("window", "moment", "windows"),
    [
        (Window("ts", 10, 10), 5, [(0, 10)]),
        (Window("ts", 10, 10), 10, [(10, 20)]),
        (Window("ts", 10, 5), 12, [(5, 15), (10, 20)]),
        (Window("ts", 10, 4), 0, [(-8, 2), (-4, 6), (0, 10)]),
        (Window("ts", 10, 4), 3, [(-4, 6), (0, 10)]),
        (Window("ts", 10, 10, -3), 8, [(7, 17)]),
    ],
)
def test_a_tuple_is_in_each_window_that_holds_its_moment(
    window: Window, moment: float, windows: list[tuple[float, float]], session: Session, tmp_path: Path
) -> None:
    micros = Window(window.of, window.size * 10**6, window.slide * 10**6, window.offset * 10**6)
    running = Running(session, tmp_path, micros, READINGS, positioned=window.overlapping == 1)
    # Midnight of 2024 is at full slides of 4, 5 and 10 seconds.
    done = running.slice(([(1, at(moment)), (2, None)], []))
    assert sorted(done.tuples) == [(1, at(moment), start, end) for start, end in seconds(*windows)]
    assert done.kept == 0
    assert running.positions in ([0], [])


def closed(window: Window, *said: str) -> list[str]:
    """What a window says over tuples of which this is said, all of it in one slice."""
    state = OperatorState(None, (READINGS,), window.state_schema(READINGS))  # type: ignore[arg-type]
    slice_ = Slice(None, tuple(Punctuation.parse(text, READINGS) for text in said))
    return sorted(map(str, window.propagate([slice_], state)))


TEN = 10_000_000
HALF = "2024-01-01T00:00:29.999999"


@pytest.mark.parametrize(
    ("slide", "said", "starts"),
    [
        (TEN, "(,2024-01-01T00:01:00Z)", "(,2024-01-01T00:00:59.999999Z]"),
        (TEN, "(,2024-01-01T00:01:05Z)", "(,2024-01-01T00:00:59.999999Z]"),
        (TEN, "[2024-01-01T00:00:05Z,2024-01-01T00:00:35Z]", f"[2024-01-01T00:00:00.000001Z,{HALF}Z]"),
        (TEN // 2, "(,2024-01-01T00:01:00Z)", "(,2024-01-01T00:00:54.999999Z]"),
        (TEN // 5, "(,2024-01-01T00:01:00Z)", "(,2024-01-01T00:00:51.999999Z]"),
    ],
)  # fmt: skip
def test_windows_are_closed_that_are_complete_whatever_the_bounds(slide: int, said: str, starts: str) -> None:
    found = closed(Window("ts", TEN, slide, replaces=True), f"<*, {said}>")
    assert f"<*, {starts}, *>" in found
    assert len(found) == 2


def test_what_is_closed_of_one_sensor_closes_its_windows_alone() -> None:
    window = Window("ts", TEN, TEN, replaces=True)
    assert closed(window, "<7, (,2024-01-01T00:01:00Z)>") == [
        "<7, (,2024-01-01T00:00:59.999999Z], *>",
        "<7, *, (,2024-01-01T00:01:09.999999Z]>",
    ]
    assert closed(window, "<7, *>") == ["<7, *, *>"]


SMALL = Schema.parse("sid INT NOT NULL, ts TIMESTAMP").bounded(
    "sid 1..2, ts 1970-01-01T00:00:00Z..1970-01-01T00:00:00.000011Z"
)
MOMENTS = [datetime(1970, 1, 1, 0, 0, 0, micro, UTC) for micro in range(12)]


@st.composite
def punctuations(draw: st.DrawFn) -> Punctuation:
    ends = st.none() | st.sampled_from(MOMENTS)
    ts = draw(st.builds(Range, ends, ends, st.booleans(), st.booleans()))
    p = Punctuation.at(SMALL, {1: canonical(ts, SMALL[1].domain)})
    sid = draw(st.none() | st.sampled_from([1, 2]))
    return p if sid is None else Punctuation(SMALL, (Constant(sid), p.patterns[1]))


@given(st.lists(st.lists(punctuations(), max_size=3), max_size=4), st.integers(1, 5), st.integers(1, 5), st.data())
def test_just_the_windows_are_closed_of_which_every_moment_is(
    slices: list[list[Punctuation]], size: int, slide: int, data: st.DataObject
) -> None:
    slide, offset = min(size, slide), data.draw(st.integers(-2, 2))
    replaces = data.draw(st.booleans())
    window = Window("ts", size, slide, offset, replaces=replaces)
    output = window.schema(SMALL)
    state: Any = OperatorState(None, (SMALL,), window.state_schema(SMALL))  # type: ignore[arg-type]
    said, out = PunctuationSet(SMALL), PunctuationSet(output)
    for slice_ in slices:
        said.add_all(slice_)
        out.add_all(window.propagate([Slice(None, tuple(slice_))], state))
        for start in (s for s in range(-12, 24) if (s - offset) % slide == 0):
            inside = [moment for moment in MOMENTS if start <= moment.microsecond < start + size]
            for sid in (1, 2) if inside else ():
                ends = [datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=m) for m in (start, start + size)]
                complete = all(any(p.matches((sid, moment)) for p in said) for moment in inside)
                shown = (sid, *ends) if replaces else (sid, inside[0], *ends)
                single = any(p.matches((sid, inside[0])) for p in said)
                assert any(p.matches(shown) for p in out) == (complete if replaces else complete or single)


def test_a_promise_of_moments_is_one_of_windows() -> None:
    window = Window("ts", TEN, TEN // 2)
    given_ = parse_schemes("sid; ts prefix; sid, ts prefix; ts", READINGS)
    assert format_schemes(window.pruned(set()).schemes(given_)) == (
        "sid; `window.start` prefix; `window.end` prefix; sid, `window.start` prefix; sid, `window.end` prefix"
    )
    assert "ts prefix" in format_schemes(window.schemes(given_))


def test_what_is_needed_of_a_window_is_its_moment() -> None:
    window = Window("ts", TEN, TEN)
    assert window.required({"window.start"}, READINGS) == [{"ts"}]
    assert window.pruned({"sid", "window.end"}).schema(READINGS).names == ("sid", "window.start", "window.end")
    assert window.lineage(["sid", "window.end"], READINGS) == [("sid", "ts")] or window.lineage(
        ["sid", "window.end"], READINGS
    ) == [("ts", "sid")]
