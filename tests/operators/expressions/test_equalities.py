"""Equalities of a condition: the parts of a condition select what the condition selects, whatever is unknown."""

from __future__ import annotations

from functools import cache
from itertools import product

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.nights import AT_NIGHT
from xmlstream.operators.expressions.dialect import expression, render
from xmlstream.operators.expressions.equalities import plain_conjuncts
from xmlstream.punct_ns.schema import Schema

SCHEMA = Schema.parse("a INT NOT NULL, b INT, c INT")
ROWS = list(product((1, 2), (1, 2, None), (1, 2, None)))
ATOMS = (
    "a = b",
    "b = a",
    "a <=> b",
    "NOT (a <> b)",
    "b = c",
    "c > 1",
    "b <= c",
    "c IN (1)",
    "a BETWEEN b AND b",
    "b <> c",
)

CONDITIONS = st.recursive(
    st.sampled_from(ATOMS),
    lambda below: st.one_of(
        st.builds("({}) AND ({})".format, below, below),
        st.builds("({}) OR ({})".format, below, below),
        st.builds("NOT ({})".format, below),
    ),
    max_leaves=9,
)


@cache
def table() -> duckdb.DuckDBPyConnection:
    """A database with the rows."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (a INT, b INT, c INT)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?)", ROWS)
    return connection


def selected(conditions: list[str]) -> list[tuple[int | None, ...]]:
    """The rows for which all conditions are true."""
    where = " AND ".join(f"({condition})" for condition in conditions).replace("<=>", "IS NOT DISTINCT FROM")
    return table().execute(f"SELECT * FROM t WHERE {where} ORDER BY ALL".replace("`", '"')).fetchall()


@settings(max_examples=60 if not AT_NIGHT else 5_000, deadline=None)
@given(condition=CONDITIONS)
def test_the_parts_of_a_condition_select_what_it_selects(condition: str) -> None:
    parts = [render(part) for part in plain_conjuncts([expression(condition)], SCHEMA)]
    assert selected(parts) == selected([condition])


@pytest.mark.parametrize(
    ("condition", "parts"),
    [
        ("(a = b AND c > 1) OR (b = a AND c < 1)", ["`a` = `b`", "`c` > 1 OR `c` < 1"]),
        ("(a <=> b AND c > 1 AND b > 1) OR (b = a AND b > 1)", ["`a` = `b`", "`b` > 1"]),
        ("(a = b OR c = 1) AND (a = b OR c = 2)", ["`a` = `b` OR `c` = 1", "`a` = `b` OR `c` = 2"]),
        ("a = b OR b = c", ["`a` = `b` OR `b` = `c`"]),
        (
            "((a = b AND c = 1) OR (a = b AND c = 2)) OR a = b AND c = 3",
            ["`a` = `b`", "(`c` = 1 OR `c` = 2) OR `c` = 3"],
        ),
    ],
)
def test_what_all_alternatives_have_stands_beside_them(condition: str, parts: list[str]) -> None:
    assert [render(part) for part in plain_conjuncts([expression(condition)], SCHEMA)] == parts


def test_many_alternatives_without_a_common_part_are_looked_at_once() -> None:
    condition = " OR ".join(f"(a = {number} AND b = {number})" for number in range(300))
    (part,) = plain_conjuncts([expression(condition)], SCHEMA)
    assert render(part).count(" OR ") == 299
