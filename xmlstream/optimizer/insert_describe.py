"""Inserts describe: removes early the punctuations that will help no operator above, or builds larger ones from them.

An operator with a grouping of interest needs only punctuations that describe it (Tucker et al. 2007, §3.1, §7). So a
describe below it changes no result. It is equivalent to one describe below each of the operators under it, in the terms
of each input, as far as these operators give the lineage of their attributes: "for all values of the other attributes"
distributes over what holds for all inputs together. Therefore groupings of interest are carried down the plan, in the
terms of each node.

Every attribute outside the grouping is watched: a punctuation that describes the keys only together with others is
never lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from operators.describe import Describe
from xmlstream.optimizer.rewrite import bottom_up, over, readers, top_down
from xmlstream.plan.nodes import Node

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
    promises = [(below.schema, ()) for below in node.inputs]
    waited_for = node.operator.enabled_by(*(schema for schema, _ in promises)).groupings(promises)
    return {grouping.input: grouping.attributes for grouping in waited_for if grouping.sole}


def insert_describe(root: Node) -> Node:
    """Each group_by and top_n over a describe of its keys, as near to the sources as those are nobody else's.

    Only where a scheme promises punctuations that restrict something else: without them there is nothing to take out.
    """
    uses = readers(root)
    asked = asked_below(root, uses)

    def described(node: Node, inputs: tuple[Node, ...]) -> Node:
        asks = asked_of_inputs(node, asked[node], uses)
        edges = zip(node.inputs, inputs, asks, strict=True)
        return over(node, [new if lineage_of(n, names, uses) else _described(n, new, names) for n, new, names in edges])

    return bottom_up(root, described)


def _described(node: Node, new: Node, names: NamesAsked) -> Node:
    """What a node has become, with those of its punctuations that describe the names."""
    folded = {name.lower() for name in names or ()}
    if names is None or all(folded.issuperset(map(str.lower, scheme.attributes)) for scheme in node.schemes):
        return new
    described = tuple(name for name in node.schema.names if name.lower() in folded)
    watched = tuple(name for name in node.schema.names if name.lower() not in folded)
    return Node(Describe(described, watched), (new,), "describe")
