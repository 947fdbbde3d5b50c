"""explode: one tuple for each element of an array, beside the other attributes (SQL's LATERAL VIEW explode).

Meaning:    ε_{l→e}(R) = {| (t, x) | t ∈ R, x ∈ t.l |}: each element as often as the array holds it, null elements
            included. An array that is empty or null gives no tuple; with `outer` it gives (t, null), once.
Example:    Explode("tags", tag)
              over (id INT, tags ARRAY<INT>) gives (id INT, tags ARRAY<INT>, tag INT)
              in   (1, [7, 8]) (2, [])           | (3, [7]) <1, *> <*, null>
              out  (1, [7, 8], 7) (1, [7, 8], 8) | (3, [7], 7) <*, null, *> <1, *, *>
Step:       ε(new)
Pass:       –
Keep:       –
Propagate:  all punctuations, with a wildcard for the element, since no punctuation restricts what an array holds. With
            `replaces`, where the array leaves the tuple, only those with a wildcard for the array.
Safe when:  always; no tuples are kept.
Source:     after Tucker et al. 2003, Table 3, for select and project: each output tuple comes from one input tuple.

The number of output tuples is known only once they are computed. So this operator computes the output of each slice at
once, in one Spark job.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.behaviour import Operator, Terms, among, own_terms
from xmlstream.operators.frames.expression import Column
from xmlstream.operators.required_punctuations import Held, Way, on
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.operators.taking_over import TakesOver
from xmlstream.punct_ns.pattern import WILDCARD
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.punct_ns.slices import quoted

LENGTH = 100
"""The assumed greatest length of an array, which decides who computes the tuples."""


@dataclass(frozen=True, slots=True)
class Explode(Operator):
    """The tuples of the input, once for each element of its attribute `array`; `element` stands behind the attributes.

    With `outer`, a tuple without elements stays, with null. With `replaces`, the array itself goes no further.
    """

    array: str
    element: Attribute
    outer: bool = False
    replaces: bool = False
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_ATTRIBUTES

    def schema(self, *inputs: Schema) -> Schema:
        array = inputs[0].attribute(self.array)
        return Schema((*(a for a in inputs[0] if not (self.replaces and a is array)), self.element))

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        return inputs[0]

    def parameters(self, output: Schema) -> str:
        return f"{'outer ' if self.outer else ''}`{self.array}` AS `{self.element.name}`"

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        return [among((needed - {self.element.name}) | {self.array}, inputs[0])]

    def pruned(self, needed: AbstractSet[str]) -> Explode:
        return replace(self, replaces=self.replaces or self.array not in needed)

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """The input's own terms: a predicate without the element selects all or none of an input tuple's outputs."""
        return [own_terms(inputs[0])]

    def passes_through(self, *inputs: Schema) -> AbstractSet[str]:
        return frozenset(map(str.lower, inputs[0].names)) if self.outer else frozenset()

    def passes_duplicates(self, needed: AbstractSet[str], *inputs: Schema) -> bool:
        return True

    def lineage(self, names: Collection[str], *inputs: Schema) -> Sequence[Sequence[str]] | None:
        return [tuple(among(names, inputs[0]))]

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        return [((0, on(p.schema.names[:-1], p, inputs[0])),)]

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        new = inputs[0].tuples
        if new is None:
            return None
        others, never_null = self.schema(state.inputs[0]).names[:-1], not self.element.domain.nullable
        # Spark filters by the size of an array before it explodes it, and so would compute one of Python's twice.
        exploded = f"explode{'_outer' if self.outer or never_null else ''}({quoted(self.array)})"
        frame = new.frame.select(*others, Column(self.element.name, exploded))
        if never_null and not self.outer:
            frame = frame.where(f"{quoted(self.element.name)} IS NOT NULL")
        return state.computed(Tuples(frame, LENGTH * new.at_most, exact=False))

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        schema = state.inputs[0]
        output, gone = self.schema(schema), schema.index(self.array) if self.replaces else None
        return [
            Punctuation(output, (*(pattern for i, pattern in enumerate(p.patterns) if i != gone), WILDCARD), p.lifespan)
            for p in inputs[0].punctuations
            if gone not in p.restricted
        ]
