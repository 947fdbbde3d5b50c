"""Joins of many inputs in a ring: each is joined with the next one, and the last one with the first."""

from __future__ import annotations

from xmlstream.operators.multiway_join import MultiwayJoin
from xmlstream.plan.nodes import Node
from xmlstream.sql.tables.declaration import scan


def ring(inputs: int, silent: int | None = None) -> Node:
    """A join of so many inputs, each of which promises what closes one partner; one may promise nothing."""
    scans = [
        scan(f"s{i}", {"path": "in", "rowTag": "r", "schemes": "" if i == silent else f"a{i}"}, f"a{i} INT, b{i} INT")
        for i in range(inputs)
    ]
    equalities = tuple(((i, f"b{i}"), ((i + 1) % inputs, f"a{(i + 1) % inputs}")) for i in range(inputs))
    return Node(MultiwayJoin(inputs, equalities), tuple(scans), "multiway_join")
