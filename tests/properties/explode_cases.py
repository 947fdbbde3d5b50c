"""Cases of explode, over streams that have an array beside what is drawn: it holds what a tuple's first value says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from tests.oracles import invariants
from tests.oracles.oracle import Tuple
from tests.properties.case import Case, one
from tests.samples.strategies import SmallSchema
from xmlstream.operators.behaviour import Operator
from xmlstream.operators.explode import Explode
from xmlstream.operators.expressions.dialect import literal
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.operators.state.state_schema import StateSchema
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.pattern import WILDCARD
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.scheme import Scheme


class _Wider:
    """The state of an operator whose input has other attributes."""

    def __init__(self, state: OperatorState, schema: Schema) -> None:
        self._state, self.inputs = state, (schema,)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)


@dataclass(frozen=True, slots=True)
class _Arrayed(Operator):
    """Explode over its input with an array, computed, of which no punctuation speaks."""

    explode: Explode
    array: Attribute
    expression: str

    def _wider(self, schema: Schema) -> Schema:
        return Schema((*schema.attributes, self.array))

    def _state(self, state: OperatorState) -> OperatorState:
        return cast(OperatorState, _Wider(state, self._wider(state.inputs[0])))

    def schema(self, *inputs: Schema) -> Schema:
        return self.explode.schema(self._wider(inputs[0]))

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        return self.explode.schemes(*inputs)

    def state_schema(self, *inputs: Schema) -> StateSchema:
        return self.explode.state_schema(self._wider(inputs[0]))

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        new = inputs[0].tuples
        wider = new and replace(new, frame=new.frame.with_column(self.array.name, self.expression))
        return self.explode.step([Slice(wider)], self._state(state))

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        return self.explode.pass_(inputs, state)

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        self.explode.keep(inputs, state)

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        wider = self._wider(state.inputs[0])
        said = tuple(Punctuation(wider, (*p.patterns, WILDCARD)) for p in inputs[0].punctuations)
        return self.explode.propagate([Slice(None, said)], self._state(state))


def _exploding(space: SmallSchema, *, outer: bool) -> Case:
    """Of null no array, of the least value an empty one, else the value twice with null between."""
    first = space.smalls[0]
    least, domain = first.universe[0], first.domain
    assert least is not None

    def array(t: Tuple) -> Sequence[Any] | None:
        return None if t[0] is None else [] if t[0] == least else [t[0], None, t[0]]

    empty = f"CAST(array() AS ARRAY<{domain.type}>)"
    some = f"IF(`a` = {literal(least, domain)}, {empty}, array(`a`, NULL, `a`))"
    explode = Explode("list", Attribute("element", Domain(domain.type)), outer, replaces=True)
    operator = _Arrayed(explode, Attribute("list", Domain(f"ARRAY<{domain.type}>")), f"IF(`a` IS NULL, NULL, {some})")
    elements = list(dict.fromkeys((*first.universe, None)))
    outputs = [(*t, element) for t in space.universe for element in elements]
    return Case(operator, one(space), invariants.exploding(array, outer=outer), outputs)


def exploding(space: SmallSchema) -> Case:
    return _exploding(space, outer=False)


def exploding_outer(space: SmallSchema) -> Case:
    return _exploding(space, outer=True)


EXPLODE: dict[str, Callable[[SmallSchema], Case]] = {
    "explode": exploding,
    "explode, outer": exploding_outer,
}
