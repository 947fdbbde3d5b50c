"""ORDER BY, LIMIT and OFFSET of a query: the attributes that sort its result, and the part of it that is emitted.

    SELECT sid FROM s ORDER BY temp, s.ts LIMIT 10 OFFSET 5

As in Spark, a name in ORDER BY is an attribute of the result, or else of FROM. A key that is not selected is a further
item, which stands behind the others until the order is known.

Without ORDER BY, LIMIT takes the tuples that come first: in the order of the source, or, where none is known, such as
behind a join, those of the slice that has them first; within a slice all attributes decide. So a restart repeats them.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from xmlstream.operators.expressions.aggregates import Over
from xmlstream.operators.expressions.dialect import as_read, expression, render
from xmlstream.operators.expressions.type_rules import whole_number
from xmlstream.operators.project import Project
from xmlstream.operators.row_window import RowWindow
from xmlstream.operators.sort import Sort
from xmlstream.operators.sort_order import SortKey
from xmlstream.operators.top_n import TopN
from xmlstream.plan.nodes import Node, out_of_order, unique
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.schema import END, START, Attribute
from xmlstream.punct_ns.slices import quoted
from xmlstream.sql.clauses.grouping import SelectList
from xmlstream.sql.clauses.plan_builder import where, with_arrival
from xmlstream.sql.clauses.relation import Item, Relation, require_no_quoted_name, resolve
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.spark.analysis import Analyst
from xmlstream.sql.spark.functions import is_aggregate

_KEY = "ORDER BY "


def keys_among(listed: SelectList, order: exp.Order) -> tuple[SelectList, list[int | None]]:
    """The items with those that only ORDER BY needs, which are hidden; and the item of each key.

    The item is None for a number, and for a name that only the result's own attributes can have.

    Raises:
        QueryError: A name is unknown or ambiguous.
    """
    hidden: list[Item] = []
    places: list[int | None] = []
    trees = [render(item.tree.unnest()) for item in listed.items]
    for key in order.expressions:
        tree = key.this.unnest()
        if whole_number(tree) is not None or _is_named(tree, listed):
            places.append(None)
            continue
        found = _resolved(tree, listed)
        if (text := render(found.unnest())) not in trees:
            trees.append(text)
            hidden.append(Item(f"{_KEY}{as_read(tree).replace('`', '')}", found))
        places.append(trees.index(text))
    return listed.beside(hidden), places


def without_hidden(relation: Relation) -> Relation:
    """The relation without the keys that are not selected."""
    shown = tuple(field for field in relation.fields if not field.name.startswith(_KEY))
    return relation if len(shown) == len(relation.fields) else Relation(relation.node, shown, relation.rank)


def _is_named(tree: exp.Expr, listed: SelectList) -> bool:
    """Whether a key is the name of an item, or of a window among them."""
    if not isinstance(tree, exp.Column):
        return False
    names = {(item.name or "").lower() for item in listed.items}
    written = ".".join(part.name for part in tree.parts).lower()
    return written in names or {f"{written}{START}", f"{written}{END}"} <= names


def _resolved(tree: exp.Expr, listed: SelectList) -> exp.Expr:
    """A key over the attributes of FROM: a bare name is that of an item, or else of an attribute."""
    relation, text = listed.relation, listed.text

    def chosen(node: exp.Expr) -> exp.Expr:
        if is_aggregate(node):
            _require_one_meaning(node, listed)
            return resolve(node, relation, text)
        require_no_quoted_name(node, relation, text)
        if not isinstance(node, exp.Column):
            return node
        items = _called(node, listed)
        if len({render(item) for item in items}) > 1:
            what = f"{node.name} is ambiguous: several attributes have this name"
            raise text.error(what, node, "rename them with AS")
        if not items:
            return resolve(node, relation, text)
        return items[0].copy() if isinstance(items[0], exp.Column) else exp.paren(items[0])

    whole = tree.copy().transform(chosen, copy=False)
    if (found := whole.find(exp.Window)) is not None:
        raise text.error("ORDER BY an expression over OVER is not supported", found, "sort by the name of an item")
    return whole


def _called(column: exp.Column, listed: SelectList) -> list[exp.Expr]:
    """The items that a bare name means."""
    if len(column.parts) > 1:
        return []
    return [item.tree for item in listed.items if (item.name or "").lower() == column.name.lower()]


def _require_one_meaning(aggregate: exp.Expr, listed: SelectList) -> None:
    """Refuses a name in an aggregate of ORDER BY that is both an item's, and another attribute's."""
    for column in aggregate.find_all(exp.Column):
        for item in _called(column, listed):
            if render(item) != render(resolve(column, listed.relation, listed.text)):
                what = f"{column.name} is ambiguous: it names an item of SELECT and an attribute"
                raise listed.text.error(what, column, "give the item another name with AS")


def limited(relation: Relation, n: int | None, after: int, keys: Sequence[SortKey], analyst: Analyst) -> Relation:
    """The first n tuples after as many others; by `keys`, or without these in the order in which they come."""
    node = relation.node
    if not keys and out_of_order(node) is not None:
        node = with_arrival(node)
        keys = (SortKey(node.schema.names[-1]),)
    number = Attribute(unique("rank", node.schema.names), Domain("INT", nullable=False))
    bounds = [f"{quoted(number.name)} > {after}"] if after else []
    if keys and n is not None:
        ranked = TopN(n + after, tuple(keys), number=number if after else None)
        node = Node(ranked, (node,), "top_n")
    else:
        node = Node(RowWindow((Over(number, "row_number()"),), tuple(keys)), (node,), "row_window")
        bounds += [] if n is None else [f"{quoted(number.name)} <= {n + after}"]
    found = Relation(node, relation.fields)
    return where(found, expression(" AND ".join(bounds)), analyst) if bounds else found


def without_order(node: Node) -> Node:
    """The root of a plan without its ORDER BY, as in a view, which has no order."""
    match node.operator:
        case Sort():
            return node.inputs[0]
        case Project() if isinstance(node.inputs[0].operator, Sort):
            return Node(node.operator, node.inputs[0].inputs, node.label)
    return node


def require_plain(select: exp.Select, listed: SelectList, text: QueryText) -> None:
    """Refuses keys that are not selected where SELECT has DISTINCT, whose result has no such attributes.

    Raises:
        QueryError: There are such keys.
    """
    if select.args.get("distinct") and listed.hidden:
        what = "ORDER BY an attribute that SELECT DISTINCT does not select"
        raise text.error(what, select.args["order"].expressions[0], "select it, or sort by what is selected")
