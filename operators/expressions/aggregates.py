"""Aggregates: their decomposition into partial aggregates that merge without loss; functions over rows (SQL's OVER).

The value, type and overflow are those of Spark's aggregate over the whole group. Counts, sums, extremes, what joins
conditions or bits, and avg of anything but decimals decompose, with DISTINCT only where duplicates do not matter; all
other aggregates are computed over the group's kept tuples.
A function over rows declares which rows it sees, and how it grows from one row to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from xmlstream.operators.expressions.dialect import attributes_in, expression, render
from xmlstream.operators.expressions.type_rules import kind
from xmlstream.punct_ns.numeric_type import FloatType
from xmlstream.punct_ns.schema import Attribute
from xmlstream.punct_ns.slices import own
from xmlstream.punct_ns.sql_type import StringType


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of a group: Spark SQL, one aggregate function over the input's attributes."""

    attribute: Attribute
    expression: str


@dataclass(frozen=True, slots=True)
class Partial:
    """An aggregate as columns that merge: `first` computes them from tuples, `merge` merges them, `last` is the value.

    Both map the names of the columns to aggregates in Spark SQL.
    """

    first: Mapping[str, str]
    merge: Mapping[str, str]
    last: str


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of an aggregate: function in lower case, arguments, whether DISTINCT, and its FILTER's condition."""

    function: str
    arguments: tuple[exp.Expr, ...]
    distinct: bool
    where: exp.Expr | None


_IDEMPOTENT = ("min", "max", "bool_and", "every", "bool_or", "some", "bit_and", "bit_or")
"""Aggregates whose value duplicates do not change; each merges its own values."""


@lru_cache
def partial(aggregate: Aggregate, number: int) -> Partial | None:
    """The aggregate's decomposition, with columns named after `number`; None if it has none.

    >>> from xmlstream.punct_ns.domain import Domain
    >>> partial(Aggregate(Attribute("n", Domain("BIGINT")), "count(*)"), 0).last
    'coalesce(__xs_a0, 0L)'
    """
    parts = _parts(aggregate.expression)
    if parts.distinct and parts.function not in _IDEMPOTENT:
        return None
    column, tally = own(f"a{number}"), own(f"n{number}")
    first = {column: aggregate.expression}
    match parts.function:
        case "count" | "count_if" | "regr_count":
            return Partial(first, {column: f"sum({column})"}, f"coalesce({column}, 0L)")
        case "sum":
            return Partial(first, {column: f"CAST(sum({column}) AS {aggregate.attribute.domain.type})"}, column)
        case name if name in _IDEMPOTENT or name == "bit_xor":
            return Partial(first, {column: f"{name}({column})"}, column)
        case "avg" | "mean" if kind(aggregate.attribute.domain.sql) == "double":
            argument = render(parts.arguments[0])
            where = "" if parts.where is None else f" FILTER (WHERE {render(parts.where)})"
            firsts = {column: f"sum(CAST({argument} AS DOUBLE)){where}", tally: f"count({argument}){where}"}
            merges = {name: f"sum({name})" for name in firsts}
            return Partial(firsts, merges, f"if({tally} = 0, NULL, {column} / {tally})")
    return None


@lru_cache
def attributes_of(aggregates: tuple[Aggregate, ...]) -> tuple[str, ...]:
    """The attributes in the aggregates' expressions, in order, each once."""
    names: dict[str, str] = {}
    for aggregate in aggregates:
        for name in attributes_in(aggregate.expression):
            names.setdefault(name.lower(), name)
    return tuple(names.values())


def operands(aggregate: Aggregate) -> tuple[exp.Expr, ...]:
    """The operands of an aggregate: its arguments, and its FILTER's condition."""
    parts = _parts(aggregate.expression)
    return parts.arguments if parts.where is None else (*parts.arguments, parts.where)


def ignores_duplicates(aggregate: Aggregate) -> bool:
    """Whether duplicates of a tuple do not change the value."""
    parts = _parts(aggregate.expression)
    return parts.distinct or parts.function in _IDEMPOTENT


@lru_cache
def _parts(text: str) -> _Parts:
    tree = expression(text)
    call, where = (tree.this, tree.expression.this) if isinstance(tree, exp.Filter) else (tree, None)
    arguments = call.expressions
    if distinct := len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        arguments = arguments[0].expressions
    return _Parts(str(call.this).lower(), tuple(arguments), distinct, where)


NUMBER = own("number")
"""BIGINT: the number of a tuple in its group, from 1 on."""

_BY_PLACE = ("first", "first_value", "last", "last_value", "nth_value")
"""Functions whose value is that of a row at a certain place."""


@dataclass(frozen=True, slots=True)
class Over:
    """One function over rows, and its frame: an aggregate, `lag(…)`, `lead(…)` or a rank.

    Attributes:
        attribute: The attribute in the output.
        expression: The function, as Spark SQL over the input's attributes.
        first: The frame begins this number of rows before the tuple, behind it if negative; None for the group's first.
        last: The frame ends this number of rows before the tuple, behind it if negative.
        peers: The frame ends with the last tuple that has the tuple's keys; only if it begins with the group's first.
        distance: Spark SQL: the frame begins with the first tuple whose key is at most this much before the tuple's,
            and ends with the tuple's peers; `first` is ignored.
    """

    attribute: Attribute
    expression: str
    first: int | None = None
    last: int = 0
    peers: bool = False
    distance: str | None = None

    @property
    def function(self) -> str:
        """The function's name."""
        return self.expression.partition("(")[0].strip().lower()

    @property
    def ahead(self) -> int:
        """The number of rows behind the tuple that the function sees."""
        return max(0, -self.last)

    @property
    def is_rank(self) -> bool:
        """Whether the numbers of rows alone determine the value."""
        return self.function in ("row_number", "rank", "dense_rank")

    @property
    def is_rolling(self) -> bool:
        """Whether it sees only the last rows: a number of them, or those within a distance."""
        return self.first is not None or self.distance is not None

    @property
    def grows(self) -> bool:
        """Whether its value over all rows so far follows from that at the row before; a type not known yet may do.

        >>> from xmlstream.punct_ns.domain import Domain
        >>> [Over(Attribute("a", Domain(t)), f"{f}(`v`)").grows for f, t in (("sum", "INT"), ("avg", "DECIMAL(9,2)"))]
        [True, False]
        """
        is_average = self.function in ("avg", "mean")
        is_double = isinstance(self.attribute.domain.sql, FloatType | StringType)
        grows = self.function in ("count", "count_if", "regr_count", "sum", "bit_xor", *_IDEMPOTENT, *_BY_PLACE)
        return self.is_rank or grows or (is_average and is_double)

    def merging(self, number: int) -> Partial | None:
        """The partial aggregates of a function over the group's rows so far; None if it has none."""
        if self.function in _BY_PLACE:
            return self._placed(own(f"a{number}"), own(f"n{number}"))
        return partial(Aggregate(self.attribute, self.expression), number)

    def _placed(self, column: str, place: str) -> Partial:
        """The value at the group's first, last or n-th row so far, and the row's number."""
        value, *others = (render(tree) for tree in expression(self.expression).expressions)
        number = f"nullif({NUMBER}, 0)"
        if self.function == "nth_value":
            number = f"IF({NUMBER} = {others[0]}, {number}, NULL)"
        elif others and others[0].lower() == "true":
            number = f"IF({value} IS NULL, NULL, {number})"
        found = "max" if self.function.startswith("last") else "min"
        first = {column: f"{found}_by({value}, {number})", place: f"{found}({number})"}
        return Partial(first, {column: f"{found}_by({column}, {place})", place: f"{found}({place})"}, column)

    def merged_over(self, number: int, rows: str) -> dict[str, str]:
        """For a function that grows: the columns of its partial aggregates, merged over rows.

        Args:
            number: The function's number, by which columns are named.
            rows: The text behind OVER.

        >>> from xmlstream.punct_ns.domain import Domain
        >>> Over(Attribute("a", Domain("BIGINT")), "sum(`v`)").merged_over(0, "ORDER BY `t`")
        {'__xs_a0': 'CAST(sum(`__xs_a0`) OVER (ORDER BY `t`) AS BIGINT)'}
        """
        return {name: _over(text, rows) for name, text in self.grown(number).merge.items()}

    def grown(self, number: int) -> Partial:
        """The partial aggregates of a function that grows."""
        merging = self.merging(number)
        assert merging is not None
        return merging

    @property
    def frame(self) -> str:
        """The frame as Spark SQL, to stand behind ORDER BY; empty for `lag` and `lead`."""
        if self.function in ("lag", "lead"):
            return ""
        if self.distance is not None:
            return f" RANGE BETWEEN {self.distance} PRECEDING AND CURRENT ROW"
        begin = "UNBOUNDED PRECEDING" if self.first is None else _end(self.first)
        return f" ROWS BETWEEN {begin} AND {_end(self.last)}"

    def __str__(self) -> str:
        if self.is_rank or self.function in ("lag", "lead"):
            return self.expression
        return f"{self.expression}{self.frame.replace(' ROWS', ' RANGE') if self.peers else self.frame}"


def _end(before: int) -> str:
    """An end of a frame, by its number of rows before the tuple."""
    return "CURRENT ROW" if before == 0 else f"{before} PRECEDING" if before > 0 else f"{-before} FOLLOWING"


def _over(merge: str, rows: str) -> str:
    """A merging expression with its one aggregate computed over rows."""
    tree = expression(merge)
    call = tree.find(exp.Anonymous)
    assert call is not None
    over = expression(f"{render(call)} OVER ({rows})")
    return render(over if call is tree else call.replace(over).root())
