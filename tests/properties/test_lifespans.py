"""Lifespans against brute force: keys live, are closed for a while, and live again; each life is answered by itself.

Keys are independent of each other, so that one run over many keys is as many random streams. The oracle walks lists of
tuples, key by key, and knows nothing of sets, logs or segments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.nights import AT_NIGHT, SEED
from tests.harness.running import Running
from xmlstream.operators.behaviour import Operator
from xmlstream.operators.distinct import Distinct
from xmlstream.operators.expressions.aggregates import Aggregate
from xmlstream.operators.group_by import GroupBy
from xmlstream.operators.join import Join
from xmlstream.operators.merge import Merge
from xmlstream.operators.state import tuple_log
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.lifespan import Lifespan
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema

if TYPE_CHECKING:
    from xmlstream.session.engines import Session


ONE, OTHER = Schema.parse("k STRING, v INT"), Schema.parse("key STRING, w INT")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
KEYS = [f"k{n}" for n in range(400 if AT_NIGHT else 40)]
SLICES = 40 if AT_NIGHT else 10


@dataclass
class Side:
    """One random grammatical stream: of each key the slice up to which it is closed, None for ever."""

    schema: Schema
    random: Random
    closed: dict[str, int | None] = field(default_factory=dict)

    def is_closed(self, key: str, at: int) -> bool:
        return key in self.closed and (self.closed[key] is None or at < (self.closed[key] or 0))

    def slice(self, at: int, *, ends: bool) -> tuple[list[Any], list[Punctuation]]:
        rows, said = [], []
        for key in KEYS:
            if not self.is_closed(key, at) and self.random.random() < 0.5:
                rows += [(key, self.random.randrange(3)) for _ in range(self.random.randint(1, 2))]
            if not ends and self.random.random() < 0.35:
                # Again, perhaps, while it is closed: the longer one counts.
                until = None if self.random.random() < 0.05 else at + self.random.randint(0, 4)
                said.append(closing(self.schema, key, until))
                before = self.closed.get(key, -1)
                self.closed[key] = None if until is None or before is None else max(until, before)
        return rows, [*said, Punctuation.all(self.schema)] if ends else said


def closing(schema: Schema, key: str, until: int | None) -> Punctuation:
    lifespan = None if until is None else Lifespan(until=BEGIN + until * SECOND)
    return Punctuation.of(schema, {schema.names[0]: f'"{key}"'}).lasting(lifespan)


def grouped(came: list[Any]) -> list[list[Any]]:
    """By key, how many tuples each life has, in the slice that closes it."""
    open_: dict[str, int] = {}
    out = []
    for ((rows, said),) in came:
        for key, _ in rows:
            open_[key] = open_.get(key, 0) + 1
        gone = [key for key in open_ if any(p.matches((key, None)) for p in said)]
        out.append(sorted((key, open_.pop(key)) for key in gone))
    return out


def distinct(came: list[Any]) -> list[list[Any]]:
    """Each tuple once in a life."""
    kept: set[Any] = set()
    out = []
    for ((rows, said),) in came:
        new = set(rows) - kept
        kept = {row for row in kept | new if not any(p.matches(row) for p in said)}
        out.append(sorted(new))
    return out


def joined(came: list[Any]) -> list[list[Any]]:
    """The pairs of a key's tuples, each kept until the other side closes the key, and while it is closed not at all."""
    kept: list[list[Any]] = [[], []]
    closed: list[dict[str, Any]] = [{}, {}]
    out = []
    for at, sides in enumerate(came):
        new = [list(rows) for rows, _ in sides]
        pairs = [(*a, *b) for a in kept[0] + new[0] for b in new[1] if a[0] == b[0]]
        pairs += [(*a, *b) for a in new[0] for b in kept[1] if a[0] == b[0]]
        for i, (_, said) in enumerate(sides):
            for p in said:
                until = None if p.lifespan is None else (p.lifespan.until - BEGIN) / SECOND
                for key in KEYS:
                    if p.matches((key, None)):
                        before = closed[i].get(key, -1)
                        closed[i][key] = None if until is None or before is None else max(until, before)
        for i in range(2):
            others = closed[1 - i]
            # What is said in this slice acts in it, however soon it ends.
            now = {key for key in KEYS if any(p.matches((key, None)) for p in sides[1 - i][1])}
            holds = {key for key, until in others.items() if until is None or at < until} | now
            kept[i] = [row for row in kept[i] + new[i] if row[0] not in holds]
        out.append(sorted(pairs))
    return out


def merged(came: list[Any]) -> list[list[Any]]:
    return [sorted([*one[0], *other[0]]) for one, other in came]


COUNTED = GroupBy(("k",), (Aggregate(Attribute("n", Domain("BIGINT", nullable=False)), "count(*)"),))
CASES: dict[str, tuple[Operator, list[Schema], Callable[[list[Any]], list[list[Any]]]]] = {
    "group_by": (COUNTED, [ONE], grouped),
    "distinct": (Distinct(), [ONE], distinct),
    "join": (Join("inner", ("k",), ("key",)), [ONE, OTHER], joined),
    "merge": (Merge(ONE), [ONE, ONE], merged),
}


def run(session: Session, directory: Path, name: str, seed: int, *, restarts: bool = False) -> None:
    """Runs a random stream, and asserts that each slice gives what the oracle gives, and that its promises are kept."""
    operator, schemas, oracle = CASES[name]
    sides = [Side(schema, Random(f"{seed} {i}")) for i, schema in enumerate(schemas)]
    running = Running(session, directory, operator, *schemas)
    came: list[Any] = []
    promised: list[tuple[int, Punctuation]] = []
    for at in range(SLICES):
        items = [side.slice(at, ends=at == SLICES - 1) for side in sides]
        came.append(items)
        running.time = BEGIN + at * SECOND
        if restarts:
            running.restart() if at else None
        done = running.slice(*items)
        assert sorted(done.tuples) == oracle(came)[-1], f"slice {at}"
        holding = [p for _, p in promised if p.lifespan is None or not running.is_over(p.lifespan)]
        broken = [(row, str(p)) for row in done.tuples for p in holding if p.matches(row)]
        assert not broken, f"slice {at}"
        promised += [(at, p) for p in done.punctuations]
    assert promised
    assert any(p.is_all for _, p in promised)


WAYS = [
    (name, restarts, small)
    for name in CASES
    for restarts in (False, True)
    for small in (False, True)
    # By day one of the four ways.
    if AT_NIGHT or restarts is small is (name in ("distinct", "join"))
]


@pytest.mark.parametrize(("name", "restarts", "small"), WAYS)
def test_each_life_of_a_key_is_answered_by_itself(
    session: Session, tmp_path: Path, name: str, restarts: bool, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not small:
        monkeypatch.setattr(tuple_log, "SMALL", 0)
    for seed in range(SEED, SEED + (5 if AT_NIGHT else 1)):
        run(session, tmp_path / str(seed), name, seed, restarts=restarts)


# A group that has left needs nothing of its punctuation: it may end early.
@pytest.mark.parametrize(("name", "slices"), [("group_by", 1), ("join", 1), ("join", -1)])
def test_an_end_at_another_slice_is_noticed(
    session: Session, tmp_path: Path, name: str, slices: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = Lifespan.is_over
    monkeypatch.setattr(
        Lifespan, "is_over", lambda self, now, has_closed: right(self, now - slices * SECOND, has_closed)
    )
    with pytest.raises(AssertionError):
        run(session, tmp_path, name, 0)


@pytest.mark.parametrize("name", ["group_by", "join", "merge"])
def test_what_has_passed_is_not_held(session: Session, tmp_path: Path, name: str) -> None:
    """Lifetime after lifetime of the same keys, closed on all sides for a slice: nothing grows."""
    operator, schemas, _ = CASES[name]
    running = Running(session, tmp_path, operator, *schemas)
    held = []
    for life in range(200 if AT_NIGHT else 8):
        for at, rows, said in ((0, KEYS[:20], []), (1, [], KEYS[:20])):
            running.time = BEGIN + (2 * life + at) * SECOND
            until = 2 * life + 2
            items = [([(k, life) for k in rows], [closing(schema, k, until) for k in said]) for schema in schemas]
            done = running.slice(*items)
        held.append((running.punctuations_held, done.kept))
    assert len(set(held[1:])) == 1, held
    assert held[-1][1] == 0
