"""Queries and what their sources promise, drawn and pinned, of which verdicts are held against runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from hypothesis import strategies as st

from tests.harness.nights import AT_NIGHT
from tests.properties.test_random_plans import queries

TABLE = (
    "CREATE TABLE {} (a INT, b INT NOT NULL, c INT) USING punctuated_xml"
    " OPTIONS (path '{}.xml', rowTag 'r', schemes '{}');\n"
)
SCHEMES = ["", "a", "b", "c", "a; b", "b; c", "a, b", "a prefix", "b prefix", "a; b prefix", "b, a prefix", "a, b; c"]
Inputs: TypeAlias = tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]
"""The tuples of both sources."""

VALUES = (0, 1, 2, 3)

DEEPEST = 3 if AT_NIGHT else 2


@dataclass(frozen=True, slots=True, repr=False)
class Judged:
    """A query, what its sources promise, their tuples, and whether it runs as it was written."""

    query: str
    schemes: tuple[str, str]
    tuples: Inputs
    as_written: bool


@st.composite
def promising(draw: st.DrawFn) -> Judged:
    schemes = draw(st.sampled_from(SCHEMES)), draw(st.sampled_from(SCHEMES))
    query = draw(queries(draw(st.integers(0, DEEPEST))))
    drawn: list[list[tuple[Any, ...]]] = []
    for said in schemes:
        a = st.sampled_from(VALUES if "a prefix" in said else (*VALUES, None))
        whole = st.tuples(a, st.sampled_from(VALUES), st.sampled_from((*VALUES, None)))
        drawn.append(draw(st.lists(whole, min_size=2, max_size=5)))
    return Judged(query, schemes, (drawn[0], drawn[1]), draw(st.integers(0, 3)) == 0)


HALF_UNDECIDED = Judged(
    "SELECT a, b FROM (SELECT a, b FROM (SELECT a, b DIV 2 AS b FROM s WHERE c IS NULL OR c > 1) AS p UNION"
    " SELECT a, b FROM (SELECT a, b FROM r AS p LEFT SEMI JOIN s USING (c)) AS q) AS p WHERE (a IS NOT NULL)",
    ("b; c", "b prefix"),
    ([(None, 3, 1), (None, 1, 3)], [(3, 2, 1), (None, 3, None)]),
    as_written=False,
)
"""What the semi join lets through hides that it has tuples of the same `b` about which nothing is decided."""


OF_ITSELF = Judged(
    "SELECT a, b FROM (SELECT a, b FROM s AS p LEFT SEMI JOIN s USING (c)) AS q WHERE b < 3",
    ("", "b prefix"),
    ([], [(0, 0, 1), (0, 0, 0)]),
    as_written=False,
)
"""A tuple whose partner may be itself never waits for one, which no promise tells."""

LIKE_ITSELF = Judged(
    "SELECT a, b FROM (SELECT c AS a, b FROM r UNION SELECT a, b FROM r) AS p INTERSECT SELECT a, b FROM r",
    ("a, b", ""),
    ([(2, 3, 0), (3, 3, 0)], []),
    as_written=False,
)
"""A tuple has its like in the union, which has it from the same source, and never waits for one."""

HELD_BACK_BY_NOTHING = Judged(
    "SELECT a, b FROM (SELECT a, p.b FROM (SELECT p.a, q.b FROM (SELECT a, b FROM r WHERE a IS NULL AND a IN (0, 1, 3))"
    " AS p JOIN s AS q ON p.a = q.a) AS p FULL JOIN r AS q USING (a)) AS p WHERE a IN (0, 1, 3)",
    ("a", "b prefix"),
    ([(0, 3, 0), (3, 0, 3)], [(None, 0, 3), (3, 1, 3)]),
    as_written=False,
)
"""Tuples that the first join would keep for ever would hold back what frees the second of its; but none comes."""

OF_ONE_SIDE_OF_A_FULL_JOIN = Judged(
    "SELECT max(a) AS a, b FROM (SELECT a, p.b FROM (SELECT a, b FROM r WHERE a <= b) AS p FULL JOIN"
    " (SELECT a, c AS b FROM r) AS q USING (a) WHERE a IN (0, 1, 3)) AS p GROUP BY b",
    ("a; b prefix", "b"),
    ([(3, 0, 2), (3, 2, 0)], [(0, 2, 3), (0, 0, 1)]),
    as_written=True,
)
"""Only tuples with `a` above `b` have partners on one side of the outer join alone, and null in `b` behind it."""

BEHIND_THE_LAST_ROWS = Judged(
    "SELECT a, b FROM (SELECT q.a, p.b FROM (SELECT a, b FROM (SELECT CAST(count(a) OVER (ORDER BY b, a ROWS BETWEEN 1"
    " PRECEDING AND 2 FOLLOWING) AS INT) AS a, b FROM (SELECT x AS a, b FROM r LATERAL VIEW OUTER"
    " explode(IF(a = c, array(), array(a, b))) p AS x) AS p) AS p WHERE a <> 2 OR b = 1) AS p RIGHT JOIN"
    " (SELECT a, b FROM s) AS q ON p.b = q.b AND p.a < q.a) AS p WHERE (a <= b)",
    ("b prefix", "b prefix"),
    ([(3, 2, 1), (1, 0, 3), (0, 3, 3), (1, 3, 3), (1, 3, 2)], [(2, 3, 3), (0, 1, 1), (2, 3, 2)]),
    as_written=False,
)
"""The last rows hold back the end of what the join waits for, until others come behind them, which never do here."""

WITHOUT_NULL_ON_ONE_SIDE = Judged(
    "SELECT c AS a, b FROM s UNION SELECT a, x AS b FROM s LATERAL VIEW explode(array(b, c)) AS x",
    ("", "a; b"),
    ([], [(1, 3, None), (2, 0, 3)]),
    as_written=False,
)
"""Null is closed of the second query alone: in the first one there is none."""

NEVER_WITHIN = Judged(
    "SELECT a, b FROM (SELECT q.a, p.b FROM (SELECT x AS a, b FROM s LATERAL VIEW OUTER explode(IF(a = c, array(),"
    " array(a, b))) p AS x) AS p RIGHT JOIN (SELECT a, b FROM r) AS q ON p.b = q.b AND p.a < q.a) AS p"
    " WHERE (a IS NULL) AND (a <= b)",
    ("a, b", "a, b"),
    ([(2, 1, 0), (None, 0, 3)], [(0, 0, 0), (1, 1, 1)]),
    as_written=False,
)
"""Partners have no `a`, as the predicate says: none is within the bound, and nothing waits for one."""

NO_MOMENT = Judged(
    "SELECT b, CAST(unix_seconds(session_window.end) AS INT) AS a FROM (SELECT a, b FROM s WHERE a IS NULL) AS p"
    " GROUP BY b, session_window(timestamp_seconds(a), '1 second')",
    ("a", "c"),
    ([], [(2, 1, 3), (None, 0, 2)]),
    as_written=False,
)
"""What is null, as the predicate says, is in no session, and nothing is kept of it."""

WITHOUT_ITS_LIKE = Judged(
    "SELECT x AS a, b FROM r LATERAL VIEW OUTER explode(IF(a = c, array(), array(a, b))) p AS x INTERSECT"
    " SELECT a, b FROM r",
    ("a, b", ""),
    ([(0, 3, 3), (0, 1, 3)], []),
    as_written=True,
)
"""Only a tuple of equal `a` and `c` has no like in the first query, unless another one of its `a` and `b` comes."""

WITHOUT_ITS_LIKE_BESIDE_A_HALF = Judged(
    "SELECT a, b FROM (SELECT a, b FROM r INTERSECT SELECT a, b DIV 2 AS b FROM r WHERE c IS NULL OR c > 1) AS p"
    " WHERE a <= b INTERSECT"
    " SELECT x AS a, b FROM r LATERAL VIEW OUTER explode(IF(a = c, array(), array(a, b))) p AS x",
    ("a, b", ""),
    ([(1, 1, 1), (0, 0, 0)], []),
    as_written=False,
)
"""A tuple of equal `a` and `c` that has no like, and gets into the first query by another one of twice its `b`."""

OF_NO_NULL = Judged(
    "SELECT a, b FROM (SELECT q.a, p.b FROM (SELECT a, b FROM r) AS p RIGHT JOIN (SELECT a, b FROM r WHERE a IS NULL)"
    " AS q ON p.b = q.b AND p.a < q.a) AS p WHERE a > 0 UNION SELECT a, b FROM r",
    ("b; c", "c"),
    ([(3, 1, 2), (2, 2, None)], []),
    as_written=False,
)
"""Tuples of the outer join would be kept for ever with null in `b`, and there are none: its predicates contradict."""

OF_NO_NULL_OF_ANOTHER = Judged(
    "SELECT a, b FROM (SELECT q.a, p.b FROM r AS p RIGHT JOIN s AS q ON p.b = q.b AND p.a < q.a) AS p"
    " WHERE a + b > 1 EXCEPT SELECT a, b FROM r",
    ("b; c", "b; c"),
    ([(2, 0, 1), (2, 0, None)], [(0, 0, 0), (0, 0, 0)]),
    as_written=True,
)
"""EXCEPT would keep tuples with null in `b` for ever: the predicate lets none through, and `r` has none."""

OF_FEW_VALUES_ON_ONE_SIDE = Judged(
    "SELECT max(a) AS a, b FROM (SELECT a, b FROM (SELECT p.a, q.b FROM (SELECT q.a, p.b FROM (SELECT a, b FROM r) AS p"
    " JOIN (SELECT a, b DIV 2 AS b FROM r WHERE c IS NULL OR c > 1) AS q ON p.a = q.a AND p.b <= q.b) AS p"
    " JOIN (SELECT a, b DIV 2 AS b FROM r WHERE c IS NULL OR c > 1) AS q ON p.a = q.a) AS p"
    " WHERE (b < 3) AND (a IN (0, 1, 3))) AS p GROUP BY b",
    ("a; b", "a; b"),
    ([(2, 2, 1), (2, 1, 0)], [(0, 0, 0), (None, 0, 2), (3, 2, 2)]),
    as_written=False,
)
"""Promises of `a` close the whole side, since its predicate leaves few values; those of other sides are like them."""

OF_A_PART_OF_ITSELF = Judged(
    "SELECT a, b FROM (SELECT a, b FROM (SELECT a, b FROM (SELECT x AS a, b FROM s LATERAL VIEW OUTER explode(IF(a = c,"
    " array(), array(a, b))) p AS x) AS p UNION SELECT a, b FROM (SELECT a, b FROM r) AS q) AS p WHERE (a > 0)"
    " AND (a <> 2 OR b = 1)) AS p INTERSECT SELECT a, b FROM (SELECT a, b FROM r) AS q",
    ("b prefix", ""),
    ([(0, 0, 0), (0, 0, 0)], [(0, 0, 0), (0, 0, 0)]),
    as_written=False,
)
"""INTERSECT would wait with tuples of `r` for `s`, but finds each of them in `r` itself."""

PINNED = [
    HALF_UNDECIDED,
    NEVER_WITHIN,
    NO_MOMENT,
    BEHIND_THE_LAST_ROWS,
    WITHOUT_NULL_ON_ONE_SIDE,
    OF_ITSELF,
    LIKE_ITSELF,
    HELD_BACK_BY_NOTHING,
    OF_ONE_SIDE_OF_A_FULL_JOIN,
    WITHOUT_ITS_LIKE,
    WITHOUT_ITS_LIKE_BESIDE_A_HALF,
    OF_NO_NULL,
    OF_NO_NULL_OF_ANOTHER,
    OF_FEW_VALUES_ON_ONE_SIDE,
    OF_A_PART_OF_ITSELF,
]
"""What a search once found."""
