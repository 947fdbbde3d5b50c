"""A drawn axis: of one attribute what each input has closed, as bars and in words, what all have, what each lacks.

There are three ways to it: each interval by itself (`few_values`), many strings as sets (`many_values`); of too many it
is told how many there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from punct_ns.pattern import patterns
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.value_set import ValueSet
from xmlstream.monitor.axes import SourceAttribute

Bars: TypeAlias = Sequence[Sequence[float | None]]
"""Where it is closed on an axis, from and to; None for no end."""


@dataclass(frozen=True, slots=True)
class DrawnRow:
    """What one input has closed.

    Attributes:
        input: Its name.
        attribute: What the attribute is called there.
        bars: What is closed, drawn.
        closed: The same, in words.
        lacks: What others have closed and it has not, in words; nothing for nothing.
        missing: What it must say, in notation, of the first of that.
    """

    input: str
    attribute: str
    bars: Bars
    closed: str
    lacks: str = ""
    missing: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class DrawnMeet:
    """What all inputs have closed."""

    bars: Bars
    closed: str


@dataclass(frozen=True, slots=True)
class DrawnAxis:
    """An attribute's axis.

    Attributes:
        attribute: Its name.
        type: The type of its values.
        scale: `number`, `time` in milliseconds, or `text`, one value behind the other.
        values: Of text, some of the values in their order.
        whole: Where the axis begins and ends.
        edge: The part of it in which inputs differ.
        rows: What each input has closed.
        meet: What all have.
    """

    attribute: str
    type: str
    scale: str
    values: Sequence[str]
    whole: Sequence[float]
    edge: Sequence[float]
    rows: Sequence[DrawnRow]
    meet: DrawnMeet

    def json(self, spoke: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """As JSON has it, with when each input spoke last."""
        rows = [{**asdict(row), "spoke": spoke.get(row.input)} for row in self.rows]
        return {**asdict(self), "rows": rows}


def counted_axis(counts: Mapping[SourceAttribute, int], told: Sequence[SourceAttribute]) -> DrawnAxis:
    """An axis of so many strings that they are counted, and not compared."""
    words = {place: f"{count:,} values, too many to compare" for place, count in counts.items()}
    rows = [DrawnRow(*place, (), words.get(place, "not compared")) for place in told]
    whole = (0.0, 1.0)
    return DrawnAxis(told[0][1], "STRING", "text", (), whole, whole, rows, DrawnMeet((), "not compared"))


def closing(schema: Schema, attribute: str, open_: ValueSet) -> list[str]:
    """The punctuations that close values of an attribute, in notation."""
    ps = (Punctuation.of(schema, {attribute: pattern}) for pattern in patterns(open_))
    return [str(p) for p in ps if not p.is_empty]
