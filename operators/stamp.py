"""stamp: each tuple with the recorded time of the slice in which it arrives (SQL's `current_timestamp()`).

Meaning:    τ(R) = {| (t, now) | t ∈ R |}, now the recorded time of t's slice, or its number.
Example:    Stamp(at)
              over (a INT) gives (a INT, at TIMESTAMP)
              at   09:00                               | 09:01
              in   (1) (2)                             | (1) <2>
              out  (1, 09:00) (2, 09:00) <*, (,09:00)> | (1, 09:01) <*, (,09:01)> <2, *>
Step:       τ(new)
Pass:       –
Keep:       no tuples; a punctuation, up to the latest time.
Propagate:  all punctuations, with a wildcard for the time; and `(,now)` for the time, since the time of a later slice
            is the same or later; `(,now]` for the number, which no later slice has.
Safe when:  always; no tuples are kept.
Source:     Tucker et al. 2007, §8.3 (heartbeats), applied to the time at which tuples arrive, not to a time that they
            carry.

A slice's time is recorded in its commit, and never goes back, even if the system clock does. A committed slice is never
computed again. A slice that was not committed is replaced by one with a time of its own. So the times in a result are
those in the commits, whenever the query was killed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import ClassVar

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.behaviour import Operator, Terms, among, own_terms
from xmlstream.operators.frames.expression import Column, bigint, sql
from xmlstream.operators.required_punctuations import Held, Way, on
from xmlstream.operators.state.ages import microseconds
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.operators.state.state_schema import StateSchema
from xmlstream.operators.taking_over import TakesOver
from xmlstream.punct_ns.numeric_type import IntegerType
from xmlstream.punct_ns.pattern import Range
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import placed
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.scheme import Scheme, Term
from xmlstream.punct_ns.slices import POSITION, quoted


@dataclass(frozen=True, slots=True)
class Stamp(Operator):
    """The tuples of the input, each with the recorded time of its slice as `attribute`, a TIMESTAMP, behind it.

    As a BIGINT it is the slice's number: the order in which tuples come.
    """

    attribute: Attribute
    exact_inputs: ClassVar[bool] = False
    keeps_order: ClassVar[bool] = True
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_ATTRIBUTES

    def schema(self, *inputs: Schema) -> Schema:
        return Schema((*inputs[0], self.attribute))

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        return (*inputs[0], Scheme((Term(self.attribute.name, "prefix"),)))

    def parameters(self, output: Schema) -> str:
        return f"the slice's {'number' if self._is_number else 'time'} AS {quoted(self.attribute.name)}"

    @property
    def _is_number(self) -> bool:
        return isinstance(self.attribute.domain.sql, IntegerType)

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        return [among(needed, inputs[0])]

    def adds(self, *inputs: Schema) -> AbstractSet[str] | None:
        return {self.attribute.name}

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        return [own_terms(inputs[0])]

    def passes_through(self, *inputs: Schema) -> AbstractSet[str]:
        return frozenset(map(str.lower, inputs[0].names))

    def passes_duplicates(self, needed: AbstractSet[str], *inputs: Schema) -> bool:
        """Whether the time, which distinguishes duplicates in two slices, is not needed."""
        return self.attribute.name not in needed

    def lineage(self, names: Collection[str], *inputs: Schema) -> Sequence[Sequence[str]] | None:
        """The names themselves; None if the time is among them, which has punctuations of its own."""
        own = self.attribute.name.lower()
        return None if own in {name.lower() for name in names} else [tuple(among(names, inputs[0]))]

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        """The input's punctuation with the same patterns; later slices close the time."""
        return [((0, on(p.schema.names[:-1], p, inputs[0])),)]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        return StateSchema(sets={"passed": Schema((self.attribute,))})

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        new = inputs[0].tuples
        if new is None:
            return None
        # A source below reads only what is needed above, and its schema is whole.
        names = [name for name in state.inputs[0].names if name in new.frame.columns]
        position = [POSITION] if POSITION in new.frame.columns else []
        if self._is_number:
            now = Column(self.attribute.name, bigint(state.slice))
        else:
            now = Column(self.attribute.name, sql("timestamp_micros(", bigint(microseconds(_time(state))), ")"))
        return replace(new, frame=new.frame.select(*names, now, *position), of_each=1)

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        output = self.schema(state.inputs[0])
        handed_on = placed(inputs[0].punctuations, state.inputs[0].names, output)
        over = Schema((self.attribute,))
        past = Range(None, state.slice, high_closed=True) if self._is_number else Range(None, _time(state))
        news = state.punctuations("passed").absorb([Punctuation(over, (past,))])
        return [*handed_on, *(Punctuation.at(output, {len(output) - 1: p.patterns[0]}) for p in news)]


def _time(state: OperatorState) -> datetime:
    assert state.time is not None
    return state.time
