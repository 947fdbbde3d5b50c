"""SECRET's formulas give the examples and tables of Botan et al. 2010, to the value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.secret_answers import predict
from xmlstream.punct_ns.errors import UsageError
from xmlstream.secret.model import (
    CORAL8,
    PROFILES,
    STREAM,
    STREAMBASE,
    XMLSTREAM,
    Element,
    Profile,
    Report,
    Reporting,
    Secret,
    Tick,
    Windows,
    stream,
)

SECOND = stream([(10, 30), (20, 31), (30, 36), (40, 37)])
"""Example 2, and one tuple more: with it the window that ends at 36 is closed."""

THIRD: Mapping[str, Sequence[Element]] = {
    "STuple": stream([(10, 3, 1), (20, 5, 2), (30, 5, 3), (40, 5, 4), (50, 5, 5), (60, 7, 6)]),
    "STime": stream([(10, 3, 1), (20, 5, 2), (30, 5, 2), (40, 5, 2), (50, 5, 2), (60, 7, 3)]),
    "SBatch": stream([(10, 3, 1), (20, 5, 2), (30, 5, 2), (40, 5, 3), (50, 5, 3), (60, 7, 4)]),
}
"""The inputs of Experiment 3."""


def always(tick: Tick, start: int) -> Profile:
    return Profile("any", lambda *_: start, Reporting(), tick)


def values(report: Report) -> list[object]:
    return [element.value for element in report.content]


def ticked(secret: Secret) -> list[list[int]]:
    return [list(instants) for _, instants in secret.ticks()]


@pytest.mark.parametrize(
    ("tick", "expected"),
    [
        (Tick.TUPLE, [[0], [1], [2], [2], [2], [2, 3]]),
        (Tick.TIME, [[0], [1], [], [], [], [2, 3]]),
        (Tick.BATCH, [[0], [1], [], [2], [], [2, 3]]),
    ],
)
def test_table_1_ticks(tick: Tick, expected: list[list[int]]) -> None:
    rows = [(1, 1, 1), (2, 2, 2), (3, 2, 2), (4, 2, 3), (5, 2, 3), (6, 4, 4)]
    assert ticked(Secret(stream(rows), Windows(5, 1), always(tick, start=0))) == expected


@pytest.mark.parametrize(("first", "expected"), [(10, [15, 40]), (11, [10, 30]), (12, [20, 50])])
def test_experiment_1_the_same_tuples_at_other_times_fall_into_other_windows(first: int, expected: list[int]) -> None:
    rows = [(10 * (number + 1), first + number) for number in range(7)]
    assert predict(stream(rows), Windows(3, 3), "avg", STREAMBASE)[:2] == expected
    assert Secret(stream(rows), Windows(3, 3), STREAMBASE).t0 == 8


@pytest.mark.parametrize(
    ("engine", "t0", "expected"),
    [
        (STREAM, 25, [10, 15, 20, 30]),
        (CORAL8, 24, [10, 15, 20, 30]),
        (STREAMBASE, 24, [10, 15, 15, 15, 15, 20, 30]),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_experiment_2_engines_report_at_other_times(engine: Profile, t0: int, expected: list[int]) -> None:
    assert Secret(SECOND, Windows(5, 1), engine).t0 == t0
    assert predict(SECOND, Windows(5, 1), "avg", engine) == expected


CONTENTS: Mapping[int, tuple[str, list[int]]] = {
    30: ("(25 30]", [10]),
    31: ("(26 31]", [10, 20]),
    32: ("(27 32]", [10, 20]),
    33: ("(28 33]", [10, 20]),
    34: ("(29 34]", [10, 20]),
    35: ("(30 35]", [20]),
    36: ("(31 36]", [30]),
}
"""Tables 3 and 7: scope and content at each instant."""


@pytest.mark.parametrize(
    ("engine", "instants"),
    [(STREAM, {30, 31, 35, 36}), (CORAL8, {30, 31, 35, 36}), (STREAMBASE, set(CONTENTS))],
    ids=lambda each: getattr(each, "name", ""),
)
def test_tables_3_and_7_what_is_reported_when(engine: Profile, instants: set[int]) -> None:
    reports = {report.instant: report for report in Secret(SECOND, Windows(5, 1), engine).reports()}
    assert set(reports) >= {29, *CONTENTS}
    for instant, report in reports.items():
        assert report.is_reported == (instant in instants), instant
        if report.is_reported:
            assert (str(report.scope), values(report)) == CONTENTS[instant]


@pytest.mark.parametrize("engine", [STREAM, CORAL8, STREAMBASE], ids=lambda engine: engine.name)
def test_table_6_ticks_of_experiment_2(engine: Profile) -> None:
    """It lists the last of the first tuple's reports alone: those before it are of nothing."""
    first, *later = ticked(Secret(SECOND, Windows(5, 1), engine))
    assert first[-1] == 29
    assert later == [[30], [31, 32, 33, 34, 35], [36]]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("STuple", [[2], [3, 4], [5], [5], [5], [5, 6]]),
        ("STime", [[2], [3, 4], [], [], [], [5, 6]]),
        ("SBatch", [[2], [3, 4], [], [5], [], [5, 6]]),
    ],
)
def test_table_4_ticks_of_experiment_3(name: str, expected: list[list[int]]) -> None:
    secret = Secret(THIRD[name], Windows(4, 1), CORAL8)
    assert secret.t0 == -2
    first, *later = ticked(secret)
    assert [first[-1:], *later] == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "STuple",
            {2: (3, [10]), 3: (5, [10, 20]), 4: (5, [10, 20, 30]), 5: (5, [10, 20, 30, 40]), 6: (5, [*"12345"])},
        ),
        ("STime", {2: (3, [10]), 6: (5, [*"12345"])}),
        ("SBatch", {2: (3, [10]), 4: (5, [10, 20, 30]), 6: (5, [*"12345"])}),
    ],
)
def test_table_8_contents_of_experiment_3(name: str, expected: dict[int, tuple[int, list[object]]]) -> None:
    found = {
        report.arrival.sys: (report.instant, values(report))
        for report in Secret(THIRD[name], Windows(4, 1), CORAL8).reports()
        if report.is_reported
    }
    whole = [10, 20, 30, 40, 50]
    assert found == {at: (instant, whole if "1" in content else content) for at, (instant, content) in expected.items()}


@pytest.mark.parametrize(
    ("name", "expected"),
    [("STuple", [10, 30, 60, 100, 150]), ("STime", [10, 150]), ("SBatch", [10, 60, 150])],
)
def test_experiment_3_and_table_5_batches_decide_what_is_seen(name: str, expected: list[int]) -> None:
    assert predict(THIRD[name], Windows(4, 1), "sum", CORAL8) == expected


def test_figure_2_the_scope_of_a_window_that_slides_by_two() -> None:
    secret = Secret(stream([(1, 30)]), Windows(5, 2), always(Tick.TIME, start=30))
    assert [str(secret.scope(t)) for t in (29, 30, 34, 35, 36, 37, 38)] == [
        "None", "(30 30]", "(30 34]", "(30 35]", "(32 36]", "(32 37]", "(34 38]",
    ]  # fmt: skip


@pytest.mark.parametrize(("slide", "expected"), [(1, [3, 6, 9]), (3, [3])])
def test_windows_of_three_tuples(slide: int, expected: list[int]) -> None:
    engine = Profile("tuples", lambda *_: 0, Reporting(window_close=True), Tick.TUPLE)
    rows = [(number, number) for number in range(6)]
    assert predict(stream(rows), Windows(3, slide, of_tuples=True), "sum", engine) == expected


@pytest.mark.parametrize("engine", [STREAM, STREAMBASE], ids=lambda engine: engine.name)
def test_simultaneous_tuples_evaporate_where_a_window_holds_fewer(engine: Profile) -> None:
    """Appendix B.2.1: time-driven, of five at once the last two are seen; tuple-driven, each is."""
    rows = [(1, 1), *((value, 2) for value in (10, 20, 30, 40, 50)), (7, 3)]
    found = predict(stream(rows), Windows(2, 1, of_tuples=True), "sum", engine)
    assert found == ([90] if engine is STREAM else [11, 30, 50, 70, 90])


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 4), st.booleans()), min_size=1, max_size=12),
    st.integers(1, 6),
    st.integers(1, 6),
)
def test_whatever_arrives_windows_that_close_are_answered_alike_by_ours_and_streambase(
    steps: list[tuple[int, int, bool]], size: int, slide: int
) -> None:
    """Where no two tuples are simultaneous both answer each non-empty window once, and the same."""
    app, rows = 0, []
    for value, gap, _ in steps:
        app += gap + 1
        rows.append((value, app))
    of = Windows(size, slide)
    mine = [(r.scope, values(r)) for r in Secret(stream(rows), of, XMLSTREAM).reports() if r.is_reported]
    theirs = [(r.scope, values(r)) for r in Secret(stream(rows), of, STREAMBASE).reports() if r.is_reported]
    assert mine == theirs
    brute = [
        ((start, start + size), [v for v, t in rows if start < t <= start + size])
        for start in range(-size * slide - 1 - (-size * slide - 1 + 1) % slide, app, slide)
        if start + size < app
    ]
    assert [((s.start, s.end), c) for s, c in mine if s] == [(span, inside) for span, inside in brute if inside]


@pytest.mark.parametrize(
    "rows", [[(1, 5), (2, 4)], [(1, 5, 2), (2, 5, 1)], [(1, 5, 1), (2, 6, 1)]], ids=["time", "batch", "two times"]
)
def test_what_is_no_stream_is_refused(rows: list[tuple[int, ...]]) -> None:
    with pytest.raises(UsageError):
        stream(rows)


def test_every_profile_is_found_by_its_name() -> None:
    assert set(PROFILES) == {"stream", "coral8", "streambase", "xmlstream"}
