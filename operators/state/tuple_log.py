"""Tuple log: kept rows in segments, less the purged rows; small logs are rewritten, large ones are filtered when read.

A slice appends rows, purges the rows that punctuations match, or removes given rows; the last two are logical at first:
a filter and an anti join. `record` lists the changes for the slice's commit. Each row has an age
(`xmlstream.operators.state.ages`), which its operator never sees. A *part* of a log is a segment, less the rows removed
and purged since they came.

A *merging log* keeps rows for which new rows change the values that punctuations match, such as the ends of a session.
No row may be purged before it is merged. A small log is merged whole. In a large one, most rows lie in a base that is
not rewritten. The base rows that new rows touch are taken out and merged with them and with the rows that changed
before, which are few. When they are no longer few, all rows become a new base.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute

from xmlstream.operators.frames.held import filter_of
from xmlstream.operators.frames.matching import condition, is_inline, matching, not_matching
from xmlstream.operators.state.ages import AGES, FIRST, SINCE, PurgeAfter, Since
from xmlstream.operators.state.slice_tuples import Tuples, anti_join, semi_join
from xmlstream.operators.state.state_schema import LogSchema
from xmlstream.operators.storage.records import LogRecord, PartRecord
from xmlstream.operators.storage.segments import Segment, SegmentStore
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.slices import quoted

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame


@dataclass(frozen=True, slots=True)
class LogPiece:
    """A segment, the rows removed from it since, and the number of purges of the log that came before it."""

    segment: Segment
    removed: tuple[Segment, ...] = ()
    since: int = 0

    def left(self, store: SegmentStore, purging: Sequence[Punctuation]) -> Frame:
        """The remaining rows, given all punctuations that have purged the log."""
        left = Tuples(store.frame(self.segment), self.segment.rows)
        for removed in self.removed:
            others = Tuples(store.frame(removed), removed.rows)
            left = anti_join(left, others, others.frame.columns)
        return not_matching(left.frame, purging[self.since :])

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
"""The number of segments of a log, or of removals from a segment, beyond which they are rewritten as one."""


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
        self._store, self._combine = store, declared.combine
        self._fresh: Tuples | None = None
        self._partial = False
        self._purging = [Punctuation.parse(text, declared.purging) for text in committed.purging]
        self._parts = [LogPiece.restored(part, store) for part in committed.segments]
        self.rows = committed.rows
        self.purged = 0
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

    def _frame(self) -> Frame:
        """All kept rows of a non-empty log, with columns in one order, since combining may change it."""
        frames = [self._left_of(part) for part in self._parts]
        if self._fresh is not None:
            frames.append(self._aged(self._fresh.frame))
        whole = frames[0]
        for part in frames[1:]:
            whole = whole.union_by_name(part)
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
            self._add(segment)
        return Tuples(_seen(self._store.frame(segment)), segment.rows, computed=True)

    def _add(self, segment: Segment) -> None:
        self._parts.append(LogPiece(segment, since=len(self._purging)))
        self._oldest = self._oldest or self._now
        self.rows += segment.rows
        if len(self._parts) > MOST_SEGMENTS:
            self._rewrite()

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
        else:
            # Counting the rest looks many punctuations up once for each row, not once for each table of them.
            self._forget(punctuations, self.rows - not_matching(self._frame(), punctuations).count())

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
        if gone := semi_join(Tuples(self._frame(), self.rows), others, names).frame.count():
            self._parts = [replace(part, removed=(*part.removed, removed)) for part in self._parts]
            self._gone(gone)

    def _shrink(self, left: Frame) -> None:
        """Rewrites the log as the rows that are left."""
        before = self.rows
        self._replace(self._store.write(left, before))
        self.purged += before - self.rows

    def _left_of(self, part: LogPiece) -> Frame:
        left = part.left(self._store, self._purging)
        borne = tuple(name for name in AGES if name in part.segment.struct)
        return left if borne == self._ages else self._bearing(left, borne)

    def _aged(self, frame: Frame) -> Frame:
        """New rows with this slice as their age, if rows store ages."""
        if self._now is None:
            return frame
        return frame.select("*", *map(self._now.column, self._ages))

    def _bearing(self, kept: Frame, borne: Sequence[str]) -> Frame:
        """Kept rows, whose ages have the columns `borne`, with the columns that rows have now."""
        columns = {FIRST: f"CAST(NULL AS BIGINT) AS {FIRST}"}
        if self._now is not None:
            columns[SINCE] = self._now.column(SINCE)
        own = [quoted(name) for name in kept.columns if name not in AGES]
        return kept.select(*own, *(name if name in borne else columns[name] for name in self._ages))

    def _take_logically(self, punctuations: Sequence[Punctuation]) -> Segment:
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
        frame = self._combine(fresh.frame, ()) if self._combine and self._partial else fresh.frame
        segment = self._store.write(self._aged(frame), fresh.at_most)
        if segment.rows:
            self._add(segment)

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
        self._purging, self._fresh = [], None
        if not self._parts:
            self._oldest = None

    def record(self) -> LogRecord:
        """The log after the slice, for its commit."""
        self._require_computed("recorded")
        self.purged = 0
        parts = tuple(part.record(self._store) for part in self._parts)
        return LogRecord(
            self.rows, parts, tuple(map(str, self._purging)), self._oldest if SINCE in self._ages else None
        )

    def _require_computed(self, what: str) -> None:
        if self._fresh is not None:
            raise RuntimeError(f"a tuple log is {what} while added rows await take or settle")


def _seen(frame: Frame) -> Frame:
    """The rows as the operator sees them, without their ages."""
    return frame.drop(*AGES)


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
        touched = self._store.write(self._touching(self._left_of(base), frame, at_most), self.rows)
        for part in changed:
            left = self._store.write(self._left_of(part), part.segment.rows)
            frame, at_most = frame.union_by_name(self._store.frame(left)), at_most + left.rows
        if touched.rows:
            before = self._store.frame(touched)
            gone = before.select(*self._names).distinct()
            for removed in base.removed:
                gone = gone.union_by_name(self._store.frame(removed))
            number = touched.rows + sum(removed.rows for removed in base.removed)
            base = replace(base, removed=(self._store.write(gone, number),))
            frame, at_most = frame.union_by_name(before), at_most + touched.rows
        merged = self._store.write(self._merging(frame, self._ages), at_most)
        self.rows += new.rows + merged.rows - at_most
        self._oldest = self._oldest or self._now
        self._parts = [base, LogPiece(merged, since=len(self._purging))]
        if merged.rows > LARGEST * base.segment.rows:
            self._rewrite()
