"""What an operator keeps from slice to slice: named sets of punctuations, and kept tuples in a log of segments.

Everything that a slice changes is listed by `OperatorState.record` for the slice's commit and can be restored from
there; nothing counts before that commit, and a slice that is run again after a crash overwrites what it left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from operators.behaviour import Tuples
from operators.segments import Segment, SegmentStore
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.schema import Schema
from punct_ns.slices import condition, is_inline, matching, not_matching

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SMALL = 100_000
"""Rows up to which kept tuples are rewritten when some are purged, rather than filtered when read."""

MANY = 12
"""Segments of one log beyond which they are rewritten as one."""

Combine = Callable[["DataFrame"], "DataFrame"]


class HeldPunctuations:
    """A set of punctuations that outlives the slice; remembers what the slice added, for its commit."""

    def __init__(self, schema: Schema) -> None:
        self.set = PunctuationSet(schema)
        self._schema = schema
        self._added: list[str] = []

    def absorb(self, punctuations: Iterable[Punctuation]) -> list[Punctuation]:
        """Adds them; returns, minimal, those that said something new."""
        new = self.set.add_all(punctuations)
        self._added += map(str, new)
        return new

    def record(self, whole: bool) -> list[str]:
        """What this slice added, or the whole set, in notation."""
        added, self._added = self._added, []
        return [str(p) for p in self.set] if whole else added

    def restore(self, texts: Iterable[str]) -> None:
        """Adds what a commit recorded."""
        self.set.add_all(Punctuation.parse(text, self._schema) for text in texts)


class Kept:
    """Kept rows: a log of segments, less what punctuations purged.

    `combine` maps the rows of several segments to what they mean together (partial aggregates of a group to one); it
    must be idempotent and may be applied to any part of the rows that no key straddles.
    """

    def __init__(self, store: SegmentStore, combine: Combine | None = None) -> None:
        self._store = store
        self._combine = combine
        self._segments: list[Segment] = []
        self._fresh: Tuples | None = None
        self._purging: list[Punctuation] = []
        self.rows = 0
        self.purged = 0

    @property
    def is_empty(self) -> bool:
        """Nothing is kept, not even rows added in this slice."""
        return not self._segments and self._fresh is None

    @property
    def at_most(self) -> int:
        """An upper bound of the kept rows, those added in this slice included."""
        return self.rows + (self._fresh.at_most if self._fresh else 0)

    def frame(self) -> DataFrame:
        """All kept rows, not combined across segments."""
        frames = [not_matching(self._store.frame(s), self._purging) for s in self._segments]
        if self._fresh is not None:
            frames.append(self._fresh.frame)
        whole = frames[0]
        for part in frames[1:]:
            whole = whole.unionAll(part)
        return whole

    def add(self, tuples: Tuples) -> None:
        """Adds rows that nobody else reads; they are computed once, with whatever `take` or `settle` does to them."""
        self._fresh = tuples

    def append(self, tuples: Tuples) -> Tuples:
        """Adds rows and returns them computed, so that others may read them."""
        segment = self._store.write(tuples.frame, tuples.at_most)
        if segment.rows == 0:
            return Tuples(self._store.frame(segment), 0)
        self._segments.append(segment)
        self.rows += segment.rows
        if len(self._segments) > MANY:
            self._rewrite()
        return Tuples(self._store.frame(segment), segment.rows)

    def take(self, punctuations: Sequence[Punctuation]) -> Tuples:
        """Purges the rows that the punctuations match, and returns them, combined and computed.

        Must not be called on an empty log.
        """
        if self.at_most > SMALL:
            self.settle()
        if self.at_most > SMALL:
            return self._take_logically(punctuations)
        whole = self._combined(self.frame())
        if is_inline(punctuations):
            leaving, staying = self._store.split(whole, condition(punctuations), self.at_most)
        else:
            leaving = self._store.write(matching(whole, punctuations), self.at_most)
            staying = self._store.write(not_matching(whole, punctuations), self.at_most)
        self._replace(staying)
        self.purged += leaving.rows
        return Tuples(self._store.frame(leaving), leaving.rows)

    def purge(self, punctuations: Sequence[Punctuation]) -> None:
        """Purges the rows that the punctuations match."""
        if self.is_empty or not punctuations:
            return
        if self.at_most <= SMALL:
            before = self.rows
            self._replace(self._store.write(not_matching(self.frame(), punctuations), before))
            self.purged += before - self.rows
        else:
            self._forget(punctuations, matching(self.frame(), punctuations).count())

    def _take_logically(self, punctuations: Sequence[Punctuation]) -> Tuples:
        leaving = matching(self.frame(), punctuations)
        gone = leaving.count()
        segment = self._store.write(self._combined(leaving), gone)
        self._forget(punctuations, gone)
        return Tuples(self._store.frame(segment), segment.rows)

    def _forget(self, punctuations: Sequence[Punctuation], gone: int) -> None:
        """Purges logically: readers filter, until so much is purged that the rest is rewritten."""
        if not gone:
            return
        self._purging += punctuations
        self.purged += gone
        self.rows -= gone
        if self.rows == 0:
            self._replace(None)
        elif self.rows * 2 < sum(s.rows for s in self._segments) or not is_inline(self._purging):
            self._rewrite()

    def settle(self) -> None:
        """Computes rows added in this slice; a log that is many segments, or small and to be combined, becomes one."""
        if self._fresh is None:
            return
        if self._combine is not None and self.at_most <= SMALL:
            self._rewrite()
            return
        fresh, self._fresh = self._fresh, None
        self.append(fresh)

    def _combined(self, frame: DataFrame) -> DataFrame:
        return self._combine(frame) if self._combine is not None else frame

    def _rewrite(self) -> None:
        self._replace(self._store.write(self._combined(self.frame()), self.at_most))

    def _replace(self, segment: Segment | None) -> None:
        self._segments = [segment] if segment is not None and segment.rows else []
        self.rows = sum(s.rows for s in self._segments)
        self._purging, self._fresh = [], None

    def record(self) -> dict[str, Any]:
        """What this log is after the slice."""
        self.purged = 0
        return {
            "rows": self.rows,
            "segments": [self._store.record(s) for s in self._segments],
            "purging": [str(p) for p in self._purging],
        }

    def restore(self, record: dict[str, Any], schema: Schema) -> None:
        """Becomes what a commit recorded; `schema` is that of the purging punctuations."""
        self.rows = record["rows"]
        self._segments = [self._store.restore(s) for s in record["segments"]]
        self._purging = [Punctuation.parse(text, schema) for text in record["purging"]]


class OperatorState:
    """The state of one operator of a running query; made anew, and restored, whenever the query starts.

    `inputs` are the schemas of the operator's inputs; `closing` is what this slice completed, handed from one behaviour
    to the next.
    """

    def __init__(
        self, store: SegmentStore, inputs: tuple[Schema, ...], committed: dict[str, Any] | None = None
    ) -> None:
        self.inputs = inputs
        self.closing: list[Punctuation] = []
        self._store = store
        self._committed = committed or {"sets": {}, "kept": {}}
        self._sets: dict[str, HeldPunctuations] = {}
        self._kept: dict[str, Kept] = {}

    def punctuations(self, name: str, schema: Schema) -> HeldPunctuations:
        """The set of that name; over `schema`, which must always be the same."""
        if name not in self._sets:
            held = self._sets[name] = HeldPunctuations(schema)
            held.restore(self._committed["sets"].get(name, ()))
        return self._sets[name]

    def kept(self, name: str, schema: Schema, combine: Combine | None = None) -> Kept:
        """The kept rows of that name; `schema` is that of the punctuations that purge them."""
        if name not in self._kept:
            kept = self._kept[name] = Kept(self._store, combine)
            if name in self._committed["kept"]:
                kept.restore(self._committed["kept"][name], schema)
        return self._kept[name]

    def nothing(self) -> DataFrame:
        """No tuples of the first input."""
        return self._store.nothing(self.inputs[0].ddl())

    @property
    def rows(self) -> int:
        """Kept rows, all together."""
        return sum(kept.rows for kept in self._kept.values())

    @property
    def purged(self) -> int:
        """Rows purged in this slice."""
        return sum(kept.purged for kept in self._kept.values())

    @property
    def punctuations_held(self) -> int:
        """Punctuations in all sets, each set minimal."""
        return sum(len(held.set) for held in self._sets.values())

    def record(self, whole: bool) -> dict[str, Any]:
        """What the slice changed (`whole`: everything), for its commit."""
        untouched = self._committed["sets"] if whole else {}
        return {
            "sets": {**untouched, **{name: held.record(whole) for name, held in self._sets.items()}},
            "kept": {**self._committed["kept"], **{name: kept.record() for name, kept in self._kept.items()}},
        }
