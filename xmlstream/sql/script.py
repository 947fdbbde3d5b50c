"""A file of SQL: sources, sinks and views declared, then queries over them, which run together as one.

    CREATE TABLE bid (…) USING punctuated_xml OPTIONS (path 'bid.xml', rowTag 'bid', schemes 'auction');
    CREATE TABLE counted USING punctuated_xml OPTIONS (path 'out/counted', rowTag 'auction');
    CREATE VIEW dear AS SELECT * FROM bid WHERE price > 100;

    INSERT INTO counted SELECT auction, count(*) AS bids FROM dear GROUP BY auction;

A table that an INSERT names is a sink; a query without one has its result where `xmlstream run -o` says. Reading finds
what is wrong with the text and its names, and needs no Spark; planning gets the types from Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from operators.sort import Sort
from punct_ns.errors import QueryError, UsageError
from xmlstream.plan.nodes import Node, Scan, together, topological
from xmlstream.sink.target import Target
from xmlstream.sql.clauses.relation import Relation
from xmlstream.sql.flink_windows import differences
from xmlstream.sql.query_text import QueryText, substituted
from xmlstream.sql.refused.refusals import called
from xmlstream.sql.spark.analysis import SparkAnalyst
from xmlstream.sql.statements import Statement, parse_statements
from xmlstream.sql.tables.declaration import Declaration, declared
from xmlstream.sql.tables.sink_table import SinkTable
from xmlstream.sql.translation import planned, sketched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class View:
    """A query under a name, perhaps with other names for its columns."""

    name: str
    columns: tuple[str, ...]
    query: Statement


@dataclass(frozen=True, slots=True)
class Answer:
    """A query whose result goes out: into a sink of its own, or, for None, where the run says."""

    query: Statement
    sink: SinkTable | None = None


@dataclass(frozen=True, slots=True)
class Script:
    """A file that was read: its tables by name, its views in order, its queries, their sources, and warnings."""

    tables: Mapping[str, Node]
    views: tuple[View, ...]
    answers: tuple[Answer, ...]
    sources: tuple[Scan, ...] = ()
    warnings: tuple[str, ...] = ()

    def plan(self, spark: SparkSession) -> Node:
        """The plan of all its queries, as they were written.

        Raises:
            QueryError: An expression has no type, a result does not fit its sink, or Spark takes a query for another.
        """
        analyst = SparkAnalyst(spark)
        return self._plan(lambda query, tables: planned(query, tables, analyst))

    def sketch(self) -> Node:
        """The plan without types, after all that can be known without Spark has been checked.

        Raises:
            QueryError: A query uses what is not supported, or names what there is not.
        """
        return self._plan(sketched)

    def targets(
        self, output: str | None, row_tag: str = "row", root_tag: str = "rows", xml: Sequence[str] = ()
    ) -> tuple[Target, ...]:
        """Where each result goes, in the plan's order: a SELECT's to `output`, its columns `xml` as elements.

        Raises:
            UsageError: There is a SELECT and no output, or an output and no SELECT.
        """
        selects = [answer for answer in self.answers if answer.sink is None]
        if selects and output is None:
            raise UsageError("nothing says where the result of SELECT goes", hint="name a directory with -o")
        if output is not None and not selects:
            raise UsageError(f"nothing goes to {output}", hint="leave out -o: every query says INSERT INTO")
        given = Target(output or "-", row_tag, root_tag, xml=tuple(xml))
        return tuple(answer.sink.target if answer.sink else given for answer in self.answers)

    def _plan(self, planned_: Callable[[Statement, Mapping[str, Relation]], Node]) -> Node:
        tables = {name: Relation.of(node) for name, node in self.tables.items()}
        for view in self.views:
            order, limit = (view.query.tree.args.get(part) for part in ("order", "limit"))
            if order is not None and limit is None:
                what, hint = called("order")
                raise view.query.text.error(what, order, hint)
            node = planned_(view.query, tables)
            if isinstance(node.operator, Sort):
                node = node.inputs[0]  # LIMIT has chosen; a view has no order
            if view.columns and len(view.columns) != len(node.schema):
                what = f"view {view.name} names {len(view.columns)} columns of a query that has {len(node.schema)}"
                raise view.query.text.error(what, view.query.start)
            if len({column.lower() for column in view.columns}) < len(view.columns):
                raise view.query.text.error(f"view {view.name} names a column twice", view.query.start)
            tables[view.name] = Relation.of(node).called(view.name, view.columns)
        roots = []
        for answer in self.answers:
            node = planned_(answer.query, tables)
            if answer.sink is not None:
                node = answer.sink.fitted(node, answer.query.text, answer.query.start, typed=planned_ is not sketched)
            roots.append(node)
        return together(roots, [answer.sink.name if answer.sink else "result" for answer in self.answers])


def read(text: str, variables: Mapping[str, str] | None = None, source: str | None = None) -> Script:
    """Reads a file; `source` is what errors call it, such as its name.

    Raises:
        QueryError: It is no SQL, uses what is not supported, or names what there is not.
    """
    whole = substituted(text.removeprefix("\ufeff"), variables or {}, source)
    statements = parse_statements(whole)
    declarations = _declarations(statements, whole)
    targets = {_target(s).name.lower() for s in statements if isinstance(s.tree, exp.Insert)}
    sinks = {name: SinkTable.of(declaration) for name, declaration in declarations.items() if name in targets}
    views: list[View] = []
    answers: list[Answer] = []
    for statement in statements:
        match statement.tree:
            case exp.Create(args={"kind": "VIEW"}):
                views.append(_view(statement, {*declarations, *(view.name.lower() for view in views)}))
            case exp.Create():
                pass
            case exp.Insert():
                answers.append(_insertion(statement, sinks, {a.sink.name for a in answers if a.sink}))
            case exp.Query():
                if any(answer.sink is None for answer in answers):
                    hint = "say with INSERT INTO where the result of each goes, or put one into the other's FROM"
                    raise whole.error("a second query", statement.start, hint)
                answers.append(Answer(statement))
            case _:
                raise _no_query(statement)
    if not answers:
        raise QueryError("there is no query", hint="after the tables write SELECT … FROM …")
    tables = {d.name: declared(d) for name, d in declarations.items() if name not in targets}
    for query in (*(view.query for view in views), *(answer.query for answer in answers)):
        _require_unread(query, targets)
    script = Script(tables, tuple(views), tuple(answers))
    scans = (node.operator for node in topological(script.sketch()))
    sources = tuple(scan for scan in scans if isinstance(scan, Scan))
    is_flinks = any(statement.rewriting.replaced for statement in statements)
    warnings = [line for each in statements for line in differences(each.tree, whole)] if is_flinks else []
    return replace(script, sources=sources, warnings=tuple(warnings))


def _declarations(statements: list[Statement], text: QueryText) -> dict[str, Declaration]:
    found: dict[str, Declaration] = {}
    for statement in statements:
        if isinstance(statement.tree, exp.Create) and str(statement.tree.args.get("kind")).upper() != "VIEW":
            declaration = Declaration.of(statement.tree, text)
            if declaration.name.lower() in found:
                raise text.error(f"table {declaration.name} is declared twice", statement.tree)
            found[declaration.name.lower()] = declaration
    return found


_A_VIEW = "a view is CREATE VIEW name AS SELECT …"
_VIEWS = {
    "replace": ("OR REPLACE", "a query declares each view once"),
    "exists": ("IF NOT EXISTS", "a query declares each view once"),
    "materialized": (
        "CREATE MATERIALIZED VIEW",
        "leave out MATERIALIZED; what a table of CREATE TABLE is to keep goes there by INSERT INTO",
    ),
}
"""Parts of CREATE VIEW that are not supported, with what to write instead."""


def _view(statement: Statement, taken: set[str]) -> View:
    tree, text = statement.tree, statement.text
    is_list = isinstance(tree.this, exp.Schema)
    table = tree.this.this if is_list else tree.this
    properties = tree.args["properties"].expressions if tree.args.get("properties") else ()
    parts = [part.key.removesuffix("property") for part in properties if not isinstance(part, exp.TemporaryProperty)]
    for part in (*(part for part in _VIEWS if tree.args.get(part)), *parts):
        what, hint = _VIEWS.get(part, (f"{part.upper()} of view {table.name}", _A_VIEW))
        raise text.error(f"{what} is not supported", table, hint)
    if table.name.lower() in taken:
        raise text.error(f"{table.name} is declared twice", table)
    if not isinstance(tree.expression, exp.Query):
        raise text.error(f"view {table.name} is no query", table, _A_VIEW)
    columns = tuple(column.name for column in tree.this.expressions) if is_list else ()
    return View(table.name, columns, statement.query())


_AN_INSERT = "write INSERT INTO t SELECT …"
_INSERTS = {
    "overwrite": ("INSERT OVERWRITE", "write INSERT INTO"),
    "with_": ("WITH before INSERT", "write INSERT INTO t WITH … SELECT …"),
}
"""Parts of INSERT that are not supported, with what to write instead."""


def _target(statement: Statement) -> exp.Table:
    tree, text = statement.tree, statement.text
    table: exp.Expr = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    for part in (part for part, value in tree.args.items() if value and part not in {"this", "expression"}):
        what, hint = _INSERTS.get(part, (f"INSERT with {part.replace('_', ' ').upper()}", _AN_INSERT))
        raise text.error(f"{what} is not supported", statement.start, hint)
    if isinstance(tree.this, exp.Schema):
        raise text.error("a list of columns after INSERT INTO is not supported", table, "select in their order")
    if not isinstance(table, exp.Table) or not isinstance(tree.expression, exp.Query | exp.Values):
        raise text.error("this INSERT is not supported", statement.start, _AN_INSERT)
    return table


def _insertion(statement: Statement, sinks: Mapping[str, SinkTable], taken: set[str]) -> Answer:
    table, text = _target(statement), statement.text
    if isinstance(statement.tree.expression, exp.Values):
        what, hint = called("values")
        raise text.error(what, statement.start, hint)
    sink = sinks.get(table.name.lower())
    if sink is None:
        raise text.error(f"there is no table {table.name}", table, "a sink is declared by CREATE TABLE, too")
    if sink.name in taken:
        raise text.error(f"a second INSERT INTO {sink.name}", table, "put both queries together with UNION ALL")
    return Answer(statement.query(), sink)


def _require_unread(query: Statement, sinks: set[str]) -> None:
    for table in query.tree.find_all(exp.Table):
        if table.name.lower() in sinks:
            hint = "CREATE VIEW gives a query a name; what was written can be read by a query that is run by itself"
            raise query.text.error(f"{table.name} is written here, and cannot be read, too", table, hint)


def _no_query(statement: Statement) -> QueryError:
    match statement.tree:
        case exp.Condition() | exp.Alias():
            what = "this is no query"
        case exp.Command(this=name):
            what = f"{name} is not supported"
        case tree:
            what = called(tree)[0]
    hint = "a query is CREATE TABLE for each source, then SELECT or INSERT INTO … SELECT"
    return statement.text.error(what, statement.start, hint)
