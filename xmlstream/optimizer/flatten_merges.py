"""Flattening of associative operators: R ⊎ (S ⊎ T) as one operator over R, S and T."""

from __future__ import annotations

from xmlstream.optimizer.rewrite import bottom_up, readers, rebuilt
from xmlstream.plan.nodes import Node


def flatten_merges(root: Node) -> Node:
    """Replaces a merge of merges by one merge; a merge with two readers stays, so that it runs once."""
    uses = readers(root)

    def flattened(node: Node, inputs: tuple[Node, ...]) -> Node:
        if not node.operator.is_associative:
            return rebuilt(node, inputs)
        spliced: list[Node] = []
        for below, new in zip(node.inputs, inputs, strict=True):
            is_one_of_its_kind = isinstance(below.operator, type(node.operator)) and uses[below] == 1
            spliced += new.inputs if is_one_of_its_kind else (new,)
        return rebuilt(node, spliced)

    return bottom_up(root, flattened)
