"""Tally of a run: adds up the reports of its slices for the summary, and passes them to metrics and listeners.

If this process is the kernel of a notebook, the notebook shows the progress of the run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Mapping
from html import escape
from typing import Any

from xmlstream.dataclasses import dataclass, field
from xmlstream.punct_ns.errors import counted
from xmlstream.runtime.checkpoint.slice_report import SliceReport
from xmlstream.runtime.likely_mistakes import Finding
from xmlstream.runtime.metrics import Metrics, Totals

EVERY_SECONDS = 1.0
"""The shortest time between two drawings."""


class Progress:
    """HTML below a notebook's cell that is updated while the run goes on.

    Args:
        html: Makes the HTML.
    """

    def __init__(self, html: Callable[[], str]) -> None:
        self._html, self._drawn = html, time.monotonic()
        display = _display()
        self._shown = None if display is None else display({"text/html": html()}, raw=True, display_id=True)

    def __bool__(self) -> bool:
        """Whether there is a notebook."""
        return self._shown is not None

    def update(self, *, at_once: bool = False) -> None:
        """Updates the HTML, unless that was done within the last `EVERY_SECONDS`; `at_once` updates it anyway."""
        if self._shown is not None and (at_once or time.monotonic() - self._drawn >= EVERY_SECONDS):
            self._drawn = time.monotonic()
            self._shown.update({"text/html": self._html()}, raw=True)

    def clear(self) -> None:
        """Removes the HTML, since the result of the cell replaces it."""
        if self._shown is not None:
            self._shown.update({"text/html": ""}, raw=True)
            self._shown = None


def _display() -> Any:
    """The notebook's own `display`; None if this process is not the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if ipython is None or getattr(shell, "kernel", None) is None:
        return None
    return ipython.display.display


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a run up to now.

    Attributes:
        slices: Number of committed slices.
        items_in: Number of tuples and punctuations of all sources.
        tuples_out: Number of tuples of all results.
        seconds: Total time of the slices.
        closed: Whether the input has ended for good.
        closed_before: Whether an earlier run had closed the query, so that this run did nothing.
        findings: The findings since the query first began: likely mistakes that are no errors.
        exact: Whether no tuple has been purged by age (`purge_after`) since the query first began.
        draw: Draws the plan with the numbers of the run, as SVG.
        left_out: Number of tuples that were left out because the output that the query continues has closed them.
    """

    slices: int
    items_in: int
    tuples_out: int
    seconds: float
    closed: bool
    closed_before: bool = False
    findings: tuple[Finding, ...] = ()
    exact: bool = True
    draw: Callable[[], str] | None = field(default=None, repr=False, compare=False)
    left_out: int = 0

    @property
    def counts(self) -> str:
        """The counts as text: `3 slices, 130 items in, 12 tuples out`."""
        in_, out = counted(self.items_in, "item"), counted(self.tuples_out, "tuple")
        return f"{counted(self.slices, 'slice')}, {in_} in, {out} out"

    def _repr_html_(self) -> str:
        """The summary as an HTML table for a notebook, and the plan with the numbers of the run."""
        ends = "ended for good" if self.closed else "goes on"
        lines = {
            "slices": f"{self.slices:,}",
            "items in": f"{self.items_in:,}",
            "tuples out": f"{self.tuples_out:,}",
            "time of the slices": f"{self.seconds:.1f} s",
            "input": f"{ends}{', before this run' if self.closed_before else ''}",
            **({} if self.exact else {"result": "not exact: tuples were purged by age"}),
        }
        rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in lines.items())
        noticed = "".join(f"<li>{escape(str(finding))}</li>" for finding in self.findings)
        drawn = self.draw() if self.draw is not None else ""
        return f"<table>{rows}</table>{f'<p>Noticed:</p><ul>{noticed}</ul>' if noticed else ''}{drawn}"


class Tally:
    """Adds up the reports of this run, and passes them on.

    Args:
        metrics: The file to which they are appended.
        on_slice: Called with each report.
        picture: Draws the plan with the numbers of a run.
        hand_overs: The names of the nodes that leave out what an earlier output has closed.
    """

    def __init__(
        self,
        metrics: Metrics | None,
        on_slice: Callable[[SliceReport], None] | None,
        picture: Callable[[Mapping[str, str]], str] | None = None,
        hand_overs: Collection[str] = (),
    ) -> None:
        self._metrics, self._on_slice, self._picture = metrics, on_slice, picture
        self._hand_overs, self._left_out = hand_overs, 0
        self._totals = Totals()
        self.progress: Progress | None = None

    def restore(self, report: SliceReport) -> None:
        """Takes the report of the last slice that an earlier run committed."""
        self._totals.restore(report)
        if self._metrics is not None:
            self._metrics.restore(report)

    def slice(self, report: SliceReport) -> None:
        """Adds the report of a committed slice."""
        if self._metrics is not None:
            self._metrics.append(report)
        self._totals.add(report)
        self._left_out += sum(o.tuples_in - o.tuples_out for o in report.operators if o.name in self._hand_overs)
        if self._on_slice is not None:
            self._on_slice(report)
        if self.progress is not None:
            self.progress.update()

    def summary(self, closed: bool, findings: tuple[Finding, ...], *, exact: bool) -> Summary:
        """The summary up to now."""
        totals, draw = self._totals, None if self._picture is None else self.drawing
        done = totals.slices, totals.items_in, totals.tuples_out, totals.seconds
        return Summary(*done, closed, findings=findings, exact=exact, draw=draw, left_out=self._left_out)

    def drawing(self) -> str:
        """The plan with the numbers of the run up to now, as SVG; empty if there is no `picture`."""
        return "" if self._picture is None else self._picture(self._totals.numbers())
