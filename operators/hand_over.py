"""hand_over: the tuples that the closed punctuations of an earlier query's output do not match.

A query that continues another (`run --continues`) reads the input again from its beginning. What the other has closed
is final there: these tuples are left out here, so that each tuple of the result is in one of the two outputs.

Meaning:    {| t ∈ R | no p ∈ closed matches t |}
Example:    HandOver(("<[,5], *>",), punctuates=True)
              over (hour INT, item STRING) gives (hour INT, item STRING)
              in   (4, a) (6, b)           | (5, c) (7, d) <6, *>
              out  (6, b) <[,5], *>        | (7, d) <6, *>
Step:       {| t ∈ new | no p ∈ closed matches t |}
Pass:       –
Keep:       no tuples; with `punctuates` one punctuation, once `closed` was sent.
Propagate:  all punctuations. With `punctuates` also, once, `closed`, and then only what that does not cover.
Safe when:  always; no tuples are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import ClassVar

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.behaviour import Operator, Selection, Terms, own_terms
from xmlstream.operators.frames.matching import condition_text, not_matching
from xmlstream.operators.required_punctuations import Held, Way
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.operators.state.state_schema import StateSchema
from xmlstream.operators.taking_over import TakesOver
from xmlstream.punct_ns.errors import few
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet, remainder
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme

HAND_OVER = "hand_over"
"""The label of the nodes of a plan that leave out what is closed."""

_LONG = 80
"""The most characters of a punctuation that the plan's text shows."""


@dataclass(frozen=True, slots=True)
class HandOver(Operator):
    """The tuples of the input that none of `closed` matches; these are punctuations over the input, in the notation.

    With `punctuates`, it also emits these in its first slice. `of` is the output that has closed them. What is `lost`,
    because its input is gone, is treated in the same way.
    """

    closed: tuple[str, ...]
    punctuates: bool = False
    of: str = ""
    lost: tuple[str, ...] = ()
    exact_inputs: ClassVar[bool] = False
    keeps_order: ClassVar[bool] = True
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_ATTRIBUTES

    def schema(self, *inputs: Schema) -> Schema:
        return inputs[0]

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        return inputs[0]

    def parameters(self, output: Schema) -> str:
        """Whose punctuations they are, and the first of them."""
        final = f"{first_of(self.closed)} (final there)" if self.of else first_of(self.closed)
        lost = f" and {first_of(self.lost)} (not whole)" if self.lost else ""
        return f"{f'after {self.of}, ' if self.of else ''}without {final}{lost}"

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        return [needed | {inputs[0].names[i] for p in self.excludes(*inputs) for i in p.restricted}]

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        return [own_terms(inputs[0])]

    def passes_duplicates(self, needed: AbstractSet[str], *inputs: Schema) -> bool:
        return True

    def lineage(self, names: Collection[str], *inputs: Schema) -> Sequence[Sequence[str]] | None:
        return None if self.punctuates else [tuple(names)]

    def excludes(self, *inputs: Schema) -> Sequence[Punctuation]:
        return _parsed((*self.closed, *self.lost), inputs[0])[0]

    def initial(self, *inputs: Schema) -> Sequence[Punctuation]:
        return self.excludes(*inputs) if self.punctuates else ()

    def punctuating(self) -> HandOver:
        return replace(self, punctuates=True)

    def selection(self, *inputs: Schema) -> Selection:
        return Selection((f"NOT ({condition_text(self.excludes(*inputs))})",))

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        never = _parsed((*self.closed, *self.lost), inputs[0])[1] if self.punctuates else PunctuationSet(inputs[0])
        return [tuple((0, left) for left in remainder(p, never))]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        return StateSchema(sets={"begun": inputs[0]} if self.punctuates else {})

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        new = inputs[0].tuples
        return new and new.some(not_matching(new.frame, self.excludes(*state.inputs)))

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        if not self.punctuates:
            return inputs[0].punctuations
        (closed, all_closed), begun = _parsed((*self.closed, *self.lost), state.inputs[0]), state.punctuations("begun")
        new = [p for p in inputs[0].punctuations if not all_closed.covers(p)]
        if begun.set:
            return new
        begun.absorb(closed[:1])
        return [*closed, *new]


def first_of(texts: Sequence[str]) -> str:
    """The first of the punctuations, shortened, and how many more there are."""
    return few([text if len(text) <= _LONG else f"{text[:_LONG]}…>" for text in texts], " ")


@lru_cache(maxsize=32)
def _parsed(closed: tuple[str, ...], schema: Schema) -> tuple[tuple[Punctuation, ...], PunctuationSet]:
    """The punctuations of these texts, and as a set."""
    found = tuple(Punctuation.parse(text, schema) for text in closed)
    return found, PunctuationSet(schema, found)
