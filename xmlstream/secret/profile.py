"""Profiles of engines in the SECRET model: the start of the first window, when they report, and what makes them tick.

Source: Botan et al. 2010, Table 2; t₀ of §3.2.1, reports of §3.2.3, ticks of §3.2.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from xmlstream.punct_ns.errors import UsageError


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows (o, c] of a size, a slide apart (Definition 6), over time or, if `of_tuples`, over tuples.

    Raises:
        UsageError: Size or slide is not positive.
    """

    size: int
    slide: int
    of_tuples: bool = False

    def __post_init__(self) -> None:
        for name, number in (("size", self.size), ("slide", self.slide)):
            if number < 1:
                raise UsageError(f"the {name} of a window is {number}", hint="it must be at least 1")


class Tick(Enum):
    """The event that an engine reacts to."""

    TUPLE = "tuple-driven"
    TIME = "time-driven"
    BATCH = "batch-driven"


@dataclass(frozen=True, slots=True)
class Reporting:
    """The conditions for an engine to report; without any it reports at every tick.

    Attributes:
        content_change: The content differs from that of the previous instant.
        window_close: The window is complete, and its end has passed.
        non_empty: The content is not empty.
        every: The instant is a multiple of this number.
    """

    content_change: bool = False
    window_close: bool = False
    non_empty: bool = False
    every: int = 1

    def __str__(self) -> str:
        named = {
            "window close": self.window_close,
            "content change": self.content_change,
            "non-empty": self.non_empty,
            f"every {self.every}": self.every != 1,
        }
        return " & ".join(name for name, holds in named.items() if holds) or "always"


@dataclass(frozen=True, slots=True)
class Profile:
    """An engine; `start` computes t₀, the start of its first window, from the first tuple's application time."""

    name: str
    start: Callable[[int, Windows], int]
    report: Reporting
    tick: Tick


def before_first(first: int, windows: Windows) -> int:
    """The size before the first tuple, so that this tuple is in the first window only."""
    return first - windows.size


def rounded(first: int, windows: Windows) -> int:
    """`before_first` rounded up to a multiple of the slide, minus one."""
    return -((windows.size - first) // windows.slide) * windows.slide - 1


def aligned(first: int, windows: Windows) -> int:
    """The start of the first window that contains the first tuple, if windows begin at multiples of the slide."""
    return ((first - windows.size) // windows.slide + 1) * windows.slide - 1


STREAM = Profile("stream", before_first, Reporting(content_change=True, window_close=True, non_empty=True), Tick.TIME)
CORAL8 = Profile("coral8", rounded, Reporting(content_change=True, non_empty=True), Tick.BATCH)
STREAMBASE = Profile("streambase", rounded, Reporting(window_close=True, non_empty=True), Tick.TUPLE)
XMLSTREAM = Profile("xmlstream", aligned, Reporting(window_close=True, non_empty=True), Tick.TIME)
"""This engine: a window [s, s+ω) begins at a multiple of the slide, and is reported when punctuations close it; for
ordered data that is when time passes its end. Over integer instants the window is (s-1, s+ω-1]."""

PROFILES: Mapping[str, Profile] = {each.name: each for each in (STREAM, CORAL8, STREAMBASE, XMLSTREAM)}


def profile(name: str) -> Profile:
    """The profile of a name, in any letter case.

    Raises:
        UsageError: There is no such profile.
    """
    found = PROFILES.get(name.lower())
    if found is None:
        raise UsageError(f"there is no profile {name}", hint=f"the profiles are {', '.join(PROFILES)}")
    return found
