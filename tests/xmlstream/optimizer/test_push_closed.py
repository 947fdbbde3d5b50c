"""Where a plan leaves out what the output that it continues has closed."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from xmlstream.operators.hand_over import HAND_OVER, HandOver
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node
from xmlstream.plan.written_plan import tree
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

TABLES = "".join(
    f"CREATE TABLE {name} (k INT, a INT, s STRING) USING punctuated_xml OPTIONS (path '{name}.xml', rowTag 'r', schemes"
    " 'k');\n"
    for name in ("r", "q")
)


def places(session: InProcessSession, query: str, *closed: str) -> list[str]:
    """What is left out below the top of the plan, each with the node below it, from the top down."""
    written = read(TABLES + query).plan(session)
    lines = tree(optimized(Node(HandOver(closed, True, "old"), (written,), HAND_OVER))).splitlines()
    pairs = [
        f"{line.strip().partition(': ')[2]} over {below.strip().partition(':')[0]}"
        for line, below in pairwise(lines[1:])
        if line.strip().startswith(HAND_OVER)
    ]
    return [pair.removeprefix("without ") for pair in pairs]


@pytest.mark.parametrize(
    ("query", "closed", "found"),
    [
        ("SELECT k, max(a) AS m FROM r WHERE a > 0 GROUP BY k", "<5, *>", ["<5, *, *> over r"]),
        ("SELECT k AS n, a FROM r", "<5, *>", []),
        ("SELECT k, max(a) AS m FROM r GROUP BY k", "<*, 5>", []),
        ("SELECT r.k, q.s FROM r JOIN q ON r.k = q.k", "<5, *>", ["<5, *, *> over r", "<5, *, *> over q"]),
        ("SELECT r.k, q.s FROM r JOIN q ON r.k = q.k", "<*, x>", ["<*, *, x> over q"]),
        ("SELECT r.k, q.s FROM r LEFT JOIN q ON r.k = q.k", "<5, *>", ["<5, *, *> over r"]),
        ("SELECT r.k, q.s FROM r FULL JOIN q ON r.k = q.k", "<5, *>", []),
        ("SELECT k, s FROM r LEFT ANTI JOIN q USING (k)", "<5, *>", ["<5, *, *> over r", "<5, *, *> over q"]),
        ("SELECT k, s FROM r UNION SELECT a, s FROM q", "<5, *>", ["<5, *, *> over r", "<*, 5, *> over q"]),
        ("SELECT k, s FROM r EXCEPT SELECT k, s FROM q", "<5, x>", ["<5, *, x> over r", "<5, *, x> over q"]),
        (
            "SELECT k, s FROM r QUALIFY row_number() OVER (PARTITION BY k ORDER BY a) = 1",
            "<5, *>",
            ["<5, *, *> over r"],
        ),
        ("SELECT k, a FROM r ORDER BY a LIMIT 3", "<5, *>", ["<5, *> over top_n"]),
        (
            "SELECT a.k, b.k AS k2 FROM r AS a JOIN r AS b ON a.k = b.k",
            "<5, *>",
            ["<5, *, *> over r", "<5, *, *> over r"],
        ),
    ],
)
def test_it_is_left_out_as_near_to_the_sources_as_is_sound(
    in_process: InProcessSession, query: str, closed: str, found: list[str]
) -> None:
    assert places(in_process, query, closed) == found


def test_a_computed_attribute_is_compared_where_it_is_computed_unless_the_values_are_many(
    in_process: InProcessSession,
) -> None:
    (place,) = places(in_process, "SELECT s, k DIV 10 AS t, count(*) AS n FROM r GROUP BY s, k DIV 10", "<*, 5, *>")
    assert place == "NOT ((((k DIV 10) IS NOT DISTINCT FROM CAST('5' AS BIGINT)))) over r"
    many = "<*, {" + ",".join(map(str, range(0, 1000, 2))) + "}, *>"
    (place,) = places(in_process, "SELECT s, k DIV 10 AS t, count(*) AS n FROM r GROUP BY s, k DIV 10", many)
    assert place.endswith(" over project")


def test_an_expression_that_may_fail_is_not_computed_earlier(in_process: InProcessSession) -> None:
    (place,) = places(in_process, "SELECT 10 DIV a AS t, count(*) AS n FROM r GROUP BY 10 DIV a", "<5, *>")
    assert place.endswith("over project")


def test_punctuations_on_other_attributes_go_down_by_themselves(in_process: InProcessSession) -> None:
    query = "SELECT r.k, r.a, q.s FROM r JOIN q ON r.k = q.k"
    assert places(in_process, query, "<[,4], *, *>", "<5, 1, *>", "<6, *, x>", "<*, 3, x>") == [
        "<(,4], *, *> <5, 1, *> over r",
        "<(,4], *, *> <6, *, x> over q",
    ]
