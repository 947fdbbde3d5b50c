"""What is due is out: by brute force over all tuples that may still come, with predicates, booleans and ended inputs.

A tuple may come if no punctuation matches it and the predicate is true of it. A group is due once no tuple of it may
come, a left tuple of an anti join once no partner may, a tuple of a sort once none may that sorts before it. So what a
predicate rejects counts as closed, and so does all of an input that has ended.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
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
        "SELECT x, y, z FROM (SELECT *, sum(y) OVER (ORDER BY x ROWS 1 PRECEDING) AS n FROM s WHERE {}) "
        "WHERE coalesce(n, 0) > -9",  # a column that nobody reads would be left out, and the order with it
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
