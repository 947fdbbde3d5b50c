"""The history of a run as events: bounded, numbered, and read by each reader at its own pace.

Who adds an event never waits for a reader, and a reader that falls behind finds the oldest events gone. Events of some
kinds replace their predecessors: of those the last one is kept, however old.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MOST_EVENTS = 1000
"""Events that are kept: with slices of half a second those of eight minutes."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event, its data as JSON."""

    number: int
    kind: str
    data: str


class History:
    """The events of a run, from 1 on; threads may add and read."""

    def __init__(self, most: int = MOST_EVENTS) -> None:
        self._lock = threading.Lock()
        self._events: deque[Event] = deque(maxlen=most)
        self._latest: dict[str, Event] = {}
        self._number = 0
        self._bells: set[Callable[[], None]] = set()

    def add(self, kind: str, data: Any, *, replaces: bool = False) -> None:
        """Adds an event, and rings the bells of those who wait."""
        text = json.dumps(data, ensure_ascii=False, default=str)
        with self._lock:
            self._number += 1
            event = Event(self._number, kind, text)
            if replaces:
                self._latest[kind] = event
            else:
                self._events.append(event)
            bells = list(self._bells)
        for bell in bells:
            bell()

    def after(self, number: int) -> list[Event]:
        """What came after an event, as far as it is still known, in order."""
        with self._lock:
            found = [event for event in (*self._events, *self._latest.values()) if event.number > number]
        return sorted(found, key=lambda event: event.number)

    def ring(self, bell: Callable[[], None]) -> Callable[[], None]:
        """Has a bell rung at each event, by whoever adds it; what is returned takes it away."""
        with self._lock:
            self._bells.add(bell)

        def away() -> None:
            with self._lock:
                self._bells.discard(bell)

        return away
