"""Builds nodes of a plan for the clauses of a query, typed by the analyst; used by SQL and by the builder."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from xmlstream.operators.behaviour import Operator
from xmlstream.operators.difference import Difference
from xmlstream.operators.distinct import Distinct
from xmlstream.operators.expressions.aggregates import Over
from xmlstream.operators.expressions.dialect import cast_to, named, render, type_text
from xmlstream.operators.expressions.output_columns import Column
from xmlstream.operators.expressions.type_rules import lossless_cast
from xmlstream.operators.intersect import Intersect
from xmlstream.operators.merge import Merge
from xmlstream.operators.row_window import RowWindow
from xmlstream.operators.select import Select
from xmlstream.operators.sort import Sort
from xmlstream.operators.sort_order import SortKey
from xmlstream.operators.stamp import Stamp
from xmlstream.plan.nodes import Names, Node, narrowed, projected, unique
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.sql.clauses.relation import Item, Relation
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.spark.analysis import Analyst


def select_items(node: Node, items: Sequence[Item], analyst: Analyst) -> Relation:
    """The items of each tuple of the node; the node itself if the items are its attributes."""
    copies = [copied(item.tree, node.schema) for item in items]
    texts = [render(item.tree) for item in items]
    computed = [text for text, copy in zip(texts, copies, strict=True) if copy is None]
    answers = iter(analyst.columns(node.schema, computed) if computed else ())
    columns: list[Column] = []
    names: list[str] = []
    taken = Names()
    for item, copy, text in zip(items, copies, texts, strict=True):
        by_itself, domain = next(answers) if copy is None else copy
        names.append(item.name or by_itself)
        attribute = Attribute(taken.take(names[-1]), domain)
        is_copy = copy is not None
        columns.append(Column(attribute, text, by_itself) if is_copy else Column.computed(attribute, text, node.schema))
    return Relation.of(projected(node, columns), names)


def copied(tree: exp.Expr, schema: Schema) -> tuple[str, Domain] | None:
    """Name and domain of the attribute that an expression copies, or casts without loss; None if it computes."""
    match tree.unnest():
        case exp.Column() as column:
            attribute = schema.attribute(column.name)
            return attribute.name, attribute.domain
        case (
            exp.Cast(this=exp.Column() as column, args={"to": wider})
            | exp.TryCast(this=exp.Column() as column, args={"to": wider})
        ):
            attribute = schema.attribute(column.name)
            domain = lossless_cast(attribute.domain, type_text(wider))
            return None if domain is None else (attribute.name, domain)
    return None


def where(relation: Relation, condition: exp.Expr, analyst: Analyst) -> Relation:
    """The tuples for which the condition, over the node's attributes, is true."""
    predicate = render(condition.unnest())
    analyst.require_condition(relation.node.schema, predicate)
    return Relation(Node(Select(predicate), (relation.node,), "select"), relation.fields)


def with_time(node: Node) -> Node:
    """The node's tuples with the recorded time of the slice in which each arrives."""
    return _stamped(node, "current_timestamp()", "TIMESTAMP")


def with_arrival(node: Node) -> Node:
    """The node's tuples with the number of the slice in which each arrives."""
    return _stamped(node, "slice", "BIGINT")


def _stamped(node: Node, name: str, type_: str) -> Node:
    attribute = Attribute(unique(name, node.schema.names), Domain(type_, nullable=False))
    return Node(Stamp(attribute), (node,), "stamp")


def distinct(relation: Relation, analyst: Analyst, label: str = "distinct") -> Relation:
    """The distinct tuples of the relation's fields."""
    plain = trimmed(relation, analyst)
    return Relation(Node(Distinct(), (plain.node,), label), plain.fields)


def trimmed(relation: Relation, analyst: Analyst) -> Relation:
    """The relation over a node whose attributes are exactly its fields, in order."""
    if tuple(f.attribute for f in relation.fields) == relation.node.schema.names:
        return relation
    items = [Item(f.name, named(f.attribute)) for f in relation.fields]
    return relation.over(select_items(relation.node, items, analyst).node)


_COMBINING: dict[str, Callable[[Schema], Operator]] = {"intersect": Intersect, "except": Difference}
_LABELS = {"intersect": "intersect", "except": "difference"}


def combined_relation(kind: str, relations: Sequence[Relation], analyst: Analyst, *, all_: bool = False) -> Relation:
    """The `union`, `intersect` or `except` of relations by position; only `union`, or `all_`, keeps duplicates.

    Names are the first relation's, types as Spark widens them.

        a EXCEPT ALL b    the first of equal tuples in a, the second, … EXCEPT the first of these in b, the second, …
    """
    parts = [trimmed(relation, analyst) for relation in relations]
    types = analyst.widened([part.node.schema for part in parts])
    names = parts[0].node.schema.names
    nodes = []
    for part in parts:
        items = [
            Item(
                name, named(attribute.name) if attribute.domain.type == type_ else cast_to(named(attribute.name), type_)
            )
            for attribute, name, type_ in zip(part.node.schema, names, types, strict=True)
        ]
        nodes.append(select_items(part.node, items, analyst).node)
    if kind == "union":
        whole = merge_of(nodes)
    else:
        nodes = [_numbered(node) for node in nodes] if all_ else nodes
        whole = narrowed(Node(_COMBINING[kind](_around(nodes)), tuple(nodes), _LABELS[kind]), names)
    return Relation.of(whole, [field.name for field in parts[0].fields])


def _numbered(node: Node) -> Node:
    """The tuples with the numbers of those that are equal."""
    number = Over(Attribute(unique("number", node.schema.names), Domain("INT", nullable=False)), "row_number()")
    return Node(RowWindow((number,), (), node.schema.names), (node,), "row_window")


def merge_of(nodes: Sequence[Node]) -> Node:
    """The tuples of several nodes with equal attributes."""
    return Node(Merge(_around(nodes)), tuple(nodes), "merge")


def _around(nodes: Sequence[Node]) -> Schema:
    """The attributes that have the values of all nodes."""
    columns = zip(nodes[0].schema.names, zip(*(node.schema for node in nodes), strict=True), strict=True)
    return Schema(tuple(Attribute(name, _hull([a.domain for a in found])) for name, found in columns))


def _hull(domains: list[Domain]) -> Domain:
    """The smallest domain that contains all of these, which have the same type.

    >>> _hull([Domain("INT", False, 0, 59), Domain("INT", True, 3)])
    Domain(type='INT', nullable=True, low=0, high=None, listed=None)
    """
    first = Domain(domains[0].type)
    lows, highs = [d.low for d in domains], [d.high for d in domains]
    low = None if None in lows else min(lows, key=lambda end: first.cut(end, after=False))
    high = None if None in highs else max(highs, key=lambda end: first.cut(end, after=True))
    listed = [d.listed for d in domains if d.listed is not None]
    known = tuple(value for each in listed for value in each) if len(listed) == len(domains) else None
    return Domain(first.type, any(d.nullable for d in domains), low, high, known)


def keyed(node: Node, keys: Sequence[exp.Expr], items: Sequence[Item], analyst: Analyst) -> tuple[Node, dict[str, str]]:
    """The node with every key as an attribute, and the keys' attributes by SQL; a key that is an item has its name."""
    names: dict[str, str] = {}
    taken = Names(node.schema.names)
    computed: list[Item] = []
    for key in keys:
        tree = key.unnest()
        text = render(tree)
        if text in names:
            continue
        if isinstance(tree, exp.Column):
            names[text] = node.schema.attribute(tree.name).name
        else:
            wanted = next((i.name for i in items if i.name and render(i.tree.unnest()) == text), None)
            wanted = wanted or analyst.columns(node.schema, [text])[0][0]
            names[text] = taken.take(wanted)
            computed.append(Item(names[text], tree))
    if computed:
        node = select_items(node, [*(Item(name, named(name)) for name in node.schema.names), *computed], analyst).node
    return node, names


def partitioned(
    node: Node, window: exp.Expr, items: Sequence[Item], analyst: Analyst
) -> tuple[Node, dict[str, str], tuple[str, ...], tuple[SortKey, ...]]:
    """As `keyed`, for the PARTITION BY and ORDER BY of a function over rows; with its groups and its sort keys.

    The order of arrival, `ARRIVAL`, has no sort keys.
    """
    by = window.args.get("partition_by") or []
    entries = [] if window.args.get("order") is None else window.args["order"].expressions
    order = [key for key in entries if key.this != ARRIVAL]
    node, names = keyed(node, [*by, *(key.this for key in order)], items, analyst)
    groups = tuple(dict.fromkeys(names[render(tree.unnest())] for tree in by))
    return node, names, groups, tuple(sort_key(names[render(key.this.unnest())], key) for key in order)


ARRIVAL = exp.true()
"""What stands in a parsed query for the order of arrival: a constant, which leaves the order open in Spark."""


def sort_key(attribute: str, key: exp.Expr) -> SortKey:
    """The sort key of an attribute, with the direction of an entry of ORDER BY."""
    return SortKey(attribute, bool(key.args.get("desc")), bool(key.args.get("nulls_first")))


def ordered(node: Node, keys: Sequence[SortKey]) -> Node:
    """The node's tuples in order."""
    return Node(Sort(tuple(keys)), (node,), "sort")


def finished(
    relation: Relation,
    analyst: Analyst,
    text: QueryText,
    at: exp.Expr | None = None,
    notices: list[QueryError] | None = None,
) -> Node:
    """The root of a plan, whose attributes have the fields' names; with `notices`, the second `k` is named `k_2`.

    Raises:
        QueryError: Two fields have the same name, and there are no `notices` to which that could be added.
    """
    items = [Item(field.name, named(field.attribute)) for field in relation.fields]
    node = select_items(relation.node, items, analyst).node
    pairs = zip((field.name for field in relation.fields), node.schema.names, strict=True)
    anew = {new.replace("`", ""): name.replace("`", "") for name, new in pairs if new != name}
    if anew:
        names, hint = ", ".join(dict.fromkeys(anew.values())), "give them names of their own with AS"
        if notices is None:
            raise text.error(f"the result has two attributes {names}", at, hint)
        what = f"the result has several attributes {names}; the second of a name is named {', '.join(anew)}"
        notices.append(text.error(what, at, hint))
    return node
