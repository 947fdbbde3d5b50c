"""Kept rows that are looked up by their keys give what all rows give, and a slice reads and rewrites little."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.harness.nights import AT_NIGHT
from tests.harness.running import Done, Items, Row, Running, rows_of, tuples_of
from tests.samples.strategies import SmallSchema, sliced_streams, small_punctuations, small_schemas, small_tuples
from xmlstream.operators.behaviour import Operator
from xmlstream.operators.difference import Difference
from xmlstream.operators.distinct import Distinct
from xmlstream.operators.expressions.aggregates import Aggregate
from xmlstream.operators.group_by import GroupBy
from xmlstream.operators.intersect import Intersect
from xmlstream.operators.join import Join
from xmlstream.operators.semi_join import SemiJoin
from xmlstream.operators.state import log_parts, tuple_log
from xmlstream.operators.state.ages import Since, combined_ages
from xmlstream.operators.state.slice_tuples import Tuples
from xmlstream.operators.state.state_schema import LogSchema
from xmlstream.operators.state.tuple_log import TupleLog
from xmlstream.operators.storage import lookup, segments
from xmlstream.operators.storage.lookup import Block
from xmlstream.operators.storage.records import LogRecord
from xmlstream.operators.storage.segments import Segment, SegmentStore
from xmlstream.punct_ns.pattern import Constant, List
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.session.engines import engine_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.operators.frames.frame import Frame
    from xmlstream.session.engines import InProcessSession, Session

EXAMPLES = 400 if AT_NIGHT else 10


def group(schema: Schema) -> Operator:
    count = Aggregate(Schema.parse("n BIGINT")[0], "count(*)")
    return GroupBy(schema.names[:1], (count,))


def joined(kind: Any) -> Callable[[Schema], Operator]:
    return lambda schema: Join(kind, schema.names[:1], (f"{schema.names[0]}2",))


OPERATORS: dict[str, tuple[Callable[[Schema], Operator], int]] = {
    "distinct": (lambda _: Distinct(), 1),
    "group": (group, 1),
    "join": (joined("inner"), 2),
    "left join": (joined("left"), 2),
    "full join": (joined("full"), 2),
    "semi join": (lambda schema: SemiJoin(schema.names[:1], (f"{schema.names[0]}2",)), 2),
    "anti join": (lambda schema: SemiJoin(schema.names[:1], (f"{schema.names[0]}2",), anti=True), 2),
    "intersect": (Intersect, 2),
    "difference": (Difference, 2),
}


def looking_up() -> ExitStack:
    """All logs look their rows up, whatever their size, and merge segments as soon as there are two."""
    changes = ((tuple_log, "SMALL", 0), (log_parts, "FEWER", 0), (log_parts, "TOGETHER", 2), (lookup, "_IN_MEMORY", 0))
    stack = ExitStack()
    for module, name, value in changes:
        stack.enter_context(patch.object(module, name, value))
    return stack


@st.composite
def runs(draw: st.DrawFn) -> tuple[str, Schema, list[list[list[Any]]], list[int]]:
    """An operator, the schema of its inputs, the slices of each of them, and the slices before which it restarts."""
    name = draw(st.sampled_from(sorted(OPERATORS)))
    space: SmallSchema = draw(small_schemas(2))
    inputs = [draw(sliced_streams(space, 5)) for _ in range(OPERATORS[name][1])]
    return name, space.schema, inputs, draw(st.lists(st.integers(1, 4), max_size=2))


def items(slice_: Sequence[Any], schema: Schema) -> Items:
    rows = [item for item in slice_ if not isinstance(item, Punctuation)]
    said = [Punctuation(schema, item.patterns) for item in slice_ if isinstance(item, Punctuation)]
    return rows, said


def shown(done: Done) -> tuple[Any, ...]:
    return Counter(map(str, done.tuples)), sorted(map(str, done.punctuations)), done.kept, done.purged


TWO = small_schemas(2).filter(lambda space: len(space.schema) == 2)


def greatest(rows: Frame, ages: Sequence[str]) -> Frame:
    """The greatest b of each a."""
    return rows.group_by(["a"], {"b": "max(b)", **combined_ages(ages)})


class Kept:
    """A log that looks its rows up, beside the list of the rows that it should have."""

    def __init__(self, session: Session, place: Path, schema: Schema, *, combined: bool) -> None:
        self.session, self.schema = session, schema
        self.store = SegmentStore(engine_of(session), place)
        combine = greatest if combined else None
        self.declared = LogSchema(schema.only(["a"]) if combined else schema, combine=combine, key=("a",) * combined)
        self.log = TupleLog(self.store, self.declared)
        self.rows: list[Row] = []
        self.slice = 0

    def begin(self, *, restarts: bool, session: Session | None = None) -> None:
        """Begins a slice, perhaps in another process, with another engine."""
        self.session = session or self.session
        record = LogRecord.from_json(json.loads(json.dumps(self.log.record().json())))
        self.store.retain(record.checksums)
        if restarts:
            self.store = SegmentStore(engine_of(self.session), self.store._store.root)
            self.log = TupleLog(self.store, self.declared, record)
        self.slice += 1
        self.store.begin(self.slice)
        self.log.begin(Since.of(self.slice, datetime(2026, 1, 1, tzinfo=UTC)))

    def tuples(self, rows: Sequence[Row]) -> Tuples:
        tuples = tuples_of(self.session, rows, self.schema)
        assert tuples is not None
        return tuples

    def matched(self, said: Sequence[Punctuation]) -> list[Row]:
        width = len(self.declared.purging)
        return [row for row in self.rows if any(p.matches(row[:width]) for p in said)]

    def add(self, rows: Sequence[Row]) -> None:
        if not self.declared.combine:
            self.log.append(self.tuples(rows))
            self.rows += rows
            return
        self.log.add(self.tuples(rows))
        self.log.settle()
        greatest: dict[Any, Any] = {}
        for a, b in [*self.rows, *rows]:
            known = greatest.setdefault(a, b)
            greatest[a] = b if known is None or (b is not None and b > known) else known
        self.rows = list(greatest.items())

    def purge(self, said: Sequence[Punctuation], *, taking: bool) -> None:
        """Purges the rows that punctuations match, and compares those that are taken."""
        gone = self.matched(said)
        if taking:
            taken = self.log.take(said)
            assert counted([] if taken is None else rows_of(taken, self.schema)) == counted(gone)
        else:
            self.log.purge(said)
        self.rows = [row for row in self.rows if row not in gone]

    def remove(self, rows: Sequence[Row], names: Sequence[str]) -> None:
        self.log.remove(self.tuples(rows), names)
        self.rows = [row for row in self.rows if not self._agrees(row, rows, names)]

    def look_up(self, rows: Sequence[Row], names: Sequence[str]) -> None:
        """Compares what is found with the rows that agree; others may be found, but none that are not kept."""
        found = self.log.near(self.tuples(rows), names)[1]
        near = counted([] if found is None else rows_of(found, self.schema))
        assert near >= counted(row for row in self.rows if self._agrees(row, rows, names))
        assert near <= counted(self.rows)

    def _agrees(self, row: Row, rows: Sequence[Row], names: Sequence[str]) -> bool:
        places = [self.schema.index(name) for name in names]
        return any(all(row[i] == other[i] for i in places) for other in rows)

    def require_same(self) -> None:
        """Compares all that is kept."""
        whole = self.log.whole()
        assert counted([] if whole is None else rows_of(whole, self.schema)) == counted(self.rows)
        assert self.log.rows == len(self.rows)


def counted(rows: Iterable[Row]) -> Counter[Row]:
    return Counter(rows)


@settings(max_examples=EXAMPLES * 4, deadline=None, phases=[Phase.generate])
@given(TWO, st.booleans(), st.data())
def test_a_log_keeps_what_a_list_keeps(
    in_process: InProcessSession, space: SmallSchema, combined: bool, data: st.DataObject
) -> None:
    rows = st.lists(small_tuples(space), min_size=1, max_size=6)
    names = st.sampled_from([["a"], ["b"], ["a", "b"]])
    with TemporaryDirectory() as place, looking_up():
        kept = Kept(in_process, Path(place), space.schema, combined=combined)
        said = small_punctuations(space)
        if combined:
            said = said.map(lambda p: Punctuation(kept.declared.purging, p.patterns[:1]))
        several = st.lists(said, min_size=1, max_size=3)
        for _ in range(data.draw(st.integers(2, 9))):
            kept.begin(restarts=data.draw(st.booleans()))
            kept.add(data.draw(rows))
            match data.draw(st.sampled_from(["purge", "take", "remove", "look up", "none"])):
                case "purge" | "take" as how:
                    kept.purge(data.draw(several), taking=how == "take")
                case "remove":
                    kept.remove(data.draw(rows), data.draw(names))
                case "look up":
                    kept.look_up(data.draw(rows), data.draw(names))
            kept.look_up(data.draw(rows), data.draw(names))
        kept.require_same()


@settings(max_examples=EXAMPLES, deadline=None)
@given(runs())
def test_rows_that_are_looked_up_give_what_all_rows_give(
    in_process: InProcessSession, run: tuple[str, Schema, list[list[list[Any]]], list[int]]
) -> None:
    name, schema, streams, restarts = run
    second = Schema(tuple(Attribute(f"{a.name}2", a.domain) for a in schema))
    inputs = [schema, second if "join" in name else schema][: len(streams)]
    operator = OPERATORS[name][0](schema)
    with TemporaryDirectory() as place:
        plain, looked_up = (Running(in_process, Path(place) / each, operator, *inputs) for each in ("a", "b"))
        for number in range(max(map(len, streams))):
            given_ = [items(s[number] if number < len(s) else [], of) for s, of in zip(streams, inputs, strict=True)]
            expected = shown(plain.slice(*given_))
            with looking_up():
                if number in restarts:
                    looked_up.restart()
                assert shown(looked_up.slice(*given_)) == expected, number


def test_rows_of_an_older_checkpoint_are_combined_before_they_are_looked_up(
    in_process: InProcessSession, tmp_path: Path
) -> None:
    schema = Schema.parse("a INT, b INT")
    with looking_up():
        kept = Kept(in_process, tmp_path, schema, combined=True)
        without_key = replace(kept.declared, key=())
        kept.log = TupleLog(kept.store, without_key)
        kept.begin(restarts=False)
        for rows in ([(1, 5), (2, 5)], [(1, 7), (3, 7)]):
            kept.log.add(kept.tuples(rows))
            kept.log.settle()
        assert kept.log.rows == 4, "a version without keys has the rows of a key in several segments"
        kept.begin(restarts=True)
        kept.rows = [(1, 7), (2, 5), (3, 7)]
        kept.add([(4, 1)])
        kept.require_same()
        kept.begin(restarts=True)
        kept.add([(2, 6)])
        kept.purge([Punctuation.of(kept.declared.purging, {"a": Constant(1)})], taking=True)
        kept.require_same()


@pytest.mark.spark
@pytest.mark.parametrize("collected", [segments.COLLECTED, 0], ids=["by the driver", "by the engine"])
def test_an_engine_looks_up_what_another_has_written(
    spark: SparkSession,
    in_process: InProcessSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    collected: int,
) -> None:
    monkeypatch.setattr(segments, "COLLECTED", collected)
    schema = Schema.parse("a TIMESTAMP, b STRING")
    moments = [datetime(year, 7, 1, 0, 0, 0, 7, tzinfo=UTC) for year in (1, 1970, 2026, 9999)]
    rows: list[Row] = [(at, text) for at in (*moments, None) for text in ("", "a", None)]
    with looking_up():
        kept = Kept(spark, tmp_path, schema, combined=False)
        for session in (spark, in_process, spark):
            kept.begin(restarts=True, session=session)
            kept.add(rows)
            kept.look_up(rows[:2], ["a", "b"])
            kept.look_up([(moments[0], None)], ["a"])
            kept.look_up([(None, "a")], ["b"])
            kept.purge([Punctuation.of(schema, {"a": Constant(moments[len(kept.rows) % 4])})], taking=True)
            kept.begin(restarts=True)
            kept.purge([Punctuation.of(schema, {"b": Constant("a")})], taking=False)
            kept.remove(rows[-1:], ["a", "b"])
            kept.require_same()


@pytest.mark.spark
def test_rows_of_spark_and_of_the_driver_become_one_segment(spark: SparkSession, tmp_path: Path) -> None:
    running = Running(spark, tmp_path, Distinct(), Schema.parse("a INT"))
    with looking_up():
        came = [running.slice(([(a,) for a in slice_], [])) for slice_ in ((1, 2), (2, 3), (9, 9), (1, 4), (4, 5))]
    assert [sorted(done.tuples) for done in came] == [[(1,), (2,)], [(3,)], [(9,)], [(4,)], [(5,)]]
    assert [done.kept for done in came] == [2, 3, 4, 5, 6]


class Counting:
    """The kept rows that each slice reads and rewrites, and those of the largest table that an engine is given."""

    def __init__(self) -> None:
        self.taken = self.rewritten = self.whole = 0

    def patches(self) -> ExitStack:
        """Counts until the end of the context."""
        take, table, together = Block.take, SegmentStore.table, SegmentStore.together

        def taking(block: Block, places: Any) -> Any:
            self.taken += len(places)
            return take(block, places)

        def rewriting(store: SegmentStore, segment: Segment) -> Any:
            self.rewritten += segment.rows
            return table(store, segment)

        def reading(store: SegmentStore, segments: Sequence[Segment]) -> Any:
            self.whole = max(self.whole, sum(segment.rows for segment in segments))
            return together(store, segments)

        stack = ExitStack()
        for of, name, new in (
            (Block, "take", taking),
            (SegmentStore, "table", rewriting),
            (SegmentStore, "together", reading),
        ):
            stack.enter_context(patch.object(of, name, new))
        return stack


EACH, KEPT = 100, 6000


@pytest.mark.parametrize("name", ["distinct", "group", "join"])
def test_a_slice_reads_the_rows_of_its_keys_and_rewrites_few(
    in_process: InProcessSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(tuple_log, "SMALL", 1000)
    monkeypatch.setattr(log_parts, "MERGED", 2000)
    made, number = OPERATORS[name]
    inputs = [Schema.parse("a BIGINT"), Schema.parse("a2 BIGINT")][:number]
    running = Running(in_process, tmp_path, made(inputs[0]), *inputs)
    drawn = random.Random(1)

    def slice_(rows: int, closed: Sequence[int]) -> list[int]:
        keys = [drawn.randrange(1 << 62) for _ in range(rows)]
        last = [Punctuation.of(inputs[-1], {inputs[-1].names[0]: List(tuple(closed))})] if closed else []
        others = [] if number == 1 else [[(key,) for key in keys[: EACH // 10]]]
        running.slice(([(key,) for key in keys], [] if others else last), *((rows, last) for rows in others))
        return keys

    known = [key for _ in range(2) for key in slice_(KEPT // 2, [])]
    rewritten = []
    for at in range(40):
        counting = Counting()
        with counting.patches():
            slice_(EACH, sorted(known[at * 20 : at * 20 + 10]))
        assert counting.taken <= EACH, "the rows that are closed, the partners, and hardly another"
        assert counting.whole <= tuple_log.SMALL, "no engine reads all rows, unless they are few"
        assert counting.rewritten <= log_parts.MERGED
        rewritten.append(counting.rewritten)
    # Sizes grow fourfold from 100 to 2,000: a row is rewritten three times, and what was removed twice at the most.
    assert sum(rewritten) <= 3 * 40 * EACH + 2 * 40 * 10
