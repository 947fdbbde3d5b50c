"""Set operations: the common part of intersect and difference, whose inputs have equal attributes.

A tuple of one input is decided once the other input has it, or has closed it. Punctuations of both inputs are kept over
the common attributes; a punctuation that both have sent is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar

from xmlstream.dataclasses import dataclass, field
from xmlstream.operators.behaviour import Operator, Terms, by_position
from xmlstream.operators.closing_conditions import Grouping
from xmlstream.operators.required_punctuations import Held, Way, same, without
from xmlstream.operators.state.closed_set import ClosedSet
from xmlstream.operators.state.completion import forget_closed, without_null
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples, anti_join
from xmlstream.operators.state.tuple_log import TupleLog
from xmlstream.operators.taking_over import TakesOver
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import recast, recast_all, required_of
from xmlstream.punct_ns.schema import Schema


@dataclass(slots=True)
class SetSlice:
    """Results of the behaviours for one slice.

    Attributes:
        new: For each input, the new tuples that are neither emitted nor kept, without duplicates.
        emitted: The output tuples.
        closed: The new punctuations of each input.
    """

    new: list[Tuples | None] = field(default_factory=list)
    emitted: Tuples | None = None
    closed: list[list[Punctuation]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SetOperation(Operator):
    """An operation on two inputs, which have the names and the types of `attributes`."""

    attributes: Schema
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_ATTRIBUTES

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """Both inputs' own terms: a tuple that a predicate rejects equals none that it selects."""
        return by_position(self.attributes, *inputs)

    def ignores_duplicates(self, side: int, needed: AbstractSet[str], *inputs: Schema) -> bool:
        """δ(R) ∩ S = R ∩ S and δ(R) − S = R − S, and so for S."""
        return True

    def origins(self, name: str, *inputs: Schema) -> Sequence[tuple[int, str]]:
        """That of each input, by position."""
        return [(i, schema.names[self.attributes.index(name)]) for i, schema in enumerate(inputs)]

    def way_of(self, side: int, log: str, p: Punctuation, held: Held, inputs: Sequence[Schema]) -> Way:
        """The way to an output punctuation by that of one side; its kept tuples wait for the other side."""
        names, other = self.attributes.names, inputs[1 - side]
        kept = held.rows(log, names, recast(p, self.attributes), f"waiting-{side}")
        return without(
            (side, required_of(p, inputs[side]) or Punctuation.all(inputs[side])),
            kept,
            lambda row: (1 - side, same(row, names, self.attributes, other.names, other)),
            *inputs,
        )

    def punctuation_sets(self, inputs: Sequence[Schema]) -> dict[str, Schema]:
        """The sets of both inputs' punctuations, of parts that both have closed, and of those that went out."""
        return {**dict.fromkeys(["input-0", "input-1", "common"], self.attributes), "sent": self.schema(*inputs)}

    def forget(self, state: OperatorState) -> list[Punctuation]:
        """Forgets the punctuations that both inputs have sent, one of them in this slice; returns them."""
        return forget_closed(closed_sets(state), state.scratch(SetSlice).closed, state.punctuations("common"))

    def unseen(self, new: Tuples, kept: Iterable[TupleLog], others: Tuples | None = None) -> Tuples:
        """New tuples that none of the kept tuples and the others equals, without duplicates."""
        once = anti_join(new.some(new.frame.distinct()), others, self.attributes.names)
        for log in kept:
            once, there = log.near(once, self.attributes.names)
            once = anti_join(once, there, self.attributes.names)
        return once

    def close(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        """Adds the inputs' new punctuations, and notes those that close something."""
        state.scratch(SetSlice).closed = [
            held.absorb(recast_all(slice_.punctuations, self.attributes))
            for held, slice_ in zip(closed_sets(state), inputs, strict=True)
        ]

    def closed_tuples(self, side: int, state: OperatorState) -> list[Punctuation]:
        """Punctuations on the tuples that an input has closed, or cannot have."""
        return [*closed_sets(state)[side].set, *without_null(self.attributes, state.inputs[side])]


def groupings(inputs: Sequence[Schema]) -> list[Grouping]:
    """For each input, the grouping by whole tuples."""
    return [Grouping(side, schema.names) for side, schema in enumerate(inputs)]


def closed_sets(state: OperatorState) -> list[ClosedSet]:
    """The punctuations of each input, over the common attributes."""
    return [state.punctuations(f"input-{side}") for side in range(2)]
