"""Each life of an id is a stream of its own: what comes out is what comes out where every life has an id of its own.

Ids live, are closed on all inputs with lifespans of their own, and live again. The oracle is the same operator over the
same tuples whose ids tell which life they are of, closed for ever: nothing in it can know of lifespans. Both must hand
out the same tuples in the same slices, and keep as many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import repeat
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.nights import AT_NIGHT
from tests.harness.running import Done, Running
from tests.samples.strategies import fewer
from xmlstream.operators.asof_join import AsofJoin
from xmlstream.operators.behaviour import Operator
from xmlstream.operators.difference import Difference
from xmlstream.operators.distinct import Distinct
from xmlstream.operators.expressions.aggregates import Aggregate, Over
from xmlstream.operators.group_by import GroupBy
from xmlstream.operators.intersect import Intersect
from xmlstream.operators.join import Join
from xmlstream.operators.look_ahead import LookAhead
from xmlstream.operators.multiway_join import MultiwayJoin
from xmlstream.operators.row_window import RowWindow
from xmlstream.operators.semi_join import SemiJoin
from xmlstream.operators.session import Session
from xmlstream.operators.sort_order import SortKey
from xmlstream.operators.state import tuple_log
from xmlstream.operators.top_n import TopN
from xmlstream.operators.window import Window
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.lifespan import Lifespan, lives_as_long
from xmlstream.punct_ns.pattern import Constant
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema

if TYPE_CHECKING:
    from xmlstream.session.engines import Session as AnySession


BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
SLICES = 9 if AT_NIGHT else 6
IDS = 8

PLAIN = Schema.parse("k STRING, v INT")
TIMED = Schema.parse("k STRING, t TIMESTAMP NOT NULL, v INT")
LEFT, RIGHT, THIRD = (Schema.parse(f"{key} STRING, {t} INT NOT NULL") for key, t in ("kt", "qu", "rw"))
COUNT = Aggregate(Attribute("n", Domain("BIGINT", nullable=False)), "count(*)")
LAG = Over(Attribute("before", Domain("INT")), "lag(`v`, 1)", 1, 1)
LEAD = Over(Attribute("after", Domain("INT")), "lead(`v`, 1)", -1, -1)
BETWEEN = "u BETWEEN t - 6 AND t + 6"

CASES: dict[str, tuple[Operator, tuple[Schema, ...]]] = {
    "group_by": (GroupBy(("k",), (COUNT,)), (PLAIN,)),
    "distinct": (Distinct(), (PLAIN,)),
    "top_n": (TopN(2, (SortKey("v", descending=True),), ("k",)), (PLAIN,)),
    "session": (Session("t", 15_000_000, ("k",), (COUNT,)), (TIMED,)),
    "window": (Window("t", 20_000_000, 10_000_000), (TIMED,)),
    "row_window": (RowWindow((LAG,), (SortKey("t"),), ("k",)), (TIMED,)),
    "look_ahead": (LookAhead((LEAD,), (SortKey("t"),), ("k",)), (TIMED,)),
    "join": (Join("inner", ("k",), ("q",)), (LEFT, RIGHT)),
    "left join": (Join("left", ("k",), ("q",)), (LEFT, RIGHT)),
    "full join": (Join("full", ("k",), ("q",)), (LEFT, RIGHT)),
    "range join": (Join("inner", ("k",), ("q",), BETWEEN).bounded(LEFT, RIGHT), (LEFT, RIGHT)),
    "left range join": (Join("left", ("k",), ("q",), BETWEEN).bounded(LEFT, RIGHT), (LEFT, RIGHT)),
    "semi_join": (SemiJoin(("k",), ("q",)), (LEFT, RIGHT)),
    "anti_join": (SemiJoin(("k",), ("q",), anti=True), (LEFT, RIGHT)),
    "asof_join": (AsofJoin("left", ("k",), ("q",), "t", "u", "INT"), (LEFT, RIGHT)),
    "multiway_join": (MultiwayJoin(3, (((0, "k"), (1, "q")), ((1, "q"), (2, "r")))), (LEFT, RIGHT, THIRD)),
    "intersect": (Intersect(PLAIN), (PLAIN, PLAIN)),
    "difference": (Difference(PLAIN), (PLAIN, PLAIN)),
}


@dataclass(frozen=True)
class Life:
    """One of an id: in which slices its tuples come, when each input closes it, and until when that holds."""

    id: str
    number: int
    begin: int
    closed: tuple[int, ...]
    until: tuple[int, ...]

    def name(self, *, own: bool) -> str:
        return f"{self.id}#{self.number}" if own else self.id


def lives(random: Random, inputs: int, ids: int, slices: int) -> list[Life]:
    """Ids that live, each life closed by all inputs before the next, for as long as one of their tuples may come."""
    found = []
    for i in range(ids):
        at = random.randrange(3)
        for number in range(slices):
            closed = tuple(at + random.randrange(3) for _ in range(inputs))
            over = max(closed) + 1
            after = over + random.randrange(3)
            found.append(Life(f"id{i}", number, at, closed, tuple(random.randint(over, after) for _ in range(inputs))))
            at = after
    return found


def stream(found: list[Life], seed: int, schemas: tuple[Schema, ...], length: int, *, own: bool) -> list[list[Any]]:
    """By slices and inputs the tuples and the punctuations, with the ids' names, or with those of their lives."""
    slices: list[list[Any]] = [[([], []) for _ in schemas] for _ in range(length)]
    for life in found:
        for i, schema in enumerate(schemas):
            random = Random(f"{seed} {life.id} {life.number} {i}")
            name = life.name(own=own)
            for at in range(life.begin, min(life.closed[i] + 1, length)):
                times = sorted(random.randrange(10) for _ in range(random.randrange(3)))
                for second in times:
                    moment = 10 * at + second
                    timed = BEGIN + moment * SECOND if schema is TIMED else moment
                    value = random.randrange(3)
                    row = (name, value) if schema is PLAIN else (name, timed, value)[: len(schema)]
                    slices[at][i][0].append(row)
            if life.closed[i] >= length:
                continue
            p = Punctuation.at(schema, {0: Constant(name)})
            for at, until in [(life.closed[i], life.until[i])] if own else closings(life, i, random, length):
                slices[at][i][1].append(p.lasting(None if own else Lifespan(until=BEGIN + until * SECOND)))
    for (_, said), schema in zip(slices[-1], schemas, strict=True):
        said.append(Punctuation.all(schema))
    return slices


def closings(life: Life, i: int, random: Random, length: int) -> list[tuple[int, int]]:
    """In which slices an input closes it, and until when: perhaps also for less long, of which the longer counts."""
    at, until = life.closed[i], life.until[i]
    how = random.randrange(4)
    if how == 0:
        return random.sample([(at, until), (at, at + 1)], 2)
    if how in (1, 2) and at + 2 < until and at + 1 < length:
        return [(at, at + 2), (at + 1, until)]
    return [(at, until)]


def named(rows: list[Any]) -> list[Any]:
    """Rows whose ids are of lives, with the ids' own names."""
    bare = (tuple(v.partition("#")[0] if isinstance(v, str) else v for v in row) for row in rows)
    return sorted(bare, key=str)


def run(
    session: AnySession,
    directory: Path,
    name: str,
    seed: int,
    ids: int = IDS,
    slices: int = SLICES,
    answers: Iterable[Done | None] = repeat(None),
) -> list[Done]:
    """Runs the reused ids beside those of lives, or beside what has come of these; what has come of them."""
    operator, schemas = CASES[name]
    random = Random(seed)
    found = lives(random, len(schemas), ids, slices)
    reused, apart = (stream(found, seed, schemas, slices, own=own) for own in (False, True))
    one, other = (Running(session, directory / way, operator, *schemas) for way in ("reused", "apart"))
    promised: list[Punctuation] = []
    came: list[Done] = []
    for at, known in zip(range(slices), answers, strict=False):
        one.time = other.time = BEGIN + at * SECOND
        if at and random.random() < 0.3:
            one.restart()
        done, expected = one.slice(*reused[at]), known or other.slice(*apart[at])
        came.append(expected)
        assert sorted(done.tuples, key=str) == named(expected.tuples), f"slice {at}"
        assert done.kept == expected.kept, f"slice {at}"
        holding = [p for p in promised if p.lifespan is None or not one.is_over(p.lifespan)]
        assert not [(row, str(p)) for row in done.tuples for p in holding if p.matches(row)], f"slice {at}"
        promised += done.punctuations
    assert any(p.is_all for p in promised)
    assert any(p.lifespan is not None for p in promised) or name == "full join"
    return came


TWINS = {
    *("group_by", "distinct", "join"),
    *("top_n", "left join", "left range join", "anti_join", "asof_join", "multiway_join", "intersect"),
}
"""Left to nights: the first ones have another oracle in `test_lifespans`; what the others do, some here do, too."""


@pytest.mark.parametrize("name", [name for name in CASES if AT_NIGHT or name not in TWINS])
@fewer(30)
@given(seed=st.integers(0, 10**9), small=st.booleans())
def test_each_life_of_an_id_is_a_stream_of_its_own(
    session: AnySession, tmp_path_factory: pytest.TempPathFactory, name: str, seed: int, small: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if not small:
            patch.setattr(tuple_log, "SMALL", 0)
        run(session, tmp_path_factory.mktemp("lives"), name, seed)


def ends_late(patch: pytest.MonkeyPatch) -> None:
    """The end of a life is noticed one slice too late: the next life's tuples meet the punctuation of the last."""
    right = Lifespan.is_over
    patch.setattr(Lifespan, "is_over", lambda self, now, has_closed: right(self, now - SECOND, has_closed))


def ends_early(patch: pytest.MonkeyPatch) -> None:
    """Forgotten one slice too early: what comes of the other input is kept, and meets the next life."""
    right = Lifespan.is_over
    patch.setattr(Lifespan, "is_over", lambda self, now, has_closed: right(self, now + SECOND, has_closed))


def ends_never(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lifespan, "is_over", lambda self, now, has_closed: False)


def knows_the_shorter(patch: pytest.MonkeyPatch) -> None:
    """Of two lifespans of one id the shorter one counts."""
    patch.setattr("xmlstream.operators.state.expiring_set.lives_as_long", lambda one, other: lives_as_long(other, one))


FAULTS = [
    ("join", ends_late, 3, 1, 4),
    ("difference", ends_early, 7, 1, 4),
    ("join", ends_early, 6, 1, 5),
    ("join", ends_never, 2, 1, 4),
    ("join", knows_the_shorter, 18, 1, 6),
    ("semi_join", ends_early, 6, 1, 5),
    ("anti_join", ends_never, 2, 1, 4),
    ("multiway_join", ends_late, 2, 1, 4),
    ("multiway_join", ends_early, 1, 1, 4),
    ("range join", ends_early, 6, 1, 5),
    ("asof_join", ends_early, 6, 1, 5),
    ("intersect", ends_late, 3, 1, 4),
]
"""Each with the seed, the number of ids and of slices of the smallest example that shows it."""


@pytest.mark.parametrize(("name", "seed_fault", "seed", "ids", "slices"), FAULTS)
def test_an_end_at_another_slice_is_noticed(
    session: AnySession,
    tmp_path: Path,
    name: str,
    seed_fault: Callable[[pytest.MonkeyPatch], None],
    seed: int,
    ids: int,
    slices: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = run(session, tmp_path / "right", name, seed, ids, slices)
    seed_fault(monkeypatch)
    with pytest.raises(AssertionError, match="slice"):
        run(session, tmp_path / "wrong", name, seed, ids, slices, right)
