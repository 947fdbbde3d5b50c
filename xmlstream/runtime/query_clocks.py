"""Clocks of a query (`operators.punctuators.order`): what each shows in a slice, and whether they tick without input.

The process that plans the slices knows what is there to be read, and notes in the offset the moment at which all that
was there is read with the slice; so a clock speaks of that moment, whatever came while the slice was computed, and says
the same if the slice is repeated. It does not know what waits. So the query writes a file while tuples are kept that a
clock may close, with the seconds that are to pass between two slices; while it is there, a slice follows without input.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from operators.behaviour import promised
from operators.punctuate import Punctuate
from operators.punctuators.order import ByClock
from operators.state.operator_state import OperatorState
from operators.storage.store import Place, store_at
from punct_ns.scheme import Scheme
from sources.xml.options.source import SourceOptions
from xmlstream.plan.nodes import Node, Results, Scan, Static, names, topological

CLOCK = "clock"
"""The name of that file in a checkpoint."""


def clocks_of(root: Node) -> list[Node]:
    """The nodes of a plan that punctuate by clock."""
    return [node for node in topological(root) if _is_clock(node)]


class Clocks:
    """The clocks of a running query."""

    def __init__(self, root: Node, readers: Sequence[SourceOptions], checkpoint: Place, tick: float) -> None:
        """Find out what waits for them.

        Args:
            root: The plan.
            readers: What its sources are read by (`shared_scans`).
            checkpoint: Where the checkpoint is.
            tick: After how many seconds a slice of the clocks alone follows.
        """
        called = names(root)
        readers_of = {each.source: reader.source for reader in readers for each in (reader, *reader.beside)}
        self._readers = {
            clock: [readers_of[called[below]] for below in topological(clock) if isinstance(below.operator, Scan)]
            for clock in clocks_of(root)
        }
        self._waiting = [*_closed_by_clocks(root)]
        self._checkpoint, self._tick = store_at(checkpoint), tick
        self._checkpoint.delete(CLOCK)

    def begin(self, states: Mapping[Node, OperatorState], offset: str) -> None:
        """A slice begins that reads up to an offset, as Spark has logged it: tells the clocks their moments."""
        # Behind the format and what Spark itself notes.
        read = json.loads(offset.splitlines()[2])
        for clock, readers in self._readers.items():
            moments = [read[reader].get("clock") for reader in readers]
            if None not in moments:
                states[clock].read_until = min(map(datetime.fromisoformat, moments), default=None)

    def wait(self, states: Mapping[Node, OperatorState]) -> None:
        """Has the clocks tick while anything waits for them."""
        if not any(states[node].waiting_rows for node in self._waiting):
            self._checkpoint.delete(CLOCK)
        elif self._checkpoint.size(CLOCK) is None:
            self._checkpoint.replace(CLOCK, [str(self._tick).encode()], durable=False)


def _closed_by_clocks(root: Node) -> Iterator[Node]:
    """The operators to which more is promised with the clocks than without them."""
    with_clocks, without = _promised(root, clocks=True), _promised(root, clocks=False)
    for node in topological(root):
        if any(with_clocks[below] != without[below] for below in node.inputs) and not isinstance(
            node.operator, Results
        ):
            yield node


def _promised(root: Node, *, clocks: bool) -> dict[Node, tuple[Scheme, ...]]:
    """What each node of a plan promises while its streams go on, and they promise what they do, or clocks alone do."""
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
