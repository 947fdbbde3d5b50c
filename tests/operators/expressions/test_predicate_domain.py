"""Predicates by brute force: SQL's three-valued logic over all values of small domains."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import oracle
from tests.oracles.oracle import Tuple
from tests.samples.strategies import Small, SmallSchema, small_schemas, small_tuples
from xmlstream.operators.expressions.dialect import literal
from xmlstream.operators.expressions.predicate_domain import excluded
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Evaluated: TypeAlias = Callable[[Tuple], bool | None]
VALUES = Schema.parse("value INT, price DECIMAL(5,2), at TIMESTAMP, share DOUBLE, name STRING, flag BOOLEAN, day DATE")


def said(predicate: str, schema: Schema = VALUES) -> list[str]:
    return [str(p) for p in excluded(predicate, schema)]


def of(**patterns: str) -> str:
    return f"<{', '.join(patterns.get(name, '*') for name in VALUES.names)}>"


def test_the_example_of_the_specification() -> None:
    assert said("value > 250") == [of(value="(,250]"), of(value="null")]


def test_what_is_null_is_not_true() -> None:
    assert said("NOT (value BETWEEN 5 AND 6)") == [of(value="[5,6]"), of(value="null")]
    assert said("value IS NOT NULL") == [of(value="null")]
    assert said("value IS NULL") == [of(value="(,)")]
    assert said("value IN (1, NULL)") == [of(value="(,0]"), of(value="[2,)"), of(value="null")]
    assert said("value NOT IN (1, NULL)") == [of()]
    assert said("NOT (value <=> 3)") == [of(value="3")]
    assert said("value = NULL OR value > 7") == [of(value="(,7]"), of(value="null")]


def test_of_several_attributes_a_conjunction_is_not_true_where_either_is_not() -> None:
    assert said("value > 250 AND name = 'a'") == [
        *said("value > 250"),
        *[of(name=pattern) for pattern in ("(,a)", "(a,)", "null")],
    ]
    assert said("value > 250 OR name IS NULL") == [of(value="(,250]", name="(,)"), of(value="null", name="(,)")]


@pytest.mark.parametrize(
    "predicate",
    [
        "value + 1 > 5",
        "value > price",
        "value = '5'",
        "price > 1e0",
        "at > TIMESTAMP'2003-05-15 10:00:00'",
        "at > '2003-05-15T10:00:00Z'",
        "name > 5",
        "name LIKE 'a%'",
        "value IN (1, 1.00000000000000000001, 2e0)",
        "value IN (123456789012345678901234567890, 0.0000000001)",
        "value > TRY_CAST('5' AS INT)",
        "nobody > 5",
        "share.value > 5",
        "rand() > 0.5",
        "no SQL at all (",
        "true",
    ],
)
def test_nothing_is_said_of_what_is_not_understood(predicate: str) -> None:
    assert said(predicate) == []
    assert said(f"({predicate}) OR value < 3") == []


def test_never_true_is_everything() -> None:
    assert said("false") == said("value = NULL") == said("value < 3 AND value > 5 AND value IS NOT NULL") == [of()]


def test_constants_are_compared_as_spark_compares_them() -> None:
    assert said("value >= 17.5") == [of(value="(,17]"), of(value="null")]
    assert said("17 < value") == said("value > 17") == said("(value) > CAST('17' AS INT)")
    assert said("price <= -1.5") == [of(price="[-1.49,)"), of(price="null")]
    assert said("at < TIMESTAMP'2003-05-15 12:00:00+02:00'")[0] == of(at="[2003-05-15T10:00:00Z,)")
    assert said("day > '2003-05-15'")[0] == said("day > DATE'2003-05-15'")[0] == of(day="(,2003-05-15]")
    assert said("flag") == said("flag = true") == said("flag IS TRUE") == [of(flag="{false,null}")]
    assert said("NOT flag") == [of(flag="{true,null}")]
    assert said("share > 95") == [of(share="(,95.0]"), of(share="null")]


@st.composite
def comparisons(draw: st.DrawFn, space: SmallSchema) -> tuple[str, Evaluated]:
    """One attribute with constants, as SQL and as a function."""
    at = draw(st.integers(0, len(space.smalls) - 1))
    small: Small = space.smalls[at]
    name = f"`{space.schema[at].name}`"
    whole = [end for end in small.ends if small.domain.contains(end)]
    value = draw(st.sampled_from(whole))
    text = literal(value, small.domain)
    kind = draw(st.sampled_from(["<", "<=", ">", ">=", "=", "<>", "<=>", "IN", "NOT IN", "NULL", "NOT NULL", "TURNED"]))
    listed = draw(st.lists(st.sampled_from([*whole, None]), min_size=1, max_size=3))

    def three(test: Callable[[Any], bool]) -> Evaluated:
        return lambda t: None if t[at] is None else test(t[at])

    def among(t: Tuple) -> bool | None:
        if t[at] is None:
            return None
        return True if any(oracle.same(t[at], v) for v in listed) else None if None in listed else False

    in_text = ", ".join("NULL" if v is None else literal(v, small.domain) for v in listed)
    table: dict[str, tuple[str, Evaluated]] = {
        "<": (f"{name} < {text}", three(lambda v: oracle.before(v, value))),
        "<=": (f"{name} <= {text}", three(lambda v: not oracle.before(value, v))),
        ">": (f"{name} > {text}", three(lambda v: oracle.before(value, v))),
        ">=": (f"{name} >= {text}", three(lambda v: not oracle.before(v, value))),
        "=": (f"{name} = {text}", three(lambda v: oracle.same(v, value))),
        "<>": (f"{name} <> {text}", three(lambda v: not oracle.same(v, value))),
        "<=>": (f"{name} <=> {text}", lambda t: oracle.same(t[at], value)),
        "IN": (f"{name} IN ({in_text})", among),
        "NOT IN": (f"{name} NOT IN ({in_text})", lambda t: None if among(t) is None else not among(t)),
        "NULL": (f"{name} IS NULL", lambda t: t[at] is None),
        "NOT NULL": (f"{name} IS NOT NULL", lambda t: t[at] is not None),
        "TURNED": (f"{text} < {name}", three(lambda v: oracle.before(value, v))),
    }
    return table[kind]


def negated(one: tuple[str, Evaluated]) -> tuple[str, Evaluated]:
    return f"NOT ({one[0]})", lambda t: None if one[1](t) is None else not one[1](t)


def conjoined(pair: tuple[tuple[str, Evaluated], tuple[str, Evaluated]]) -> tuple[str, Evaluated]:
    (left, f), (right, g) = pair

    def both(t: Tuple) -> bool | None:
        found = {f(t), g(t)}
        return False if False in found else None if None in found else True

    return f"({left}) AND {right}", both


def disjoined(pair: tuple[tuple[str, Evaluated], tuple[str, Evaluated]]) -> tuple[str, Evaluated]:
    (left, f), (right, g) = pair

    def either(t: Tuple) -> bool | None:
        found = {f(t), g(t)}
        return True if True in found else None if None in found else False

    return f"({left} OR ({right}))", either


def predicates(space: SmallSchema) -> st.SearchStrategy[tuple[str, Evaluated]]:
    """Any predicate of the kinds that are understood."""
    return st.recursive(
        comparisons(space),
        lambda some: some.map(negated) | st.tuples(some, some).map(conjoined) | st.tuples(some, some).map(disjoined),
        max_leaves=5,
    )


@given(st.data())
def test_exactly_the_tuples_for_which_a_predicate_is_not_true_are_described(data: st.DataObject) -> None:
    space = data.draw(small_schemas())
    text, evaluated = data.draw(predicates(space))
    described = PunctuationSet(space.schema, excluded(text, space.schema))
    for t in [*space.universe[:200], *data.draw(st.lists(small_tuples(space), max_size=50))]:
        assert described.matches(t) == (evaluated(t) is not True), (text, t)


@pytest.mark.spark
def test_spark_selects_nothing_that_is_described(spark: SparkSession) -> None:
    rows = [
        f"({v}, CAST({p} AS DECIMAL(5,2)), TIMESTAMP'2003-05-15 10:00:00Z' + INTERVAL {h} HOURS, {s}, {n}, {f}, {d})"
        for v, p, h, s, n, f, d in [
            ("1", "-1.50", 0, "95D", "'a'", "true", "DATE'2003-05-15'"),
            ("17", "2.5", 1, "double('NaN')", "''", "false", "DATE'2003-05-16'"),
            ("18", "NULL", -1, "-0D", "'it''s'", "CAST(NULL AS BOOLEAN)", "CAST(NULL AS DATE)"),
            ("CAST(NULL AS INT)", "0", 2, "CAST(NULL AS DOUBLE)", "CAST(NULL AS STRING)", "true", "DATE'2003-05-14'"),
        ]
    ]
    predicates_ = [
        "value > 17", "value >= 17.5", "value < 17.5", "NOT value BETWEEN 5 AND 17", "value IN (1, 17.0)",
        "value NOT IN (1, NULL)", "value = 17e0", "value <=> 17 OR flag", "price <= -1.5", "price = 2.50",
        "price <> 0", "price > 2",
        "at < TIMESTAMP'2003-05-15 12:00:00+02:00'", "at >= TIMESTAMP'2003-05-15 10:00:00Z'", "share > 95",
        "share >= 95.0", "share = double('NaN')", "share < CAST('NaN' AS DOUBLE)", "share = 0", "share <> 0.1",
        "name > 'a'", "name = 'it''s'", "name <= ''", "flag", "NOT flag", "flag IS NOT FALSE", "flag IS NULL",
        "day > '2003-05-15'", "day IN ('2003-05-15', DATE'2003-05-14')", "NOT (day < DATE'2003-05-15' AND flag)",
    ]  # fmt: skip
    table = f"VALUES {', '.join(rows)} AS t({', '.join(VALUES.names)})"
    truths = ", ".join(f"({predicate}) AS `_{i}`" for i, predicate in enumerate(predicates_))
    fields = ", ".join(f"CAST({n} AS STRING) AS {n}" if n == "at" else n for n in VALUES.names)
    found = spark.sql(f"SELECT {fields}, {truths} FROM {table}").collect()
    assert len(found) == 4
    silent = []
    for i, predicate in enumerate(predicates_):
        described = PunctuationSet(VALUES, excluded(predicate, VALUES))
        silent += [] if described else [predicate]
        for row in found:
            t = tuple(
                None if row[a.name] is None else a.domain.read(row[a.name]) if a.name == "at" else row[a.name]
                for a in VALUES
            )
            assert described.matches(t) == (row[f"_{i}"] is not True) or predicate in silent, (predicate, t)
    assert silent == ["share = double('NaN')"]


ROUNDED = Schema.parse("j BIGINT, w DECIMAL(38,20), z DECIMAL(38,38)")


@pytest.mark.spark
def test_nothing_is_excluded_that_spark_selects_since_it_rounds_what_it_compares(spark: SparkSession) -> None:
    smallest = "0." + "0" * 37 + "4"
    table = f"""VALUES (0L, 17.000000000000000000004BD, {smallest}BD), (1L, -1BD, 0BD) AS v(j, w, z)"""
    rounded = [
        "j = 0.0000000000000000001", "j IN (0.0000000000000000001, 5)", "NOT j <> 0.0000000000000000001",
        "j <= -0.0000000000000000001", "w = CAST(17 AS BIGINT)", "w IN (CAST(17 AS BIGINT), 3)", "z = 0", "z <= 0",
        "z IN (0, 0.5)", "w = -(-17L)",
    ]  # fmt: skip
    exact = ["j = 0.000000000000000001", "w = 17", "z < 0.5", "j >= 9223372036854775807", "w > 0.5"]
    casts = ", ".join(f"CAST({a.name} AS {a.domain.type}) AS {a.name}" for a in ROUNDED)
    frame = spark.sql(f"SELECT {casts} FROM {table}")
    found = frame.selectExpr(
        *ROUNDED.names, *(f"{text} AS c{i}" for i, text in enumerate([*rounded, *exact]))
    ).collect()
    for i, text in enumerate([*rounded, *exact]):
        described = PunctuationSet(ROUNDED, excluded(text, ROUNDED))
        assert bool(described) == (text in exact), text
        assert not any(described.matches(tuple(row[:3])) and row[3 + i] is True for row in found), text
    # Without that care, these would have been called excluded.
    assert sum(row[3 + i] is True for row in found for i in range(len(rounded))) > 3
