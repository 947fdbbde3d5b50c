"""The SECRET model: ScopE, Content, REport and Tick, by the formulas of Botan et al. 2010, §3.2.

A stream is a sequence of values with application times, in order of arrival (§3.1). Tick calls Report, which uses
Content, which is the part of the stream in the Scope:

    n        = max(0, ⌈(t − t₀ − ω) / β⌉)                        the earliest window that is open at t
    Scope    = (t₀ + nβ, t], ∅ before t₀
    Content  = {s : s.app ∈ Scope(t), s.sys < τ}
    Report   = Content, if all conditions of the engine hold
    Tick     = Report(x) for x from the previous tick up to app(τ), if the engine reacts to the arrival at τ

The predicted answer of an engine is an aggregate over each window content that it reports.

Windows over tuples (Appendix B.2.1): the instants of a scope are numbers of tuples. The instant at time t is the number
of tuples that have arrived by then. The window closes when its content has as many tuples as its size. If more tuples
are simultaneous than a window holds, those that the window has passed are dropped.

Differs: here an engine has ticked if it called Report at all. By the definition of prev_tick, a tick with only empty
reports would not count, which contradicts Table 4. Tables 4 and 6 list only the last report before the first content.

A profile is what an engine does by Table 2: the start of the first window (t₀, §3.2.1), when it reports (§3.2.3), and
what makes it tick (§3.2.4).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from xmlstream.dataclasses import dataclass
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


_STARTS: Mapping[str, Callable[[int, Windows], int]] = {"before": before_first, "rounded": rounded, "aligned": aligned}
_PARTS = re.compile(r"\(\s*start (?P<start>[\w-]+)\s*,\s*report (?P<report>[^,]+?)\s*,\s*tick (?P<tick>\w+)\s*\)")
_HINT = (
    f"the engines are {', '.join(PROFILES)}; one of your own is '(start rounded, report window close & non-empty,"
    " tick tuple)': start before, rounded, aligned or a number; report always, or some of window close,"
    " content change, non-empty, every 5; tick tuple, time or batch"
)


def profile(text: str) -> Profile:
    """The engine of a name, in any letter case, or one that is described by its parameters (§3.2).

    Raises:
        UsageError: There is no such engine, or the parameters cannot be read.

    >>> profile("Coral8") == CORAL8, str(profile("(start 0, report window close & every 5, tick batch)").report)
    (True, 'window close & every 5')
    """
    if text.lower() in PROFILES:
        return PROFILES[text.lower()]
    parts = _PARTS.fullmatch(text.strip().lower())
    if parts is None:
        raise UsageError(f"there is no engine {text}", hint=_HINT)
    start, ticks = parts["start"], {each.value.removesuffix("-driven"): each for each in Tick}
    words = [word.strip() for word in parts["report"].split("&") if word.strip() != "always"]
    periods = [int(word[6:]) for word in words if re.fullmatch(r"every [1-9]\d*", word)]
    holds = {word: word in words for word in ("content change", "window close", "non-empty")}
    unknown = len(words) - len(periods) - sum(holds.values())
    is_number = re.fullmatch(r"-?\d+", start)
    if unknown or len(periods) > 1 or not (is_number or start in _STARTS) or parts["tick"] not in ticks:
        raise UsageError(f"the engine {text} cannot be read", hint=_HINT)
    report = Reporting(*holds.values(), *periods)
    return Profile("own", _At(int(start)) if is_number else _STARTS[start], report, ticks[parts["tick"]])


@dataclass(frozen=True, slots=True)
class _At:
    """A start that does not depend on the stream."""

    instant: int

    def __call__(self, first: int, windows: Windows) -> int:
        return self.instant


Value = int | float | Decimal


@dataclass(frozen=True, slots=True)
class Element:
    """A tuple of a stream (Definition 2).

    Attributes:
        app: Application time, an instant of a discrete time domain.
        sys: System time: when it arrived. No two elements of a stream have the same.
        batch: Number of the batch; all elements of a batch have the same application time (Definition 3).
    """

    value: Value
    app: int
    sys: int
    batch: int


def stream(rows: Iterable[Sequence[Value]]) -> tuple[Element, ...]:
    """Makes a stream of elements that arrive at 1, 2, 3 and so on.

    Args:
        rows: `(value, app)`, each a batch of its own, or `(value, app, batch)`.

    Raises:
        UsageError: Application times or batches are not in order, or a batch has two application times.

    >>> stream([(10, 30), (20, 31)])[1]
    Element(value=20, app=31, sys=2, batch=2)
    """
    elements = tuple(
        Element(row[0], int(row[1]), number, int(row[2]) if len(row) > 2 else number)
        for number, row in enumerate(rows, 1)
    )
    for earlier, later in pairwise(elements):
        what, now, before = "time", later.app, earlier.app
        if now >= before:
            what, now, before = "batch", later.batch, earlier.batch
        if now < before:
            hint = "the SECRET model needs tuples in the order of their application times and batches"
            raise UsageError(f"tuple {later.sys} has {what} {now}, but the one before it has {before}", hint=hint)
        if later.batch == earlier.batch and later.app != earlier.app:
            raise UsageError(
                f"batch {later.batch} has times {earlier.app} and {later.app}",
                hint="all tuples of a batch must have the same time",
            )
    return elements


@dataclass(frozen=True, slots=True)
class Scope:
    """An interval (start, end] of instants; `start == end` is empty."""

    start: int
    end: int

    @property
    def size(self) -> int:
        """Number of instants in the interval."""
        return self.end - self.start

    def __str__(self) -> str:
        return f"({self.start} {self.end}]"


@dataclass(frozen=True, slots=True)
class Report:
    """A call of Report and its result.

    Attributes:
        arrival: The tuple whose arrival made the engine tick.
        instant: The application time t of the call.
        scope: The scope at t; None before the first window.
        content: The elements in the scope.
        unmet: The conditions of the engine that did not hold: `window close`, `content change`, `non-empty`, `every n`.
    """

    arrival: Element
    instant: int
    scope: Scope | None
    content: tuple[Element, ...]
    unmet: tuple[str, ...]

    @property
    def is_reported(self) -> bool:
        """Whether the engine reports the content."""
        return not self.unmet


class Secret:
    """An engine over a stream and windows.

    Raises:
        UsageError: The stream is empty, so that t₀ is undefined.
    """

    def __init__(self, elements: Sequence[Element], windows: Windows, engine: Profile) -> None:
        if not elements:
            raise UsageError("the stream has no tuple", hint="the start of the first window depends on the first tuple")
        self._elements, self._windows, self._engine = tuple(elements), windows, engine
        self._apps = [element.app for element in elements]
        self._sys = [element.sys for element in elements]

    @cached_property
    def t0(self) -> int:
        """The start of the first window; 0 for windows over tuples."""
        return 0 if self._windows.of_tuples else self._engine.start(self._apps[0], self._windows)

    def scope(self, instant: int) -> Scope | None:
        """The earliest window that is open at an instant, up to the instant; None before the first window."""
        if instant < self.t0:
            return None
        opened = max(0, -(-(instant - self.t0 - self._windows.size) // self._windows.slide))
        start = self.t0 + opened * self._windows.slide
        return Scope(min(start, instant), instant)

    def content(self, t: int, tau: int) -> tuple[Element, ...]:
        """The elements in the scope at application time t that arrived before system time tau."""
        scope, arrived = self._scope_at(t, tau), bisect_left(self._sys, tau)
        if scope is None:
            return ()
        if self._windows.of_tuples:
            return self._elements[scope.start : scope.end]
        first, last = bisect_right(self._apps, scope.start), bisect_right(self._apps, scope.end)
        return self._elements[first : min(last, arrived)]

    def _scope_at(self, t: int, tau: int) -> Scope | None:
        if not self._windows.of_tuples:
            return self.scope(t)
        return self.scope(min(bisect_right(self._apps, t), bisect_left(self._sys, tau)))

    def report(self, t: int, tau: int) -> Report:
        """Report(t, tau)."""
        scope, content, report = self._scope_at(t, tau), self.content(t, tau), self._engine.report
        arrived = bisect_right(self._sys, tau)
        is_past = bool(arrived) and t < self._apps[arrived - 1]
        filled = (len(content) if self._windows.of_tuples else scope.size if scope else 0) == self._windows.size
        # A window of tuples is complete with its last tuple: no time need pass.
        holds = {
            "window close": not report.window_close or (filled and (is_past or self._windows.of_tuples)),
            "content change": not report.content_change or content != self.content(t - 1, tau),
            "non-empty": not report.non_empty or bool(content),
            f"every {report.every}": t % report.every == 0,
        }
        return Report(
            self._elements[arrived - 1], t, scope, content, tuple(name for name, held in holds.items() if not held)
        )

    def ticks(self) -> Iterator[tuple[Element, tuple[int, ...]]]:
        """Yields each arrival with the instants for which the engine calls Report."""
        ticked, app, batch = self.t0 if not self._windows.of_tuples else self._apps[0] - 1, None, 0
        for element in self._elements:
            match self._engine.tick:
                case Tick.TUPLE:
                    reacts = True
                case Tick.TIME:
                    reacts = app is None or element.app > app
                case Tick.BATCH:
                    reacts = element.batch > batch
            if reacts and element.app == ticked and self._engine.tick is not Tick.TIME:
                instants: tuple[int, ...] = (element.app,)
            else:
                instants = tuple(range(ticked, element.app)) if reacts else ()
            ticked = element.app if reacts else ticked
            app, batch = element.app, element.batch
            yield element, instants

    def reports(self) -> Iterator[Report]:
        """All calls of Report, in order."""
        for element, instants in self.ticks():
            for instant in instants:
                yield self.report(instant, element.sys)


def _average(values: Sequence[Value]) -> Value | None:
    if not values:
        return None
    if any(isinstance(value, float) for value in values):
        return sum(map(float, values)) / len(values)
    exact = sum(map(Fraction, values), Fraction(0)) / len(values)
    return int(exact) if exact.denominator == 1 else float(exact)


AGGREGATES: Mapping[str, Callable[[Sequence[Value]], Value | None]] = {
    "avg": _average,
    "count": len,
    "max": lambda values: max(values, default=None),
    "min": lambda values: min(values, default=None),
    "sum": lambda values: sum(values) if values else None,
}
"""Aggregates over the values of a content; over no values all are null, except count."""


def answer(report: Report, aggregate: str) -> Value | None:
    """The aggregate over a reported content.

    Raises:
        UsageError: There is no such aggregate.
    """
    function = AGGREGATES.get(aggregate.lower())
    if function is None:
        raise UsageError(f"there is no aggregate {aggregate}", hint=f"the aggregates are {', '.join(AGGREGATES)}")
    values = [element.value for element in report.content]
    if any(isinstance(value, float) for value in values):
        values = [float(value) if isinstance(value, Decimal) else value for value in values]
    return function(values)
