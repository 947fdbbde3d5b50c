"""Insertion of describe, where punctuations that will help nobody above are taken out, or built up, early.

An operator with a grouping of interest asks for nothing but what describes it (Tucker et al. 2007, §3.1, §7). So a
describe beneath it changes no result; and it is equivalent to one beneath the operators under that, in the terms of
each input, as far as those tell the lineage of their attributes: "for all values of the attributes not asked for"
distributes over what holds for all inputs together. Every attribute that is not asked for is watched: what describes
the keys only together with others is never lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from operators.describe import Describe
from xmlstream.optimizer.rewrite import bottom_up, over, readers, top_down
from xmlstream.plan.nodes import Node

_Names: TypeAlias = Sequence[str] | None
"""Attributes to describe; None where nobody asks for that."""


def describe_keys(root: Node) -> Node:
    """Each group_by and top_n over a describe of its keys, as near to the sources as those are nobody else's.

    Only where a scheme promises punctuations that restrict something else: without them there is nothing to take out.
    """
    uses = readers(root)
    asked = top_down(root, None, lambda node, names: _asks(node, names, uses), lambda one, _: one)

    def described(node: Node, inputs: tuple[Node, ...]) -> Node:
        asks = _asks(node, asked[node], uses)
        edges = zip(node.inputs, inputs, asks, strict=True)
        return over(node, [new if _lineage(n, names, uses) else _described(n, new, names) for n, new, names in edges])

    return bottom_up(root, described)


def _asks(node: Node, names: _Names, uses: Counter[Node]) -> Sequence[_Names]:
    """What a node asks its inputs to describe: its grouping, or what it is asked itself, in their terms."""
    if node.operator.grouping is not None:
        return [node.operator.grouping]
    return _lineage(node, names, uses) or [None for _ in node.inputs]


def _lineage(node: Node, names: _Names, uses: Counter[Node]) -> Sequence[Sequence[str]] | None:
    """What is to be described of the inputs instead; None for a node that describe does not commute with."""
    if names is None or uses[node] > 1 or node.operator.grouping is not None:
        return None
    return node.operator.lineage(names, *(below.schema for below in node.inputs))


def _described(node: Node, new: Node, names: _Names) -> Node:
    """What a node has become, with those of its punctuations that describe the names."""
    folded = {name.lower() for name in names or ()}
    if names is None or all(folded.issuperset(map(str.lower, scheme.attributes)) for scheme in node.schemes):
        return new
    described = tuple(name for name in node.schema.names if name.lower() in folded)
    watched = tuple(name for name in node.schema.names if name.lower() not in folded)
    return Node(Describe(described, watched), (new,), "describe")
