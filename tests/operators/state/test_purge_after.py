"""Purging by age: which kept rows are overdue when, what becomes of them, and that nothing changes without it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.running import Running
from tests.harness.saying import NO_STORE
from xmlstream.operators.behaviour import Operator
from xmlstream.operators.distinct import Distinct
from xmlstream.operators.expressions.aggregates import Aggregate
from xmlstream.operators.group_by import GroupBy
from xmlstream.operators.join import Join
from xmlstream.operators.sort_order import SortKey
from xmlstream.operators.state import ages, tuple_log
from xmlstream.operators.state.ages import PurgeAfter, Since
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.tuple_log import TupleLog
from xmlstream.operators.top_n import TopN
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.lifespan import Duration
from xmlstream.punct_ns.schema import Attribute, Schema

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

SALES = Schema.parse("k INT, v INT")
NAMES = Schema.parse("id INT, name STRING")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        ("1000 slices", PurgeAfter(slices=1000), "1000 slices"),
        (" 1 SLICE ", PurgeAfter(slices=1), "1 slice"),
        ("PT1H", PurgeAfter(span=Duration(span=timedelta(hours=1))), "PT1H"),
        ("P1M", PurgeAfter(span=Duration(months=1)), "P1M"),
        ("1 hour", PurgeAfter(span=Duration(span=timedelta(hours=1))), "PT1H"),
        ("1.5 days", PurgeAfter(span=Duration(span=timedelta(hours=36))), "P1DT12H"),
        ("500ms", PurgeAfter(span=Duration(span=timedelta(milliseconds=500))), "PT0.5S"),
    ],
)
def test_the_option_is_a_number_of_slices_or_a_span_of_time(text: str, limit: PurgeAfter, shown: str) -> None:
    assert PurgeAfter.parse(text) == limit
    assert str(limit) == shown
    assert PurgeAfter.parse(shown) == limit


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("soon", "neither a number of slices nor a span of time"),
        ("1000", "neither"),
        ("1.5 slices", "neither"),
        ("-1 slices", "neither"),
        ("P", "neither"),
        ("PT", "neither"),
        ("0 slices", "would keep nothing"),
        ("PT0S", "would keep nothing"),
        ("99999999999999 weeks", "beyond the calendar"),
    ],
)
def test_what_says_nothing_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        PurgeAfter.parse(text)


@pytest.mark.parametrize("limit", ["2 slices", "2 s"])
def test_a_row_is_overdue_once_it_is_older_and_not_before(limit: str) -> None:
    came = Since.of(7, BEGIN)
    over = [
        PurgeAfter.parse(limit).is_over(came, Since.of(7 + later, BEGIN + timedelta(seconds=later)))
        for later in range(5)
    ]
    assert over == [False, False, False, True, True]


@pytest.mark.parametrize("limit", ["160 slices", "160 s"])
def test_the_rows_of_a_large_log_may_wait_for_a_sixteenth_of_the_time(limit: str) -> None:
    came = Since.of(7, BEGIN)
    due = [
        later
        for later in range(300)
        if PurgeAfter.parse(limit).is_due(came, Since.of(7 + later, BEGIN + timedelta(seconds=later)), 100_001)
    ]
    assert due[0] == 171


def counted(*keys: str) -> GroupBy:
    n = Aggregate(Attribute("n", Domain("BIGINT", nullable=False)), "count(*)")
    return GroupBy(keys, (n, Aggregate(Attribute("top", Domain("INT")), "max(v)")))


def listed() -> GroupBy:
    return GroupBy(("k",), (Aggregate(Attribute("n", Domain("BIGINT", nullable=False)), "count(DISTINCT v)"),))


class Case:
    """An operator whose slices are a second apart."""

    def __init__(self, running: Running) -> None:
        self.running = running

    def slice(self, *inputs: Any) -> tuple[list[Any], int, list[dict[str, Any]]]:
        """What goes out, how many rows are kept then, and the dead letters' rows."""
        done = self.running.slice(*inputs)
        letters = [letter.raw for letter in self.running.overdue]
        self.running.time += timedelta(seconds=1)
        return sorted(done.tuples), done.kept, letters


@pytest.fixture(params=["2 slices", "2 s"])
def begun(request: Any, session: Session, tmp_path: Path) -> Callable[..., Case]:
    def begin(operator: Operator, *inputs: Schema, lasting: tuple[int, ...] = ()) -> Case:
        limit = PurgeAfter.parse(request.param)
        return Case(Running(session, tmp_path, operator, *inputs, purge_after=limit, lasting=lasting))

    return begin


NOTHING: Any = ([], [])

# The operator, what comes slice by slice, and what is kept, and dead, after each.
TABLES: dict[str, tuple[Operator, list[Any], list[int], list[list[dict[str, Any]]]]] = {
    "a tuple that nothing closes": (
        Distinct(),
        [[(1, 1)], [(2, 1)], [], [], [(3, 1)]],
        [1, 2, 2, 1, 1],
        [[], [], [], [{"k": 1, "v": 1}], [{"k": 2, "v": 1}]],
    ),
    "a group is as old as its last tuple": (
        counted("k"),
        [[(1, 1), (2, 5)], [], [(1, 9)], [], [], []],
        [2, 2, 2, 1, 1, 0],
        [[], [], [], [{"k": 2, "n": 1, "top": 5}], [], [{"k": 1, "n": 2, "top": 9}]],
    ),
    "one group of all": (counted(), [[(1, 1)], [], [], []], [1, 1, 1, 0], [[], [], [], [{"n": 1, "top": 1}]]),
    "what an aggregate needs of each tuple": (
        listed(),
        [[(1, 1), (1, 2)], [(1, 2)], [], []],
        [2, 2, 2, 1],
        [[], [], [], [{"k": 1, "v": 1}]],
    ),
    "the first of each group": (
        TopN(1, (SortKey("v"),), ("k",)),
        [[(1, 5)], [(1, 3)], [], [], []],
        [1, 1, 1, 1, 0],
        [[], [], [], [], [{"k": 1, "v": 3}]],
    ),
}


@pytest.mark.parametrize("small", [True, False], ids=["rewritten", "filtered"])
@pytest.mark.parametrize("restarts", [False, True], ids=["at once", "restarted each slice"])
@pytest.mark.parametrize("name", TABLES)
def test_kept_rows_that_are_overdue_become_dead_letters(
    begun: Callable[..., Case], name: str, restarts: bool, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not small:
        monkeypatch.setattr(tuple_log, "SMALL", 0)
    operator, came, kept, dead = TABLES[name]
    case = begun(operator, SALES)
    found: list[Any] = []
    for rows in came:
        if restarts:
            case.running.restart()
        _, count, letters = case.slice((rows, []))
        found.append((count, letters))
    if small:  # rows of one group in large logs combine later
        assert [count for count, _ in found] == kept
    assert [letters for _, letters in found] == dead


def test_sides_of_a_join_grow_old_each_for_itself(begun: Callable[..., Case]) -> None:
    case = begun(Join("inner", ("k",), ("id",)), SALES, NAMES)
    assert case.slice(([(1, 1)], []), NOTHING) == ([], 1, [])
    assert case.slice(NOTHING, ([(2, "two")], [])) == ([], 2, [])
    assert case.slice(NOTHING, ([(1, "one")], [])) == ([(1, 1, 1, "one")], 3, [])
    assert case.slice(NOTHING, ([(1, "uno")], [])) == ([], 3, [{"k": 1, "v": 1}])
    assert case.slice(([(2, 7)], []), NOTHING) == ([], 3, [{"id": 2, "name": "two"}])


def test_what_is_read_once_and_for_all_is_never_overdue(begun: Callable[..., Case]) -> None:
    case = begun(Join("inner", ("k",), ("id",)), SALES, NAMES, lasting=(1,))
    case.slice(([(1, 1)], []), ([(2, "two")], []))
    for _ in range(3):
        _, kept, _ = case.slice(NOTHING, NOTHING)
    assert kept == 1
    assert case.slice(([(2, 7)], []), NOTHING)[0] == [(2, 7, 2, "two")]


def test_without_it_no_log_is_asked_for_what_is_overdue(monkeypatch: pytest.MonkeyPatch) -> None:
    """So nothing is looked for where it is off."""
    asked: list[str] = []
    for name in ("begin", "overdue"):
        monkeypatch.setattr(TupleLog, name, lambda log, *_, name=name, **__: asked.append(name))
    declared = Distinct().state_schema(SALES)
    for limit, expected in ((None, ["begin"]), (PurgeAfter.parse("2 slices"), ["begin", "overdue"])):
        state = OperatorState(NO_STORE, (SALES,), declared, purge_after=limit)
        asked.clear()
        state.begin(BEGIN, 1)
        assert asked == expected
        assert (state.overdue, list(state.overdue_letters())) == (0, [])


def test_the_limit_may_come_later_and_go_again(session: Session, tmp_path: Path) -> None:
    """Rows that were there before it came count from its first slice; without it nothing is overdue."""
    running = Running(session, tmp_path, Distinct(), SALES)
    case = Case(running)
    for k in range(4):
        case.slice(([(k, 0)], []))
    running.restart(PurgeAfter.parse("2 slices"))
    assert [case.slice(([(k, 0)], []))[1] for k in (4, 5, 6)] == [5, 6, 7]
    assert case.slice(NOTHING)[1:] == (2, [{"k": k, "v": 0} for k in (0, 1, 2, 3, 4)])
    running.restart(None)
    assert [case.slice(([(k, 0)], []))[1] for k in (7, 8, 9)] == [3, 4, 5]
    running.restart(PurgeAfter.parse("PT2S"))
    _, kept, dead = case.slice(NOTHING)
    assert (kept, dead) == (3, [{"k": 5, "v": 0}, {"k": 6, "v": 0}])


def test_a_large_log_is_looked_through_now_and_then(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ages, "_LARGE", 2)
    case = Case(Running(session, tmp_path, Distinct(), SALES, purge_after=PurgeAfter.parse("16 slices")))
    kept = [case.slice(([(k, 0)], []))[1] for k in range(22)]
    assert kept == [*range(1, 19), 17, 18, 17, 18]
