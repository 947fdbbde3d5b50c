"""Progress of a running query on standard error: a live table in a terminal, plain lines elsewhere.

The table shows for each input the values that are closed and those that are missing, then the kept tuples, and the
punctuations that the query waits for. Findings are printed as they come.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from xmlstream.monitor.closed_map import AxisRow
from xmlstream.monitor.run_view import RunView
from xmlstream.punct_ns.errors import counted, few
from xmlstream.runtime.checkpoint.slice_report import BEFORE, SliceReport
from xmlstream.runtime.likely_mistakes import MISREAD, Finding
from xmlstream.runtime.metrics import Totals

EVERY_SECONDS = 2.0
"""Shortest time between two plain lines."""

NOTICED_EVERY_SECONDS = 30.0
"""How often new findings are printed."""

_IMPORTED = time.monotonic()


class _Progress:
    """Counts of a run so far, as a line of text."""

    def __init__(self) -> None:
        self.totals = Totals()
        self._began = time.perf_counter()

    def __str__(self) -> str:
        totals = self.totals
        rate = totals.items_in / max(time.perf_counter() - self._began, 1e-9)
        aside = f", {totals.set_aside:,} set aside" if totals.set_aside else ""
        return (
            f"{counted(totals.slices, 'slice')}, {counted(totals.items_in, 'item')} ({rate:,.0f}/s){aside}, "
            f"{counted(totals.tuples_out, 'tuple')} out; kept: {counted(totals.kept, 'tuple')}, "
            f"{counted(totals.held, 'punctuation')}{'' if totals.last.exact else '; not exact'}"
        )


@contextmanager
def noticed(
    console: Console, findings: Callable[[], Iterable[object]], before: Iterable[Finding] = ()
) -> Iterator[None]:
    """Prints each finding once while the query runs; at the end again where its numbers have changed.

    Those in `before` were printed by an earlier run; that a source is misread is logged with its first slice.
    """
    done = threading.Event()
    printed: dict[Hashable, str] = {finding.subject: str(finding) for finding in before}

    def say(*, again: bool = False) -> None:
        for finding in findings():
            subject, text = getattr(finding, "subject", str(finding)), str(finding)
            if getattr(finding, "kind", "") in MISREAD:
                continue
            if subject not in printed or (again and printed[subject] != text):
                console.print(f"noticed in {text}", highlight=False, markup=False, soft_wrap=True)
                printed[subject] = text

    def wait() -> None:
        while not done.wait(NOTICED_EVERY_SECONDS):
            say()

    thread = threading.Thread(target=wait, name="noticed", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        say(again=True)


def lines(console: Console, every: float) -> Callable[[SliceReport], None]:
    """Returns a callback for the report of each committed slice, which prints progress as lines.

    It prints a line for the first slice, then at most one in `every` seconds, and one for the last slice; with
    `every` infinite only the first line.
    """
    progress = _Progress()
    printed = -inf

    def on_slice(report: SliceReport) -> None:
        nonlocal printed
        progress.totals.add(report)
        now = time.perf_counter()
        if printed == -inf or now - printed >= every or (report.closed and every < inf):
            printed = now
            console.print(f"slice {report.slice}: {progress}", highlight=False, soft_wrap=True)

    return on_slice


def seconds_since_start() -> float:
    """Seconds since this process started; without Linux's /proc, since this module was imported."""
    try:
        # Field 22, in ticks since the machine's start; the command in field 2 may hold blanks and brackets.
        ticks = int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError):
        return time.monotonic() - _IMPORTED


MOST_ROWS = 12
"""Rows of inputs in the table; further ones are only counted."""

IDLE_SECONDS = 1.0
"""Time without tuples after which the table names the punctuations that the query waits for."""


@contextmanager
def shown(console: Console, view: RunView, *, verbose: bool, follow: bool) -> Iterator[Callable[[SliceReport], None]]:
    """Shows a run: as a live table in a terminal; else as a line for its first slice, or for more if `verbose`.

    Yields a callback for the report of each committed slice.
    """
    if console.is_terminal:
        table = LiveTable(view, follow=follow)
        with Live(table, console=console, transient=True, refresh_per_second=2):
            yield table.slice
    else:
        yield lines(console, every=EVERY_SECONDS if verbose else inf)


class LiveTable:
    """The table of a run in a terminal, rendered anew at each refresh.

    Args:
        view: The run.
        follow: Whether the run waits for more input; then the table names the punctuations that it waits for.
    """

    def __init__(self, view: RunView, *, follow: bool) -> None:
        self._view, self._follow = view, follow
        self._progress = _Progress()
        self._spinner = Spinner("dots")
        self._moved = time.monotonic()
        self._rows: list[AxisRow] = []

    def slice(self, report: SliceReport) -> None:
        """Takes the report of a slice."""
        self._progress.totals.add(report)
        if report.items_in:
            self._moved = time.monotonic()

    def _waits(self) -> str:
        """What the query waits for, as its page says; else the punctuations that inputs lack."""
        causes = [cause for cause in self._view.waiting()["causes"] if cause["behind"]]
        names = [name for cause in causes for name in cause["senders"] or [cause["input"]]]
        return f"waits for {few(list(dict.fromkeys(names)))}" if names else waited_for(self._rows)

    def __rich__(self) -> RenderableType:
        if not self._progress.totals.slices and self._view.totals.last is BEFORE:
            self._spinner.update(text="no slice yet")
            return self._spinner
        self._rows = [row for axis in self._view.closed() for row in axis.rows]
        self._spinner.update(text=Text(str(self._progress)))
        parts: list[RenderableType] = [self._table(), self._spinner]
        if self._follow and (idle := time.monotonic() - self._moved) >= IDLE_SECONDS:
            parts.append(Text(f"no slice for {idle:.0f} s; {self._waits()}", style="yellow"))
        return Group(*parts)

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim")
        for column in ("input", "tuples", "closed", "lacks"):
            table.add_column(
                column, justify="right" if column == "tuples" else "left", overflow="ellipsis", no_wrap=True
            )
        flows = self._view.totals.flows
        before = None
        for row in self._rows[:MOST_ROWS]:
            name = row.input
            came = f"{flows[name]['tuples_in']:,}" if name in flows and name != before else ""
            cells = (name if name != before else "", came, f"{row.attribute} {row.closed}", row.lacks)
            table.add_row(*map(Text, cells[:3]), Text(cells[3], style="yellow"))
            before = name
        if len(self._rows) > MOST_ROWS:
            table.add_row(Text(f"and {len(self._rows) - MOST_ROWS} more", style="dim"))
        return table


def waited_for(rows: Sequence[AxisRow]) -> str:
    """One line about the missing punctuations in the closed map of a run.

    >>> waited_for([AxisRow("s2", "hour", [], "≤ 16", "17", ("<*, 17, *>",))])
    'waits for s2 to send <*, 17, *>'
    """
    missing = [f"{row.input} to send {', '.join(row.missing[:3])}" for row in rows if row.missing]
    silent = [f"{row.input}, which has closed no {row.attribute} yet" for row in rows if row.closed == "nothing yet"]
    inputs = missing or silent
    return f"waits for {few(inputs, '; ')}" if inputs else "waits for more input"
