"""What is due is out: by brute force over all tuples that may still come, with predicates, booleans and ended inputs.

A tuple may come if no punctuation matches it and the predicate is true of it. A group is due once no tuple of it may
come, a left tuple of an anti join once no partner may, a tuple of a sort once none may that sorts before it. So what a
predicate rejects counts as closed, and so does all of an input that has ended.
"""

from __future__ import annotations

import operator
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.harness.nights import AT_NIGHT
from tests.harness.walking import Walk
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Scan, topological
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

Row: TypeAlias = tuple[int | None, int, bool | None]
SCHEMA = Schema.parse("x INT, y INT NOT NULL, z BOOLEAN", domains="x 0..2, y 0..2")
UNIVERSE: list[Row] = list(product((None, 0, 1, 2), (0, 1, 2), (None, False, True)))
TABLE = (
    "CREATE TABLE {0} (x INT, y INT NOT NULL, z BOOLEAN) USING punctuated_xml"
    " OPTIONS (path '{0}.xml', rowTag 'r', domains 'x 0..2, y 0..2', schemes 'y');\n"
)
PREDICATES: dict[str, Callable[[Row], bool]] = {
    "true": lambda _: True,
    "{0}x > 1": lambda t: t[0] is not None and t[0] > 1,
    "{0}x IS NULL": lambda t: t[0] is None,
    "{0}z": lambda t: t[2] is True,
    "NOT {0}z": lambda t: t[2] is False,
    "{0}x <> 1 OR {0}z": lambda t: t[0] in (0, 2) or t[2] is True,
    "{0}x BETWEEN 0 AND 1 AND {0}z": lambda t: t[0] in (0, 1) and t[2] is True,
    "{0}x IN (0, 2) AND {0}z IS NOT NULL": lambda t: t[0] in (0, 2) and t[2] is not None,
}
X = st.sampled_from(["*", "*", "0", "1", "(1,)", "(,1]", "{0,2}", "null", "{1,null}"])
Y = st.sampled_from(["*", "*", "0", "1", "2", "(,1]", "{0,2}"])
Z = st.sampled_from(["*", "*", "*", "true", "false", "null", "{false,null}"])
PUNCTUATIONS = st.builds(lambda x, y, z: Punctuation.parse(f"<{x}, {y}, {z}>", SCHEMA), X, Y, Z)


@dataclass(frozen=True, slots=True, repr=False)
class Fed:
    """Slices of both streams: tuples, and punctuations on what has come; the left one may end with a slice."""

    predicate: str
    slices: tuple[tuple[tuple[list[Row], list[Punctuation]], tuple[list[Row], list[Punctuation]]], ...]

    def __repr__(self) -> str:
        shown = [[(rows, list(map(str, ps))) for rows, ps in both] for both in self.slices]
        return f"{self.predicate}: {shown}"


@st.composite
def fed(draw: st.DrawFn) -> Fed:
    said: tuple[list[Punctuation], list[Punctuation]] = ([], [])
    slices = []
    ended = draw(st.integers(0, 3))
    for number in range(3):
        both = []
        for side in range(2):
            drawn = draw(st.lists(st.sampled_from(UNIVERSE), max_size=4))
            rows = [t for t in drawn if not any(p.matches(t) for p in said[side])]
            new = draw(st.lists(PUNCTUATIONS, max_size=4))
            new += [Punctuation.all(SCHEMA)] if (side, number) == (0, ended) else []
            said[side].extend(new)
            both.append((rows, new))
        slices.append((both[0], both[1]))
    return Fed(draw(st.sampled_from(list(PREDICATES))), tuple(slices))


class Seen:
    """What has come of a stream, and what may still come."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.open: list[Row] = list(UNIVERSE)

    def add(self, rows: list[Row], punctuations: list[Punctuation]) -> None:
        self.rows += rows
        self.open = [t for t in self.open if not any(p.matches(t) for p in punctuations)]


def _of_groups(r: Seen, s: Seen, holds: Callable[[Row], bool]) -> Counter[Any]:
    chosen = Counter(t[1] for t in s.rows if holds(t))
    return Counter((y, n) for y, n in chosen.items() if not any(t[1] == y and holds(t) for t in s.open))


def _without_partner(r: Seen, s: Seen, holds: Callable[[Row], bool]) -> Counter[Any]:
    partners = {t[1] for t in (*s.rows, *s.open) if holds(t)}
    return Counter(t for t in r.rows if t[1] not in partners)


def _sorted(r: Seen, s: Seen, holds: Callable[[Row], bool]) -> Counter[Any]:
    def place(t: Row) -> int:
        return -1 if t[0] is None else t[0]

    least = min((place(t) for t in s.open if holds(t)), default=3)
    return Counter(t for t in s.rows if holds(t) and place(t) < least)


def _of_joined(r: Seen, s: Seen, holds: Callable[[Row], bool]) -> Counter[Any]:
    """Groups of pairs by an attribute of the left stream."""
    some = [t for t in s.rows if holds(t)]
    found = Counter(left[2] for left in r.rows for right in some if left[1] == right[1])
    return Counter((z, n) for z, n in found.items() if not _may_grow(z, r, s, holds))


def _may_grow(z: bool | None, r: Seen, s: Seen, holds: Callable[[Row], bool]) -> bool:
    here, there = {t[1] for t in r.rows if t[2] is z}, {t[1] for t in s.rows if holds(t)}
    more, others = {t[1] for t in r.open if t[2] is z}, {t[1] for t in s.open if holds(t)}
    return bool(more & (there | others) or here & others)


CASES: dict[str, tuple[str, Callable[[Seen, Seen, Callable[[Row], bool]], Counter[Any]]]] = {
    "groups": ("SELECT y, count(*) AS n FROM s WHERE {} GROUP BY y", _of_groups),
    "anti join": ("SELECT r.* FROM r LEFT ANTI JOIN s ON r.y = s.y AND ({})", _without_partner),
    "sort": ("SELECT * FROM s WHERE {} ORDER BY x", _sorted),
    "order": (
        # Without a reader of its sum, OVER is left out, and the tuples pass at once.
        "SELECT x, y, z FROM (SELECT *, sum(y) OVER (ORDER BY x ROWS 1 PRECEDING) AS n FROM s WHERE {}) WHERE n >= 0",
        _sorted,
    ),
    "groups of a join": ("SELECT r.z, count(*) AS n FROM r JOIN s ON r.y = s.y WHERE {} GROUP BY r.z", _of_joined),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("session", ["in process"], indirect=True)
def test_what_is_due_is_out(name: str, session: InProcessSession) -> None:
    query, due = CASES[name]

    @settings(
        max_examples=settings().max_examples // (1 if AT_NIGHT else 2),
        suppress_health_check=[HealthCheck.too_slow],
        phases=[Phase.explicit, Phase.reuse, Phase.generate, *([Phase.shrink] if AT_NIGHT else [])],
    )
    @given(fed())
    def holds(drawn: Fed) -> None:
        text = query.format(drawn.predicate.format("s."))
        root = optimized(read(TABLE.format("r") + TABLE.format("s") + text).plan(session))
        names = {scan.operator.name for scan in topological(root) if isinstance(scan.operator, Scan)}
        seen, out = {name: Seen() for name in "rs"}, Counter[Any]()
        with tempfile.TemporaryDirectory() as directory:
            walk = Walk(session, Path(directory), root)
            for slices in drawn.slices:
                given_ = dict(zip("rs", slices, strict=True))
                for one, (rows, punctuations) in given_.items():
                    seen[one].add(rows, punctuations)
                out.update(map(tuple, walk.slice({one: given_[one] for one in names}).tuples))
                assert out == due(seen["r"], seen["s"], PREDICATES[drawn.predicate]), f"{text}\n{drawn}"

    holds()


def _order(value: Any) -> Any:
    """What sorts before or behind others: null first."""
    return (value is not None, value if value is not None else 0)


def _in_order(rows: list[Row], *, falling: bool = False) -> list[Row]:
    """Rows by x, ties by the others with null first; null is first by x, or last if that falls."""
    by_others = sorted(rows, key=lambda t: (_order(t[1]), _order(t[2])))
    return sorted(by_others, key=lambda t: _order(t[0]), reverse=falling)


def _by_group(rows: list[Row], place: int | None) -> list[list[Row]]:
    return [
        [t for t in rows if place is None or t[place] == of]
        for of in ({None} if place is None else {t[place] for t in rows})
    ]


@dataclass(frozen=True, slots=True)
class Decided:
    """A query over `s` in the order of x, its answer by groups, and what of an answer may wait for longer.

    Attributes:
        query: The query, with the place of a predicate.
        group: The place of the attribute whose values have an order each; None for one order.
        answer: The answer of a group, each row of which begins with the values of a tuple.
        falling: Whether the order falls.
        early: Whether a row may be decided before all that sorts before it is closed, as where a frame is short, or
            where a value that comes again does not count again.
    """

    query: str
    group: int | None
    answer: Callable[[list[Row]], list[tuple[Any, ...]]]
    falling: bool = False
    early: bool = False

    def of(self, rows: list[Row]) -> Counter[tuple[Any, ...]]:
        return Counter(t for group in _by_group(rows, self.group) for t in self.answer(group))

    def agreed(self, seen: Seen, holds: Callable[[Row], bool]) -> Counter[tuple[Any, ...]]:
        """What is in the answer whatever still comes: up to three of one kind, or two of two."""
        came, coming = [t for t in seen.rows if holds(t)], [t for t in seen.open if holds(t)]
        found = self.of(came)
        for more in [*([t] * n for t in coming for n in (1, 2, 3)), *map(list, combinations(coming, 2))]:
            if not found:
                break
            found &= self.of([*came, *more])
        return found

    def may_wait(self, t: tuple[Any, ...], seen: Seen, holds: Callable[[Row], bool]) -> bool:
        """Whether one equal by x may still come, whose place among these is not asked for; if `early`, one before."""
        beside = (u for u in seen.open if holds(u) and (u[0] == t[0] or (self.early and _order(u[0]) < _order(t[0]))))
        return any(self.group is None or u[self.group] == t[self.group] for u in beside)


def _first(n: int, falling: bool = False) -> Callable[[list[Row]], list[tuple[Any, ...]]]:
    return lambda rows: list(_in_order(rows, falling=falling)[:n])


def _ranked(n: int, *, dense: bool = False) -> Callable[[list[Row]], list[tuple[Any, ...]]]:
    def answer(rows: list[Row]) -> list[tuple[Any, ...]]:
        before = [[u[0] for u in rows if _order(u[0]) < _order(t[0])] for t in rows]
        ranks = [1 + len({*each} if dense else each) for each in before]
        return [(*t, rank) for t, rank in zip(rows, ranks, strict=True) if rank <= n]

    return answer


def _numbered(rows: list[Row]) -> list[tuple[Any, ...]]:
    return [(*t, number) for number, t in enumerate(_in_order(rows), start=1)]


def _near(rows: list[Row]) -> list[tuple[Any, ...]]:
    def sees(t: Row, u: Row) -> bool:
        return t[0] is u[0] if t[0] is None or u[0] is None else t[0] - 1 <= u[0] <= t[0]

    return [(*t, sum(sees(t, u) for u in rows)) for t in rows]


DECIDED = {
    "limit": Decided("SELECT * FROM s WHERE {} ORDER BY x LIMIT 2", None, _first(2)),
    "limit, from the end": Decided("SELECT * FROM s WHERE {} ORDER BY x DESC LIMIT 2", None, _first(2, True), True),
    "qualify": Decided(
        "SELECT * FROM s WHERE {} QUALIFY row_number() OVER (PARTITION BY y ORDER BY x) <= 2", 1, _first(2)
    ),
    "where": Decided(
        "SELECT x, y, z FROM (SELECT *, row_number() OVER (PARTITION BY z ORDER BY x) AS n FROM s WHERE {})"
        " WHERE n < 2",
        2,
        _first(1),
    ),
    "rank": Decided(
        "SELECT * FROM (SELECT *, rank() OVER (PARTITION BY y ORDER BY x) AS n FROM s WHERE {}) WHERE n <= 2",
        1,
        _ranked(2),
    ),
    "dense_rank": Decided(
        "SELECT * FROM (SELECT *, dense_rank() OVER (ORDER BY x) AS n FROM s WHERE {}) WHERE n < 3",
        None,
        _ranked(2, dense=True),
        early=True,
    ),
    "over": Decided("SELECT *, row_number() OVER (PARTITION BY y ORDER BY x) AS n FROM s WHERE {}", 1, _numbered),
    "over a range": Decided(
        "SELECT *, count(*) OVER (PARTITION BY y ORDER BY x RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS n"
        " FROM s WHERE {}",
        1,
        _near,
        early=True,
    ),
}


@pytest.mark.parametrize("name", DECIDED)
@pytest.mark.parametrize("session", ["in process"], indirect=True)
def test_what_every_continuation_agrees_on_is_out(name: str, session: InProcessSession) -> None:
    """And nothing else is: no row that a continuation would not have."""
    case = DECIDED[name]

    @settings(
        max_examples=settings().max_examples // (1 if AT_NIGHT else 4),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        phases=[Phase.explicit, Phase.reuse, Phase.generate, *([Phase.shrink] if AT_NIGHT else [])],
    )
    @given(fed())
    def holds(drawn: Fed) -> None:
        text, predicate = case.query.format(drawn.predicate.format("s.")), PREDICATES[drawn.predicate]
        root = optimized(read(TABLE.format("s") + text).plan(session))
        seen, out = Seen(), Counter[Any]()
        with tempfile.TemporaryDirectory() as directory:
            walk = Walk(session, Path(directory), root)
            for _, (rows, punctuations) in drawn.slices:
                seen.add(rows, punctuations)
                out.update(map(tuple, walk.slice({"s": (rows, punctuations)}).tuples))
                agreed = case.agreed(seen, predicate)
                assert out <= agreed, f"{text}\n{drawn}: {out - agreed} may not be in the answer"
                due = Counter(t for t in (agreed - out).elements() if not case.may_wait(t, seen, predicate))
                assert not due, f"{text}\n{drawn}: {due} is in the answer, whatever comes"
                walk.restart()

    holds()


AS_OF = (
    "SELECT r.x, r.y, r.z, s.x AS since, s.z AS of FROM r ASOF JOIN (SELECT * FROM s WHERE {}) AS s"
    " MATCH_CONDITION (r.x >= s.x) ON r.y = s.y"
)


def _before(t: Row, u: Row) -> bool:
    return t[1] == u[1] and t[0] is not None and u[0] is not None and u[0] <= t[0]


def _with_last(rows: list[Row], others: list[Row]) -> Counter[tuple[Any, ...]]:
    """Each row with the last of the others that is not later; of equal ones the first by z, null first."""
    found = Counter[tuple[Any, ...]]()
    for t in rows:
        if partners := [u for u in others if _before(t, u)]:
            last = max(u[0] for u in partners if u[0] is not None)
            found[(*t, last, min((u[2] for u in partners if u[0] == last), key=_order))] += 1
    return found


@pytest.mark.parametrize("session", ["in process"], indirect=True)
def test_the_last_partner_on_which_every_continuation_agrees_is_out(session: InProcessSession) -> None:
    @settings(
        max_examples=settings().max_examples // (1 if AT_NIGHT else 4),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        phases=[Phase.explicit, Phase.reuse, Phase.generate, *([Phase.shrink] if AT_NIGHT else [])],
    )
    @given(fed())
    def holds(drawn: Fed) -> None:
        text, predicate = AS_OF.format(drawn.predicate.format("s.")), PREDICATES[drawn.predicate]
        root = optimized(read(TABLE.format("r") + TABLE.format("s") + text).plan(session))
        r, s, out = Seen(), Seen(), Counter[Any]()
        with tempfile.TemporaryDirectory() as directory:
            walk = Walk(session, Path(directory), root)
            for left, right in drawn.slices:
                r.add(*left)
                s.add(*right)
                out.update(map(tuple, walk.slice({"r": left, "s": right}).tuples))
                came, coming = [u for u in s.rows if predicate(u)], [u for u in s.open if predicate(u)]
                agreed = reduce(
                    operator.and_, (_with_last(r.rows, [*came, u]) for u in coming), _with_last(r.rows, came)
                )
                assert out <= agreed, f"{text}\n{drawn}: {out - agreed} may not be in the answer"
                due = Counter(t for t in (agreed - out).elements() if not any(_before(t[:3], u) for u in coming))
                assert not due, f"{text}\n{drawn}: {due} is in the answer, whatever comes"
                walk.restart()

    holds()
