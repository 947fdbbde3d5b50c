"""Translation of a query from its tree to its plan, clause by clause, FROM first and ORDER BY last.

`sketched` runs first: it finds errors in the text and its names without Spark. `planned` gets the types from Spark.
Both walk the same clauses. Names are compared without case, as in Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from sqlglot import exp

from xmlstream.operators.expressions.dialect import READ_SPECIALLY, call_name, offset, render
from xmlstream.operators.expressions.operations.python_functions import as_written, known_by
from xmlstream.operators.expressions.operations.spark_type import NotProven
from xmlstream.operators.expressions.type_rules import whole_number
from xmlstream.operators.sort_order import SortKey
from xmlstream.plan.nodes import Node, narrowed
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.schema import structured
from xmlstream.punct_ns.slices import own
from xmlstream.sql.clauses.current_time import by_field, split, stamped, with_clock
from xmlstream.sql.clauses.from_clause import From, element_relation, exploded, with_exploded
from xmlstream.sql.clauses.group_functions import applied
from xmlstream.sql.clauses.grouping import SelectList, grouped, rows_of_groups
from xmlstream.sql.clauses.joining import hinted
from xmlstream.sql.clauses.plan_builder import (
    ARRIVAL,
    combined_relation,
    distinct,
    finished,
    ordered,
    select_items,
    sort_key,
    where,
)
from xmlstream.sql.clauses.ranking import qualified, ranked, settled
from xmlstream.sql.clauses.relation import Relation, clock_calls, require_no_quoted_name, resolve, trees_of, window_of
from xmlstream.sql.clauses.result_order import keys_among, limited, require_plain, without_hidden
from xmlstream.sql.clauses.row_windows import windowed
from xmlstream.sql.clauses.subqueries import Subqueries, parted_conditions, require_own_names
from xmlstream.sql.clauses.time_windows import Sessions, in_windows
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.refused.supported import require_supported
from xmlstream.sql.spark.analysis import Analyst, NamesOnly, WholeAnalyst
from xmlstream.sql.spark.functions import EXPLODES, RANKS, aggregates_in, call_of_groups, function_of
from xmlstream.sql.statements import Statement, parse_statements

Tables = Mapping[str, Relation]
"""Relations by their names in lower case."""


class Translation:
    """Translates one query with an analyst; errors point into its text.

    With `notices`, attributes of the result may have one name: they get new ones, which a notice says.
    """

    def __init__(self, text: QueryText, analyst: Analyst, notices: list[QueryError] | None = None) -> None:
        self._text, self._analyst, self._notices = text, analyst, notices
        self._keys: dict[int, tuple[exp.Expr, list[int | None]]] = {}  # of SELECTs: the items of the keys of ORDER BY

    def plan(self, tree: exp.Expr, tables: Tables) -> Node:
        """The plan of a query that passed `require_supported`; `tables` are in scope, by names in lower case.

        Raises:
            QueryError: A name is unknown, or an expression has no type.
        """
        relation = self._with_keys(tree, tables).whole()
        if tree.args.get("order") is None:
            return finished(relation, self._analyst, self._text, tree, self._notices)
        shown = without_hidden(relation)
        # In front, the attributes have the names that they have without ORDER BY.
        whole = Relation(relation.node, (*shown.fields, *(f for f in relation.fields if f not in shown.fields)))
        node = finished(whole, self._analyst, self._text, tree, self._notices)
        attributes = {f.attribute: name for f, name in zip(whole.fields, node.schema.names, strict=True)}
        keys = [replace(key, attribute=attributes[key.attribute]) for key in self._sort_keys(tree, relation)]
        return narrowed(ordered(node, keys), node.schema.names[: len(shown.fields)])

    def _sort_keys(self, tree: exp.Expr, relation: Relation) -> list[SortKey]:
        """The sort keys of a query's ORDER BY; those that `_keys` has placed are attributes of these items."""
        keys = [] if tree.args.get("order") is None else tree.args["order"].expressions
        found: list[SortKey] = []
        _, places = self._keys.get(id(tree), (tree, [None] * len(keys)))
        for key, place in zip(keys, places, strict=True):
            if place is None:
                found += self._sort_key(key, relation)
            else:
                found.append(sort_key(relation.fields[place].attribute, key))
        return found

    def _sort_key(self, key: exp.Ordered, relation: Relation) -> list[SortKey]:
        """Sort keys for an attribute of the result, given by name or number; a window has two."""
        tree, fields = key.this.unnest(), without_hidden(relation).fields
        require_no_quoted_name(tree, relation, self._text)
        if (number := whole_number(tree)) is not None:
            if not 1 <= number <= len(fields):
                hint = f"give the number of an attribute of the result, at most {len(fields)}"
                raise self._text.error(f"there is no item {tree.this} to order by", tree, hint)
            names = [fields[number - 1].attribute]
        elif isinstance(tree, exp.Column) and (found := relation.find(_dotted(tree))):
            if len(found) > 1:
                what = f"{tree.name} is ambiguous: several attributes have this name"
                raise self._text.error(what, tree, "rename them with AS")
            names = [found[0].attribute]
        elif (window := window_of(tree, relation)) is not None:
            names = [field.attribute for field in window]
        else:
            hint = "select it with a name, and order by that name"
            raise self._text.error("ORDER BY of a UNION takes attributes of the result", tree, hint)
        return [sort_key(name, key) for name in names]

    def _query(self, tree: exp.Expr, tables: Tables) -> Relation:
        """The relation of a query; its rank may be open."""
        relation = self._with_keys(tree, tables)
        return relation if tree.args.get("order") is None else without_hidden(relation)

    def _with_keys(self, tree: exp.Expr, tables: Tables) -> Relation:
        """The relation of a query, with the keys that ORDER BY alone needs."""
        reach = self._with(tree, tables)
        match tree:
            case exp.Select():
                relation = self._select(tree, reach)
            case exp.SetOperation():
                relation = self._set_operation(tree, reach)
            case exp.Subquery() | exp.Table():
                relation = self._source(tree, reach)
            case _:
                raise self._text.error("not a query", tree)
        n, after = (
            whole_number(part.expression) if (part := tree.args.get(at)) else None for at in ("limit", "offset")
        )
        if n is None and not after:
            return relation
        return limited(relation.whole(), n, after or 0, self._sort_keys(tree, relation), self._analyst)

    def _settled(self, tree: exp.Expr, tables: Tables) -> Relation:
        return self._query(tree, tables).whole()

    def _with(self, tree: exp.Expr, tables: Tables) -> Tables:
        """The tables in scope, plus the queries in WITH; each of these sees those before it."""
        reach = dict(tables)
        for subquery in tree.args["with_"].expressions if tree.args.get("with_") else ():
            relation = self._query(subquery.this, reach)
            reach[subquery.alias.lower()] = self._called(relation, subquery.args["alias"])
        return reach

    def _source(self, tree: exp.Expr, reach: Tables) -> Relation:
        """The relation of an entry of FROM: a table or a query in brackets, possibly with an alias."""
        alias = tree.args.get("alias")
        if isinstance(tree, exp.Subquery):
            relation = self._query(tree.this, self._with(tree, reach))
            relation = relation.aliased(None) if isinstance(tree.this, exp.Select | exp.SetOperation) else relation
        else:
            if (found := reach.get(tree.name.lower())) is None:
                if not tree.name:
                    what, hint = "a query in FROM lacks its parentheses", "write FROM (SELECT … UNION SELECT …)"
                    raise self._text.error(what, tree, hint)
                known = ", ".join(sorted(reach)) or "none"
                raise self._text.error(f"there is no table {tree.name}", tree, f"the declared tables are: {known}")
            relation = found.aliased(tree.name)
        relation = self._called(relation, alias) if alias else relation
        if not (joins := tree.args.get("joins")):
            return relation
        others = [(join, self._source(join.this, reach).whole()) for join in joins]
        return From(self._text, self._analyst).relation(relation.whole(), others, None)

    def _called(self, relation: Relation, alias: exp.TableAlias) -> Relation:
        columns = tuple(column.name for column in alias.args.get("columns") or ())
        if columns and len(columns) != len(relation.fields):
            raise self._text.error(
                f"{alias.name} names {len(columns)} columns of a table that has {len(relation.fields)}", alias
            )
        return relation.aliased(alias.name or None, columns)

    def _set_operation(self, tree: exp.SetOperation, reach: Tables) -> Relation:
        left, right = self._settled(tree.this, reach), self._settled(tree.expression, reach)
        if len(left.fields) != len(right.fields):
            what = f"{tree.key.upper()} of {len(left.fields)} columns with {len(right.fields)}"
            hint = "both sides need the same number of columns, which correspond by position"
            raise self._text.error(what, tree.expression, hint)
        sides, is_distinct = [left.aliased(None), right], bool(tree.args.get("distinct"))
        whole = combined_relation(tree.key, sides, self._analyst, all_=not is_distinct)
        return distinct(whole, self._analyst, "union") if is_distinct and isinstance(tree, exp.Union) else whole

    def _select(self, tree: exp.Select, reach: Tables) -> Relation:
        relation, _ = self._from_and_where(tree, reach)
        if isinstance(tree.expressions[0], exp.Anonymous) and (call := call_of_groups(tree)) is not None:
            return applied(call, relation, self._analyst, self._text)
        written = tree
        if any(item.find(exp.Query) for item in tree.expressions):
            tree, relation = self._subqueries(reach).items(tree, relation)
        if any(call_name(item.unalias()) in EXPLODES for item in tree.expressions):
            tree, relation = with_exploded(tree, relation, self._analyst, self._text)
        if clock_calls(trees_of(tree), relation):
            tree, relation = stamped(tree, relation)
        tree, relation, sessions = in_windows(tree, relation, self._analyst, self._text)
        listed = SelectList.of(tree.expressions, relation, self._text)
        if tree.args.get("order") is not None:
            listed, places = keys_among(listed, tree.args["order"])
            self._keys[id(written)] = written, places
            require_plain(tree, listed, self._text)
        selected = self._selected(tree, listed, sessions)
        return distinct(selected.whole(), self._analyst) if tree.args.get("distinct") else selected

    def _subqueries(self, reach: Tables) -> Subqueries:
        def within(query: exp.Select, around: Relation) -> tuple[Relation, list[exp.Expr]]:
            return self._from_and_where(query, self._with(query, reach), around)

        return Subqueries(self._text, self._analyst, within, lambda query: self._settled(query, reach))

    def _from_and_where(
        self, tree: exp.Select, reach: Tables, around: Relation | None = None
    ) -> tuple[Relation, list[exp.Expr]]:
        """The joined tables with the elements of their arrays, filtered by WHERE.

        The conditions of WHERE on a relation `around` the query are returned, and do not filter.
        """
        joins, views = tree.args.get("joins") or [], tree.args.get("laterals") or []
        sources = [self._source(part.this, reach) for part in (tree.args["from_"], *joins)]
        scope = sources[0].beside(*sources[1:])
        scope = replace(scope, fields=(*scope.fields, *map(element_relation, views)))
        condition = None if tree.args.get("where") is None else tree.args["where"].this
        with_subqueries, correlated = list[exp.Expr](), list[exp.Expr]()
        if around is not None or (condition is not None and condition.find(exp.Query)):
            require_own_names((on for join in joins if (on := join.args.get("on"))), scope, around, self._text)
            parts = parted_conditions(condition, scope, around)
            condition, with_subqueries, correlated = parts.own, parts.with_subqueries, parts.correlated
        if condition is not None and (found := aggregates_in(condition)):
            hint = "write a condition on groups in HAVING"
            raise self._text.error("an aggregate in WHERE is not supported", found[0], hint)
        of_time = None
        if condition is not None and clock_calls([condition], scope):
            of_time, condition = split(condition, sources)
        bounded, rest = sources, condition
        if any(source.rank is not None for source in sources):
            bounded, rest = settled(sources, joins, condition, self._text)
        begin, *others = bounded
        pairs = list(zip(joins, others, strict=True))
        relation = From(self._text, self._analyst).relation(begin, pairs, None if views else rest)
        for view in views:
            relation = exploded(relation, view, self._analyst, self._text)
        if views and rest is not None:
            relation = where(relation, resolve(rest, relation, self._text), self._analyst)
        if tree.args.get("hint") is not None:
            relation = hinted(relation, tree, sources, self._text)
        if with_subqueries:
            relation = self._subqueries(reach).selected(relation, with_subqueries)
        if of_time is None:
            return relation, correlated
        clocked = with_clock(relation)
        resolved = resolve(by_field(of_time, clocked), clocked, self._text)
        return Relation(where(clocked, resolved, self._analyst).node, relation.fields), correlated

    def _selected(self, tree: exp.Select, listed: SelectList, sessions: Sessions | None) -> Relation:
        """The relation of the items: over rows, of groups, or of each tuple."""
        is_qualified, has_groups = tree.args.get("qualify") is not None, any(map(tree.args.get, ("group", "having")))
        if has_groups and (is_qualified or any(item.tree.find(exp.Window) for item in listed.items)):
            self._require_none(tree, "group in one query, and select its rows in another")
            listed, has_groups = rows_of_groups(tree, listed, sessions, self._analyst), False
        trees = [item.tree for item in listed.items]
        windows = [window for each in trees for window in each.find_all(exp.Window)]
        ranks = [each for each in trees if isinstance(each, exp.Window) and function_of(each) in RANKS]
        if windows and not (is_qualified or len(ranks) == len(windows) == 1):
            return windowed(listed.relation, listed.items, self._analyst, self._text)
        if len(ranks) < len(windows):
            self._require_none(tree, "compute OVER in one query, and select its rows in another")
        if windows or is_qualified:
            return qualified(listed, tree, self._analyst) if is_qualified else ranked(listed, self._analyst)
        if has_groups or aggregates_in(*trees):
            return grouped(tree, listed, sessions, self._analyst)
        return select_items(listed.relation.node, listed.items, self._analyst)

    def _require_none(self, tree: exp.Select, hint: str) -> None:
        if (found := tree.args.get("qualify")) is not None:
            raise self._text.error("OVER beside QUALIFY is not supported", found, hint)


def sketched(query: Statement, tables: Tables, notices: list[QueryError] | None = None) -> Node:
    """The query's plan without types, after all checks that need no Spark; `notices` as in `Translation`.

    Raises:
        QueryError: The query uses an unsupported part of SQL, or an unknown name.
    """
    require_supported(query.tree, query.text)
    _read_arrival(query, tables)
    try:
        return Translation(query.text, NamesOnly(), notices).plan(query.tree, tables)
    except QueryError as error:
        if (hint := _of_the_alias(error, query)) is None:
            raise
        raise QueryError(error.what, line=error.line, column=error.column, where=error.where, hint=hint) from None


def _of_the_alias(error: QueryError, query: Statement) -> str | None:
    """What to write for the unknown name at the place of an error that is an alias in the same SELECT."""
    for column in query.tree.find_all(exp.Column):
        at, select = offset(column), column.find_ancestor(exp.Select)
        if at is None or select is None or error.what != f"there is no attribute {column.name}":
            continue
        aliases = [item for item in select.expressions if item.alias.lower() == column.name.lower()]
        if aliases and query.text.place(at)[1:] == (error.line, error.column):
            if column.find_ancestor(exp.Where) and (aliases[0].find(exp.Window) or aggregates_in(aliases[0].this)):
                around = "HAVING" if not aliases[0].find(exp.Window) else "SELECT … FROM (SELECT …) WHERE"
                return f"{column.name} is computed after WHERE: write {around} {column.name} …"
            meant = query.text.before_alias(aliases[0]) or render(aliases[0].this).replace("`", "")
            meant = f"({meant})" if isinstance(aliases[0].this, exp.Binary) else meant
            return f"{column.name} is an alias of this SELECT, not known here: write {meant}"
    return None


def _read_arrival(query: Statement, tables: Tables) -> None:
    """Replaces the name `arrival` in ORDER BY of functions over rows, in the query's tree and in its text for Spark.

    An attribute of one of the query's tables, or an alias in the query, with this name is meant instead.

    Raises:
        QueryError: `arrival` descends, is beside other keys, or orders another function than ROW_NUMBER.
    """
    tree, used = query.tree, _used(query, tables).values()
    renamed = [column for alias in tree.find_all(exp.TableAlias) for column in alias.args.get("columns") or ()]
    names = [*(alias.alias for alias in tree.find_all(exp.Alias)), *(column.name for column in renamed)]
    if any(relation.find(_ARRIVAL) for relation in used) or _ARRIVAL in map(str.lower, names):
        return
    for window in tree.find_all(exp.Window):
        keys = [] if window.args.get("order") is None else window.args["order"].expressions
        for key in keys:
            column = key.this
            is_bare = isinstance(column, exp.Column) and len(column.parts) == 1 and not column.this.quoted
            if not is_bare or column.name.lower() != _ARRIVAL:
                continue
            if function_of(window) != "row_number" or len(keys) > 1 or key.args.get("desc"):
                what = "arrival orders the rows of ROW_NUMBER() only, ascending and as the only key"
                raise query.text.error(what, column, _FIRST_COME)
            place = column.this.meta
            query.rewriting.replaced.append(
                (place["start"], place["end"] + 1, query.text.standing(render(ARRIVAL), place["start"]))
            )
            key.set("this", ARRIVAL.copy())


_ARRIVAL = "arrival"
_FIRST_COME = (
    "write ROW_NUMBER() OVER (PARTITION BY id ORDER BY arrival); for other functions ORDER BY an attribute, or number"
    " the rows of an input that ends:"
    " last_value(v, true) OVER (ORDER BY n) … FROM (SELECT *, row_number() OVER (ORDER BY arrival) AS n FROM s)"
)


def planned(query: Statement, tables: Tables, analyst: WholeAnalyst, notices: list[QueryError] | None = None) -> Node:
    """The plan of a query that passed `sketched`; share one analyst among queries over the same tables.

    Raises:
        QueryError: An expression has no type, or Spark understands the query differently.
    """
    with _placed(query):
        used = {name: relation.schema for name, relation in _used(query, tables).items()}
        types = analyst.require_faithful(query, used)
        root = Translation(query.text, analyst, notices).plan(query.tree, tables)
    if types is None:
        return root
    # In Spark's form a window is a structure.
    found = [Domain(type_.removesuffix(" NOT NULL")).type for _, type_ in structured(root.schema)]
    if [*map(_comparable, found)] != [*map(_comparable, types)]:
        raise query.text.error(f"the result has types {found}, but Spark finds {types}", query.start)
    return root


def require_condition(condition: QueryText, node: Node, analyst: WholeAnalyst | None = None) -> None:
    """Checks the condition of a rule on the rows of a node; without an analyst all but its types.

    Raises:
        QueryError: It is not a condition on one row, not a BOOLEAN, or uses an unsupported part of SQL or an
            unknown name.
    """
    # It is checked as WHERE of a query; what is put around it has its place.
    # Two brackets, since Spark reads `t WHERE (a)` as a table with other names.
    before, after = (condition.standing(text, 0) for text in (f"SELECT * FROM {_ROW} WHERE ((", "\n))"))
    query, *more = parse_statements(QueryText.joined([before, condition, after]))
    clauses = {clause for clause, value in query.tree.args.items() if value}
    if more or not isinstance(query.tree, exp.Select) or clauses != {"expressions", "from_", "where"}:
        raise condition.error(f"'{condition.text}' is not one condition", 0, _OF_ONE_ROW)
    where_, relation = query.tree.args["where"].this, Relation.of(node)
    beyond = [*where_.find_all(exp.Query, exp.Window), *aggregates_in(where_), *clock_calls([where_], relation)]
    beyond += [call for call in where_.find_all(exp.Anonymous) if known_by(call_name(call)) is not None]
    if beyond:
        what = f"{as_written(render(beyond[0]))} cannot stand in the condition of a rule, which sees one row at a time"
        raise query.text.error(what, beyond[0], _OF_ONE_ROW)
    sketched(query, {_ROW: relation})
    if analyst is not None:
        planned(query, {_ROW: relation}, analyst)


_ROW = own("row")
_OF_ONE_ROW = "write a condition on the attributes of the row: end of auction, when status = 'closed'"


@contextmanager
def _placed(query: Statement) -> Iterator[None]:
    """Points errors of planning at the function that they name, or at the beginning of the query."""
    try:
        yield
    except QueryError as error:
        if error.where is not None:
            raise
        named_, refused = _OF_A_FUNCTION.match(error.what), error.tree if isinstance(error, NotProven) else None
        name, shape = None if named_ is None else named_[1], None if refused is None else _shape(refused)
        nodes = list(query.tree.walk())
        alike = [node for node in nodes if shape is not None and _shape(node) == shape]
        alike += [node for node in nodes if name is not None and as_written(call_name(node)) == name]
        at = next((start for node in alike if (start := offset(node)) is not None), query.start)
        if (before := _READ_SPECIALLY.search(query.text.text, 0, at)) is not None:
            at = before.start()
        written = re.match(r"(\w+)\s*\(", query.text.text[at:])  # `position(…)` is read as another function
        what = error.what if name is None or not written else error.what.replace(name, written[1].lower(), 1)
        raise query.text.error(what, at, error.hint) from None
    except ValueError as error:  # a type or a literal of Spark that is not supported here
        raise query.text.error(str(error), query.start) from None


def _shape(tree: exp.Expr) -> str:
    """The SQL of an expression with the bare names of its attributes."""
    return render(tree.transform(lambda node: exp.column(node.name) if isinstance(node, exp.Column) else node)).lower()


_READ_SPECIALLY = re.compile(rf"\b(?:{'|'.join(READ_SPECIALLY)})\s*\(\s*$", re.IGNORECASE)
_OF_A_FUNCTION = re.compile(r"the function (\w+) ")


def _used(query: Statement, tables: Tables) -> dict[str, Relation]:
    """The tables that a query reads."""
    names = (table.name.lower() for table in query.tree.find_all(exp.Table))
    return {name: tables[name] for name in names if name in tables}


def _dotted(column: exp.Column) -> str:
    """The whole name of an attribute such as `window.start`."""
    return ".".join(part.name for part in column.parts)


def _comparable(type_: str) -> str:
    """A type without NOT NULL of fields, which Spark does not report."""
    return type_.upper().replace(" NOT NULL", "")
