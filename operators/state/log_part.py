"""Part of a tuple log: a segment, less what was removed and purged from the log since its rows came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from operators.state.row_joins import anti_join
from operators.state.segments import Segment, SegmentStore
from punct_ns.punctuation import Punctuation
from punct_ns.slices import not_matching

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Part:
    """A segment, the rows removed from it since, and from which on the log's purges are later than it."""

    segment: Segment
    removed: tuple[Segment, ...] = ()
    since: int = 0

    def left(self, store: SegmentStore, purging: Sequence[Punctuation]) -> DataFrame:
        """The rows that are left, of a log that was purged by these punctuations."""
        left = store.frame(self.segment)
        for removed in self.removed:
            others = store.frame(removed)
            left = anti_join(left, others, others.columns, removed.rows)
        return not_matching(left, purging[self.since :])

    def record(self, store: SegmentStore) -> dict[str, Any]:
        """What `restored` needs; its segments outlive the process."""
        removed = [store.record(segment) for segment in self.removed]
        return {**store.record(self.segment), "removed": removed, "since": self.since}

    @staticmethod
    def restored(record: dict[str, Any], store: SegmentStore) -> Part:
        """The part of an earlier process."""
        removed = tuple(store.restore(segment) for segment in record["removed"])
        return Part(store.restore(record), removed, record.get("since", 0))
