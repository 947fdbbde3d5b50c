"""Execution of a slice: every operator once, in topological order, then one commit.

The order of writing makes a slice count exactly once, whichever process is killed at whatever moment, and if the power
fails: first segments and drafted documents are written and synced; then the commit record, in one rename, and synced;
then the documents are published and superfluous files are deleted. A start restores the last commit and removes all
other files. A slice that was not committed has no effect: its files are never read, and the next slice is planned anew.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xmlstream.dataclasses import dataclass, replace
from xmlstream.extensions import extension
from xmlstream.operators.punctuate import Punctuate, Streams
from xmlstream.operators.state.ages import PurgeAfter
from xmlstream.operators.storage.object_requests import requests
from xmlstream.operators.storage.records import DeadLetter
from xmlstream.plan.nodes import Node, Scan, copies, leaf, names, results, topological
from xmlstream.punct_ns.domain import Cut
from xmlstream.punct_ns.errors import InputError, StateError, UngrammaticalStream, UsageError, place
from xmlstream.runtime.better_joins import MeasuredJoins
from xmlstream.runtime.checkpoint.checkpoint import DOCUMENTS, Checkpoint, write_letters
from xmlstream.runtime.checkpoint.commit_log import Commit, Declared
from xmlstream.runtime.checkpoint.declared import DeclaredNotes, declared_of, read_lists, rosters
from xmlstream.runtime.checkpoint.slice_report import OperatorReport, SliceReport, last_activity
from xmlstream.runtime.likely_mistakes import MISREAD, OVERDUE, TOO_FEW, Finding, Noticed
from xmlstream.runtime.loop.in_step import InStep, end_of_first
from xmlstream.runtime.loop.plan_state import PlanState
from xmlstream.runtime.loop.plan_walk import PlanWalk, Walked
from xmlstream.runtime.loop.query_clocks import Clocks
from xmlstream.runtime.loop.query_inputs import SourceInputs, members_of
from xmlstream.runtime.progress import punctuated_sources
from xmlstream.runtime.silent_schemes import Patience
from xmlstream.session.spark_errors import of_data, of_worker
from xmlstream.sink.directory_sink import PartWriter
from xmlstream.sink.sink import ComputedSlice, Draft, Exactness, Moment, SinkLeft, SliceSink
from xmlstream.sources.local_paths import in_equal_lengths, numbered_wrong
from xmlstream.sources.xml.parser.findings_collector import NAMES_SHOWN, Findings, few_names
from xmlstream.sources.xml.slices.micro_batches import StagedRange
from xmlstream.sources.xml.slices.stage_writer import with_elements
from xmlstream.sources.xml.splits.slice_planner import Offset

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Engine


_SENDERS = "some of its senders have"
"""Who has passed a source, if that is within the source."""

_LOG, _INPUTS = logging.getLogger("xmlstream.findings"), logging.getLogger("xmlstream.inputs")


@dataclass(frozen=True, slots=True)
class _Begun:
    """A slice that is about to be computed.

    Attributes:
        number: Its number.
        end: How far it reads each source.
        ranges: Its staged ranges.
        declared: The punctuations that were declared for sources, behind what it reads.
        started: When its work began, as a counter of seconds.
        time: Its recorded time.
        shown: The time that the machine's clock shows.
        latest: The latest time that the clock has shown.
        timed: The measured seconds at that time, which never go back.
    """

    number: int
    end: Mapping[str, Any]
    ranges: Sequence[StagedRange]
    declared: Sequence[Declared]
    started: float
    time: datetime
    shown: datetime
    latest: datetime
    timed: float


class QueryStopped(Exception):
    """Raised in a slice that begins while the query is being stopped."""


class Execution:
    """A running query: its operators with their states, restored from the checkpoint's last commit.

    `joins` measures what reaches joins of many inputs.
    `in_step` finds the sources that are ahead of others, `faulty` the documents that are skipped from a fault on.
    `memory` measures the memory of the processes by name, in bytes; `clock` gives the time
    of a slice, `measured` seconds that never go back; `query` is the query's name where
    the engine shows its work.
    """

    memory: Callable[[], dict[str, int]] = staticmethod(dict)
    clock: Callable[[], datetime] = staticmethod(lambda: datetime.now(UTC))
    measured: Callable[[], float] = staticmethod(time.monotonic)
    query = "xmlstream"
    read_with: Mapping[str, str] = {}

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
        self.joins = MeasuredJoins(root, last.measured)
        self._last_activity, self._logged = last.last_activity, set[tuple[str, str, str]]()
        self._states = PlanState(
            engine, root, checkpoint.store, last.operators, purge_after, checkpoint.mirror.segments
        )
        self._below = [{self._names[node] for node in topological(result)} for result in self._results]
        self._walk = PlanWalk(engine, root, self._states, checkpoint.mirror.apart)
        self._notes = DeclaredNotes(checkpoint.store)
        self._notes.remove_leavings()
        self._notes.forget(last.declared)
        self._declared = last.declared
        of_them = self._names, checkpoint.noted, dead_letters, self._declared
        self._inputs = SourceInputs(engine, self._states.items(), *of_them)
        self._rules: dict[str, list[Node]] = {}
        for rule, of in punctuated_sources(root).items():
            self._rules.setdefault(of, []).append(self._by_name[rule])
        self.in_step, self.faulty = InStep(root, self._reached), self._inputs.faulty
        self._copies = [copies(result, self._names) for result in self._results]
        self._clocks: Clocks | None = None
        self._requested = requests.copy()
        self._read_last: dict[str, str] = {}
        if not self.closed:
            self._read_lists(latest)
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
    ) -> Commit | None:
        """Processes a slice: parse and stage, by `staged`; walk; commit. A slice that is committed is passed over.

        Args:
            slice_id: The number of the slice.
            end: How far it reads each source.
            staged: Returns its staged ranges.
            declared: The punctuations that were declared for sources, behind what the slice reads.

        Returns:
            The record of its commit; None if it is passed over.

        Raises:
            QueryStopped: The query is being stopped, or its results have no reader any more.
            XmlStreamError: The input, the query or the checkpoint is not as it should be.
        """
        with self._busy:
            if self._ending:
                raise QueryStopped("the query is being stopped")
            if self.failure is not None or (self.committed is not None and slice_id <= self.committed):
                return None
            ranges: Sequence[StagedRange] = ()
            try:
                started = time.perf_counter()
                ranges = staged()
                return self._slice(_Begun(slice_id, end, ranges, declared, started, *self._moment()))
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

    def _moment(self) -> tuple[datetime, datetime, datetime, float]:
        """The times of a slice that begins now, as `_Begun` has them."""
        # If the machine's clock is set back, the query's time goes on as it is measured: lifespans do not wait.
        shown, timed = self.clock(), self.measured()
        now = shown if shown >= self._time else self._time + timedelta(seconds=timed - self._timed)
        return now, shown, max(shown, self._shown), timed

    def _wrong_order(self, ranges: Sequence[StagedRange]) -> str:
        """What a source's documents in the order of their names may have to do with late tuples; empty if nothing."""
        for each in ranges:
            if any(range_.stream is not None for range_ in each.part.ranges):
                continue  # its documents are read side by side
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

    def _slice(self, slice_: _Begun) -> Commit:
        """Computes and commits a slice; the steps that compute values change nothing that later slices see."""
        self._begin(slice_)
        parts = self._parts(slice_)
        self._write_letters(slice_.number, slice_.ranges)
        noticed = self._noticed(slice_, parts)
        findings = noticed.findings()
        self._log(slice_, findings)
        drafts = self._drafts(slice_, parts, noticed)
        report = self._counted(slice_, parts, noticed, findings)
        record = self._record(slice_, drafts, report, noticed)
        unsynced = self._unsynced(record)
        for sink in self._sinks:
            sink.deliver()
        self._checkpoint.commit(record, unsynced)
        self._go_on(slice_, record, noticed)
        return record

    def _begin(self, slice_: _Begun) -> None:
        kept = sum(state.rows for state in self._states.values())
        self._engine.begin(kept + sum(each.tuples for each in slice_.ranges))
        self._states.begin(slice_.number, slice_.time, self._inputs.closings())
        if self._clocks:
            self._clocks.begin(self._states, slice_.end)
        self._begin_streams(slice_)
        self._change_rosters(slice_.declared)

    def _parts(self, slice_: _Begun) -> list[Walked]:
        """The outputs of the walks: of one, or of several where lifespans end within the slice."""
        came = self._inputs.begin(slice_.number, slice_.ranges, slice_.declared)
        called = f"slice {slice_.number}"
        parts = [self._walk.part(came, self._part_writers(slice_.number), self.query, called)]
        while self._inputs.have_more:
            self._states.end(self._inputs.closings())
            parts.append(self._walk.part(self._inputs.part(), [None] * len(self._sinks), self.query, called))
        return parts

    def _noticed(self, slice_: _Begun, parts: Sequence[Walked]) -> Noticed:
        """What is noticed up to this slice."""
        found, kept = self._found(slice_.ranges), self._kept_behind()
        noticed = self._with_senders(self.noticed.plus(found, slice_.time, kept, self._of_rules(parts, kept)))
        if self._inputs.closed:
            noticed.require_items()
        measured, better = self.joins.after(
            lambda node: sum(part.outs[node] for part in parts), lambda name: self._states[self._by_name[name]].rows
        )
        return replace(noticed, set_back=slice_.latest - slice_.shown, measured=measured, better=better)

    def _log(self, slice_: _Begun, findings: Sequence[Finding]) -> None:
        """Logs what a user has to see at once."""
        wrong_order = self._wrong_order(slice_.ranges)
        if wrong_order and any(state.set_aside for state in self._states.values()):
            _LOG.warning("tuples are late: %s", wrong_order)
        for misread in (one for one in findings if one.kind in MISREAD and one.subject not in self._logged):
            self._logged.add(misread.subject)
            _LOG.warning("noticed in %s", misread)

    def _drafts(self, slice_: _Begun, parts: Sequence[Walked], noticed: Noticed) -> list[Draft | None]:
        """What each sink has drafted of its result."""
        return [
            sink.draft(
                ComputedSlice(
                    slice_.number,
                    [part.result(number, self._results[number]) for part in parts],
                    self._exactness(self._below[number], noticed),
                    Moment(slice_.time, self._copies[number]),
                    parts[0].results[number].parts,
                )
            )
            for number, sink in enumerate(self._sinks)
        ]

    def _counted(
        self, slice_: _Begun, parts: Sequence[Walked], noticed: Noticed, findings: Sequence[Finding]
    ) -> SliceReport:
        outs = {node: sum(part.outs[node] for part in parts) for node in self._states}
        sent = {node: sum(len(part.slices[node].punctuations) for part in parts) for node in self._states}
        return SliceReport(
            slice=slice_.number,
            seconds=round(time.perf_counter() - slice_.started, 4),
            items_in=self._inputs.items,
            tuples_out=sum(outs[node] for node in self._results),
            operators=tuple(self._report(node, sent, outs) for node in self._states),
            set_aside=self._inputs.set_aside + sum(state.set_aside + state.overdue for state in self._states.values()),
            closed=self._inputs.closed,
            exact=noticed.exact,
            findings=tuple(finding.json() for finding in findings),
            memory=self.memory(),
            requests=self._requests(),
            engine=self._engine.name,
        )

    def _record(self, slice_: _Begun, drafts: Sequence[Draft | None], report: SliceReport, noticed: Noticed) -> Commit:
        whole = self._checkpoint.commits.is_whole(slice_.number)
        sources = {self._names[node] for node in self._states if node in self._inputs}
        return Commit(
            slice=slice_.number,
            end=slice_.end,
            time=slice_.time,
            whole=whole,
            operators=self._states.record(whole),
            outputs=tuple(drafts),
            report=report,
            noticed=noticed.record(),
            last_activity=last_activity(self._last_activity, report.operators, sources, (slice_.number, slice_.time)),
            declared=(*(self._declared if whole else ()), *slice_.declared),
            measured=noticed.measured,
        )

    def _unsynced(self, record: Commit) -> list[Path]:
        """The files that the record names, to sync before it is created."""
        unsynced = self._states.unsynced()
        for sink, draft in zip(self._sinks, record.outputs, strict=True):
            unsynced += sink.unsynced(draft) if draft is not None else ()
        if self._dead_letters.is_relative_to(self._checkpoint.store.path("drafts")):
            # They are drafts, published after the commit, which must have them.
            unsynced += self._dead_letters.glob(f"*-{record.slice:09d}.jsonl")
        return unsynced

    def _go_on(self, slice_: _Begun, record: Commit, noticed: Noticed) -> None:
        """Makes the committed slice the last one, for those that follow and for all who look at it."""
        self._time, self._timed, self._shown = slice_.time, slice_.timed, slice_.latest
        self.noticed, self._last_activity, self.joins.measured = noticed, record.last_activity, noticed.measured
        self._declared = (*self._declared, *slice_.declared)
        self._read_last |= {
            each.source: each.part.ranges[-1].document.where for each in slice_.ranges if each.part.ranges
        }
        self.committed, self.closed = record.slice, record.report.closed
        self._notes.forget(record.declared)
        for sink, draft in zip(self._sinks, record.outputs, strict=True):
            sink.publish(draft)
        self._states.retain(record.operators)
        self._checkpoint.clear_stage()
        if self._clocks:
            self._clocks.wait(self._states)
        self._on_commit(record)

    def _begin_streams(self, slice_: _Begun) -> None:
        """Has the streams that a slice finds in sources of many count from its beginning on."""
        for node, state in self._states.items():
            if isinstance(streams := node.operator, Streams):
                source = self._names[leaf(node)]
                at = Offset.from_json(slice_.end.get(self.read_with.get(source, source), {}))
                if at.document > 0:
                    # One that somebody has left out has ended.
                    declared = declared_of([*self._declared, *slice_.declared], source, node.inputs[0].schema)
                    left = {p.patterns[-1].value for p in declared if p.restricted == (len(p.schema) - 1,)}  # type: ignore[union-attr]
                    streams.rule.begin(at.document, {one.number for one in at.streams} - left, state)

    def _change_rosters(self, declared: Sequence[Declared]) -> None:
        """Has senders that were declared count as added or removed behind the slice."""
        for each in declared:
            for name, node, rule in rosters(self._root, each.source) if each.added or each.removed else ():
                if each.table != (rule.listed.name if rule.listed else ""):
                    continue
                senders = each.senders(node.schema.attribute(rule.member).domain)
                if not rule.change(*senders, self._states[self._by_name[name]]):
                    _LOG.warning("%s: it would leave no sender on the roster, and changes nothing", each)

    def _read_lists(self, last: Commit | None) -> None:
        """Reads the tables that list rosters: their members, and what is other than when an earlier run read them."""
        for source in (name for name, node in self._by_name.items() if isinstance(node.operator, Scan)):
            for name, node, rule in rosters(self._root, source):
                state = self._states[self._by_name[name]]
                if rule.listed is not None and not rule.has_begun(state.notes):
                    members = members_of(self._engine, rule, node.schema.attribute(rule.member).domain)
                    rule.begin(members, state)
        try:
            for each in read_lists(self._checkpoint.store, self._root, last, partial(members_of, self._engine)):
                _INPUTS.warning("%s: the table is another one than an earlier run has read", each)
        except (InputError, UsageError) as error:
            _INPUTS.warning("%s: the roster stays as it was", error.what)

    def _requests(self) -> dict[str, int]:
        """The requests to object stores since the last call."""
        before, self._requested = self._requested, requests.copy()
        return dict(self._requested - before)

    def _kept_behind(self) -> dict[str, int]:
        """The number of tuples that the operators above each source keep, by source; none wait for a closed one."""
        behind: Counter[str] = Counter()
        for node, state in self._states.items():
            if state.rows and node not in self._inputs:
                below = (one for one in topological(node) if not one.inputs and not self._inputs.is_closed(one))
                behind.update({self._names[one]: state.rows for one in below})
        return dict(behind)

    def _with_senders(self, noticed: Noticed) -> Noticed:
        """What is noticed, with the names of senders that results have waited for too long since this slice."""
        late = {
            name: one
            for name, one in noticed.behind.items()
            if one.reported and one.passed_by == _SENDERS and not one.senders
        }
        if not late:
            return noticed
        senders: dict[str, tuple[str, ...]] = {}
        with suppress(StateError, OSError):  # nothing was committed yet
            senders = extension("senders behind")(self._checkpoint.store)
        named = {name: replace(one, senders=senders[name]) for name, one in late.items() if name in senders}
        return replace(noticed, behind={**noticed.behind, **named})

    def _of_rules(self, parts: Sequence[Walked], kept: Mapping[str, int]) -> dict[str, tuple[bool, str]]:
        """For each source that rules punctuate: whether it has closed more, and who has passed it: `in1 has`."""
        found = {}
        for source, rules in self._rules.items():
            came = any(part.slices[rules[-1]].punctuations for part in parts)
            found[source] = came, "" if came or not kept.get(source) else self._passed_by(source)
        return found

    def _passed_by(self, source: str) -> str:
        """The source that has closed most of an attribute, if that is more than another one, with its verb.

        Else some senders within the source, if they have closed more than all; empty if there are none.
        """
        for axis in self.in_step.axes:
            for mine in (self._reached(name, of) for name, of in axis if name == source):
                others = [(cut, name) for name, of in axis if name != source and (cut := self._reached(name, of))]
                if others and (mine is None or mine < max(others)[0]):
                    return f"{max(others)[1]} has"
        before = self.noticed.behind.get(source)
        for rule in self._rules[source]:
            passed = rule.operator.rule.is_passed(self._states[rule]) if isinstance(rule.operator, Punctuate) else False
            if passed or (passed is None and before is not None and before.passed_by == _SENDERS):
                return _SENDERS
        return ""

    def _reached(self, source: str, attribute: str) -> Cut | None:
        """The end of the first values of an attribute that a source, or its rules, closed; None if there are none."""
        if source not in self._rules:
            return self._inputs.reached(source, attribute)
        rule = self._rules[source][-1]
        assert rule.operator.declared_in is not None
        return end_of_first(self._states[rule].punctuations(rule.operator.declared_in).set, attribute)

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

    def _ranges_below(self, node: Node, ranges: Sequence[StagedRange]) -> list[StagedRange]:
        """The ranges of the source below a node; empty if it has several sources, or a static one."""
        while len(node.inputs) == 1:
            (node,) = node.inputs
        return [r for r in ranges if isinstance(node.operator, Scan) and r.source == self._names[node]]

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
