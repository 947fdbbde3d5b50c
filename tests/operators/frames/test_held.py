"""Frames that the driver computes itself: the same rows and types as Spark's, and no job."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.oracle import set_match
from tests.samples.strategies import SMALL, small_punctuations, small_schemas
from xmlstream.operators.frames import spark_engine
from xmlstream.operators.frames.expression import COUNT, Column, Copy, Equal, Passed, Present, all_of
from xmlstream.operators.frames.frame import Frame, JoinKind
from xmlstream.operators.frames.held import computed_rows, filter_of
from xmlstream.operators.frames.matching import matching, not_matching
from xmlstream.operators.frames.spark_engine import SparkEngine
from xmlstream.operators.in_process import engine
from xmlstream.operators.in_process.engine import InProcessEngine
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.pattern import Constant, List, Range
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import arrow_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DUCKDB = InProcessEngine()

COMPARED = [small for small in SMALL if small.domain.type not in ("DOUBLE", "DECIMAL(2,1)")]


@given(st.data())
def test_a_filter_finds_what_punctuations_match(data: st.DataObject) -> None:
    space = data.draw(small_schemas(2, COMPARED))
    ps = data.draw(st.lists(small_punctuations(space), min_size=1, max_size=4))
    negated = data.draw(st.booleans())
    columns = zip(*space.universe, strict=True)
    arrays = [pa.array(column, arrow_type(a.domain)) for column, a in zip(columns, space.schema, strict=True)]
    test = filter_of(ps, negated=negated)
    assert test is not None
    found = test(pa.Table.from_arrays(arrays, list(space.schema.names))).to_pylist()
    assert found == [set_match(t, ps) != negated for t in space.universe]


def test_what_restricts_nothing_matches_every_row() -> None:
    test = filter_of([Punctuation.all(Schema(()))], negated=False)
    assert test is not None
    assert test(pa.table({"n": [1, None]})).to_pylist() == [True, True]


def test_numbers_whose_equality_is_not_arrows_are_sparks() -> None:
    schema = Schema.of(x="DOUBLE", d="DECIMAL(3,1)", n="INT")
    assert filter_of([Punctuation.at(schema, {0: Constant(0.0)})], negated=False) is None
    assert filter_of([Punctuation.at(schema, {1: Range(Decimal(1))})], negated=False) is None
    assert filter_of([Punctuation.at(schema, {2: Constant(1)})], negated=False) is not None


KEYS = st.lists(st.tuples(st.none() | st.integers(0, 2), st.none() | st.sampled_from("aé")), max_size=5)


@given(
    left=KEYS, right=KEYS, how=st.sampled_from(get_args(JoinKind)),
    nulls=st.lists(st.booleans(), min_size=1, max_size=2), turned=st.booleans(),
)  # fmt: skip
def test_few_rows_are_joined_as_duckdb_joins_them(
    left: list[tuple[int | None, str | None]],
    right: list[tuple[int | None, str | None]],
    how: JoinKind,
    nulls: list[bool],
    turned: bool,
) -> None:
    kinds = {"n": pa.int32(), "s": pa.string()}
    rows = [
        pa.table({name: pa.array([row[i] for row in of], kinds[name]) for i, name in enumerate(kinds)})
        for of in (left, right)
    ]
    pairs = [(name, f"other_{name}") for name, _ in zip("ns", nulls, strict=False)]
    on = all_of(*(Equal(*(pair[::-1] if turned else pair), nulls=of) for pair, of in zip(pairs, nulls, strict=True)))
    here, theirs = rows[0], DUCKDB.rows(rows[1].rename_columns(["other_n", "other_s"]), "other_n INT, other_s STRING")
    joined = DUCKDB.rows(here, "n INT, s STRING").join(theirs, on, how)
    found = computed_rows(joined)
    assert found is not None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engine, "computed_rows", lambda _: None)
        assert said(joined.to_arrow()) == said(found)


DDL = "`a` INT, `B c` STRING, `d` DATE, `t` TIMESTAMP, `n` TIMESTAMP_NTZ, `x` DOUBLE, `m` DECIMAL(5,2), `y` BOOLEAN"
NOON = datetime(2026, 1, 1, 12)
TABLE = pa.table(
    {
        "a": pa.array([1, 2, None, 2], pa.int32()),
        "B c": pa.array(["x", "é", None, "é"]),
        "d": pa.array([date(1, 1, 1), None, date(9999, 12, 31), None]),
        "t": pa.array([NOON.replace(tzinfo=UTC), None, datetime(1, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        "n": pa.array([NOON, None, datetime.min, None], pa.timestamp("us")),
        "x": pa.array([0.0, -0.0, float("nan"), -0.0]),
        "m": pa.array([Decimal("1.50"), None, Decimal("-0.01"), None], pa.decimal128(5, 2)),
        "y": pa.array([True, None, False, None]),
    }
)
SCHEMA = Schema.of(**{"a": "INT", "B c": "STRING", "t": "TIMESTAMP", "n": "TIMESTAMP_NTZ"})
PS = [Punctuation.at(SCHEMA, {0: Range(None, 1, high_closed=True)}), Punctuation.at(SCHEMA, {1: List(("y", None))})]
MANY = [
    Punctuation.at(SCHEMA, {0: List(tuple(range(2, 100)))}),
    Punctuation.at(SCHEMA, {2: Range(NOON.replace(tzinfo=UTC), None, low_closed=True)}),
]
PAIRS = [Punctuation.at(SCHEMA, {0: Constant(n), 1: Constant("é")}) for n in range(2, 300)]
"""More than are compared one by one: few rows are joined with them instead."""


def others(frame: Frame) -> Frame:
    """The same rows, with columns of other names."""
    return frame.select(named("b", "a"), named("s", "B c"), named("other_d", "d"), named("u", "t"))


def named(name: str, of: str) -> Column:
    """A column under another name."""
    return Column(name, Copy(of))


def number(name: str, value: int) -> Column:
    """A column with a value of the slice."""
    return Column(name, Passed(value, Domain("BIGINT")))


HERE: dict[str, Callable[[Frame], Frame]] = {
    "copies": lambda f: f.select(named("z", "A"), "B c", named("B`d", "t")),
    "all, and a number": lambda f: f.with_columns(dict([number("n2", -7)])),
    "without columns": lambda f: f.drop("x", "a"),
    "not null": lambda f: f.where(all_of(Present("a"), Present("B C"))),
    "matching": lambda f: matching(f, PS),
    "not matching": lambda f: not_matching(f, PS),
    "matching many": lambda f: matching(f, MANY),
    "not matching many": lambda f: not_matching(f, MANY),
    "matching many pairs": lambda f: matching(f, PAIRS),
    "not matching many pairs": lambda f: not_matching(f, PAIRS),
    "a union": lambda f: f.union(f.select(*f.columns)),
    "a union by name": lambda f: f.with_columns(dict([number("k", 1)])).union_by_name(
        f.with_columns(dict([number("k", 2)]))
    ),
    "distinct": lambda f: f.drop("x", "m").distinct(),
    "limited": lambda f: f.limit(9),
    "observed": lambda f: f.observed({"tuples": COUNT})[0],
    "joined": lambda f: f.join(others(f), all_of(Equal("a", "b"), Equal("other_d", "d", nulls=True))),
    "joined, each row": lambda f: f.select("a").join(
        f.select(named("b c", "a")), Equal("b c", "a", nulls=True), "left"
    ),
    "with a partner": lambda f: f.join(others(f), Equal("b", "a"), "left_semi"),
    "without a partner": lambda f: f.join(others(f), Equal("a", "b", nulls=True), "left_anti"),
    "partners of moments": lambda f: f.select("t").join(
        f.where(Present("a")).select(named("u", "t")), Equal("t", "u", nulls=True), "left"
    ),
}

SPARKS: dict[str, Callable[[Frame], Frame]] = {
    "distinct zeros": lambda f: f.select("x").distinct(),
    "computed": lambda f: f.select(Column("b", "a + 1")),
    "a literal": lambda f: f.select(Column("a", "true")),
    "another condition": lambda f: f.where("a > 1"),
    "a union of different columns": lambda f: f.select("a").union_by_name(f.select("a", "d")),
    "a join on zeros": lambda f: f.join(f.select(named("y", "x")), Equal("x", "y")),
    "a join of different types": lambda f: f.select("a").join(f.select("d"), Equal("a", "d")),
    "a join on more than equal columns": lambda f: f.join(f.select(named("b", "a")), all_of(Equal("a", "b"), "a > b")),
    "two columns of a name": lambda f: f.select("a", named("A", "x")),
    "groups": lambda f: f.group_by(["a"], {"n": COUNT}),
}


def leaves(spark: SparkSession, tmp_path: Path) -> dict[str, Frame]:
    sparks = SparkEngine(spark)
    pq.write_table(TABLE, tmp_path / "some.parquet", store_schema=False)
    return {"rows": sparks.rows(TABLE, DDL), "parquet": sparks.parquet(DDL, str(tmp_path / "some.parquet"), few=True)}


def said(table: pa.Table) -> tuple[list[tuple[str, pa.DataType]], list[str]]:
    return [(field.name, field.type) for field in table.schema], sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("what", HERE)
def test_what_is_computed_here_is_as_spark_computes_it(
    what: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for leaf in leaves(spark, tmp_path).values():
        frame = HERE[what](leaf)
        assert computed_rows(frame) is not None
        scheduler = spark._jsc.sc().dagScheduler()
        jobs = scheduler.nextJobId()
        here, types, count = said(frame.to_arrow()), json.loads(frame.struct())["fields"], frame.count()
        assert scheduler.nextJobId() == jobs
        with monkeypatch.context() as patched:
            patched.setattr(spark_engine, "computed_rows", lambda _: None)
            patched.setattr(spark_engine, "fields_of_struct", lambda _: None)
            assert said(frame.to_arrow()) == here
            assert frame.count() == count
            sparks = json.loads(frame.struct())["fields"]
        assert [(field["name"], field["type"]) for field in types] == [(f["name"], f["type"]) for f in sparks]
        assert all(field["nullable"] >= of_spark["nullable"] for field, of_spark in zip(types, sparks, strict=True))


@pytest.mark.parametrize("what", SPARKS)
def test_all_else_is_left_to_spark(what: str, spark: SparkSession, tmp_path: Path) -> None:
    for leaf in leaves(spark, tmp_path).values():
        assert computed_rows(SPARKS[what](leaf)) is None


def test_few_rows_that_spark_joins_with_others_come_from_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    for leaf in leaves(spark, tmp_path).values():
        few, tuples = matching(leaf, PS).observed({"tuples": COUNT})
        joined = few.select(named("b", "a")).join(leaf, Equal("b", "a"), small="both")
        assert said(joined.select("b").to_arrow())[1] == ["{'b': 1}"]
        assert tuples() == {"tuples": 2}
