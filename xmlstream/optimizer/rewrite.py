"""Traversals of a plan: each node is visited once, and shared nodes stay shared.

A rule collects what readers need of nodes (`top_down`), or rebuilds nodes over rewritten inputs (`bottom_up`), or does
first one, then the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from xmlstream.plan.nodes import AnyOperator, Node, topological

Needs = TypeVar("Needs")


def bottom_up(root: Node, rewrite: Callable[[Node, tuple[Node, ...]], Node]) -> Node:
    """Rewrites a plan from the sources up: `rewrite` gets a node and its rewritten inputs."""
    done: dict[Node, Node] = {}
    for node in topological(root):
        done[node] = rewrite(node, tuple(done[below] for below in node.inputs))
    return done[root]


def top_down(
    root: Node,
    of_root: Needs,
    of_inputs: Callable[[Node, Needs], Sequence[Needs]],
    both: Callable[[Needs, Needs], Needs],
) -> dict[Node, Needs]:
    """Propagates needs from the root down; returns for each node the combined needs of its readers.

    Args:
        root: The plan.
        of_root: The needs at the root.
        of_inputs: From a node and its readers' needs to the needs at each of its inputs.
        both: Combines the needs of two readers.
    """
    needs = {root: of_root}
    for node in reversed(topological(root)):
        for below, more in zip(node.inputs, of_inputs(node, needs[node]), strict=True):
            needs[below] = both(needs[below], more) if below in needs else more
    return needs


def rebuilt(node: Node, inputs: Sequence[Node], operator: AnyOperator | None = None) -> Node:
    """The node with other inputs, perhaps with another operator; the node itself if nothing differs."""
    operator = operator or node.operator
    same = tuple(inputs) == node.inputs and (operator is node.operator or operator == node.operator)
    return node if same else Node(operator, tuple(inputs), node.label)


def readers(root: Node) -> Counter[Node]:
    """The number of readers of each node."""
    return Counter(below for node in topological(root) for below in node.inputs)
