"""Projections as nodes of a plan, but for those that change nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from operators.expressions.columns import Column
from operators.project import Project
from punct_ns.schema import Attribute
from punct_ns.slices import quoted
from xmlstream.plan.nodes import Node


def projected(node: Node, columns: Sequence[Column]) -> Node:
    """The columns of each tuple of the node; the node itself where they are its attributes, each in its place."""
    operator = Project(tuple(columns))
    return node if operator.is_identity(node.schema) else Node(operator, (node,), "project")


def narrowed(node: Node, names: Sequence[str]) -> Node:
    """The node with these of its attributes and no others."""
    return projected(node, [Column(node.schema.attribute(name), quoted(name), name) for name in names])


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """The node with these attributes, each by the name of the one that it is, and no others."""
    sources = {name: node.schema.attribute(source) for name, source in names.items()}
    return projected(
        node, [Column(Attribute(name, of.domain), quoted(of.name), of.name) for name, of in sources.items()]
    )
