"""Tuple log: kept rows in segments, less the purged rows; small logs are rewritten, large ones are filtered when read.

A slice appends rows, purges the rows that punctuations match, or removes given rows; the last two are logical at first:
a filter and an anti join. `record` lists the changes for the slice's commit. Each row has an age
(`xmlstream.operators.state.ages`), which its operator never sees.

A slice of few tuples *looks up* rows of a large log in its parts (`xmlstream.operators.state.log_parts`), where it can:
the rows that may agree with its tuples, or that punctuations on values may match. Rows that it purges so are removed
from their parts by key. Other purges, such as those by ranges, are filters for every reader. If combining keeps keys
apart (`LogSchema.key`), new rows are combined with the kept rows of their keys, and no key is in two parts.

A *merging log* keeps rows for which new rows change the values that punctuations match, such as the ends of a session.
No row may be purged before it is merged. A small log is merged whole. In a large one, most rows lie in a base that is
not rewritten. The base rows that new rows touch are taken out and merged with them and with the rows that changed
before, which are few. When they are no longer few, all rows become a new base.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute

from xmlstream.dataclasses import replace
from xmlstream.operators.frames.held import filter_of
from xmlstream.operators.frames.matching import condition, is_inline, keys_in, matching, not_matching
from xmlstream.operators.state.ages import AGES, FIRST, SINCE, PurgeAfter, Since
from xmlstream.operators.state.log_parts import MOST_SEGMENTS, PART, PLACE, Found, LogParts, seen
from xmlstream.operators.state.slice_tuples import Tuples, anti_join, semi_join
from xmlstream.operators.state.state_schema import LogSchema
from xmlstream.operators.storage.records import LogRecord
from xmlstream.operators.storage.segments import Segment, SegmentStore
from xmlstream.punct_ns.punctuation import Punctuation

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame


pc: Any = pyarrow.compute

SMALL = 100_000
"""The number of rows up to which a log is rewritten after a purge, rather than filtered when read."""


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
        self._kept = LogParts(store, declared.purging, committed)
        self.purged = 0
        self._unique = bool(committed.unique)

    def begin(self, now: Since, *, may_be_overdue: bool = False) -> None:
        """Begins a slice; from the first slice on, rows store their ages.

        With `may_be_overdue`, rows without the age that this needs count from now on.
        """
        ages = AGES if may_be_overdue else (FIRST,)
        begins = SINCE in ages and SINCE not in self._kept.ages
        self._kept.now, self._kept.ages = now, ages
        bears = [SINCE in part.segment.struct for part in self._kept.parts]
        if begins and not all(bears):
            self._kept.oldest = Since(0, 0) if any(bears) else now
            self._rewrite()

    def overdue(self, limit: PurgeAfter) -> Segment | None:
        """Purges the rows that are overdue in the slice that has begun, and returns them; None for none."""
        self._require_computed("purged")
        now, oldest = self._kept.now, self._kept.oldest
        assert now is not None
        if oldest is None or not limit.is_due(oldest, now, self.rows):
            return None
        whole = self._combined()
        leaving, staying = self._store.split(whole, limit.condition(now), self.at_most)
        self._replace(staying)
        self.purged += leaving.rows
        self._kept.oldest = min(
            (_first(batch) for batch in self._store.batches(staying, [SINCE]) if len(batch)), default=None
        )
        return leaving if leaving.rows else None

    @property
    def rows(self) -> int:
        """The number of kept rows, without those that are not computed yet."""
        return self._kept.rows

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept or added in this slice; added rows count, even if they turn out to be none."""
        return not self._kept.parts and self._fresh is None

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
        return None if self.is_empty else Tuples(seen(self._frame()), self.at_most, exact=self._fresh is None)

    def with_ages(self, *, combined: bool) -> Frame | None:
        """All kept rows with their ages, combined across segments or as they lie there; None for an empty log."""
        if self.is_empty:
            return None
        return self._combined() if combined else self._frame().drop(PART, PLACE)

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
        return tuples, self._at(self._kept.found([(names, wanted)]))

    def near_punctuations(self, punctuations: Sequence[Punctuation]) -> Tuples | None:
        """The kept rows that the punctuations match, and perhaps others; None if there are none."""
        return self._at(self._found_by(punctuations))

    def _at(self, found: Found | None) -> Tuples | None:
        """The kept rows at places; all rows if none were looked up."""
        if found is None:
            return self.whole()
        rows = self._kept.rows_at(found)
        return None if rows is None else rows.some(seen(rows.frame))

    def _looks_up(self, at_most: int) -> bool:
        return self.rows > SMALL and self._kept.are_few(at_most) and self._fresh is None

    def _found_by(self, punctuations: Sequence[Punctuation]) -> Found | None:
        """The places of the kept rows that the punctuations may match; None if all rows must be read."""
        if not punctuations or not self._looks_up(1) or (wanted := keys_in(punctuations)) is None:
            return None
        return self._kept.found(wanted) if self._looks_up(sum(len(table) for _, table in wanted)) else None

    def _purge_found(self, punctuations: Sequence[Punctuation]) -> Segment | None:
        """Purges the rows that the punctuations match, and returns them; None if all rows must be read for that."""
        if (found := self._found_by(punctuations)) is None:
            return None
        located = self._kept.computed_at(found, punctuations)
        self._purge_located(located, _restricted(punctuations))
        return located

    def _purge_located(self, located: Segment, names: Sequence[str]) -> None:
        self._kept.remove_located(located, names)
        self.purged += located.rows

    def _frame(self) -> Frame:
        """All kept rows of a non-empty log, with columns in one order, since combining may change it."""
        whole = self._kept.left_of(self._kept.parts) if self._kept.parts else None
        if self._fresh is not None:
            fresh = self._kept.aged(self._fresh.frame)
            whole = fresh if whole is None else whole.union_by_name(fresh)
        assert whole is not None
        return whole

    def add(self, tuples: Tuples, *, partial: bool = False) -> None:
        """Adds rows that nothing else reads; the next `take` or `settle` computes them, once.

        With `partial`, few rows are left after combining: they are combined before they are kept or returned.
        """
        self._require_computed("added to")
        self._fresh, self._partial = tuples, partial

    def append(self, tuples: Tuples) -> Tuples:
        """Adds rows, and returns them computed, so that others can read them."""
        self._require_computed("appended to")
        segment = self._store.write(self._kept.aged(tuples.frame), tuples.at_most)
        if segment.rows:
            self._unique = False
            self._add(segment)
        return Tuples(seen(self._store.frame(segment)), segment.rows, computed=True)

    def _add(self, segment: Segment) -> None:
        self._kept.add(segment)
        if self.rows > SMALL and (self._combine is None or self._key):
            self._kept.merge()
        elif len(self._kept.parts) > MOST_SEGMENTS:
            self._rewrite()

    def take(self, punctuations: Sequence[Punctuation]) -> Tuples | None:
        """Purges the rows that the punctuations match, and returns them, combined and computed; None for none."""
        if not self._rewritable:
            self.settle()
        if self.is_empty:
            return None
        leaving = self._take_rewriting(punctuations) if self._rewritable else self._take_logically(punctuations)
        return Tuples(seen(self._store.frame(leaving)), leaving.rows, computed=True) if leaving.rows else None

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
        elif self._purge_found(punctuations) is None:
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
        keys = tuples.frame.select(*names).distinct()
        removed = self._store.write(keys, tuples.at_most)
        others = Tuples(self._store.frame(removed), removed.rows)
        wanted = names, self._store.columns(others.frame, names)
        found = self._kept.found([wanted]) if self._looks_up(removed.rows) else None
        if found is not None:
            if (rows := self._kept.rows_at(found, placed=True)) is not None:
                leaving = semi_join(rows, others, names)
                self._purge_located(self._store.write(leaving.frame, leaving.at_most), names)
        elif gone := semi_join(Tuples(self._frame(), self.rows), others, names).frame.count():
            self._kept.remove(removed)
            self._gone(gone)

    def _shrink(self, left: Frame) -> None:
        """Rewrites the log as the rows that are left."""
        before = self.rows
        self._replace(self._store.write(left, before))
        self.purged += before - self.rows

    def _take_logically(self, punctuations: Sequence[Punctuation]) -> Segment:
        alone = self._combine is None or (bool(self._key) and self._unique)
        if alone and (located := self._purge_found(punctuations)) is not None:
            return located
        leaving = matching(self._frame(), punctuations)
        if self._combine is None:
            segment = self._store.write(leaving, self.rows)
            gone = segment.rows
        else:
            gone = leaving.count()
            segment = self._store.write(self._merged(leaving), gone)
        self._forget(punctuations, gone)
        return segment

    def _forget(self, punctuations: Sequence[Punctuation], gone: int) -> None:
        """Purges logically: readers filter, until so many rows are purged that the rest is rewritten."""
        if not gone:
            return
        # For ever: purged rows stay purged, even after the punctuation has ended.
        self._kept.purging += (p.lasting(None) for p in punctuations)
        self._gone(gone)

    def _gone(self, rows: int) -> None:
        self.purged += rows
        self._kept.rows -= rows
        if self.rows == 0:
            self._replace(None)
        elif self._kept.is_worn:
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
            self._add_combined(
                self._store.write(self._combine(self._kept.aged(fresh.frame), self._kept.ages), fresh.at_most)
            )
            return
        frame = self._combine(fresh.frame, ()) if self._combine and self._partial else fresh.frame
        segment = self._store.write(self._kept.aged(frame), fresh.at_most)
        if segment.rows:
            self._add(segment)

    def _add_combined(self, new: Segment) -> None:
        """Adds rows of different keys to a large log, combined with the kept rows of the same keys."""
        if not new.rows:
            return
        if not self._kept.parts:
            self._unique = True
        fresh = self._store.frame(new)
        found = None
        if self._unique and self._looks_up(new.rows):
            found = self._kept.found([(self._key, self._store.columns(fresh, self._key))])
        if self._kept.parts and found is None:
            whole = self._merged(self._kept.left_of(self._kept.parts).union_by_name(fresh))
            self._replace(self._store.write(whole, self.rows + new.rows))
            return
        # A row of another key with the same hash is combined with nothing.
        if found is not None and (touched := self._kept.computed_at(found)).rows:
            both = fresh.union_by_name(self._store.frame(touched).drop(PART, PLACE))
            new = self._store.write(self._merged(both), new.rows + touched.rows)
            self._kept.remove_located(touched, self._key)
        self._add(new)

    def _combined(self) -> Frame:
        """All kept rows of a non-empty log, combined."""
        if self._combine is not None and self._fresh is not None and not self._kept.parts:
            return self._kept.aged(self._combine(self._fresh.frame, ()))
        return self._merged(self._frame())

    def _merged(self, rows: Frame) -> Frame:
        return rows if self._combine is None else self._combine(rows, self._kept.ages)

    def _rewrite(self) -> None:
        self._replace(self._store.write(self._combined(), self.at_most))

    def _replace(self, segment: Segment | None) -> None:
        self._kept.become(segment)
        self._fresh, self._unique = None, True

    def record(self) -> LogRecord:
        """The log after the slice, for its commit."""
        self._require_computed("recorded")
        self.purged = 0
        return self._kept.record(unique=(bool(self._key) and self._unique) or None)

    def _require_computed(self, what: str) -> None:
        if self._fresh is not None:
            raise RuntimeError(f"a tuple log is {what} while added rows await take or settle")


def _restricted(punctuations: Sequence[Punctuation]) -> list[str]:
    """The names of the attributes that any of the punctuations restricts."""
    return [punctuations[0].schema[i].name for i in sorted({i for p in punctuations for i in p.restricted})]


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
        self._touching, self._names = declared.touching, declared.purging.names

    def add(self, tuples: Tuples, *, partial: bool = False) -> None:
        """Adds rows that nothing else reads; a large log merges them at once, a small one with `take`."""
        if self.rows + tuples.at_most <= SMALL:
            super().add(tuples, partial=partial)
            return
        self._require_computed("added to")
        new = self._store.write(self._merging(self._kept.aged(tuples.frame), self._kept.ages), tuples.at_most)
        if new.rows == 0:
            return
        if not self._kept.parts:
            self._add(new)
            return
        base, *changed = self._kept.parts
        frame, at_most = self._store.frame(new), new.rows
        touched = self._store.write(self._touching(self._kept.left_of([base]), frame, at_most), self.rows)
        for part in changed:
            left = self._store.write(self._kept.left_of([part]), part.segment.rows)
            frame, at_most = frame.union_by_name(self._store.frame(left)), at_most + left.rows
        if touched.rows:
            before = self._store.frame(touched)
            gone = before.select(*self._names).distinct()
            for removed in base.removed:
                gone = gone.union_by_name(self._store.frame(removed))
            number = touched.rows + sum(removed.rows for removed in base.removed)
            base = replace(base, removed=(self._store.write(gone, number),), gone=None)
            frame, at_most = frame.union_by_name(before), at_most + touched.rows
        merged = self._store.write(self._merging(frame, self._kept.ages), at_most)
        self._kept.parts = [base]
        self._kept.rows += new.rows - at_most
        self._kept.add(merged)
        if merged.rows > LARGEST * base.segment.rows:
            self._rewrite()
