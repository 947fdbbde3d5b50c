"""Groups that are closed because nothing else of them is selected."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from xmlstream.operators.join import Join
from xmlstream.operators.select import Select
from xmlstream.optimizer.insertions import punctuate_excluded
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, topological
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = """
CREATE TABLE s (sid STRING, hour INT NOT NULL, t INT)
USING punctuated_xml OPTIONS (path '{path}', rowTag 'r', schemes '{schemes}', maxFilesPerSlice '1');
"""


def punctuating(node: Node) -> list[str]:
    """The predicates of the selects that punctuate."""
    selects = [one.operator for one in topological(node) if isinstance(one.operator, Select)]
    return [select.predicate for select in selects if select.punctuates]


@pytest.mark.parametrize(
    ("query", "schemes", "which"),
    [
        ("SELECT sid, count(*) AS n FROM s WHERE hour < 5 GROUP BY sid", "hour prefix", ["`hour` < 5"]),
        ("SELECT hour, count(*) AS n FROM s WHERE hour < 5 GROUP BY hour", "hour prefix", []),
        ("SELECT sid, count(*) AS n FROM s WHERE t < 5 GROUP BY sid", "hour prefix", ["`t` < 5"]),
        ("SELECT sid, count(*) AS n FROM s WHERE t < 5 GROUP BY sid", "", ["`t` < 5"]),
        ("SELECT t FROM s WHERE t > 5 ORDER BY t", "t", ["`t` > 5"]),
        ("SELECT sid, t FROM s WHERE t > 5 ORDER BY sid", "sid", ["`t` > 5"]),
        ("SELECT t, sum(t) OVER (ORDER BY t ROWS 1 PRECEDING) AS n FROM s WHERE t > 5", "t", ["`t` > 5"]),
        ("SELECT t FROM s a LEFT ANTI JOIN (SELECT * FROM s WHERE t > 5) b USING (sid)", "sid", ["`t` > 5"]),
        ("SELECT t FROM s WHERE t > 5", "t", []),
        ("SELECT sid, count(*) AS n FROM s WHERE hour + t < 5 GROUP BY sid", "hour prefix", []),
        ("SELECT DISTINCT sid FROM s WHERE hour < 5", "hour prefix", ["`hour` < 5"]),
        ("SELECT DISTINCT sid, hour FROM s WHERE hour < 5", "hour prefix", []),
        (
            "SELECT a.t FROM s a LEFT SEMI JOIN (SELECT * FROM s WHERE hour < 5) b USING (sid)",
            "hour prefix",
            ["`hour` < 5"],
        ),
        (
            "SELECT k, count(*) AS n FROM (SELECT sid AS k, hour AS h FROM s UNION ALL SELECT sid, hour FROM s"
            " WHERE t > 1) WHERE h < 5 GROUP BY k",
            "hour",
            ["`t` > 1", "`h` < 5"],
        ),
    ],
)
def test_a_select_punctuates_where_what_it_excludes_closes_groups(query: str, schemes: str, which: list[str]) -> None:
    root = read(TABLE.format(path="s", schemes=schemes) + query + ";").sketch()
    assert punctuating(punctuate_excluded(root)) == which


@pytest.mark.parametrize(
    ("query", "schemes", "punctuates"),
    [
        ("SELECT DISTINCT a.sid, b.t FROM s a LEFT JOIN s b ON a.sid = b.sid", "sid", True),
        ("SELECT b.t, count(*) AS n FROM s a LEFT JOIN s b ON a.sid = b.sid GROUP BY b.t", "t; sid", True),
        ("SELECT DISTINCT b.sid, b.t FROM s a LEFT JOIN s b ON a.sid = b.sid", "sid", False),
        ("SELECT a.t, count(*) AS n FROM s a LEFT JOIN s b ON a.sid = b.sid GROUP BY a.t", "sid", False),
        ("SELECT a.sid, b.t FROM s a LEFT JOIN s b ON a.sid = b.sid", "sid", False),
        ("SELECT DISTINCT a.sid, b.t FROM s a JOIN s b ON a.sid = b.sid", "sid", False),
    ],
)
def test_an_outer_join_punctuates_where_groups_are_of_others_of_its_attributes_than_the_key(
    query: str, schemes: str, punctuates: bool
) -> None:
    root = optimized(read(TABLE.format(path="s", schemes=schemes) + query + ";").sketch())
    joins = [one.operator for one in topological(root) if isinstance(one.operator, Join)]
    assert [join.punctuates for join in joins] == [punctuates]


@pytest.mark.spark
def test_groups_leave_when_the_last_hour_that_is_selected_closes(spark: SparkSession, tmp_path: Path) -> None:
    """As written they wait for the end, since of each sensor a later hour might come."""
    documents = [
        "<r><sid>a</sid><hour>1</hour><t>1</t></r><r><sid>b</sid><hour>4</hour><t>2</t></r>"
        "<p:r><hour>(,5)</hour></p:r>",
        "<r><sid>a</sid><hour>7</hour><t>9</t></r>",
    ]
    (tmp_path / "in").mkdir()
    for number, items in enumerate(documents):
        (tmp_path / "in" / f"{number}.xml").write_text(f"<s xmlns:p='{PUNCT_NS}'>{items}</s>")
    text = TABLE.format(path=tmp_path / "in", schemes="hour prefix")
    query = xs.from_sql(spark, text + "SELECT sid, max(t) AS top FROM s WHERE hour < 5 GROUP BY sid;")
    assert punctuating(optimized(query.plan)) == ["`hour` < 5"]
    out: dict[bool, list[int]] = {True: [], False: []}
    for as_written, slices in out.items():
        query.run(
            output=tmp_path / str(as_written),
            as_written=as_written,
            on_slice=lambda report, slices=slices: slices.append(report["tuples_out"]),  # type: ignore[misc]
        )
    assert out[False][0] == 2
    assert out[True][0] == 0
    assert sum(out[True]) == sum(out[False]) == 2
