"""File of SQL: declares sources, sinks and views, then queries over them that run together as one.

    CREATE TABLE bid (…) USING punctuated_xml OPTIONS (path 'bid.xml', rowTag 'bid', schemes 'auction');
    CREATE TABLE counted USING punctuated_xml OPTIONS (path 'out/counted', rowTag 'auction');
    CREATE VIEW dear AS SELECT * FROM bid WHERE price > 100;

    INSERT INTO counted SELECT auction, count(*) AS bids FROM dear GROUP BY auction;

A table named by an INSERT is a sink; the result of a query without INSERT goes to the output of `xmlstream run -o`.
Reading finds errors in the text and its names without Spark; planning gets the types from Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.expressions.depth import at_any_depth
from xmlstream.operators.expressions.dialect import tokens
from xmlstream.operators.frames.auto_engine import AutoEngine
from xmlstream.plan.nodes import Node, Scan, static_frame, together, topological
from xmlstream.punct_ns.errors import QueryError, UsageError, format_error
from xmlstream.punct_ns.schema import written_name
from xmlstream.punct_ns.slices import quoted
from xmlstream.session.engines import engine_of, is_in_process
from xmlstream.sink.target import Target
from xmlstream.sink.xml_documents import Vocabulary
from xmlstream.sql.clauses.relation import Relation
from xmlstream.sql.clauses.result_order import without_order
from xmlstream.sql.created_functions import note_registered
from xmlstream.sql.flink_windows import differences_from_flink
from xmlstream.sql.query_text import QueryText, substituted
from xmlstream.sql.refused.refusals import refusal
from xmlstream.sql.statements import Statement, parse_statements
from xmlstream.sql.tables.declaration import Declaration, SinkTable, declared_source, in_zone
from xmlstream.sql.tables.stream_options import with_lists
from xmlstream.sql.tables.streams import found, frame_of
from xmlstream.sql.translation import planned, require_condition, sketched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import Session
    from xmlstream.sql.spark.analysis import WholeAnalyst


@dataclass(frozen=True, slots=True)
class ViewQuery:
    """Named query, possibly with other names for its columns."""

    name: str
    columns: tuple[str, ...]
    query: Statement


@dataclass(frozen=True, slots=True)
class Answer:
    """Query with its sink; without one, the result goes to the output of the run."""

    query: Statement
    sink: SinkTable | None = None


@dataclass(frozen=True, slots=True)
class Script:
    """Parsed file: tables by name, views in order, queries, their sources, warnings, and what declares the tables."""

    tables: Mapping[str, Node]
    views: tuple[ViewQuery, ...]
    answers: tuple[Answer, ...]
    sources: tuple[Scan, ...] = ()
    warnings: tuple[str, ...] = ()
    declarations: tuple[Declaration, ...] = ()

    @at_any_depth
    def plan(self, spark: Session, *, reads: bool = True) -> Node:
        """The plan of all queries, as written, before optimization; without `reads` the streams of Spark's stay closed.

        Raises:
            QueryError: An expression has no type, a result does not fit its sink, or Spark understands a query
                differently.
        """
        analyst, zone = analyst_of(spark), engine_of(spark).zone
        tables = dict(self.tables)
        for declaration in self.declarations:
            with declaration.placed():
                node = tables[declaration.name]
                node = tables[declaration.name] = in_zone(found(node, spark) if reads else node, zone)
            for condition in declaration.conditions():
                require_condition(condition, _source_of(node), analyst)
            with declaration.placed():
                analyst.require_table(node)
        return self._plan(lambda *given: planned(given[0], given[1], analyst, given[2]), tables, typed=True)

    @at_any_depth
    def sketch(self, notices: list[QueryError] | None = None) -> Node:
        """The plan without types, after all checks that need no Spark; adds to `notices` what is named anew.

        Raises:
            QueryError: A query uses an unsupported part of SQL, or an unknown name.
        """
        return self._plan(sketched, self.tables, notices, typed=False)

    def targets(
        self, output: str | None, row_tag: str = "row", root_tag: str = "rows", xml: Sequence[str] = ()
    ) -> tuple[Target, ...]:
        """Targets of the results, in the plan's order; a SELECT's is `output`, with its columns `xml` as elements.

        Raises:
            UsageError: There is a SELECT and no output, or an output and no SELECT.
        """
        selects = [answer for answer in self.answers if answer.sink is None]
        if selects and output is None:
            raise UsageError(
                "the result of SELECT has no output", hint="-o DIR for documents, -o - for standard output"
            )
        if output is not None and not selects:
            raise UsageError(
                f"no query writes to the output {output}", hint="leave out -o: every query has INSERT INTO"
            )
        given = Target(output or "-", Vocabulary(row_tag, root_tag, xml=tuple(xml)))
        return tuple(answer.sink.target if answer.sink else given for answer in self.answers)

    def _plan(
        self,
        planned_: Callable[[Statement, Mapping[str, Relation], list[QueryError]], Node],
        sources: Mapping[str, Node],
        notices: list[QueryError] | None = None,
        *,
        typed: bool,
    ) -> Node:
        notices = [] if notices is None else notices
        tables = {name.lower(): Relation.of(node) for name, node in sources.items()}
        for view in self.views:
            order, *limits = (view.query.tree.args.get(part) for part in ("order", "limit", "offset"))
            if order is not None and not any(limits):
                what, hint = refusal("order")
                raise view.query.text.error(what, order, hint)
            node = without_order(planned_(view.query, tables, [] if view.columns else notices))
            if view.columns and len(view.columns) != len(node.schema):
                what = f"view {view.name} names {len(view.columns)} columns of a query that has {len(node.schema)}"
                raise view.query.text.error(what, view.query.start)
            if len({column.lower() for column in view.columns}) < len(view.columns):
                raise view.query.text.error(f"view {view.name} names a column twice", view.query.start)
            tables[view.name.lower()] = Relation.of(node).aliased(view.name, view.columns)
        roots = []
        for answer in self.answers:
            is_named = answer.sink is not None and answer.sink.columns is not None
            node = planned_(answer.query, tables, [] if is_named else notices)
            if answer.sink is not None:
                node = answer.sink.fitted(node, answer.query.text, answer.query.start, typed=typed)
            roots.append(node)
        return together(roots, [answer.sink.name if answer.sink else "result" for answer in self.answers])


@at_any_depth
def read(
    text: str,
    variables: Mapping[str, str] | None = None,
    source: str | None = None,
    session: Session | None = None,
    given: Callable[[str], Node | None] = lambda name: None,
) -> Script:
    """Reads a file; errors show `source`, such as its name.

    Names that the file does not declare are those that `given` finds, else the views of a `session`.

    Raises:
        QueryError: The text is not SQL, uses an unsupported part of SQL, or an unknown name.
    """
    whole = substituted(text.removeprefix("\ufeff"), variables or {}, source)
    statements = parse_statements(whole)
    inserted = [_target(statement) for statement in statements if isinstance(statement.tree, exp.Insert)]
    targets = {table.name.lower() for table in inserted if not table.db}
    declarations = _declarations(statements, whole)
    sinks = {name: SinkTable.of(declaration) for name, declaration in declarations.items() if name in targets}
    views, answers = _queries(statements, declarations, sinks)
    tables = _tables(declarations, targets, statements, session, given)
    for query in (*(view.query for view in views), *(answer.query for answer in answers)):
        _require_unread(targets, query)
    sources_ = tuple(declaration for name, declaration in declarations.items() if name not in targets)
    named = {*declarations, *(view.name.lower() for view in views)}
    for declaration in sources_:
        declaration.require_rosters(named)
        for condition in declaration.conditions():
            require_condition(condition, _source_of(tables[declaration.name]))
    script = Script(tables, tuple(views), tuple(answers), declarations=sources_)
    notices: list[QueryError] = []
    scans = (node.operator for node in topological(script.sketch(notices)))
    sources = tuple(scan for scan in scans if isinstance(scan, Scan))
    is_flinks = any(statement.rewriting.replaced for statement in statements)
    warnings = [line for each in statements for line in differences_from_flink(each.tree, whole)] if is_flinks else []
    warnings += map(format_error, notices)
    return replace(script, sources=sources, warnings=tuple(warnings))


def has_insert(text: str, variables: Mapping[str, str]) -> bool:
    """Whether a file says where its results go; raises QueryError if it is not SQL."""
    return any(isinstance(each.tree, exp.Insert) for each in parse_statements(substituted(text, variables)))


def _queries(
    statements: Sequence[Statement], declared: Collection[str], sinks: Mapping[str, SinkTable]
) -> tuple[list[ViewQuery], list[Answer]]:
    """The views of a file and the queries whose results it wants, each in their order."""
    views: list[ViewQuery] = []
    answers: list[Answer] = []
    for statement in statements:
        match statement.tree:
            case exp.Create(args={"kind": "VIEW"}):
                views.append(_view(statement, {*declared, *(view.name.lower() for view in views)}))
            case exp.Create():
                pass
            case exp.Insert():
                answers.append(_insertion(statement, sinks, {a.sink.name for a in answers if a.sink}))
            case exp.Query():
                if any(answer.sink is None for answer in answers):
                    hint = "write INSERT INTO before each query, or put one query into the other's FROM"
                    raise statement.text.error("a second query is not supported", statement.start, hint)
                answers.append(Answer(statement))
            case _:
                raise _no_query(statement)
    if not answers:
        raise QueryError("there is no query", hint="after the tables write SELECT … FROM …")
    return views, answers


def _tables(
    declarations: Mapping[str, Declaration],
    targets: Container[str],
    statements: Sequence[Statement],
    session: Any,
    given: Callable[[str], Node | None],
) -> dict[str, Node]:
    """The sources that a file declares, and those that it reads without declaring them, as static tables."""
    is_spark = session is not None and not is_in_process(session)
    frames = partial(frame_of, session) if is_spark else None
    tables = {d.name: declared_source(d, frames) for name, d in declarations.items() if name not in targets}

    def other(name: str) -> Node | None:
        return given(name) or (table_of_session(session, name) if is_spark else None)

    declared = {name.lower(): node for name, node in tables.items()}
    for name, declaration in declarations.items():
        if name not in targets and _has_lists(declaration):
            with declaration.placed():
                tables[declaration.name] = with_lists(
                    tables[declaration.name], lambda of: declared.get(of.lower()) or other(of)
                )
    others = {name: other(name) for name in _others(statements, declarations)}
    return tables | {name: node for name, node in others.items() if node is not None}


def _has_lists(declaration: Declaration) -> bool:
    """Whether rules or domains of a table may be lists in static tables: `sid from senders`."""
    lists = (text for name, text in declaration.options.items() if name.lower() in ("punctuate", "domains"))
    return any("from" in text.lower().split() for text in lists)


def table_of_session(spark: SparkSession, name: str) -> Node | None:
    """A temporary view or table of a session as a static table; None if it has none of this name."""
    return static_frame(name, spark.table(quoted(name))) if spark.catalog.tableExists(quoted(name)) else None


def _others(statements: Sequence[Statement], declared: Collection[str]) -> list[str]:
    """The names that queries read without declaring them."""
    trees = [statement.tree for statement in statements]
    named = {each.alias.lower() for tree in trees for each in tree.find_all(exp.CTE)}
    made = [tree for tree in trees if isinstance(tree, exp.Create | exp.Insert)]
    named |= {table.name.lower() for tree in made if (table := tree.find(exp.Table)) is not None}
    read_names = dict.fromkeys(table.name for tree in trees for table in tree.find_all(exp.Table) if table.name)
    return [name for name in read_names if name.lower() not in {*declared, *named}]


def _require_unread(targets: set[str], query: Statement) -> None:
    """Refuses a query that reads what the file writes."""
    for table in query.tree.find_all(exp.Table):
        if table.name.lower() in targets:
            hint = "CREATE VIEW names a query; a separate run can read the written table"
            what = f"{table.name} is written by this query, and cannot also be read"
            raise query.text.error(what, table, hint)


def _source_of(node: Node) -> Node:
    """The source below the rules of a table."""
    return _source_of(node.inputs[0]) if node.inputs else node


def _declarations(statements: list[Statement], text: QueryText) -> dict[str, Declaration]:
    found: dict[str, Declaration] = {}
    for statement in statements:
        tree = statement.tree
        if isinstance(tree, exp.Create) and str(tree.args.get("kind")).upper() not in ("VIEW", "FUNCTION"):
            declaration = Declaration.of(tree, text)
            if declaration.name.lower() in found:
                raise text.error(f"table {declaration.name} is declared twice", tree)
            found[declaration.name.lower()] = declaration
    return found


_A_VIEW = "write only CREATE VIEW name AS SELECT …"
_VIEWS = {
    "replace": ("OR REPLACE", "a query declares each view once"),
    "exists": ("IF NOT EXISTS", "a query declares each view once"),
    "materialized": (
        "CREATE MATERIALIZED VIEW",
        "leave out MATERIALIZED; to keep the result, declare a table and write INSERT INTO",
    ),
}
"""Parts of CREATE VIEW that are not supported, with what to write instead."""


def _view(statement: Statement, taken: set[str]) -> ViewQuery:
    tree, text = statement.tree, statement.text
    is_list = isinstance(tree.this, exp.Schema)
    table = tree.this.this if is_list else tree.this
    properties = tree.args["properties"].expressions if tree.args.get("properties") else ()
    parts = [part.key.removesuffix("property") for part in properties if not isinstance(part, exp.TemporaryProperty)]
    for part in (*(part for part in _VIEWS if tree.args.get(part)), *parts):
        what, hint = _VIEWS.get(part, (f"{part.removeprefix('schema').upper()} of view {table.name}", _A_VIEW))
        raise text.error(f"{what} is not supported", table, hint)
    if table.name.lower() in taken:
        raise text.error(f"{table.name} is declared twice", table)
    if not isinstance(tree.expression, exp.Query):
        raise text.error(f"view {table.name} is not a query", table, _A_VIEW)
    columns = tuple(column.name for column in tree.this.expressions) if is_list else ()
    return ViewQuery(table.name, columns, statement.query())


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
        hint = "leave the list out, and write the items of SELECT in the order of the table's columns"
        raise text.error("a list of columns after INSERT INTO is not supported", table, hint)
    if not isinstance(table, exp.Table) or not isinstance(tree.expression, exp.Query | exp.Values):
        raise text.error("this INSERT is not supported", statement.start, _AN_INSERT)
    return table


def _insertion(statement: Statement, sinks: Mapping[str, SinkTable], taken: set[str]) -> Answer:
    table, text = _target(statement), statement.text
    if isinstance(statement.tree.expression, exp.Values):
        what, hint = refusal("values")
        raise text.error(what, statement.start, hint)
    sink = sinks.get(table.name.lower())
    if table.db:
        name = ".".join(written_name(part.name) for part in table.parts)
        sink = SinkTable(name, Target(f"catalog://{name}"), None)
    if sink is None:
        hint = "declare the sink with CREATE TABLE, or write catalog.namespace.table for a table of the session"
        raise text.error(f"there is no table {table.name}", table, hint)
    if sink.name in taken:
        what = f"a second INSERT INTO {sink.name} is not supported"
        raise text.error(what, table, "combine both queries with UNION ALL")
    return Answer(statement.query(), sink)


_CLAUSES = {
    "USING": 1,
    "OPTIONS": 0,
    "PARTITIONED BY": 0,
    "TBLPROPERTIES": 0,
    "COMMENT": 1,
    "LOCATION": 1,
    "CLUSTERED BY": 0,
}
"""The clauses of CREATE TABLE behind its columns, and how many words each has before its brackets."""


def _stray_in(statement: Statement) -> Token | None:
    """The first word of a CREATE TABLE that stands where a clause begins, and begins none."""
    found = tokens(statement.text.text[statement.start : statement.end])
    depth, left, clauses = 0, 0, False
    for token in found:
        opens, closes = token.token_type == TokenType.L_PAREN, token.token_type == TokenType.R_PAREN
        depth += opens - closes
        clauses = clauses or token.text.upper() == "USING"
        if depth or closes:
            clauses = True
        elif clauses and left:
            left -= 1
        elif clauses and token.text.upper() in {"AS", "SELECT"}:
            return None
        elif clauses and (left := _CLAUSES.get(token.text.upper(), -1)) < 0:
            return token
    return None


def _no_query(statement: Statement) -> QueryError:
    if isinstance(statement.tree, exp.Command) and (stray := _stray_in(statement)) is not None:
        option = f", {stray.text} '…'" if stray.token_type == TokenType.VAR else ""
        hint = f"options stand in OPTIONS (…), with a comma between: OPTIONS (path '…', rowTag '…'{option})"
        return statement.text.error(f"{stray.text} cannot stand here", statement.start + stray.start, hint)
    match statement.tree:
        case exp.Condition() | exp.Alias():
            what = "this is not a query"
        case exp.Command(this=name):
            what = f"{name} is not supported"
        case tree:
            what = refusal(tree)[0]
    hint = "a query is CREATE TABLE for each source, then SELECT or INSERT INTO … SELECT"
    return statement.text.error(what, statement.start, hint)


@at_any_depth
def plan_over(session: Session, text: QueryText, inputs: Mapping[str, Node]) -> Node:
    """The plan of one query over plans, by the names that the text has for these.

    Raises:
        QueryError: The text is not SQL, uses an unsupported part of SQL, or an unknown name.
    """
    note_registered(session, text.text)
    statement = parse_statements(text)[0]
    tables = {name.lower(): Relation.of(node) for name, node in inputs.items()}
    sketched(statement, tables)
    return planned(statement, tables, analyst_of(session))


def analyst_of(session: Session) -> WholeAnalyst:
    """The analyst that knows the types of expressions in a session."""
    if is_in_process(session):
        if isinstance(session.engine, AutoEngine):
            from xmlstream.sql.auto_analysis import AutoAnalyst

            return AutoAnalyst(session.engine)
        from xmlstream.sql.in_process_analysis import ProvenAnalyst

        return ProvenAnalyst(session.engine.zone)
    from xmlstream.sql.spark.analysis import SparkAnalyst

    return SparkAnalyst(session)
