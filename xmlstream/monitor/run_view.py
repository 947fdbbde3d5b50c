"""The view of a run for its readers: plan, totals, closed values, end. Commits update it; server threads read it.

The history of a run is a bounded list of numbered events; each reader reads it at its own pace. Adding an event never
waits for a reader, and a slow reader loses the oldest events. For some kinds only the last event is kept, however old.
"""

from __future__ import annotations

import json
import math
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from xmlstream.dataclasses import dataclass
from xmlstream.diagnosis.inspection import inspect, nobody
from xmlstream.diagnosis.missing import Functions
from xmlstream.diagnosis.report import WaitingReport, all_in_numbers
from xmlstream.diagnosis.so_far import computed_beside, with_value_so_far
from xmlstream.drawing.plan_picture import picture
from xmlstream.monitor.closed_map import Axis, ClosedMap, Closer
from xmlstream.monitor.lateness import LastingCause, Lateness
from xmlstream.operators.expressions.constant_evaluation import evaluated
from xmlstream.operators.storage.store import LocalPlace, folder_at, store_at
from xmlstream.plan.nodes import emitters, names, results, results_of, topological
from xmlstream.punct_ns.errors import StateError, UsageError, XmlStreamError, few
from xmlstream.punct_ns.numeric_type import FloatType
from xmlstream.runtime.checkpoint.commit_log import Commit, CommitLog, Declared, made_whole
from xmlstream.runtime.checkpoint.declared import DeclaredNotes, declare
from xmlstream.runtime.checkpoint.same_query import QueryRecord
from xmlstream.runtime.checkpoint.slice_report import SliceReport
from xmlstream.runtime.metrics import Totals
from xmlstream.runtime.watching import Watched, what_of
from xmlstream.safety.explanation import as_json
from xmlstream.safety.remedies import Remedy, remedies
from xmlstream.safety.verdicts import QueryVerdict, judged
from xmlstream.sink.closings import last_tuples

MOST_EVENTS = 1000
"""Events in the history: eight minutes, if a slice takes half a second."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event with its data as JSON."""

    number: int
    kind: str
    data: str


class History:
    """The events of a run, numbered from 1; thread-safe."""

    def __init__(self, most: int = MOST_EVENTS) -> None:
        self._lock = threading.Lock()
        self._events: deque[Event] = deque(maxlen=most)
        self._latest: dict[str, Event] = {}
        self._number = 0
        self._bells: set[Callable[[], None]] = set()

    def add(self, kind: str, data: Any, *, replaces: bool = False) -> None:
        """Adds an event, and calls the callbacks of waiting readers; `replaces` the last event of its kind."""
        text = json.dumps(data, ensure_ascii=False, default=str)
        with self._lock:
            self._number += 1
            event = Event(self._number, kind, text)
            if replaces:
                self._latest[kind] = event
            else:
                self._events.append(event)
            bells = list(self._bells)
        for bell in bells:
            bell()

    def after(self, number: int) -> list[Event]:
        """The kept events after a number, in order."""
        with self._lock:
            found = [event for event in (*self._events, *self._latest.values()) if event.number > number]
        return sorted(found, key=lambda event: event.number)

    def ring(self, bell: Callable[[], None]) -> Callable[[], None]:
        """Registers a callback for new events, called in the thread that adds them; returns a function to remove it."""
        with self._lock:
            self._bells.add(bell)

        def away() -> None:
            with self._lock:
                self._bells.discard(bell)

        return away


CLOSED_EVERY_SECONDS = 0.25
"""Shortest time between two updates of the closed map."""

AT_ONCE_SECONDS = 0.05
"""An update of the closed map that takes no longer may run for each request."""

CLOSED_PAUSES = 9
"""Pause between updates of the closed map, as a multiple of the last update's time: the query needs the processor."""

SO_FAR_EVERY_SECONDS, SO_FAR_PAUSES = 5.0, 19
"""Shortest time between two computations of the answers so far, also as a multiple of the last one's time."""

SO_FAR_ROWS, LAST_ROWS = 8, 10
"""The most rows of a result that are shown as answers so far, and of those that are out."""

MOST_KEPT = 500_000
"""Kept tuples up to which the answers so far are computed for the page."""

MOST_UNREAD = 20_000
"""Recorded punctuations up to which parsing waits for a reader."""

LETTERS = 50
"""Number of dead letters that are shown."""


class RunView:
    """The view of one run.

    Attributes:
        identity: Differs between runs, so that a reader that reconnects notices another run.
        history: The slices, and the last event of each other kind.
        state: `starting`, `running`, `ended` or `failed`; of a run that is read from its checkpoint also `died`, or
            `recorded` while another process runs it.
        how: How the run has ended: `closed` (its input has ended for good), `stopped`, `failed`, `died`; empty before.
    """

    where = ""

    def __init__(self, title: str = "") -> None:
        self._title = title
        self.identity = secrets.token_hex(4)
        self.history = History()
        self.totals = Totals()
        self.state, self.how = "starting", ""
        self._what, self._at = "", ""
        self._is_recorded = False
        self._last_out: dict[str, str] = {}
        self._run: Watched | None = None
        self._closed: ClosedMap | None = None
        self._lateness: Lateness | None = None
        self._is_stale = False
        self._next = self._took = 0.0
        self._axes: list[Axis] = []
        self._making = threading.Lock()
        self._reading = threading.Lock()
        self._computing = threading.Lock()
        self._so_far: tuple[int, float, Mapping[str, object]] = (-1, -math.inf, {"results": []})
        self.is_operated = False
        self._declared: dict[str, Declared] = {}
        self._add_state()

    def begun(self, run: Watched) -> None:
        """Takes the start of a run."""
        self._run = run
        self._closed = ClosedMap.of(run.root, datetime.now(UTC) if run.engine is not None else None)
        self._lateness = Lateness(run, self._closed)
        self._axes = self._closed.compared()
        self.state = "running"
        self._add_state()

    @property
    def name(self) -> str:
        """The query's name, else the name of its file."""
        return (self._run and self._run.name) or self._title or "query"

    @cached_property
    def _judged(self) -> tuple[QueryVerdict, list[Remedy]]:
        """Verdicts and remedies; computed for the first reader."""
        assert self._run is not None
        root, follow = self._run.root, self._run.follow
        return judged(root, follow=follow), remedies(root, follow=follow)

    def plan(self) -> dict[str, object]:
        """The plan with its verdicts, as JSON."""
        if self._run is None:
            return {"operators": []}
        return {"query": self.name, "follow": self._run.follow, **as_json(*self._judged)}

    def drawing(self) -> str:
        """The plan as SVG with room for numbers, to be styled by the page; empty before the run starts."""
        if self._run is None:
            return ""
        return picture(*self._judged, concluded=False, live={}, styled=False)

    def restored(self, record: Commit) -> None:
        """Takes the last commit of an earlier run."""
        self.totals.restore(record.report, record.time.isoformat())
        self._add_slice(record, restored=True)

    def committed(self, record: Commit, *, restored: bool = False) -> None:
        """Takes the record of a committed slice; `restored` if strings on disk were closed before it."""
        self.totals.add(record.report, record.time.isoformat())
        self._add_slice(record, restored=restored)

    def measured(self, report: SliceReport) -> None:
        """Takes the report of a slice that has no record any more."""
        self.totals.add(report)
        self._add_report(report, "")

    def ended(self, failure: BaseException | None) -> None:
        """Takes the end of the run."""
        if self.is_over:
            return
        how = "failed" if failure is not None else "closed" if self.totals.last.closed else "stopped"
        self._set_end(how, what_of(failure), datetime.now(UTC).isoformat())

    def recorded(self, how: str = "", what: str = "", time: str = "") -> None:
        """Sets how a run that is read from its checkpoint has ended, and when; `how` is empty while it runs."""
        if not self._is_recorded or (how, time) != (self.how, self._at):
            self._is_recorded = True
            self._set_end(how, what, time)

    def _set_end(self, how: str, what: str, at: str) -> None:
        self.how, self._what, self._at = how, what, at
        self.state = {"": "recorded", "closed": "ended", "stopped": "ended"}.get(how, how)
        self._add_state()

    def refresh(self, *, at_once: bool = False) -> bool:
        """Updates the closed map if a slice was committed since; returns whether the caller should retry soon."""
        with self._making:
            if self._closed is None or not self._is_stale:
                return False
            begun = time.monotonic()
            if begun < self._next and not self.is_over and not at_once:
                return True
            self._is_stale = False
            self._axes = self._closed.compared()
            self.history.add("closed", [axis.json() for axis in self._axes], replaces=True)
            self._took = time.monotonic() - begun
            self._next = time.monotonic() + max(CLOSED_EVERY_SECONDS, CLOSED_PAUSES * self._took)
        return False

    def closed(self) -> list[Axis]:
        """The closed map; a few seconds old if an update takes long."""
        self.refresh(at_once=self._took < AT_ONCE_SECONDS)
        return self._axes

    def answer(self, key: Mapping[str, str]) -> dict[str, Any]:
        """Whether the results of some values are out, which inputs have closed them, and what the others must send."""
        rows: list[Closer] = []
        result: dict[str, object] = {}
        for attribute, text in key.items():
            try:
                rows += self._closed.closers(attribute, text) if self._closed is not None else ()
            except ValueError as error:
                return {"what": f"{text!r} is not a value of {attribute}: {error}"}
        if self._run is not None and key:
            try:
                checkpoint = self._run.checkpoint
                report = inspect(checkpoint, key, functions=self._functions)
                answer = with_value_so_far(report, checkpoint, key).answer
                result = {} if answer is None else {"result": answer.json()}
            except UsageError as error:
                # No result has such an attribute; or one has, and the text is not a value of it.
                if not rows:
                    return {"what": error.what}
            except (XmlStreamError, OSError):
                pass  # nothing was committed yet
        if not rows and not result:
            return {"what": f"nothing is known about {', '.join(key)}"}
        return {"rows": [row.json() for row in rows], **result}

    @cached_property
    def questions(self) -> list[str]:
        """The attributes that a reader can query: those that inputs close or promise to close, and those of results."""
        if self._run is None:
            return []
        of_results = (a.name for node in results(self._run.root) for a in node.schema if not a.domain.opaque)
        closed = (row.attribute for axis in self.closed() for row in axis.rows)
        return list(dict.fromkeys((*closed, *of_results)))

    @property
    def _functions(self) -> Functions:
        """Computes expressions by the session of the run; this starts no Spark job."""
        if self._run is None or (engine := self._run.engine) is None:
            return nobody
        return lambda expression, x, y, local: evaluated(expression, x, y, engine, local=local)

    @property
    def is_over(self) -> bool:
        """Whether the run is over, and no other process can go on with it while the view is read."""
        return self.how != "" and (self.how == "closed" or not self._is_recorded)

    def waiting(self) -> dict[str, Any]:
        """What the query waits for as of the last commit, updated every few seconds.

        To the report of `inspect` it adds: for each cause, whether its source is `behind`, and what the source `lacks`;
        how the run `stands` (`tone`, `text`, and the `time` with its preposition `word`); and the `results`, each with
        its `tuples_out`, the time `last_out`, and the sources that it `waits` for.
        """
        report: WaitingReport | str = ""
        found: list[LastingCause] = []
        sources: list[dict[str, object]] = []
        if self._lateness is not None:
            report = self._lateness.report(self._functions)
            if not isinstance(report, str):
                found = self._lateness.causes(report, self.closed(), over=self.how != "")
            sources = list(self._lateness.sources(found))
        behind = [cause for cause in found if cause.behind]
        known = {"waits": [], "what": report} if isinstance(report, str) else report.json()
        known["held"] = "" if isinstance(report, str) else all_in_numbers(w for w in report.waits if w.blocks)
        known |= {"causes": [cause.json() for cause in found], "stands": self._stands(behind)}
        known |= {"operated": self.is_operated and self.how != "closed", "declared": self._all_declared()}
        return {
            **known,
            "results": list(self._results(behind)),
            "late": bool(self.totals.last.silent),
            "sources": sources,
        }

    def _stands(self, behind: Sequence[LastingCause] = ()) -> dict[str, str]:
        """How the run stands, in words with a tone; `time` follows `word`."""
        since = min((cause.since.time.isoformat() for cause in behind if cause.since), default="")
        match self.how or self.state:
            case "failed":
                tone, text, word, at = "bad", f"failed: {self._what}", "at", self._at
            case "died":
                tone, text, word, at = "bad", "died", "after", self._at
            case "stopped":
                tone, text, word, at = "plain", "stopped", "at", self._at
            case "closed":
                tone, text, word, at = "good", "closed: all of its input was read", "at", self._at
            case "starting":
                tone, text, word, at = "late", "starting", "", ""
            case _ if behind:
                shown = few(list(dict.fromkeys(cause.input for cause in behind)))
                tone, text, word, at = "late", f"waits for {shown}", "since", since
            case state:
                where = " in another process" if state == "recorded" else ""
                tone, text, word, at = "good", f"running{where}", "", ""
        return {"tone": tone, "text": text, "word": word if at else "", "time": at}

    def _results(self, behind: Sequence[LastingCause]) -> Iterator[dict[str, object]]:
        for name, node in self._emitters.items():
            waits = [cause.input for cause in behind if name in cause.results or not cause.results]
            tuples_out = self.totals.flows[node]["tuples_out"] if node in self.totals.flows else 0
            yield {"name": name, "tuples_out": tuples_out, "last_out": self._last_out.get(node), "waits": waits}

    @cached_property
    def _emitters(self) -> dict[str, str]:
        """The name of each result, and that of the node that emits it."""
        if self._run is None:
            return {}
        root, name_of = self._run.root, names(self._run.root)
        found = emitters(root) or {self._run.name or "result": root}
        return {name: name_of[node] for name, node in found.items()}

    def labels(self) -> dict[str, str]:
        """Operators by the results that they belong to, as readers know them: `d`, or `b join` of several operators.

        Sources, and operators of more than two results, keep their names.
        """
        if self._run is None:
            return {}
        root, name_of = self._run.root, names(self._run.root)
        parts = results_of(root)
        of = {name: tuple(result for result, below in parts.items() if name in below) for name in name_of.values()}
        keeping = [name_of[node] for node in topological(root) if node.inputs and node.state_schema.logs]
        made = {}
        for node in topological(root):
            name = name_of[node]
            if node.inputs and 0 < len(of[name]) <= 2:
                is_alone = [other for other in keeping if of[other] == of[name]] == [name]
                made[name] = ", ".join(of[name]) + ("" if is_alone else f" {node.label}")
        return made

    def last_rows(self) -> Mapping[str, object]:
        """The last rows of each `result`, newest first, from its output: `columns`, `rows`, and `words` on them."""
        made: list[dict[str, object]] = []
        slice_ = self.totals.last.slice
        with suppress(StateError, OSError):
            outputs = QueryRecord.of(folder_at(self._run.checkpoint)).outputs if self._run is not None else ()
            schemas = [node.schema for node in results(self._run.root)] if self._run is not None else []
            for name, schema, output in zip(self._emitters, schemas, outputs, strict=True):
                rows: list[Mapping[str, str]] = []
                with suppress(XmlStreamError, OSError, ValueError):  # not written yet, or gone
                    rows = last_tuples(output, LAST_ROWS)[::-1]
                columns = list(dict.fromkeys(column for row in rows for column in row))
                floats = {a.name: a.domain for a in schema if isinstance(a.domain.sql, FloatType)}
                texts = [
                    [
                        floats[c].shown(float(row[c])) if c in floats and c in row else row.get(c, "null")
                        for c in columns
                    ]
                    for row in rows
                ]
                place = "the standard output" if output.output == "-" else output.target.shown
                one = {"result": name if len(outputs) > 1 else "", "slice": slice_, "words": f"in {place}"}
                made.append({**one, "columns": columns, "rows": texts})
        return {"results": made}

    def so_far(self) -> Mapping[str, object]:
        """The answers so far of each `result`: their `slice`, `origin`, `columns`, first `rows`, and how many `more`.

        They are computed for a reader, at most every few seconds; `what` says why they are not.
        """
        with self._computing:
            last, begun = self.totals.last, time.monotonic()
            before, next_, found = self._so_far
            if self._run is not None and last.slice != before and begun >= next_:
                try:
                    found = self._computed_so_far(self._run.checkpoint)
                except (XmlStreamError, OSError) as error:
                    found = {"results": [], "what": what_of(error)}
                took = time.monotonic() - begun
                self._so_far = last.slice, begun + max(SO_FAR_EVERY_SECONDS, SO_FAR_PAUSES * took), found
            return found

    def _computed_so_far(self, checkpoint: LocalPlace) -> Mapping[str, object]:
        kept = sum(one.kept for one in self.totals.last.operators)
        answers = computed_beside(checkpoint) if kept <= MOST_KEPT else None
        if answers is None:
            why = f"{kept:,} tuples are kept" if kept > MOST_KEPT else "Spark is needed to compute them"
            return {"results": [], "what": f"{why}: xmlstream so-far prints them from the checkpoint"}
        return {"results": [one.first(SO_FAR_ROWS) for one in answers]}

    def declare(self, source: str, punctuation: str, by: str) -> list[str]:
        """Declares a punctuation in the place of a source; returns what was noted.

        Raises:
            UsageError, StateError: It cannot be declared (`xmlstream.runtime.checkpoint.declared.declare`).
        """
        if self._run is None:
            raise UsageError("the run has not begun", hint="declare it once the page shows the plan")
        if not by.strip():
            raise UsageError("a name is missing", hint="write who declares it")
        store = folder_at(self._run.checkpoint)
        last = made_whole(CommitLog(store.below("commits")).records())
        return list(map(str, declare(store, self._run.root, last, source, punctuation, by=by.strip()[:200])))

    def _all_declared(self) -> list[dict[str, object]]:
        """What was declared, newest first; `waits` until a slice has taken it in."""
        waiting: list[Declared] = []
        with suppress(StateError, OSError):
            waiting = DeclaredNotes(self._run.checkpoint).waiting() if self._run is not None else []
        every = {**self._declared, **{each.key: each for each in waiting}}
        return [{**every[key].json(), "waits": key not in self._declared} for key in sorted(every, reverse=True)]

    def last_sent(self) -> Mapping[str, datetime]:
        """For each source that has not ended, when it sent its last punctuation; without one, when the run began."""
        return self._closed.progress.open_since() if self._closed is not None else {}

    def letters(self) -> list[dict[str, object]]:
        """The last dead letters, newest first."""
        found: list[dict[str, object]] = []
        if self._run is None:
            return found
        place = store_at(self._run.dead_letters)
        names = [name for name in place.names() if name.endswith(".jsonl")]
        for name in sorted(names, key=lambda name: name[-15:], reverse=True):
            lines = place.read(name).decode().splitlines()
            found += [json.loads(line) for line in reversed(lines)]
            if len(found) >= LETTERS:
                break
        return found[:LETTERS]

    def _add_slice(self, record: Commit, *, restored: bool = False) -> None:
        self._declared |= {each.key: each for each in record.declared}
        if self._closed is not None and self._run is not None:
            self._closed.add(record, folder_at(self._run.checkpoint).path("state"), restored=restored)
            if self._closed.unread > MOST_UNREAD and not self._reading.locked():
                threading.Thread(target=self._read, name="monitor's reading", daemon=True).start()
            self._is_stale = True
        self._add_report(record.report, record.time.isoformat())

    def _add_report(self, report: SliceReport, time: str) -> None:
        self._last_out |= {one.name: time for one in report.operators if one.tuples_out}
        slice_ = {name: value for name, value in report.json().items() if name != "findings"}
        self.history.add("slice", {**slice_, "time": time, "totals": self.totals.json()})
        self.history.add("findings", report.findings, replaces=True)

    def _read(self) -> None:
        """Parses recorded punctuations without a reader, so that they do not pile up."""
        assert self._closed is not None
        with self._reading:
            self._closed.read()

    def _add_state(self) -> None:
        at, over = self._at or datetime.now(UTC).isoformat(), self.is_over
        event = {"state": self.state, "how": self.how, "what": self._what, "run": self.identity, "at": at, "over": over}
        event |= {"stands": self._stands(), "labels": self.labels()}
        event["questions"] = self.questions if self._run is not None else []
        self.history.add("state", event, replaces=True)
