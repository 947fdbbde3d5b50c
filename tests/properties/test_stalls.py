"""Stalls of random plans: what is told to be missing, of whom, is what was withheld, and sets free what it was told of.

All tuples come, then punctuations that close both streams, but for one or some that are withheld. Of each row that is
kept then, what is told to be missing is of those; once it has come the row is gone, and not before.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.harness.nights import AT_NIGHT
from tests.harness.refused_in_process import is_refusal
from tests.properties.stalling import Stall, Stalled, assert_told, held_back, told_so_far
from tests.properties.test_random_plans import SPACE, TABLES, queries
from tests.samples.strategies import small_tuples
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.session.engines import is_in_process

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

VALUES = {
    "a": [["0", "1", "2", "3", "4", "null"], ["[0,1]", "{2,3,null}", "4"], ["(,2]", "[3,)", "null"]],
    "b": [["0", "1", "2", "3"], ["[0,1]", "[2,3]"], ["0", "{1,3}", "2"]],
}
"""Ways to close an attribute."""

WITHIN = Stall.pinned(
    SPACE.schema,
    "SELECT q.a, p.b FROM (SELECT a, b FROM s) AS p RIGHT JOIN (SELECT a, b FROM r) AS q ON p.b = q.b AND p.a < q.a",
    {"r": [(1, 0, 3), (2, 2, 3), (2, 2, 2)], "s": [(2, 2, 2)]},
    {"r": ["<(,1], *, *>", "<4, *, *>"], "s": ["<(,1], *, *>", "<{2,3,null}, *, *>", "<4, *, *>"]},
    {"r": ["<{2,3,null}, *, *>"]},
)
"""A tuple that waits for partners of its key within bounds: of others nobody needs to speak."""

NO_WINDOW = Stall.pinned(
    SPACE.schema,
    "SELECT a, b FROM (SELECT a, p.b FROM (SELECT CAST(unix_seconds(window.start) AS INT) AS a, max(b) AS b FROM r"
    " GROUP BY window(timestamp_seconds(a), '2 seconds')) AS p FULL JOIN (SELECT a, b FROM r) AS q USING (a)) AS p",
    {"r": [(1, 1, 1), (2, 2, 2), (4, 0, None)], "s": []},
    {"r": ["<*, 0, *>", "<*, 2, *>"], "s": ["<*, *, *>"]},
    {"r": ["<*, {1,3}, *>"]},
)
"""A tuple that waits for a window where none begins waits for the end of what windows are made of."""

BEYOND = Stall.pinned(
    SPACE.schema,
    "SELECT a, b FROM (SELECT a, b FROM (SELECT a, b FROM (SELECT x AS a, b FROM r LATERAL VIEW OUTER explode(IF(a = c,"
    " array(), array(a, b))) p AS x) AS p LEFT SEMI JOIN (SELECT a, b DIV 2 AS b FROM r WHERE c IS NULL OR c > 1) AS q"
    " ON p.a = q.a) AS p LEFT ANTI JOIN (SELECT a, x AS b FROM r LATERAL VIEW explode(array(b, c)) AS x"
    " WHERE c IS NULL OR x < 3) AS q ON p.b = q.b AND p.a > q.a) AS p WHERE (a + b > 1)",
    {"r": [(1, 1, 2), (0, 2, 1), (2, 1, 1), (3, 0, 2), (2, 3, 0)], "s": [(4, 3, None), (4, 0, 0), (3, 2, 1)]},
    {"r": ["<4, *, *>"], "s": ["<*, *, *>"]},
    {"r": ["<(,1], *, *>", "<{2,3,null}, *, *>"]},
)
"""A tuple waits for keys of which some are none of those that a side has: it never says that they are over."""

NEVER_NULL = Stall.pinned(
    SPACE.schema,
    "SELECT p.a, q.b FROM (SELECT c AS a, b FROM r INTERSECT SELECT a, c AS b FROM r WHERE a IS NULL) AS p"
    " JOIN (SELECT a, b FROM s) AS q ON p.a = q.a",
    {"r": [], "s": [(3, 1, 2), (1, 2, None)]},
    {"r": ["<*, {1,3}, *>", "<*, 2, *>"], "s": ["<(,2], *, *>", "<[3,), *, *>", "<null, *, *>"]},
    {"r": ["<*, 0, *>"]},
)
"""A tuple waits for keys of which an input of an intersection has none with null: they are over without it."""

HELD_BACK_BY_AN_ANSWER = Stall.pinned(
    SPACE.schema,
    "SELECT q.a, p.b FROM (SELECT x AS a, b FROM s LATERAL VIEW explode(array(a, b)) AS x) AS p JOIN"
    " (SELECT CAST(unix_seconds(window.start) AS INT) AS a, max(b) AS b FROM (SELECT x AS a, b FROM r LATERAL VIEW"
    " explode(array(a, b)) AS x) GROUP BY window(timestamp_seconds(a), '2 seconds')) AS q ON p.a = q.a AND p.b <= q.b"
    " EXCEPT SELECT x AS a, b FROM s LATERAL VIEW explode(array(a, b)) AS x",
    {"r": [(2, 1, 2), (0, 3, 1)], "s": [(4, 0, 3), (2, 0, 3)]},
    {"r": ["<0, *, *>", "<1, *, *>", "<2, *, *>", "<4, *, *>", "<null, *, *>"], "s": ["<(,3], *, *>", "<null, *, *>"]},
    {"r": ["<3, *, *>"], "s": ["<4, *, *>"]},
)
"""The end of one side lets groups out, which the join keeps until the end of the other: then that is waited for."""

LAST_OF_A_LIST = Stall.pinned(
    SPACE.schema,
    "SELECT a, p.b FROM (SELECT p.a, q.c AS b FROM r AS p JOIN s AS q ON p.b = q.b AND q.a > 0 AND p.c < 3"
    " WHERE p.b > 0) AS p FULL JOIN (SELECT a, b FROM (SELECT a, p.b FROM (SELECT c AS a, b FROM r) AS p FULL JOIN"
    " (SELECT a, b FROM s AS p LEFT SEMI JOIN s USING (c)) AS q USING (a)) AS p WHERE (a <= b) AND (a IN (0, 1, 3)))"
    " AS q USING (a)",
    {"r": [(4, 2, 3), (4, 2, 2), (3, 1, 1)], "s": [(4, 2, 3), (1, 0, 1), (1, 3, 2), (3, 0, 0)]},
    {"r": ["<*, *, *>"], "s": ["<[3,), *, *>", "<null, *, *>", "<(,2], {0,1,3}, *>"]},
    {"s": ["<(,2], 2, *>"]},
)
"""A list with the last value of a domain says of a wider one, which COALESCE has, that nothing lies beyond it."""

COPIED_BESIDE_TWO = Stall.pinned(
    SPACE.schema,
    "SELECT min(a) AS a, CAST(count(DISTINCT b) AS INT) AS b FROM (SELECT CAST(unix_seconds(session_window.end) AS INT)"
    " AS a, b FROM (SELECT a, b FROM r) AS p GROUP BY b, session_window(timestamp_seconds(a), '1 second')) AS p"
    " GROUP BY b DIV 2",
    {"r": [(0, 3, 2), (3, 0, 2), (2, 1, 3)], "s": []},
    {
        "r": ["<(,2], [2,), *>", "<[3,), (,1], *>", "<[3,), [2,), *>", "<null, (,1], *>", "<null, [2,), *>"],
        "s": ["<*, *, *>"],
    },
    {"r": ["<(,2], (,1], *>"]},
)
"""Of two attributes that are computed with, one is copied as well: each of its columns is closed."""


@st.composite
def stalls(draw: st.DrawFn) -> Stall:
    tuples = {name: draw(st.lists(small_tuples(SPACE), min_size=3, max_size=8)) for name in "rs"}
    said, withheld = draw(held_back({name: draw(closings()) for name in "rs"}))
    query = draw(queries(draw(st.integers(0, 2))))
    return Stall(query, tuples, said, withheld)


@st.composite
def closings(draw: st.DrawFn) -> list[Punctuation]:
    """Punctuations that together close a stream, by one attribute or by two."""
    names = draw(st.sampled_from([("a",), ("b",), ("a", "b")]))
    choices = [draw(st.sampled_from(VALUES[name])) for name in names]
    return [Punctuation.of(SPACE.schema, dict(zip(names, chosen, strict=True))) for chosen in product(*choices)]


STALLS = settings().max_examples // (5 if AT_NIGHT else 1)
"""How many are drawn: two hundred by night; by day none under Spark, where the pinned ones run."""


def test_what_is_told_to_be_missing_is_what_was_withheld_and_sets_free(session: Session) -> None:
    said: Counter[str] = Counter()
    draws = AT_NIGHT or is_in_process(session)

    @settings(
        max_examples=STALLS,
        deadline=None,
        phases=[Phase.explicit, *([Phase.generate] if draws else [])],
        suppress_health_check=list(HealthCheck),
    )
    @given(stalls())
    @example(WITHIN)
    @example(NO_WINDOW)
    @example(BEYOND)
    @example(NEVER_NULL)
    @example(HELD_BACK_BY_AN_ANSWER)
    @example(LAST_OF_A_LIST)
    @example(COPIED_BESIDE_TWO)
    def holds(stall: Stall) -> None:
        with tempfile.TemporaryDirectory() as directory:
            try:
                stalled = Stalled(session, Path(directory), TABLES, stall)
            except QueryError as error:
                if not is_refusal(error):
                    raise
                said["refused"] += 1
                return
            said.update(assert_told(stalled, stall), stalls=1)
            if said["stalls"] % 50 == 0:
                print(told_so_far(said), flush=True)

    holds()
    print(told_so_far(said))
    if draws:
        assert said["stalls"] + said["refused"] >= STALLS
        assert said["refused"] <= said["stalls"] / 5
