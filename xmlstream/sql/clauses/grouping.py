"""SELECT list, GROUP BY and HAVING as nodes of a plan: computed keys, aggregates, and expressions over both.

The entries of the SELECT list become items. Keys are computed below the operator that groups, expressions over its
aggregates and HAVING above it. A name in GROUP BY is an attribute, or else an alias; a number refers to an item. HAVING
may use an item's alias.

    GROUP BY ROLLUP (a, b)    GROUP BY a, b UNION ALL GROUP BY a, with null for b UNION ALL all tuples, if there are any

Each set of keys is a group-by of its own, whose groups come as soon as they are closed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import compress, product

from sqlglot import exp

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.expressions.aggregates import Aggregate
from xmlstream.operators.expressions.dialect import call_name, cast_to, expression, named, render
from xmlstream.operators.expressions.type_rules import whole_number
from xmlstream.operators.group_by import GroupBy
from xmlstream.operators.session import Session
from xmlstream.plan.nodes import Names, Node, unique
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.schema import END, START, Attribute
from xmlstream.punct_ns.slices import own, quoted
from xmlstream.sql.clauses.joining import type_of
from xmlstream.sql.clauses.plan_builder import combined_relation, keyed, select_items, where, with_time
from xmlstream.sql.clauses.relation import AS_IT_GOES_OUT, Item, Relation, require_no_quoted_name, resolve, window_of
from xmlstream.sql.clauses.time_windows import Sessions
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.spark.analysis import Analyst
from xmlstream.sql.spark.functions import GROUPING, OF_SETS, aggregates_in, is_aggregate


def grouped(tree: exp.Select, listed: SelectList, sessions: Sessions | None, analyst: Analyst) -> Relation:
    """The relation of the groups of a SELECT, of which `listed` has the items; the ends of `sessions` must be keys.

    Raises:
        QueryError: An attribute is neither a key nor aggregated, or an aggregate contains another.
    """
    trees, having, sets = _clauses(tree, listed)
    if sets is None:
        return _groups(listed, trees, having, sessions, analyst)
    if len(sets) > MOST_SETS:
        what = f"GROUP BY of {len(sets)} sets of keys is not supported"
        hint = f"list those that you need, at most {MOST_SETS}, in GROUPING SETS (…)"
        raise listed.text.error(what, tree.args["group"], hint)
    parts = [_groups(listed, listed.keys(each), having, sessions, analyst, trees) for each in sets]
    return combined_relation("union", parts, analyst) if len(parts) > 1 else parts[0]


def rows_of_groups(tree: exp.Select, listed: SelectList, sessions: Sessions | None, analyst: Analyst) -> SelectList:
    """The items of a SELECT that groups, over its groups: functions with OVER are left to compute from these.

    Raises:
        QueryError: As for `grouped`; or GROUP BY has several sets of keys.
    """
    trees, having, sets = _clauses(tree, listed)
    windows = {render(window): window for each in listed.trees for window in each.find_all(exp.Window)}
    if sets is not None:
        hint = "group in a subquery, and compute OVER from its result"
        raise listed.text.error(
            "OVER beside GROUPING SETS, CUBE or ROLLUP is not supported", next(iter(windows.values())), hint
        )
    places = {written: own(f"over_{number}") for number, written in enumerate(windows)}

    def placed(node: exp.Expr) -> exp.Expr:
        return named(places[render(node)]) if isinstance(node, exp.Window) else node

    items = tuple(Item(item.name, item.tree.copy().transform(placed, copy=False)) for item in listed.items)
    parts = [part for window in windows.values() for part in _parts_of(window)]
    relation, names, _ = _of_keys(replace(listed, items=items), trees, having, sessions, analyst, parts)
    over = dict[str, exp.Expr]()
    for written, window in windows.items():
        over[places[written]] = whole = window.copy()
        for part in _parts_of(whole):
            part.replace(over_groups(part, names, listed.text))
    names |= {render(named(place)): place for place in over}

    def back(node: exp.Expr) -> exp.Expr:
        return over[node.name].copy() if isinstance(node, exp.Column) and node.name in over else node

    whole_items = (
        Item(item.name or names.get(render(item.tree.unnest())), over_groups(item.tree, names, listed.text))
        for item in items
    )
    made = tuple(
        Item(None if item.name in over else item.name, item.tree.transform(back, copy=False)) for item in whole_items
    )
    return SelectList(relation, listed.text, made, listed.hidden)


def _parts_of(window: exp.Expr) -> list[exp.Expr]:
    """The expressions that a function with OVER computes from each row: arguments, PARTITION BY and ORDER BY."""
    order = window.args["order"].expressions if window.args.get("order") is not None else []
    given = [each for each in window.this.expressions if not isinstance(each, exp.Star)]
    return [*given, *(window.args.get("partition_by") or []), *(key.this for key in order)]


def _clauses(
    tree: exp.Select, listed: SelectList
) -> tuple[tuple[exp.Expr, ...], list[exp.Expr], list[tuple[exp.Expr, ...]] | None]:
    """The keys of GROUP BY, HAVING, and the sets of keys, if there are several."""
    group, condition = tree.args.get("group"), tree.args.get("having")
    sets = None if group is None else grouping_sets(group)
    entries = [] if group is None else group.expressions if sets is None else keys_of_sets(group, sets)
    trees = listed.keys(entries)
    if group is not None and group.args.get("all"):
        trees = tuple(item.tree.unnest() for item in listed.shown if not aggregates_in(item.tree))
    for inner in aggregates_in(*trees):
        raise listed.text.error("an aggregate in GROUP BY is not supported", inner, "group by attributes of a tuple")
    return trees, [] if condition is None else [listed.having(condition.this, trees)], sets


def _groups(
    listed: SelectList,
    trees: Sequence[exp.Expr],
    having: Sequence[exp.Expr],
    sessions: Sessions | None,
    analyst: Analyst,
    of_sets: Sequence[exp.Expr] | None = None,
) -> Relation:
    """The items of the groups by these keys; with the keys `of_sets` of all sets, the others of them are null."""
    relation, names, node = _of_keys(listed, trees, having, sessions, analyst, (), of_sets)
    named_ = {item.name for item in listed.items}
    items = []
    for item in listed.items:
        written = render(item.tree.unnest())
        if (name := item.name or names.get(written)) in named_ and item.name is None:
            name = analyst.columns(node.schema, [written])[0][0]  # another item gives the aggregate its name
        items.append(Item(name, over_groups(item.tree, names, listed.text)))
    return select_items(relation.node, items, analyst)


def _of_keys(
    listed: SelectList,
    trees: Sequence[exp.Expr],
    having: Sequence[exp.Expr],
    sessions: Sessions | None,
    analyst: Analyst,
    parts: Sequence[exp.Expr] = (),
    of_sets: Sequence[exp.Expr] | None = None,
) -> tuple[Relation, dict[str, str], Node]:
    """The groups by these keys that HAVING selects; the attribute of each key and aggregate, by SQL; and their tuples.

    The aggregates are those of the items, of HAVING and of `parts`.
    """
    text = listed.text
    node, keys = keyed(listed.relation.node, trees, listed.items, analyst)
    aggregates = aggregates_of(listed, [*having, *parts], node, tuple(keys.values()), analyst)
    answers = tuple(aggregates.values())
    of_all = Attribute(unique("of all", [each.attribute.name for each in answers]), Domain("BIGINT", nullable=False))
    if is_of_all := of_sets is not None and not keys:
        answers = (*answers, Aggregate(of_all, "count(*)"))
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
    if of_sets is not None:
        if is_of_all:  # no tuples are no row, other than without sets
            relation = where(relation, expression(f"{quoted(of_all.name)} > 0"), analyst)
        constants = _of_the_set(listed, having, of_sets, keys, analyst)
        taken = Names(relation.node.schema.names)
        items = [Item(name, named(name)) for name in relation.node.schema.names]
        for written, (called, constant) in constants.items():
            names[written] = taken.take(called)
            items.append(Item(names[written], constant))
        relation = Relation.of(select_items(relation.node, items, analyst).node)
    for each in having:
        relation = where(relation, over_groups(each, names, text), analyst)
    return relation, names, node


MOST_SETS = 64
"""The most sets of keys of one GROUP BY, which are as many operators."""


def grouping_sets(group: exp.Expr) -> list[tuple[exp.Expr, ...]] | None:
    """The sets of keys that GROUP BY with GROUPING SETS, CUBE or ROLLUP means, as entries; None without any of them.

    >>> from sqlglot import parse_one
    >>> def sets(text: str) -> list[str]:
    ...     group = parse_one(f"SELECT 1 GROUP BY {text}", dialect="spark").args["group"]
    ...     return [" ".join(key.name for key in keys) for keys in grouping_sets(group)]
    >>> sets("ROLLUP (a, (b, c))"), sets("a, CUBE (b, c)"), sets("a, b WITH ROLLUP")
    (['a b c', 'a', ''], ['a b c', 'a b', 'a c', 'a'], ['a b', 'a', ''])
    >>> sets("GROUPING SETS ((a, b), a, ROLLUP (b), ())"), sets("a, b GROUPING SETS (a, ())")
    (['a b', 'a', 'b', '', ''], ['a', ''])
    """
    if suffix := group.args.get("grouping_sets"):
        return _sets_of(suffix[0])
    for kind in (exp.Rollup, exp.Cube):
        if group.args.get(kind.key):
            return _sets_of(kind(expressions=[each.copy() for each in group.expressions]))
    if not any(isinstance(entry, OF_SETS) for entry in group.expressions):
        return None
    parts = [_sets_of(entry) if isinstance(entry, OF_SETS) else [(entry,)] for entry in group.expressions]
    return [tuple(key for each in chosen for key in each) for chosen in product(*parts)]


def _sets_of(entry: exp.Expr) -> list[tuple[exp.Expr, ...]]:
    if isinstance(entry, exp.GroupingSets):
        nested = (_sets_of(each) if isinstance(each, OF_SETS) else [_members(each)] for each in entry.expressions)
        return [found for each in nested for found in each]
    parts = [_members(each) for each in entry.expressions]
    if isinstance(entry, exp.Rollup):
        chosen = [parts[:number] for number in range(len(parts), -1, -1)]
    else:
        chosen = [list(compress(parts, bits)) for bits in product((True, False), repeat=len(parts))]
    return [tuple(key for part in each for key in part) for each in chosen]


def _members(entry: exp.Expr) -> tuple[exp.Expr, ...]:
    """The keys of a set, which may be several in parentheses, or none."""
    return tuple(entry.expressions) if isinstance(entry, exp.Tuple) else (entry.unnest(),)


def keys_of_sets(group: exp.Expr, sets: Sequence[Sequence[exp.Expr]]) -> list[exp.Expr]:
    """The keys of all sets, each once, in the order in which they are written."""
    before = group.expressions if group.args.get("grouping_sets") else []
    return list({render(key.unnest()): key for keys in (before, *sets) for key in keys}.values())


_TAKEN = {"grouping": "one key of GROUP BY", "grouping_id": "all keys of GROUP BY in their order, or none of them"}


def _of_the_set(
    listed: SelectList, having: Sequence[exp.Expr], of_sets: Sequence[exp.Expr], keys: Collection[str], analyst: Analyst
) -> dict[str, tuple[str, exp.Expr]]:
    """What one set of keys fixes, by SQL, each with a name: the keys that it lacks, and calls of `grouping`.

    Raises:
        QueryError: A window is not in each set, or `grouping` has another argument than a key.
    """
    written = [render(key.unnest()) for key in of_sets]
    found: dict[str, tuple[str, exp.Expr]] = {}
    for key, text in zip(of_sets, written, strict=True):
        if text not in keys:
            if key.name.endswith((START, END)):
                what = "a time window that is not a key of each set is not supported"
                raise listed.text.error(what, key, "write each set as a query, and combine them with UNION ALL")
            node = listed.relation.node
            name = key.name if isinstance(key, exp.Column) else analyst.columns(node.schema, [text])[0][0]
            found[text] = name, cast_to(exp.null(), type_of(node, key, analyst))
    for call in (call for tree in (*listed.trees, *having) for call in tree.find_all(exp.Anonymous)):
        if call_name(call) not in GROUPING:
            continue
        arguments, name = [render(each.unnest()) for each in call.expressions], call_name(call)
        is_known = (
            arguments in ([], written) if name == "grouping_id" else len(arguments) == 1 and arguments[0] in written
        )
        if not is_known:
            keys_ = ", ".join(written).replace("`", "")
            hint = f"write grouping_id(), or grouping(…) of one of {keys_}"
            raise listed.text.error(f"{name} takes {_TAKEN[name]}", call, hint)
        number = 0
        for text in arguments or written:
            number = 2 * number + (text not in keys)
        type_ = "TINYINT" if name == "grouping" else "BIGINT"
        called = f"{name}({', '.join(arguments)})".replace("`", "")
        found[render(call)] = called, cast_to(exp.Literal.number(number), type_)
    return found


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
    """The items of a SELECT over a relation, in order; the last ones may be `hidden`, as ORDER BY needs them."""

    relation: Relation
    text: QueryText
    items: tuple[Item, ...]
    hidden: int = 0

    @staticmethod
    def of(entries: Sequence[exp.Expr], relation: Relation, text: QueryText) -> SelectList:
        """The items for the entries of a SELECT list.

        Raises:
            QueryError: A name is unknown.
        """
        return SelectList(relation, text, tuple(item for entry in entries for item in _items(entry, relation, text)))

    def beside(self, hidden: Sequence[Item]) -> SelectList:
        """These items, and hidden ones behind them."""
        return replace(self, items=(*self.items, *hidden), hidden=len(hidden))

    @property
    def shown(self) -> tuple[Item, ...]:
        """The items that the query selects."""
        return self.items[: len(self.items) - self.hidden]

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
            number, entries = whole_number(key) or 0, _entries(self.shown)
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
        names = {column.name.lower(), *(f"{column.name}{end}".lower() for end in (START, END))}
        if not any(relation.find(name, table or None) for name in names):
            raise text.error(f"there is no attribute {column.name} to leave out", column)
        left_out |= names
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
