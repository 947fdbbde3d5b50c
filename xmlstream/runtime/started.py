"""A started query: what processes its slices, and the handle that a notebook shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Protocol

from sources.xml.slices.staged_rows import StagedRange

Process = Callable[[int, Callable[[], Sequence[StagedRange]]], None]
"""Processes a slice of a number; the function stages its input."""


class LaunchedQuery(Protocol):
    """What a handle needs of a launched query."""

    def stop(self) -> None:
        """Ends the query after the current slice."""

    def drawn(self) -> str:
        """The totals up to now in a line, and the plan with the numbers of the run, as HTML."""

    def show(self, html: Callable[[], str]) -> bool:
        """Shows the HTML in a notebook, and updates it; returns whether there is one."""


class Shown:
    """A handle of a started query, which a notebook shows; it is stopped between two slices.

    `monitor` is the URL of its live page, or None.
    """

    def __init__(self, launched: LaunchedQuery, monitor: str | None) -> None:
        self.monitor = monitor
        self._launched = launched

    def stop(self) -> None:
        """Ends the query after the current slice."""
        self._launched.stop()

    def _ipython_display_(self) -> None:
        """Shows `_repr_html_`, updated while the query runs; without a notebook, IPython chooses another form."""
        if not self._launched.show(self._repr_html_):
            raise NotImplementedError

    def _repr_html_(self) -> str:
        """The HTML for a notebook: the state of the query, a link to its live page, and its plan with numbers."""
        is_active, name = getattr(self, "isActive"), getattr(self, "name")  # noqa: B009 - of the query beside
        stands = "is running" if is_active else "has ended"
        page = f': <a href="{escape(self.monitor)}" target="_blank">its live page</a>' if self.monitor else ""
        return f"<p>The query {escape(name or '')} {stands}{page if is_active else ''}.</p>{self._launched.drawn()}"
