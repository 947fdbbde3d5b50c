"""How an aggregate is kept: as partial aggregates where they merge without loss, else as the tuples themselves.

The value, type and overflow are those of Spark's aggregate over the whole group. count, sum, min, max and avg of
anything but decimals decompose; whatever else there is, and every DISTINCT, is computed by Spark over the group's
kept tuples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import sqlglot
from sqlglot import exp

from punct_ns.schema import Attribute
from punct_ns.slices import quoted


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of a group: Spark SQL, one aggregate function over the input's attributes."""

    attribute: Attribute
    expression: str


@dataclass(frozen=True, slots=True)
class Partial:
    """An aggregate as columns that merge: `first` makes them from tuples, `merge` from themselves, `last` the value."""

    first: tuple[str, ...]
    merge: tuple[str, ...]
    last: str


@lru_cache
def partial(aggregate: Aggregate, number: int) -> Partial | None:
    """The aggregate's decomposition, its columns named after `number`; None where it has none.

    >>> from punct_ns.domain import Domain
    >>> partial(Aggregate(Attribute("n", Domain("BIGINT")), "count(*)"), 0).last
    'coalesce(_a0, 0L)'
    """
    call, where = _parsed(aggregate.expression)
    of, first, column = call.this, f"{aggregate.expression} AS _a{number}", f"_a{number}"
    if isinstance(of, exp.Distinct):
        return None
    match call:
        case exp.Count():
            return Partial((first,), (f"sum({column}) AS {column}",), f"coalesce({column}, 0L)")
        case exp.Sum():
            merged = f"CAST(sum({column}) AS {aggregate.attribute.domain.type}) AS {column}"
            return Partial((first,), (merged,), column)
        case exp.Min() | exp.Max():
            return Partial((first,), (f"{call.key}({column}) AS {column}",), column)
        case exp.Avg() if aggregate.attribute.domain.type == "DOUBLE":
            argument, tally = of.sql("spark"), f"_n{number}"
            firsts = (
                f"sum(CAST({argument} AS DOUBLE)){where} AS {column}",
                f"count({argument}){where} AS {tally}",
            )
            merges = (f"sum({column}) AS {column}", f"sum({tally}) AS {tally}")
            return Partial(firsts, merges, f"if({tally} = 0, NULL, {column} / {tally})")
    return None


@lru_cache
def references(aggregates: tuple[Aggregate, ...]) -> tuple[str, ...]:
    """The attributes that the aggregates are computed from, in order, each once."""
    names: dict[str, str] = {}
    for aggregate in aggregates:
        for column in sqlglot.parse_one(aggregate.expression, dialect="spark").find_all(exp.Column):
            names.setdefault(column.name.lower(), column.name)
    return tuple(names.values())


def ignores_duplicates(aggregate: Aggregate) -> bool:
    """Whether a tuple that comes twice counts once, so that one of them need not be kept."""
    call, _ = _parsed(aggregate.expression)
    return isinstance(call.this, exp.Distinct) or isinstance(call, exp.Min | exp.Max)


@lru_cache
def _parsed(expression: str) -> tuple[exp.Expr, str]:
    """The aggregate call and the SQL of its FILTER clause."""
    tree = sqlglot.parse_one(expression, dialect="spark")
    if isinstance(tree, exp.Filter):
        return tree.this, f" FILTER ({tree.expression.sql('spark')})"
    return tree, ""


def column_list(names: Sequence[str]) -> list[str]:
    """Attribute names as Spark SQL's identifiers."""
    return [quoted(name) for name in names]
