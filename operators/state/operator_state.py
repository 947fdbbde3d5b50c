"""What an operator keeps from slice to slice: named sets of punctuations, and kept tuples in a log of segments.

Everything that a slice changes is listed by `OperatorState.record` for the slice's commit and can be restored from
there; nothing counts before that commit, and a slice that is run again after a crash overwrites what it left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from operators.state.behaviour import Slice, Tuples
from operators.state.segments import SegmentStore
from operators.state.tuple_log import Combine, TupleLog
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.schema import Schema
from punct_ns.slices import quoted

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame


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


class OperatorState:
    """The state of one operator of a running query; made anew, and restored, whenever the query starts.

    `inputs` are the schemas of the operator's inputs. `new` and `closing` are handed from one behaviour to the next
    within a slice: by input, the new tuples, computed, and what newly holds. `notes` are facts as JSON has them, few,
    since every commit writes them whole. `time` is the one recorded with the slice; of its tuples, `set_aside` counts
    those that go no further, and `letters` are those of them that are kept as dead letters.
    """

    def __init__(
        self, store: SegmentStore, inputs: tuple[Schema, ...], committed: dict[str, Any] | None = None
    ) -> None:
        self.inputs = inputs
        self.new: dict[int, Tuples | None] = {}
        self.closing: dict[int, list[Punctuation]] = {}
        self._store = store
        self._committed = committed or {"sets": {}, "kept": {}}
        self.time: datetime | None = None
        self.set_aside = 0
        self.letters: list[dict[str, Any]] = []
        self.notes: dict[str, Any] = dict(self._committed.get("notes", {}))
        self._sets: dict[str, HeldPunctuations] = {}
        self._kept: dict[str, TupleLog] = {}

    def begin(self, time: datetime) -> None:
        """A slice begins, at its recorded time."""
        self.time, self.set_aside, self.letters = time, 0, []

    def punctuations(self, name: str, schema: Schema) -> HeldPunctuations:
        """The set of that name; over `schema`, which must always be the same."""
        if name not in self._sets:
            held = self._sets[name] = HeldPunctuations(schema)
            held.restore(self._committed["sets"].get(name, ()))
        return self._sets[name]

    def kept(self, name: str, schema: Schema, combine: Combine | None = None) -> TupleLog:
        """The kept rows of that name; `schema` is that of the punctuations that purge them."""
        if name not in self._kept:
            kept = self._kept[name] = TupleLog(self._store, combine)
            if name in self._committed["kept"]:
                kept.restore(self._committed["kept"][name], schema)
        return self._kept[name]

    def nothing(self, input_: int = 0) -> DataFrame:
        """No tuples of an input."""
        return self._store.nothing(self.inputs[input_].ddl())

    def arrive(self, inputs: Sequence[Slice]) -> None:
        """Computes the new tuples of each input, once, into `new`."""
        for i, slice_ in enumerate(inputs):
            arrived = None
            if slice_.tuples is not None:
                names = map(quoted, self.inputs[i].names)
                arrived = self.computed(replace(slice_.tuples, frame=slice_.tuples.frame.select(*names)))
            self.new[i] = arrived if arrived is not None and arrived.at_most else None

    def computed(self, tuples: Tuples) -> Tuples:
        """The tuples, computed once, so that several may read them; they are gone after the slice."""
        if tuples.computed:
            return tuples
        segment = self._store.write(tuples.frame, tuples.at_most)
        return Tuples(self._store.frame(segment), segment.rows, computed=True)

    @property
    def rows(self) -> int:
        """Kept rows, all together."""
        logs = self._committed["kept"].items()
        untouched: int = sum(log["rows"] for name, log in logs if name not in self._kept)
        return untouched + sum(kept.rows for kept in self._kept.values())

    @property
    def purged(self) -> int:
        """Rows purged in this slice."""
        return sum(kept.purged for kept in self._kept.values())

    @property
    def punctuations_held(self) -> int:
        """What all sets hold: ranges, single values, and punctuations that restrict several attributes."""
        return sum(held.set.extent for held in self._sets.values())

    def record(self, whole: bool) -> dict[str, Any]:
        """What the slice changed (`whole`: everything), for its commit."""
        untouched = self._committed["sets"] if whole else {}
        return {
            "sets": {**untouched, **{name: held.record(whole) for name, held in self._sets.items()}},
            "kept": {**self._committed["kept"], **{name: kept.record() for name, kept in self._kept.items()}},
            "notes": dict(self.notes),
        }
