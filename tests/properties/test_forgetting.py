"""Operators forget what does not coalesce once it can do nothing more, and not a slice sooner: then the dead rise.

The faults forget early, each in an operator that forgets; the contract must catch it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness import notation
from tests.harness.nights import AT_NIGHT
from tests.harness.running import Running
from tests.properties.catalogue import CATALOGUE
from tests.properties.test_contract import Run, run, said_of
from tests.properties.test_multiway_contract import ONE_KEY, joining
from tests.samples.strategies import Small, SmallSchema
from xmlstream.operators.merge import Merge
from xmlstream.operators.state import completion
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.punctuation import Punctuation, isolated
from xmlstream.punct_ns.schema import Attribute, Schema

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

Patch = pytest.MonkeyPatch

FLAG = Small(Domain("BOOLEAN", nullable=False), (False, True), (False, True))
WORD = Small(Domain("STRING", nullable=False), ("u", "v", "w"), ("u", "v", "w"))
SPACE = SmallSchema(Schema((Attribute("a", FLAG.domain), Attribute("b", WORD.domain))), (FLAG, WORD))
TURNED = SmallSchema(Schema((Attribute("a", WORD.domain), Attribute("b", FLAG.domain))), (WORD, FLAG))


def of_sessions(*inputs: str, space: SmallSchema = SPACE) -> Run:
    """One stream of each input, of flags and words."""
    return Run(space, [[notation.slices(line, space.schema) for line in inputs]], restart=0)


def forgets_what_is_not_complete(patch: Patch) -> None:
    """Half of a group is closed, and that is forgotten before the other half comes."""
    completed = completion.completed

    def early(punctuations: Sequence[Punctuation], names: Sequence[str], state: OperatorState, input_: int = 0) -> Any:
        found = completed(punctuations, names, state, input_)
        state.punctuations(f"input-{input_}").forget(punctuations)
        return found

    for module in ("group_by", "project"):
        patch.setattr(f"xmlstream.operators.{module}.completed", early)


def forgets_what_is_not_described(patch: Patch) -> None:
    from xmlstream.operators.describe import Describe

    propagate = Describe.propagate

    def early(self: Describe, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        found = propagate(self, inputs, state)
        state.punctuations("input").forget(inputs[0].punctuations)
        return found

    patch.setattr(Describe, "propagate", early)


def forgets_what_one_input_has_said(patch: Patch) -> None:
    propagate = Merge.propagate

    def early(self: Merge, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        found = propagate(self, inputs, state)
        for i, slice_ in enumerate(inputs):
            state.punctuations(f"input-{i}").forget(slice_.punctuations)
        return found

    patch.setattr(Merge, "propagate", early)


def forgets_keys_that_one_side_has_closed(patch: Patch) -> None:
    """A tuple that comes then is kept for ever, or waits for ever for its partner."""

    def early(covered: Sequence[Sequence[Punctuation]], state: OperatorState, width: int) -> list[Punctuation]:
        keys = completion.closed_so_far(state, 1).set.schema
        return [Punctuation(keys, p.patterns) for newly in covered for p in newly]

    patch.setattr("xmlstream.operators.joins.forgetting._closed_by_both", early)


def forgets_what_one_of_two_has_closed(patch: Patch) -> None:
    def early(said: Any, new: Sequence[Sequence[Punctuation]], known: Any) -> list[Punctuation]:
        gone = [p for newly in new for p in newly]
        for held in said:
            held.forget(gone)
        return gone

    patch.setattr("xmlstream.operators.set_operation.forget_closed", early)


def forgets_values_that_one_of_many_has_closed(patch: Patch) -> None:
    """A kept tuple that asks for such a value later is never reached, and kept for ever."""

    def early(graph: Any, key: int, complete: Sequence[Sequence[Punctuation]], state: OperatorState) -> Any:
        return [p for i in graph.classes[key] for p in isolated(complete[i])]

    patch.setattr("xmlstream.operators.joins.forgetting._closed_by_all", early)


@dataclass(frozen=True, slots=True)
class Early:
    """A fault, the case in which it must be noticed, and the stream that shows it."""

    case: str
    seed: Callable[[Patch], None]
    example: Run


CLOSED_BEFORE_IT_COMES = of_sessions("<*, u> | |", "| (true, u) | <*, u>")
CLOSED_BY_THE_OTHER = of_sessions("| (true, u) | <*, u>", "<*, u> | |")
HALVES = of_sessions("(true, u) <false, u> | <true, u>")

EARLY = [
    *(Early(case, forgets_what_is_not_complete, HALVES) for case in ("group_by", "project")),
    Early("describe", forgets_what_is_not_described, of_sessions("(u, true) <u, false> | <u, true>", space=TURNED)),
    Early("merge", forgets_what_one_input_has_said, CLOSED_BEFORE_IT_COMES),
    *(
        Early(f"join, {kind}", forgets_keys_that_one_side_has_closed, CLOSED_BEFORE_IT_COMES)
        for kind in ("inner", "right", "full")
    ),
    *(
        Early(case, forgets_keys_that_one_side_has_closed, CLOSED_BY_THE_OTHER)
        for case in ("join, left", "semi join", "anti join")
    ),
    Early(
        "multiway join",
        forgets_values_that_one_of_many_has_closed,
        of_sessions("<u, *> | |", "| (u, true) |", "| | <u, *>", space=TURNED),
    ),
    Early("intersect", forgets_what_one_of_two_has_closed, CLOSED_BEFORE_IT_COMES),
    Early("difference", forgets_what_one_of_two_has_closed, CLOSED_BY_THE_OTHER),
]


@pytest.mark.parametrize("early", EARLY, ids=lambda early: early.case)
def test_forgetting_early_raises_the_dead_and_the_contract_catches_it(
    session: Session, early: Early, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(session, CASES[early.case], early.example)
    early.seed(monkeypatch)
    with pytest.raises(AssertionError):
        run(session, CASES[early.case], early.example)


CASES = {**CATALOGUE, "multiway join": joining(ONE_KEY)}
FORGETTING = [early.case for early in EARLY if early.case in CATALOGUE]
TWINS = () if AT_NIGHT else ("join, inner", "join, right")
"""Left to nights: a left join is one by day."""

SESSIONS = 300 if AT_NIGHT else 120


@pytest.mark.parametrize("name", [name for name in FORGETTING if name not in TWINS])
def test_of_closed_sessions_nothing_is_held(session: Session, name: str, tmp_path: Path) -> None:
    space = TURNED if name == "describe" else SPACE
    case = CATALOGUE[name](space)
    running = Running(session, tmp_path, case.operator, *case.inputs)
    key = 0 if name == "describe" else 1

    def closing(first: int, last: int, schema: Schema) -> list[Punctuation]:
        small = space.schema
        told = (Punctuation.of(small, {small[key].name: f"u{n}"}) for n in range(first, last))
        return [said_of(0, p, schema) for p in told]

    running.slice(*(([], []) for _ in case.inputs))
    said_at_first = running.punctuations_held  # of a full join, which keys never stand together
    # The second input closes each session a slice later than the first.
    part = SESSIONS // 3
    for first in range(0, SESSIONS + part, part):
        running.slice(
            *(
                ([], closing(max(0, first - part * i), min(SESSIONS, first + part * (1 - i)), schema))
                for i, schema in enumerate(case.inputs)
            )
        )
        if first == part:
            running.restart()
    assert running.punctuations_held == said_at_first
    assert said_at_first == 0 or name == "join, full"
