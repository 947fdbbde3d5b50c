"""Expressions of frames: Spark SQL, and beside it what an engine need not read: columns, values, and plain tests.

An expression is a text in Spark's dialect, or one of the forms below. Values stand between texts as values (`sql`), so
that an engine prints them as it takes them; and an engine that computes few rows by itself knows the plain forms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import starmap
from typing import NamedTuple, TypeAlias

from xmlstream.dataclasses import dataclass
from xmlstream.operators.expressions.dialect import literal
from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.slices import quoted


@dataclass(frozen=True, slots=True)
class Copy:
    """A column of the input, as it is."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A value of a domain; for Spark it is part of the text, and of the code that is generated for it."""

    value: Value
    domain: Domain


@dataclass(frozen=True, slots=True)
class Passed:
    """A value that Spark is given as data, so that no slice with another value compiles anew.

    A column `beside` it makes it one of the rows that it is compared with, whose tests may be put in another order.
    """

    value: Value
    domain: Domain
    beside: str | None = None


@dataclass(frozen=True, slots=True)
class Present:
    """Whether a column is not null."""

    name: str


@dataclass(frozen=True, slots=True)
class Equal:
    """Whether two columns are equal; with `nulls`, null equals null, and otherwise nothing."""

    one: str
    other: str
    nulls: bool = False


@dataclass(frozen=True, slots=True)
class All:
    """Whether all conditions are true."""

    conditions: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Sql:
    """Spark SQL in pieces, in order, with values between them."""

    pieces: tuple[Expression, ...]


Expression: TypeAlias = str | Sql | Copy | Literal | Passed | Present | Equal | All


class Column(NamedTuple):
    """A column of the output, and its expression."""

    name: str
    expression: Expression


class Order(NamedTuple):
    """A column to order by."""

    name: str
    descending: bool = False
    nulls_first: bool = True

    @property
    def direction(self) -> str:
        """What follows the column in ORDER BY."""
        return f"{'DESC' if self.descending else 'ASC'} NULLS {'FIRST' if self.nulls_first else 'LAST'}"

    @property
    def text(self) -> str:
        """The item of ORDER BY.

        >>> Order("hour").text, Order("min", descending=True, nulls_first=False).text
        ('`hour` ASC NULLS FIRST', '`min` DESC NULLS LAST')
        """
        return f"{quoted(self.name)} {self.direction}"


BIGINT = Domain("BIGINT")

COUNT = "count(1)"
"""The aggregate that counts the rows."""


def bigint(value: int) -> Passed:
    """A BIGINT as data."""
    return Passed(value, BIGINT)


def sql(*pieces: Expression) -> Sql:
    """Spark SQL in pieces.

    >>> spark_sql(sql("a < ", Literal(7, Domain("INT")), " OR ", Present("b")))
    "a < CAST('7' AS INT) OR `b` IS NOT NULL"
    """
    return Sql(pieces)


def all_of(*conditions: Expression) -> Expression:
    """Whether all conditions are true; no condition is true.

    >>> spark_sql(all_of(Equal("a", "b"), "c OR d")), spark_sql(all_of("c OR d")), spark_sql(all_of())
    ('`a` = `b` AND (c OR d)', 'c OR d', 'true')
    """
    return conditions[0] if len(conditions) == 1 else All(conditions) if conditions else "true"


def conditions_of(condition: Expression) -> tuple[Expression, ...]:
    """The conditions that must all be true."""
    return condition.conditions if isinstance(condition, All) else (condition,)


def as_columns(expressions: Mapping[str, Expression]) -> tuple[Column, ...]:
    """The columns of these names with these expressions."""
    return tuple(starmap(Column, expressions.items()))


def spark_sql(expression: Expression, written: Callable[[Literal | Passed], str] | None = None) -> str:
    """The expression as Spark SQL; values as `written`, by default as literals."""
    match expression:
        case str():
            return expression
        case Copy(name):
            return quoted(name)
        case Literal() | Passed():
            return literal(expression.value, expression.domain) if written is None else written(expression)
        case Present(name):
            return f"{quoted(name)} IS NOT NULL"
        case Equal(one, other, nulls):
            return f"{quoted(one)} {'<=>' if nulls else '='} {quoted(other)}"
        case All(conditions):
            return " AND ".join(
                f"({spark_sql(each, written)})" if isinstance(each, str | Sql | All) else spark_sql(each, written)
                for each in conditions
            )
        case Sql(pieces):
            return "".join([piece if isinstance(piece, str) else spark_sql(piece, written) for piece in pieces])
