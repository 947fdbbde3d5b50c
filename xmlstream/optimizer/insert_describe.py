"""Insertion of describe, where punctuations that will help nobody above are taken out, or built up, early.

An operator with a grouping of interest asks for nothing but what describes it (Tucker et al. 2007, §3.1, §7). So a
describe beneath it changes no result; and it is equivalent to one beneath the operators under that, in the terms of
each input, as far as those tell the lineage of their attributes: "for all values of the attributes not asked for"
distributes over what holds for all inputs together. Every attribute that is not asked for is watched: what describes
the keys only together with others is never lost.
"""

from __future__ import annotations

from operators.describe import Describe
from xmlstream.optimizer.grouping_lineage import NamesAsked, asked_below, asked_of_inputs, lineage_of
from xmlstream.optimizer.rewrite import bottom_up, over, readers
from xmlstream.plan.nodes import Node


def describe_keys(root: Node) -> Node:
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
