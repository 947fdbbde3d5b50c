"""Stalls of operators over time, and of joins of many inputs: each of them is there, whatever random plans draw."""

from __future__ import annotations

import tempfile
from collections import Counter
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.properties.stalling import Stall, Stalled, assert_told, held_back, told_so_far
from tests.samples.strategies import Small, SmallSchema, small_tuples
from xmlstream.operators.asof_join import AsofJoin
from xmlstream.operators.group_by import GroupBy
from xmlstream.operators.join import Join
from xmlstream.operators.look_ahead import LookAhead
from xmlstream.operators.multiway_join import MultiwayJoin
from xmlstream.operators.row_window import RowWindow
from xmlstream.operators.semi_join import SemiJoin
from xmlstream.operators.session import Session
from xmlstream.operators.sort import Sort
from xmlstream.operators.top_n import TopN
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.pattern import Constant, List, Pattern, Range
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from xmlstream.session.engines import Session as AnySession

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

NAMES = "rsu"
TABLES = "".join(
    f"CREATE TABLE {name} (k INT NOT NULL, t TIMESTAMP, v INT NOT NULL) USING punctuated_xml"
    f" OPTIONS (path '{name}.xml', rowTag 'r', schemes '{{{name}}}');\n"
    for name in NAMES
)
EACH = dict.fromkeys(NAMES, "k; t; v")
CYCLE = {"r": "k", "s": "v", "u": "k"}
"""Safe as one join alone, as in Li et al. 2006, Fig. 5."""

MOMENTS = [datetime(2003, 5, 15, 17, 20, second, tzinfo=UTC) for second in range(8)]
FEW = Small(Domain("INT", nullable=False), (0, 1, 2), (0, 1, 2))
SPACE = SmallSchema(
    read(TABLES.format_map(EACH) + "SELECT * FROM r").tables["r"].schema,
    (FEW, Small(Domain("TIMESTAMP"), tuple(MOMENTS), (*MOMENTS, None)), FEW),
)
NUMBERS: list[list[Pattern]] = [
    [Range(None, 0, False, True), Constant(1), Range(2, None, True, False)],
    [List((0, 2)), Constant(1), Range(None, 0, False, False), Range(2, None, False, False)],
]
TIMES: list[list[Pattern]] = [
    [Range(None, MOMENTS[3], False, False), Range(MOMENTS[3], None, True, False), Constant(None)],
    [Range(None, MOMENTS[2], False, False), Constant(MOMENTS[2]), Range(MOMENTS[2], MOMENTS[5], False, False),
     Range(MOMENTS[5], None, True, False), Constant(None)],
    [Range(MOMENTS[4], None, True, False), Range(None, MOMENTS[4], False, False), Constant(None)],
]  # fmt: skip
CLOSINGS = {"k": NUMBERS, "t": TIMES, "v": NUMBERS}
"""Ways to close an attribute."""

QUERIES = [
    (GroupBy, "SELECT k, CAST(count(*) AS INT) AS n FROM r GROUP BY k, window(t, '2 seconds')"),
    (GroupBy, "SELECT max(k) AS k, min(v) AS n FROM r GROUP BY window(t, '4 seconds', '2 seconds')"),
    (Session, "SELECT k, CAST(count(*) AS INT) AS n FROM r GROUP BY k, session_window(t, '2 seconds')"),
    (Session, "SELECT max(k) AS k, min(v) AS n FROM r GROUP BY session_window(t, '1 second')"),
    (Join, "SELECT r.k, s.v AS n FROM r JOIN s ON r.k = s.k AND s.t BETWEEN r.t AND r.t + INTERVAL 2 SECONDS"),
    (Join, "SELECT r.k, s.v AS n FROM r LEFT JOIN s ON r.k = s.k AND s.t > r.t - INTERVAL 1 SECOND AND s.v <= r.v"),
    (Join, "SELECT s.k, s.v AS n FROM r RIGHT JOIN s ON r.v = s.v AND date_trunc('MINUTE', s.t) < r.t"),
    (Join, "SELECT r.k, s.v AS n FROM r JOIN s ON r.k = s.k AND CAST(s.v AS BIGINT) > r.v"),
    (Join, "SELECT max(r.k) AS k, max(s.v) AS n FROM r JOIN s ON r.k = s.k AND s.t BETWEEN r.t AND"
     " r.t + INTERVAL 1 SECOND GROUP BY window(s.t, '2 seconds')"),
    (SemiJoin, "SELECT k, v AS n FROM r LEFT SEMI JOIN s ON r.k = s.k AND s.t BETWEEN r.t AND r.t + INTERVAL 1 SECOND"),
    (SemiJoin, "SELECT k, v AS n FROM r LEFT ANTI JOIN s ON r.k = s.k AND s.t >= r.t - INTERVAL 1 SECOND"),
    (AsofJoin, "SELECT r.k, s.v AS n FROM r ASOF JOIN s MATCH_CONDITION (r.t >= s.t) ON r.k = s.k"),
    (AsofJoin, "SELECT r.k, s.v AS n FROM r LEFT ASOF JOIN s MATCH_CONDITION (r.t > s.t) ON r.k = s.k"),
    (RowWindow, "SELECT k, CAST(sum(v) OVER (PARTITION BY k ORDER BY t ROWS 1 PRECEDING) AS INT) AS n FROM r"),
    (RowWindow, "SELECT k, lag(v, 1, 0) OVER (ORDER BY t DESC) AS n FROM r"),
    (LookAhead, "SELECT k, lead(v, 2) OVER (PARTITION BY k ORDER BY t) AS n FROM r"),
    (LookAhead, "SELECT k, max(v) OVER (PARTITION BY k) AS n FROM r"),
    (LookAhead, "SELECT k, max(v) OVER (ORDER BY t, k ROWS BETWEEN 1 FOLLOWING AND 1 FOLLOWING) AS n FROM r"),
    (TopN, "SELECT k, v AS n FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY t) AS i FROM r) p WHERE i < 3"),
    (Sort, "SELECT k, t, v FROM r ORDER BY t, v DESC"),
    (MultiwayJoin, "SELECT r.k, u.v AS n FROM r, s, u WHERE r.k = s.k AND s.k = u.k"),
    (MultiwayJoin, "SELECT r.k, u.v AS n FROM r, s, u WHERE r.k = s.k AND s.v = u.v AND u.k = r.v"),
]  # fmt: skip
ABOVE = [
    "{}",
    "SELECT k, max(n) AS n FROM ({}) AS p GROUP BY k",
    "SELECT DISTINCT k, n FROM ({}) AS p WHERE n > 0",
    "SELECT k, n FROM ({}) AS p UNION SELECT k, v AS n FROM s",
]

PINNED = [
    # By its keys one side has said all, but not in terms of what of it is looked at.
    Stall.pinned(
        SPACE.schema,
        "SELECT DISTINCT k, n FROM (SELECT r.k, s.v AS n FROM r LEFT JOIN s ON r.k = s.k"
        " AND s.t > r.t - INTERVAL 1 SECOND AND s.v <= r.v) AS p WHERE n > 0",
        {"r": [(0, MOMENTS[1], 1)], "s": [(0, MOMENTS[3], 1)], "u": []},
        {"r": ["<1, *, *>", "<[2,), *, *>"], "s": ["<{0,2}, *, *>", "<1, *, *>", "<(,-1], *, *>", "<[3,), *, *>"]},
        {"r": ["<(,0], *, *>"], "u": ["<*, *, *>"]},
    ),
    # One input never has null where the other may: it says all that it can, and null of it is no more waited for.
    Stall.pinned(
        SPACE.schema,
        "SELECT k, n FROM (SELECT r.k, s.v AS n FROM r LEFT ASOF JOIN s MATCH_CONDITION (r.t > s.t) ON r.k = s.k) AS p"
        " UNION SELECT k, v AS n FROM s",
        {"r": [(2, None, 0), (2, MOMENTS[3], 1)], "s": [(2, MOMENTS[6], 2)], "u": []},
        {"r": ["<*, *, (,0]>", "<*, *, [2,)>"], "s": ["<(,1], *, *>", "<[2,), *, 1>", "<[2,), *, [2,)>"]},
        {"r": ["<*, *, 1>"], "s": ["<[2,), *, (,0]>"], "u": ["<*, *, *>"]},
    ),
    # What closes a key by several punctuations together, of which none says so alone.
    Stall.pinned(
        SPACE.schema,
        "SELECT DISTINCT k, n FROM (SELECT r.k, u.v AS n FROM r, s, u WHERE r.k = s.k AND s.v = u.v AND u.k = r.v) AS p"
        " WHERE n > 0",
        {"r": [(2, MOMENTS[3], 1)], "s": [(2, MOMENTS[5], 2)], "u": [(2, MOMENTS[3], 2)]},
        {
            "r": ["<*, [2003-05-15T17:20:02Z,), *>", "<*, null, *>"],
            "s": ["<(,1], *, *>"],
            "u": ["<(,0], *, *>", "<[2,), *, *>"],
        },
        {"r": ["<*, (,2003-05-15T17:20:02Z), *>"], "s": ["<[2,), *, *>"], "u": ["<1, *, *>"]},
    ),
]
"""What was once told wrong."""


@st.composite
def stalls(draw: st.DrawFn, query: str) -> Stall:
    tuples = {name: draw(st.lists(small_tuples(SPACE), min_size=3, max_size=8)) for name in NAMES}
    said, withheld = draw(held_back({name: draw(closings()) for name in NAMES}))
    above = draw(st.sampled_from(ABOVE)) if "t, v FROM" not in query else "{}"
    return Stall(above.format(query), tuples, said, withheld)


@st.composite
def closings(draw: st.DrawFn) -> list[Punctuation]:
    """Punctuations that together close a stream, by one attribute or by two."""
    names = draw(st.sampled_from([("k",), ("t",), ("v",), ("k", "t"), ("k", "v")]))
    choices = [draw(st.sampled_from(CLOSINGS[name])) for name in names]
    return [Punctuation.of(SPACE.schema, dict(zip(names, chosen, strict=True))) for chosen in product(*choices)]


@pytest.mark.parametrize(("kind", "query"), QUERIES)
def test_what_an_operator_is_told_to_miss_was_withheld_and_sets_it_free(
    session: AnySession, kind: type, query: str
) -> None:
    said: Counter[str] = Counter()

    @settings(
        max_examples=max(1, settings().max_examples // 90),
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(stalls(query))
    def holds(stall: Stall) -> None:
        with tempfile.TemporaryDirectory() as directory:
            stalled = Stalled(session, Path(directory), tables, stall)
            assert kind in {type(node.operator) for node in stalled.walk.nodes}, stall
            said.update(assert_told(stalled, stall), stalls=1)

    tables = TABLES.format_map(CYCLE if "u.k = r.v" in query else EACH)
    for pinned in PINNED:
        if query in pinned.query:
            holds = example(pinned)(holds)
    holds()
    print(told_so_far(said))
