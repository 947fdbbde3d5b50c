"""Each life of an id is a stream of its own: what comes out is what comes out where every life has an id of its own.

Ids live, are closed on all inputs with lifespans of their own, and live again. The oracle is the same operator over the
same tuples whose ids tell which life they are of, closed for ever: nothing in it can know of lifespans. Both must hand
out the same tuples in the same slices, and keep as many.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.asof_join import AsofJoin
from operators.distinct import Distinct
from operators.expressions.decomposition import Aggregate
from operators.expressions.over import Over
from operators.group_by import GroupBy
from operators.intersect import Intersect
from operators.join import Join
from operators.look_ahead import LookAhead
from operators.multiway_join import MultiwayJoin
from operators.row_window import RowWindow
from operators.semi_join import SemiJoin
from operators.session import Session
from operators.state import tuple_log
from operators.state.behaviour import Operator
from operators.state.sort_key import SortKey
from operators.top_n import TopN
from operators.window import Window
from punct_ns.domain import Domain
from punct_ns.lifespan import Lifespan
from punct_ns.pattern import Constant
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Attribute, Schema
from tests.harness.running import Running
from tests.samples.strategies import fewer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
SLICES, IDS = 9, 8

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


def lives(random: Random, inputs: int) -> list[Life]:
    """Ids that live, each life closed by all inputs before the next, for as long as one of their tuples may come."""
    found = []
    for i in range(IDS):
        at = random.randrange(3)
        for number in range(SLICES):
            closed = tuple(at + random.randrange(3) for _ in range(inputs))
            over = max(closed) + 1
            after = over + random.randrange(3)
            found.append(Life(f"id{i}", number, at, closed, tuple(random.randint(over, after) for _ in range(inputs))))
            at = after
    return found


def stream(found: list[Life], seed: int, schemas: tuple[Schema, ...], *, own: bool) -> list[list[Any]]:
    """By slices and inputs the tuples and the punctuations, with the ids' names, or with those of their lives."""
    slices: list[list[Any]] = [[([], []) for _ in schemas] for _ in range(SLICES)]
    for life in found:
        for i, schema in enumerate(schemas):
            random = Random(f"{seed} {life.id} {life.number} {i}")
            name = life.name(own=own)
            for at in range(life.begin, min(life.closed[i] + 1, SLICES)):
                times = sorted(random.randrange(10) for _ in range(random.randrange(3)))
                for second in times:
                    moment = 10 * at + second
                    timed = BEGIN + moment * SECOND if schema is TIMED else moment
                    value = random.randrange(3)
                    row = (name, value) if schema is PLAIN else (name, timed, value)[: len(schema)]
                    slices[at][i][0].append(row)
            if life.closed[i] >= SLICES:
                continue
            p = Punctuation.at(schema, {0: Constant(name)})
            ends = None if own else Lifespan(until=BEGIN + life.until[i] * SECOND)
            said = [p.lasting(ends)]
            if not own and random.random() < 0.3:
                # Said again for less long, before or behind: the longer one counts.
                said.insert(random.randrange(2), p.lasting(Lifespan(until=BEGIN + (life.closed[i] + 1) * SECOND)))
            slices[life.closed[i]][i][1].extend(said)
    for (_, said), schema in zip(slices[-1], schemas, strict=True):
        said.append(Punctuation.all(schema))
    return slices


def named(rows: list[Any]) -> list[Any]:
    """Rows whose ids are of lives, with the ids' own names."""
    bare = (tuple(v.partition("#")[0] if isinstance(v, str) else v for v in row) for row in rows)
    return sorted(bare, key=str)


def run(spark: SparkSession, directory: Path, name: str, seed: int) -> None:
    operator, schemas = CASES[name]
    random = Random(seed)
    found = lives(random, len(schemas))
    reused, apart = (stream(found, seed, schemas, own=own) for own in (False, True))
    one, other = (Running(spark, directory / way, operator, *schemas) for way in ("reused", "apart"))
    promised: list[Punctuation] = []
    for at in range(SLICES):
        one.time = other.time = BEGIN + at * SECOND
        if at and random.random() < 0.3:
            one.restart()
        done, expected = one.slice(*reused[at]), other.slice(*apart[at])
        assert sorted(done.tuples, key=str) == named(expected.tuples), f"slice {at}"
        assert done.kept == expected.kept, f"slice {at}"
        holding = [p for p in promised if p.lifespan is None or not one.is_over(p.lifespan)]
        assert not [(row, str(p)) for row in done.tuples for p in holding if p.matches(row)], f"slice {at}"
        promised += done.punctuations
    assert any(p.is_all for p in promised)
    assert any(p.lifespan is not None for p in promised) or name == "full join"


@pytest.mark.parametrize("name", CASES)
@fewer(30)
@given(seed=st.integers(0, 10**9), small=st.booleans())
def test_each_life_of_an_id_is_a_stream_of_its_own(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, name: str, seed: int, small: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if not small:
            patch.setattr(tuple_log, "SMALL", 0)
        run(spark, tmp_path_factory.mktemp("lives"), name, seed)
