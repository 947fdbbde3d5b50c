"""look_ahead: what it promises and waits for; what it answers is in test_sql_row_windows."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.running import Items, Running
from xmlstream.operators.behaviour import Operator
from xmlstream.operators.closing_conditions import Grouping
from xmlstream.operators.expressions.aggregates import Over
from xmlstream.operators.join import Join
from xmlstream.operators.look_ahead import LookAhead
from xmlstream.operators.sort_order import SortKey
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.scheme import format_schemes, parse_schemes

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

HERE = Schema.parse("sid STRING, ts INT NOT NULL, v INT")


def looking(*rows: tuple[str, int, int], groups: tuple[str, ...] = ("sid",)) -> LookAhead:
    """Functions, with the first and the last row that each sees before the tuple."""
    functions = (Over(Attribute(f"w{i}", Domain("INT")), text, a, b) for i, (text, a, b) in enumerate(rows))
    return LookAhead(tuple(functions), (SortKey("ts"),), groups)


def test_as_many_rows_are_kept_as_are_waited_for_and_looked_back_at() -> None:
    for rows, ahead, reach in (
        ([("lead(`v`)", -1, -1)], 1, 1),
        ([("lead(`v`, 3)", -3, -3), ("sum(`v`)", 2, -1)], 3, 5),
        ([("max(`v`)", -1, -4)], 4, 4),
    ):
        operator = looking(*rows)
        assert (operator.ahead, operator.reach) == (ahead, reach)
        _, last = operator.state_schema(HERE).models
        assert last.is_fixed
        assert last.until == Grouping(0, ("sid",))


def test_time_alone_promises_nothing_of_groups_whose_last_row_waits() -> None:
    schemes = parse_schemes("sid, ts prefix; ts prefix; sid", HERE)
    lead = ("lead(`v`)", -1, -1)
    assert format_schemes(looking(lead).schemes(schemes)) == "sid"
    assert format_schemes(looking(lead, groups=()).schemes(schemes)) == "ts prefix"
    listed = Schema.parse("sid STRING, ts INT NOT NULL, v INT", "sid {A, B}")
    for promised, of_any, of_few in (
        ("ts prefix", False, True),
        ("sid, ts prefix", False, True),
        ("sid", True, True),
        ("ts prefix; sid", True, True),
        ("v", False, False),
    ):
        for here, holds in ((HERE, of_any), (listed, of_few)):
            assert looking(lead).enabled_by(here).holds([(here, parse_schemes(promised, here))]) == holds
    assert looking(lead, groups=()).enabled_by(HERE).holds([(HERE, parse_schemes("ts prefix", HERE))])


def test_each_slice_puts_out_as_many_punctuations_as_rows_come_however_many_wait(
    session: Session, tmp_path: Path
) -> None:
    """The last row of each group waits; what was closed before it came is not said again."""
    running = Running(session, tmp_path, looking(("lead(`v`)", -1, -1)), HERE)
    said = []
    for i in range(6):
        rows = [(f"S{2 * i + j}", 10 * i + j, j) for j in range(2)]
        said.append(len(running.slice((rows, [Punctuation.parse(f"<*, (,{10 * i + 9}], *>", HERE)])).punctuations))
        running.restart()
    assert max(said[1:]) <= said[0] + 1, said


def test_functions_that_nobody_needs_are_not_computed() -> None:
    both = looking(("lead(`v`)", -1, -1), ("lead(`v`, 2)", -2, -2))
    assert both.pruned({"sid", "w0"}).ahead == 1
    assert str(both.functions[1]) == "lead(`v`, 2)"
    assert str(looking(("sum(`v`)", 2, -1)).functions[0]) == "sum(`v`) ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING"


@pytest.mark.parametrize(
    ("most", "said"),
    [
        (9, "<1, (,1], *, *> <1, [3,5], *, *> <2, (,3], *, *> <2, 5, *, *> <{0,3}, (,5], *, *>"),
        (1, "<*, (,1], *, *> <*, 5, *, *>"),
    ],
)
def test_of_what_is_closed_all_is_said_but_what_rows_wait_for_and_between_many_of_them_nothing(
    most: int, said: str, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xmlstream.operators.state.blocked_set.MOST", most)
    here = Schema.parse("sid INT NOT NULL, ts INT NOT NULL, v INT", domains="sid 0..3")
    running = Running(session, tmp_path, looking(("lead(`v`)", -1, -1)), here)
    running.shows("(1, 2, 7) (2, 4, 8) <*, (,5], *>", out=said, kept="2")
    running.restart()
    running.shows("<*, *, *>", out="(1, 2, 7, null) (2, 4, 8, null) <*, *, *, *>", kept="0")


@pytest.mark.parametrize(
    ("operator", "others"),
    [
        pytest.param(looking(("lead(`v`)", -1, -1), groups=("sid", "a")), [], id="look_ahead"),
        pytest.param(Join("inner", ("a",), ("k",)), [Schema.parse("k INT NOT NULL")], id="join"),
    ],
)
def test_values_that_close_together_let_as_much_go_out_as_one_after_the_other(
    operator: Operator, others: list[Schema], in_process: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many tuples of one value are cut coarsely; few tuples of each of many values, closed as a range, are not."""
    monkeypatch.setattr("xmlstream.operators.state.blocked_set.MOST_TOGETHER", 2)
    here = Schema.parse("sid INT NOT NULL, a INT NOT NULL, ts INT NOT NULL, v INT")
    said = [Punctuation.of(here, sid=str(one), ts="(,9]") for one in range(4)]
    rows = [(one, a, 2 * a + one, 0) for one in range(4) for a in range(4 if one == 1 else 2)]
    told: list[PunctuationSet] = []
    for slices in ([said], [[one] for one in said], [said[:2], said[2:]]):
        running = Running(in_process, tmp_path / str(len(told)), operator, here, *others)
        silent: list[Items] = [([], []) for _ in others]
        done = [running.slice((rows if n == 0 else [], each), *silent) for n, each in enumerate(slices)]
        told.append(PunctuationSet(running.output, (p for each in done for p in each.punctuations)))
    for one, other in permutations(told, 2):
        assert [str(p) for p in one if not other.covers(p)] == []
