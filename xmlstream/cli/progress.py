"""Progress of a running query on standard error: a live table in a terminal, elsewhere plain lines at intervals.

The table has the inputs, what each has closed and lacks, what is kept, and what the query waits for. Findings are
printed as they come.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from xmlstream.monitor.run_view import RunView
from xmlstream.runtime.metrics import counted

EVERY_SECONDS = 2.0
"""At the least between two plain lines."""

NOTICED_EVERY_SECONDS = 30.0
"""How often what was noticed in the sources is said while the query waits."""

_IMPORTED = time.monotonic()

ReportJson = Mapping[str, Any]


class Totals:
    """What a run has done up to now."""

    def __init__(self) -> None:
        self.slices = self.items = self.tuples_out = self.kept = self.held = self.set_aside = 0
        self.exact = True
        self._began = time.perf_counter()

    def add(self, report: ReportJson) -> None:
        """One more slice."""
        self.slices += 1
        self.items += report["items_in"]
        self.tuples_out += report["tuples_out"]
        self.set_aside += report["set_aside"]
        self.exact = report["exact"]
        self.kept = sum(operator["kept"] for operator in report["operators"])
        self.held = sum(operator["punctuations_held"] for operator in report["operators"])

    def __str__(self) -> str:
        rate = self.items / max(time.perf_counter() - self._began, 1e-9)
        aside = f", {self.set_aside:,} set aside" if self.set_aside else ""
        return (
            f"{counted(self.slices, 'slice')}, {counted(self.items, 'item')} ({rate:,.0f}/s){aside}, "
            f"{counted(self.tuples_out, 'tuple')} out; kept: {counted(self.kept, 'tuple')}, "
            f"{counted(self.held, 'punctuation')}{'' if self.exact else '; not exact'}"
        )


@contextmanager
def noticed(console: Console, findings: Callable[[], Iterable[object]]) -> Iterator[None]:
    """Says what is noticed, now and then, each thing once; at the end again, where numbers have changed."""
    done = threading.Event()
    told: dict[Hashable, str] = {}

    def say(*, again: bool = False) -> None:
        for finding in findings():
            about, text = getattr(finding, "subject", str(finding)), str(finding)
            if about not in told or (again and told[about] != text):
                console.print(f"noticed in {text}", highlight=False, markup=False, soft_wrap=True)
                told[about] = text

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


def lines(console: Console, every: float) -> Callable[[ReportJson], None]:
    """What is to be called with the report of each committed slice: the first one has a line.

    Of the others one has a line `every` so many seconds, and the last one, unless that is never.
    """
    totals = Totals()
    told = -inf

    def on_slice(report: ReportJson) -> None:
        nonlocal told
        totals.add(report)
        now = time.perf_counter()
        if told == -inf or now - told >= every or (report["closed"] and every < inf):
            told = now
            console.print(f"slice {report['slice']}: {totals}", highlight=False, soft_wrap=True)

    return on_slice


def seconds_since_start() -> float:
    """How long this process has been running, Python's own start included; without Linux's /proc, since its import."""
    try:
        # Field 22, in ticks since the machine's start; the command in field 2 may hold blanks and brackets.
        ticks = int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError):
        return time.monotonic() - _IMPORTED


MOST_ROWS = 12
"""Rows of inputs; of more the rest is counted."""

IDLE_SECONDS = 1.0
"""How long nothing moves before it is said what is waited for."""


@contextmanager
def shown(
    console: Console, view: RunView, *, verbose: bool, follow: bool
) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Shows a run on a terminal as it goes, elsewhere in a line for its first slice; in more of them if `verbose`.

    Yields what is to be called with the report of each committed slice.
    """
    if console.is_terminal:
        table = LiveTable(view, follow=follow)
        with Live(table, console=console, transient=True, refresh_per_second=2):
            yield table.slice
    else:
        yield lines(console, every=EVERY_SECONDS if verbose else inf)


class LiveTable:
    """What a terminal shows of a run, drawn anew each time that it is asked for.

    Args:
        view: The run.
        follow: Whether it waits for more input, and it is told what for.
    """

    def __init__(self, view: RunView, *, follow: bool) -> None:
        self._view, self._follow = view, follow
        self._totals = Totals()
        self._spinner = Spinner("dots")
        self._moved = time.monotonic()
        self._axes: list[dict[str, Any]] = []

    def slice(self, report: dict[str, Any]) -> None:
        """One more slice."""
        self._totals.add(report)
        if report["items_in"]:
            self._moved = time.monotonic()

    def __rich__(self) -> RenderableType:
        """The table, and what is waited for below it."""
        if not self._totals.slices and not self._view.totals.last:
            self._spinner.update(text="no slice yet")
            return self._spinner
        self._axes = self._view.closed()
        self._spinner.update(text=Text(str(self._totals)))
        parts: list[RenderableType] = [self._table(), self._spinner]
        if self._follow and (idle := time.monotonic() - self._moved) >= IDLE_SECONDS:
            parts.append(Text(f"no slice for {idle:.0f} s; {waited_for(self._axes)}", style="yellow"))
        return Group(*parts)

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim")
        for column in ("input", "tuples", "closed", "lacks"):
            table.add_column(
                column, justify="right" if column == "tuples" else "left", overflow="ellipsis", no_wrap=True
            )
        flows = self._view.totals.flows
        rows = [row for axis in self._axes for row in axis["rows"]]
        before = None
        for row in rows[:MOST_ROWS]:
            name = row["input"]
            came = f"{flows[name]['tuples_in']:,}" if name in flows and name != before else ""
            cells = (name if name != before else "", came, f"{row['attribute']} {row['closed']}", row["lacks"])
            table.add_row(*map(Text, cells[:3]), Text(cells[3], style="yellow"))
            before = name
        if len(rows) > MOST_ROWS:
            table.add_row(Text(f"and {len(rows) - MOST_ROWS} more", style="dim"))
        return table


def waited_for(axes: list[dict[str, Any]]) -> str:
    """What a run waits for, by its closed map, in a line.

    >>> row = {"input": "s2", "attribute": "hour", "closed": "≤ 16", "lacks": "17", "missing": ["<*, 17, *>"]}
    >>> waited_for([{"rows": [row]}])
    'waits for s2 to say <*, 17, *>'
    """
    rows = [row for axis in axes for row in axis["rows"]]
    lacking = [f"{row['input']} to say {', '.join(row['missing'][:3])}" for row in rows if row["missing"]]
    silent = [
        f"{row['input']}, which has closed no {row['attribute']} yet" for row in rows if row["closed"] == "nothing yet"
    ]
    told = lacking or silent
    return (
        f"waits for {'; '.join(told[:3])}{f' and {len(told) - 3} more' if len(told) > 3 else ''}"
        if told
        else "waits for more input"
    )
