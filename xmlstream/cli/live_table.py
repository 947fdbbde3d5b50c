"""A live table of a run in a terminal: inputs, what they have closed and lack, what is kept, and what is waited for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from xmlstream.cli.progress import EVERY_SECONDS, Totals, lines
from xmlstream.monitor.run_view import RunView

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
