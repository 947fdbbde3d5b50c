"""Report of a slice: what each operator counted, as the record of the slice and the metrics have it.

It has the tuples and punctuations in and out, kept and purged, and the time that the slice took.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from operator import itemgetter
from typing import ClassVar

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.storage.records import Record


@dataclass(frozen=True, slots=True)
class OperatorReport(Record):
    """The counts of one operator in one slice; `kept` and `punctuations_held` count its state after the slice.

    `overdue` counts the purged tuples that were kept for longer than `purge_after` allows.
    """

    name: str
    tuples_in: int
    tuples_out: int
    kept: int
    purged: int
    punctuations_in: int
    punctuations_out: int
    punctuations_held: int
    overdue: int = 0


@dataclass(frozen=True, slots=True)
class SliceReport(Record):
    """The counts of one slice, as in the table of metrics in `xmlstream/runtime/README.md`."""

    sparse = ("requests", "engine")

    slice: int
    seconds: float
    items_in: int
    tuples_out: int
    operators: tuple[OperatorReport, ...] = ()
    set_aside: int = 0
    closed: bool = False
    exact: bool = True
    findings: tuple[Mapping[str, str], ...] = ()
    memory: Mapping[str, int] = field(default_factory=dict)
    requests: Mapping[str, int] = field(default_factory=dict)
    engine: str = ""

    @property
    def silent(self) -> dict[str, str]:
        """The sources that results wait for, each with the sentence of its finding."""
        return self.noticed("silent")

    def noticed(self, of: str) -> dict[str, str]:
        """The sources and operators with a finding of a kind, each with its sentence."""
        parts = map(itemgetter("source", "kind", "what"), self.findings)
        return {source: what for source, kind, what in parts if kind == of}


@dataclass(frozen=True, slots=True)
class Measured(Record):
    """How many tuples of each source have reached its first join of many inputs, over the last slices with tuples.

    `slices` and `tuples` are halved together once there are `MOST`, so that what came last counts most.
    """

    slices: int = 0
    tuples: Mapping[str, int] = field(default_factory=dict)

    MOST: ClassVar[int] = 256

    def after(self, tuples: Mapping[str, int]) -> Measured:
        """The same after one more slice, by source; a slice without tuples does not count."""
        if not any(tuples.values()):
            return self
        together = {name: self.tuples.get(name, 0) + count for name, count in tuples.items()}
        return Measured(self.slices + 1, together)

    @property
    def halved(self) -> Measured:
        """The same, with half the slices if there are `MOST`."""
        if self.slices < self.MOST:
            return self
        return Measured(self.slices // 2, {name: count // 2 for name, count in self.tuples.items()})

    @property
    def rates(self) -> dict[str, float]:
        """Tuples a slice, by source; of one that has sent nothing, as if its first tuple came next."""
        return {name: max(count, 1) / self.slices for name, count in self.tuples.items()} if self.slices else {}


BEFORE = SliceReport(-1, 0.0, 0, 0)
"""The report of no slice: before the first."""


@dataclass(frozen=True, slots=True)
class Activity(Record):
    """The last slices, and their recorded times, in which a source sent punctuations or an operator purged tuples."""

    sparse = ("last_sent", "last_left")

    last_sent: tuple[int, datetime] | None = None
    last_left: tuple[int, datetime] | None = None


def last_activity(
    before: Mapping[str, Activity],
    operators: Iterable[OperatorReport],
    sources: Collection[str],
    now: tuple[int, datetime],
) -> dict[str, Activity]:
    """The activity of the sources and operators after one more slice, whose number and time are `now`."""
    found = dict(before)
    for one in operators:
        if one.name in sources and one.punctuations_in:
            found[one.name] = replace(found.get(one.name, Activity()), last_sent=now)
        if one.purged:
            found[one.name] = replace(found.get(one.name, Activity()), last_left=now)
    return found
