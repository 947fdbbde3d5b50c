"""Interval bars: the closed values of an attribute, as bars and as text: of each input, of all, and missing ones.

Attributes of sources share an axis if an operator of the plan makes one attribute of them: merged by position, joined
as equal, or renamed. Attributes computed from others have no axis.

Few closed values are compared interval by interval, each drawn in its place. Many closed strings are compared as sets,
100,000 in at most half a second: the text is the same, the bars are coarser, and never show an open value as closed. Of
too many strings only the number is shown.

The text for hours is such as `≤ 17`, for auctions `≤ 1041 but 1007, 1033`, for people `ann, bob and 12 more`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from heapq import nsmallest
from itertools import chain, pairwise
from typing import Any, TypeAlias

from punct_ns.domain import Cut, Domain, Value
from punct_ns.numeric_type import DecimalType, FloatType, IntegerType
from punct_ns.pattern import patterns
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.slices import quoted
from punct_ns.sql_type import BooleanType
from punct_ns.temporal_type import DateType, TimestampType
from punct_ns.value_set import ValueSet
from xmlstream.plan.nodes import Node, Results, Scan, Static, names, topological

SHOWN = 4
"""Values or ranges that are listed; further ones are only counted."""


def frontier(closed: ValueSet) -> str:
    """The closed values as text to follow an attribute's name; `but` lists the gaps.

    >>> hours = Domain("INT")
    >>> frontier(ValueSet(hours)), frontier(ValueSet.everything(hours))
    ('nothing yet', 'all')
    >>> frontier(ValueSet(hours, (hours.bottom, 7, 8, 18)))
    '≤ 17 but 7'
    >>> frontier(ValueSet.of(hours, [3, 9])), frontier(ValueSet.of(hours, [3, 4, 5]))
    ('3, 9', '3 to 5')
    """
    if closed.has_every_value:
        return "all"
    pairs = list(closed.intervals())
    if not pairs:
        return "null" if closed.null else "nothing yet"
    gaps = [(high, low) for (_, high), (low, _) in pairwise(pairs)]
    domain = closed.domain
    whole = (pairs[0][0], pairs[-1][1])
    if gaps and (closed.all_single or (len(gaps) > SHOWN and pairs[0][0] != domain.bottom)):
        return listed(pairs, domain)
    but = f" but {listed(gaps, domain)}" if gaps else ""
    return f"{_between(*whole, domain)}{but}"


def listed(pairs: Sequence[tuple[Cut, Cut]], domain: Domain) -> str:
    """The first few intervals as text.

    >>> listed([(1, 2), (5, 9)], Domain("INT"))
    '1, 5 to 8'
    """
    named = [_between(low, high, domain) for low, high in pairs[:SHOWN]]
    more = len(pairs) - SHOWN
    return f"{', '.join(named)}{f' and {more:,} more' if more > 0 else ''}"


def _between(low: Cut, high: Cut, domain: Domain) -> str:
    return " ".join(_ends(low, high, domain))


def _ends(low: Cut, high: Cut, domain: Domain) -> Iterator[str]:
    has_ends = isinstance(domain.sql, BooleanType)
    first = None if low == domain.bottom and not has_ends else domain.bound(low, above=True)
    last = None if high == domain.top and not has_ends else domain.bound(high, above=False)
    if first is None and last is None:
        yield "all"
    elif first is not None and first == last:
        yield domain.write(first[0])
    elif first is None and last is not None:
        yield f"{'≤' if last[1] else '<'} {domain.write(last[0])}"
    elif first is not None and last is None:
        yield f"{'≥' if first[1] else '>'} {domain.write(first[0])}"
    elif first is not None and last is not None:
        yield f"{'' if first[1] else 'above '}{domain.write(first[0])}"
        yield f"to {'' if last[1] else 'below '}{domain.write(last[0])}"


SourceAttribute = tuple[str, str]
"""Name of a source in the plan, and name of one of its attributes."""


def axes(root: Node) -> list[list[SourceAttribute]]:
    """Groups the attributes of all sources into axes, in the order of the plan."""
    name_of = names(root)
    group: dict[SourceAttribute, set[SourceAttribute]] = {}
    origins: dict[tuple[Node, str], set[SourceAttribute]] = {}
    for node in topological(root):
        if isinstance(node.operator, Scan):
            for name in node.schema.names:
                one = (name_of[node], name)
                origins[node, name.lower()] = group[one] = {one}
        elif isinstance(node.operator, Static | Results):
            continue
        else:
            for name in node.schema.names:
                found = set[SourceAttribute]().union(*(origins.get(place, ()) for place in _handed_on(node, name)))
                merged = set[SourceAttribute]().union(*(group[one] for one in found))
                for one in merged:
                    group[one] = merged
                origins[node, name.lower()] = merged
    together: list[list[SourceAttribute]] = []
    done: set[SourceAttribute] = set()
    for one, others in group.items():
        if one not in done:
            together.append([other for other in group if other in others])
            done |= others
    return together


def _handed_on(node: Node, name: str) -> Iterator[tuple[Node, str]]:
    """The input attributes that an output attribute passes on unchanged."""
    assert not isinstance(node.operator, Scan | Static | Results)
    terms = node.operator.predicate_terms(*(below.schema for below in node.inputs))
    for below, known in zip(node.inputs, terms, strict=True):
        term = known.get(name.lower())
        for other in below.schema.names:
            if term is not None and term.lower() == quoted(other).lower():
                yield below, other.lower()


Bars: TypeAlias = Sequence[Sequence[float | None]]
"""Closed parts of an axis as (from, to); None if unbounded."""


@dataclass(frozen=True, slots=True)
class DrawnRow:
    """The closed values of one input.

    Attributes:
        input: Name of the input.
        attribute: Name of the attribute in the input.
        bars: The closed values as bars.
        closed: The closed values as text.
        lacks: Values that others have closed and this input has not, as text; empty if there are none.
        missing: Punctuations, in notation, that would close the first of these values.
    """

    input: str
    attribute: str
    bars: Bars
    closed: str
    lacks: str = ""
    missing: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class DrawnMeet:
    """The values that all inputs have closed."""

    bars: Bars
    closed: str


@dataclass(frozen=True, slots=True)
class DrawnAxis:
    """An attribute's axis.

    Attributes:
        attribute: Name of the attribute.
        type: Type of its values.
        scale: `number`, `time` in milliseconds, or `text`: one value after the other.
        values: For `text`, some of the values in order.
        whole: Start and end of the axis.
        edge: The part of the axis in which inputs differ.
        rows: The closed values of each input.
        meet: The values that all inputs have closed.
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
        """The axis as a JSON object, with the slice in which each input last sent a punctuation."""
        rows = [{**asdict(row), "spoke": spoke.get(row.input)} for row in self.rows]
        return {**asdict(self), "rows": rows}


def counted_axis(counts: Mapping[SourceAttribute, int], shown: Sequence[SourceAttribute]) -> DrawnAxis:
    """An axis for inputs with too many closed strings to compare: it shows their numbers."""
    words = {place: f"{count:,} values, too many to compare" for place, count in counts.items()}
    rows = [DrawnRow(*place, (), words.get(place, "not compared")) for place in shown]
    whole = (0.0, 1.0)
    return DrawnAxis(shown[0][1], "STRING", "text", (), whole, whole, rows, DrawnMeet((), "not compared"))


def closing(schema: Schema, attribute: str, open_: ValueSet) -> list[str]:
    """The punctuations that close values of an attribute, in notation."""
    ps = (Punctuation.of(schema, {attribute: pattern}) for pattern in patterns(open_))
    return [str(p) for p in ps if not p.is_empty]


MOST_BARS = 200
"""Most bars of an input; if there are more, neighbours with the smallest gaps are joined."""


def axis_of_few(rows: Mapping[SourceAttribute, ValueSet], domain: Domain, schemas: Mapping[str, Schema]) -> DrawnAxis:
    """The axis of the closed values of some inputs, compared interval by interval.

    Args:
        rows: The closed values of each input's attribute.
        domain: The type of the values.
        schemas: The schemas of the inputs.
    """
    meet = ValueSet.everything(domain)
    anyone = ValueSet(domain)
    for closed in rows.values():
        meet = meet.intersection(closed)
        anyone = anyone.union(closed)
    speaks_of_null = any(closed.null and not closed.cuts for closed in rows.values())
    scale = _Scale(domain, [cut for closed in rows.values() for cut in closed.cuts])
    drawn = []
    for (name, attribute), closed in rows.items():
        lacks = [*anyone.difference(closed).intervals()]
        missing = closing(schemas[name], attribute, ValueSet.of_intervals(domain, lacks[:SHOWN]))
        drawn.append(DrawnRow(name, attribute, scale.bars(closed), frontier(closed), listed(lacks, domain), missing))
    return DrawnAxis(
        attribute=drawn[0].attribute,
        type=domain.type,
        scale=scale.kind,
        values=scale.values,
        whole=scale.whole,
        edge=scale.edge([*rows.values()]),
        rows=drawn,
        meet=DrawnMeet(scale.bars(meet), frontier(meet if meet.cuts or speaks_of_null else ValueSet(domain))),
    )


class _Scale:
    """Places of an attribute's values on an axis: as numbers, as milliseconds, or one value after the other."""

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
        if domain.bottom in cuts:  # the axis is unbounded on the left
            before = self.whole[0] - 0.15 * (self.whole[1] - self.whole[0])
            self.whole[0] = float(math.floor(before)) if isinstance(domain.sql, IntegerType) else before

    def at(self, cut: Cut) -> float:
        """The place of a cut."""
        if self.kind == "text":
            return float(self._places[cut])
        value = self._domain.bound(cut, above=True)[0]
        return _milliseconds(value) if self.kind == "time" else float(value)  # type: ignore[arg-type]

    def bars(self, closed: ValueSet) -> list[list[float | None]]:
        """The closed parts as (from, to); None if unbounded."""
        low, high = self._domain.bottom, self._domain.top
        found = [[None if a == low else self.at(a), None if b == high else self.at(b)] for a, b in closed.intervals()]
        while len(found) > MOST_BARS:
            gaps = sorted(range(1, len(found)), key=lambda i: _gap(found[i - 1], found[i]))
            for i in sorted(gaps[: len(found) - MOST_BARS], reverse=True):
                found[i - 1 : i + 1] = [[found[i - 1][0], found[i][1]]]
        return found

    def edge(self, rows: Sequence[ValueSet]) -> list[float]:
        """The part of the axis from a little before the first open value to the end."""
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


MANY = 2000
"""Closed values of all inputs together up to which each is drawn by itself."""

CELLS = 200
"""Most parts of a bar."""

_NOTHING = "nothing yet"

_Cut: TypeAlias = tuple[Any, int]


def axis_of_many(rows: Mapping[SourceAttribute, ValueSet], domain: Domain, schemas: Mapping[str, Schema]) -> DrawnAxis:
    """The axis of many closed strings, compared as sets (see `are_many`); arguments as for `axis_of_few`."""
    axis, drawn = _ManyValues(rows, domain), []
    for place in rows:
        lacks, first = axis.lacking(place)
        missing = closing(schemas[place[0]], place[1], first) if lacks else []
        drawn.append(DrawnRow(*place, axis.bars(place), axis.closed(place) or _NOTHING, lacks, missing))
    common, bars = axis.meet()
    return DrawnAxis(
        attribute=drawn[0].attribute,
        type=domain.type,
        scale="text",
        values=axis.values,
        whole=axis.whole,
        edge=axis.whole,
        rows=drawn,
        meet=DrawnMeet(bars, common or _NOTHING),
    )


class _ManyValues:
    """The closed strings of some inputs on one axis.

    Args:
        rows: The closed values of each input's attribute, without ranges (`are_many`).
        domain: The type of the values.
    """

    def __init__(self, rows: Mapping[SourceAttribute, ValueSet], domain: Domain) -> None:
        self._domain = domain
        self._lows: dict[SourceAttribute, Sequence[_Cut]] = {place: row.cuts[::2] for place, row in rows.items()}
        self._own = {place: set(lows) for place, lows in self._lows.items()}
        # Python's sort merges the sorted runs.
        order = list(dict.fromkeys(sorted(chain.from_iterable(self._lows.values()))))
        self._numbers = {low: number for number, low in enumerate(order)}
        self._all = set(order)
        self.values = [self._written(low) for low in (*order[:1], *order[-1:])]
        self.whole = [0.0, float(len(order))]

    def closed(self, place: SourceAttribute) -> str:
        """The closed values of an input, as text."""
        return self._words(self._lows[place][:SHOWN], len(self._lows[place]))

    def lacking(self, place: SourceAttribute) -> tuple[str, ValueSet]:
        """The values that others have closed and this input has not: as text, and the first of them."""
        left = self._all - self._own[place]
        first = nsmallest(SHOWN, left)
        some = ValueSet.of(self._domain, [value for value, _ in first])
        return self._words(first, len(left)), some

    def meet(self) -> tuple[str, list[list[float]]]:
        """The values that all inputs have closed, as text and as bars."""
        common = set.intersection(*self._own.values())
        return self._words(nsmallest(SHOWN, common), len(common)), self._bars(self._all - common)

    def bars(self, place: SourceAttribute) -> list[list[float]]:
        """The parts of the axis in which an input has closed all values that any input has."""
        return self._bars(self._all - self._own[place])

    def _bars(self, lacking: AbstractSet[_Cut]) -> list[list[float]]:
        count = len(self._numbers)
        size = max(1, -(-count // CELLS))
        open_ = {self._numbers[low] // size for low in lacking}
        return [list(pair) for pair in _runs(open_, -(-count // size), size, count)]

    def _words(self, first: Sequence[_Cut], count: int) -> str:
        more = count - len(first)
        named = ", ".join(map(self._written, first))
        return f"{named}{f' and {more:,} more' if more > 0 else ''}"

    def _written(self, low: _Cut) -> str:
        return self._domain.write(low[0])


def are_many(rows: Mapping[SourceAttribute, ValueSet]) -> bool:
    """Whether there are many closed values, and no ranges."""
    return sum(len(row.cuts) for row in rows.values()) > 2 * MANY and all(
        low[1] == 0 and high == (low[0], 1) for row in rows.values() for low, high in row.intervals()
    )


def _runs(open_: AbstractSet[int], cells: int, size: int, count: int) -> Iterator[tuple[float, float]]:
    """The closed parts between open cells, as (from, to)."""
    begin = 0
    for cell in (*sorted(open_), cells):
        if cell > begin:
            yield float(begin * size), float(min(cell * size, count))
        begin = cell + 1
