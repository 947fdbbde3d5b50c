"""select: the tuples that satisfy a predicate.

Meaning:    σ_p(R) = {| t ∈ R | p(t) |}; a tuple for which the predicate is null is not selected.
Example:    Select("price > 250", punctuates=True)
              over (price INT, item STRING) gives (price INT, item STRING)
              in   (100, a) (300, b)              | (270, c) <*, b>
              out  (300, b) <(,250], *> <null, *> | (270, c) <*, b>
Step:       {| t ∈ new | p(t) |}
Pass:       –
Keep:       no tuples; with `punctuates`, punctuations.
Propagate:  all punctuations. Where p makes attributes equal, also with their patterns moved from one to the other: no
            tuple of `a = b` comes with b = 5 after <5, *>, nor with a = 5 after <*, 5>. With `punctuates` also, once,
            punctuations for the tuples for which the predicate is false or null: `price > 250` gives `(,250]` and
            `null`. Those of the input that these cover are then left out.
Safe when:  always; no tuples are kept.
Source:     Tucker et al. 2003, Table 3.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.behaviour import Operator, Selection, Terms, among, own_terms
from xmlstream.operators.expressions.dialect import attributes_in, conjuncts, expression
from xmlstream.operators.expressions.equalities import equated
from xmlstream.operators.expressions.predicate_domain import excluded
from xmlstream.operators.expressions.throwable import takes_equals_alike
from xmlstream.operators.joins.equal_attributes import rewritten, rewritten_schemes
from xmlstream.operators.joins.punctuation_graph import equal_groups
from xmlstream.operators.required_punctuations import Held, Way
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.operators.state.state_schema import StateSchema
from xmlstream.operators.taking_over import TakesOver
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet, remainder
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme


@dataclass(frozen=True, slots=True)
class Select(Operator):
    """The tuples of the input that satisfy `predicate`, Spark SQL over the input's attributes.

    With `punctuates`, it also emits punctuations on tuples that it never selects. `equal` are pairs of attributes, of
    one type, that are equal in each tuple that it selects (`equated`).
    """

    predicate: str
    punctuates: bool = False
    equal: tuple[tuple[str, str], ...] = ()
    exact_inputs: ClassVar[bool] = False
    keeps_order: ClassVar[bool] = True
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_TUPLES
    begins_empty: ClassVar[bool] = True

    def equated(self, *inputs: Schema) -> Select:
        """The select that also moves punctuations between the attributes that its predicate makes equal."""
        pairs = filter(None, (equated(part, inputs[0]) for part in conjuncts(expression(self.predicate))))
        return replace(self, equal=tuple(pairs))

    def schema(self, *inputs: Schema) -> Schema:
        return inputs[0]

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        equal = {name.lower(): others for name, others in self._equals.items()}
        return tuple(rewritten_schemes(inputs[0], equal)) if equal else inputs[0]

    @property
    def _equals(self) -> dict[str, list[str]]:
        """Maps each attribute that the condition makes equal to others to those others."""
        groups = [[name for _, name in group] for group in equal_groups(((0, a), (0, b)) for a, b in self.equal)]
        return {name: [other for other in group if other != name] for group in groups for name in group}

    def _moved(self, p: Punctuation) -> list[Punctuation]:
        """The punctuation, and those with its patterns moved to equal attributes."""
        if not self.equal:
            return [p]
        equals, schema = self._equals, p.schema
        places = [[i, *map(schema.index, equals.get(name, ()))] for i, name in enumerate(schema.names)]
        return list(rewritten(p, schema, places))

    def parameters(self, output: Schema) -> str:
        return self.predicate

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        return [needed | among(attributes_in(self.predicate), inputs[0])]

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        return [own_terms(inputs[0])]

    def passes_duplicates(self, needed: AbstractSet[str], *inputs: Schema) -> bool:
        return takes_equals_alike([self.predicate], inputs[0])

    def lineage(self, names: Collection[str], *inputs: Schema) -> Sequence[Sequence[str]] | None:
        """The names themselves; None for a select whose output has more punctuations than the input."""
        return None if self.punctuates or self.equal else [tuple(names)]

    def excludes(self, *inputs: Schema) -> Sequence[Punctuation]:
        """Punctuations on tuples for which the predicate is not true, as far as constants determine these."""
        return excluded(self.predicate, inputs[0])

    def initial(self, *inputs: Schema) -> Sequence[Punctuation]:
        return self.excludes(*inputs) if self.punctuates else ()

    def punctuating(self) -> Select:
        return replace(self, punctuates=True)

    def selection(self, *inputs: Schema) -> Selection:
        return Selection((self.predicate,))

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        never = PunctuationSet(inputs[0], self.initial(*inputs))
        return [tuple((0, left) for left in remainder(moved, never)) for moved in self._moved(p)]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        return StateSchema(sets={"sent": inputs[0]} if self.punctuates or self.equal else {})

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        new = inputs[0].tuples
        return new and new.some(new.frame.where(self.predicate))

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        if not (self.punctuates or self.equal):
            return inputs[0].punctuations
        sent, excluded_ = state.punctuations("sent"), self.initial(*state.inputs)
        new = sent.absorb((*excluded_, *(moved for p in inputs[0].punctuations for moved in self._moved(p))))
        sent.forget(new)
        sent.absorb(excluded_)  # offered in each slice, they go out once
        return new
