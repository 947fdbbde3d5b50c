"""A plan as text, for people: what `explain` prints."""

from __future__ import annotations

import re

from xmlstream.plan.nodes import Node, names


def tree(root: Node) -> str:
    """The plan as text, a node a line, its inputs below it and indented."""
    called = names(root)
    lines: list[str] = []

    def write(node: Node, depth: int) -> None:
        lines.append(f"{'  ' * depth}{called[node]}: {brief(described(node))}")
        for below in node.inputs:
            write(below, depth + 1)

    write(root, 0)
    return "\n".join(lines)


def brief(parameters: str) -> str:
    """Parameters without quotes, and without names that stay as they are.

    >>> brief("`hour` AS `hour`, max(`a b`) AS `top`")
    'hour, max(`a b`) AS top'
    """
    plain = re.sub(r"`(\w+)`", r"\1", parameters)
    return re.sub(r"\b(\w+) AS \1\b", r"\1", plain)


def described(node: Node) -> str:
    """An operator's parameters in a line."""
    return node.operator.parameters(node.schema)
