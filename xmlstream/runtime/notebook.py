"""What a notebook shows of a run while it goes on, where this process is a notebook's kernel; elsewhere nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

EVERY_SECONDS = 1.0
"""At the least between two drawings."""


class Progress:
    """HTML below a notebook's cell, made anew as the run goes on.

    Args:
        html: What makes it.
    """

    def __init__(self, html: Callable[[], str]) -> None:
        self._html, self._drawn = html, time.monotonic()
        display = _display()
        self._shown = None if display is None else display({"text/html": html()}, raw=True, display_id=True)

    def __bool__(self) -> bool:
        """Whether there is a notebook."""
        return self._shown is not None

    def tell(self, *, at_once: bool = False) -> None:
        """Draws it anew, unless that was done a moment ago."""
        if self._shown is not None and (at_once or time.monotonic() - self._drawn >= EVERY_SECONDS):
            self._drawn = time.monotonic()
            self._shown.update({"text/html": self._html()}, raw=True)

    def clear(self) -> None:
        """Shows it no more: what comes of the cell says all."""
        if self._shown is not None:
            self._shown.update({"text/html": ""}, raw=True)
            self._shown = None


def _display() -> Any:
    """The notebook's own `display`; None where this is no kernel of one."""
    asked = sys.modules.get("IPython")
    shell = asked.get_ipython() if asked is not None else None
    if asked is None or getattr(shell, "kernel", None) is None:
        return None
    return asked.display.display
