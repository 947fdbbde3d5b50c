"""A plan as text, for people: what `explain` prints."""

from __future__ import annotations

from xmlstream.plan.nodes import Node, names


def tree(root: Node) -> str:
    """The plan as text, a node a line, its inputs below it and indented."""
    called = names(root)
    lines: list[str] = []

    def write(node: Node, depth: int) -> None:
        lines.append(f"{'  ' * depth}{called[node]}: {described(node)}")
        for below in node.inputs:
            write(below, depth + 1)

    write(root, 0)
    return "\n".join(lines)


def described(node: Node) -> str:
    """An operator's parameters in a line."""
    return node.operator.parameters(node.schema)
