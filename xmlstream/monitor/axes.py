"""Axes: the attributes of a query's sources whose closed values are compared, since the plan makes them one.

Attributes belong to one axis if an operator of the plan hands them on as one: merged by position, joined as equal, or
renamed. What a value that is computed from an attribute closes belongs to no axis of the sources.
"""

from __future__ import annotations

from collections.abc import Iterator

from punct_ns.slices import quoted
from xmlstream.plan.nodes import Node, Results, Scan, Static, names, topological

SourceAttribute = tuple[str, str]
"""A source's name in the plan, and one of its attributes."""


def axes(root: Node) -> list[list[SourceAttribute]]:
    """Which attributes of sources stand together, in the order of the plan; each stands somewhere."""
    called = names(root)
    group: dict[SourceAttribute, set[SourceAttribute]] = {}
    origins: dict[tuple[Node, str], set[SourceAttribute]] = {}
    for node in topological(root):
        if isinstance(node.operator, Scan):
            for name in node.schema.names:
                one = (called[node], name)
                origins[node, name.lower()] = group[one] = {one}
        elif isinstance(node.operator, Static | Results):
            continue
        else:
            for name in node.schema.names:
                found = set[SourceAttribute]().union(*(origins.get(place, ()) for place in _handed_on(node, name)))
                merged = set[SourceAttribute]().union(*(group[one] for one in found))
                for one in merged:
                    group[one] = merged
                origins[node, name.lower()] = merged
    together: list[list[SourceAttribute]] = []
    done: set[SourceAttribute] = set()
    for one, others in group.items():
        if one not in done:
            together.append([other for other in group if other in others])
            done |= others
    return together


def _handed_on(node: Node, name: str) -> Iterator[tuple[Node, str]]:
    """The attributes of inputs that an attribute of the output is, unchanged."""
    assert not isinstance(node.operator, Scan | Static | Results)
    terms = node.operator.predicate_terms(*(below.schema for below in node.inputs))
    for below, known in zip(node.inputs, terms, strict=True):
        term = known.get(name.lower())
        for other in below.schema.names:
            if term is not None and term.lower() == quoted(other).lower():
                yield below, other.lower()
