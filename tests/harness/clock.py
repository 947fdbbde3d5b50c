"""A clock for tests, which a loaded machine cannot make late."""

from __future__ import annotations

from functools import partial
from types import ModuleType, SimpleNamespace

import pytest

from sources.generators import live


class Clock:
    """A clock that stands still but for those who sleep by it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def governs(self, generator: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        """Has the generator's live documents be written by this clock."""
        monkeypatch.setattr(live, "time", SimpleNamespace(sleep=self.sleep))
        monkeypatch.setattr(generator, "write_live", partial(live.write_live, clock=self))
