"""Columns, conditions and values of frames: what is plain is printed as Spark reads it, and computed as it is meant."""

from __future__ import annotations

import pyarrow as pa
import pytest

from xmlstream.operators.frames.expression import (
    Column,
    Copy,
    Equal,
    Literal,
    Order,
    Passed,
    Present,
    all_of,
    bigint,
    spark_sql,
    sql,
)
from xmlstream.operators.frames.frame import Frame
from xmlstream.operators.in_process.engine import InProcessEngine
from xmlstream.punct_ns.domain import Domain

DUCKDB = InProcessEngine()


@pytest.fixture
def frame() -> Frame:
    return DUCKDB.rows(pa.table({"a": [1, None], "b`c": ["x", "y"]}), "a BIGINT, `b``c` STRING")


def test_a_name_is_quoted_and_a_value_written_by_its_type() -> None:
    equal = Equal("a", "b`c", nulls=True)
    whole = all_of(
        Present("a"), equal, sql("d < ", Passed(7, Domain("INT"), "d"), " OR e = ", Literal("it's", Domain("STRING")))
    )
    assert spark_sql(whole) == r"`a` IS NOT NULL AND `a` <=> `b``c` AND (d < CAST('7' AS INT) OR e = 'it\'s')"
    assert spark_sql(whole, lambda value: f"?{value.value}").endswith("(d < ?7 OR e = ?it's)")


def test_columns_are_added_behind_the_others_or_take_their_places(frame: Frame) -> None:
    more = frame.with_columns({"a": "a + 1", "n": bigint(7)})
    assert more.columns == ("a", "b`c", "n")
    assert more.to_arrow().to_pylist() == [{"a": 2, "b`c": "x", "n": 7}, {"a": None, "b`c": "y", "n": 7}]
    behind = frame.with_columns({"m": Copy("A"), "n": "a + 1"})
    assert behind.limit(1, Order("a", descending=True, nulls_first=False)).to_arrow().to_pylist() == [
        {"a": 1, "b`c": "x", "m": 1, "n": 2}
    ]


def test_a_text_is_not_taken_for_a_column(frame: Frame) -> None:
    with pytest.raises(ValueError, match="there is no column a AS b"):
        frame.select("a AS b")
    with pytest.raises(ValueError, match="there is no column d"):
        frame.select(Column("e", Copy("d")))


def test_rows_are_chosen_here_or_by_the_engine(frame: Frame) -> None:
    def never() -> Frame:
        raise AssertionError

    first = frame.chosen(lambda table: table.slice(0, 1), never)
    assert first.to_arrow().to_pylist() == [{"a": 1, "b`c": "x"}]
    assert frame.chosen(lambda _: None, lambda: frame.where("a IS NULL")).select("b`c").to_arrow().to_pylist() == [
        {"b`c": "y"}
    ]
    computed = frame.with_column("a", "a + 1")
    assert (
        computed.chosen(lambda _: pytest.fail("the driver has no rows"), lambda: computed.where("a = 2")).count() == 1
    )
