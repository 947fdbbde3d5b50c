"""distinct_on: of each key the first tuple in the order of arrival.

Meaning:    δ_A(R) = {t ∈ R | no u ∈ R before t has u.A = t.A}; null equals null.
Example:    DistinctOn(("id",))
              over (id INT, page INT) gives (id INT, page INT)
              in   (1, 5) (2, 9) (1, 4) | (2, 1) (3, 3) <[1,2], *>
              out  (1, 5) (2, 9)        | (3, 3) <[1,2], *>
Step:       {t ∈ new | t.A ∉ kept, no u ∈ new before t has u.A = t.A}
Pass:       –
Keep:       {t.A | t ∈ kept ∪ new, P does not cover all possible tuples with t's key}
Propagate:  all punctuations.
Safe when:  the schemes cover every key with finitely many punctuations.
Source:     PostgreSQL's SELECT DISTINCT ON, Spark's dropDuplicates; after Tucker et al. 2003, Tables 3 and 4, for
            distinct, with the groups of group_by for keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar

from xmlstream.dataclasses import dataclass
from xmlstream.operators.behaviour import Operator, Terms, among
from xmlstream.operators.closing_conditions import Grouping, StateModel
from xmlstream.operators.frames.matching import first_of_each
from xmlstream.operators.required_punctuations import Held, Way
from xmlstream.operators.state.completion import completed, completion_sets, forget_completed
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples, anti_join, require_positions
from xmlstream.operators.state.state_schema import LogSchema, StateSchema
from xmlstream.operators.taking_over import TakesOver
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.punct_ns.slices import POSITION, quoted


@dataclass(frozen=True, slots=True)
class DistinctOn(Operator):
    """The tuples of the input whose values of `keys` come for the first time."""

    keys: tuple[str, ...]
    exact_inputs: ClassVar[bool] = False
    keeps_order: ClassVar[bool] = True
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_ATTRIBUTES

    def schema(self, *inputs: Schema) -> Schema:
        """The input's schema.

        Raises:
            UsageError: The input lacks an attribute that a key names.
        """
        for key in self.keys:
            inputs[0].attribute(key)
        return inputs[0]

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        return inputs[0]

    def parameters(self, output: Schema) -> str:
        return ", ".join(self.keys)

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        return [needed | among(self.keys, inputs[0])]

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """The keys: a predicate on them alone selects all tuples of a key, or none."""
        return [{key.lower(): quoted(inputs[0].attribute(key).name) for key in self.keys}]

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        return [((0, p),)]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        keys = inputs[0].only(self.keys)
        again = StateModel("keys", 0, Grouping(0, self.keys), per=keys)
        return StateSchema({"keys": LogSchema(keys, (again,), blocks=False)}, completion_sets(inputs[0], keys))

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        new = inputs[0].tuples
        if new is None:
            return None
        require_positions(new, "the first tuple of each key")
        kept = state.log("keys")
        first, there = kept.near(new.some(first_of_each(new.frame, self.keys, POSITION)), self.keys)
        found = state.computed(anti_join(first, there, self.keys))
        kept.append(Tuples(found.frame.select(*self.keys), found.at_most, found.exact))
        return found

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        closed = completed(inputs[0].punctuations, self.keys, state)
        state.log("keys").purge(closed)
        forget_completed(closed, self.keys, state)

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        return inputs[0].punctuations
