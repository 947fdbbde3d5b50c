"""Where punctuations that will help nobody above are taken out, or built up, early (Tucker et al. 2007, §7).

A group_by or a top_n asks for nothing but what describes its keys, its grouping of interest. So a describe beneath it
changes no result; and it is equivalent to one beneath the select, merge or project under that, in the terms of each
input, since "for all values of the attributes not asked for" distributes over what holds for all inputs together. Every
attribute that is not asked for is watched: what describes the keys only together with others is never lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from operators.describe import Describe
from operators.group_by import GroupBy
from operators.merge import Merge
from operators.project import Project
from operators.select import Select
from operators.top_n import TopN
from xmlstream.plan.nodes import Node, topological


def describe_keys(root: Node) -> Node:
    """Each group_by and top_n over a describe of its keys, as near to the sources as those are nobody else's.

    Only where a scheme promises punctuations that restrict something else: without them there is nothing to take out.
    """
    order = topological(root)
    uses = Counter(below for node in order for below in node.inputs)
    done: dict[Node, Node] = {}
    for node in order:
        match node:
            case Node(GroupBy(keys=keys) | TopN(groups=keys), (below,)):
                inputs: tuple[Node, ...] = (_described(below, keys, uses, done),)
            case _:
                inputs = tuple(done[below] for below in node.inputs)
        done[node] = node if inputs == node.inputs else Node(node.operator, inputs, node.label)
    return done[root]


def _described(node: Node, names: Sequence[str], uses: Mapping[Node, int], done: Mapping[Node, Node]) -> Node:
    """The node, with those of its punctuations that describe the names."""
    folded = {name.lower() for name in names}
    if uses[node] == 1:
        below = _asked(node, folded)
        if below is not None:
            inputs = [_described(n, asked, uses, done) for n, asked in zip(node.inputs, below, strict=True)]
            return Node(node.operator, tuple(inputs), node.label)
    if all(folded.issuperset(map(str.lower, scheme.attributes)) for scheme in node.schemes):
        return done[node]
    described = tuple(name for name in node.schema.names if name.lower() in folded)
    watched = tuple(name for name in node.schema.names if name.lower() not in folded)
    return Node(Describe(described, watched), (done[node],), "describe")


def _asked(node: Node, names: set[str]) -> list[Sequence[str]] | None:
    """The attributes of each input to describe instead; None for a node that describe does not commute with."""
    match node.operator:
        case Select(punctuates=False):
            return [[name for name in node.schema.names if name.lower() in names]]
        case Merge():
            places = [i for i, name in enumerate(node.schema.names) if name.lower() in names]
            return [[below.schema[i].name for i in places] for below in node.inputs]
        case Project(columns):
            sources = [column.source for column in columns if column.attribute.name.lower() in names]
            return [list(dict.fromkeys(node.inputs[0].schema.attribute(name).name for name in sources if name))]
    return None
