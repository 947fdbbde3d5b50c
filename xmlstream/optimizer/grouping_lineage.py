"""Groupings of interest sent down a plan: which attributes those above a node group by, in the node's own terms.

Source: Tucker et al. 2007, §3.1, §7.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from xmlstream.optimizer.rewrite import top_down
from xmlstream.plan.nodes import Node, Results, Scan, Static

NamesAsked: TypeAlias = Sequence[str] | None
"""The attributes whose punctuations are asked for; None where others help, too, or several ask."""


def asked_below(root: Node, uses: Counter[Node]) -> Mapping[Node, NamesAsked]:
    """What is asked of each node; `uses` counts its readers."""
    return top_down(root, None, lambda node, names: asked_of_inputs(node, names, uses), lambda one, _: one)


def asked_of_inputs(node: Node, names: NamesAsked, uses: Counter[Node]) -> Sequence[NamesAsked]:
    """What a node asks of its inputs: its groupings, or what it is asked itself, in their terms."""
    if found := _sole_groupings(node):
        return [found.get(i) for i in range(len(node.inputs))]
    return lineage_of(node, names, uses) or [None for _ in node.inputs]


def lineage_of(node: Node, names: NamesAsked, uses: Counter[Node]) -> Sequence[Sequence[str]] | None:
    """What is asked of the inputs instead; None for a node that describe does not commute with."""
    if names is None or uses[node] > 1 or _sole_groupings(node):
        return None
    return node.operator.lineage(names, *(below.schema for below in node.inputs))


def _sole_groupings(node: Node) -> dict[int, Sequence[str]]:
    """By the numbers of its inputs, the groupings by which alone they help a node."""
    operator, promises = node.operator, [(below.schema, ()) for below in node.inputs]
    if isinstance(operator, Scan | Static | Results):
        return {}
    waited_for = operator.enabled_by(*(schema for schema, _ in promises)).groupings(promises)
    return {grouping.input: grouping.attributes for grouping in waited_for if grouping.sole}
