"""A run as its readers see it: its plan, what it did, what is closed, its end; commits feed it, threads read it.

The history of a run is a list of events: bounded, numbered, and read by each reader at its own pace. Adding an event
never waits for a reader, and a reader that falls behind loses the oldest events. Events of some kinds replace their
predecessors: of those the last one is kept, however old.
"""

from __future__ import annotations

import json
import math
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from operators.expressions.constant_evaluation import evaluated
from punct_ns.errors import UsageError, XmlStreamError
from xmlstream.diagnosis.inspection import inspect, nobody
from xmlstream.diagnosis.missing import Functions
from xmlstream.monitor.closed_map import ClosedMap
from xmlstream.monitor.interval_bars import axes
from xmlstream.plan.nodes import Node, Scan, names, results, topological
from xmlstream.runtime.metrics import Totals
from xmlstream.runtime.watching import Watched
from xmlstream.safety.explanation import as_json
from xmlstream.safety.picture import picture
from xmlstream.safety.remedies import Remedy, remedies
from xmlstream.safety.verdicts import QueryVerdict, judged

MOST_EVENTS = 1000
"""Events that are kept: with slices of half a second those of eight minutes."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event, its data as JSON."""

    number: int
    kind: str
    data: str


class History:
    """The events of a run, from 1 on; threads may add and read."""

    def __init__(self, most: int = MOST_EVENTS) -> None:
        self._lock = threading.Lock()
        self._events: deque[Event] = deque(maxlen=most)
        self._latest: dict[str, Event] = {}
        self._number = 0
        self._bells: set[Callable[[], None]] = set()

    def add(self, kind: str, data: Any, *, replaces: bool = False) -> None:
        """Adds an event, and rings the bells of those who wait."""
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
        """What came after an event, as far as it is still known, in order."""
        with self._lock:
            found = [event for event in (*self._events, *self._latest.values()) if event.number > number]
        return sorted(found, key=lambda event: event.number)

    def ring(self, bell: Callable[[], None]) -> Callable[[], None]:
        """Has a bell rung at each event, by whoever adds it; what is returned takes it away."""
        with self._lock:
            self._bells.add(bell)

        def away() -> None:
            with self._lock:
                self._bells.discard(bell)

        return away


CLOSED_EVERY_SECONDS = 0.25
"""How often the closed map is made at the most, and only while somebody looks."""

AT_ONCE_SECONDS = 0.05
"""What may be made anew as often as it is asked for."""

CLOSED_PAUSES = 9
"""How many times as long as making it took, it is not made again: much is closed, and the query needs the processor."""

WAITING_EVERY_SECONDS = 2.0
"""How often it is looked into what waits at the most, and only while somebody looks."""

MOST_UNREAD = 20_000
"""Recorded punctuations that wait for somebody to look."""

LETTERS = 50
"""Items set aside that are shown."""


class RunView:
    """What is seen of one run.

    Attributes:
        identity: Differs between runs, so that a reader who returns does not take one for another.
        history: Its slices, and the last of each other kind of event.
        totals: What it did.
        state: `starting`, `running`, `ended` or `failed`; `recorded` where nobody knows.
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
        self._tell_state()

    def begun(self, run: Watched) -> None:
        """A run begins."""
        self._run = run
        self._closed = closed_map(run.root)
        self._axes = self._closed.json()
        self.state = "running"
        self._tell_state()

    @property
    def name(self) -> str:
        """What the query is called."""
        return (self._run and self._run.name) or "query"

    @cached_property
    def _judged(self) -> tuple[QueryVerdict, list[Remedy]]:
        """Its verdicts and remedies: of a run that nobody looks at they are not asked for."""
        assert self._run is not None
        root, follow = self._run.root, self._run.follow
        return judged(root, follow=follow), remedies(root, follow=follow)

    def plan(self) -> dict[str, Any]:
        """The plan with its verdicts, as JSON."""
        if self._run is None:
            return {"operators": []}
        return {"query": self.name, "follow": self._run.follow, **as_json(*self._judged)}

    def drawing(self) -> str:
        """The plan as SVG, with room for numbers; its looks are the page's. Empty before it is known."""
        if self._run is None:
            return ""
        return picture(*self._judged, concluded=False, live={}, styled=False)

    def restored(self, record: Mapping[str, Any]) -> None:
        """An earlier run left this."""
        self.totals.restore(record)
        self._tell(record, restored=True)

    def committed(self, record: Mapping[str, Any], *, restored: bool = False) -> None:
        """A slice was committed; `restored` says that strings on disk were said before it."""
        self.totals.add(record)
        self._tell(record, restored=restored)

    def ended(self, failure: BaseException | None) -> None:
        """The run is over."""
        if self.is_over:
            return
        self.state = "ended" if failure is None else "failed"
        what = "" if failure is None else failure.what if isinstance(failure, XmlStreamError) else str(failure)
        self._tell_state(what)

    def is_recorded(self) -> None:
        """It is read from a checkpoint: whether it runs nobody knows, unless its input has ended."""
        self.state = "ended" if self.totals.last.get("closed", False) else "recorded"
        self._tell_state()

    def refresh(self, *, at_once: bool = False) -> bool:
        """Makes the closed map anew if a slice came since; whether it is to be asked again soon."""
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
        """The closed map; where much is closed, perhaps one of a moment ago."""
        self.refresh(at_once=self._took < AT_ONCE_SECONDS)
        return self._axes

    def asked(self, key: Mapping[str, str]) -> dict[str, Any]:
        """Of values of attributes: whether their results are out, which inputs closed them, what others must say."""
        found: dict[str, Any] = {"rows": []}
        for attribute, text in key.items():
            try:
                found["rows"] += self._closed.asked(attribute, text) if self._closed is not None else []
            except ValueError as error:
                return {"what": f"{text!r} is no {attribute}: {error}"}
        if self._run is not None and key:
            try:
                asked = inspect(self._run.checkpoint, key, functions=self._functions).asked
                found["result"] = asked and asked.as_json()
            except UsageError as error:
                # No result has such an attribute; or one has, and the text is no value of it.
                if not found["rows"]:
                    return {"what": error.what}
            except (XmlStreamError, OSError):
                pass  # nothing was committed yet
        return found if found["rows"] or "result" in found else {"what": f"nothing is known of {', '.join(key)}"}

    @cached_property
    def questions(self) -> list[str]:
        """The attributes of which can be asked: those that inputs close, or promised to, and those of results."""
        if self._run is None:
            return []
        of_results = (a.name for node in results(self._run.root) for a in node.schema if not a.domain.opaque)
        closed = (row["attribute"] for axis in self.closed() for row in axis["rows"])
        return list(dict.fromkeys((*closed, *of_results)))

    @property
    def _functions(self) -> Functions:
        """Who computes expressions: the session of the run, which has no job of it."""
        if self._run is None or (spark := self._run.spark) is None:
            return nobody
        return lambda expression, x, y, local: evaluated(expression, x, y, spark, local=local)

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in ("ended", "failed")

    def lacking(self) -> list[str]:
        """Which input lacks what others have closed, in sentences."""
        return self._closed.lacking() if self._closed is not None else []

    def waiting(self) -> dict[str, Any]:
        """What operators hold, and of whom what is missing, as of the last commit; made anew every few seconds."""
        with self._inspecting:
            if self._run is not None and time.monotonic() - self._inspected[0] > WAITING_EVERY_SECONDS:
                try:
                    found = inspect(self._run.checkpoint, functions=self._functions).as_json()
                except (XmlStreamError, OSError) as error:
                    found = {"waits": [], "what": error.what if isinstance(error, XmlStreamError) else str(error)}
                self._inspected = (time.monotonic(), found)
            return self._inspected[1]

    def letters(self) -> list[dict[str, Any]]:
        """The last items that were set aside to be kept, the newest first."""
        found: list[dict[str, Any]] = []
        letters = self._run.dead_letters.glob("*.jsonl") if self._run is not None else ()
        paths = sorted(letters, key=lambda path: path.stem[-9:])
        for path in reversed(paths):
            lines = path.read_text(encoding="utf-8").splitlines()
            found += [json.loads(line) for line in reversed(lines)]
            if len(found) >= LETTERS:
                break
        return found[:LETTERS]

    def _tell(self, record: Mapping[str, Any], *, restored: bool = False) -> None:
        if self._closed is not None and self._run is not None:
            self._closed.add(record)
            self._closed.add_on_disk(record, self._run.checkpoint / "state", restored=restored)
            if self._closed.unread > MOST_UNREAD and not self._reading.locked():
                threading.Thread(target=self._read, name="monitor's reading", daemon=True).start()
            self._is_stale = True
        report = record["report"]
        slice_ = {name: value for name, value in report.items() if name != "findings"}
        self.history.add("slice", {**slice_, "time": record.get("time", ""), "totals": self.totals.json()})
        self.history.add("findings", report["findings"], replaces=True)

    def _read(self) -> None:
        """Reads what nobody has looked at, so that it does not pile up."""
        assert self._closed is not None
        with self._reading:
            self._closed.read()

    def _tell_state(self, what: str = "") -> None:
        told: dict[str, Any] = {
            "state": self.state,
            "what": what,
            "run": self.identity,
            "at": datetime.now(UTC).isoformat(),
        }
        told["questions"] = self.questions if self._run is not None else []
        self.history.add("state", told, replaces=True)


def closed_map(root: Node) -> ClosedMap:
    """The closed map of a plan's sources."""
    called = names(root)
    sources = [node for node in topological(root) if isinstance(node.operator, Scan)]
    return ClosedMap(
        {called[node]: node.schema for node in sources},
        {called[node]: _alone(node) for node in sources},
        axes(root),
    )


def _alone(node: Node) -> Sequence[str]:
    """The attributes of which a source promises to speak alone."""
    return [scheme.attributes[0] for scheme in node.schemes if len(scheme.terms) == 1]
