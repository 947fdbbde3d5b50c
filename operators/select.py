"""select: the tuples that satisfy a predicate.

Meaning:    σ_p(R) = {| t ∈ R | p(t) |}; a tuple for which the predicate is null is not selected.
Example:    Select("price > 250", punctuates=True)
              over (price INT, item STRING) gives (price INT, item STRING)
              in   (100, a) (300, b)              | (270, c) <*, b>
              out  (300, b) <(,250], *> <null, *> | (270, c) <*, b>
Step:       {| t ∈ new | p(t) |}
Pass:       –
Keep:       no tuples; with `punctuates`, punctuations.
Propagate:  all punctuations. With `punctuates` also, once, punctuations for the tuples for which the predicate is false
            or null: `price > 250` gives `(,250]` and `null`. Those of the input that these cover are then left out.
Safe when:  always; no tuples are kept.
Source:     Tucker et al. 2003, Table 3.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import ClassVar

from operators.behaviour import Operator, Terms, among, own_terms
from operators.expressions.dialect import attributes_in
from operators.expressions.predicate_domain import excluded
from operators.expressions.throwable import takes_equals_alike
from operators.required_punctuations import Held, Way
from operators.state.operator_state import OperatorState
from operators.state.slice_tuples import Slice, Tuples
from operators.state.state_schema import StateSchema
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet, remainder
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme


@dataclass(frozen=True, slots=True)
class Select(Operator):
    """The tuples of the input that satisfy `predicate`, Spark SQL over the input's attributes.

    With `punctuates`, it also emits punctuations on tuples that it never selects.
    """

    predicate: str
    punctuates: bool = False
    exact_inputs: ClassVar[bool] = False
    keeps_order: ClassVar[bool] = True

    def schema(self, *inputs: Schema) -> Schema:
        return inputs[0]

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        return inputs[0]

    def parameters(self, output: Schema) -> str:
        return self.predicate

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        return [needed | among(attributes_in(self.predicate), inputs[0])]

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        return [own_terms(inputs[0])]

    def passes_duplicates(self, needed: AbstractSet[str], *inputs: Schema) -> bool:
        return takes_equals_alike([self.predicate], inputs[0])

    def lineage(self, names: Collection[str], *inputs: Schema) -> Sequence[Sequence[str]] | None:
        """The names themselves; None for a select that punctuates: its output has more punctuations than the input."""
        return None if self.punctuates else [tuple(names)]

    def excludes(self, *inputs: Schema) -> Sequence[Punctuation]:
        """Punctuations on tuples for which the predicate is not true, as far as constants determine these."""
        return excluded(self.predicate, inputs[0])

    def initial(self, *inputs: Schema) -> Sequence[Punctuation]:
        return self.excludes(*inputs) if self.punctuates else ()

    def punctuating(self) -> Select:
        return replace(self, punctuates=True)

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        return [tuple((0, left) for left in remainder(p, PunctuationSet(inputs[0], self.initial(*inputs))))]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        return StateSchema(sets={"sent": inputs[0]} if self.punctuates else {})

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        new = inputs[0].tuples
        return new and new.some(new.frame.where(self.predicate))

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        if not self.punctuates:
            return inputs[0].punctuations
        sent, excluded_ = state.punctuations("sent"), self.initial(*state.inputs)
        new = sent.absorb((*excluded_, *inputs[0].punctuations))
        sent.forget(new)
        sent.absorb(excluded_)  # offered in each slice, they go out once
        return new
