"""Windows that become windows of panes: what their plans are, and queries that stay. No Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from tests.xmlstream.optimizer.test_eliminate_distinct import plan
from xmlstream.operators.group_by import GroupBy
from xmlstream.operators.pre_aggregate import PreAggregate
from xmlstream.operators.project import Project
from xmlstream.operators.required_punctuations import Held, Row
from xmlstream.operators.window import Window
from xmlstream.optimizer.insertions import aggregate_panes
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, topological

TABLE = """
CREATE TABLE s (sid INT, ts TIMESTAMP, v INT, `pane.start` INT) USING punctuated_xml
OPTIONS (path 's.xml', rowTag 's', schemes 'ts prefix');
"""
NOTHING_HELD = cast(Held, None)
SLIDING = "window(ts, '10 seconds', '4 seconds', '-3 seconds')"
PANED = {
    f"SELECT window, count(*) AS n FROM s GROUP BY {SLIDING}": ("pane.start",),
    f"SELECT sid, window.start, sum(v) AS v, count(v) AS w FROM s GROUP BY sid, {SLIDING}": ("sid", "pane.start"),
    f"SELECT window, max(unix_seconds(ts)) AS m FROM s GROUP BY {SLIDING}": ("pane.start",),
    f"SELECT window.end AS e FROM s GROUP BY {SLIDING}": ("pane.start",),
    f"SELECT window, min(v) AS v FROM s WHERE v > 2 GROUP BY {SLIDING} HAVING min(v) < 7": ("pane.start",),
    f"SELECT `pane.start`, count(*) AS n FROM s GROUP BY `pane.start`, {SLIDING}": ("pane.start", "pane_.start"),
}
STAY = {
    "windows do not overlap": "SELECT window, count(*) AS n FROM s GROUP BY window(ts, '10 seconds')",
    "values are counted once": f"SELECT window, count(DISTINCT v) AS n FROM s GROUP BY {SLIDING}",
    "one of the aggregates does not merge": f"SELECT window, count(*) AS n, median(v) AS m FROM s GROUP BY {SLIDING}",
    "groups tell moments apart": f"SELECT window, ts, count(*) AS n FROM s GROUP BY ts, {SLIDING}",
    "the window itself is aggregated": f"SELECT sid, max(w.start) AS m FROM (SELECT sid, {SLIDING} AS w FROM s)"
    " GROUP BY sid",
    "nothing is aggregated": f"SELECT *, {SLIDING} AS w FROM s",
}


def operators(root: Node) -> list[str]:
    return [node.label for node in topological(root)]


@pytest.mark.parametrize("query", PANED)
def test_each_tuple_is_aggregated_once_to_its_pane(query: str) -> None:
    made = optimized(plan(query, TABLE))
    labels = operators(made)
    at = labels.index("panes")
    assert labels[at : at + 4] == ["panes", "pre_aggregate", "window", "group_by"]
    nodes = topological(made)[at : at + 3]
    panes, windows = nodes[0].operator, nodes[2].operator
    assert isinstance(panes, Window)
    assert isinstance(windows, Window)
    assert (panes.size, panes.slide, panes.offset) == (2_000_000, 2_000_000, 1_000_000)
    assert (windows.size, windows.slide, windows.offset) == (10_000_000, 4_000_000, -3_000_000)
    assert nodes[1].schema.names == PANED[query]


@pytest.mark.parametrize("why", STAY)
def test_it_stays_as_it_is_where(why: str) -> None:
    assert "pre_aggregate" not in operators(optimized(plan(STAY[why], TABLE)))


def test_what_is_kept_is_the_same() -> None:
    """So a checkpoint holds groups of windows, whatever lies below."""
    written = plan(next(iter(PANED)), TABLE)
    made = aggregate_panes(written)
    before, after = (
        next(node for node in topological(root) if isinstance(node.operator, GroupBy)) for root in (written, made)
    )
    assert before.operator == after.operator
    assert before.schema == after.schema
    assert before.schemes == after.schemes


@pytest.mark.parametrize("lengths", ["'10 seconds', '1 second'", "'10 seconds', '4 seconds', '2 seconds'"])
def test_a_window_waits_for_the_same_moments(lengths: str) -> None:
    written = plan(f"SELECT sid, window.end, count(*) AS n FROM s GROUP BY sid, window(ts, {lengths})", TABLE)
    end = datetime(2024, 1, 1, 0, 0, 12, tzinfo=UTC)
    row: Row = {"sid": 7, "window.start": end - timedelta(seconds=10), "window.end": end}
    for root in (written, optimized(written)):
        (node,) = (node for node in topological(root) if node.label == "group_by")
        assert isinstance(node.operator, GroupBy)
        given = node.inputs[0].schema
        ((_, p),) = node.operator.state_schema(given).logs["groups"].ways(row, NOTHING_HELD, given)[0]
        while (node := node.inputs[0]).inputs:
            assert isinstance(node.operator, Window | PreAggregate | Project)
            (((_, p),),) = node.operator.wanted(p, NOTHING_HELD, node.inputs[0].schema)
        assert str(p) == "<7, [2024-01-01T00:00:02Z,2024-01-01T00:00:11.999999Z], *, *>"
