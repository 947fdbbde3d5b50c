"""State of a plan: the states of its sources and operators, restored from the last commit, with their segments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from xmlstream.operators.state.ages import PurgeAfter
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.state_schema import OperatorRecord
from xmlstream.operators.storage.segments import SegmentStore
from xmlstream.operators.storage.store import Folder
from xmlstream.plan.nodes import Node, Results, Scan, awaited, names, topological
from xmlstream.punct_ns.errors import StateError
from xmlstream.punct_ns.lifespan import Bound

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Engine
    from xmlstream.operators.storage.shared_files import SharedFolder


class PlanState(dict[Node, OperatorState]):
    """The states of a plan's sources and operators, in topological order.

    Raises:
        StateError: Segments are gone or damaged, or a recorded state does not fit the declared one.
    """

    def __init__(
        self,
        engine: Engine,
        root: Node,
        checkpoint: Folder,
        committed: Mapping[str, OperatorRecord],
        purge_after: PurgeAfter | None = None,
        segments: Callable[[str], SharedFolder | None] = lambda folder: None,
    ) -> None:
        """Restore the states that a commit recorded by the nodes' names, and remove all other segments.

        `segments` returns where executors find the segments of a folder, if they do not see the checkpoint.
        """
        super().__init__()
        self._names = names(root)
        self._stores: dict[Node, SegmentStore] = {}
        groups_above = awaited(root)
        for node in topological(root):
            if isinstance(node.operator, Results):
                continue
            name = self._names[node]
            recorded = committed.get(name)
            folder = f"state/{name}"
            store = self._stores[node] = SegmentStore(engine, checkpoint.below(folder), segments(folder))
            store.require_sound(recorded.checksums if recorded else {})
            try:
                self[node] = _state(node, store, recorded, purge_after)
            except StateError as error:
                raise StateError(
                    f"the checkpoint {checkpoint.where()}, state of {name}: {error.what}", hint=error.hint
                ) from None
            self[node].awaited = groups_above[node]
            store.retain(recorded.checksums if recorded else ())

    def begin(self, slice_id: int, time: datetime, has_closed: Callable[[Bound], bool]) -> None:
        """Begins a slice at its recorded time; `has_closed` returns whether a stream has closed all below a bound."""
        for node, state in self.items():
            self._stores[node].begin(slice_id)
            state.begin(time, slice_id, has_closed)

    def end(self, has_closed: Callable[[Bound], bool]) -> None:
        """Begins another part of the slice, in which keys whose lifespans have ended are new."""
        for state in self.values():
            state.end(has_closed)

    def record(self, whole: bool) -> dict[str, OperatorRecord]:
        """The changes of the slice, or with `whole` the entire state, by the nodes' names, for its commit."""
        return {self._names[node]: state.record(whole) for node, state in self.items()}

    def unsynced(self) -> list[Path]:
        """The files to sync before the commit."""
        return [path for store in self._stores.values() for path in store.unsynced()]

    def settle(self) -> None:
        """Waits for work beside the slices, such as merges, when the query ends."""
        for state in self.values():
            state.settle()

    def retain(self, committed: Mapping[str, OperatorRecord]) -> None:
        """Removes the segments that the commit does not name."""
        for node, store in self._stores.items():
            store.retain(committed[self._names[node]].checksums)


def _state(
    node: Node, store: SegmentStore, committed: OperatorRecord | None, purge_after: PurgeAfter | None
) -> OperatorState:
    """The state of a source or an operator, restored from a commit."""
    inputs = tuple(n.schema for n in node.inputs) or (node.schema,)
    streams = [any(isinstance(each.operator, Scan) for each in topological(below)) for below in node.inputs]
    lasting = [i for i, reads_stream in enumerate(streams) if not reads_stream]
    return OperatorState(store, inputs, node.state_schema, committed, purge_after, lasting)
