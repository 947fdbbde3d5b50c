"""distinct: each tuple once (the papers' dupelim).

Meaning:    δ(R) = {t | t ∈ R}; null equals null, as in SQL's DISTINCT.
Example:    Distinct()
              over (a INT) gives (a INT)
              in   (1) (1) (2) | (1) (3) <1>
              out  (1) (2)     | (3) <1>
Step:       δ(new − kept)
Pass:       –
Keep:       {t ∈ kept ∪ new | no p ∈ P matches t}
Propagate:  all punctuations.
Safe when:  the schemes cover every tuple with finitely many punctuations.
Source:     Tucker et al. 2003, §4.2, Theorem 1, Tables 3 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar

from xmlstream.dataclasses import dataclass
from xmlstream.operators.behaviour import Operator, Terms, own_terms
from xmlstream.operators.closing_conditions import Grouping, StateModel
from xmlstream.operators.required_punctuations import Held, Way
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples, anti_join
from xmlstream.operators.state.state_schema import LogSchema, StateSchema
from xmlstream.operators.taking_over import TakesOver
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme


@dataclass(frozen=True, slots=True)
class Distinct(Operator):
    """Each distinct tuple of the input, when it first comes."""

    eliminates_duplicates: ClassVar[bool] = True
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_ATTRIBUTES
    holds_back: ClassVar[bool] = False

    def schema(self, *inputs: Schema) -> Schema:
        return inputs[0]

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        return inputs[0]

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """The input's own terms: a predicate selects equal tuples together."""
        return [own_terms(inputs[0])]

    def ignores_duplicates(self, side: int, needed: AbstractSet[str], *inputs: Schema) -> bool:
        """δ(δ(R)) = δ(R)."""
        return True

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        return [((0, p),)]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        again = StateModel("tuples", 0, Grouping(0, inputs[0].names), per=inputs[0])
        return StateSchema({"tuples": LogSchema(inputs[0], (again,), blocks=False)})

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        new = inputs[0].tuples
        if new is None:
            return None
        attributes = state.inputs[0]
        kept = state.log("tuples")
        once = new.some(new.frame.select(*attributes.names).distinct())
        once, there = kept.near(once, attributes.names)
        return kept.append(anti_join(once, there, attributes.names))

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        state.log("tuples").purge(inputs[0].punctuations)

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        return inputs[0].punctuations
