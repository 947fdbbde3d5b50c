"""The protocol of a tuple log: what may follow what, on an empty log too, and what each order leaves kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.running import rows_of
from xmlstream.operators.state import tuple_log
from xmlstream.operators.state.slice_tuples import Tuples
from xmlstream.operators.state.state_schema import LogSchema
from xmlstream.operators.state.tuple_log import TupleLog
from xmlstream.operators.storage import segments
from xmlstream.operators.storage.segments import SegmentStore
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.session.engines import engine_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NUMBER = Schema.parse("n INT")


class Case:
    """A log in a store of its own, of numbers."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self.spark, self.store = spark, SegmentStore(engine_of(spark), directory)
        self.store.begin(0)
        self.log = TupleLog(self.store, LogSchema(NUMBER))

    def of(self, *numbers: int) -> Tuples:
        rows = [(n,) for n in numbers]
        return Tuples(
            self.store.engine.given(self.spark.createDataFrame(rows, NUMBER.ddl())), len(numbers) + 1, exact=False
        )

    def again(self) -> None:
        """As after a restart."""
        self.log = TupleLog(self.store, LogSchema(NUMBER), self.log.record())

    def kept(self) -> list[int]:
        return numbers(self.log.whole())


def numbers(tuples: Tuples | None) -> list[int]:
    return [] if tuples is None else sorted(n for (n,) in rows_of(tuples, NUMBER))


def said(text: str) -> list[Punctuation]:
    return [Punctuation.parse(text, NUMBER)]


@pytest.fixture(params=["rewritten", "filtered", "on disk"])
def case(request: Any, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    if request.param == "filtered":
        monkeypatch.setattr(tuple_log, "SMALL", 0)
    if request.param == "on disk":
        monkeypatch.setattr(segments, "COLLECTED", 0)
    return Case(spark, tmp_path)


MISUSES: dict[str, Callable[[Case], object]] = {
    "added to": lambda case: case.log.add(case.of(9)),
    "appended to": lambda case: case.log.append(case.of(9)),
    "purged": lambda case: case.log.purge(said("<1>")),
    "removed from": lambda case: case.log.remove(case.of(1), ["n"]),
    "recorded": lambda case: case.log.record(),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("before", [(), (1, 4)], ids=["empty", "of two"])
def test_rows_that_were_added_must_be_taken_or_settled_before_anything_else(case: Case, before: Sequence[int]) -> None:
    if before:
        case.log.append(case.of(*before))
    case.log.add(case.of(1, 2))
    for what, misuse in MISUSES.items():
        with pytest.raises(RuntimeError, match=f"^a tuple log is {what} while"):
            misuse(case)
    assert case.kept() == sorted([*before, 1, 2]), "what was refused has done nothing"
    case.log.settle()
    for misuse in MISUSES.values():
        misuse(case)
        case.log.settle()
    assert case.kept() == [2, *(n for n in before if n != 1), 9, 9]


def test_an_empty_log_gives_nothing_and_takes_everything(case: Case) -> None:
    assert case.log.whole() is None
    assert case.log.take(said("<1>")) is None
    case.log.purge(said("<1>"))
    case.log.remove(case.of(1), ["n"])
    case.log.settle()
    assert (case.log.rows, case.log.purged, case.log.is_empty) == (0, 0, True)
    case.again()
    case.log.add(case.of())
    assert case.log.take(said("<1>")) is None
    assert case.log.is_empty


def test_purges_follow_each_other_in_any_order(case: Case) -> None:
    case.log.append(case.of(*range(1, 9)))
    assert numbers(case.log.take(said("<[1,2]>"))) == [1, 2]
    case.log.purge(said("<3>"))
    case.log.remove(case.of(4), ["n"])
    assert numbers(case.log.take(said("<5>"))) == [5]
    case.log.purge(said("<3>"))
    assert (case.kept(), case.log.rows, case.log.purged) == ([6, 7, 8], 3, 5)
    case.again()
    assert (case.kept(), case.log.rows, case.log.purged) == ([6, 7, 8], 3, 0)


def test_rows_that_are_added_are_combined_with_each_other_and_with_those_there(case: Case) -> None:
    case.log = TupleLog(case.store, LogSchema(NUMBER, combine=lambda rows, _ages: rows.distinct()))
    case.log.add(case.of(2, 2, 6), partial=True)
    assert numbers(case.log.take(said("<2>"))) == [2]
    assert (case.kept(), case.log.rows, case.log.purged) == ([6], 1, 1)
    case.log.add(case.of(3, 3, 4, 6), partial=True)
    assert numbers(case.log.take(said("<{3,6}>"))) == [3, 6]
    case.log.add(case.of(4, 5, 5, 7), partial=True)
    case.log.settle()
    assert numbers(case.log.take(said("<[1,5]>"))) == [4, 5]
    assert (case.kept(), case.log.rows) == ([7], 1)


def test_rows_that_come_in_after_a_purge_are_not_touched_by_it(case: Case) -> None:
    case.log.append(case.of(1, 2, 3, 4, 5))
    case.log.purge(said("<[1,2]>"))
    case.log.remove(case.of(3), ["n"])
    case.log.append(case.of(1, 3))
    assert (case.kept(), case.log.rows) == ([1, 3, 4, 5], 4)
    case.again()
    case.log.add(case.of(2))
    case.log.settle()
    assert (case.kept(), case.log.rows) == ([1, 2, 3, 4, 5], 5)
    case.log.purge(said("<[1,3]>"))
    assert (case.kept(), case.log.rows) == ([4, 5], 2)
