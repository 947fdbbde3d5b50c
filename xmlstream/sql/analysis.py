"""The types of a query's expressions, asked of Spark's analyser: nothing here knows Spark's typing rules.

The analyser sees frames without tuples that have the attributes of a plan's nodes. No job is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Protocol

from operators.expressions.coalesced import coalesced_domain
from operators.expressions.dialect import as_read, expression
from operators.expressions.nullability import never_null
from punct_ns.domain import Domain
from punct_ns.errors import UsageError
from punct_ns.numeric_type import NumericType
from punct_ns.schema import Attribute, Schema
from xmlstream.sql.analysis_errors import explained, require_patterns
from xmlstream.sql.catalogue import Catalogue
from xmlstream.sql.plan_equality import SparkPlans, is_planned_alike
from xmlstream.sql.statements import Statement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
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
        """Each by its own text; as if they were strings, but for what is the first of several attributes."""
        strings = (Domain("STRING", nullable=not never_null(expression(text), schema)) for text in expressions)
        known = (coalesced_domain(text, schema) for text in expressions)
        return [(text, found or other) for text, found, other in zip(expressions, known, strings, strict=True)]

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
    """Asks Spark, of each expression over a schema once."""

    def __init__(self, spark: SparkSession) -> None:
        for setting, wanted in _SETTINGS.items():
            if str(spark.conf.get(setting)).lower() != wanted:
                hint = f"set it with spark.conf.set('{setting}', '{wanted}')"
                raise UsageError(f"{setting} must be {wanted}: queries are read and computed so", hint=hint)
        self._catalogue, self._plans = Catalogue(spark), SparkPlans(spark)
        self._known: dict[Schema, dict[str, tuple[str, Domain]]] = {}
        self._conditions: set[tuple[Schema, str]] = set()

    def columns(self, schema: Schema, expressions: Sequence[str]) -> list[tuple[str, Domain]]:
        """What Spark calls them, and their types there; null is none of their values where that is known to either."""
        known = self._known.setdefault(schema, {})
        if unknown := [expression for expression in expressions if expression not in known]:
            with explained():
                fields = self._catalogue.frame(schema).selectExpr(*unknown).schema.fields
            for text, field in zip(unknown, fields, strict=True):
                nullable = field.nullable and not never_null(expression(text), schema)
                domain, coalesced = _domain(field), coalesced_domain(text, schema)
                if coalesced is not None and coalesced.type == domain.type:
                    domain = coalesced
                known[text] = field.name, replace(domain, nullable=nullable)
        return [known[expression] for expression in expressions]

    def require_condition(self, schema: Schema, expression: str) -> None:
        """Lets Spark filter by it."""
        if (schema, expression) in self._conditions:
            return
        with explained():
            self._catalogue.frame(schema).where(expression)
        self._conditions.add((schema, expression))

    def widened(self, schemas: Sequence[Schema]) -> list[str]:
        """What Spark's union makes of them, from left to right; those of each, where they are the same."""
        types = [[attribute.domain.type for attribute in schema] for schema in schemas]
        if all(each == types[0] for each in types):
            return types[0]
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
            parsed = self._plans.parsed(text.text[start : statement.end], session)
            frame = self._plans.analysed(parsed, session)
        with explained(text):
            understood = self._plans.parsed(as_read(statement.tree), session)
            is_same = self._plans.is_parsed_alike(parsed, understood)
            other = None if is_same else self._plans.analysed(understood, session)
        with explained(text, start):
            # Constants are folded here: one that has no value, such as 1 / 0, is found before any tuple comes.
            frame.queryExecution().optimizedPlan()
            is_same = other is None or is_planned_alike(frame, other)
        require_patterns(statement.tree, text, session)
        if not is_same:
            raise text.error(
                "Spark would not compute what was understood of this query",
                start,
                "write literals and functions in their plainest form, for instance CAST(… AS …)",
            )
        return [_domain(field).type for field in self._catalogue.of(frame, session).schema.fields]


def _domain(field: StructField) -> Domain:
    return Domain(field.dataType.simpleString(), field.nullable)
