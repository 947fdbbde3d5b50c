"""Clocks of a query (`xmlstream.operators.punctuators.order`): the time of each in a slice, and slices without input.

The process that plans slices records in each offset a moment such that the slice reads all input that was there at that
moment. A clock punctuates for that moment: input that arrives while the slice is computed does not matter, and a
repeated slice gets the same punctuations. That process does not know which tuples are kept. So, while tuples are kept
that a clock may close, the query keeps a file in the checkpoint with the number of seconds between two slices. While
the file exists, slices follow without input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from xmlstream.operators.behaviour import promised
from xmlstream.operators.punctuate import Punctuate
from xmlstream.operators.punctuators.order import ByClock
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.storage.store import LocalPlace, folder_at
from xmlstream.plan.nodes import Node, Results, Scan, Static, names, topological
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.sources.xml.options.reading import Reading

CLOCK = "clock"
"""The name of that file in the checkpoint."""


def clocks_of(root: Node) -> list[Node]:
    """The nodes of a plan that punctuate by clock."""
    return [node for node in topological(root) if _is_clock(node)]


class Clocks:
    """The clocks of a running query, and the operators that keep tuples for them."""

    def __init__(self, root: Node, readers: Sequence[Reading], checkpoint: LocalPlace, tick: float) -> None:
        """Find the operators whose tuples the clocks may close.

        Args:
            root: The plan.
            readers: The readers of its sources (`shared_scans`).
            checkpoint: LocalPlace of the checkpoint.
            tick: Seconds until a slice of the clocks alone follows.
        """
        name_of = names(root)
        readers_of = {each.name: reader.name for reader in readers for each in (reader, *reader.beside)}
        self._readers = {
            clock: [readers_of[name_of[below]] for below in topological(clock) if isinstance(below.operator, Scan)]
            for clock in clocks_of(root)
        }
        # The operators whose inputs promise more with the clocks than without them.
        with_clocks, without = _promised(root, clocks=True), _promised(root, clocks=False)
        self._waiting = [
            node
            for node in topological(root)
            if any(with_clocks[below] != without[below] for below in node.inputs)
            and not isinstance(node.operator, Results)
        ]
        self._checkpoint, self._tick = folder_at(checkpoint), tick
        self._checkpoint.delete(CLOCK)

    def begin(self, states: Mapping[Node, OperatorState], end: Mapping[str, Any]) -> None:
        """Sets the clocks for a slice, to the moments up to which it reads the sources."""
        for clock, readers in self._readers.items():
            moments = [end[reader].get("clock") for reader in readers]
            if None not in moments:
                states[clock].read_until = min(map(datetime.fromisoformat, moments), default=None)

    def wait(self, states: Mapping[Node, OperatorState]) -> None:
        """Writes the file of the clocks while tuples wait for them; deletes it otherwise."""
        if not any(states[node].waiting_rows for node in self._waiting):
            self._checkpoint.delete(CLOCK)
        elif self._checkpoint.size(CLOCK) is None:
            self._checkpoint.replace(CLOCK, [str(self._tick).encode()], durable=False)


def _promised(root: Node, *, clocks: bool) -> dict[Node, tuple[Scheme, ...]]:
    """The schemes of each node of a plan while its streams go on; without `clocks`, clocks promise nothing."""
    found: dict[Node, tuple[Scheme, ...]] = {}
    for node in topological(root):
        match node.operator:
            case Scan() as scan:
                found[node] = scan.options.schemes
            case Static():
                found[node] = (Scheme(()),)
            case Results():
                found[node] = ()
            case operator if clocks or not _is_clock(node):
                found[node] = promised(operator, [(below.schema, found[below]) for below in node.inputs])
            case _:
                found[node] = ()
    return found


def _is_clock(node: Node) -> bool:
    return isinstance(node.operator, Punctuate) and isinstance(node.operator.rule, ByClock)
