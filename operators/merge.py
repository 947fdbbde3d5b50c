"""merge: all tuples of all inputs (SQL's UNION ALL). Union is distinct above merge.

Meaning:    R₁ ⊎ … ⊎ Rₙ, by position.
Example:    Merge(schema)
              over (a INT), (a INT) gives (a INT)
              in   (1) (3) <(,3]> |
              in   (3)            | (4) <(,4]>
              out  (1) (3) (3)    | (4) <(,3]>
Step:       new₁ ⊎ … ⊎ newₙ
Pass:       –
Keep:       no tuples; punctuations. Those that do not coalesce are kept until every input has sent them.
Propagate:  the meets across all inputs: {p₁ ∧ … ∧ pₙ | pᵢ ∈ Pᵢ} without the empty ones.
Safe when:  always; no tuples are kept. A punctuation waits until the other inputs have closed the same.
Source:     Tucker et al. 2003, Table 3 (setCombine).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.behaviour import Operator, Terms, by_position
from xmlstream.operators.required_punctuations import Held, Way
from xmlstream.operators.state.completion import common_sets, common_to_inputs, without_null
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples, bag_union
from xmlstream.operators.state.state_schema import StateSchema
from xmlstream.operators.taking_over import Names, TakenOver, TakesOver
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet, remainder
from xmlstream.punct_ns.recast import recast_all, required_of
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme, meets


@dataclass(frozen=True, slots=True)
class Merge(Operator):
    """The tuples of all inputs; `attributes` are the output's, whose names and types every input has."""

    attributes: Schema
    is_associative: ClassVar[bool] = True
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_TUPLES

    def schema(self, *inputs: Schema) -> Schema:
        return self.attributes

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        return meets(inputs, self.attributes)

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        places = [place for place, name in enumerate(self.attributes.names) if name in needed]
        return [frozenset(schema[place].name for place in places) for schema in inputs]

    def pruned(self, needed: AbstractSet[str]) -> Merge:
        return Merge(Schema(tuple(attribute for attribute in self.attributes if attribute.name in needed)))

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        return by_position(self.attributes, *inputs)

    def passes_through(self, *inputs: Schema) -> AbstractSet[str]:
        return frozenset(map(str.lower, self.attributes.names))

    def passes_duplicates(self, needed: AbstractSet[str], *inputs: Schema) -> bool:
        return True

    def lineage(self, names: Collection[str], *inputs: Schema) -> Sequence[Sequence[str]] | None:
        places = [self.attributes.index(name) for name in names]
        return [tuple(schema[place].name for place in places) for schema in inputs]

    def taken_over(self, before: Merge, called: Names) -> TakenOver:
        """All, whatever its attributes are called."""
        return TakenOver()

    def origins(self, name: str, *inputs: Schema) -> Sequence[tuple[int, str]]:
        """That of each input, by position."""
        return [(i, schema.names[self.attributes.index(name)]) for i, schema in enumerate(inputs)]

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        """The same punctuation from every input, without null for an input that has none."""
        never = [PunctuationSet(self.attributes, without_null(self.attributes, schema)) for schema in inputs]
        left = [(i, part) for i, known in enumerate(never) for part in remainder(p, known)]
        return [tuple((i, required_of(part, inputs[i]) or Punctuation.all(inputs[i])) for i, part in left)]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        return StateSchema(sets=common_sets(_streams(len(inputs)), self.attributes))

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        names = self.attributes.names
        parts = (slice_.tuples for slice_ in inputs)
        whole = bag_union(new and replace(new, frame=new.frame.select(*names)) for new in parts)
        return whole and replace(whole, of_each=1)

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        """The meets of each input's new punctuations with all punctuations of the others.

        Punctuations on null do not wait for an input without null.
        """
        closed = [
            [*without_null(self.attributes, schema), *recast_all(slice_.punctuations, self.attributes)]
            for schema, slice_ in zip(state.inputs, inputs, strict=True)
        ]
        return common_to_inputs(_streams(len(inputs)), closed, state)


def _streams(count: int) -> list[str]:
    return [f"input-{i}" for i in range(count)]
