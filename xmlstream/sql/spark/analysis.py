"""Analysis by Spark: the types of a query's expressions, and Spark's errors as errors in the query's text.

Only Spark's analyser knows the typing rules. It analyses empty frames with the attributes of a plan's nodes, and the
query in a session of its own with the tables as views. No job runs, and Java receives no Python object except the text
of a schema. Creating frames and views is much of the cost of planning, so each is created once: a file of many queries
has one session with one view per table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol

from sqlglot import exp

from xmlstream.operators.expressions.dialect import as_read, call_name, expression, render
from xmlstream.operators.expressions.operations.python_functions import as_written, called_in, known_by
from xmlstream.operators.expressions.output_columns import coalesced_domain
from xmlstream.operators.expressions.type_rules import never_null, value_type
from xmlstream.operators.frames.spark_engine import quiet_spark
from xmlstream.operators.frames.spark_functions import give_function, with_functions
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.numeric_type import NumericType
from xmlstream.punct_ns.schema import Attribute, Schema, structured
from xmlstream.punct_ns.slices import quoted
from xmlstream.punct_ns.type_names import sql_type
from xmlstream.session.spark_errors import first_cause
from xmlstream.session.spark_session import require_settings
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.spark.functions import REGISTERED
from xmlstream.sql.spark.parsing import (
    ASOF_SINCE,
    plans_of,
    require_parsed,
    version_of,
    without_asof,
)

if TYPE_CHECKING:
    from pyspark.errors.exceptions.base import PySparkException
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField

    from xmlstream.plan.nodes import Node
    from xmlstream.sql.statements import Statement


class Catalogue:
    """Empty frames by schema, and a session with the tables as views."""

    def __init__(self, spark: SparkSession) -> None:
        self.plans = plans_of(spark)
        self._spark = spark
        self._frames: dict[Schema, DataFrame] = {}
        self._reader: SparkSession | None = None
        self._views: dict[str, Schema] = {}

    def frame(self, schema: Schema) -> DataFrame:
        """An empty frame with the schema, in the user's session."""
        if schema not in self._frames:
            self._frames[schema] = self.plans.rowless(schema.ddl(), self._spark)
        return self._frames[schema]

    def session(self, tables: Mapping[str, Schema]) -> SparkSession:
        """A session with the tables as views, so that the user's own catalogue stays unchanged.

        It has the settings of the user's session at the first call.
        """
        if self._reader is None:
            self._reader = self.plans.apart(self._spark)
            # Spark's parser reads ASOF JOIN only with this setting, and before 4.3 not at all (`older_spark`); the join
            # itself is computed here.
            self._reader.conf.set("spark.sql.join.asofJoin.enabled", "true")
        for name, schema in tables.items():
            if self._views.get(name) != schema:
                # A query sees a window as one column.
                ddl = ", ".join(f"{quoted(column)} {type_}" for column, type_ in structured(schema))
                self.plans.rowless(ddl, self._reader).createOrReplaceTempView(f"`{name.replace('`', '``')}`")
                self._views[name] = schema
        return self._reader

    def give_registered(self, name: str) -> None:
        """Gives the session with the views a function that the user has registered with his own."""
        assert self._reader is not None
        mine, readers = (s._jsparkSession.sessionState().functionRegistry() for s in (self._spark, self._reader))
        identifier = _identifier(self._spark, name)
        info, builder = mine.lookupFunction(identifier), mine.lookupFunctionBuilder(identifier)
        readers.registerFunction(identifier, info.get(), builder.get())


def _identifier(spark: SparkSession, name: str) -> Any:
    """How Spark's registry names a temporary function; since 4.3 by its catalog and its schema, too."""
    java: Any = spark._jvm
    of = java.org.apache.spark.sql.catalyst.FunctionIdentifier
    some = java.scala.Some.apply
    return of(name, some("session"), some("system")) if version_of(spark) >= (4, 3) else of(name)


@contextmanager
def spark_errors_explained(text: QueryText | None = None) -> Iterator[None]:
    """Turns errors of Spark's analyser into a `QueryError` that points into the text."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        with quiet_spark():
            yield
    except PySparkException as error:
        what, hint = _translated(error)
        places = (context for context in error.getQueryContext() if context.contextType().name == "SQL")
        at = next((int(context.startIndex()) for context in places), None)
    except Py4JJavaError as error:  # an error without a PySpark class
        is_deep, plain = "StackOverflowError" in str(error), _plain(first_cause(error).partition(": ")[2])
        (what, hint), at = _TOO_DEEP if is_deep else (plain, None), None
    else:
        return
    raise QueryError(what, hint=hint) if text is None else text.error(what, at or 0, hint)


def require_patterns(tree: exp.Expr, text: QueryText, spark: SparkSession) -> None:
    """Tries the constant patterns of a query, which Spark would otherwise read only with the first tuple.

    Raises:
        QueryError: A pattern cannot be read.
    """
    from pyspark.errors import PySparkException

    for call in tree.find_all(exp.Anonymous):
        name, given = call_name(call), call.expressions
        if name not in _PATTERNS or len(given) < 2 or not (isinstance(given[1], exp.Literal) and given[1].is_string):
            continue
        argument, hint = _PATTERNS[name]
        try:
            with quiet_spark():
                # Spark computes a row of constants while it plans.
                spark.sql(f"SELECT {name}({argument}, {render(given[1])})").collect()
        except PySparkException as error:
            if "PATTERN" in (error.getCondition() or ""):
                raise text.error(f"'{given[1].this}' is not a pattern of {name}", given[1], hint) from None


_OF_MOMENTS = "y is the year, M the month, d the day of the month, H the hour: 'yyyy-MM-dd HH:mm:ss'"
_PATTERNS = {
    **dict.fromkeys(("date_format", "to_char", "to_varchar"), ("TIMESTAMP '2020-02-29 12:34:56'", _OF_MOMENTS)),
    "from_unixtime": ("0", _OF_MOMENTS),
    **dict.fromkeys(
        ("to_date", "to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz", "to_unix_timestamp", "unix_timestamp"),
        ("''", _OF_MOMENTS),
    ),
    **dict.fromkeys(
        (
            "regexp",
            "rlike",
            "regexp_like",
            "regexp_extract",
            "regexp_extract_all",
            "regexp_count",
            "regexp_instr",
            "regexp_substr",
        ),
        ("''", "a pattern is a regular expression of Java's; a backslash is written twice, '\\\\d'"),
    ),
}
"""Functions whose second argument is a pattern: a first argument to try the pattern on, and a hint."""


def _translated(error: PySparkException) -> tuple[str, str | None]:
    condition, given = error.getCondition() or "", error.getMessageParameters() or {}
    if (found := _CONDITIONS.get(condition.partition(".")[0])) is None:
        taken = given.get("requiredType", "").replace('"', "")
        return _plain(str(error)), f"it takes {taken}" if taken else None
    part, what, hint = found
    bare = {name: value.strip('"').replace("`.`", ".").replace("`", "") for name, value in given.items()}
    hint = hint if "{proposal}" not in hint or bare.get("proposal") else ""
    return what.format(bare.get(part, "this")), hint.format(**bare) or None


_TOO_DEEP = (
    "the query is nested more deeply than Spark reads",
    "--conf spark.driver.extraJavaOptions=-Xss256m gives Java larger stacks; --engine duckdb reads 4,000 operations",
)
_NEITHER = ("expression", "{} is neither a key of GROUP BY nor aggregated", "name it in GROUP BY, or aggregate it")
_CONDITIONS = {
    "UNRESOLVED_COLUMN": ("objectName", "there is no attribute {}", "there are {proposal}"),
    "AMBIGUOUS_REFERENCE": ("name", "{} is ambiguous: several attributes have this name", "write its table before it"),
    "TABLE_OR_VIEW_NOT_FOUND": ("relationName", "there is no table {}", "declare it with CREATE TABLE"),
    "MISSING_AGGREGATION": _NEITHER,
    "MISSING_GROUP_BY": _NEITHER,
    "PARSE_SYNTAX_ERROR": ("error", "{} is not expected here", ""),
    "FAILED_TO_PARSE_TOO_COMPLEX": ("", *_TOO_DEEP),
}
"""Messages for errors of Spark: the parameter with the culprit's name, the message about it and a hint."""


def _plain(message: str) -> str:
    r"""Spark's message without its error class, its SQL state and the plan that follows.

    >>> _plain("[A.B] Cannot do it. SQLSTATE: 42K09; line 1 pos 7;\n'Project")
    'Cannot do it.'
    """
    message = re.sub(r"^\s*\[[A-Z0-9_.]+\]\s*", "", message)
    return re.sub(r"\s*(SQLSTATE: \w+|; line \d+ pos \d+).*", "", message, flags=re.DOTALL).strip()


class Analyst(Protocol):
    """Knows the types of expressions over a schema."""

    def columns(self, schema: Schema, expressions: Sequence[str]) -> list[tuple[str, Domain]]:
        """The default name of each expression and its domain; either all are aggregates, or none is."""

    def require_condition(self, schema: Schema, expression: str) -> None:
        """Checks that the expression is a BOOLEAN; QueryError if not."""

    def widened(self, schemas: Sequence[Schema]) -> list[str]:
        """The attributes' types in a UNION of these schemas; QueryError if there are none."""

    def common(self, one: str, other: str) -> str | None:
        """The type in which values of two types are compared; None if that is not certain.

        It is the type itself if both are equal; for numbers, the type of Spark's union, as in its comparisons.
        """
        if one == other:
            return one
        if not all(isinstance(Domain(type_).sql, NumericType) for type_ in (one, other)):
            return None
        return self.widened([Schema((Attribute("a", Domain(type_)),)) for type_ in (one, other)])[0]


class WholeAnalyst(Analyst, Protocol):
    """Knows the types of expressions, what an engine reads, and whether a query means what this package reads in it."""

    def require_table(self, node: Node) -> None:
        """Checks that the engine can read a declared table; QueryError if not."""

    def require_faithful(self, statement: Statement, tables: Mapping[str, Schema]) -> list[str] | None:
        """Checks the query; returns its result's types if they are known; QueryError if it means something else."""


def _domain_of(text: str, schema: Schema) -> Domain:
    """The domain of an expression's values; of STRING if their type is not known."""
    known = value_type(tree := expression(text), schema)
    return Domain("STRING" if known is None else known.name, nullable=not never_null(tree, schema))


class NamesOnly:
    """Analyst without an engine: enough to find misspelt names before Spark starts."""

    def columns(self, schema: Schema, expressions: Sequence[str]) -> list[tuple[str, Domain]]:
        """Names each expression by its text, with its type as far as that needs no engine; else it is a STRING."""
        return [(text, coalesced_domain(text, schema) or _domain_of(text, schema)) for text in expressions]

    def require_condition(self, schema: Schema, expression: str) -> None:
        """Accepts any expression."""

    def widened(self, schemas: Sequence[Schema]) -> list[str]:
        """The types of the first schema."""
        return [attribute.domain.type for attribute in schemas[0]]

    def common(self, one: str, other: str) -> str | None:
        """The first type."""
        return one


class SparkAnalyst(WholeAnalyst):
    """Analyst that uses Spark's analyser, once per expression over a schema."""

    def __init__(self, spark: SparkSession) -> None:
        require_settings(spark)
        self._catalogue, self._version = Catalogue(spark), version_of(spark)
        self._known: dict[Schema, dict[str, tuple[str, Domain]]] = {}
        self._conditions: set[tuple[Schema, str]] = set()

    def columns(self, schema: Schema, expressions: Sequence[str]) -> list[tuple[str, Domain]]:
        """Spark's names and types; an expression is not nullable if Spark or `never_null` knows that."""
        known = self._known.setdefault(schema, {})
        if unknown := [expression for expression in expressions if expression not in known]:
            with spark_errors_explained():
                frame = self._catalogue.frame(schema)
                self._require_types(frame, unknown)
                texts = [with_functions(text, frame.sparkSession) for text in unknown]
                fields = frame.selectExpr(*texts).schema.fields
            for text, field in zip(unknown, fields, strict=True):
                nullable = field.nullable and not never_null(expression(text), schema)
                domain, coalesced = _domain(field), coalesced_domain(text, schema)
                if coalesced is not None and coalesced.type == domain.type:
                    domain = coalesced
                known[text] = _name(text, field), replace(domain, nullable=nullable)
        return [known[expression] for expression in expressions]

    def require_condition(self, schema: Schema, expression: str) -> None:
        """Checks that Spark can filter by the expression."""
        if (schema, expression) in self._conditions:
            return
        with spark_errors_explained():
            frame = self._catalogue.frame(schema)
            self._require_types(frame, [expression])
            # Spark Connect analyses nothing before a schema is asked for; a classic session has it by then.
            _ = frame.where(with_functions(expression, frame.sparkSession)).schema
        self._conditions.add((schema, expression))

    @staticmethod
    def _require_types(frame: DataFrame, texts: Sequence[str]) -> None:
        """Checks the types of arguments of Python functions; that those registered with Spark map a row to a value."""
        for text in texts:
            for call in expression(text).find_all(exp.Anonymous) if called_in(text) or REGISTERED else ():
                function = known_by(call_name(call))
                if function is not None:
                    given = [with_functions(render(each), frame.sparkSession) for each in call.expressions]
                    function.require_types(sql_type(f.dataType.simpleString()) for f in frame.selectExpr(*given).schema)
                elif call_name(call) in REGISTERED:
                    java: Any = frame.selectExpr(with_functions(render(call), frame.sparkSession))._jdf
                    plan = java.queryExecution().analyzed()
                    if plan.getClass().getSimpleName() == "Aggregate":
                        hint = "register a function from the values of one row to one value"
                        raise QueryError(f"the function {call_name(call)} is an aggregate of Python", hint=hint)
                    if not plan.deterministic():
                        hint = "a slice that runs again after a crash must give the same"
                        raise QueryError(f"the function {call_name(call)} is not deterministic", hint=hint)

    def require_table(self, node: Node) -> None:
        """Accepts any table."""

    def widened(self, schemas: Sequence[Schema]) -> list[str]:
        """The types of Spark's union, from left to right; without Spark if all are equal."""
        types = [[attribute.domain.type for attribute in schema] for schema in schemas]
        if all(each == types[0] for each in types):
            return types[0]
        with spark_errors_explained():
            union = reduce(lambda one, other: one.unionAll(other), map(self._catalogue.frame, schemas))
        return [_domain(field).type for field in union.schema.fields]

    def require_faithful(self, statement: Statement, tables: Mapping[str, Schema]) -> list[str]:
        """Checks that Spark understands the written query as this package does; returns the result's types.

        Two parsers read a query: sqlglot's, from whose tree the plan is made, and Spark's. Here Spark plans both the
        original text and the SQL printed from the tree; the plans must be the same.

        Raises:
            QueryError: Spark finds an error in the query, or the plans differ.
        """
        session = self._catalogue.session(tables)
        for call in statement.tree.find_all(exp.Anonymous):
            if (function := known_by(call_name(call))) is not None:
                give_function(function, session, typed=True)
            elif call_name(call) in REGISTERED:
                self._catalogue.give_registered(call_name(call))
        text, read = statement.for_spark(), as_read(statement.tree)
        require_parsed(statement, self._version)
        if self._version < ASOF_SINCE:
            text, read = replace(text, text=without_asof(text.text)), without_asof(read)
        with spark_errors_explained(text):
            frame, is_same = self._catalogue.plans.understood(text.text, read, session)
            fields = frame.schema.fields
        require_patterns(statement.tree, statement.text, session)
        if not is_same:
            raise statement.text.error(
                "Spark understands this query differently",
                statement.start,
                "write literals and functions in their simplest form, for instance CAST(… AS …)",
            )
        return [_domain(field).type for field in fields]


def _name(text: str, field: StructField) -> str:
    """The name of a column; Spark would name one with a Python function by what is written in its place."""
    return as_written(render(expression(text)).replace("`", "")) if called_in(text) else field.name


def _domain(field: StructField) -> Domain:
    return Domain(field.dataType.simpleString(), field.nullable)
