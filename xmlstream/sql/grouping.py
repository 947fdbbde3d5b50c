"""GROUP BY as a plan: computed keys below the operator, expressions over its aggregates and HAVING above it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from operators.expressions.decomposition import Aggregate
from operators.expressions.dialect import offset, render
from operators.expressions.references import named
from operators.group_by import GroupBy
from operators.session import Session
from punct_ns.schema import Attribute
from xmlstream.plan.nodes import Node
from xmlstream.sql.analysis import Analyst
from xmlstream.sql.functions import AGGREGATES
from xmlstream.sql.ordered_collections import is_ordered_collection
from xmlstream.sql.plan_builder import Item, keyed, project, unique, where, with_time
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.relation import AS_IT_GOES_OUT, Relation
from xmlstream.sql.windowing import Sessions


@dataclass(frozen=True, slots=True)
class Grouping:
    """A SELECT with groups; all expressions are over the node's attributes.

    Attributes:
        node: What is grouped.
        keys: What it is grouped by.
        items: What is selected of each group.
        having: What must be true of a group, if anything.
        text: The query's text, for errors.
        sessions: Those into which the groups fall, if they do; their ends are among the keys.
    """

    node: Node
    keys: tuple[exp.Expr, ...]
    items: tuple[Item, ...]
    having: exp.Expr | None
    text: QueryText
    sessions: Sessions | None = None


def is_aggregate(node: exp.Expr) -> bool:
    """Whether it is an aggregate, its FILTER included, or all values of a group in order."""
    if is_ordered_collection(node):
        return True
    if isinstance(node, exp.Filter):
        return is_aggregate(node.this)
    return isinstance(node, exp.Anonymous) and str(node.this).lower() in AGGREGATES


def aggregates_in(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The aggregates of an expression, without those that are within another."""
    if is_aggregate(tree):
        yield tree
    else:
        for below in tree.iter_expressions():
            yield from aggregates_in(below)


def grouped(grouping: Grouping, analyst: Analyst) -> Relation:
    """The relation of the groups.

    Raises:
        QueryError: An attribute is neither grouped by nor aggregated, or an aggregate is within another.
    """
    node, keys = _with_keys(grouping, analyst)
    aggregates = _aggregates(grouping, node, tuple(keys.values()), analyst)
    answers = tuple(aggregates.values())
    if (found := grouping.sessions) is None:
        groups = Node(GroupBy(tuple(keys.values()), answers), (node,), "group_by")
    else:
        others = tuple(key for key in keys.values() if key not in found.ends)
        if len(keys) - len(others) < len(found.ends):
            raise found.not_grouped_by(grouping.text)
        groups = Node(Session(found.moment, found.gap, others, answers, found.name, found.days), (node,), "session")
    names = keys | {text: answer.attribute.name for text, answer in aggregates.items()}
    trees = [item.tree for item in grouping.items] + ([] if grouping.having is None else [grouping.having])
    if any(column.name == AS_IT_GOES_OUT for tree in trees for column in tree.find_all(exp.Column)):
        groups = with_time(groups)
        names[render(named(AS_IT_GOES_OUT))] = groups.schema.names[-1]
    relation = Relation.of(groups)
    if grouping.having is not None:
        relation = where(relation, _over_groups(grouping.having, names, grouping.text), analyst)
    items = [Item(_name(item, names), _over_groups(item.tree, names, grouping.text)) for item in grouping.items]
    return project(relation.node, items, analyst)


def _with_keys(grouping: Grouping, analyst: Analyst) -> tuple[Node, dict[str, str]]:
    """The node with every key an attribute of it, and the keys' attributes by their SQL."""
    for key in grouping.keys:
        if (inner := next(aggregates_in(key), None)) is not None:
            raise grouping.text.error("an aggregate in GROUP BY", offset(inner), "group by attributes of a tuple")
    return keyed(grouping.node, grouping.keys, grouping.items, analyst)


def _aggregates(grouping: Grouping, node: Node, keys: tuple[str, ...], analyst: Analyst) -> dict[str, Aggregate]:
    """The aggregates of the items and of HAVING, each once, by their SQL; one that is an item has the item's name."""
    wanted: dict[str, str | None] = {}
    for item in grouping.items:
        for tree in aggregates_in(item.tree):
            _require_flat(tree, grouping.text)
            own = item.name if item.tree.unnest() is tree else "aggregate"
            if wanted.setdefault(render(tree), own) == "aggregate":
                wanted[render(tree)] = own
    for tree in () if grouping.having is None else aggregates_in(grouping.having):
        _require_flat(tree, grouping.text)
        wanted.setdefault(render(tree), "aggregate")
    answers = analyst.columns(node.schema, list(wanted))
    taken = list(keys)
    found: dict[str, Aggregate] = {}
    for (text, name), (by_itself, domain) in zip(wanted.items(), answers, strict=True):
        taken.append(unique(name or by_itself, taken))
        found[text] = Aggregate(Attribute(taken[-1], domain), text)
    return found


def _require_flat(tree: exp.Expr, text: QueryText) -> None:
    for below in tree.walk():
        if below is not tree and below is not tree.this and is_aggregate(below):
            raise text.error("an aggregate within an aggregate", offset(below), "compute the inner one in a subquery")


def _over_groups(tree: exp.Expr, names: Mapping[str, str], text: QueryText) -> exp.Expr:
    """The expression over the groups' attributes: what is a key or an aggregate is named."""

    def over(node: exp.Expr) -> exp.Expr:
        if (name := names.get(render(node))) is not None:
            return named(name)
        if isinstance(node, exp.Column):
            what = f"{node.name} is neither grouped by nor aggregated"
            hint = "name it in GROUP BY, or aggregate it"
            if (called := node.name.partition(".")[0]) in ("window", "session_window"):
                hint += f"; of windows that are grouped by here write all of {called}(…)"
            raise text.error(what, offset(node), hint)
        return node

    return tree.copy().transform(over, copy=False)


def _name(item: Item, names: Mapping[str, str]) -> str | None:
    """An item's name, or that of the aggregate or key that it is."""
    return item.name or names.get(render(item.tree.unnest()))
