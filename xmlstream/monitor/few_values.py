"""Few closed values, compared between inputs interval by interval, each drawn where it lies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime

from punct_ns.domain import Cut, Domain, Value
from punct_ns.numeric_type import DecimalType, FloatType, IntegerType
from punct_ns.schema import Schema
from punct_ns.temporal_type import DateType, TimestampType
from punct_ns.value_set import ValueSet
from xmlstream.monitor.axes import SourceAttribute
from xmlstream.monitor.drawn_axis import DrawnAxis, DrawnMeet, DrawnRow, closing
from xmlstream.monitor.frontier import SHOWN, frontier, listed

MOST_BARS = 200
"""Bars of an input; of more, those that are nearest to each other are drawn as one."""


def axis_of_few(rows: Mapping[SourceAttribute, ValueSet], domain: Domain, schemas: Mapping[str, Schema]) -> DrawnAxis:
    """The axis of what inputs have closed.

    Args:
        rows: What each has closed.
        domain: The type of the values.
        schemas: The inputs' schemas.
    """
    meet = ValueSet.everything(domain)
    anyone = ValueSet(domain)
    for closed in rows.values():
        meet = meet.intersection(closed)
        anyone = anyone.union(closed)
    speaks_of_null = any(closed.null and not closed.cuts for closed in rows.values())
    scale = _Scale(domain, [cut for closed in rows.values() for cut in closed.cuts])
    told = []
    for (name, attribute), closed in rows.items():
        lacks = [*anyone.difference(closed).intervals()]
        missing = closing(schemas[name], attribute, ValueSet.of_intervals(domain, lacks[:SHOWN]))
        told.append(DrawnRow(name, attribute, scale.bars(closed), frontier(closed), listed(lacks, domain), missing))
    return DrawnAxis(
        attribute=told[0].attribute,
        type=domain.type,
        scale=scale.kind,
        values=scale.values,
        whole=scale.whole,
        edge=scale.edge([*rows.values()]),
        rows=told,
        meet=DrawnMeet(scale.bars(meet), frontier(meet if meet.cuts or speaks_of_null else ValueSet(domain))),
    )


class _Scale:
    """Where the values of an attribute lie on an axis: as numbers, as milliseconds, or one behind the other."""

    def __init__(self, domain: Domain, cuts: Sequence[Cut]) -> None:
        self._domain = domain
        match domain.sql:
            case IntegerType() | DecimalType() | FloatType():
                self.kind = "number"
            case DateType() | TimestampType():
                self.kind = "time"
            case _:
                self.kind = "text"
        inner = sorted({cut for cut in cuts if domain.bottom < cut < domain.top})
        self._places = {cut: i for i, cut in enumerate(inner)} if self.kind == "text" else {}
        self.values = [domain.write(domain.bound(cut, above=True)[0]) for cut in inner[-50:]] if self._places else []
        ends = [self.at(cut) for cut in inner]
        self.whole = [min(ends), max(ends)] if ends else [0.0, 1.0]
        if self.whole[0] == self.whole[1]:
            self.whole[0] -= 1.0
        if domain.bottom in cuts:  # there is more at the left than can be drawn
            before = self.whole[0] - 0.15 * (self.whole[1] - self.whole[0])
            self.whole[0] = float(math.floor(before)) if isinstance(domain.sql, IntegerType) else before

    def at(self, cut: Cut) -> float:
        """Where a cut lies."""
        if self.kind == "text":
            return float(self._places[cut])
        value = self._domain.bound(cut, above=True)[0]
        return _milliseconds(value) if self.kind == "time" else float(value)  # type: ignore[arg-type]

    def bars(self, closed: ValueSet) -> list[list[float | None]]:
        """Where it is closed, from and to; None for no end."""
        low, high = self._domain.bottom, self._domain.top
        found = [[None if a == low else self.at(a), None if b == high else self.at(b)] for a, b in closed.intervals()]
        while len(found) > MOST_BARS:
            gaps = sorted(range(1, len(found)), key=lambda i: _gap(found[i - 1], found[i]))
            for i in sorted(gaps[: len(found) - MOST_BARS], reverse=True):
                found[i - 1 : i + 1] = [[found[i - 1][0], found[i][1]]]
        return found

    def edge(self, rows: Sequence[ValueSet]) -> list[float]:
        """From a little before what the first input has open, to the end."""
        low, high = self.whole
        firsts = [self.at(row.cuts[1]) if len(row.cuts) > 1 else low for row in rows]
        first = min(firsts, default=low)
        if first >= high:
            return [low, high]
        before = first - 0.15 * (high - first)
        return [max(low, float(math.floor(before)) if isinstance(self._domain.sql, IntegerType) else before), high]


def _gap(before: Sequence[float | None], after: Sequence[float | None]) -> float:
    return (after[0] or 0.0) - (before[1] or 0.0)


def _milliseconds(value: Value) -> float:
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1000
    assert isinstance(value, date)
    return datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp() * 1000
