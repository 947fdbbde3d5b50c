"""Aggregation of kept tuples in Spark: by partial aggregates that merge, or else over the kept tuples themselves.

group_by and session share it: it determines the kept rows, combines those of several slices, and computes the results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xmlstream.dataclasses import dataclass
from xmlstream.operators.expressions.aggregates import (
    Aggregate,
    Partial,
    attributes_of,
    called_above,
    ignores_duplicates,
    partial,
)
from xmlstream.operators.expressions.dialect import render, structure
from xmlstream.operators.frames.expression import Column, Copy, as_columns
from xmlstream.operators.state.ages import AGES, combined_ages, deduplicated

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame


@dataclass(frozen=True, slots=True)
class Aggregation:
    """The aggregates of groups by `keys`, which may be none."""

    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]

    @property
    def merges(self) -> list[Partial] | None:
        """The aggregates' decompositions; None if one has none, so that tuples are kept."""
        found = [partial(aggregate, number) for number, aggregate in enumerate(self.aggregates)]
        return None if None in found else [p for p in found if p is not None]

    @property
    def ignores_duplicates(self) -> bool:
        """Whether duplicates count once for all aggregates, so that one of them is kept."""
        return all(map(ignores_duplicates, self.aggregates))

    def kept_form(self, tuples: Frame) -> Frame:
        """Tuples in their kept form: partial aggregates by group, or the attributes that the aggregates need.

        Partial aggregates that stand beside the tuples' attributes are merged.
        """
        if (known := self.partials(tuples)) is not None:
            return self.combined(known)
        if (merges := self.merges) is not None:
            return self._aggregated(tuples, {name: text for p in merges for name, text in p.first.items()})
        keys = {key.lower() for key in self.keys}
        others = [name for name in attributes_of(self.aggregates) if name.lower() not in keys]
        needed = tuples.select(*[*self.keys, *others])
        return needed.distinct() if self.ignores_duplicates else needed

    def partials(self, tuples: Frame) -> Frame | None:
        """Tuples with partial aggregates beside their attributes, in kept form but not merged by group.

        None if they have no partial aggregates.
        """
        columns = list(dict.fromkeys(column for p in self.merges or () for column in p.first))
        if not columns or not set(columns) <= set(tuples.columns):
            return None
        return tuples.select(*(*self.keys, *columns))

    def combined(self, kept: Frame, ages: Sequence[str] = ()) -> Frame:
        """Kept rows of several slices, combined; `ages` are the columns of their ages."""
        if (merges := self.merges) is not None:
            columns = {name: text for p in merges for name, text in p.merge.items()}
            return self._aggregated(kept, {**columns, **combined_ages(ages)})
        return deduplicated(kept, ages)

    def shown(self, kept: Frame) -> Frame:
        """Kept rows with the values of their partial aggregates so far, and their ages."""
        return kept if self.merges is None else self._with_values(kept, *(age for age in AGES if age in kept.columns))

    def answers(self, kept: Frame) -> Frame:
        """The output tuples for kept rows whose groups are complete and combined."""
        if self.merges is None:
            return self._aggregated(kept, {a.attribute.name: a.computed for a in self.aggregates})
        return self._with_values(kept if self.keys else self.combined(kept))

    def _with_values(self, kept: Frame, *beside: str) -> Frame:
        """Adds to each group the values that its partial aggregates give."""
        pairs = zip(self.merges or (), self.aggregates, strict=True)
        values = as_columns({a.attribute.name: Copy(p.last) if p.last in p.first else p.last for p, a in pairs})
        return kept.select(*self.keys, *values, *beside)

    def _aggregated(self, frame: Frame, columns: Mapping[str, str]) -> Frame:
        """The groups with these columns, given as Spark's aggregates by name."""
        if not columns:
            return frame.select(*self.keys).distinct()
        calls = {name: call for name, text in columns.items() if (call := called_above(text)) is not None}
        if not calls:
            return frame.group_by(self.keys, columns)
        # Above the groups, where the key of each is a column, for messages, and where Spark calls a function once.
        given = f"{render(structure({name: name for name in self.keys}))}, " if self.keys else ""
        made = {name: Column(name, f"{function}({given}{name})") for name, (function, _) in calls.items()}
        grouped = frame.group_by(self.keys, {**columns, **{name: of for name, (_, of) in calls.items()}})
        return grouped.select(*(made.get(name, name) for name in grouped.columns))
