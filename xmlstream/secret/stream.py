"""A stream as SECRET sees it: values with application times, in the order of arrival (Botan et al. 2010, §3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from punct_ns.errors import UsageError

Value = int | float | Decimal


@dataclass(frozen=True, slots=True)
class Element:
    """A tuple of a stream (Definition 2).

    Attributes:
        value: What is aggregated.
        app: Its application time, an instant of a discrete time domain.
        sys: Its system time: when it arrived. No two elements of a stream arrive at once.
        batch: The number of its batch; the elements of a batch have one application time (Definition 3).
    """

    value: Value
    app: int
    sys: int
    batch: int


def stream(rows: Iterable[Sequence[Value]]) -> tuple[Element, ...]:
    """Elements that arrive one after the other, at 1, 2, 3 and so on.

    Args:
        rows: `(value, app)`, each a batch of its own, or `(value, app, batch)`.

    Raises:
        UsageError: Application times or batches go back, or a batch has two application times.

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
            hint = "SECRET's streams are in the order of their application time, and of their batches"
            raise UsageError(f"tuple {later.sys} has {what} {now}, and the one before it {before}", hint=hint)
        if later.batch == earlier.batch and later.app != earlier.app:
            raise UsageError(
                f"batch {later.batch} has times {earlier.app} and {later.app}", hint="the time of a batch is one"
            )
    return elements
