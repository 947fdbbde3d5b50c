"""Punctuations that a source has sent, and when: from the commit records since the last complete one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from xmlstream.operators.state.closed_set import ClosedSet, added_punctuations
from xmlstream.operators.state.expiring_set import Entry
from xmlstream.operators.storage.records import Record
from xmlstream.punct_ns.lifespan import Lifespan
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema
from xmlstream.runtime.checkpoint import Commit
from xmlstream.sources.xml.grammar.lifespans import has_closed


@dataclass(frozen=True, slots=True)
class SliceTime(Record):
    """A slice and its recorded time; `or_before` if it may have been an earlier slice."""

    slice: int
    time: datetime
    or_before: bool = False

    @staticmethod
    def of(record: Commit, *, or_before: bool = False) -> SliceTime:
        """The slice and time of a commit record."""
        return SliceTime(record.slice, record.time, or_before)


class SentPunctuations:
    """The punctuations that a source, or a rule, has sent, and when.

    Args:
        records: Commit records, from a complete one on.
        name: Name of the source or the rule in the records.
        schema: Schema of the punctuations.
    """

    def __init__(self, records: Sequence[Commit], name: str, schema: Schema) -> None:
        self._schema = schema
        self._added = [
            (SliceTime.of(record, or_before=i == 0 and record.slice > 0), record.state(name).sets.get("added", ()))
            for i, record in enumerate(records)
        ]
        every = (p for _, entries in self._added for p in added_punctuations(entries, schema))
        self._lasting = PunctuationSet(schema, (p for p in every if p.lifespan is None))
        self._now = self._added[-1][0].time
        self._held: ClosedSet | None = None

    def whole(self) -> PunctuationSet:
        """All punctuations that hold as of the last commit."""
        return PunctuationSet(self._schema, self._parsed(text for _, texts in self._added for text in texts))

    def when(self, ps: Iterable[Punctuation]) -> dict[Punctuation, SliceTime]:
        """The slice since which each punctuation is covered; those that are not covered are left out."""
        slices: dict[Punctuation, SliceTime] = {}
        open_, sent = list(dict.fromkeys(ps)), PunctuationSet(self._schema)
        for time, texts in self._added:
            sent.add_all(self._parsed(texts))
            slices |= {p: time for p in open_ if sent.covers(p)}
            open_ = [p for p in open_ if p not in slices]
            if not open_:
                break
        return slices

    def lifespan(self, p: Punctuation) -> Lifespan | None:
        """The lifespan of the punctuations that cover this one; None for ever."""
        if self._held is None:
            self._held = ClosedSet(self._schema)
            self._held.absorb(p for _, entries in self._added for p in added_punctuations(entries, self._schema))
            self._held.end(partial(Lifespan.is_over, now=self._now, has_closed=partial(has_closed, self._lasting)))
        return self._held.lifespan(p)

    def _parsed(self, entries: Iterable[Entry]) -> Iterator[Punctuation]:
        """Reads the recorded punctuations that have not expired at the last commit, without their lifespans."""
        for p in added_punctuations(entries, self._schema):
            if p.lifespan is None or not p.lifespan.is_over(self._now, partial(has_closed, self._lasting)):
                yield p.lasting(None)
