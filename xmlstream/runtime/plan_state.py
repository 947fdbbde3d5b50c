"""State of a plan: each source's and operator's, with the segments of kept tuples, as the last commit has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from operators.state.ages import PurgeAfter
from operators.state.operator_state import OperatorState
from operators.storage.segments import SegmentStore
from operators.storage.store import Store
from punct_ns.errors import StateError
from punct_ns.lifespan import Bound
from xmlstream.plan.nodes import Node, Results, Scan, Static, names, topological
from xmlstream.runtime.query_inputs import StaticInput
from xmlstream.runtime.source_input import SourceInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class PlanState(dict[Node, OperatorState]):
    """The states of a plan's sources and operators, in topological order.

    Raises:
        StateError: Segments are gone or damaged, or what was recorded is not what is declared.
    """

    def __init__(
        self,
        spark: SparkSession,
        root: Node,
        checkpoint: Store,
        committed: Mapping[str, Any],
        purge_after: PurgeAfter | None = None,
    ) -> None:
        """Take up what a commit recorded, by the nodes' names, and remove all other segments."""
        super().__init__()
        self._names = names(root)
        self._stores: dict[Node, SegmentStore] = {}
        for node in topological(root):
            if isinstance(node.operator, Results):
                continue
            name = self._names[node]
            recorded = committed.get(name)
            store = self._stores[node] = SegmentStore(spark, checkpoint.below(f"state/{name}"))
            store.require_sound(_segments(recorded))
            try:
                self[node] = _state(node, store, recorded, purge_after)
            except StateError as error:
                raise StateError(
                    f"in the checkpoint {checkpoint.path()}, of {name}, {error.what}", hint=error.hint
                ) from None
            store.retain(_segments(recorded))

    def begin(self, slice_id: int, time: datetime, has_closed: Callable[[Bound], bool]) -> None:
        """A slice begins, at its recorded time; `has_closed` says whether a stream has closed what is below a bound."""
        for node, state in self.items():
            self._stores[node].begin(slice_id)
            state.begin(time, slice_id, has_closed)

    def end(self, has_closed: Callable[[Bound], bool]) -> None:
        """Another part of the slice begins, in which the keys are new whose lifespans have ended."""
        for state in self.values():
            state.end(has_closed)

    def record(self, whole: bool) -> dict[str, Any]:
        """What the slice changed (`whole`: everything), by the nodes' names, for its commit."""
        return {self._names[node]: state.record(whole) for node, state in self.items()}

    def unsynced(self) -> list[Path]:
        """The files that the commit must find on the disk."""
        return [path for store in self._stores.values() for path in store.unsynced()]

    def settle(self) -> None:
        """Waits for what goes on beside the slices, when the query ends."""
        for state in self.values():
            state.settle()

    def retain(self, committed: Mapping[str, Any]) -> None:
        """Removes the segments that a commit does not name."""
        for node, store in self._stores.items():
            store.retain(_segments(committed[self._names[node]]))


def _state(
    node: Node, store: SegmentStore, committed: dict[str, Any] | None, purge_after: PurgeAfter | None
) -> OperatorState:
    """The state of a source or an operator, as it was committed."""
    inputs = tuple(n.schema for n in node.inputs) or (node.schema,)
    match node.operator:
        case Scan() as scan:
            declared = SourceInput.state_schema(scan)
        case Static() as static:
            declared = StaticInput.state_schema(static)
        case Results():
            raise AssertionError("results have no state")
        case _:
            declared = node.state_schema
    lasting = [i for i, below in enumerate(node.inputs) if _is_static(below)]
    return OperatorState(store, inputs, declared, committed, purge_after, lasting)


def _is_static(node: Node) -> bool:
    """Whether no stream is read there."""
    return not any(isinstance(below.operator, Scan) for below in topological(node))


def _segments(recorded: dict[str, Any] | None) -> dict[str, str]:
    """The segments of an operator's recorded state, with their checksums."""
    logs = recorded["kept"].values() if recorded else ()
    found = [segment for log in logs for part in log["segments"] for segment in (part, *part["removed"])]
    return {segment["name"]: segment["checksum"] for segment in found}
