"""What punctuate must do at every slice, however the stream is cut: what a teller says who goes through the tuples."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.harness.running import Running
from tests.oracles import oracle, punctuate_oracle
from tests.oracles.punctuate_oracle import Teller
from xmlstream.operators.punctuate import Punctuate
from xmlstream.operators.punctuators.count import ByCount
from xmlstream.operators.punctuators.order import ByOrder
from xmlstream.operators.punctuators.predicate import ByPredicate
from xmlstream.operators.punctuators.roster import ByRoster
from xmlstream.operators.punctuators.rule import Rule
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

SCHEMA = Schema.parse("who STRING, n INT, x DOUBLE")
PEOPLE = ["a", "b", "c", None]
UNIVERSE = list(product(PEOPLE, [*range(-3, 13), None], [0.0, 0.5, math.nan]))

RULES: dict[str, tuple[Rule, Callable[[], Teller]]] = {
    "order": (ByOrder("n"), lambda: punctuate_oracle.Order(1)),
    "order, with slack and a limit": (ByOrder("n", 2, 3), lambda: punctuate_oracle.Order(1, 2, 3)),
    "order per person": (
        ByOrder("n", per="who"),
        lambda: punctuate_oracle.Apart((0,), lambda: punctuate_oracle.Order(1)),
    ),
    "order per person and x, with slack and a limit": (
        ByOrder("n", 2, 3, per=("x", "who")),
        lambda: punctuate_oracle.Apart((2, 0), lambda: punctuate_oracle.Order(1, 2, 3)),
    ),
    "roster": (
        ByRoster("n", "who", ("a", "b")),
        lambda: punctuate_oracle.Roster(1, 0, {"a": None, "b": None}),
    ),
    "predicate": (
        ByPredicate("n % 4 = 1", ("x", "who")),
        lambda: punctuate_oracle.Predicate(lambda t: t[1] is not None and t[1] % 4 == 1, (2, 0)),
    ),
    "predicate or time": (
        ByPredicate("n % 7 = 1", ("x", "who"), 2, "N"),
        lambda: punctuate_oracle.Idle(lambda t: t[1] is not None and t[1] % 7 == 1, (2, 0), 1, 2),
    ),
    "count": (ByCount(("x", "who"), 3), lambda: punctuate_oracle.Count(lambda t: 3, lambda t: True, (2, 0))),
    "count that a tuple states": (
        ByCount("who", "n"),
        lambda: punctuate_oracle.Count(lambda t: t[1], lambda t: True, (0,)),
    ),
    "count of some that any states": (
        ByCount(("who",), "N", "x <= 0.5"),
        lambda: punctuate_oracle.Count(lambda t: t[1], lambda t: bool(t[2] <= 0.5), (0,)),
    ),
    "time": (ByPredicate(None, ("who",), 1, "n"), lambda: punctuate_oracle.Idle(lambda t: False, (0,), 1, 1)),
}


@st.composite
def climbing(draw: st.DrawFn) -> list[list[oracle.Tuple]]:
    """Slices of tuples whose n goes up and down, mostly up, from 0 to 12."""
    steps = draw(st.lists(st.sampled_from([None, 0, 0, 1, 1, 1, 2, 5, -1, -3]), min_size=25, max_size=40))
    tuples: list[oracle.Tuple] = []
    level = 0
    for step in steps:
        who, x = draw(st.sampled_from(["a", "a", "b", "b", "c", None])), draw(st.sampled_from([0.0, 0.5, math.nan]))
        value = None if step is None else min(12, max(0, level + step))
        level += step == 1 and who != "c"
        tuples.append((who, value, x))
    cuts = sorted(draw(st.lists(st.integers(0, len(tuples)), min_size=2, max_size=2)))
    return [tuples[low:high] for low, high in zip([0, *cuts], [*cuts, len(tuples)], strict=True)]


@st.composite
def stating(draw: st.DrawFn) -> list[list[oracle.Tuple]]:
    """Slices of tuples whose n is a small number or none, mostly the same for each person."""
    numbers = {who: draw(st.integers(-1, 6)) for who in PEOPLE}
    tuples: list[oracle.Tuple] = []
    for who in draw(st.lists(st.sampled_from(PEOPLE), min_size=8, max_size=30)):
        stated = draw(st.sampled_from([numbers[who], numbers[who], None, None, None, draw(st.integers(-1, 6))]))
        tuples.append((who, stated, draw(st.sampled_from([0.0, 0.0, 0.5, math.nan]))))
    low, high = sorted(draw(st.lists(st.integers(0, len(tuples)), min_size=2, max_size=2)))
    return [tuples[:low], tuples[low:high], tuples[high:]]


def same(found: list[Any], expected: list[oracle.Tuple]) -> bool:
    return len(found) == len(expected) and all(map(oracle.same_tuple, found, expected))


@pytest.mark.parametrize("name", RULES)
def test_punctuate_says_what_has_passed_and_sets_the_late_aside(session: Session, name: str) -> None:
    rule, teller_of = RULES[name]

    @settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(stating() if "states" in name else climbing(), st.integers(0, 1))
    def holds(slices: list[list[oracle.Tuple]], restart: int) -> None:
        teller = teller_of()
        told: list[Punctuation] = []
        items: list[Any] = []
        with tempfile.TemporaryDirectory() as directory:
            running = Running(session, Path(directory), Punctuate(rule, "divert"), SCHEMA, positioned=True)
            for i, tuples in enumerate(slices):
                fates = [(t, teller.fate(t)) for t in tuples]
                done = running.slice((tuples, []))
                assert same(done.tuples, [t for t, fate in fates if fate == "on"])
                aside, letters = running.set_aside
                assert [letter.kind for letter in letters] == [
                    {"late": "ungrammatical"}.get(fate, fate) for _, fate in fates if fate != "on"
                ]
                assert aside == len(letters)
                for p in done.punctuations:
                    assert any(oracle.match(t, p) and not oracle.set_match(t, told) for t in UNIVERSE)
                    told.append(p)
                items += [*done.tuples, *done.punctuations]
                for t in UNIVERSE:
                    assert oracle.set_match(t, told) == teller.passed(t), (i, t, list(map(str, told)))
                if i == restart:
                    running.restart()
        assert oracle.first_offence(items) is None

    holds()
