"""Binary operators in SECRET: two streams, each with windows of its own, made visible to a join.

Tick, Scope and Content are each stream's own. What Report must add is when both contents become visible (Botan et al.
2010, Appendix B.2.2, which leaves the rule open). Here there are the two that engines have: when either stream reports,
beside what the other one's window holds at that instant; or only when both would report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from xmlstream.secret.model import Element, Profile, Secret, Value, Windows

Side = Literal["left", "right"]
Visible = Literal["either", "both"]
"""When contents are visible: once either stream reports, or once both do."""

Pair = tuple[Value, Value]


@dataclass(frozen=True, slots=True)
class JoinReport:
    """Two contents that became visible together: by which arrival, on which side, at which instant."""

    arrival: Element
    side: Side
    instant: int
    left: tuple[Element, ...]
    right: tuple[Element, ...]


def two_streams(rows: Iterable[tuple[Side, Value, int]]) -> tuple[tuple[Element, ...], tuple[Element, ...]]:
    """Two streams whose tuples arrive one after the other, at 1, 2, 3 and so on; each tuple is a batch of its own.

    >>> left, right = two_streams([("left", 10, 3), ("right", 20, 3), ("left", 30, 4)])
    >>> [element.sys for element in left], [element.sys for element in right]
    ([1, 3], [2])
    """
    given = list(enumerate(rows, 1))
    left, right = (
        tuple(Element(value, app, number, number) for number, (side, value, app) in given if side == wanted)
        for wanted in ("left", "right")
    )
    return left, right


def join_reports(
    left: Sequence[Element], right: Sequence[Element], windows: tuple[Windows, Windows], engine: Profile, when: Visible
) -> Iterator[JoinReport]:
    """The contents that an engine makes visible to a join, in their order.

    Args:
        left: One stream; no two tuples of both arrive at once.
        right: The other.
        windows: Those over the left stream and over the right.
        engine: How it opens windows, reports and ticks.
        when: When contents are visible.

    Raises:
        UsageError: A stream is empty.
    """
    secrets = Secret(left, windows[0], engine), Secret(right, windows[1], engine)
    begins = [stream[0].sys for stream in (left, right)]
    arrivals = [(element.sys, i, element, on) for i, secret in enumerate(secrets) for element, on in secret.ticks()]
    for tau, i, element, instants in sorted(arrivals, key=lambda each: each[0]):
        own, other = secrets[i], secrets[1 - i]
        for instant in instants:
            if not own.report(instant, tau).is_reported:
                continue
            if when == "both" and not (tau >= begins[1 - i] and other.report(instant, tau).is_reported):
                continue
            contents = secrets[0].content(instant, tau), secrets[1].content(instant, tau)
            yield JoinReport(element, ("left", "right")[i], instant, *contents)


def predict_join(
    reports: Iterable[JoinReport], pairs: Callable[[Value, Value], bool] = lambda a, b: True
) -> list[list[Pair]]:
    """What a join of the contents puts out, report by report: the values of which a condition is true."""
    return [[(a.value, b.value) for a in r.left for b in r.right if pairs(a.value, b.value)] for r in reports]
