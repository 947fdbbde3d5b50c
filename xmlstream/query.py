"""The builder: a query grown operator by operator, under the names that PySpark has for them.

Every argument is Spark SQL. A `Query` never changes; each method gives another. What it does is what the same SQL does:
`q.select("a").where("a > 1")` has the plan of `SELECT a FROM q`, then `SELECT * FROM … WHERE a > 1`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from punct_ns.errors import QueryError
from punct_ns.schema import Schema
from punct_ns.slices import quoted
from xmlstream import runner, sql
from xmlstream.analysis import SparkAnalyst
from xmlstream.compose import distinct, merge
from xmlstream.declaration import scan
from xmlstream.dialect import parse_statements
from xmlstream.grouping import aggregates_in
from xmlstream.plan import Node, tree
from xmlstream.query_text import QueryText
from xmlstream.relation import Relation
from xmlstream.rules import optimized
from xmlstream.runner import Settings, Summary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True, slots=True)
class Query:
    """A query over punctuated streams, and the Spark session it will run in; made by `read` and `sql`."""

    spark: SparkSession = field(repr=False, compare=False)
    root: Node

    @property
    def schema(self) -> Schema:
        """The attributes of its result."""
        return self.root.schema

    @property
    def plan(self) -> Node:
        """What will run."""
        return optimized(self.root)

    def explain(self) -> str:
        """The plan as text, a node a line, its inputs below it."""
        return tree(self.plan)

    def select(self, *items: str) -> Query:
        """These expressions of each tuple, as in SQL's SELECT: `select("hour", "currtmp * 2 AS twice", "*")`."""
        return self._of("SELECT ", *_listed(items), " FROM `input`")

    def where(self, condition: str) -> Query:
        """The tuples for which the condition is true."""
        return self._of("SELECT * FROM `input` WHERE ", _argument(condition))

    filter = where

    def with_column(self, name: str, expression: str) -> Query:
        """All attributes, and one more that is computed; it replaces one of the same name."""
        items = [quoted(other) for other in self.schema.names]
        new = QueryText.joined(["(", _argument(expression), f"\n) AS {quoted(name)}"])
        at = [other.lower() for other in self.schema.names]
        parts: list[str | QueryText] = [*items]
        if name.lower() in at:
            parts[at.index(name.lower())] = new
        else:
            parts.append(new)
        return self._of("SELECT ", *_separated(parts), " FROM `input`")

    def with_column_renamed(self, old: str, new: str) -> Query:
        """All attributes, one of them under another name."""
        known = self.schema.attribute(old).name
        items = [f"{quoted(name)} AS {quoted(new)}" if name == known else quoted(name) for name in self.schema.names]
        return self._of("SELECT ", ", ".join(items), " FROM `input`")

    def drop(self, *names: str) -> Query:
        """All attributes but these."""
        gone = {self.schema.attribute(name).name for name in names}
        left = [quoted(name) for name in self.schema.names if name not in gone]
        if not left:
            raise QueryError("nothing is left of the query's attributes", hint="keep one of them")
        return self._of("SELECT ", ", ".join(left), " FROM `input`")

    def distinct(self) -> Query:
        """Each different tuple once."""
        return self._of("SELECT DISTINCT * FROM `input`")

    def union(self, other: Query) -> Query:
        """Each different tuple of both once, by position, as SQL's UNION; `union_all` keeps all tuples.

        Differs: PySpark's `union` is SQL's UNION ALL.
        """
        return self._merged(other, label="union")

    def union_all(self, other: Query) -> Query:
        """All tuples of both, by position."""
        return self._merged(other, label=None)

    def group_by(self, *keys: str) -> Groups:
        """The groups of tuples that agree in these expressions; one group of all tuples without any."""
        return Groups(self, keys)

    groupBy = group_by  # noqa: N815 - as PySpark spells it

    def run(self, output: str | Path, checkpoint: str | Path | None = None, **options: Unpack[RunOptions]) -> Summary:
        """Runs to the end of the input, which closes the query for good unless `keep_open`; says what was done.

        Args:
            output: A directory that gets one document per slice, or `-` for standard output.
            checkpoint: Where the query's state lives, so that a later run goes on; None for a state that ends with it.
            options: See `RunOptions`.

        Raises:
            InputError: The input is malformed or ungrammatical.
            StateError: The checkpoint or the output belongs to another query.
        """
        return runner.run(self.spark, self.plan, _settings(output, checkpoint, follow=False, **options))

    def start(self, output: str | Path, checkpoint: str | Path, **options: Unpack[RunOptions]) -> StreamingQuery:
        """Starts the query and returns Spark's own handle of it; it waits for more input until it is stopped.

        The arguments are those of `run`.

        Raises:
            StateError: The checkpoint or the output belongs to another query, or the query was closed.
        """
        return runner.start(self.spark, self.plan, _settings(output, checkpoint, follow=True, **options))

    def _of(self, *parts: str | QueryText) -> Query:
        """The query that this text is, over this one under the name `input`."""
        statement = parse_statements(QueryText.joined(parts))[0]
        tables = {"input": Relation.of(self.root)}
        sql.sketched(statement, tables)
        return Query(self.spark, sql.planned(statement, tables, self.spark))

    def _merged(self, other: Query, *, label: str | None) -> Query:
        here, there = len(self.schema), len(other.schema)
        if here != there:
            raise QueryError(f"a union of {here} attributes with {there}", hint="select as many on both sides")
        analyst = SparkAnalyst(self.spark)
        merged = merge([Relation.of(self.root), Relation.of(other.root)], analyst)
        return Query(self.spark, (merged if label is None else distinct(merged, analyst, label)).node)


@dataclass(frozen=True, slots=True)
class Groups:
    """A query's tuples in groups, to be aggregated."""

    query: Query
    keys: tuple[str, ...]

    def agg(self, *aggregates: str) -> Query:
        """One tuple of each group, as soon as it is complete: the keys, then these.

        An item is an aggregate or an expression over aggregates and keys: `agg("max(a) - min(a) AS spread")`.
        """
        if not self.keys and not aggregates:
            raise QueryError("nothing to group by and nothing to aggregate", hint='for example agg("count(*) AS n")')
        items = _listed((*self.keys, *aggregates))
        numbers = ", ".join(str(number + 1) for number in range(len(self.keys)))
        if not numbers and not any(map(_aggregates, aggregates)):
            raise QueryError(f"no aggregate: {', '.join(aggregates)}", hint="name what to group by, or use select")
        return self.query._of("SELECT ", *items, " FROM `input`", f" GROUP BY {numbers}" if numbers else "")


class RunOptions(TypedDict, total=False):
    """How a query is run.

    Attributes:
        row_tag: Tag of the result's tuples, `row` by default.
        root_tag: Tag of the result's documents, `rows` by default.
        keep_open: The end of the input does not close the query: a later run goes on.
        metrics: A file that gets one JSON object per slice.
        overwrite: Remove the documents of an earlier query from the output.
        on_slice: Called with the report of each committed slice.
    """

    row_tag: str
    root_tag: str
    keep_open: bool
    metrics: str | Path | None
    overwrite: bool
    on_slice: Callable[[dict[str, Any]], None] | None


def read(spark: SparkSession, path: str | Path, schema: str, *, name: str | None = None, **options: Any) -> Query:
    """A punctuated XML source as a query.

    Args:
        spark: The session that the query will run in.
        path: A file, a directory or a glob.
        schema: The attributes as Spark DDL, such as `"sid STRING, hour INT NOT NULL"`.
        name: What metrics call the source; by default its path's last part without its suffix.
        options: `rowTag`, `schemes`, `domains` and the others that CREATE TABLE takes; see `SourceOptions`.

    Raises:
        UsageError: An option is unknown, missing or cannot be read.
    """
    texts = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()}
    called = name or re.sub(r"\W+", "_", Path(path).stem).strip("_") or "source"
    return Query(spark, scan(called, {**texts, "path": str(path)}, schema))


def from_sql(spark: SparkSession, text: str, variables: Mapping[str, str] | None = None) -> Query:
    """The query that SQL text declares and asks, as `xmlstream run` takes it.

    Raises:
        QueryError: It is no SQL, uses what is not supported, or does not fit its tables.
    """
    return Query(spark, sql.read(text, variables).plan(spark))


def _settings(output: str | Path, checkpoint: str | Path | None, *, follow: bool, **options: Any) -> Settings:
    metrics = options.pop("metrics", None)
    return Settings(
        output=str(output),
        checkpoint=None if checkpoint is None else str(checkpoint),
        follow=follow,
        metrics=None if metrics is None else str(metrics),
        **options,
    )


def _argument(text: str) -> QueryText:
    """One expression, perhaps with a name, as part of a query's text.

    Raises:
        QueryError: It is not SQL text, or is more than one expression.
    """
    if not isinstance(text, str):
        raise QueryError(f"{text!r} is no SQL text", hint='expressions are written as text, such as "a + 1 AS b"')
    written = QueryText.of(text, f"'{text}'")
    statements = parse_statements(QueryText.joined(["SELECT ", written]))
    parts = {name for name, value in statements[0].tree.args.items() if value}
    if len(statements) != 1 or parts != {"expressions"} or len(statements[0].tree.expressions) != 1:
        raise written.error("not one expression", 0, "give each expression as an argument of its own")
    return written


def _aggregates(text: str) -> bool:
    return any(True for _ in aggregates_in(parse_statements(QueryText.of(f"SELECT {text}"))[0].tree))


def _listed(texts: Iterable[str]) -> list[str | QueryText]:
    return _separated([_argument(text) for text in texts])


def _separated(parts: Iterable[str | QueryText]) -> list[str | QueryText]:
    """The parts with commas between; on lines of their own, since they may end with a comment."""
    listed = [separated for part in parts for separated in (part, "\n, ")]
    return [*listed[:-1], "\n"]
