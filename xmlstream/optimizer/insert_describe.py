"""Inserts describe: removes punctuations early that help no operator above, or builds larger ones from them.

An operator with a grouping of interest needs only punctuations that describe the grouping (Tucker et al. 2007, §3.1,
§7). So a describe below it changes no result. This describe can be pushed down through operators that give the lineage
of their attributes: it is equivalent to a describe of the corresponding attributes on each input, because "for all
values of the other attributes" distributes over a statement about all inputs. So the rule carries groupings of interest
down the plan, in terms of each node.

The describe watches every attribute outside the grouping, so that no punctuations are lost that describe the keys only
together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from xmlstream.operators.describe import Describe
from xmlstream.optimizer.rewrite import bottom_up, readers, rebuilt, top_down
from xmlstream.plan.nodes import Node

Names: TypeAlias = Sequence[str] | None
"""The attributes that punctuations must describe to help; None if others help, too, or there are several readers."""


def _names_of_inputs(node: Node, names: Names, uses: Counter[Node]) -> Sequence[Names]:
    """The names for the inputs of a node: its groupings, or `names` in terms of each input; `uses` counts readers."""
    if found := _sole_groupings(node):
        return [found.get(i) for i in range(len(node.inputs))]
    return _lineage_of(node, names, uses) or [None for _ in node.inputs]


def _lineage_of(node: Node, names: Names, uses: Counter[Node]) -> Sequence[Sequence[str]] | None:
    """The attributes `names` in terms of each input; None if describe does not commute with the node."""
    if names is None or uses[node] > 1 or _sole_groupings(node):
        return None
    return node.operator.lineage(names, *node.input_schemas)


def _sole_groupings(node: Node) -> dict[int, Sequence[str]]:
    """The grouping of each input where only punctuations that describe it help the node."""
    promises = [(schema, ()) for schema in node.input_schemas]
    waited_for = node.operator.enabled_by(*node.input_schemas).groupings(promises)
    return {grouping.input: grouping.attributes for grouping in waited_for if grouping.sole}


def insert_describe(root: Node) -> Node:
    """Inserts a describe of the keys below each group_by and top_n, as near to the sources as possible.

    It is inserted only if a scheme promises punctuations that restrict other attributes; else it would remove nothing.
    """
    uses = readers(root)
    nothing: Names = None
    needed = top_down(root, nothing, lambda node, names: _names_of_inputs(node, names, uses), lambda one, _: one)

    def described(node: Node, inputs: tuple[Node, ...]) -> Node:
        edges = zip(node.inputs, inputs, _names_of_inputs(node, needed[node], uses), strict=True)
        return rebuilt(
            node, [new if _lineage_of(n, names, uses) else _described(n, new, names) for n, new, names in edges]
        )

    return bottom_up(root, described)


def _described(node: Node, new: Node, names: Names) -> Node:
    """The rewritten node below a describe of the names; without it if no scheme restricts other attributes."""
    folded = {name.lower() for name in names or ()}
    if names is None or all(folded.issuperset(map(str.lower, scheme.attributes)) for scheme in node.schemes):
        return new
    described = tuple(name for name in node.schema.names if name.lower() in folded)
    watched = tuple(name for name in node.schema.names if name.lower() not in folded)
    return Node(Describe(described, watched), (new,), "describe")
