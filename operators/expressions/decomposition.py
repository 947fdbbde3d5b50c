"""Decomposition of aggregates into partial ones that merge without loss; of others the tuples themselves are kept.

The value, type and overflow are those of Spark's aggregate over the whole group. count, sum, min, max and avg of
anything but decimals decompose; whatever else there is, and every DISTINCT, is computed by Spark over the group's
kept tuples.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from operators.expressions.dialect import expression, render
from operators.expressions.references import attributes_in
from operators.expressions.types import kind
from punct_ns.schema import Attribute
from punct_ns.slices import own


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

    @property
    def columns(self) -> tuple[str, ...]:
        """What its columns are called."""
        return tuple(text.rpartition(" AS ")[2] for text in self.first)


@dataclass(frozen=True, slots=True)
class _Parts:
    """An aggregate taken apart: its function, in lower case, its arguments, if DISTINCT, and its FILTER's condition."""

    function: str
    arguments: tuple[exp.Expr, ...]
    distinct: bool
    where: exp.Expr | None


@lru_cache
def partial(aggregate: Aggregate, number: int) -> Partial | None:
    """The aggregate's decomposition, its columns named after `number`; None where it has none.

    >>> from punct_ns.domain import Domain
    >>> partial(Aggregate(Attribute("n", Domain("BIGINT")), "count(*)"), 0).last
    'coalesce(__xs_a0, 0L)'
    """
    parts = _parts(aggregate.expression)
    if parts.distinct:
        return None
    column, tally = own(f"a{number}"), own(f"n{number}")
    first = f"{aggregate.expression} AS {column}"
    match parts.function:
        case "count":
            return Partial((first,), (f"sum({column}) AS {column}",), f"coalesce({column}, 0L)")
        case "sum":
            merged = f"CAST(sum({column}) AS {aggregate.attribute.domain.type}) AS {column}"
            return Partial((first,), (merged,), column)
        case "min" | "max":
            return Partial((first,), (f"{parts.function}({column}) AS {column}",), column)
        case "avg" | "mean" if kind(aggregate.attribute.domain.sql) == "double":
            argument = render(parts.arguments[0])
            where = "" if parts.where is None else f" FILTER (WHERE {render(parts.where)})"
            firsts = (f"sum(CAST({argument} AS DOUBLE)){where} AS {column}", f"count({argument}){where} AS {tally}")
            merges = (f"sum({column}) AS {column}", f"sum({tally}) AS {tally}")
            return Partial(firsts, merges, f"if({tally} = 0, NULL, {column} / {tally})")
    return None


@lru_cache
def attributes_of(aggregates: tuple[Aggregate, ...]) -> tuple[str, ...]:
    """The attributes that the aggregates are computed from, in order, each once."""
    names: dict[str, str] = {}
    for aggregate in aggregates:
        for name in attributes_in(aggregate.expression):
            names.setdefault(name.lower(), name)
    return tuple(names.values())


def operands(aggregate: Aggregate) -> tuple[exp.Expr, ...]:
    """What an aggregate is computed from: its arguments, and its FILTER's condition."""
    parts = _parts(aggregate.expression)
    return parts.arguments if parts.where is None else (*parts.arguments, parts.where)


def ignores_duplicates(aggregate: Aggregate) -> bool:
    """Whether a tuple that comes twice counts once, so that one of them need not be kept."""
    parts = _parts(aggregate.expression)
    return parts.distinct or parts.function in ("min", "max")


@lru_cache
def _parts(text: str) -> _Parts:
    tree = expression(text)
    call, where = (tree.this, tree.expression.this) if isinstance(tree, exp.Filter) else (tree, None)
    arguments = call.expressions
    if distinct := len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        arguments = arguments[0].expressions
    return _Parts(str(call.this).lower(), tuple(arguments), distinct, where)
