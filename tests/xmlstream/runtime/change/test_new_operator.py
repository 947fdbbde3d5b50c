"""An operator that somebody adds by the guide, with the required methods alone, begins anew in a changed query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from xmlstream.operators.behaviour import Operator
from xmlstream.operators.closing_conditions import Grouping, StateModel
from xmlstream.operators.distinct import Distinct
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.operators.state.state_schema import LogSchema, StateSchema
from xmlstream.operators.taking_over import TakesOver
from xmlstream.plan.nodes import Node
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.runtime.change.plan_comparison import Comparison
from xmlstream.safety.changes import changes, origins
from xmlstream.safety.verdicts import judged
from xmlstream.safety.words import summary, verdict_tree
from xmlstream.sql.script import read

REPORT = "CREATE TABLE report (hour INT, temp INT) USING punctuated_xml OPTIONS (path 'r.xml', rowTag 't'{});"


@dataclass(frozen=True, slots=True)
class Sample(Operator):
    """Some tuples of each hour, as many as `size`."""

    size: int

    def schema(self, *inputs: Schema) -> Schema:
        return inputs[0]

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        return inputs[0]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        chosen = StateModel("chosen tuples", 0, Grouping(0, ("hour",)))
        return StateSchema({"chosen": LogSchema(inputs[0].only(["hour"]), (chosen,))})

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        return None

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        return inputs[0].punctuations


@dataclass(frozen=True, slots=True)
class LastingSample(Sample):
    """The same, of which somebody has said that it goes on."""

    takes_over = TakesOver.ABOVE_SAME_TUPLES


def sampled(operator: Operator, options: str = ", schemes 'hour'") -> Node:
    below = read(REPORT.format(options) + "SELECT hour, temp FROM report;").sketch()
    return Node(operator, (below,), "sample")


def test_its_state_begins_anew_and_so_does_what_is_above_it() -> None:
    old, new = sampled(Sample(3)), sampled(Sample(3))
    compared = Comparison(old, new)
    assert new.inputs[0] in compared.taken
    assert new not in compared.taken
    assert compared.why[new] == "such an operator takes over no state"
    above = Node(Distinct(), (new,), "distinct")
    assert Comparison(Node(Distinct(), (old,), "distinct"), above).why[above] == "its input is another one"


@pytest.mark.parametrize(("size", "why"), [(3, None), (4, "it is not the same operator")])
def test_it_goes_on_with_the_same_parameters_once_it_says_so(size: int, why: str | None) -> None:
    new = sampled(LastingSample(size))
    assert Comparison(sampled(LastingSample(3)), new).why.get(new) == why


def test_its_verdict_calls_what_it_keeps_as_it_does() -> None:
    closed, open_ = (sampled(Sample(3), options) for options in (", schemes 'hour'", ""))
    assert "keeps chosen tuples until hour closes" in verdict_tree(judged(closed, follow=True))
    refused = judged(open_, follow=True)
    assert summary(refused, [], changes(open_, follow=True)).splitlines()[0] == (
        "sample keeps chosen tuples for ever, since nothing closes hour."
    )
    assert [(source.label, name) for source, name in origins(open_, "hour")] == [("report", "hour")]


def test_a_property_that_is_not_declared_is_the_safe_one() -> None:
    operator, schema = Sample(3), Schema.of(hour="INT", temp="INT")
    assert operator.takes_over is TakesOver.NOTHING
    assert operator.selection(schema) is None
    assert operator.holds_back
    assert not operator.begins_empty
    assert operator.declared_in is None
    assert replace(operator, size=4).state_schema(schema).models[0].what == "chosen tuples"
