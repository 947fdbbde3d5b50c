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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from operators.expressions.constant_evaluation import evaluated
from punct_ns.errors import UsageError, XmlStreamError
from xmlstream.diagnosis.inspection import inspect, nobody
from xmlstream.diagnosis.missing import Functions
from xmlstream.monitor.closed_map import ClosedMap
from xmlstream.plan.nodes import results
from xmlstream.runtime.metrics import Totals
from xmlstream.runtime.watching import Watched
from xmlstream.safety.explanation import as_json
from xmlstream.safety.picture import picture
from xmlstream.safety.remedies import Remedy, remedies
from xmlstream.safety.verdicts import QueryVerdict, judged

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

WAITING_EVERY_SECONDS = 2.0
"""Shortest time between two inspections of what the query waits for."""

MOST_UNREAD = 20_000
"""Recorded punctuations up to which parsing waits for a reader."""

LETTERS = 50
"""Number of dead letters that are shown."""


class RunView:
    """The view of one run.

    Attributes:
        identity: Differs between runs, so that a reader that reconnects notices another run.
        history: The slices, and the last event of each other kind.
        totals: Totals of the run.
        state: `starting`, `running`, `ended` or `failed`; `recorded` if it is read from a checkpoint and may still run.
    """

    where = ""

    def __init__(self) -> None:
        self.identity = secrets.token_hex(4)
        self.history = History()
        self.totals = Totals()
        self.state = "starting"
        self._run: Watched | None = None
        self._closed: ClosedMap | None = None
        self._is_stale = False
        self._next = self._took = 0.0
        self._axes: list[dict[str, Any]] = []
        self._making = threading.Lock()
        self._reading = threading.Lock()
        self._inspecting = threading.Lock()
        self._inspected: tuple[float, dict[str, Any]] = (-math.inf, {"waits": []})
        self._add_state()

    def begun(self, run: Watched) -> None:
        """Takes the start of a run."""
        self._run = run
        self._closed = ClosedMap.of(run.root)
        self._axes = self._closed.json()
        self.state = "running"
        self._add_state()

    @property
    def name(self) -> str:
        """Name of the query."""
        return (self._run and self._run.name) or "query"

    @cached_property
    def _judged(self) -> tuple[QueryVerdict, list[Remedy]]:
        """Verdicts and remedies; computed for the first reader."""
        assert self._run is not None
        root, follow = self._run.root, self._run.follow
        return judged(root, follow=follow), remedies(root, follow=follow)

    def plan(self) -> dict[str, Any]:
        """The plan with its verdicts, as JSON."""
        if self._run is None:
            return {"operators": []}
        return {"query": self.name, "follow": self._run.follow, **as_json(*self._judged)}

    def drawing(self) -> str:
        """The plan as SVG with room for numbers, to be styled by the page; empty before the run starts."""
        if self._run is None:
            return ""
        return picture(*self._judged, concluded=False, live={}, styled=False)

    def restored(self, record: Mapping[str, Any]) -> None:
        """Takes the last commit of an earlier run."""
        self.totals.restore(record)
        self._add_slice(record, restored=True)

    def committed(self, record: Mapping[str, Any], *, restored: bool = False) -> None:
        """Takes the record of a committed slice; `restored` if strings on disk were closed before it."""
        self.totals.add(record)
        self._add_slice(record, restored=restored)

    def ended(self, failure: BaseException | None) -> None:
        """Takes the end of the run."""
        if self.is_over:
            return
        self.state = "ended" if failure is None else "failed"
        what = "" if failure is None else failure.what if isinstance(failure, XmlStreamError) else str(failure)
        self._add_state(what)

    def is_recorded(self) -> None:
        """Sets the state of a run read from a checkpoint: `ended` if its input has ended, else `recorded`."""
        self.state = "ended" if self.totals.last.get("closed", False) else "recorded"
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
            self._axes = self._closed.json()
            self.history.add("closed", self._axes, replaces=True)
            self._took = time.monotonic() - begun
            self._next = time.monotonic() + max(CLOSED_EVERY_SECONDS, CLOSED_PAUSES * self._took)
        return False

    def closed(self) -> list[dict[str, Any]]:
        """The closed map; a few seconds old if an update takes long."""
        self.refresh(at_once=self._took < AT_ONCE_SECONDS)
        return self._axes

    def answer(self, key: Mapping[str, str]) -> dict[str, Any]:
        """Whether the results of some values are out, which inputs have closed them, and what the others must send."""
        answer: dict[str, Any] = {"rows": []}
        for attribute, text in key.items():
            try:
                answer["rows"] += self._closed.closers(attribute, text) if self._closed is not None else []
            except ValueError as error:
                return {"what": f"{text!r} is not a value of {attribute}: {error}"}
        if self._run is not None and key:
            try:
                answer["result"] = inspect(self._run.checkpoint, key, functions=self._functions).as_json()["answer"]
            except UsageError as error:
                # No result has such an attribute; or one has, and the text is not a value of it.
                if not answer["rows"]:
                    return {"what": error.what}
            except (XmlStreamError, OSError):
                pass  # nothing was committed yet
        return answer if answer["rows"] or "result" in answer else {"what": f"nothing is known about {', '.join(key)}"}

    @cached_property
    def questions(self) -> list[str]:
        """The attributes that a reader can query: those that inputs close or promise to close, and those of results."""
        if self._run is None:
            return []
        of_results = (a.name for node in results(self._run.root) for a in node.schema if not a.domain.opaque)
        closed = (row["attribute"] for axis in self.closed() for row in axis["rows"])
        return list(dict.fromkeys((*closed, *of_results)))

    @property
    def _functions(self) -> Functions:
        """Computes expressions by the session of the run; this starts no Spark job."""
        if self._run is None or (engine := self._run.engine) is None:
            return nobody
        return lambda expression, x, y, local: evaluated(expression, x, y, engine, local=local)

    @property
    def is_over(self) -> bool:
        """Whether the run has ended or failed."""
        return self.state in ("ended", "failed")

    def waiting(self) -> dict[str, Any]:
        """The kept rows and missing punctuations as of the last commit; updated every few seconds."""
        with self._inspecting:
            if self._run is not None and time.monotonic() - self._inspected[0] > WAITING_EVERY_SECONDS:
                try:
                    report = inspect(self._run.checkpoint, functions=self._functions).as_json()
                except (XmlStreamError, OSError) as error:
                    report = {"waits": [], "what": error.what if isinstance(error, XmlStreamError) else str(error)}
                self._inspected = (time.monotonic(), report)
            return self._inspected[1]

    def letters(self) -> list[dict[str, Any]]:
        """The last dead letters, newest first."""
        found: list[dict[str, Any]] = []
        letters = self._run.dead_letters.glob("*.jsonl") if self._run is not None else ()
        paths = sorted(letters, key=lambda path: path.stem[-9:])
        for path in reversed(paths):
            lines = path.read_text(encoding="utf-8").splitlines()
            found += [json.loads(line) for line in reversed(lines)]
            if len(found) >= LETTERS:
                break
        return found[:LETTERS]

    def _add_slice(self, record: Mapping[str, Any], *, restored: bool = False) -> None:
        if self._closed is not None and self._run is not None:
            self._closed.add(record, self._run.checkpoint / "state", restored=restored)
            if self._closed.unread > MOST_UNREAD and not self._reading.locked():
                threading.Thread(target=self._read, name="monitor's reading", daemon=True).start()
            self._is_stale = True
        report = record["report"]
        slice_ = {name: value for name, value in report.items() if name != "findings"}
        self.history.add("slice", {**slice_, "time": record.get("time", ""), "totals": self.totals.json()})
        self.history.add("findings", report["findings"], replaces=True)

    def _read(self) -> None:
        """Parses recorded punctuations without a reader, so that they do not pile up."""
        assert self._closed is not None
        with self._reading:
            self._closed.read()

    def _add_state(self, what: str = "") -> None:
        at, questions = datetime.now(UTC).isoformat(), self.questions if self._run is not None else []
        event = {"state": self.state, "what": what, "run": self.identity, "at": at, "questions": questions}
        self.history.add("state", event, replaces=True)
