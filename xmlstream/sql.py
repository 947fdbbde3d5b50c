"""A query as SQL text: tables declared, then one query over them, in Spark's dialect.

    CREATE TABLE sensor1 (sid STRING, hour INT, min INT, currtmp DOUBLE)
    USING punctuated_xml OPTIONS (path '${DIR}/sensor1.xml', rowTag 'tempdata', schemes 'hour');

    SELECT MAX(currtmp) AS maxtemp, hour FROM sensor1 GROUP BY hour;

Reading finds what is wrong with the text and its names, and needs no Spark; planning asks Spark for the types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from punct_ns.errors import QueryError
from xmlstream.analysis import NamesOnly, SparkAnalyst
from xmlstream.declaration import declared
from xmlstream.dialect import Statement, offset, parse_statements
from xmlstream.plan import Node, Scan, topological
from xmlstream.query_text import substituted
from xmlstream.refusals import called
from xmlstream.relation import Relation
from xmlstream.supported import require_supported
from xmlstream.translation import Translation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Script:
    """A query that was read: the tables it declares, by name, the query itself, and the sources that it reads."""

    tables: Mapping[str, Node]
    query: Statement
    sources: tuple[Scan, ...]

    def plan(self, spark: SparkSession) -> Node:
        """The query's plan, as it was written.

        Raises:
            QueryError: An expression has no type, or Spark takes the query for another.
        """
        return planned(self.query, {name: Relation.of(node) for name, node in self.tables.items()}, spark)


def read(text: str, variables: Mapping[str, str] | None = None, source: str | None = None) -> Script:
    """Reads a query; `source` is what errors call it, such as its file's name.

    Raises:
        QueryError: It is no SQL, uses what is not supported, or names what there is not.
    """
    whole = substituted(text, variables or {}, source)
    tables: dict[str, Node] = {}
    queries: list[Statement] = []
    for statement in parse_statements(whole):
        if isinstance(statement.tree, exp.Create):
            name, node = declared(statement.tree, whole)
            if name.lower() in map(str.lower, tables):
                raise whole.error(f"table {name} is declared twice", offset(statement.tree))
            tables[name] = node
        elif isinstance(statement.tree, exp.Query):
            queries.append(statement)
        else:
            raise _no_query(statement)
    if not queries:
        raise QueryError("there is no query", hint="after the tables write SELECT … FROM …")
    if len(queries) > 1:
        raise whole.error("a second query", queries[1].start, "one query at a time; put the others into its FROM")
    sketch = sketched(queries[0], {name: Relation.of(node) for name, node in tables.items()})
    scans = (node.operator for node in topological(sketch))
    return Script(tables, queries[0], tuple(scan for scan in scans if isinstance(scan, Scan)))


def sketched(query: Statement, tables: Mapping[str, Relation]) -> Node:
    """The query's plan without types, after all that can be known of a query without Spark has been checked.

    Raises:
        QueryError: It uses what is not supported, or names what there is not.
    """
    require_supported(query.tree, query.text)
    return _translated(query, tables, Translation(query.text, NamesOnly()))


def planned(query: Statement, tables: Mapping[str, Relation], spark: SparkSession) -> Node:
    """The plan of a query that was checked.

    Raises:
        QueryError: An expression has no type, or Spark takes the query for another.
    """
    analyst = SparkAnalyst(spark)
    types = analyst.require_faithful(query, {name: relation.node.schema for name, relation in tables.items()})
    root = _translated(query, tables, Translation(query.text, analyst))
    if (found := [attribute.domain.type for attribute in root.schema]) != types:
        raise query.text.error(f"the result has types {found}, to Spark it has {types}", query.start)
    return root


def _translated(query: Statement, tables: Mapping[str, Relation], translation: Translation) -> Node:
    return translation.plan(query.tree, {name.lower(): relation for name, relation in tables.items()})


def _no_query(statement: Statement) -> QueryError:
    tree = statement.tree
    name = str(tree.this) if isinstance(tree, exp.Command) else tree.key.upper()
    what = called(tree)[0] if not isinstance(tree, exp.Command) else f"{name} is not supported"
    if isinstance(tree, exp.Insert):
        hint = "write the SELECT alone: its result goes where -o says"
    else:
        hint = "a query is CREATE TABLE for each source, then one SELECT"
    if isinstance(tree, exp.Condition | exp.Alias):
        what = "this is no query"
    return statement.text.error(what, statement.start, hint)
