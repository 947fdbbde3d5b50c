"""Traversals of a plan, in which each node is visited once and what two nodes share stays shared.

A rule collects what readers ask of nodes (`top_down`), or makes nodes anew over new inputs (`bottom_up`), or both, one
after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from xmlstream.plan.nodes import AnyOperator, Node, topological

Asked = TypeVar("Asked")


def bottom_up(root: Node, rewrite: Callable[[Node, tuple[Node, ...]], Node]) -> Node:
    """The plan with each node as `rewrite` makes it of the node and of its inputs, which were rewritten before."""
    done: dict[Node, Node] = {}
    for node in topological(root):
        done[node] = rewrite(node, tuple(done[below] for below in node.inputs))
    return done[root]


def top_down(
    root: Node,
    of_root: Asked,
    asks: Callable[[Node, Asked], Sequence[Asked]],
    both: Callable[[Asked, Asked], Asked],
) -> dict[Node, Asked]:
    """What is asked of each node: what all its readers ask of it together.

    Args:
        root: The plan.
        of_root: What is asked of the root.
        asks: What a node asks of each of its inputs, given what is asked of itself.
        both: What two readers ask together.
    """
    asked = {root: of_root}
    for node in reversed(topological(root)):
        for below, more in zip(node.inputs, asks(node, asked[node]), strict=True):
            asked[below] = both(asked[below], more) if below in asked else more
    return asked


def over(node: Node, inputs: Sequence[Node], operator: AnyOperator | None = None) -> Node:
    """The node over other inputs, perhaps with another operator; the node itself where nothing is other."""
    operator = operator or node.operator
    same = tuple(inputs) == node.inputs and (operator is node.operator or operator == node.operator)
    return node if same else Node(operator, tuple(inputs), node.label)


def readers(root: Node) -> Counter[Node]:
    """How many inputs each node is."""
    return Counter(below for node in topological(root) for below in node.inputs)
