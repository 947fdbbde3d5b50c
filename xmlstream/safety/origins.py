"""Origins: which attributes of which sources an attribute of a plan's node is, or is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from operators.difference import Difference
from operators.intersect import Intersect
from operators.merge import Merge
from operators.project import Project
from xmlstream.plan.nodes import Node, Results, Scan, Static

Origin: TypeAlias = tuple[Node, str]
"""A source and one of its attributes."""


def origins(node: Node, name: str) -> tuple[Origin, ...]:
    """What an attribute comes from, once each: several of what is merged or coalesced, none of what an operator makes.

    Of what is computed it is the one attribute whose closing closes it, where there is one.
    """
    operator = node.operator
    match operator:
        case Scan() | Static():
            return ((node, node.schema.attribute(name).name),)
        case Results():
            return ()
        case Merge() | Intersect() | Difference():
            at = node.schema.index(name)
            found = [origins(below, below.schema.names[at]) for below in node.inputs]
            return tuple(dict.fromkeys(one for each in found for one in each)) if all(found) else ()
        case Project(columns=columns):
            (column,) = (column for column in columns if column.attribute.name.lower() == name.lower())
            sources = [each.source for each in column.either or (column,) if each.source]
            found = [origins(node.inputs[0], source) for source in sources]
            return tuple(dict.fromkeys(one for each in found for one in each)) if all(found) else ()
    if len(node.inputs) == 1 and (line := operator.lineage([name], node.inputs[0].schema)) and len(line[0]) == 1:
        return origins(node.inputs[0], line[0][0])
    having = [below for below in node.inputs if name.lower() in map(str.lower, below.schema.names)]
    return origins(having[0], name) if len(having) == 1 else ()


def by_source(found: Sequence[tuple[Origin, ...]]) -> list[tuple[Node, tuple[str, ...]]]:
    """Attributes' origins by their sources; nothing where one of them has none."""
    if not all(found):
        return []
    sources: dict[Node, dict[str, None]] = {}
    for each in found:
        for node, name in each:
            sources.setdefault(node, {})[name] = None
    return [(node, tuple(names)) for node, names in sources.items()]
