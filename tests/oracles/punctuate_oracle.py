"""What punctuate must make of a stream, tuple by tuple: Tucker et al. 2003, §6.2, and 2007, §8, written down naively.

Each teller is asked of every tuple, in order, whether it may go on, and then what has passed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.oracles import oracle
from tests.oracles.oracle import Tuple


class Teller(Protocol):
    def fate(self, t: Tuple) -> str:
        """`on`, `late` or `ahead`; a tuple that goes on is taken note of."""

    def passed(self, t: Tuple) -> bool:
        """Whether t could not come any more."""


def says_something(value: Any) -> bool:
    return value is not None and not oracle.is_nan(value)


@dataclass
class Order:
    place: int
    slack: Any = None
    max_ahead: Any = None
    greatest: Any = None

    def passed(self, t: Tuple) -> bool:
        value = t[self.place]
        if self.greatest is None or not says_something(value):
            return False
        return bool(value < (self.greatest if self.slack is None else self.greatest - self.slack))

    def fate(self, t: Tuple) -> str:
        value = t[self.place]
        if not says_something(value):
            return "on"
        if self.passed(t):
            return "late"
        if self.max_ahead is not None and self.greatest is not None and value > self.greatest + self.max_ahead:
            return "ahead"
        self.greatest = value if self.greatest is None else max(self.greatest, value)
        return "on"


@dataclass
class Apart:
    """A teller for each key, who knows of no other."""

    places: tuple[int, ...]
    teller: Callable[[], Teller]
    tellers: list[tuple[Tuple, Teller]] = field(default_factory=list)

    def _of(self, t: Tuple) -> Teller:
        key = tuple(t[place] for place in self.places)
        for known, teller in self.tellers:
            if oracle.same_tuple(known, key):
                return teller
        self.tellers.append((key, self.teller()))
        return self.tellers[-1][1]

    def passed(self, t: Tuple) -> bool:
        return self._of(t).passed(t)

    def fate(self, t: Tuple) -> str:
        return self._of(t).fate(t)


@dataclass
class Roster:
    place: int
    member: int
    latest: dict[Hashable, Any]

    def passed(self, t: Tuple) -> bool:
        value = t[self.place]
        reports = list(self.latest.values())
        return says_something(value) and None not in reports and bool(value < min(reports))

    def fate(self, t: Tuple) -> str:
        value, member = t[self.place], t[self.member]
        if self.passed(t):
            return "late"
        if member in self.latest and says_something(value):
            before = self.latest[member]
            self.latest[member] = value if before is None else max(before, value)
        return "on"


@dataclass
class Predicate:
    when: Callable[[Tuple], bool]
    places: tuple[int, ...]
    ended: list[Tuple] = field(default_factory=list)

    def _group(self, t: Tuple) -> Tuple:
        return tuple(t[place] for place in self.places)

    def passed(self, t: Tuple) -> bool:
        return oracle.is_in(self._group(t), self.ended)

    def fate(self, t: Tuple) -> str:
        if self.passed(t):
            return "late"
        if self.when(t):
            self.ended.append(self._group(t))
        return "on"


@dataclass
class Count:
    """A number of tuples for each group, which the first tuple that has one states, or all know."""

    stated: Callable[[Tuple], Any]
    counts: Callable[[Tuple], bool]
    places: tuple[int, ...]
    groups: list[list[Any]] = field(default_factory=list)

    def _of(self, t: Tuple) -> list[Any]:
        """The group of a tuple: its key, its number, the tuples that count."""
        key = tuple(t[place] for place in self.places)
        for group in self.groups:
            if oracle.same_tuple(group[0], key):
                return group
        self.groups.append([key, None, 0])
        return self.groups[-1]

    def passed(self, t: Tuple) -> bool:
        _, number, came = self._of(t)
        return number is not None and bool(came >= number)

    def fate(self, t: Tuple) -> str:
        group, stated, counts = self._of(t), self.stated(t), self.counts(t)
        if self.passed(t) or (stated is not None and (stated < counts or group[1] not in (None, stated))):
            return "late"
        group[1] = stated if group[1] is None else group[1]
        group[2] += counts
        return "late" if group[1] is not None and group[2] > group[1] else "on"


@dataclass
class Idle:
    """A predicate, or a time that no tuple of the group has had for too long."""

    when: Callable[[Tuple], bool]
    places: tuple[int, ...]
    time: int
    idle: float
    now: Any = None
    last: list[tuple[Tuple, Any]] = field(default_factory=list)
    ended: list[Tuple] = field(default_factory=list)

    def passed(self, t: Tuple) -> bool:
        group = tuple(t[place] for place in self.places)
        latest = [value for key, value in self.last if oracle.same_tuple(key, group)]
        idle = bool(latest) and self.now > max(latest) + self.idle
        return idle or oracle.is_in(group, self.ended)

    def fate(self, t: Tuple) -> str:
        late = self.passed(t)
        group, value = tuple(t[place] for place in self.places), t[self.time]
        if late or self.when(t):
            self.ended.append(group)
        if says_something(value):
            self.last.append((group, value))
            self.now = value if self.now is None else max(self.now, value)
        return "late" if late else "on"
