"""Tuple log: kept rows in segments, less the purged rows; small logs are rewritten, large ones are filtered when read.

A slice appends rows, purges the rows that punctuations match, or removes given rows; the last two are logical at first:
a filter and an anti join. `record` lists the changes for the slice's commit. Each row has an age
(`xmlstream.operators.state.ages`), which its operator never sees. A *part* of a log is a segment, less the rows removed
and purged since they came.

A slice of few tuples *looks up* rows of a large log by their keys (`xmlstream.operators.storage.lookup`), where it can:
the rows that may agree with its tuples, or that punctuations on values may match. Rows that it purges so are removed
from their parts by key, and known by their places. Other purges, such as those by ranges, are filters for every reader.

Of a large log, segments of similar size are merged, up to `MERGED` rows, so that a slice never rewrites all and a row
is rewritten once for each size; a part is rewritten alone once most of its rows are removed. If combining keeps keys
apart (`LogSchema.key`), new rows are combined with the kept rows of their keys, and no key is in two parts.

A *merging log* keeps rows for which new rows change the values that punctuations match, such as the ends of a session.
No row may be purged before it is merged. A small log is merged whole. In a large one, most rows lie in a base that is
not rewritten. The base rows that new rows touch are taken out and merged with them and with the rows that changed
before, which are few. When they are no longer few, all rows become a new base.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.frames.held import filter_of
from xmlstream.operators.frames.matching import condition, is_inline, keys_in, matching, not_matching
from xmlstream.operators.state.ages import AGES, FIRST, SINCE, PurgeAfter, Since
from xmlstream.operators.state.slice_tuples import Tuples, anti_join, semi_join
from xmlstream.operators.state.state_schema import LogSchema
from xmlstream.operators.storage.lookup import Keys, Places, keys_of, struct_with, types_in
from xmlstream.operators.storage.records import LogRecord, PartRecord
from xmlstream.operators.storage.segments import Segment, SegmentStore
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.slices import own, quoted

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame


@dataclass(frozen=True, slots=True)
class LogPiece:
    """A segment, the rows removed from it since, and the number of purges of the log that came before it.

    `gone` are the removed rows by their place, once some rows were looked up.
    """

    segment: Segment
    removed: tuple[Segment, ...] = ()
    since: int = 0
    gone: Gone | None = field(default=None, compare=False)

    def record(self, store: SegmentStore) -> PartRecord:
        """The part for a commit; its segments outlive the process."""
        removed = tuple(map(store.record, self.removed))
        return PartRecord.extending(store.record(self.segment), removed=removed, since=self.since)

    @staticmethod
    def restored(record: PartRecord, store: SegmentStore) -> LogPiece:
        """The part that `record` recorded."""
        return LogPiece(store.restore(record), tuple(map(store.restore, record.removed)), record.since)


pc: Any = pyarrow.compute

SMALL = 100_000
"""The number of rows up to which a log is rewritten after a purge, rather than filtered when read."""

MOST_SEGMENTS = 12
"""The number of segments of a small log, or of one that only combines as a whole, beyond which they become one."""

TOGETHER = 4
"""The number of segments of similar size in a large log, or of removals from one, that are merged into one."""

MERGED = 1 << 19
"""The most rows of a merged segment: what a slice rewrites at the most, however many rows are kept."""

FEWER = 4
"""Rows are looked up if they are expected to be fewer than the kept ones by this factor; else all are read."""

PART, PLACE = own("part"), own("place")
"""BIGINT: the number of the part of a kept row that was looked up, and its place in there."""

Gone: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"
Wanted: TypeAlias = tuple[Sequence[str], pa.Table]
"""Values of kept rows, with the names of their attributes there, in the order of the columns."""


class TupleLog:
    """The kept rows of an operator; `rows` counts them, `purged` those purged in this slice.

    Order of calls: a log begins empty, or as a commit recorded it. Within a slice, `append` adds rows and computes
    them; one `add` adds rows and leaves them uncomputed until the next `take` or `settle`. In between, the log can be
    read (`whole`, `at_most`), but neither added to, purged nor recorded. `take`, `purge`, `remove` and `settle` may be
    called in any order and number; they do not affect rows added later. `record` ends the slice. All this also holds
    for an empty log: `whole` and `take` return None, and `purge`, `remove` and `settle` change nothing. For added rows
    only an upper bound of their number is known until they are computed. A call in the wrong order raises RuntimeError,
    and changes nothing.
    """

    def __init__(self, store: SegmentStore, declared: LogSchema, committed: LogRecord | None = None) -> None:
        committed = committed or LogRecord()
        self._store, self._combine, self._key = store, declared.combine, declared.key
        self._fresh: Tuples | None = None
        self._partial = False
        self._purging = [Punctuation.parse(text, declared.purging) for text in committed.purging]
        self._parts = [LogPiece.restored(part, store) for part in committed.segments]
        self.rows = committed.rows
        self.purged = 0
        self._unique = bool(committed.unique)
        self._now: Since | None = None
        self._ages: tuple[str, ...] = ()
        # An empty log has no row before the first slice. If nothing was recorded, the oldest row's age is unknown.
        self._oldest = Since(*(committed.oldest or (0, 0))) if self._parts else None

    def begin(self, now: Since, *, may_be_overdue: bool = False) -> None:
        """Begins a slice; from the first slice on, rows store their ages.

        With `may_be_overdue`, rows without the age that this needs count from now on.
        """
        self._now = now
        ages = AGES if may_be_overdue else (FIRST,)
        begins, self._ages = SINCE in ages and SINCE not in self._ages, ages
        bears = [SINCE in part.segment.struct for part in self._parts]
        if begins and not all(bears):
            self._oldest = Since(0, 0) if any(bears) else now
            self._rewrite()

    def overdue(self, limit: PurgeAfter) -> Segment | None:
        """Purges the rows that are overdue in the slice that has begun, and returns them; None for none."""
        self._require_computed("purged")
        assert self._now is not None
        if self._oldest is None or not limit.is_due(self._oldest, self._now, self.rows):
            return None
        whole = self._combined()
        leaving, staying = self._store.split(whole, limit.condition(self._now), self.at_most)
        self._replace(staying)
        self.purged += leaving.rows
        self._oldest = min(
            (_first(batch) for batch in self._store.batches(staying, [SINCE]) if len(batch)), default=None
        )
        return leaving if leaving.rows else None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept or added in this slice; added rows count, even if they turn out to be none."""
        return not self._parts and self._fresh is None

    @property
    def at_most(self) -> int:
        """An upper bound of the number of kept rows, including those added in this slice."""
        return self.rows + (self._fresh.at_most if self._fresh else 0)

    @property
    def _rewritable(self) -> bool:
        """Whether computing all rows anew costs less than tracking their changes."""
        fresh = self._fresh
        if self._combine is None or fresh is None:
            return self.at_most <= SMALL
        # There are far fewer partial aggregates than the tuples that bound their number.
        few = self._partial or self._store.collects(fresh.frame, fresh.at_most)
        return (self.rows if few else self.at_most) <= SMALL

    def whole(self) -> Tuples | None:
        """All kept rows, not combined across segments; None for an empty log."""
        return None if self.is_empty else Tuples(_seen(self._frame()), self.at_most, exact=self._fresh is None)

    def near(
        self, tuples: Tuples, names: Sequence[str], on: Sequence[str] | None = None
    ) -> tuple[Tuples, Tuples | None]:
        """The tuples, and the kept rows that may agree with one of them; of a large log perhaps not many others.

        Args:
            tuples: A few tuples, which are computed if kept rows are looked up for them.
            names: The attributes of the kept rows that are compared.
            on: The attributes of the tuples that they are compared with; by default those of the same names.
        """
        if not self._looks_up(tuples.at_most):
            return tuples, self.whole()
        if not tuples.computed:
            segment = self._store.write(tuples.frame, tuples.at_most)
            tuples = Tuples(self._store.frame(segment), segment.rows, computed=True)
        wanted = self._store.columns(tuples.frame, on or names)
        if (found := self._found([(names, wanted)])) is None:
            return tuples, self.whole()
        rows = self._rows_at(found)
        return tuples, None if rows is None else Tuples(_seen(rows), _number(found), exact=False)

    def near_punctuations(self, punctuations: Sequence[Punctuation]) -> Tuples | None:
        """The kept rows that the punctuations match, and perhaps others; None if there are none."""
        if (found := self._found_by(punctuations)) is None:
            return self.whole()
        rows = self._rows_at(found)
        return None if rows is None else Tuples(_seen(rows), _number(found), exact=False)

    def _looks_up(self, at_most: int) -> bool:
        return self.rows > SMALL and at_most * FEWER <= self.rows and self._fresh is None

    def _found_by(self, punctuations: Sequence[Punctuation]) -> list[list[Places]] | None:
        """The places of the kept rows that the punctuations may match; None if all rows must be read."""
        if not punctuations or not self._looks_up(1) or (wanted := keys_in(punctuations)) is None:
            return None
        return self._found(wanted) if self._looks_up(sum(len(table) for _, table in wanted)) else None

    def _found(self, wanted: Sequence[Wanted], parts: Sequence[LogPiece] | None = None) -> list[list[Places]] | None:
        """For each block of each part, the places of the rows that may agree; None if all rows must be read."""
        found: list[list[Places]] = []
        known: dict[tuple[int, tuple[str, ...]], Keys | None] = {}
        for number, part in enumerate(self._parts if parts is None else parts):
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
        return found if _number(found) * FEWER <= self.rows else None

    def _gone_of(self, number: int) -> Gone | None:
        """The removed rows of a part; after a restart, they are looked up by what was removed."""
        part = self._parts[number]
        if part.gone is None:
            gone = np.zeros(part.segment.rows, np.bool_)
            for removed in part.removed:
                others = Tuples(self._store.frame(removed), removed.rows)
                wanted = others.frame.columns, self._store.columns(others.frame, others.frame.columns)
                if (found := self._found([wanted], [part])) is None:
                    return None
                if (rows := self._rows_at(found, [part], placed=True)) is not None:
                    exact = semi_join(Tuples(rows, _number(found)), others, others.frame.columns)
                    gone[exact.frame.select(PLACE).to_arrow()[PLACE].to_numpy()] = True
            self._parts[number] = part = replace(part, gone=gone)
        return part.gone

    def _tables_at(
        self, found: Sequence[Sequence[Places]], parts: Sequence[LogPiece] | None = None, *, placed: bool = False
    ) -> list[tuple[int, str, pa.Table]]:
        """The rows at places of the parts, by the purges before them and by schema; perhaps with part and place."""
        alike: dict[tuple[int, str, pa.Schema], list[pa.RecordBatch]] = {}
        for number, (part, each) in enumerate(zip(self._parts if parts is None else parts, found, strict=True)):
            first = 0
            for block, places in zip(self._store.blocks(part.segment) or (), each, strict=True):
                if len(places):
                    rows = block.take(places)
                    if placed:
                        rows = rows.append_column(PART, pa.array(np.full(len(places), number)))
                        rows = rows.append_column(PLACE, pa.array(first + places))
                    struct = _placed(part.segment.struct) if placed else part.segment.struct
                    alike.setdefault((part.since, struct, rows.schema), []).append(rows)
                first += len(block.rows)
        return [(since, struct, pa.Table.from_batches(some)) for (since, struct, _), some in alike.items()]

    def _rows_at(
        self, found: Sequence[Sequence[Places]], parts: Sequence[LogPiece] | None = None, *, placed: bool = False
    ) -> Frame | None:
        """The rows at places of the parts that were not purged, perhaps with part and place; None for none."""
        whole: Frame | None = None
        for since, struct, table in self._tables_at(found, parts, placed=placed):
            frame = self._store.engine.rows(table, struct)
            left = self._bearing(not_matching(frame, self._purging[since:]), struct)
            whole = left if whole is None else whole.union_by_name(left)
        return whole

    def _computed_at(self, found: Sequence[Sequence[Places]], punctuations: Sequence[Punctuation] = ()) -> Segment:
        """The rows at places that were not purged, with part and place, or those that punctuations match."""
        tables = self._tables_at(found, placed=True)
        if not tables:
            return _NOTHING
        (since, struct, table), *others = tables
        test = filter_of(punctuations) if punctuations else None
        if not others and not self._purging[since:] and _borne(struct) == self._ages and (test or not punctuations):
            return self._store.hold(table.filter(test(table)) if test else table, struct)
        rows = self._rows_at(found, placed=True)
        assert rows is not None
        return self._store.write(matching(rows, punctuations) if punctuations else rows, _number(found))

    def _located(self, punctuations: Sequence[Punctuation]) -> Segment | None:
        """The kept rows that the punctuations match, with their places; None if all rows must be read."""
        found = self._found_by(punctuations)
        return None if found is None else self._computed_at(found, punctuations)

    def _remove_located(self, located: Segment, names: Sequence[str]) -> None:
        """Removes rows that were looked up: those that agree with them on these attributes, in their parts."""
        if not located.rows:
            return
        removed = self._store.chosen(located, names)
        places = pa.Table.from_batches(list(self._store.batches(located, [PART, PLACE])))
        numbers, at = (places[name].to_numpy() for name in (PART, PLACE))
        heavy = []
        for number in np.unique(numbers).tolist():
            gone = self._gone_of(number)
            part = self._parts[number]
            gone = np.zeros(part.segment.rows, np.bool_) if gone is None else gone
            gone[at[numbers == number]] = True
            self._parts[number] = replace(part, removed=(*part.removed, removed), gone=gone)
            if 2 * np.count_nonzero(gone) > len(gone):
                heavy.append(part.segment)
        self.purged += located.rows
        self.rows -= located.rows
        self._gather()
        for segment in heavy:
            self._merge([segment])

    def _gather(self) -> None:
        """Merges removals of similar size."""
        merged: dict[tuple[Segment, ...], Segment] = {}
        for number, part in enumerate(self._parts):
            if (together := _of_one_size(part.removed)) and (
                tables := [table for removed in together if (table := self._store.table(removed)) is not None]
            ):
                if (key := tuple(together)) not in merged:
                    merged[key] = self._store.hold(pa.concat_tables(tables), together[0].struct)
                left = [removed for removed in part.removed if removed not in together]
                self._parts[number] = replace(part, removed=(*left, merged[key]))

    def _merge(self, segments: Sequence[Segment]) -> None:
        """Rewrites the parts of some segments as one; the driver does it by itself where it can."""
        parts = [part for part in self._parts if part.segment in segments]
        plain = len({part.segment.struct for part in parts}) == 1 and all(
            not self._purging[part.since :] and (not part.removed or part.gone is not None) for part in parts
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
            segment = self._store.write(self._left_of(parts), sum(part.segment.rows for part in parts))
        others = [part for part in self._parts if part.segment not in segments]
        self._parts = [*others, *([LogPiece(segment, since=len(self._purging))] if segment.rows else [])]
        # A purge is forgotten once no part is older.
        least = min((part.since for part in self._parts), default=len(self._purging))
        self._purging = self._purging[least:]
        self._parts = [replace(part, since=part.since - least) for part in self._parts]

    def _frame(self) -> Frame:
        """All kept rows of a non-empty log, with columns in one order, since combining may change it."""
        whole = self._left_of(self._parts) if self._parts else None
        if self._fresh is not None:
            fresh = self._aged(self._fresh.frame)
            whole = fresh if whole is None else whole.union_by_name(fresh)
        assert whole is not None
        return whole

    def add(self, tuples: Tuples, *, partial: bool = False) -> None:
        """Adds rows that nothing else reads; the next `take` or `settle` computes them, once.

        With `partial`, few rows are left after combining: they are combined before they are kept or returned.
        """
        self._require_computed("added to")
        self._fresh, self._partial = tuples, partial
        self._oldest = self._oldest or self._now

    def append(self, tuples: Tuples) -> Tuples:
        """Adds rows, and returns them computed, so that others can read them."""
        self._require_computed("appended to")
        segment = self._store.write(self._aged(tuples.frame), tuples.at_most)
        if segment.rows:
            self._unique = False
            self._add(segment)
        return Tuples(_seen(self._store.frame(segment)), segment.rows, computed=True)

    def _add(self, segment: Segment) -> None:
        self._parts.append(LogPiece(segment, since=len(self._purging)))
        self._oldest = self._oldest or self._now
        self.rows += segment.rows
        if self.rows <= SMALL or (self._combine is not None and not self._key):
            if len(self._parts) > MOST_SEGMENTS:
                self._rewrite()
        elif together := _of_one_size([part.segment for part in self._parts]):
            self._merge(together)

    def take(self, punctuations: Sequence[Punctuation]) -> Tuples | None:
        """Purges the rows that the punctuations match, and returns them, combined and computed; None for none."""
        if not self._rewritable:
            self.settle()
        if self.is_empty:
            return None
        leaving = self._take_rewriting(punctuations) if self._rewritable else self._take_logically(punctuations)
        return Tuples(_seen(self._store.frame(leaving)), leaving.rows, computed=True) if leaving.rows else None

    def _take_rewriting(self, punctuations: Sequence[Punctuation]) -> Segment:
        whole = self._combined()
        if is_inline(punctuations):
            test = filter_of(punctuations) if punctuations else None
            leaving, staying = self._store.split(whole, condition(punctuations), self.at_most, test)
        else:
            leaving = self._store.write(matching(whole, punctuations), self.at_most)
            staying = self._store.write(not_matching(whole, punctuations), self.at_most)
        self._replace(staying)
        self.purged += leaving.rows
        return leaving

    def purge(self, punctuations: Sequence[Punctuation]) -> None:
        """Purges the rows that the punctuations match."""
        self._require_computed("purged")
        if self.is_empty or not punctuations:
            return
        if self.at_most <= SMALL:
            self._shrink(not_matching(self._frame(), punctuations))
        elif (located := self._located(punctuations)) is not None:
            self._remove_located(located, _restricted(punctuations))
        else:
            self._forget(punctuations, self._count_matching(punctuations))

    def _count_matching(self, punctuations: Sequence[Punctuation]) -> int:
        """Counts the kept rows that the punctuations match."""
        if is_inline(punctuations):
            # By the statistics of its files, an engine passes over rows that a condition cannot match.
            return matching(self._frame(), punctuations).count()
        # Counting the rest looks many punctuations up once for each row, not once for each table of them.
        return self.rows - not_matching(self._frame(), punctuations).count()

    def remove(self, tuples: Tuples, names: Sequence[str]) -> None:
        """Removes the rows that agree with one of the tuples on these attributes; null equals null."""
        self._require_computed("removed from")
        if self.is_empty or (tuples.exact and tuples.at_most == 0):
            return
        if self.at_most <= SMALL:
            self._shrink(anti_join(Tuples(self._frame(), self.rows), tuples, names).frame)
            return
        keys = tuples.frame.select(*map(quoted, names)).distinct()
        removed = self._store.write(keys, tuples.at_most)
        others = Tuples(self._store.frame(removed), removed.rows)
        found = (
            self._found([(names, self._store.columns(others.frame, names))]) if self._looks_up(removed.rows) else None
        )
        if found is not None:
            if (rows := self._rows_at(found, placed=True)) is not None:
                leaving = semi_join(Tuples(rows, _number(found)), others, names)
                self._remove_located(self._store.write(leaving.frame, _number(found)), names)
        elif gone := semi_join(Tuples(self._frame(), self.rows), others, names).frame.count():
            self._parts = [replace(part, removed=(*part.removed, removed), gone=None) for part in self._parts]
            self._gone(gone)

    def _shrink(self, left: Frame) -> None:
        """Rewrites the log as the rows that are left."""
        before = self.rows
        self._replace(self._store.write(left, before))
        self.purged += before - self.rows

    def _left_of(self, parts: Sequence[LogPiece]) -> Frame:
        """The rows of some parts that are left; those from which the same was removed are read together."""
        alike: dict[tuple[str, int, tuple[Segment, ...]], list[Segment]] = {}
        for part in parts:
            alike.setdefault((part.segment.struct, part.since, part.removed), []).append(part.segment)
        whole: Frame | None = None
        for (struct, since, removed), segments in alike.items():
            left = Tuples(self._store.together(segments), sum(segment.rows for segment in segments))
            for struct_of_removed in dict.fromkeys(one.struct for one in removed):
                some = [one for one in removed if one.struct == struct_of_removed]
                others = Tuples(self._store.together(some), sum(one.rows for one in some))
                left = anti_join(left, others, others.frame.columns)
            frame = self._bearing(not_matching(left.frame, self._purging[since:]), struct)
            whole = frame if whole is None else whole.union_by_name(frame)
        assert whole is not None
        return whole

    def _aged(self, frame: Frame) -> Frame:
        """New rows with this slice as their age, if rows store ages."""
        if self._now is None:
            return frame
        return frame.select("*", *map(self._now.column, self._ages))

    def _bearing(self, kept: Frame, struct: str) -> Frame:
        """Rows of a segment with this schema, with the columns for their ages that rows have now."""
        borne = _borne(struct)
        if borne == self._ages:
            return kept
        columns = {FIRST: f"CAST(NULL AS BIGINT) AS {FIRST}"}
        if self._now is not None:
            columns[SINCE] = self._now.column(SINCE)
        others = [quoted(name) for name in kept.columns if name not in AGES]
        return kept.select(*others, *(name if name in borne else columns[name] for name in self._ages))

    def _take_logically(self, punctuations: Sequence[Punctuation]) -> Segment:
        alone = self._combine is None or (bool(self._key) and self._unique)
        if alone and (located := self._located(punctuations)) is not None:
            self._remove_located(located, _restricted(punctuations))
            return located
        leaving = matching(self._frame(), punctuations)
        if self._combine is None:
            segment = self._store.write(leaving, self.rows)
            self._forget(punctuations, segment.rows)
            return segment
        gone = leaving.count()
        segment = self._store.write(self._merged(leaving), gone)
        self._forget(punctuations, gone)
        return segment

    def _forget(self, punctuations: Sequence[Punctuation], gone: int) -> None:
        """Purges logically: readers filter, until so many rows are purged that the rest is rewritten."""
        if not gone:
            return
        # For ever: purged rows stay purged, even after the punctuation has ended.
        self._purging += (p.lasting(None) for p in punctuations)
        self._gone(gone)

    def _gone(self, rows: int) -> None:
        self.purged += rows
        self.rows -= rows
        if self.rows == 0:
            self._replace(None)
        elif (
            self.rows * 2 < sum(part.segment.rows for part in self._parts)
            or max(len(part.removed) for part in self._parts) > MOST_SEGMENTS
            or not is_inline(self._purging)
        ):
            self._rewrite()

    def settle(self) -> None:
        """Computes added rows; rewrites many segments, or a small log that must be combined, as one segment."""
        if self._fresh is None:
            return
        if self._combine is not None and self._rewritable:
            self._rewrite()
            return
        fresh, self._fresh = self._fresh, None
        if self._key and self._combine is not None:
            self._add_combined(self._store.write(self._combine(self._aged(fresh.frame), self._ages), fresh.at_most))
            return
        frame = self._combine(fresh.frame, ()) if self._combine and self._partial else fresh.frame
        segment = self._store.write(self._aged(frame), fresh.at_most)
        if segment.rows:
            self._add(segment)

    def _add_combined(self, new: Segment) -> None:
        """Adds rows of different keys to a large log, combined with the kept rows of the same keys."""
        if not new.rows:
            return
        if not self._parts:
            self._unique = True
        fresh = self._store.frame(new)
        found = None
        if self._unique and self._looks_up(new.rows):
            found = self._found([(self._key, self._store.columns(fresh, self._key))])
        if self._parts and found is None:
            whole = self._merged(self._left_of(self._parts).union_by_name(fresh))
            self._replace(self._store.write(whole, self.rows + new.rows))
            return
        # A row of another key with the same hash is combined with nothing.
        if found is not None and (touched := self._computed_at(found)).rows:
            both = fresh.union_by_name(self._store.frame(touched).drop(PART, PLACE))
            new = self._store.write(self._merged(both), new.rows + touched.rows)
            purged = self.purged
            self._remove_located(touched, self._key)
            self.purged = purged
        self._add(new)

    def _combined(self) -> Frame:
        """All kept rows of a non-empty log, combined."""
        if self._combine is not None and self._fresh is not None and not self._parts:
            return self._aged(self._combine(self._fresh.frame, ()))
        return self._merged(self._frame())

    def _merged(self, rows: Frame) -> Frame:
        return rows if self._combine is None else self._combine(rows, self._ages)

    def _rewrite(self) -> None:
        self._replace(self._store.write(self._combined(), self.at_most))

    def _replace(self, segment: Segment | None) -> None:
        self._parts = [LogPiece(segment)] if segment is not None and segment.rows else []
        self.rows = sum(part.segment.rows for part in self._parts)
        self._purging, self._fresh, self._unique = [], None, True
        if not self._parts:
            self._oldest = None

    def record(self) -> LogRecord:
        """The log after the slice, for its commit."""
        self._require_computed("recorded")
        self.purged = 0
        parts = tuple(part.record(self._store) for part in self._parts)
        oldest = self._oldest if SINCE in self._ages else None
        return LogRecord(
            self.rows, parts, tuple(map(str, self._purging)), oldest, (bool(self._key) and self._unique) or None
        )

    def _require_computed(self, what: str) -> None:
        if self._fresh is not None:
            raise RuntimeError(f"a tuple log is {what} while added rows await take or settle")


def _borne(struct: str) -> tuple[str, ...]:
    """The columns for ages in a segment with this schema."""
    return tuple(name for name in AGES if name in struct)


def _seen(frame: Frame) -> Frame:
    """The rows as the operator sees them, without their ages and places."""
    return frame.drop(*AGES, PART, PLACE)


_NOTHING, _NOWHERE = Segment("", 0, ""), np.zeros(0, np.int64)


def _number(found: Sequence[Sequence[Places]]) -> int:
    return sum(len(places) for each in found for places in each)


def _restricted(punctuations: Sequence[Punctuation]) -> list[str]:
    """The names of the attributes that any of the punctuations restricts."""
    return [punctuations[0].schema[i].name for i in sorted({i for p in punctuations for i in p.restricted})]


@lru_cache(maxsize=64)
def _placed(struct: str) -> str:
    """The schema of rows with their part and place."""
    return struct_with({**types_in(struct), PART: "long", PLACE: "long"})


def _of_one_size(segments: Sequence[Segment]) -> list[Segment]:
    """What to merge next, of segments of similar size and equal columns; empty if there are too few of each size."""
    sizes: dict[tuple[int, str], list[Segment]] = {}
    for one in segments:
        size = (one.rows.bit_length() - 1) // (TOGETHER.bit_length() - 1)
        sizes.setdefault((size, one.struct), []).append(one)
    for _, alike in sorted(sizes.items()):
        together = sorted(alike, key=lambda one: one.rows) if len(alike) >= TOGETHER else []
        while sum(one.rows for one in together) > MERGED:
            together.pop()
        if len(together) > 1:
            return together
    return []


def _first(batch: pa.RecordBatch) -> Since:
    """The slice and time of the oldest row; the first row is the oldest, since both only grow."""
    ages: Any = batch[SINCE]
    return Since(*(pc.min(ages.field(name)).as_py() for name in Since._fields))


LARGEST = 0.2
"""Rows that changed are merged in every slice while they are at most this fraction of the base."""


class MergingLog(TupleLog):
    """A tuple log whose rows are always merged; the order of calls is the same."""

    def __init__(self, store: SegmentStore, declared: LogSchema, committed: LogRecord | None = None) -> None:
        """Makes an empty log, or restores it from a commit."""
        super().__init__(store, declared, committed)
        assert declared.touching is not None
        assert declared.combine is not None
        self._merging = declared.combine
        self._touching, self._names = declared.touching, [quoted(name) for name in declared.purging.names]

    def add(self, tuples: Tuples, *, partial: bool = False) -> None:
        """Adds rows that nothing else reads; a large log merges them at once, a small one with `take`."""
        if self.rows + tuples.at_most <= SMALL:
            super().add(tuples, partial=partial)
            return
        self._require_computed("added to")
        new = self._store.write(self._merging(self._aged(tuples.frame), self._ages), tuples.at_most)
        if new.rows == 0:
            return
        if not self._parts:
            self._add(new)
            return
        base, *changed = self._parts
        frame, at_most = self._store.frame(new), new.rows
        touched = self._store.write(self._touching(self._left_of([base]), frame, at_most), self.rows)
        for part in changed:
            left = self._store.write(self._left_of([part]), part.segment.rows)
            frame, at_most = frame.union_by_name(self._store.frame(left)), at_most + left.rows
        if touched.rows:
            before = self._store.frame(touched)
            gone = before.select(*self._names).distinct()
            for removed in base.removed:
                gone = gone.union_by_name(self._store.frame(removed))
            number = touched.rows + sum(removed.rows for removed in base.removed)
            base = replace(base, removed=(self._store.write(gone, number),), gone=None)
            frame, at_most = frame.union_by_name(before), at_most + touched.rows
        merged = self._store.write(self._merging(frame, self._ages), at_most)
        self.rows += new.rows + merged.rows - at_most
        self._oldest = self._oldest or self._now
        self._parts = [base, LogPiece(merged, since=len(self._purging))]
        if merged.rows > LARGEST * base.segment.rows:
            self._rewrite()
