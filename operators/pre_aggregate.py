"""pre_aggregate: one tuple for each group within a slice, with the group's partial aggregates beside it.

Meaning:    {(a, f'({| t ∈ new | t.A = a |})) | a ∈ π_A(new)}, f' the partial aggregates of f, which can be merged. They
            are columns beside the attributes, as positions are. A group_by with the same aggregates merges them:
            γ_{B; f} of this is γ_{B; f} of the tuples, for any B ⊆ A, even if an operator in between copies tuples.
Example:    PreAggregate(("hour",), (Aggregate(Attribute("n", Domain("BIGINT")), "count(*)"),))
              over (hour INT, min INT NOT NULL; min 0..59) gives (hour INT)
              in   (1, 0) (1, 9) (2, 5) <1, [0,30]> | (1, 40) <1, [31,59]>
              out  (1) (2)                          | (1) <1>
Step:       the groups of the new tuples.
Pass:       –
Keep:       no tuples; punctuations.
Propagate:  the punctuations with a wildcard at every attribute outside A; several that together cover the domains of
            those attributes count as one.
Safe when:  always; no tuples are kept.
Source:     Li et al. 2005, "No pane, no gain" (the pane-level query); partial aggregation, as in any parallel database.

Differs: how many tuples a group has depends on how the stream is cut into slices; the merged result does not. So only
the optimizer inserts this operator, below one that merges.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar

from xmlstream.dataclasses import dataclass
from xmlstream.operators.aggregation import Aggregation
from xmlstream.operators.behaviour import Operator, Terms, among, own_terms
from xmlstream.operators.expressions.aggregates import Aggregate, attributes_of
from xmlstream.operators.required_punctuations import Held, Way, on
from xmlstream.operators.state.completion import completed, completion_sets, forget_completed
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.operators.state.state_schema import StateSchema
from xmlstream.operators.taking_over import TakesOver
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import placed
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme


@dataclass(frozen=True, slots=True)
class PreAggregate(Operator):
    """The groups of each slice by `keys`, with partial aggregates; each of `aggregates` must have these."""

    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    exact_inputs: ClassVar[bool] = False
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_ATTRIBUTES

    def schema(self, *inputs: Schema) -> Schema:
        return inputs[0].only(self.keys)

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """The schemes on keys only, and those whose other terms tile their attributes."""
        keys = {key.lower(): key for key in self.keys}
        return tuple(on_keys for scheme in inputs[0] if (on_keys := scheme.renamed(keys)) is not None)

    def parameters(self, output: Schema) -> str:
        return f"({', '.join(self.keys)}) {', '.join(a.expression for a in self.aggregates)}".rstrip()

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        return [among((*self.keys, *attributes_of(self.aggregates)), inputs[0])]

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """The keys: a predicate over these selects whole groups."""
        return [own_terms(self.schema(*inputs))]

    def lineage(self, names: Collection[str], *inputs: Schema) -> Sequence[Sequence[str]] | None:
        return [tuple(among(names, inputs[0]))]

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        return [((0, on(self.keys, p, inputs[0])),)]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        return StateSchema(sets=completion_sets(inputs[0], self.keys))

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        new = inputs[0].tuples
        return new and new.some(Aggregation(self.keys, self.aggregates).kept_form(new.frame))

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        complete = completed(inputs[0].punctuations, self.keys, state)
        forget_completed(complete, self.keys, state)
        return placed(complete, self.keys, self.schema(*state.inputs))
