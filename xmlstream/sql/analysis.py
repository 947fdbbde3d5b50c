"""The types of a query's expressions, asked of Spark's analyser: nothing here knows Spark's typing rules.

The analyser sees frames without tuples that have the attributes of a plan's nodes. No job is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol

from operators.expressions.dialect import render
from punct_ns.domain import Domain
from punct_ns.errors import UsageError
from punct_ns.numeric_type import NumericType
from punct_ns.schema import Attribute, Schema
from xmlstream.sql.analysis_errors import explained
from xmlstream.sql.catalogue import Catalogue
from xmlstream.sql.statements import Statement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField


class Analyst(Protocol):
    """Who knows the types of expressions over a schema."""

    def columns(self, schema: Schema, expressions: Sequence[str]) -> list[tuple[str, Domain]]:
        """The name that each expression has by itself, and its domain; all of them aggregates, or none."""

    def require_condition(self, schema: Schema, expression: str) -> None:
        """Makes sure that the expression is true, false or null of a tuple; QueryError if not."""

    def widened(self, schemas: Sequence[Schema]) -> list[str]:
        """The types that the attributes have in a UNION of these schemas; QueryError if there are none."""

    def common(self, one: str, other: str) -> str | None:
        """The type in which values of two types are compared, without a doubt; None where there is one."""


class NamesOnly:
    """Knows no types, and needs no Spark: enough to find misspelt names in a query before Spark is started."""

    def columns(self, schema: Schema, expressions: Sequence[str]) -> list[tuple[str, Domain]]:
        """Each by its own text; as if they were strings."""
        return [(expression, Domain("STRING")) for expression in expressions]

    def require_condition(self, schema: Schema, expression: str) -> None:
        """Takes anything for a condition."""

    def widened(self, schemas: Sequence[Schema]) -> list[str]:
        """The types on the left."""
        return [attribute.domain.type for attribute in schemas[0]]

    def common(self, one: str, other: str) -> str | None:
        """The first."""
        return one


_SETTINGS = {"spark.sql.ansi.enabled": "true", "spark.sql.caseSensitive": "false"}


class SparkAnalyst:
    """Asks Spark."""

    def __init__(self, spark: SparkSession) -> None:
        for setting, wanted in _SETTINGS.items():
            if str(spark.conf.get(setting)).lower() != wanted:
                hint = f"set it with spark.conf.set('{setting}', '{wanted}')"
                raise UsageError(f"{setting} must be {wanted}: queries are read and computed so", hint=hint)
        self._catalogue = Catalogue(spark)

    def columns(self, schema: Schema, expressions: Sequence[str]) -> list[tuple[str, Domain]]:
        """What Spark calls them, and their types and nullability there."""
        if not expressions:
            return []
        with explained():
            fields = self._catalogue.frame(schema).selectExpr(*expressions).schema.fields
        return [(field.name, _domain(field)) for field in fields]

    def require_condition(self, schema: Schema, expression: str) -> None:
        """Lets Spark filter by it."""
        with explained():
            self._catalogue.frame(schema).where(expression)

    def widened(self, schemas: Sequence[Schema]) -> list[str]:
        """What Spark's union makes of them, from left to right."""
        with explained():
            union = reduce(lambda one, other: one.unionAll(other), map(self._catalogue.frame, schemas))
        return [_domain(field).type for field in union.schema.fields]

    def common(self, one: str, other: str) -> str | None:
        """The same, or for numbers what Spark's union makes of them, as its comparison does."""
        if one == other:
            return one
        if not all(isinstance(Domain(type_).sql, NumericType) for type_ in (one, other)):
            return None
        return self.widened([Schema((Attribute("a", Domain(type_)),)) for type_ in (one, other)])[0]

    def require_faithful(self, statement: Statement, tables: Mapping[str, Schema]) -> list[str]:
        """Makes sure that Spark reads a query, as it was written, as it was understood here; returns its types.

        Two parsers have read it: sqlglot's, from whose tree the plan is made, and Spark's. Here Spark reads both the
        original and what the tree is written back as, and must make the same plan of them.

        Raises:
            QueryError: Spark finds an error in the query, or the two differ.
        """
        session = self._catalogue.session(tables)
        text, start = statement.text, statement.start
        with explained(text, start):
            original = session.sql(text.text[start : statement.end])
        with explained(text):
            rendered = session.sql(render(statement.tree))
        with explained(text, start):
            is_same = _same(original, rendered)
        if not is_same:
            raise text.error(
                "Spark would not compute what was understood of this query",
                start,
                "write literals and functions in their plainest form, for instance CAST(… AS …)",
            )
        return [_domain(field).type for field in original.schema.fields]


def _same(one: DataFrame, other: DataFrame) -> bool:
    """Whether Spark makes one plan of both."""
    executions: list[Any] = [frame._jdf.queryExecution() for frame in (one, other)]
    # Constants are folded here: one that has no value, such as 1 / 0, is found before any tuple comes.
    optimized = executions[0].optimizedPlan()
    if executions[0].analyzed().sameResult(executions[1].analyzed()):
        return True
    # A literal of its own and the cast of a text have become one.
    return bool(optimized.sameResult(executions[1].optimizedPlan()))


def _domain(field: StructField) -> Domain:
    return Domain(field.dataType.simpleString(), field.nullable)
