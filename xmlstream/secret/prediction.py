"""Predicted answers of an engine: an aggregate over each window content that it reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from punct_ns.errors import UsageError
from xmlstream.secret.model import Report, Secret
from xmlstream.secret.profile import Profile, Windows
from xmlstream.secret.stream import Element, Value


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
"""Over the values of a content; of none, null but for count."""


def predict(elements: Sequence[Element], windows: Windows, aggregate: str, engine: Profile) -> list[Value | None]:
    """What the engine puts out.

    Raises:
        UsageError: There is no such aggregate, or the stream is empty.

    >>> from xmlstream.secret.profile import STREAMBASE
    >>> from xmlstream.secret.stream import stream
    >>> predict(stream([(10, 10), (20, 11), (30, 12), (40, 13), (50, 14), (60, 15)]), Windows(3, 3), "avg", STREAMBASE)
    [15, 40]
    """
    return [answer(report, aggregate) for report in Secret(elements, windows, engine).reports() if report.is_reported]


def answer(report: Report, aggregate: str) -> Value | None:
    """The aggregate over a reported content.

    Raises:
        UsageError: There is no such aggregate.
    """
    function = AGGREGATES.get(aggregate.lower())
    if function is None:
        raise UsageError(f"there is no aggregate {aggregate} here", hint=f"there are {', '.join(AGGREGATES)}")
    values = [element.value for element in report.content]
    if any(isinstance(value, float) for value in values):
        values = [float(value) if isinstance(value, Decimal) else value for value in values]
    return function(values)
