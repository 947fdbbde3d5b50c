"""The parts of a tuple log: how its kept rows are stored, read whole or looked up by their keys, removed, and merged.

A *part* of a log is a segment, less the rows removed and purged since they came. An engine that reads a part filters
and joins away what is gone (`left_of`). The driver *looks up* rows of a part by their keys
(`xmlstream.operators.storage.lookup`), and knows those that it has removed by their places: it needs no join.

Segments of similar size are merged, up to `MERGED` rows, so that a slice never rewrites all and a row is rewritten once
for each size; a part is rewritten alone once most of its rows are removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.frames.expression import Column
from xmlstream.operators.frames.matching import is_inline, matching, not_matching
from xmlstream.operators.state.ages import AGES, FIRST, SINCE, Since
from xmlstream.operators.state.slice_tuples import Tuples, anti_join, semi_join
from xmlstream.operators.storage.lookup import Keys, Places, keys_of, struct_with, types_in
from xmlstream.operators.storage.records import LogRecord, PartRecord
from xmlstream.operators.storage.segments import Segment, SegmentStore, of_one_size
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import own

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame

MOST_SEGMENTS = 12
"""The number of segments of a log, or of removals from one, beyond which they become one, if they are not merged."""

TOGETHER = 4
"""The number of segments of similar size in a large log, or of removals from one, that are merged into one."""

MERGED = 1 << 19
"""The most rows of a merged segment: what a slice rewrites at the most, however many rows are kept."""

FEWER = 4
"""Rows are looked up if they are expected to be fewer than the kept ones by this factor; else all are read."""

PART, PLACE = own("part"), own("place")
"""BIGINT: the number of the part of a kept row that was looked up, and its place in there."""

Gone: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"
Found: TypeAlias = Sequence[Sequence[Places]]
"""The places of some rows, for each block of each part."""
Wanted: TypeAlias = tuple[Sequence[str], pa.Table]
"""Values of kept rows, with the names of their attributes there, in the order of the columns."""


@dataclass(frozen=True, slots=True)
class LogPiece:
    """A segment, the rows removed from it since, and the number of purges of the log that came before it.

    `gone` are the removed rows by their place, once some rows were looked up.
    """

    segment: Segment
    removed: tuple[Segment, ...] = ()
    since: int = 0
    gone: Gone | None = field(default=None, compare=False)


class LogParts:
    """The parts of a log; `rows` counts the rows that are left of them.

    Attributes:
        parts: The parts, from the oldest one on.
        purging: The punctuations that have purged rows which are still in the segments.
        now: The slice that has begun.
        ages: The columns for ages that rows have from now on.
        oldest: When the oldest row came; None for no rows.
    """

    def __init__(self, store: SegmentStore, schema: Schema, committed: LogRecord) -> None:
        """Restores the parts that `record` recorded; `schema` is that of the punctuations."""
        self._store = store
        self.purging = [Punctuation.parse(text, schema) for text in committed.purging]
        self.parts = [
            LogPiece(store.restore(part), tuple(map(store.restore, part.removed)), part.since)
            for part in committed.segments
        ]
        self.rows = committed.rows
        self.now: Since | None = None
        self.ages: tuple[str, ...] = ()
        # An empty log has no row before the first slice. If nothing was recorded, the oldest row's age is unknown.
        self.oldest = Since(*(committed.oldest or (0, 0))) if self.parts else None

    def record(self, *, unique: bool | None) -> LogRecord:
        """The parts for a commit; their segments outlive the process."""
        store = self._store
        parts = tuple(
            PartRecord.extending(
                store.record(part.segment), removed=tuple(map(store.record, part.removed)), since=part.since
            )
            for part in self.parts
        )
        oldest = self.oldest if SINCE in self.ages else None
        return LogRecord(self.rows, parts, tuple(map(str, self.purging)), oldest, unique)

    def add(self, segment: Segment) -> None:
        """Adds the rows of a segment as a part."""
        self.parts.append(LogPiece(segment, since=len(self.purging)))
        self.oldest = self.oldest or self.now
        self.rows += segment.rows

    def become(self, segment: Segment | None) -> None:
        """Replaces all parts by the rows of a segment, or by none."""
        self.parts = [LogPiece(segment)] if segment is not None and segment.rows else []
        self.rows, self.purging = sum(part.segment.rows for part in self.parts), []
        self.oldest = (self.oldest or self.now) if self.parts else None

    @property
    def is_worn(self) -> bool:
        """Whether so much of the parts is gone, by so many removals or purges, that the rest is better rewritten."""
        return (
            self.rows * 2 < sum(part.segment.rows for part in self.parts)
            or max(len(part.removed) for part in self.parts) > MOST_SEGMENTS
            or not is_inline(self.purging)
        )

    def left_of(self, parts: Sequence[LogPiece]) -> Frame:
        """The rows of some parts that are left; those from which the same was removed are read together."""
        alike: dict[tuple[str, int, tuple[Segment, ...]], list[Segment]] = {}
        for part in parts:
            alike.setdefault((part.segment.struct, part.since, part.removed), []).append(part.segment)
        whole: Frame | None = None
        for (struct, since, removed), segments in alike.items():
            left = self._together(segments)
            for struct_of_removed in dict.fromkeys(one.struct for one in removed):
                others = self._together([one for one in removed if one.struct == struct_of_removed])
                left = anti_join(left, others, others.frame.columns)
            whole = self._with(whole, left.frame, since, struct)
        assert whole is not None
        return whole

    def _together(self, segments: Sequence[Segment]) -> Tuples:
        return Tuples(self._store.together(segments), sum(segment.rows for segment in segments))

    def _with(self, whole: Frame | None, rows: Frame, since: int, struct: str) -> Frame:
        """Some rows, and those of segments that later purges leave, with the columns for ages that rows have now."""
        left = not_matching(rows, self.purging[since:])
        borne = _borne(struct)
        if borne != self.ages:
            columns = {FIRST: Column(FIRST, "CAST(NULL AS BIGINT)")}
            if self.now is not None:
                columns[SINCE] = self.now.column(SINCE)
            others = [name for name in left.columns if name not in AGES]
            left = left.select(*others, *(name if name in borne else columns[name] for name in self.ages))
        return left if whole is None else whole.union_by_name(left)

    def aged(self, frame: Frame) -> Frame:
        """New rows with this slice as their age, if rows store ages."""
        return frame if self.now is None else frame.with_columns(dict(map(self.now.column, self.ages)))

    def are_few(self, rows: int) -> bool:
        """Whether so many rows are looked up rather than found by reading all."""
        return rows * FEWER <= self.rows

    def found(self, wanted: Sequence[Wanted], parts: Sequence[LogPiece] | None = None) -> Found | None:
        """The places of the rows of all parts, or some, that may agree; None if all rows must be read."""
        found: list[list[Places]] = []
        known: dict[tuple[int, tuple[str, ...]], Keys | None] = {}
        for number, part in enumerate(self.parts if parts is None else parts):
            blocks, gone = self._store.blocks(part.segment), None
            if blocks is None:
                return None
            if part.removed and parts is None and (gone := self._gone_of(number)) is None:
                return None
            found.append([])
            first = 0
            for block in blocks:
                types = tuple(map(str, block.rows.schema.types))
                each = []
                for i, (names, table) in enumerate(wanted):
                    if (i, types) not in known:
                        known[i, types] = keys_of(table, block.rows.schema, names)
                    if (keys := known[i, types]) is None:
                        return None
                    each.append(block.places(keys))
                places = each[0] if len(each) == 1 else np.unique(np.concatenate([_NOWHERE, *each]))
                found[-1].append(places if gone is None else places[~gone[first + places]])
                first += len(block.rows)
        return found if self.are_few(_number(found)) else None

    def _gone_of(self, number: int) -> Gone | None:
        """The removed rows of a part; after a restart, they are looked up by what was removed."""
        part = self.parts[number]
        if part.gone is None:
            gone = np.zeros(part.segment.rows, np.bool_)
            for removed in part.removed:
                others = Tuples(self._store.frame(removed), removed.rows)
                names = others.frame.columns
                if (found := self.found([(names, self._store.columns(others.frame, names))], [part])) is None:
                    return None
                if (rows := self.rows_at(found, [part], placed=True)) is not None:
                    exact = semi_join(rows, others, names)
                    gone[exact.frame.select(PLACE).to_arrow()[PLACE].to_numpy()] = True
            self.parts[number] = part = replace(part, gone=gone)
        return part.gone

    def _tables_at(self, found: Found, parts: Sequence[LogPiece], *, placed: bool) -> list[tuple[int, str, pa.Table]]:
        """The rows at places of parts, by the purges before them and by schema; perhaps with part and place."""
        alike: dict[tuple[int, str, pa.Schema], list[pa.RecordBatch]] = {}
        for number, (part, each) in enumerate(zip(parts, found, strict=True)):
            first = 0
            for block, places in zip(self._store.blocks(part.segment) or (), each, strict=True):
                if len(places):
                    rows, struct = block.take(places), part.segment.struct
                    if placed:
                        rows = rows.append_column(PART, pa.array(np.full(len(places), number)))
                        rows, struct = rows.append_column(PLACE, pa.array(first + places)), _placed(struct)
                    alike.setdefault((part.since, struct, rows.schema), []).append(rows)
                first += len(block.rows)
        return [(since, struct, pa.Table.from_batches(some)) for (since, struct, _), some in alike.items()]

    def rows_at(self, found: Found, parts: Sequence[LogPiece] | None = None, *, placed: bool = False) -> Tuples | None:
        """The rows at places of all parts or some that were not purged, perhaps with part and place; None for none."""
        whole: Frame | None = None
        for since, struct, table in self._tables_at(found, self.parts if parts is None else parts, placed=placed):
            whole = self._with(whole, self._store.engine.rows(table, struct), since, struct)
        return None if whole is None else Tuples(whole, _number(found), exact=False)

    def computed_at(self, found: Found, punctuations: Sequence[Punctuation] = ()) -> Segment:
        """The rows at places that were not purged, with part and place, or those that punctuations match."""
        if (rows := self.rows_at(found, placed=True)) is None:
            return _NOTHING
        return self._store.write(matching(rows.frame, punctuations) if punctuations else rows.frame, rows.at_most)

    def remove(self, removed: Segment) -> None:
        """Removes the rows that agree with those of a segment, wherever they are."""
        self.parts = [replace(part, removed=(*part.removed, removed), gone=None) for part in self.parts]

    def remove_located(self, located: Segment, names: Sequence[str]) -> None:
        """Removes rows that were looked up: those that agree with them on these attributes, in their parts."""
        if not located.rows:
            return
        removed = self._store.chosen(located, names)
        places = pa.Table.from_batches(list(self._store.batches(located, [PART, PLACE])))
        numbers, at = (places[name].to_numpy() for name in (PART, PLACE))
        heavy = []
        for number in np.unique(numbers).tolist():
            gone = self._gone_of(number)
            part = self.parts[number]
            gone = np.zeros(part.segment.rows, np.bool_) if gone is None else gone
            gone[at[numbers == number]] = True
            self.parts[number] = replace(part, removed=(*part.removed, removed), gone=gone)
            if 2 * np.count_nonzero(gone) > len(gone):
                heavy.append(part.segment)
        self.rows -= located.rows
        self._gather()
        for segment in heavy:
            self._merge([segment])

    def _gather(self) -> None:
        """Merges removals of similar size."""
        merged: dict[tuple[Segment, ...], Segment] = {}
        for number, part in enumerate(self.parts):
            if (together := _mergeable(part.removed)) and (
                tables := [table for removed in together if (table := self._store.table(removed)) is not None]
            ):
                if (key := tuple(together)) not in merged:
                    merged[key] = self._store.hold(pa.concat_tables(tables), together[0].struct)
                left = [removed for removed in part.removed if removed not in together]
                self.parts[number] = replace(part, removed=(*left, merged[key]))

    def merge(self) -> None:
        """Merges segments of similar size, once there are enough of them."""
        if together := _mergeable([part.segment for part in self.parts]):
            self._merge(together)

    def _merge(self, segments: Sequence[Segment]) -> None:
        """Rewrites the parts of some segments as one; the driver does it by itself where it can."""
        parts = [part for part in self.parts if part.segment in segments]
        plain = len({part.segment.struct for part in parts}) == 1 and all(
            not self.purging[part.since :] and (not part.removed or part.gone is not None) for part in parts
        )
        whole = [self._store.table(part.segment) for part in parts] if plain else []
        tables = [table for table in whole if table is not None]
        if plain and len(tables) == len(parts) and len({table.schema for table in tables}) == 1:
            left = [
                table if part.gone is None else table.filter(pa.array(~part.gone))
                for table, part in zip(tables, parts, strict=True)
            ]
            segment = self._store.hold(pa.concat_tables(left), parts[0].segment.struct)
        else:
            segment = self._store.write(self.left_of(parts), sum(part.segment.rows for part in parts))
        others = [part for part in self.parts if part.segment not in segments]
        self.parts = [*others, *([LogPiece(segment, since=len(self.purging))] if segment.rows else [])]
        # A purge is forgotten once no part is older.
        least = min((part.since for part in self.parts), default=len(self.purging))
        self.purging = self.purging[least:]
        self.parts = [replace(part, since=part.since - least) for part in self.parts]


def seen(frame: Frame) -> Frame:
    """Kept rows as their operator sees them, without their ages and places."""
    return frame.drop(*AGES, PART, PLACE)


_NOTHING, _NOWHERE = Segment("", 0, ""), np.zeros(0, np.int64)


def _number(found: Found) -> int:
    return sum(len(places) for each in found for places in each)


def _borne(struct: str) -> tuple[str, ...]:
    """The columns for ages in a segment with this schema."""
    return tuple(name for name in AGES if name in struct)


@lru_cache(maxsize=64)
def _placed(struct: str) -> str:
    """The schema of rows with their part and place."""
    return struct_with({**types_in(struct), PART: "long", PLACE: "long"})


def _mergeable(segments: Sequence[Segment]) -> list[Segment]:
    return of_one_size(segments, TOGETHER, lambda some: sum(one.rows for one in some) <= MERGED)
