"""The closed map: for each attribute what each input has closed, what all have, and what each lacks of the others.

It is made of what commits record of the sources' punctuations, in the notation; so it is the same of a run that goes
on, from slice to slice, and of one that is over, from its checkpoint.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from operators.state.held_punctuations import HeldPunctuations, said_anew
from operators.state.passing_punctuations import Entry
from punct_ns.domain import Cut, Domain, Value
from punct_ns.lifespan import Lifespan
from punct_ns.numeric_type import DecimalType, FloatType, IntegerType
from punct_ns.pattern import Constant, patterns
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.sql_type import StringType
from punct_ns.temporal_type import DateType, TimestampType
from punct_ns.value_set import ValueSet
from sources.xml.grammar.lifespans import has_closed
from xmlstream.monitor.axes import SourceAttribute
from xmlstream.monitor.frontier import SHOWN, frontier, listed
from xmlstream.monitor.many_values import ManyValues, are_many
from xmlstream.waiting.closed_on_disk import ClosedOnDisk

MOST_BARS = 200
"""Bars of an input; of more, those that are nearest to each other are drawn as one."""

MOST_VALUES = 200_000
"""Strings that an input has closed one by one up to which they are compared."""


class ClosedMap:
    """What the sources of a query have closed; threads may ask while another one adds.

    Args:
        sources: Their attributes, by their names.
        promised: Of each source the attributes that it promises to speak of alone.
        axes: Which attributes are compared.
    """

    def __init__(
        self,
        sources: Mapping[str, Schema],
        promised: Mapping[str, Sequence[str]],
        axes: Sequence[Sequence[SourceAttribute]],
    ) -> None:
        self._held = {name: HeldPunctuations(schema) for name, schema in sources.items()}
        self._promised, self._axes = promised, axes
        self._lock = threading.Lock()
        self._unread: list[tuple[str, Sequence[Entry]]] = []
        self._spoke: dict[str, dict[str, Any]] = {}
        self._on_disk: dict[str, ClosedOnDisk] = {}
        self._unfetched = set[str]()

    def add(self, record: Mapping[str, Any]) -> None:
        """What a commit recorded of the sources; it is read when somebody asks, since few slices are looked at."""
        with self._lock:
            for name in self._held:
                if said := record["operators"].get(name, {"sets": {}})["sets"].get("said"):
                    self._unread.append((name, said))
                    self._spoke[name] = {"slice": record.get("slice"), "time": record.get("time", "")}

    def add_on_disk(self, record: Mapping[str, Any], state: Path, *, restored: bool) -> None:
        """Which strings sources have on disk, as of a commit; those that were there before this run are fetched."""
        with self._lock:
            for name, held in self._held.items():
                kept = record["operators"].get(name, {}).get("kept", {})
                self._on_disk[name] = found = ClosedOnDisk(state / name, held.set.schema, kept)
                if restored and found.rows:
                    self._unfetched.add(name)

    @property
    def unread(self) -> int:
        """How many changes wait to be read."""
        return sum(len(texts) for _, texts in self._unread)

    def _are_too_many(self, name: str, attribute: str) -> bool:
        """Whether so many strings are closed that they are counted, and not compared."""
        return name in self._on_disk and self._on_disk[name].rows.get(attribute, 0) > MOST_VALUES

    def read(self) -> bool:
        """Reads what was added; whether there was anything."""
        with self._lock:
            for name in list(self._unfetched):
                # Files come and go while the query runs: what is not there now is read with the next commit.
                with suppress(OSError, pa.ArrowException):
                    if all(rows <= MOST_VALUES for rows in self._on_disk[name].rows.values()):
                        self._held[name].absorb(self._on_disk[name].all())
                    self._unfetched.discard(name)
            unread, self._unread = self._unread, []
            for name, entries in unread:
                held = self._held[name]
                held.absorb(said_anew(entries, held.set.schema))
                held.record(whole=False)  # nothing is committed of it
            for held in self._held.values():
                held.end(partial(Lifespan.is_over, now=datetime.now(UTC), has_closed=partial(has_closed, held.lasting)))
        return bool(unread)

    def json(self) -> list[dict[str, Any]]:
        """An axis for each attribute that somebody closes, or promised to."""
        self.read()
        with self._lock:
            return [found for places in self._axes for found in self._axis(places)]

    def lacking(self) -> list[str]:
        """Who lacks what others have closed, a sentence each: `sensor2 has not closed hour 17, as sensor1 has`."""
        return [
            f"{row['input']} has not closed {row['attribute']} {row['lacks']}, as others have"
            for axis in self.json()
            for row in axis["rows"]
            if row["lacks"]
        ]

    def asked(self, attribute: str, text: str) -> list[dict[str, Any]]:
        """Of each input with such an attribute, whether it has closed a value, and what it must say if it has not.

        Raises:
            ValueError: The text is no value of the attribute.
        """
        self.read()
        found = []
        with self._lock:
            for name, known in ((name, held.set) for name, held in self._held.items()):
                if attribute in known.schema.names and self._is_told(name, attribute):
                    domain = known.schema.attribute(attribute).domain
                    value = domain.read(text)
                    missing = Punctuation.of(known.schema, {attribute: Constant(value)})
                    closed = known.covers(missing)
                    lifespan = self._held[name].lifespan(missing) if closed else None
                    holds = None if lifespan is None else str(lifespan)
                    found.append({"input": name, "closed": closed, "missing": str(missing), "holds": holds})
        return found

    def _axis(self, places: Sequence[SourceAttribute]) -> Iterator[dict[str, Any]]:
        """The axis of these attributes; several where their types differ."""
        told = [place for place in places if self._is_told(*place)]
        if many := [place for place in told if self._are_too_many(*place)]:
            counts = {place: self._on_disk[place[0]].rows[place[1]] for place in many}
            yield _counted(counts, told, self._spoke)
            return
        types = dict.fromkeys(self._held[name].set.schema.attribute(attribute).domain.type for name, attribute in told)
        for type_ in types:
            domain = Domain(type_)
            rows = {
                (name, attribute): _unbounded(self._held[name].set.values(attribute), domain)
                for name, attribute in told
                if self._held[name].set.schema.attribute(attribute).domain.type == type_
            }
            schemas = {name: held.set.schema for name, held in self._held.items()}
            yield _drawn(rows, domain, schemas, self._spoke)

    def _is_told(self, name: str, attribute: str) -> bool:
        said = self._held[name].set
        place = said.schema.index(attribute)
        promised = self._promised.get(name, ())
        has_ended = said.is_all and not promised and place == 0
        return place in said.singles or attribute in promised or has_ended


def _unbounded(closed: ValueSet, domain: Domain) -> ValueSet:
    """The same values where nothing bounds them: sources may declare different bounds of what is compared."""
    cuts = closed.cuts
    if cuts and cuts[0] == closed.domain.bottom:
        cuts = (domain.bottom, *cuts[1:])
    return ValueSet(domain, cuts, closed.null or not closed.domain.nullable)


def _counted(
    counts: Mapping[SourceAttribute, int], told: Sequence[SourceAttribute], spoke: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """An axis of so many values that they are not compared."""
    none = {"bars": [], "lacks": "", "missing": []}
    words = {place: f"{count:,} values, too many to compare" for place, count in counts.items()}
    rows = [
        {"input": place[0], "attribute": place[1], "closed": words.get(place, "not compared"), **none,
         "spoke": spoke.get(place[0])}
        for place in told
    ]  # fmt: skip
    axis = {"attribute": told[0][1], "type": "STRING", "scale": "text", "values": [], "whole": [0.0, 1.0]}
    return {**axis, "edge": [0.0, 1.0], "rows": rows, "meet": {"bars": [], "closed": "not compared"}}


def _drawn(
    rows: Mapping[SourceAttribute, ValueSet],
    domain: Domain,
    schemas: Mapping[str, Schema],
    spoke: Mapping[str, dict[str, Any]],
) -> dict[str, Any]:
    if isinstance(domain.sql, StringType) and are_many(rows):
        return _many(ManyValues(rows, domain), rows, domain, schemas, spoke)
    meet = ValueSet.everything(domain)
    for closed in rows.values():
        meet = meet.intersection(closed)
    anyone = ValueSet(domain)
    for closed in rows.values():
        anyone = anyone.union(closed)
    scale = _Scale(domain, [cut for closed in rows.values() for cut in closed.cuts])
    lacks = {place: [*anyone.difference(closed).intervals()] for place, closed in rows.items()}
    missing = {
        (name, attribute): _closing(schemas[name], attribute, ValueSet.of_intervals(domain, pairs[:SHOWN]))
        for (name, attribute), pairs in lacks.items()
    }
    return {
        "attribute": next(iter(rows))[1],
        "type": domain.type,
        "scale": scale.kind,
        "whole": scale.whole,
        "edge": scale.edge([*rows.values()]),
        "values": scale.values,
        "rows": [
            {
                "input": name,
                "attribute": attribute,
                "bars": scale.bars(closed),
                "closed": frontier(closed),
                "lacks": listed(lacks[name, attribute], domain),
                "missing": missing[name, attribute],
                "spoke": spoke.get(name),
            }
            for (name, attribute), closed in rows.items()
        ],
        "meet": {"bars": scale.bars(meet), "closed": frontier(meet)},
    }


def _many(
    found: ManyValues,
    rows: Mapping[SourceAttribute, ValueSet],
    domain: Domain,
    schemas: Mapping[str, Schema],
    spoke: Mapping[str, dict[str, Any]],
) -> dict[str, Any]:
    """The axis of many strings, in the same form."""
    told = []
    for name, attribute in rows:
        lacks, first = found.lacking((name, attribute))
        told.append(
            {
                "input": name,
                "attribute": attribute,
                "bars": found.bars((name, attribute)),
                "closed": found.closed((name, attribute)) or "nothing yet",
                "lacks": lacks,
                "missing": _closing(schemas[name], attribute, first) if lacks else [],
                "spoke": spoke.get(name),
            }
        )
    common, bars = found.meet()
    axis: dict[str, Any] = {
        "attribute": next(iter(rows))[1],
        "type": domain.type,
        "scale": "text",
        "values": found.values,
    }
    axis |= {"whole": found.whole, "edge": found.whole, "rows": told}
    return {**axis, "meet": {"bars": bars, "closed": common or "nothing yet"}}


def _closing(schema: Schema, attribute: str, open_: ValueSet) -> list[str]:
    """The punctuations that close values of an attribute, in notation."""
    ps = (Punctuation.of(schema, {attribute: pattern}) for pattern in patterns(open_))
    return [str(p) for p in ps if not p.is_empty]


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
