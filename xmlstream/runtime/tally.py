"""Tally of a run: the reports of its slices added up for the summary, and handed on to metrics and listeners."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from xmlstream.runtime.findings import Finding
from xmlstream.runtime.metrics import MetricsFile


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run did up to now.

    Attributes:
        slices: How many slices were committed.
        items_in: Tuples and punctuations of all sources.
        tuples_out: Tuples of all results.
        seconds: Time of the slices.
        closed: Whether the input has ended for good.
        closed_before: The query had been closed by an earlier run, and nothing was done.
        findings: What was noticed in the sources since the query first began: mistakes that are no errors.
        exact: Whether no tuple has been purged by age (`purge_after`) since the query first began.
    """

    slices: int
    items_in: int
    tuples_out: int
    seconds: float
    closed: bool
    closed_before: bool = False
    findings: tuple[Finding, ...] = ()
    exact: bool = True

    def _repr_html_(self) -> str:
        """The same as a table, as a notebook shows it."""
        ends = "ended for good" if self.closed else "goes on"
        told = {
            "slices": f"{self.slices:,}",
            "items in": f"{self.items_in:,}",
            "tuples out": f"{self.tuples_out:,}",
            "time of the slices": f"{self.seconds:.1f} s",
            "input": f"{ends}{', before this run' if self.closed_before else ''}",
            **({} if self.exact else {"result": "not exact: tuples were purged by age"}),
        }
        rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in told.items())
        noticed = "".join(f"<li>{escape(str(finding))}</li>" for finding in self.findings)
        return f"<table>{rows}</table>" + (f"<p>Noticed:</p><ul>{noticed}</ul>" if noticed else "")


class Tally:
    """Adds up the reports of this run, and hands them on."""

    def __init__(self, metrics: MetricsFile | None, on_slice: Callable[[dict[str, Any]], None] | None) -> None:
        self._metrics, self._on_slice = metrics, on_slice
        self._restoring = True
        self._slices = self._items_in = self._tuples_out = 0
        self._seconds = 0.0

    def begin(self) -> None:
        """Up to here reports were of slices that an earlier run committed."""
        self._restoring = False

    def slice(self, report: dict[str, Any]) -> None:
        """One committed slice."""
        if self._restoring:
            if self._metrics is not None:
                self._metrics.restore(report)
            return
        if self._metrics is not None:
            self._metrics.append(report)
        self._slices += 1
        self._items_in += report["items_in"]
        self._tuples_out += report["tuples_out"]
        self._seconds += report["seconds"]
        if self._on_slice is not None:
            self._on_slice(report)

    def summary(self, closed: bool, findings: tuple[Finding, ...], *, exact: bool) -> Summary:
        """What was done so far."""
        done = self._slices, self._items_in, self._tuples_out, self._seconds
        return Summary(*done, closed, findings=findings, exact=exact)
