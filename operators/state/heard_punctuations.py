"""Heard punctuations: all that a source has said, for ever, with the closed strings beyond a bound on disk.

A source forgets nothing: its grammar needs it. What coalesces stays small. Strings that were closed one by one never
do; beyond `HELD` of an attribute they go into its runs (`operators.state.constant_runs`), so that neither the driver's
memory nor the time to add more grows with them. A commit records what its slice has added, and that strings were moved.

The set and the runs together are exact: before a range, or a punctuation of several attributes, is added, the strings
at its ends are fetched from the runs: only there they can make one range, or one cover, of what lies on both sides.
What has a lifespan stays in memory: it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from operators.state.constant_runs import ConstantRuns
from operators.state.held_punctuations import HeldPunctuations
from operators.state.passing_punctuations import Entry
from operators.state.segments import SegmentStore
from punct_ns.isolated import listed
from punct_ns.pattern import Constant, List, Pattern, Range
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.sql_type import StringType

HELD = 4096
"""Strings of one attribute up to which they are held in memory, and recorded as text."""


class HeardPunctuations(HeldPunctuations):
    """The set of a source; `set` is the part of it that is in memory."""

    def __init__(
        self, schema: Schema, committed: Iterable[Entry], store: SegmentStore, logs: Mapping[str, dict[str, Any]]
    ) -> None:
        """Make it, as a commit has it: its changes in text, and by the names of attributes their runs."""
        super().__init__(schema, committed)
        self.runs = {i: ConstantRuns(store, logs.get(schema[i].name)) for i in runs_of(schema)}

    def absorb(self, punctuations: Iterable[Punctuation]) -> list[Punctuation]:
        """Adds them; returns, minimal, those that said something new."""
        given = list(punctuations)
        if self.on_disk:
            given = self._unheard(given)
            self._fetch_ends(given)
        new = super().absorb(given)
        for i, runs in self.runs.items():
            if i in self.lasting.singles and len(lone := self._lone(i)) > HELD:
                there = self._among(i, lone)
                if fresh := [value for value in lone if value not in there]:
                    runs.add(fresh)
                self.move(i)
        return new

    @property
    def on_disk(self) -> tuple[int, ...]:
        """The places of the attributes with closed strings on disk."""
        return tuple(i for i, runs in self.runs.items() if runs.rows)

    def closes(self, i: int, values: pa.Array[Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """For each string, none of which is null, whether it is among those of an attribute that lie on disk."""
        return self.runs[i].contained(values)

    @property
    def extent(self) -> int:
        """How many ranges and single values it holds, and punctuations that restrict several attributes."""
        return super().extent + sum(runs.rows for runs in self.runs.values())

    def logs(self) -> dict[str, dict[str, Any]]:
        """The runs after the slice, by their attributes' names, for its commit."""
        return {self.set.schema[i].name: runs.record() for i, runs in self.runs.items()}

    def settle(self) -> None:
        """Waits for what goes on beside the slices."""
        for runs in self.runs.values():
            runs.settle()

    def _lone(self, i: int) -> Sequence[Any]:
        return self.lasting.singles[i].value_set().lone_and_longer()[0]

    def _unheard(self, given: Sequence[Punctuation]) -> list[Punctuation]:
        """The punctuations without the strings that the runs hold."""
        known = {i: self._known(i, given) for i in self.on_disk}
        return [left for p in given if (left := _without(p, known)) is not None]

    def _known(self, i: int, given: Sequence[Punctuation]) -> frozenset[str]:
        return self._among(i, (value for p in given for value in listed(p.patterns[i])))

    def _among(self, i: int, values: Iterable[Any]) -> frozenset[str]:
        """Those of the values that the runs of an attribute hold."""
        asked = pa.array(list({value for value in values if value is not None}), pa.string())
        there: list[Any] = asked.filter(pa.array(self.runs[i].contained(asked))).to_pylist()
        return frozenset(there)

    def _fetch_ends(self, given: Sequence[Punctuation]) -> None:
        for i in self.on_disk:
            ends = {
                end
                for p in given
                if p.lifespan is None and isinstance(r := p.patterns[i], Range)
                for end in (r.low, r.high)
                if end is not None
            }
            if ends and (found := self._among(i, ends)):
                schema = self.set.schema
                super().absorb(Punctuation.at(schema, {i: Constant(value)}) for value in sorted(found))


def runs_of(schema: Schema) -> Iterator[int]:
    """The places of the attributes whose closed values go to disk."""
    return (i for i, attribute in enumerate(schema) if isinstance(attribute.domain.sql, StringType))


def _without(p: Punctuation, known: Mapping[int, frozenset[str]]) -> Punctuation | None:
    """The punctuation without values that are closed whatever else there is; None if nothing is left of it."""
    patterns: dict[int, Pattern] = {i: p.patterns[i] for i in p.restricted}
    for i, closed in known.items():
        if closed and not closed.isdisjoint(values := listed(p.patterns[i])):
            left = tuple(value for value in values if value not in closed)
            if not left:
                return None
            patterns[i] = Constant(left[0]) if len(left) == 1 else List(left)
    return Punctuation.at(p.schema, patterns, p.lifespan)
