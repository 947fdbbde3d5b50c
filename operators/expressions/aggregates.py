"""Aggregates: their decomposition into partial aggregates that merge without loss; functions over rows (SQL's OVER).

The value, type and overflow are those of Spark's aggregate over the whole group. How partial results merge is a column
of the table of aggregates; with DISTINCT they do only where duplicates do not matter, and an avg of decimals does not.
All others are computed over the group's kept tuples: the last digits of a deviation depend on how its tuples are cut.
A function over rows declares which rows it sees, and how it grows from one row to the next.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias

from sqlglot import exp

from xmlstream.dataclasses import dataclass
from xmlstream.operators.expressions.dialect import attributes_in, call_name, expression, render
from xmlstream.operators.expressions.operations.aggregate_functions import AGGREGATES
from xmlstream.operators.expressions.operations.part import divided, interval
from xmlstream.operators.expressions.operations.spark_type import NotProven
from xmlstream.operators.expressions.type_rules import numeric_literal
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.numeric_type import DecimalType, FloatType
from xmlstream.punct_ns.schema import Attribute
from xmlstream.punct_ns.slices import own
from xmlstream.punct_ns.sql_type import StringType
from xmlstream.punct_ns.temporal_type import DateType, TimestampType


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of a group: Spark SQL, one aggregate function over the input's attributes."""

    attribute: Attribute
    expression: str

    @property
    def computed(self) -> str:
        """The text that an engine computes: as written, but one value for `max_by` where rows have equal places.

        >>> from xmlstream.punct_ns.domain import Domain
        >>> Aggregate(Attribute("a", Domain("INT")), "max_by(v, t)").computed
        "max_by(`v`, IF(`t` IS NULL, NULL, named_struct('place', `t`, 'of', `v`)))"
        """
        parts = _parts(self.expression)
        if parts.function not in _EXTREMES:
            return self.expression
        value, place = map(render, parts.arguments)
        return f"{parts.function}({value}, {_settled(value, place)}){parts.filter}"


@dataclass(frozen=True, slots=True)
class Partial:
    """An aggregate as columns that merge: `first` computes them from tuples, `merge` merges them, `last` is the value.

    The first two map the names of the columns to aggregates in Spark SQL; the value may be a column alone.
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

    @property
    def filter(self) -> str:
        """FILTER as it stands behind the call; empty for none."""
        return "" if self.where is None else f" FILTER (WHERE {render(self.where)})"


_EXTREMES = {"max_by": "max", "min_by": "min"}
"""Aggregates of the value at the greatest or least place, and the aggregate of that place."""


_ADD, _STEP = re.compile(r"(\w+)_add(__xs\d+)"), re.compile(r"\w+__xs\d+")
"""Steps of an accumulator as aggregates, by their keys: what reads a checkpoint knows no function."""


@lru_cache(maxsize=4096)
def partial(aggregate: Aggregate, number: int) -> Partial | None:
    """The aggregate's decomposition, with columns named after `number`; None if it has none.

    >>> from xmlstream.punct_ns.domain import Domain
    >>> partial(Aggregate(Attribute("n", Domain("BIGINT")), "count(*)"), 0).last
    'coalesce(__xs_a0, 0L)'
    """
    parts, column, beside = _parts(aggregate.expression), own(f"a{number}"), own(f"n{number}")
    if (step := _ADD.fullmatch(parts.function)) is not None:
        merged = f"{step[1]}_merge{step[2]}(collect_list({column}))"
        return Partial({column: aggregate.expression}, {column: merged}, column)
    entry = AGGREGATES.get(parts.function)
    if entry is None or (parts.distinct and not entry.idempotent):
        return None
    first, where = {column: aggregate.computed}, parts.filter
    match entry.merges:
        case "counts":
            return Partial(first, {column: f"sum({column})"}, f"coalesce({column}, 0L)")
        case "sums":
            return Partial(first, {column: f"CAST(sum({column}) AS {aggregate.attribute.domain.type})"}, column)
        case "values":
            return Partial(first, {column: f"{parts.function}({column})"}, column)
        case "means" if aggregate.attribute.domain.sql.kind == "DOUBLE":
            argument = render(parts.arguments[0])
            firsts = {column: f"sum(CAST({argument} AS DOUBLE)){where}", beside: f"count({argument}){where}"}
            merges = {name: f"sum({name})" for name in firsts}
            return Partial(firsts, merges, f"if({beside} = 0, NULL, {column} / {beside})")
        case "firsts":
            end, place = _EXTREMES[parts.function], render(parts.arguments[1])
            merge = {column: f"{parts.function}({column}, {_settled(column, beside)})", beside: f"{end}({beside})"}
            return Partial({**first, beside: f"{end}({place}){where}"}, merge, column)
    return None


def called_above(text: str) -> tuple[str, str] | None:
    """The step of an accumulator that is called for an aggregate, and the aggregate; None for any other text."""
    function = _parts(text).function
    return (function, render(_parts(text).arguments[0])) if _STEP.fullmatch(function) else None


def _settled(value: str, place: str) -> str:
    """The place of a value, as Spark SQL: of equal places it is the greater one that has the greater value."""
    return f"IF({place} IS NULL, NULL, named_struct('place', {place}, 'of', {value}))"


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
    entry = AGGREGATES.get(parts.function)
    return parts.distinct or (entry is not None and entry.idempotent)


@lru_cache(maxsize=4096)
def _parts(text: str) -> _Parts:
    tree = expression(text)
    call, where = (tree.this, tree.expression.this) if isinstance(tree, exp.Filter) else (tree, None)
    arguments = call.expressions
    if isinstance(call, exp.Any):
        return _Parts("any", (call.this,), False, where)
    if distinct := len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        arguments = arguments[0].expressions
    return _Parts(str(call.this).lower(), tuple(arguments), distinct, where)


NUMBER = own("number")
"""BIGINT: the number of a tuple in its group, from 1 on."""

Width: TypeAlias = int | float | Decimal | tuple[int, int]
"""The length of a distance between values of a key: a number; of moments, calendar days and microseconds."""

_BY_PLACE = ("first", "first_value", "last", "last_value", "nth_value")
"""Functions whose value is that of a row at a certain place."""


TO_THE_END = -(1 << 40)
"""The `last` of a frame that ends with the last row of the group."""

_WITHOUT_FRAME = ("lag", "lead", "ntile", "percent_rank", "cume_dist")


@dataclass(frozen=True, slots=True)
class Over:
    """One function over rows, and its frame: an aggregate, `lag(…)`, `lead(…)` or a rank.

    Attributes:
        attribute: The attribute in the output.
        expression: The function, as Spark SQL over the input's attributes.
        first: The frame begins this number of rows before the tuple, behind it if negative; None for the group's first.
        last: The frame ends this number of rows before the tuple, behind it if negative; or it is `TO_THE_END`.
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
        entry = AGGREGATES.get(self.function)
        if entry is None or entry.merges in (None, "firsts"):
            return self.is_rank or self.function in _BY_PLACE
        return entry.merges != "means" or isinstance(self.attribute.domain.sql, FloatType | StringType)

    def merging(self, number: int) -> Partial | None:
        """The partial aggregates of a function over the group's rows so far; None if it has none."""
        if self.function in _BY_PLACE:
            return self._by_place(own(f"a{number}"), own(f"n{number}"))
        return partial(Aggregate(self.attribute, self.expression), number)

    def _by_place(self, column: str, place: str) -> Partial:
        """The value at the group's first, last or n-th row so far, and the row's number."""
        value, *others = (render(tree) for tree in expression(self.expression).expressions)
        number = f"nullif({NUMBER}, 0)"
        if self.function == "nth_value":
            number = f"IF({NUMBER} = {others[0]}, {number}, NULL)"
        elif others and others[0].lower() == "true":
            number = f"IF({value} IS NULL, NULL, {number})"
        by = "max_by" if self.function.startswith("last") else "min_by"
        first = {column: f"{by}({value}, {number})", place: f"{_EXTREMES[by]}({number})"}
        return Partial(first, {column: f"{by}({column}, {place})", place: f"{_EXTREMES[by]}({place})"}, column)

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

    def width(self, domain: Domain) -> Width | None:
        """The distance between values of a key; None if it is computed, or its length is not fixed, as of months.

        >>> from xmlstream.punct_ns.domain import Domain
        >>> def back(text): return Over(Attribute("n", Domain("BIGINT")), "count(*)", distance=text)
        >>> back("INTERVAL 90 MINUTES").width(Domain("TIMESTAMP")), back("INTERVAL 2 DAYS").width(Domain("DATE"))
        ((0, 5400000000), 2)
        >>> back("2.5").width(Domain("DECIMAL(9,2)")), back("a + 1").width(Domain("INT"))
        (Decimal('2.5'), None)
        """
        return None if self.distance is None else _width(self.distance, domain)

    @property
    def frame(self) -> str:
        """The frame as Spark SQL, to stand behind ORDER BY; empty for functions without one, such as `lag`."""
        if self.function in _WITHOUT_FRAME:
            return ""
        if self.distance is not None:
            return f" RANGE BETWEEN {self.distance} PRECEDING AND CURRENT ROW"
        begin = "UNBOUNDED PRECEDING" if self.first is None else _end(self.first)
        return f" ROWS BETWEEN {begin} AND {_end(self.last)}"

    def __str__(self) -> str:
        if self.is_rank or self.function in _WITHOUT_FRAME:
            return self.expression
        return f"{self.expression}{self.frame.replace(' ROWS', ' RANGE') if self.peers else self.frame}"


@lru_cache(maxsize=64)
def _width(distance: str, domain: Domain) -> Width | None:
    tree = expression(distance).unnest()
    if isinstance(tree, exp.Interval) or call_name(tree) == "make_dt_interval":
        try:
            days, microseconds = divided(interval(tree))
        except NotProven:
            return None
        return days if isinstance(domain.sql, DateType) else (days, microseconds)
    if (number := numeric_literal(tree)) is None or number.value < 0 or isinstance(domain.sql, TimestampType):
        return None
    return number.value if isinstance(domain.sql, DecimalType | FloatType) else math.ceil(number.value)


def _end(before: int) -> str:
    """An end of a frame, by its number of rows before the tuple."""
    if before == TO_THE_END:
        return "UNBOUNDED FOLLOWING"
    return "CURRENT ROW" if before == 0 else f"{before} PRECEDING" if before > 0 else f"{-before} FOLLOWING"


def _over(merge: str, rows: str) -> str:
    """A merging expression with its one aggregate computed over rows."""
    tree = expression(merge)
    call = tree.find(exp.Anonymous)
    assert call is not None
    over = expression(f"{render(call)} OVER ({rows})")
    return render(over if call is tree else call.replace(over).root())
