"""What a run waits for, as readers of its page see it: which source is behind, and what brings the next answer.

A source that has sent nothing for long is behind. One that a rule punctuates is behind only where another source, or
other senders on its roster, have passed it: its next tuple, or the next moment, closes more.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from xmlstream.dataclasses import dataclass
from xmlstream.diagnosis.inspection import inspect
from xmlstream.diagnosis.missing import Functions
from xmlstream.diagnosis.report import Cause, WaitingReport
from xmlstream.monitor.closed_map import Axis, AxisRow, ClosedMap
from xmlstream.operators.punctuate import Punctuate
from xmlstream.operators.punctuators.order import ByClock
from xmlstream.plan.nodes import names
from xmlstream.punct_ns.errors import XmlStreamError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.runtime.progress import punctuated_sources
from xmlstream.runtime.watching import Watched, what_of

WAITING_EVERY_SECONDS = 2.0
"""Shortest time between two inspections of what the query waits for."""


@dataclass(frozen=True, slots=True)
class LastingCause(Cause):
    """A cause, with what its source `lacks`, whether it is `behind`, and when it `last_sent` a punctuation.

    `input` is the source; if a rule punctuates it, `next` is the tuple with which the next answer comes, in words.
    """

    input: str = ""
    next: str = ""
    lacks: tuple[str, ...] = ()
    behind: bool = False
    last_sent: datetime | None = None


class Lateness:
    """How late the sources of one run are, whose punctuations `closed` has."""

    def __init__(self, run: Watched, closed: ClosedMap) -> None:
        self._run, self._closed = run, closed
        self._punctuated = punctuated_sources(run.root)
        operators = ((name, node, node.operator) for node, name in names(run.root).items())
        self._rules = {name: (node, one) for name, node, one in operators if isinstance(one, Punctuate)}
        self._inspecting = threading.Lock()
        self._inspected: tuple[float, WaitingReport | str] = (-math.inf, "")

    def report(self, functions: Functions) -> WaitingReport | str:
        """What the query waits for as of the last commit, updated every few seconds; or why that is not known."""
        with self._inspecting:
            if time.monotonic() - self._inspected[0] > WAITING_EVERY_SECONDS:
                report: WaitingReport | str
                try:
                    report = inspect(self._run.checkpoint, functions=functions)
                except (XmlStreamError, OSError) as error:
                    report = what_of(error)
                self._inspected = (time.monotonic(), report)
            return self._inspected[1]

    def causes(self, report: WaitingReport, axes: Sequence[Axis], *, over: bool) -> list[LastingCause]:
        """The causes of a report, each with what its source lacks on the `axes`; none is behind when `over`."""
        lacks: dict[str, list[AxisRow]] = {}
        for row in (row for axis in axes for row in axis.rows if row.lacks):
            lacks.setdefault(row.input, []).append(row)
        return [self._lasting(cause, lacks.get(cause.source, []), over=over) for cause in report.causes]

    def _lasting(self, cause: Cause, lacks: Sequence[AxisRow], *, over: bool) -> LastingCause:
        source = self._punctuated.get(cause.source, cause.source)
        came, lags = None if cause.since is None else cause.since.time, cause.is_last or bool(lacks)
        is_late = self._closed.progress.is_late(source, datetime.now(UTC), came, lags=lags)
        # All senders of a roster may be quiet: it is late if some have gone on, and others have not.
        is_late = is_late and (cause.rule is None or bool(cause.senders))
        behind = not over and (is_late or self._closed.progress.is_passed(source, datetime.now(UTC)))
        missing = tuple(p for row in lacks for p in row.missing)[:3] or cause.missing
        texts = tuple(f"{row.attribute} {row.lacks}" for row in lacks)
        more: dict[str, Any] = {"input": source, "next": self._next_tuple(cause), "last_sent": self._last_sent(source)}
        return LastingCause.extending(cause, missing=missing, lacks=texts, behind=behind, **more)

    def _last_sent(self, source: str) -> datetime | None:
        sent = self._closed.progress.last_sent(source)
        return None if sent is None else sent[1]

    def _next_tuple(self, cause: Cause) -> str:
        """The tuple or moment with which a rule sends what the oldest rows lack, in words; empty if it is not known."""
        if cause.source not in self._rules:
            return ""
        node, operator = self._rules[cause.source]
        awaited = (operator.rule.awaited(Punctuation.parse(text, node.schema)) for text in cause.missing)
        if (first := min(filter(None, awaited), key=lambda one: one[1], default=None)) is None:
            return ""
        attribute, value = first
        shown = node.schema.attribute(attribute).domain.write(value)
        if isinstance(operator.rule, ByClock):
            return f"the clock at {shown}"
        return f"the first tuple of {self._punctuated[cause.source]} with {attribute} from {shown} on"

    def sources(self, causes: Sequence[LastingCause]) -> Iterator[dict[str, object]]:
        """For each source that rules punctuate: the `rules`, what is `closed` so far, and what brings the `next`."""
        for source in dict.fromkeys(self._punctuated.values()):
            rules = [str(one.rule) for name, (_, one) in self._rules.items() if self._punctuated[name] == source]
            next_ = [cause.next for cause in causes if cause.input == source and cause.next]
            sent = self._last_sent(source)
            found = {"name": source, "rules": rules, "closed": self._closed.so_far(source), "next": next_[:1]}
            yield {**found, "last_sent": sent.isoformat() if sent else None}
