"""The closed map: for each attribute the values that each input has closed, that all have, and that each lacks.

It is computed from commit records, so it is the same for a running query and for one that is read from its checkpoint:
from the punctuations of the sources, and from those that the operators `punctuate` above them have added by a rule.
Attributes of sources share an axis if an operator of the plan makes one attribute of them: merged by position, joined
as equal, renamed, or made one by the same non-decreasing function.

The text for hours is such as `≤ 17`, for auctions `≤ 1041 but 1007, 1033`, for people `ann, bob and 12 more`. Each
interval has a bar in its place; many closed strings share coarser bars, which never show an open value as closed.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, time
from functools import partial, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from xmlstream.dataclasses import dataclass
from xmlstream.diagnosis.kept_rows import ClosedOnDisk
from xmlstream.diagnosis.missing import SliceTime
from xmlstream.operators.state.closed_set import ClosedSet, added_punctuations
from xmlstream.operators.state.expiring_set import Entry
from xmlstream.operators.storage.records import Record
from xmlstream.plan.nodes import Node, Scan, names, topological
from xmlstream.punct_ns.domain import Cut, Domain
from xmlstream.punct_ns.lifespan import Lifespan
from xmlstream.punct_ns.numeric_type import DecimalType, FloatType, IntegerType
from xmlstream.punct_ns.pattern import Constant, patterns
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import STREAM
from xmlstream.punct_ns.sql_type import BooleanType, StringType
from xmlstream.punct_ns.temporal_type import DateType, TimestampType
from xmlstream.punct_ns.value_set import ValueSet
from xmlstream.runtime.checkpoint.commit_log import Commit
from xmlstream.runtime.loop.in_step import SourceAttribute, axes
from xmlstream.runtime.progress import SourceProgress, closing_rules, sources_of_streams
from xmlstream.sources.xml.grammar.lifespans import has_closed

SHOWN = 4
"""Values or ranges that are listed; further ones are only counted."""

MANY = 2000
"""Closed strings of all inputs together up to which each has a bar in its place."""

MOST_VALUES = 200_000
"""Closed strings of an input up to which they are compared one by one; of more only the number is shown."""

MOST_BARS = 200
"""Most bars of an input."""

Bar: TypeAlias = list[float | None]
"""A closed part of an axis as [from, to]; None if unbounded."""


@dataclass(frozen=True, slots=True)
class AxisRow(Record):
    """An input on an axis: the values that it has closed, as `bars` and as text.

    `lacks` are the values that others have closed and it has not, as text; `missing` would close the first of these.
    """

    input: str
    attribute: str
    bars: Sequence[Bar]
    closed: str
    lacks: str = ""
    missing: tuple[str, ...] = ()
    last_sent: SliceTime | None = None


@dataclass(frozen=True, slots=True)
class Meet(Record):
    """The values that all inputs have closed, as bars and as text."""

    bars: Sequence[Bar]
    closed: str


@dataclass(frozen=True, slots=True)
class Axis(Record):
    """Attributes of inputs that are compared: a row for each, and the values that all have closed (`meet`).

    Its `scale` is `number`, `time` in milliseconds, or `text`, one value after the other, with the first and the last
    of the `values`. It has its ends (`whole`), and those of the part in which inputs differ (`edge`).
    """

    attribute: str
    type: str
    scale: str
    values: Sequence[str]
    whole: Bar
    edge: Bar
    rows: tuple[AxisRow, ...]
    meet: Meet


@dataclass(frozen=True, slots=True)
class Closer(Record):
    """Whether an input has closed a value, the punctuation that closes it, and for how long it holds; None for ever."""

    input: str
    closed: bool
    missing: str
    holds: str | None


class ClosedMap:
    """The values that the sources of a query have closed; thread-safe.

    Args:
        promised: For each source the attributes that it promises to close by themselves.
        axes: Groups of attributes to compare with each other.
        rules: For each operator that punctuates a source by a rule, the source.
        begun: When the run began, if that is known.
        many: The sources of many document streams.

    Attributes:
        progress: What the sources have sent last.
    """

    def __init__(
        self,
        sources: Mapping[str, Schema],
        promised: Mapping[str, Sequence[str]],
        axes: Sequence[Sequence[SourceAttribute]],
        rules: Mapping[str, str] | None = None,
        begun: datetime | None = None,
        many: Collection[str] = (),
    ) -> None:
        self.progress = SourceProgress(sources, rules or {}, begun, many)
        self._held = {name: ClosedSet(schema) for name, schema in sources.items()}
        self._promised, self._axes, self._rules = promised, axes, rules or {}
        self._lock = threading.Lock()
        self._unread: list[tuple[str, Sequence[Entry]]] = []
        self._on_disk: dict[str, ClosedOnDisk] = {}
        self._unfetched = set[str]()

    @staticmethod
    def of(root: Node, begun: datetime | None = None) -> ClosedMap:
        """The closed map of the sources of a plan; `begun` is when it began to run, if that is known."""
        name_of = names(root)
        sources = {name_of[node]: node for node in topological(root) if isinstance(node.operator, Scan)}
        rules = closing_rules(root)
        promising = {**sources, **{rules[name_of[node]]: node for node in topological(root) if name_of[node] in rules}}
        alone = {n: [s.attributes[0] for s in node.schemes if len(s.terms) == 1] for n, node in promising.items()}
        schemas = {name: node.schema for name, node in sources.items()}
        return ClosedMap(schemas, alone, axes(root), rules, begun, sources_of_streams(root))

    def add(self, record: Commit, state: Path | None = None, *, restored: bool = False) -> None:
        """Adds the punctuations of a commit record; they are parsed only for a reader, since few slices have one.

        Args:
            record: The record of the commit.
            state: The directory of the state, with the files of closed strings.
            restored: Whether these files have strings from before this run, which are read later.
        """
        with self._lock:
            self.progress.add(record)
            for name, held in self._held.items():
                recorded = record.state(name)
                for sender in (name, *(rule for rule, source in self._rules.items() if source == name)):
                    if entries := record.state(sender).sets.get("added"):
                        self._unread.append((name, entries))
                if state is not None:
                    self._on_disk[name] = found = ClosedOnDisk(state / name, held.set.schema, recorded.kept)
                    if restored and found.rows:
                        self._unfetched.add(name)

    @property
    def unread(self) -> int:
        """Number of recorded punctuations that are not parsed yet."""
        return sum(len(texts) for _, texts in self._unread)

    def read(self) -> None:
        """Parses the added punctuations."""
        with self._lock:
            for name in list(self._unfetched):
                # Files come and go while the query runs: a missing file is read with the next commit.
                with suppress(OSError, pa.ArrowException):
                    if all(rows <= MOST_VALUES for rows in self._on_disk[name].rows.values()):
                        self._held[name].absorb(self._on_disk[name].all())
                    self._unfetched.discard(name)
            unread, self._unread = self._unread, []
            for name, entries in unread:
                held = self._held[name]
                held.absorb(added_punctuations(entries, held.set.schema))
                held.record(whole=False)  # forgets the changes, which are not committed here
            for held in self._held.values():
                held.end(partial(Lifespan.is_over, now=datetime.now(UTC), has_closed=partial(has_closed, held.lasting)))

    def compared(self) -> list[Axis]:
        """An axis for each group of attributes that an input closes, or promises to close."""
        self.read()
        with self._lock:
            return [found for places in self._axes for found in self._axes_of(places)]

    def closers(self, attribute: str, text: str) -> list[Closer]:
        """For each input with an attribute: whether it has closed a value, and the punctuation that closes it.

        Raises:
            ValueError: The text is not a value of the attribute.
        """
        self.read()
        found = []
        with self._lock:
            for name, held in self._held.items():
                schema = held.set.schema
                if attribute in schema.names and self._is_shown(name, attribute):
                    value = schema.attribute(attribute).domain.read(text)
                    missing = Punctuation.of(schema, {attribute: Constant(value)})
                    closed = held.set.covers(missing)
                    lifespan = held.lifespan(missing) if closed else None
                    holds = None if lifespan is None else str(lifespan)
                    found.append(Closer(name, closed, str(missing), holds))
        return found

    def so_far(self, source: str) -> list[str]:
        """What a source and its rules have closed so far: by attribute, and the first punctuations on several."""
        with self._lock:
            closed = self._held[source].set
            shown = [a.name for a in closed.schema if a.name in _alone(closed) and a.name != STREAM]
            texts = [f"{name} {frontier(closed.values(name))}" for name in shown]
            several = [str(p) for p in closed if len(p.restricted) > 1]
        more = [f"and {len(several) - SHOWN:,} more"] if len(several) > SHOWN else []
        return [*texts, *several[:SHOWN], *more]

    def _axes_of(self, places: Sequence[SourceAttribute]) -> Iterator[Axis]:
        """The axes of a group of attributes, one for each type; one of numbers if there are too many strings."""
        shown = [place for place in places if place[1] != STREAM and self._is_shown(*place)]
        counts = {place: self._on_disk[place[0]].rows.get(place[1], 0) for place in shown if place[0] in self._on_disk}
        if any(count > MOST_VALUES for count in counts.values()):
            yield self._counted(shown, counts)
            return
        types: dict[str, dict[SourceAttribute, ValueSet]] = {}
        for name, attribute in shown:
            closed = self._held[name].set
            type_ = closed.schema.attribute(attribute).domain.type
            rows = types.setdefault(type_, {})
            rows[name, attribute] = _unbounded(closed.values(attribute), Domain(type_))
        for type_, rows in types.items():
            yield self._compared(rows, Domain(type_))

    def _counted(self, shown: Sequence[SourceAttribute], counts: Mapping[SourceAttribute, int]) -> Axis:
        """An axis for inputs with too many closed strings to compare: it shows their numbers."""
        rows = []
        for place in shown:
            is_counted = counts.get(place, 0) > MOST_VALUES
            text = f"{counts[place]:,} values, too many to compare" if is_counted else "not compared"
            rows.append(self._row(place, [], text))
        ends: Bar = [0.0, 1.0]
        return Axis(shown[0][1], "STRING", "text", [], ends, ends, tuple(rows), Meet([], "not compared"))

    def _compared(self, rows: Mapping[SourceAttribute, ValueSet], domain: Domain) -> Axis:
        """Draws the closed values of several inputs on one axis."""
        meet, anyone = reduce(ValueSet.intersection, rows.values()), reduce(ValueSet.union, rows.values())
        if not meet.cuts and not any(closed.null and not closed.cuts for closed in rows.values()):
            meet = ValueSet(domain)
        scale = _CellScale(anyone) if _are_many(rows.values()) else _Scale(domain, rows.values())
        drawn = []
        for place, closed in rows.items():
            lacks = list(_possible(anyone.difference(closed).intervals(), closed, rows.values()))
            first = patterns(ValueSet.of_intervals(domain, lacks[:SHOWN]))
            ps = [Punctuation.of(self._held[place[0]].set.schema, {place[1]: pattern}) for pattern in first]
            missing = tuple(str(p) for p in ps if not p.is_empty)
            drawn.append(self._row(place, scale.bars(closed), frontier(closed), listed_spans(lacks, domain), missing))
        ends = scale.whole, scale.edge
        meets = Meet(scale.bars(meet), frontier(meet))
        return Axis(drawn[0].attribute, domain.type, scale.kind, scale.values, *ends, tuple(drawn), meets)

    def _row(
        self, place: SourceAttribute, bars: list[Bar], closed: str, lacks: str = "", missing: tuple[str, ...] = ()
    ) -> AxisRow:
        sent = self.progress.last_sent(place[0])
        return AxisRow(*place, bars, closed, lacks, missing, SliceTime(*sent) if sent is not None else None)

    def _is_shown(self, name: str, attribute: str) -> bool:
        closed = self._held[name].set
        place = closed.schema.index(attribute)
        promised = self._promised.get(name, ())
        has_ended = closed.is_all and not promised and place == 0
        return place in closed.singles or attribute in promised or has_ended


def _alone(closed: PunctuationSet) -> set[str]:
    """The attributes with values that are closed whatever the other attributes are."""
    return set(closed.schema.names) if closed.is_all else {closed.schema[i].name for i in closed.singles}


def _possible(
    lacks: Iterable[tuple[Cut, Cut]], closed: ValueSet, rows: Iterable[ValueSet]
) -> Iterator[tuple[Cut, Cut]]:
    """The values that an input lacks; below the first that it has closed, only those from the first that any one names.

    An input that closes hours from 0 on never closes `≤ -1`, which `≤ 17` of another input includes.
    """
    bottom = closed.domain.bottom
    for low, high in lacks:
        # The cuts of a row are sorted.
        named = (next((cut for cut in row.cuts if cut != bottom), high) for row in rows)
        first = min(named) if closed.cuts and low == bottom else low
        if first < high:
            yield first, high


def _unbounded(closed: ValueSet, domain: Domain) -> ValueSet:
    """The same values in a domain without bounds, since compared sources may declare different bounds."""
    cuts = closed.cuts
    if closed.domain.listed is not None and not closed.has_every_value:
        return ValueSet.of(domain, [*closed.each(), *([None] if closed.null else [])])
    if cuts and cuts[0] == closed.domain.bottom:
        cuts = (domain.bottom, *cuts[1:])
    return ValueSet(domain, cuts, closed.null or (not closed.domain.nullable and bool(cuts)))


class _Scale:
    """Places of an attribute's values on an axis: as numbers, as milliseconds, or one value after the other."""

    def __init__(self, domain: Domain, rows: Iterable[ValueSet]) -> None:
        self._domain = domain
        match domain.sql:
            case IntegerType() | DecimalType() | FloatType():
                self.kind = "number"
            case DateType() | TimestampType():
                self.kind = "time"
            case _:
                self.kind = "text"
        cuts = {cut for closed in rows for cut in closed.cuts}
        inner = sorted(cuts - {domain.bottom, domain.top})
        self._places = {cut: float(i) for i, cut in enumerate(inner)} if self.kind == "text" else {}
        self.values = _ends(inner, domain) if self._places else []
        ends = [self._at(cut) for cut in inner]
        low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
        if low == high:
            low -= 1.0
        if domain.bottom in cuts:  # the axis is unbounded on the left
            low = self._before(low, high)
        self.whole: Bar = [low, high]
        # It begins a little before the first open value.
        first = min((self._at(row.cuts[1]) if len(row.cuts) > 1 else low for row in rows), default=low)
        self.edge: Bar = [max(low, self._before(first, high)) if first < high else low, high]

    def _before(self, low: float, high: float) -> float:
        """A place a little before a part of the axis."""
        before = low - 0.15 * (high - low)
        return float(math.floor(before)) if isinstance(self._domain.sql, IntegerType) else before

    def _at(self, cut: Cut) -> float:
        """The place of a cut."""
        if self.kind == "text":
            return self._places[cut]
        value: Any = self._domain.bound(cut, above=True)[0]
        if self.kind == "number":
            return float(value)
        moment = value if isinstance(value, datetime) else datetime.combine(value, time())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000

    def bars(self, closed: ValueSet) -> list[Bar]:
        """The bars of closed values; of too many, neighbours with the smallest gaps are joined."""
        low, high = self._domain.bottom, self._domain.top
        found = [[None if a == low else self._at(a), None if b == high else self._at(b)] for a, b in closed.intervals()]
        gaps = sorted(range(1, len(found)), key=lambda i: (found[i][0] or 0.0) - (found[i - 1][1] or 0.0))
        for i in sorted(gaps[: max(0, len(found) - MOST_BARS)], reverse=True):
            found[i - 1 : i + 1] = [[found[i - 1][0], found[i][1]]]
        return found


class _CellScale:
    """Places of many single strings on an axis: one after the other, drawn in cells of several."""

    kind = "text"

    def __init__(self, anyone: ValueSet) -> None:
        order = anyone.cuts[::2]
        self._numbers = {low: number for number, low in enumerate(order)}
        self.values = [
            anyone.domain.write(anyone.domain.bound(low, above=True)[0]) for low in (*order[:1], *order[-1:])
        ]
        self.whole: Bar = [0.0, float(len(order))]
        self.edge = self.whole

    def bars(self, closed: ValueSet) -> list[Bar]:
        """The bars between cells with a value that is open."""
        count = len(self._numbers)
        size = max(1, -(-count // MOST_BARS))
        cells = -(-count // size)
        open_ = {self._numbers[low] // size for low in self._numbers.keys() - set(closed.cuts[::2])}
        ends = [-1, *sorted(open_), cells]
        return [[float(a + 1) * size, float(min(b * size, count))] for a, b in pairwise(ends) if b > a + 1]


def _ends(cuts: Sequence[Cut], domain: Domain) -> list[str]:
    return [domain.write(domain.bound(cut, above=True)[0]) for cut in (*cuts[:1], *cuts[-1:])]


def _are_many(rows: Iterable[ValueSet]) -> bool:
    """Whether there are many closed strings, and no ranges."""
    return sum(len(row.cuts) for row in rows) > 2 * MANY and all(
        isinstance(row.domain.sql, StringType) and low[1] == 0 and high == (low[0], 1)
        for row in rows
        for low, high in row.intervals()
    )


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
    domain = closed.domain
    if len(pairs) > 1 and ((len(pairs) > SHOWN + 1 and pairs[0][0] != domain.bottom) or closed.all_single):
        return listed_spans(pairs, domain)
    gaps = [(high, low) for (_, high), (low, _) in pairwise(pairs)]
    but = f" but {listed_spans(gaps, domain)}" if gaps else ""
    return f"{_between(pairs[0][0], pairs[-1][1], domain)}{but}"


def listed_spans(pairs: Sequence[tuple[Cut, Cut]], domain: Domain) -> str:
    """The first few intervals as text.

    >>> listed_spans([(1, 2), (5, 9)], Domain("INT"))
    '1, 5 to 8'
    """
    named = [_between(low, high, domain) for low, high in pairs[:SHOWN]]
    more = len(pairs) - SHOWN
    return f"{', '.join(named)}{f' and {more:,} more' if more > 0 else ''}"


def _between(low: Cut, high: Cut, domain: Domain) -> str:
    has_ends = isinstance(domain.sql, BooleanType)
    first = None if low == domain.bottom and not has_ends else domain.bound(low, above=True)
    last = None if high == domain.top and not has_ends else domain.bound(high, above=False)
    if first is None:
        # The shorter of two texts: `< 22:00:00`, not `≤ 21:59:59.999999`.
        ends = [] if last is None else [f"{'≤' if last[1] else '<'} {domain.write(last[0])}"]
        ends += [f"< {domain.write(domain.bound(high, above=True)[0])}"] if last is not None and last[1] else []
        return min(ends, key=len, default="all")
    if last is None:
        return f"{'≥' if first[1] else '>'} {domain.write(first[0])}"
    if first == last:
        return domain.write(first[0])
    from_, to = "" if first[1] else "above ", "" if last[1] else "below "
    return f"{from_}{domain.write(first[0])} to {to}{domain.write(last[0])}"
