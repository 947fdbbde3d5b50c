"""Columns that nobody needs: neither read, nor handed on, nor kept.

No attribute that a scheme names is left out: what punctuations promise to speak of, the check of the grammar needs.
What else they turn out to restrict is read for that check alone (`sources.xml.grammar.restricted`).
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from operators.describe import Describe
from operators.expressions.dialect import expression
from operators.group_by import GroupBy
from operators.join import Join
from operators.merge import Merge
from operators.multiway_join import MultiwayJoin
from operators.project import Column, Project
from operators.select import Select
from operators.semi_join import SemiJoin
from operators.sort import Sort
from operators.top_n import TopN
from punct_ns.schema import Schema
from punct_ns.slices import quoted
from xmlstream.plan.nodes import Node, Results, Scan, projected, topological


def prune_columns(root: Node) -> Node:
    """Nothing is read, or handed on, that no operator above needs."""
    needed: dict[Node, set[str]] = {node: set() for node in topological(root)}
    needed[root] = set(root.schema.names)
    for node in reversed(topological(root)):
        # A tuple without attributes could not be told from another, nor closed by a punctuation.
        if not needed[node] and not isinstance(node.operator, Scan | Results):
            needed[node] = {_any_of(node)}
        for below in node.inputs:
            needed[below] |= wanted(node, needed[node], below)
    pruned: dict[Node, Node] = {}
    for node in topological(root):
        pruned[node] = _pruned(node, needed[node], [pruned[below] for below in node.inputs])
    return pruned[root]


def wanted(node: Node, needed: set[str], below: Node) -> set[str]:
    """The attributes of an input that a node needs to hand on what is needed of it."""
    match node.operator:
        case Select(predicate):
            return needed | set(references(predicate))
        case Project(columns):
            kept = [column for column in columns if column.attribute.name in needed]
            return {below.schema.attribute(name).name for column in kept for name in references(column.expression)}
        case GroupBy(keys, aggregates):
            kept_answers = [answer for answer in aggregates if answer.attribute.name in needed]
            used = {name for answer in kept_answers for name in references(answer.expression)}
            return {below.schema.attribute(name).name for name in used | set(keys)}
        case Merge():
            places = [i for i, name in enumerate(node.schema.names) if name in needed]
            return {below.schema[i].name for i in places}
        case Join() | SemiJoin():
            used = {*node.operator.left_on, *node.operator.right_on, *references(node.operator.residual or "true")}
            left_alone = isinstance(node.operator, SemiJoin) and below is not node.inputs[0]
            return {name for name in below.schema.names if name in used or (name in needed and not left_alone)}
        case MultiwayJoin(equalities=equalities, residual=residual):
            used = {name for pair in equalities for _, name in pair} | set(references(residual or "true"))
            return {name for name in below.schema.names if name in used | needed}
        case Sort(keys):
            return needed | {below.schema.attribute(key.attribute).name for key in keys}
        case TopN(_, keys, groups, number=number):
            used = {below.schema.attribute(name).name for name in (*groups, *(key.attribute for key in keys))}
            return used | needed - ({number.name} if number else set())
        case Describe(attributes, watch):
            return needed | {below.schema.attribute(name).name for name in (*attributes, *watch)}
    return set(below.schema.names)


def _any_of(node: Node) -> str:
    """An attribute of a node of which none is needed; one that the node itself looks at, where it does."""
    used = references(node.operator.predicate) if isinstance(node.operator, Select) else ()
    return node.schema.attribute(used[0]).name if used else node.schema.names[0]


def _pruned(node: Node, needed: set[str], inputs: list[Node]) -> Node:
    """The node over pruned inputs, with the attributes needed, in their order, and perhaps more of a source."""
    operator = node.operator
    match operator:
        case Scan():
            return _narrow(node, operator, needed)
        case Project(columns):
            return projected(inputs[0], [column for column in columns if column.attribute.name in needed])
        case GroupBy(keys, aggregates):
            operator = GroupBy(keys, tuple(answer for answer in aggregates if answer.attribute.name in needed))
        case Merge(schema):
            operator = Merge(Schema(tuple(attribute for attribute in schema if attribute.name in needed)))
            inputs = [_exactly(below, operator.attributes.names) for below in inputs]
        case Join() | SemiJoin() | MultiwayJoin() | Sort() | TopN():
            # What they keep are whole tuples: a source's attributes that are not read must not be among them.
            asked = [wanted(node, needed, below) for below in node.inputs]
            inputs = [
                _exactly(below, tuple(name for name in below.schema.names if name in names))
                for below, names in zip(inputs, asked, strict=True)
            ]
    if isinstance(operator, TopN) and operator.number is not None and operator.number.name not in needed:
        operator = replace(operator, number=None)
    return Node(operator, tuple(inputs), node.label)


def _narrow(node: Node, source: Scan, needed: set[str]) -> Node:
    """The source with what is needed and what its punctuations promise to speak of; all without a promise.

    They may then speak of any attribute, and together cover one that nobody asks for, which closes what is beside it. A
    tuple that breaks such a punctuation would go unseen if that attribute were not read. To promise that they speak of
    none is a promise: `schemes ''`, or the end of a section alone.
    """
    options = source.options
    promised = {name.lower() for scheme in options.schemes for name in scheme.attributes}
    columns = [name for name in options.schema.names if name in needed or name.lower() in promised]
    columns = columns or [options.schema.names[0]]
    # The option is a list with commas in it.
    if (
        not options.has_promise
        or tuple(columns) == options.columns
        or any("," in name or name != name.strip() for name in columns)
    ):
        return node
    return Node(Scan(source.name, options.replace(columns=",".join(columns))), (), node.label)


def _exactly(node: Node, names: tuple[str, ...]) -> Node:
    """The node with these attributes and no others."""
    return projected(node, [Column(node.schema.attribute(name), quoted(name), name) for name in names])


def references(text: str) -> tuple[str, ...]:
    """The attributes that an expression of a plan is computed from, each once, in order."""
    return tuple(dict.fromkeys(column.name for column in expression(text).find_all(exp.Column)))
