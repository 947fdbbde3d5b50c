"""A walk over a plan: every operator once, in topological order, then the results.

The driver collects the tuples of a result if they are few; if they are many, the tasks write them. Spark counts the
tuples that each operator emits while it computes the results. A count interrupts the code that Spark generates for a
chain of operators. So a number that follows from the inputs of an operator is not counted: where the operator emits its
input, or a fixed number of tuples for each input tuple.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.behaviour import advance
from xmlstream.operators.frames.expression import COUNT
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.plan.nodes import Node, Results, Scan, Static, names, results, topological
from xmlstream.punct_ns.errors import original_error
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.slices import POSITION
from xmlstream.runtime.loop.plan_state import PlanState
from xmlstream.sink.directory_sink import REPORT, PartWriter, WrittenPart, reported_parts

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Engine, Frame


LARGE = 1 << 17
"""The most tuples of a result that the driver collects."""


@dataclass(frozen=True, slots=True)
class ComputedResult:
    """The tuples of a result in a slice.

    Attributes:
        rows: The number of tuples.
        tuples: The tuples that the driver has collected; None if there are none.
        parts: The files that tasks have written with the other tuples.
    """

    rows: int = 0
    tuples: pa.Table | None = None
    parts: tuple[WrittenPart, ...] = ()

    @staticmethod
    def of(result: Slice, root: Node, writer: PartWriter | None, apart: ObjectStore | None = None) -> ComputedResult:
        """Computes the tuples of a result, whose node is `root`; if they are many, tasks write them by the writer.

        Tasks that do not see the writer's store write to the store `apart`; this process brings the parts over.
        """
        if result.tuples is None:
            return ComputedResult()
        frame = _columns(result.tuples, root)
        if writer is None or result.tuples.at_most <= LARGE:
            table = frame.to_arrow()
            return ComputedResult(table.num_rows, table)
        # A join seldom has as many tuples as the product of the numbers of its inputs.
        if (here := frame.here()) is not None:
            return ComputedResult(here.num_rows, here)
        try:
            within = writer if apart is None else replace(writer, store=apart)
            parts, sent, rows = reported_parts(frame.engine.write_parts(frame, within, REPORT))
        except Exception as error:  # noqa: BLE001 - raised again, if possible as the error of the task
            raise original_error(error) or error from None
        if apart is not None:
            for part in parts:
                writer.store.write(part.name, [apart.read(part.name)])
        return ComputedResult(rows, sent, tuple(parts))


def _columns(tuples: Tuples, root: Node) -> Frame:
    frame = tuples.frame
    names = [*root.schema.names, *([POSITION] if POSITION in frame.columns else [])]
    return frame.select(*names)


@dataclass(slots=True)
class TupleCounts:
    """The number of tuples that each node of a plan emits in one walk.

    Attributes:
        slices: The emitted slices, as consumers read them.
        results: The number of tuples of each result, once it is computed.
    """

    slices: dict[Node, Slice] = field(default_factory=dict)
    results: dict[Node, int] = field(default_factory=dict)
    _observed: dict[Node, Callable[[], Mapping[str, Any]]] = field(default_factory=dict)
    _follows: dict[Node, tuple[int, Sequence[Node]]] = field(default_factory=dict)

    def hand_on(self, node: Node, slice_: Slice) -> None:
        """Records the slice that a node emits; Spark counts its tuples if their number follows from nothing else."""
        tuples = slice_.tuples
        if tuples is not None and not tuples.exact:
            same = next((below for below in node.inputs if self.slices[below].tuples is tuples), None)
            if same is not None:
                self._follows[node] = 1, [same]
            elif tuples.of_each is not None:
                self._follows[node] = tuples.of_each, node.inputs
            else:
                frame, self._observed[node] = tuples.frame.observed({"tuples": COUNT})
                tuples = replace(tuples, frame=frame, computed=False)
        self.slices[node] = Slice(tuples and replace(tuples, of_each=None), slice_.punctuations)

    def of(self, node: Node) -> int:
        """The number of tuples that a node emitted; known once the results are computed."""
        tuples = self.slices[node].tuples
        if tuples is None:
            return 0
        if node in self.results:
            return self.results[node]
        if tuples.exact:
            return tuples.at_most
        if node in self._follows:
            of_each, below = self._follows[node]
            return of_each * sum(map(self.of, below))
        # Spark counts nothing where it finds while planning that the tuples do not contribute to a result.
        return int(self._observed[node]().get("tuples", 0))


@dataclass(frozen=True, slots=True)
class Walked:
    """The output of one walk.

    Attributes:
        slices: The slice that each source and operator emitted.
        results: The computed tuples of each result.
        outs: The number of tuples that each source and operator emitted.
    """

    slices: dict[Node, Slice]
    results: list[ComputedResult]
    outs: dict[Node, int]

    def result(self, number: int, node: Node) -> tuple[pa.Table | None, Sequence[Punctuation]]:
        """The tuples that the driver has collected of a result, and the result's punctuations."""
        return self.results[number].tuples, self.slices[node].punctuations


class PlanWalk:
    """What walks over a plan; the states of its operators change as it does."""

    def __init__(self, engine: Engine, root: Node, states: PlanState, apart: ObjectStore | None) -> None:
        """Walks with these states; `apart` is the store for tasks that do not see the checkpoint."""
        self._engine, self._states, self._apart = engine, states, apart
        self._names, self._results = names(root), results(root)
        consumers = Counter(below for node in topological(root) for below in node.inputs)
        self._shared = {node for node, count in consumers.items() if count > 1 and node.inputs}

    def part(self, came: Mapping[Node, Slice], writers: Sequence[PartWriter | None], query: str, called: str) -> Walked:
        """Runs every operator once, over the whole slice or over one part of it.

        Args:
            came: What the sources emit.
            writers: For each result, what writes it within tasks if it is large.
            query: The name of the query, and
            called: that of the slice, where the engine shows its work.
        """
        counts = TupleCounts()
        slices = counts.slices
        for node in self._states:
            if node in came:
                counts.hand_on(node, came[node])
            else:
                self._engine.describe(query, f"{called}, {self._names[node]}")
                counts.hand_on(node, self._advanced(node, slices))
        self._engine.describe(query, f"{called}, result")
        computed = [
            ComputedResult.of(slices[node], node, writer, self._apart)
            for node, writer in zip(self._results, writers, strict=True)
        ]
        counts.results.update((node, one.rows) for node, one in zip(self._results, computed, strict=True))
        return Walked(slices, computed, {node: counts.of(node) for node in slices})

    def _advanced(self, node: Node, slices: Mapping[Node, Slice]) -> Slice:
        """The slice that an operator emits."""
        if isinstance(node.operator, Scan | Static | Results):
            raise AssertionError(f"{self._names[node]} is not an operator")
        state = self._states[node]
        slice_ = advance(node.operator, [slices[n] for n in node.inputs], state)
        if node in self._shared and slice_.tuples is not None:
            # A slice with several consumers is computed once.
            return Slice(state.computed(slice_.tuples), slice_.punctuations)
        return slice_
