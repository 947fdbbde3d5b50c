"""A roster closes exactly what all of its members have closed, in any order, and however the stream is cut."""

from __future__ import annotations

import tempfile
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.harness.nights import AT_NIGHT, IN_PROCESS_BY_DAY
from tests.harness.running import Running
from tests.oracles import oracle
from tests.oracles.oracle import Tuple
from xmlstream.operators.punctuate import Punctuate, Ungrammatical
from xmlstream.operators.punctuators.roster import ByRoster
from xmlstream.punct_ns.errors import UngrammaticalStream
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

SCHEMA = Schema.parse("who STRING, n INT NOT NULL, k INT", domains="n 0..5")
UNIVERSE: list[Tuple] = list(product(["a", "aa", "b", "c", None], range(6), [0, 1, None]))
MEMBERS = ("a", "b")

WHO = ["a", "a", "b", "b", "c", "{a,c}", "[a,b]", "{a,b}", "*", "null", "(,b)"]
N = ["*", "*", "0", "1", "2", "[0,2]", "{1,3}", "[2,5]", "4", "*"]
K = ["*", "*", "*", "0", "{0,null}", "[1,)", "1"]


@st.composite
def streams(draw: st.DrawFn) -> list[tuple[list[Tuple], list[Punctuation]]]:
    """Slices of tuples that break no punctuation of a slice before, each with punctuations behind them."""
    said: list[Punctuation] = []
    slices = []
    for _ in range(draw(st.integers(2, 5))):
        tuples = draw(st.lists(st.sampled_from(UNIVERSE), max_size=5))
        texts = draw(st.lists(st.tuples(*map(st.sampled_from, (WHO, N, K))), max_size=4))
        new = [Punctuation.parse(f"<{', '.join(text)}>", SCHEMA) for text in texts]
        slices.append(([t for t in tuples if not oracle.set_match(t, said)], new))
        said += new
    return slices


class Expected:
    """What each member has closed: by punctuations, and with `in_order` by its greatest value."""

    def __init__(self, *, in_order: bool, slack: int) -> None:
        self.slack = slack
        self.in_order, self.said, self.members = in_order, list[Punctuation](), list(MEMBERS)
        self.latest: dict[str, int] = {}
        self.over: list[Tuple] = []

    def has_passed(self, t: Tuple) -> bool:
        """Whether all members have left a tuple's value behind, before a change of the roster counts."""
        return self.in_order and all(t[1] < self.latest.get(member, -1) - self.slack for member in self.members)

    def takes(self, t: Tuple) -> bool:
        """Whether a tuple is on time."""
        if t in self.over or self.has_passed(t):
            return False
        if t[0] in self.members:
            self.latest[t[0]] = max(t[1], self.latest.get(t[0], -1))
        return True

    def end(self, new: list[Punctuation]) -> None:
        """Ends a slice."""
        self.said += new
        self.over = [t for t in UNIVERSE if t in self.over or self._is_over(t)]

    def _is_over(self, t: Tuple) -> bool:
        below = {who: self.latest.get(who, -1) - self.slack for who in self.members if self.in_order}
        by = (oracle.set_match((who, *t[1:]), self.said) or t[1] < below.get(who, -1) for who in self.members)
        return all(by)

    def closed(self, t: Tuple) -> bool:
        return oracle.set_match(t, self.said) or t in self.over


EXAMPLES = settings(
    max_examples=400 if AT_NIGHT else 30, deadline=None, suppress_health_check=list(HealthCheck)
)  # fmt: skip


@pytest.mark.sampled(2)
@IN_PROCESS_BY_DAY
@pytest.mark.parametrize(("order", "slack"), [(None, None), ("n", None), ("n", 2)])
@pytest.mark.parametrize("ungrammatical", ["divert", "fail"])
def test_what_all_members_have_closed_is_closed(
    session: Session, order: str | None, slack: int | None, ungrammatical: Ungrammatical
) -> None:
    @EXAMPLES
    @given(streams(), st.integers(0, 4), st.data())
    def holds(slices: list[tuple[list[Tuple], list[Punctuation]]], restart: int, data: st.DataObject) -> None:
        expected, told = Expected(in_order=order is not None, slack=slack or 0), list[Punctuation]()
        rule = ByRoster(order, "WHO", MEMBERS, slack)
        with tempfile.TemporaryDirectory() as directory:
            running = Running(session, Path(directory), Punctuate(rule, ungrammatical), SCHEMA, positioned=True)
            came = 0
            for i, (tuples, new) in enumerate(slices):
                if data.draw(st.integers(0, 3)) == 0:
                    change = data.draw(st.sampled_from([(["aa"], []), (["c"], ["a"]), ([], ["b"]), (["b"], [])]))
                    left = [m for m in (*expected.members, *change[0]) if m not in change[1]]
                    if left:
                        rule.change(*change, running._state)
                else:
                    left = []
                positions = range(came, came := came + len(tuples))
                is_on_time = [expected.takes(t) for t in tuples]
                on_time = [t for t, on in zip(tuples, is_on_time, strict=True) if on]
                late = [(at, t) for at, t, on in zip(positions, tuples, is_on_time, strict=True) if not on]
                if late and ungrammatical == "fail":
                    with pytest.raises(UngrammaticalStream) as raised:
                        running.slice((tuples, new))
                    assert (raised.value.tuple_position, raised.value.tuple) == late[0]
                    return
                done = running.slice((tuples, new))
                assert (running.set_aside[0], [letter.position for letter in running.set_aside[1]]) == (
                    len(late),
                    [at for at, _ in late],
                )
                assert sorted(map(str, done.tuples)) == sorted(map(str, on_time)), (i, tuples)
                expected.over = [t for t in UNIVERSE if t in expected.over or expected.has_passed(t)]
                gone = set(expected.members) - set(left or expected.members)
                expected.members = list(dict.fromkeys(left or expected.members))
                expected.latest = {who: n for who, n in expected.latest.items() if who not in gone}
                expected.end(new)
                told += done.punctuations
                for t in UNIVERSE:
                    assert oracle.set_match(t, told) == expected.closed(t), (i, t, list(map(str, told)))
                if i == restart:
                    running.restart()

    holds()
