"""The closed map: for each attribute what each input has closed, what all have, and what each lacks of the others.

It is made of what commits record of the sources' punctuations, in the notation; so it is the same of a run that goes
on, from slice to slice, and of one that is over, from its checkpoint.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from operators.state.closed_set import ClosedSet, said_anew
from operators.state.expiring_set import Entry
from punct_ns.domain import Domain
from punct_ns.lifespan import Lifespan
from punct_ns.pattern import Constant
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.sql_type import StringType
from punct_ns.value_set import ValueSet
from sources.xml.grammar.lifespans import has_closed
from xmlstream.diagnosis.kept_rows import ClosedOnDisk
from xmlstream.monitor.interval_bars import SourceAttribute, are_many, axis_of_few, axis_of_many, counted_axis

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
        self._held = {name: ClosedSet(schema) for name, schema in sources.items()}
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
                if spoke := record.get("lately", {}).get(name, {}).get("spoke"):
                    self._spoke[name] = dict(zip(("slice", "time"), spoke, strict=True))

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
            yield counted_axis(counts, told).json(self._spoke)
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
            drawn = axis_of_many if isinstance(domain.sql, StringType) and are_many(rows) else axis_of_few
            yield drawn(rows, domain, schemas).json(self._spoke)

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
    return ValueSet(domain, cuts, closed.null or (not closed.domain.nullable and bool(cuts)))
