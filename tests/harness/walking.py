"""A whole plan run over streams of plain Python lists, slice by slice, as a query runs it: operator after operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.harness.running import Done, Items, KeptColumns, Row, made, rows_of, tuples_of
from tests.oracles.relational import answers
from xmlstream.diagnosis.kept_rows import KeptRows
from xmlstream.operators.behaviour import advance
from xmlstream.operators.state.expiring_set import Entry
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice
from xmlstream.operators.state.state_schema import OperatorRecord, StateSchema
from xmlstream.operators.storage.segments import SegmentStore
from xmlstream.plan.nodes import Node, Results, Scan, Static, awaited, names, results, topological
from xmlstream.punct_ns.slices import POSITION
from xmlstream.session.engines import engine_of, is_in_process

if TYPE_CHECKING:
    from xmlstream.session.engines import Session


class Walk:
    """A plan with the states of its operators, which `restart` loses and restores from what the last slice recorded.

    With `positioned`, tuples come with their positions. `put_out` has what each of the `watched` nodes put out in the
    last slice.
    """

    def __init__(
        self,
        session: Session,
        directory: Path,
        root: Node,
        *,
        positioned: bool = False,
        watched: Collection[Node] = (),
    ) -> None:
        self.spark, self.directory, self.root = session, directory, root
        self.roots = results(root)
        self.nodes = [node for node in topological(root) if not isinstance(node.operator, Scan | Results)]
        self.scans = [node for node in topological(root) if isinstance(node.operator, Scan)]
        self.names = names(root)
        self.put_out: dict[Node, list[Row]] = {}
        self._watched = watched
        self._slice = self._came = 0
        self._positioned = positioned
        self._columns = KeptColumns()
        self._records: dict[Node, OperatorRecord | None] = dict.fromkeys(self.nodes)
        self.restart()

    def restart(self, session: Session | None = None) -> None:
        """As after a crash: another process, the same directory; perhaps in another session."""
        self.spark = session or self.spark
        self._stores = {
            node: SegmentStore(engine_of(self.spark), self.directory / self.names[node]) for node in self.nodes
        }
        self._states = {node: self._state(node) for node in self.nodes}

    def _state(self, node: Node) -> OperatorState:
        inputs = tuple(n.schema for n in node.inputs)
        state = OperatorState(self._stores[node], inputs, self._declared(node), self._records[node])
        state.awaited = awaited(self.root)[node]
        return state

    @staticmethod
    def _declared(node: Node) -> StateSchema:
        assert not isinstance(node.operator, Scan | Static | Results)
        return node.operator.state_schema(*(n.schema for n in node.inputs))

    def kept(self, node: Node) -> KeptRows:
        """What an operator keeps, read from what the last slice recorded."""
        record = self._records[node] or OperatorRecord()
        return KeptRows(self.directory / self.names[node], self._declared(node).logs, record.kept)

    def sets(self, node: Node) -> Mapping[str, Sequence[Entry]]:
        """What an operator holds of punctuations after the last slice."""
        record = self._records[node]
        return {} if record is None else record.sets

    def slice(self, given: Mapping[str, Items]) -> Done:
        """One slice of each source, by the source's name; what the root made of it, and what all operators hold."""
        slices = self._walked(given)
        rows = self._rows(self.root, slices[self.root])
        self.put_out = {node: self._rows(node, slices[node]) for node in self._watched}
        kept = self._recorded()
        return Done(rows, list(slices[self.root].punctuations), kept, self.purged)

    def each(self, given: Mapping[str, Items]) -> tuple[list[Items], int]:
        """The same of a plan of several results, all of integers: what each gave, and how many tuples all keep."""
        slices = self._walked(given)
        frames = {
            node: tuples.frame.select(*node.schema.names)
            for node in self.roots
            if (tuples := slices[node].tuples) is not None
        }
        if is_in_process(self.spark):
            rows = {
                node: Counter(zip(*frame.to_arrow().to_pydict().values(), strict=True))
                for node, frame in frames.items()
            }
        else:
            rows = dict(zip(frames, answers(list(map(made, frames.values()))), strict=True))
        found: list[Items] = [
            (list(rows[node].elements()) if node in rows else [], slices[node].punctuations) for node in self.roots
        ]
        return found, self._recorded()

    def _walked(self, given: Mapping[str, Items]) -> dict[Node, Slice]:
        self._slice += 1
        came = sum(len(rows) for rows, _ in given.values())
        engine_of(self.spark).begin(came + sum(state.rows for state in self._states.values()))
        slices = {scan: self._read(scan, *given[self._name(scan)]) for scan in self.scans}
        self._came += came
        for node in self.nodes:
            self._stores[node].begin(self._slice)
            self._states[node].begin(datetime.now(UTC), self._slice)
            assert not isinstance(node.operator, Scan | Static | Results)
            slices[node] = advance(node.operator, [slices[n] for n in node.inputs], self._states[node])
        return slices

    @staticmethod
    def _rows(node: Node, done: Slice) -> list[Row]:
        return [] if done.tuples is None else rows_of(done.tuples, node.schema)

    @property
    def purged(self) -> int:
        """How many tuples all operators purged in the last slice."""
        return sum(state.purged for state in self._states.values())

    @property
    def sizes(self) -> dict[Node, int]:
        """How many tuples each operator keeps."""
        return {node: state.rows for node, state in self._states.items()}

    def _recorded(self) -> int:
        """What all operators keep, after a record is made of it."""
        for node in self.nodes:
            self._records[node] = record = self._states[node].record(whole=True)
            for log in self._declared(node).logs:
                self._columns.require_same((node, log), record.kept[log], self._stores[node], self._slice)
        return sum(state.rows for state in self._states.values())

    @staticmethod
    def _name(scan: Node) -> str:
        assert isinstance(scan.operator, Scan)
        return scan.operator.name.lower()

    def _read(self, scan: Node, rows: Sequence[Row], punctuations: Sequence[Any]) -> Slice:
        """Tuples as a source gives them: with the attributes that are read, punctuations over them all."""
        assert isinstance(scan.operator, Scan)
        position = [POSITION] if self._positioned else []
        tuples = tuples_of(self.spark, rows, scan.schema, self._came if self._positioned else None)
        if tuples is not None:
            frame = tuples.frame.select(*scan.operator.options.columns, *position)
            tuples = type(tuples)(frame, tuples.at_most)
        return Slice(tuples, tuple(punctuations))
