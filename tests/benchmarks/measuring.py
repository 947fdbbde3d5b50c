"""Contenders that take turns, and what is said of them: medians, ratios, and whether a target is met."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal, TypeVar

Key = TypeVar("Key")

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
"""How often each contender runs; what takes minutes runs less often, and says so."""

SCALE = float(os.environ.get("BENCH_SCALE", "1"))
"""What the sizes of the inputs are multiplied by. Targets are meant for 1."""


def scaled(size: int, at_least: int = 1) -> int:
    """The size of an input, at the scale of this run."""
    return max(round(size * SCALE), at_least)


def few_rounds(at_most: int) -> int:
    """How often something long runs."""
    return min(ROUNDS, at_most)


def seconds(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """How long it takes."""
    began = clock()
    work()
    return clock() - began


def take_turns(
    contenders: Mapping[Key, Callable[[], float]],
    rounds: int = ROUNDS,
    *,
    few: Mapping[Key, int] | None = None,
    within: float | None = None,
) -> dict[Key, list[float]]:
    """What each contender measures, round by round: whatever else the machine does falls on all alike.

    Every other round goes backwards, so that nobody is always the one after another.

    Args:
        contenders: What each does when it is its turn.
        rounds: How many there are.
        few: Contenders that are in so many of them only, the first ones; they take long, and no target asks for more.
        within: Seconds after which no other round begins, so that all of the benchmark ends in time.
    """
    measured: dict[Key, list[float]] = {name: [] for name in contenders}
    began = time.perf_counter()
    for number in range(rounds):
        if number and within is not None and time.perf_counter() - began > within:
            break
        for name in list(contenders)[:: -1 if number % 2 else 1]:
            if few is None or number < few.get(name, rounds):
                measured[name].append(contenders[name]())
    return measured


def rates(amount: float, times: Sequence[float]) -> list[float]:
    """So many things a second, for the seconds that they took."""
    return [amount / each for each in times]


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the benchmark's table.

    Attributes:
        name: What is measured.
        unit: Of both sides.
        better: Whether more or less of it is better; targets are lower or upper bounds accordingly.
        ours: What each round gave, of this project.
        contender: Who is beside it; None where nobody is.
        theirs: What each round gave, of the contender.
        target: Bound of our median.
        ratio_target: Bound of our median over the contender's.
        note: What a reader must know to judge it.
        is_compared: Whether it is held against the committed numbers; not a difference, whose terms are.
    """

    name: str
    unit: str
    better: Literal["more", "less"]
    ours: Sequence[float]
    contender: str | None = None
    theirs: Sequence[float] = ()
    target: float | None = None
    ratio_target: float | None = None
    note: str = ""
    is_compared: bool = True

    @property
    def value(self) -> float:
        """Our median."""
        return median(self.ours)

    @property
    def contender_value(self) -> float | None:
        """The contender's median."""
        return median(self.theirs) if self.theirs else None

    @property
    def ratio(self) -> float | None:
        """Our median over the contender's."""
        return self.value / self.contender_value if self.contender_value else None

    @property
    def met(self) -> bool | None:
        """Whether all targets are met; None where there is none."""
        bounds = [(self.value, self.target), (self.ratio, self.ratio_target)]
        held = [
            (found >= bound if self.better == "more" else found <= bound)
            for found, bound in bounds
            if found is not None and bound is not None
        ]
        return all(held) if held else None

    def json(self) -> dict[str, Any]:
        """All of it, with every round."""
        return {
            "name": self.name,
            "unit": self.unit,
            "better": self.better,
            "ours": self.value,
            "contender": self.contender,
            "theirs": self.contender_value,
            "ratio": self.ratio,
            "target": self.target,
            "ratio_target": self.ratio_target,
            "met": self.met,
            "our_rounds": list(self.ours),
            "their_rounds": list(self.theirs),
            "note": self.note,
            "is_compared": self.is_compared,
        }
