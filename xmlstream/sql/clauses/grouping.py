"""SELECT list, GROUP BY and HAVING as nodes of a plan: computed keys, aggregates, and expressions over both.

The entries of the SELECT list become items. Keys are computed below the operator that groups, expressions over its
aggregates and HAVING above it. A name in GROUP BY is an attribute, or else an alias; a number refers to an item. HAVING
may use an item's alias.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from xmlstream.dataclasses import dataclass
from xmlstream.operators.expressions.aggregates import Aggregate
from xmlstream.operators.expressions.dialect import call_name, named, render
from xmlstream.operators.expressions.type_rules import whole_number
from xmlstream.operators.group_by import GroupBy
from xmlstream.operators.session import Session
from xmlstream.plan.nodes import Names, Node
from xmlstream.punct_ns.schema import END, START, Attribute
from xmlstream.sql.clauses.plan_builder import keyed, select_items, where, with_time
from xmlstream.sql.clauses.relation import AS_IT_GOES_OUT, Item, Relation, require_no_quoted_name, resolve, window_of
from xmlstream.sql.clauses.time_windows import Sessions
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.spark.analysis import Analyst
from xmlstream.sql.spark.functions import aggregates_in, is_aggregate


def grouped(tree: exp.Select, listed: SelectList, sessions: Sessions | None, analyst: Analyst) -> Relation:
    """The relation of the groups of a SELECT, of which `listed` has the items; the ends of `sessions` must be keys.

    Raises:
        QueryError: An attribute is neither a key nor aggregated, or an aggregate contains another.
    """
    text, group, condition = listed.text, tree.args.get("group"), tree.args.get("having")
    trees = () if group is None else listed.keys(group.expressions)
    if group is not None and group.args.get("all"):
        trees = tuple(item.tree.unnest() for item in listed.items if not aggregates_in(item.tree))
    having = [] if condition is None else [listed.having(condition.this, trees)]
    for inner in aggregates_in(*trees):
        raise text.error("an aggregate in GROUP BY is not supported", inner, "group by attributes of a tuple")
    node, keys = keyed(listed.relation.node, trees, listed.items, analyst)
    aggregates = aggregates_of(listed, having, node, tuple(keys.values()), analyst)
    answers = tuple(aggregates.values())
    if sessions is None:
        groups = Node(GroupBy(tuple(keys.values()), answers), (node,), "group_by")
    else:
        others = tuple(key for key in keys.values() if key not in sessions.ends)
        if len(keys) - len(others) < len(sessions.ends):
            raise sessions.not_grouped_by(text)
        operator = Session(sessions.moment, sessions.gap, others, answers, sessions.name, sessions.days)
        groups = Node(operator, (node,), "session")
    names = keys | {written: answer.attribute.name for written, answer in aggregates.items()}
    used = (column for each in (*listed.trees, *having) for column in each.find_all(exp.Column))
    if any(column.name == AS_IT_GOES_OUT for column in used):
        groups = with_time(groups)
        names[render(named(AS_IT_GOES_OUT))] = groups.schema.names[-1]
    relation = Relation.of(groups)
    for each in having:
        relation = where(relation, over_groups(each, names, text), analyst)
    named_ = {item.name for item in listed.items}
    items = []
    for item in listed.items:
        written = render(item.tree.unnest())
        if (name := item.name or names.get(written)) in named_ and item.name is None:
            name = analyst.columns(node.schema, [written])[0][0]  # another item gives the aggregate its name
        items.append(Item(name, over_groups(item.tree, names, text)))
    return select_items(relation.node, items, analyst)


def aggregates_of(
    listed: SelectList, having: Sequence[exp.Expr], node: Node, keys: tuple[str, ...], analyst: Analyst
) -> dict[str, Aggregate]:
    """The aggregates of the items and of HAVING, each once, by SQL; an aggregate that is an item has its name."""
    wanted: dict[str, str | None] = {}
    for name, whole in (*((item.name, item.tree) for item in listed.items), *(("aggregate", tree) for tree in having)):
        for tree in aggregates_in(whole):
            for below in tree.walk():
                if below is not tree and below is not tree.this and is_aggregate(below):
                    hint = "compute the inner one in a subquery"
                    raise listed.text.error("an aggregate within an aggregate is not supported", below, hint)
            own = name if whole.unnest() is tree else "aggregate"
            if wanted.setdefault(render(tree), own) == "aggregate":
                wanted[render(tree)] = own
    if not wanted and not keys:
        wanted["count(*)"] = "aggregate"  # the one group is there, whatever the query selects
    answers = analyst.columns(node.schema, list(wanted))
    taken = Names(keys)
    found: dict[str, Aggregate] = {}
    for (text, name), (by_itself, domain) in zip(wanted.items(), answers, strict=True):
        found[text] = Aggregate(Attribute(taken.take(name or by_itself), domain), text)
    if computed := [each.computed for text, each in found.items() if each.computed != text]:
        analyst.columns(node.schema, computed)  # the engine has to order their values, too
    return found


OF_GROUP_BY = ("a key of GROUP BY", "name it in GROUP BY, or aggregate it")


def over_groups(
    tree: exp.Expr, names: Mapping[str, str], text: QueryText, of: tuple[str, str] = OF_GROUP_BY
) -> exp.Expr:
    """The expression over the groups' attributes: keys and aggregates are replaced by their names.

    Args:
        tree: An expression over tuples.
        names: The attribute of each key and each aggregate, by its SQL.
        text: Text of the query, for errors.
        of: For the error about any other attribute, what a key is, and a hint.
    """
    whole = tree.copy()
    leaves, longest = _leaves(whole), max(map(len, names), default=0)

    def over(node: exp.Expr) -> exp.Expr:
        # An expression has no fewer characters than leaves: one of more is none of these.
        if leaves[id(node)] <= longest and (name := names.get(render(node))) is not None:
            return named(name)
        if isinstance(node, exp.Column):
            key, hint = of
            if (called := node.name.partition(".")[0]) in ("window", "session_window"):
                hint += f"; for windows in this GROUP BY, write the whole call {called}(…)"
            raise text.error(f"{node.name} is neither {key} nor aggregated", node, hint)
        return node

    return whole.transform(over, copy=False)


def _leaves(tree: exp.Expr) -> dict[int, int]:
    """The number of leaves of each part of a tree, by its identity."""
    leaves: dict[int, int] = {}
    for node in reversed([*tree.walk()]):
        leaves[id(node)] = sum(leaves[id(below)] for below in node.iter_expressions()) or 1
    return leaves


@dataclass(frozen=True, slots=True)
class SelectList:
    """The items of a SELECT over a relation, in order."""

    relation: Relation
    text: QueryText
    items: tuple[Item, ...]

    @staticmethod
    def of(entries: Sequence[exp.Expr], relation: Relation, text: QueryText) -> SelectList:
        """The items for the entries of a SELECT list.

        Raises:
            QueryError: A name is unknown.
        """
        return SelectList(relation, text, tuple(item for entry in entries for item in _items(entry, relation, text)))

    @property
    def trees(self) -> list[exp.Expr]:
        """The items' expressions."""
        return [item.tree for item in self.items]

    def keys(self, entries: Sequence[exp.Expr]) -> tuple[exp.Expr, ...]:
        """The keys for the entries of GROUP BY, over the relation's attributes.

        Raises:
            QueryError: A name or a number is unknown.
        """
        return tuple(key for entry in entries for key in self._key(entry))

    def having(self, condition: exp.Expr, keys: Sequence[exp.Expr]) -> exp.Expr:
        """HAVING over the node's attributes: a name is a key, else an item; within aggregates, an attribute."""
        key_names = {key.name.lower() for key in keys if isinstance(key, exp.Column)}
        within = {name.name.lower() for key in keys for name in key.find_all(exp.Column)} - key_names

        def chosen(node: exp.Expr) -> exp.Expr:
            if is_aggregate(node):
                return resolve(node, self.relation, self.text)
            require_no_quoted_name(node, self.relation, self.text)
            if (aliased := self._called(node)) is None:
                return resolve(node, self.relation, self.text) if isinstance(node, exp.Column) else node
            found = {field.attribute.lower() for field in self.relation.find(node.name)}
            if found & key_names:
                return resolve(node, self.relation, self.text)
            if found & within:
                what = f"{node.name} is ambiguous: it names an item of SELECT and an attribute"
                raise self.text.error(what, node, "give the item another name with AS")
            return aliased.copy()

        return condition.copy().transform(chosen, copy=False)

    def _key(self, key: exp.Expr) -> list[exp.Expr]:
        """Keys for an entry: an item by number, an attribute, an alias or an expression; for a window, its ends."""
        if isinstance(key, exp.Literal) and not key.is_string:
            number, entries = whole_number(key) or 0, _entries(self.items)
            if not 1 <= number <= len(entries):
                hint = f"give the number of an item in SELECT, at most {len(entries)}"
                raise self.text.error(f"there is no item {key.this} to group by", key, hint)
            return [item.tree for item in entries[number - 1]]
        if (window := window_of(key, self.relation)) is not None:
            return [named(field.attribute) for field in window]
        if not self.relation.find(key.name):
            if (aliased := self._called(key)) is not None:
                return [aliased]
            ends = {f"{key.name}{end}".lower() for end in (START, END)} if isinstance(key, exp.Column) else set()
            if len(found := [item.tree for item in self.items if (item.name or "").lower() in ends]) == 2:
                return found
        return [resolve(key, self.relation, self.text)]

    def _called(self, tree: exp.Expr) -> exp.Expr | None:
        """The item whose alias a bare name is."""
        if not isinstance(tree, exp.Column) or len(tree.parts) > 1:
            return None
        found = [item.tree for item in self.items if item.name is not None and item.name.lower() == tree.name.lower()]
        return found[0] if len(found) == 1 else None


def _items(written: exp.Expr, relation: Relation, text: QueryText) -> list[Item]:
    """The items for one entry of SELECT, several for a star."""
    star = written.this if isinstance(written, exp.Column) else written
    if isinstance(star, exp.Star):
        return _all(star, written, relation, text)
    tree, name = (written.this, written.alias) if isinstance(written, exp.Alias) else (written, None)
    if name is None and isinstance(tree, exp.Column | exp.Dot):
        name = tree.name
    if (window := window_of(tree, relation)) is not None:
        ends = zip((START, END), window, strict=True)
        return [Item(f"{name}{end}", named(field.attribute)) for end, field in ends]
    if name is None and call_name(tree) == "window_time":
        name = render(tree).replace("`", "")
    return [Item(name, resolve(tree.unnest(), relation, text))]


def _all(star: exp.Star, written: exp.Expr, relation: Relation, text: QueryText) -> list[Item]:
    table = written.table if isinstance(written, exp.Column) else None
    fields = relation.fields_of(table or None)
    if table and not fields:
        raise text.error(f"there is no table {table} in FROM", written, "of a structure, list the fields: p.a, p.b")
    left_out = set()
    for column in star.args.get("except_") or ():
        if not relation.find(column.name, table or None):
            raise text.error(f"there is no attribute {column.name} to leave out", column)
        left_out.add(column.name.lower())
    starred = [field for field in fields if field.starred]
    return [Item(field.name, named(field.attribute)) for field in starred if field.name.lower() not in left_out]


def _entries(items: Sequence[Item]) -> list[list[Item]]:
    """The items grouped by their numbers: a window's start and end share one."""
    found: list[list[Item]] = []
    for item in items:
        before = found[-1][-1].name if found else None
        if before and item.name and before.endswith(START) and item.name == f"{before.removesuffix(START)}{END}":
            found[-1].append(item)
        else:
            found.append([item])
    return found
