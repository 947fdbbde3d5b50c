"""Idle promises: schemes of sources by which nothing answers sooner, is forgotten sooner, or is promised of the result.

A query benefits from a scheme if it enables it or cleanses it (Tucker et al. 2007, §3.3). One that does neither, and of
which nothing goes out either, costs its source the saying of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from punct_ns.scheme import Scheme
from xmlstream.plan.nodes import Node, Scan, results, topological
from xmlstream.safety.promises import Promised, promised
from xmlstream.safety.verdicts import judged


@dataclass(frozen=True, slots=True)
class IdlePromise:
    """A scheme of a source that a query does not benefit from."""

    source: str
    scheme: Scheme


def idle_promises(root: Node) -> list[IdlePromise]:
    """Those that can all be left out without making the query worse, the last ones of a source first.

    Of two that serve alike the first is not idle. Their order in the result is that of the sources.
    """
    scans = [node for node in topological(root) if isinstance(node.operator, Scan)]
    said = {node: [*node.operator.options.schemes] for node in scans if isinstance(node.operator, Scan)}
    whole = _gained(root, said)
    found: list[IdlePromise] = []
    for node in scans:
        idle = []
        for scheme in reversed(tuple(said[node])):
            fewer = {**said, node: [other for other in said[node] if other is not scheme]}
            if _gained(root, fewer) == whole:
                said = fewer
                idle.append(IdlePromise(node.label, scheme))
        found += reversed(idle)
    return found


def _gained(root: Node, said: dict[Node, list[Scheme]]) -> Any:
    """When each operator answers and forgets, and what is promised of the results."""
    known = promised(root, follow=True, instead=said)
    verdict = judged(root, follow=True, known=known)
    operators = [
        (one.answers.when, [(kept.until.when, kept.is_bounded) for kept in one.keeps]) for one in verdict.operators
    ]
    return operators, [_as_set(known[node]) for node in results(root)]


def _as_set(found: Promised) -> Sequence[str]:
    return sorted(map(str, found.running))
