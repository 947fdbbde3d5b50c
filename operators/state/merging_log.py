"""Merging log: kept rows of which new ones change what punctuations speak of, such as the ends of a session.

No row may be purged before it is merged. Few rows are merged whole. Of many, most lie in a base that is not written
again: those of them that new rows touch are taken out, and are merged with these and with what changed before, which
is few rows. When that is no longer so, all become a new base.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from operators.state import tuple_log
from operators.state.behaviour import Tuples
from operators.state.log_part import Part
from operators.state.segments import SegmentStore
from operators.state.state_schema import LogSchema
from operators.state.tuple_log import TupleLog
from punct_ns.slices import quoted

LARGEST = 0.2
"""The part of a base, in rows, up to which those that changed are merged with every slice."""


class MergingLog(TupleLog):
    """A tuple log whose rows are always merged; what it may be asked to do, and when, is the same."""

    def __init__(self, store: SegmentStore, declared: LogSchema, committed: dict[str, Any] | None = None) -> None:
        """Make it, empty or as a commit recorded it."""
        super().__init__(store, declared, committed)
        assert declared.touching is not None
        assert declared.combine is not None
        self._merging = declared.combine
        self._touching, self._names = declared.touching, [quoted(name) for name in declared.purging.names]

    def add(self, tuples: Tuples, *, partial: bool = False) -> None:
        """Adds rows that nobody else reads; among many kept ones they are merged at once, else with `take`."""
        if self.rows + tuples.at_most <= tuple_log.SMALL:
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
            frame, at_most = frame.unionByName(self._store.frame(left)), at_most + left.rows
        if touched.rows:
            before = self._store.frame(touched)
            gone = before.select(*self._names).dropDuplicates()
            for removed in base.removed:
                gone = gone.unionByName(self._store.frame(removed))
            number = touched.rows + sum(removed.rows for removed in base.removed)
            base = replace(base, removed=(self._store.write(gone, number),))
            frame, at_most = frame.unionByName(before), at_most + touched.rows
        merged = self._store.write(self._merging(frame, self._ages), at_most)
        self.rows += new.rows + merged.rows - at_most
        self._oldest = self._oldest or self._now
        self._parts = [base, Part(merged, since=len(self._purging))]
        if merged.rows > LARGEST * base.segment.rows:
            self._rewrite()
