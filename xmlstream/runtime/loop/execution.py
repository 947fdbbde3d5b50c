"""Execution of a slice: every operator once, in topological order, then one commit.

The order of writing makes a slice count exactly once, whichever process is killed at whatever moment, and if the power
fails: first segments and drafted documents are written and synced; then the commit record, in one rename, and synced;
then the documents are published and superfluous files are deleted. A start restores the last commit and removes all
other files. A slice that was not committed has no effect: its files are never read, and the next slice is planned anew.

The driver collects the tuples of a result if they are few; if they are many, the tasks write them. Spark counts the
tuples that each operator emits while it computes the results. A count interrupts the code that Spark generates for a
chain of operators. So a number that follows from the inputs of an operator is not counted: where the operator emits its
input, or a fixed number of tuples for each input tuple.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.behaviour import advance
from xmlstream.operators.frames.expression import COUNT
from xmlstream.operators.state.ages import PurgeAfter
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.operators.storage.object_requests import requests
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.operators.storage.records import DeadLetter
from xmlstream.plan.nodes import Node, Results, Scan, Static, copies, names, results, topological
from xmlstream.punct_ns.errors import UngrammaticalStream, original_error, place
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.slices import POSITION
from xmlstream.runtime.checkpoint.checkpoint import DOCUMENTS, Checkpoint
from xmlstream.runtime.checkpoint.commit_log import Commit
from xmlstream.runtime.checkpoint.declared import Declared, DeclaredNotes, rosters
from xmlstream.runtime.likely_mistakes import MISREAD, OVERDUE, TOO_FEW, Noticed
from xmlstream.runtime.loop.in_step import InStep
from xmlstream.runtime.loop.plan_state import PlanState
from xmlstream.runtime.loop.query_clocks import Clocks
from xmlstream.runtime.loop.query_inputs import SourceInputs
from xmlstream.runtime.loop.source_input import write_letters
from xmlstream.runtime.metrics import OperatorReport, SliceReport, last_activity
from xmlstream.runtime.silent_schemes import Patience
from xmlstream.session.spark_errors import of_data, of_worker
from xmlstream.sink.directory_sink import REPORT, PartWriter, WrittenPart, reported_parts
from xmlstream.sink.sink import ComputedSlice, Exactness, Moment, SinkLeft, SliceSink
from xmlstream.sources.local_paths import in_equal_lengths, numbered_wrong
from xmlstream.sources.xml.parser.findings_collector import NAMES_SHOWN, Findings, few_names
from xmlstream.sources.xml.slices.micro_batches import StagedRange
from xmlstream.sources.xml.slices.stage_writer import with_elements

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Engine, Frame


_LOG = logging.getLogger("xmlstream.findings")

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
class _Part:
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


class QueryStopped(Exception):
    """Raised in a slice that begins while the query is being stopped."""


class Execution:
    """A running query: its operators with their states, restored from the checkpoint's last commit.

    `in_step` finds the sources that are ahead of others. `memory` measures the memory of the processes by name, in
    bytes; `clock` gives the time of a slice, `measured` seconds that never go back; `query` is the query's name where
    the engine shows its work.
    """

    memory: Callable[[], dict[str, int]] = staticmethod(dict)
    clock: Callable[[], datetime] = staticmethod(lambda: datetime.now(UTC))
    measured: Callable[[], float] = staticmethod(time.monotonic)
    query = "xmlstream"

    def __init__(
        self,
        engine: Engine,
        root: Node,
        checkpoint: Checkpoint,
        sinks: Sequence[SliceSink],
        on_commit: Callable[[Commit], None],
        dead_letters: Path,
        purge_after: PurgeAfter | None = None,
        patience: Patience | None = None,
    ) -> None:
        self.failure: BaseException | None = None
        self._engine = engine
        self._busy = threading.Lock()
        self._ending = False
        self._results, self._sinks, self._on_commit = results(root), sinks, on_commit
        self._dead_letters = dead_letters
        self._checkpoint = checkpoint
        self._names, self._root = names(root), root
        self._by_name = {name: node for node, name in self._names.items()}
        latest = checkpoint.latest
        last = latest or Commit(-1)
        self.committed: int | None = latest.slice if latest else None
        self.closed, self._time, self._timed = last.report.closed, last.time, self.measured()
        self._shown = last.time
        documents = checkpoint.store.below(DOCUMENTS)
        self.noticed = Noticed.of(root, documents, last.noticed, patience)
        self._last_activity, self._logged = last.last_activity, set[tuple[str, str, str]]()
        self._states = PlanState(
            engine, root, checkpoint.store, last.operators, purge_after, checkpoint.mirror.segments
        )
        self._below = [{self._names[node] for node in topological(result)} for result in self._results]
        consumers = Counter(below for node in topological(root) for below in node.inputs)
        self._shared = {node for node, count in consumers.items() if count > 1 and node.inputs}
        self._notes = DeclaredNotes(checkpoint.store)
        self._notes.remove_leavings()
        self._notes.forget(last.declared)
        self._declared = last.declared
        of_them = self._names, checkpoint.noted, dead_letters, self._declared
        self._inputs = SourceInputs(engine, self._states.items(), *of_them)
        self.in_step = InStep(root, self._inputs.reached)
        self._copies = [copies(result, self._names) for result in self._results]
        self._clocks: Clocks | None = None
        self._number = 0
        self._requested = requests.copy()
        self._read_last: dict[str, str] = {}
        if latest:
            on_commit(latest)

    def punctuate_by(self, clocks: Clocks) -> None:
        """Has clocks drive later slices; called before the first one, since kept tuples may wait for a clock."""
        self._clocks = clocks
        clocks.wait(self._states)

    def process_ranges(
        self,
        slice_id: int,
        end: Mapping[str, Any],
        staged: Callable[[], Sequence[StagedRange]],
        declared: Sequence[Declared] = (),
    ) -> None:
        """Processes a slice: parse and stage, by `staged`; walk; commit. A slice that is committed is passed over.

        Args:
            slice_id: The number of the slice.
            end: How far it reads each source.
            staged: Returns its staged ranges.
            declared: The punctuations that were declared for sources, behind what the slice reads.
        """
        with self._busy:
            if self._ending:
                raise QueryStopped("the query is being stopped")
            if self.failure is not None or (self.committed is not None and slice_id <= self.committed):
                return
            ranges: Sequence[StagedRange] = ()
            try:
                started = time.perf_counter()
                self._slice(slice_id, end, ranges := staged(), started, declared)
            except SinkLeft:
                self._ending = True
                raise QueryStopped("the reader of the results has gone") from None
            except BaseException as failure:
                documents = dict.fromkeys(range_.document.where for each in ranges for range_ in each.part.ranges)
                cause = self._checkpoint.mirror.cause(failure)
                if isinstance(cause, UngrammaticalStream) and (why := self._wrong_order(ranges)):
                    cause.hint = f"{why}; or {cause.hint}"
                self.failure = of_data(cause, list(documents), slice_id) or of_worker(cause, slice_id)
                if self.failure is not None:
                    raise self.failure from None
                self.failure = cause
                raise

    def _wrong_order(self, ranges: Sequence[StagedRange]) -> str:
        """What a source's documents in the order of their names may have to do with late tuples; empty if nothing."""
        for each in ranges:
            read = [self._read_last.get(each.source, ""), *(range_.document.where for range_ in each.part.ranges)]
            if pair := numbered_wrong(list(filter(None, read))):
                first, then = pair
                return (
                    f"{first} was read before {then}, since documents are read by name: give their numbers equal "
                    f"lengths, as in {in_equal_lengths(then, first)}"
                )
        return ""

    def end(self, patience: float = -1) -> None:
        """Waits for the current slice, at most so many seconds if they are given; later slices are refused.

        Raises:
            TimeoutError: The slice takes too long.
        """
        self._ending = True
        if not self._busy.acquire(timeout=patience):
            raise TimeoutError(f"the current slice takes longer than {patience:.0f} s")
        try:
            self._states.settle()
        finally:
            self._busy.release()

    def _slice(
        self,
        slice_id: int,
        end: Mapping[str, Any],
        ranges: Sequence[StagedRange],
        started: float,
        declared: Sequence[Declared],
    ) -> None:
        # If the machine's clock is set back, the query's time goes on as it is measured: lifespans do not wait.
        shown, timed = self.clock(), self.measured()
        now = shown if shown >= self._time else self._time + timedelta(seconds=timed - self._timed)
        self._states.begin(slice_id, now, self._inputs.closings())
        if self._clocks:
            self._clocks.begin(self._states, end)
        self._number = slice_id
        self._change_rosters(declared)
        came = self._inputs.begin(slice_id, ranges, declared)
        parts = [self._part(came, self._part_writers(slice_id))]
        while self._inputs.have_more:
            self._states.end(self._inputs.closings())
            parts.append(self._part(self._inputs.part(), [None] * len(self._sinks)))
        self._write_letters(slice_id, ranges)
        wrong_order = self._wrong_order(ranges)
        if wrong_order and any(state.set_aside for state in self._states.values()):
            _LOG.warning("tuples are late: %s", wrong_order)
        noticed = self.noticed.plus(self._found(ranges), now, self._kept_behind())
        self._shown = max(shown, self._shown)
        noticed = replace(noticed, set_back=self._shown - shown)
        if self._inputs.closed:
            noticed.require_items()
        findings = noticed.findings()
        for misread in (one for one in findings if one.kind in MISREAD and one.subject not in self._logged):
            self._logged.add(misread.subject)
            _LOG.warning("noticed in %s", misread)
        drafts = [
            sink.draft(
                ComputedSlice(
                    slice_id,
                    [part.result(number, self._results[number]) for part in parts],
                    self._exactness(self._below[number], noticed),
                    Moment(now, self._copies[number]),
                    parts[0].results[number].parts,
                )
            )
            for number, sink in enumerate(self._sinks)
        ]
        closed = self._inputs.closed
        outs = {node: sum(part.outs[node] for part in parts) for node in self._states}
        sent = {node: sum(len(part.slices[node].punctuations) for part in parts) for node in self._states}
        operators = tuple(self._report(node, sent, outs) for node in self._states)
        whole = self._checkpoint.commits.is_whole(slice_id)
        report = SliceReport(
            slice=slice_id,
            seconds=round(time.perf_counter() - started, 4),
            items_in=self._inputs.items,
            tuples_out=sum(outs[node] for node in self._results),
            operators=operators,
            set_aside=self._inputs.set_aside + sum(state.set_aside + state.overdue for state in self._states.values()),
            closed=closed,
            exact=noticed.exact,
            findings=tuple(finding.json() for finding in findings),
            memory=self.memory(),
            requests=self._requests(),
        )
        sources = {self._names[node] for node in self._states if node in self._inputs}
        active = last_activity(self._last_activity, operators, sources, (slice_id, now))
        states = self._states.record(whole)
        record = Commit(slice_id, end, now, whole, states, tuple(drafts), report, noticed.record(), active)
        self._declared = (*self._declared, *declared)
        record = replace(record, declared=self._declared if whole else tuple(declared))
        unsynced = self._states.unsynced()
        for sink, draft in zip(self._sinks, drafts, strict=True):
            unsynced += sink.unsynced(draft) if draft is not None else ()
        if self._dead_letters.is_relative_to(self._checkpoint.store.path("drafts")):
            # They are drafts, published after the commit, which must have them.
            unsynced += self._dead_letters.glob(f"*-{slice_id:09d}.jsonl")
        for sink in self._sinks:
            sink.deliver()
        self._checkpoint.commit(record, unsynced)
        self._time, self._timed, self.noticed, self._last_activity = now, timed, noticed, active
        self._read_last |= {each.source: each.part.ranges[-1].document.where for each in ranges if each.part.ranges}
        self._committed(record)

    def _change_rosters(self, declared: Sequence[Declared]) -> None:
        """Has senders that were declared count as added or removed behind the slice."""
        for each in declared:
            for name, node, rule in rosters(self._root, each.source) if each.added or each.removed else ():
                senders = each.senders(node.schema.attribute(rule.member).domain)
                if not rule.change(*senders, self._states[self._by_name[name]]):
                    _LOG.warning("%s: it would leave no sender on the roster, and changes nothing", each)

    def _requests(self) -> dict[str, int]:
        """The requests to object stores since the last call."""
        before, self._requested = self._requested, requests.copy()
        return dict(self._requested - before)

    def _kept_behind(self) -> dict[str, int]:
        """The number of tuples that the operators above each source keep, by source."""
        behind: Counter[str] = Counter()
        for node, state in self._states.items():
            if state.rows and node not in self._inputs:
                behind.update({self._names[below]: state.rows for below in topological(node) if not below.inputs})
        return dict(behind)

    def _part(self, came: dict[Node, Slice], writers: Sequence[PartWriter | None]) -> _Part:
        """Runs every operator once, over the whole slice or over one part of it.

        `writers` write large results within tasks.
        """
        counts = TupleCounts()
        slices = counts.slices
        for node in self._states:
            counts.hand_on(node, came[node] if node in came else self._advanced(node, slices))
        apart = self._checkpoint.mirror.apart
        self._engine.describe(self.query, f"slice {self._number}, result")
        computed = [
            ComputedResult.of(slices[node], node, writer, apart)
            for node, writer in zip(self._results, writers, strict=True)
        ]
        counts.results.update((node, one.rows) for node, one in zip(self._results, computed, strict=True))
        return _Part(slices, computed, {node: counts.of(node) for node in slices})

    def _part_writers(self, slice_id: int) -> list[PartWriter | None]:
        """The writers of large results within tasks; None where punctuations come before tuples of the same slice."""
        if self._inputs.have_more:  # lifespans have ended within it
            return [None] * len(self._sinks)
        exactness = [self._exactness(below, self.noticed) for below in self._below]
        return [sink.part_writer(slice_id, each) for sink, each in zip(self._sinks, exactness, strict=True)]

    def _write_letters(self, slice_id: int, ranges: Sequence[StagedRange]) -> None:
        """Writes the dead letters of operators."""
        for node, state in self._states.items():
            if node in self._inputs:
                continue
            letters = with_elements(state.letters, self._ranges_below(node, ranges)) if state.letters else []
            name = self._names[node]
            write_letters(self._dead_letters, name, slice_id, chain(letters, state.overdue_letters()), name)

    def _exactness(self, below: Set[str], noticed: Noticed) -> Exactness:
        """The exactness of a result computed by these operators, with the findings of the current slice."""
        if below.isdisjoint(noticed.overdue):
            return Exactness.EXACT
        return Exactness.LOST if below.isdisjoint(self.noticed.overdue) else Exactness.INEXACT

    def _found(self, ranges: Sequence[StagedRange]) -> dict[str, Findings]:
        """The findings of this slice, by source and operator."""
        found = self._inputs.found()
        for node, state in self._states.items():
            aside = {"ungrammatical": state.set_aside, OVERDUE: state.overdue, TOO_FEW: len(state.short)}
            if node not in self._inputs and any(aside.values()):
                counts = {kind: count for kind, count in aside.items() if count}
                begun = (DeadLetter(position=at, kind=TOO_FEW, reason=what) for at, what in state.short[:NAMES_SHOWN])
                located = with_elements(list(begun), self._ranges_below(node, ranges)) if state.short else ()
                short = {f"{e.reason}, from {place(e.document, e.line, e.column, e.position)} on" for e in located}
                found[self._names[node]] = Findings(aside=counts, short=few_names(short))
        return found

    def _advanced(self, node: Node, slices: dict[Node, Slice]) -> Slice:
        """The slice that an operator emits."""
        if isinstance(node.operator, Scan | Static | Results):
            raise AssertionError(f"{self._names[node]} is not an operator")
        state = self._states[node]
        self._engine.describe(self.query, f"slice {self._number}, {self._names[node]}")
        slice_ = advance(node.operator, [slices[n] for n in node.inputs], state)
        if node in self._shared and slice_.tuples is not None:
            # A slice with several consumers is computed once.
            return Slice(state.computed(slice_.tuples), slice_.punctuations)
        return slice_

    def _ranges_below(self, node: Node, ranges: Sequence[StagedRange]) -> list[StagedRange]:
        """The ranges of the source below a node; empty if it has several sources, or a static one."""
        while len(node.inputs) == 1:
            (node,) = node.inputs
        return [r for r in ranges if isinstance(node.operator, Scan) and r.source == self._names[node]]

    def _committed(self, record: Commit) -> None:
        self.committed, self.closed = record.slice, record.report.closed
        self._notes.forget(record.declared)
        for sink, draft in zip(self._sinks, record.outputs, strict=True):
            sink.publish(draft)
        self._states.retain(record.operators)
        self._checkpoint.clear_stage()
        if self._clocks:
            self._clocks.wait(self._states)
        self._on_commit(record)

    def _report(self, node: Node, sent: dict[Node, int], outs: dict[Node, int]) -> OperatorReport:
        state = self._states[node]
        is_source = node in self._inputs
        came = self._inputs.punctuations(node) if is_source else sum(sent[n] for n in node.inputs)
        return OperatorReport(
            name=self._names[node],
            tuples_in=outs[node] if is_source else sum(outs[n] for n in node.inputs),
            tuples_out=outs[node],
            kept=state.rows,
            purged=state.purged,
            punctuations_in=came,
            punctuations_out=sent[node],
            punctuations_held=state.punctuations_held,
            overdue=state.overdue,
        )
