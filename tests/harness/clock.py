"""A clock for tests, which a loaded machine cannot make late."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from xmlstream.sources.generators import live


class Clock:
    """A clock that stands still but for those who sleep by it."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def governs_live(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Has live documents be written by this clock."""
        monkeypatch.setattr(live, "time", SimpleNamespace(sleep=self.sleep, monotonic=lambda: self.now))
