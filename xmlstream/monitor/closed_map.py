"""The closed map: for each attribute the values that each input has closed, that all have, and that each lacks.

It is computed from the sources' punctuations in commit records, so it is the same for a running query and for one that
is read from its checkpoint.
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

from operators.state.closed_set import ClosedSet, added_punctuations
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
"""Closed strings of an input up to which they are compared one by one; of more only the number is shown."""


class ClosedMap:
    """The values that the sources of a query have closed; thread-safe.

    Args:
        sources: The schemas of the sources, by name.
        promised: For each source the attributes that it promises to close by themselves.
        axes: Groups of attributes to compare with each other.
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
        """Adds the punctuations of a commit record; they are parsed only for a reader, since few slices have one."""
        with self._lock:
            for name in self._held:
                if said := record["operators"].get(name, {"sets": {}})["sets"].get("added"):
                    self._unread.append((name, said))
                if spoke := record.get("lately", {}).get(name, {}).get("spoke"):
                    self._spoke[name] = dict(zip(("slice", "time"), spoke, strict=True))

    def add_on_disk(self, record: Mapping[str, Any], state: Path, *, restored: bool) -> None:
        """Takes the files of closed strings of a commit; strings from before this run (`restored`) are read later."""
        with self._lock:
            for name, held in self._held.items():
                kept = record["operators"].get(name, {}).get("kept", {})
                self._on_disk[name] = found = ClosedOnDisk(state / name, held.set.schema, kept)
                if restored and found.rows:
                    self._unfetched.add(name)

    @property
    def unread(self) -> int:
        """Number of recorded punctuations that are not parsed yet."""
        return sum(len(texts) for _, texts in self._unread)

    def _are_too_many(self, name: str, attribute: str) -> bool:
        """Whether an input has closed more strings than can be compared."""
        return name in self._on_disk and self._on_disk[name].rows.get(attribute, 0) > MOST_VALUES

    def read(self) -> bool:
        """Parses the added punctuations; returns whether there were any."""
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
        return bool(unread)

    def json(self) -> list[dict[str, Any]]:
        """An axis for each group of attributes that an input closes, or promises to close."""
        self.read()
        with self._lock:
            return [found for places in self._axes for found in self._axis(places)]

    def lacking(self) -> list[str]:
        """Sentences about inputs that lag behind: `sensor2 has not closed hour 17, but others have`."""
        return [
            f"{row['input']} has not closed {row['attribute']} {row['lacks']}, but others have"
            for axis in self.json()
            for row in axis["rows"]
            if row["lacks"]
        ]

    def asked(self, attribute: str, text: str) -> list[dict[str, Any]]:
        """For each input with an attribute: whether it has closed a value, and the punctuation that closes it.

        Raises:
            ValueError: The text is not a value of the attribute.
        """
        self.read()
        found = []
        with self._lock:
            for name, known in ((name, held.set) for name, held in self._held.items()):
                if attribute in known.schema.names and self._is_shown(name, attribute):
                    domain = known.schema.attribute(attribute).domain
                    value = domain.read(text)
                    missing = Punctuation.of(known.schema, {attribute: Constant(value)})
                    closed = known.covers(missing)
                    lifespan = self._held[name].lifespan(missing) if closed else None
                    holds = None if lifespan is None else str(lifespan)
                    found.append({"input": name, "closed": closed, "missing": str(missing), "holds": holds})
        return found

    def _axis(self, places: Sequence[SourceAttribute]) -> Iterator[dict[str, Any]]:
        """The axis of a group of attributes; one for each type."""
        shown = [place for place in places if self._is_shown(*place)]
        if many := [place for place in shown if self._are_too_many(*place)]:
            counts = {place: self._on_disk[place[0]].rows[place[1]] for place in many}
            yield counted_axis(counts, shown).json(self._spoke)
            return
        types = dict.fromkeys(self._held[name].set.schema.attribute(attribute).domain.type for name, attribute in shown)
        for type_ in types:
            domain = Domain(type_)
            rows = {
                (name, attribute): _unbounded(self._held[name].set.values(attribute), domain)
                for name, attribute in shown
                if self._held[name].set.schema.attribute(attribute).domain.type == type_
            }
            schemas = {name: held.set.schema for name, held in self._held.items()}
            drawn = axis_of_many if isinstance(domain.sql, StringType) and are_many(rows) else axis_of_few
            yield drawn(rows, domain, schemas).json(self._spoke)

    def _is_shown(self, name: str, attribute: str) -> bool:
        closed = self._held[name].set
        place = closed.schema.index(attribute)
        promised = self._promised.get(name, ())
        has_ended = closed.is_all and not promised and place == 0
        return place in closed.singles or attribute in promised or has_ended


def _unbounded(closed: ValueSet, domain: Domain) -> ValueSet:
    """The same values in a domain without bounds, since compared sources may declare different bounds."""
    cuts = closed.cuts
    if cuts and cuts[0] == closed.domain.bottom:
        cuts = (domain.bottom, *cuts[1:])
    return ValueSet(domain, cuts, closed.null or (not closed.domain.nullable and bool(cuts)))
