"""Describe in plans: where it is put, and that nobody notices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from tests.harness.saying import NO_STORE
from tests.samples.strategies import SMALL, SmallSchema, small_punctuations
from xmlstream.operators.describe import Describe
from xmlstream.operators.expressions.aggregates import Aggregate
from xmlstream.operators.expressions.output_columns import Column
from xmlstream.operators.group_by import GroupBy
from xmlstream.operators.merge import Merge
from xmlstream.operators.project import Project
from xmlstream.operators.select import Select
from xmlstream.operators.sort_order import SortKey
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice
from xmlstream.operators.top_n import TopN
from xmlstream.optimizer.insertions import insert_describe
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, Results, Scan, Static, topological
from xmlstream.plan.written_plan import tree
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.runtime.runner import run
from xmlstream.runtime.settings import Settings
from xmlstream.sink.target import Target
from xmlstream.sql.script import read
from xmlstream.sql.tables.declaration import scan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = (Aggregate(Attribute("n", Domain("BIGINT", nullable=False)), "count(*)"),)
DDL = "sid STRING, hour INT, min INT"


def source(name: str, schemes: str = "hour, min 0..59 by 10; sid") -> Node:
    return scan(name, {"path": f"{name}.xml", "rowTag": "r", "schemes": schemes}, DDL)


def grouped(below: Node, *keys: str) -> Node:
    return Node(GroupBy(keys, COUNT), (below,), "group_by")


def merged(*inputs: Node) -> Node:
    return Node(Merge(inputs[0].schema), inputs, "merge")


def labels(root: Node) -> list[str]:
    return [line.strip().split(":")[0] for line in tree(root).splitlines()]


def describes(root: Node) -> list[Describe]:
    return [node.operator for node in topological(root) if isinstance(node.operator, Describe)]


def test_a_group_by_is_given_what_describes_its_keys() -> None:
    root = insert_describe(grouped(source("a"), "hour"))
    assert labels(root) == ["group_by", "describe", "a"]
    assert describes(root) == [Describe(("hour",), ("sid", "min"))]


def test_a_top_n_is_given_what_describes_its_groups() -> None:
    """What makes its groups is its grouping of interest, if nothing closes the order from its first value on."""
    first = TopN(3, (SortKey("sid", descending=True),), ("hour",))
    root = insert_describe(Node(first, (Node(Select("min > 3"), (source("a"),), "select"),), "top_n"))
    assert labels(root) == ["top_n", "select", "describe", "a"]
    assert describes(root) == [Describe(("hour",), ("sid", "min"))]


def test_describe_goes_through_select_merge_and_project_to_each_source() -> None:
    """The equivalences of Tucker et al. 2007, §7: σ and ∪ commute with it, π in the names beneath."""
    first, second = (Node(Select("min > 3"), (source(name),), "select") for name in "ab")
    columns = (
        Column(Attribute("h", Domain("INT")), "hour", "hour"),
        Column(first.schema.attribute("sid"), "sid", "sid"),
    )
    root = insert_describe(grouped(Node(Project(columns), (merged(first, second),), "project"), "h"))
    assert labels(root) == ["group_by", "project", "merge", "select", "describe", "a", "select-2", "describe-2", "b"]
    assert describes(root) == [Describe(("hour",), ("sid", "min"))] * 2


def test_where_all_schemes_describe_the_keys_there_is_nothing_to_take_out() -> None:
    root = grouped(source("a", "hour"), "hour", "sid")
    assert insert_describe(root) == root
    root = grouped(source("a", ""), "hour")
    assert insert_describe(root) == root


def test_only_the_inputs_that_promise_more_are_described() -> None:
    root = insert_describe(grouped(merged(source("a"), source("b")), "hour"))
    assert labels(root) == ["group_by", "merge", "describe", "a", "describe-2", "b"]


def test_what_somebody_else_needs_is_left_to_them() -> None:
    select = Node(Select("min > 3"), (source("a"),), "select")
    both = merged(*(Node(GroupBy((key,), COUNT), (select,), "group_by") for key in ("hour", "min")))
    root = insert_describe(both)
    assert [type(node.operator) for node in topological(root)].count(Select) == 1
    assert {d.attributes for d in describes(root)} == {("hour",), ("min",)}
    for node in topological(root):
        if isinstance(node.operator, Describe):
            assert isinstance(node.inputs[0].operator, Select)


def test_a_select_that_punctuates_is_not_gone_through() -> None:
    select = Node(Select("hour > 3", punctuates=True), (source("a"),), "select")
    assert labels(insert_describe(grouped(select, "hour"))) == ["group_by", "describe", "select", "a"]


@pytest.mark.parametrize("keys", [("hour",), ("sid", "hour"), ("min",)])
def test_a_second_time_changes_nothing(keys: tuple[str, ...]) -> None:
    root = insert_describe(grouped(merged(source("a"), Node(Select("min > 3"), (source("b"),), "select")), *keys))
    assert insert_describe(root) == root


INT = next(small for small in SMALL if small.domain == Domain("INT", True, 0, 4))
BOOLEAN = next(small for small in SMALL if small.domain == Domain("BOOLEAN", False))
SPACE = SmallSchema(
    Schema((Attribute("a", INT.domain), Attribute("b", BOOLEAN.domain), Attribute("c", INT.domain))),
    (INT, BOOLEAN, INT),
)


def small_source(name: str) -> Node:
    options = {"path": name, "rowTag": "r", "schemes": "a; b; a, b", "domains": "a 0..4, c 0..4"}
    node = scan(name, options, "a INT, b BOOLEAN NOT NULL, c INT")
    assert node.schema == SPACE.schema
    return node


class Flow:
    """A plan over punctuations alone."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.states = {
            n: OperatorState(NO_STORE, schemas, n.operator.state_schema(*schemas))
            for n in topological(root)
            if not isinstance(n.operator, Scan | Static | Results)
            for schemas in [tuple(below.schema for below in n.inputs)]
        }

    def says(self, said: dict[str, list[Punctuation]]) -> list[Punctuation]:
        out: dict[Node, Slice] = {}
        for node in topological(self.root):
            if isinstance(node.operator, Scan):
                out[node] = Slice(None, tuple(said[node.operator.name]))
                continue
            assert not isinstance(node.operator, Static | Results)
            inputs, state = [out[below] for below in node.inputs], self.states[node]
            assert node.operator.pass_(inputs, state) is None
            out[node] = Slice(None, tuple(node.operator.propagate(inputs, state)))
        return list(out[self.root].punctuations)


@st.composite
def plans(draw: st.DrawFn) -> Node:
    """A group_by over selects, merges and projects over two sources."""

    def through(node: Node) -> Node:
        if draw(st.booleans()):
            node = Node(Select("a > 1"), (node,), "select")
        if draw(st.booleans()):
            moved = [(a, f"{a.name}2") for a in node.schema]
            columns = tuple(Column(Attribute(new, a.domain), a.name, a.name) for a, new in moved)
            chosen = draw(st.permutations(columns))[: draw(st.integers(2, 3))]
            node = Node(Project(tuple(chosen)), (node,), "project")
        return node

    node = through(
        merged(*draw(st.lists(st.sampled_from([small_source("s"), small_source("t")]), min_size=1, max_size=2)))
    )
    keys = draw(st.lists(st.sampled_from(node.schema.names), min_size=1, unique=True))
    return grouped(node, *keys)


@given(st.data())
def test_what_comes_out_is_the_same_slice_by_slice(data: st.DataObject) -> None:
    plain: Any = data.draw(plans())
    described = insert_describe(plain)
    punctuations = st.lists(small_punctuations(SPACE), max_size=4)
    one, other = Flow(plain), Flow(described)
    told = PunctuationSet(plain.schema), PunctuationSet(plain.schema)
    known = {name: PunctuationSet(SPACE.schema) for name in "st"}
    for said in data.draw(st.lists(st.fixed_dictionaries({"s": punctuations, "t": punctuations}), max_size=4)):
        new = {name: known[name].add_all(ps) for name, ps in said.items()}
        for flow, heard in zip((one, other), told, strict=True):
            heard.add_all(flow.says(new))
        assert all(told[0].covers(p) for p in told[1])
        assert all(told[1].covers(p) for p in told[0])


PUNCT = "http://www.cse.ogi.edu/dot/niagara/punct"
BY_HOUR = """
CREATE TABLE one (sid STRING, day INT, minute INT, t DOUBLE) USING punctuated_xml OPTIONS (path '{0}/one',
  rowTag 'r', maxFilesPerSlice '1', schemes 'day, minute 0..119 by 30; sid');
CREATE TABLE two (sid STRING, day INT, minute INT, t DOUBLE) USING punctuated_xml OPTIONS (path '{0}/two',
  rowTag 'r', maxFilesPerSlice '1', schemes 'day, minute 0..119 by 30; sid');
SELECT day, minute div 60 AS hour, count(*) AS n, max(t) AS top
FROM (SELECT * FROM one UNION ALL SELECT * FROM two WHERE t > 70) GROUP BY day, minute div 60
"""
HALVES: list[list[tuple[Any, ...]]] = [
    [("S1", 1, 5, 70.5), ("S2", 1, 61, 71.5), (None, 1, "[0,29]", None)],
    [("S1", 1, 31, 75.5), ("S1", 1, 119, 69.5), (None, 1, "[30,59]", None), ("S2", None, None, None)],
    [("S1", 1, 118, 73.5), (None, 1, "[90,119]", None), (None, "[1,2]", "[60,89]", None)],
]


def written(items: list[tuple[Any, ...]]) -> str:
    """Reports, and the punctuations among them: those without a temperature."""
    texts = []
    for item in items:
        name = "r" if item[3] is not None else "p:r"
        leaves = "".join(f"<{n}>{v}</{n}>" for n, v in zip(("sid", "day", "minute", "t"), item, strict=True) if v)
        texts.append(f"<{name}>{leaves}</{name}>")
    return f'<rs xmlns:p="{PUNCT}">{"".join(texts)}</rs>'


def without_describe(node: Node) -> Node:
    below = tuple(without_describe(each) for each in node.inputs)
    return below[0] if isinstance(node.operator, Describe) else Node(node.operator, below, node.label)


@pytest.mark.spark
def test_a_query_by_hours_of_minutes_answers_slice_by_slice_and_the_same_when_described(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Half hours are closed, hours asked for: `minute div 60` carries what is closed to the groups."""
    for source_ in ("one", "two"):
        (tmp_path / source_).mkdir()
        for number, items in enumerate(HALVES):
            (tmp_path / source_ / f"{number}.xml").write_text(written(items), encoding="utf-8")
    described = optimized(read(BY_HOUR.format(tmp_path)).plan(spark))
    plain = without_describe(described)
    assert len(describes(described)) == 2
    answers = []
    for name, root in (("plain", plain), ("described", described)):
        out = tmp_path / name
        run(spark, root, Settings((Target(str(out)),), checkpoint=str(tmp_path / f"{name}-state")))
        documents = [etree.parse(path).getroot() for path in sorted(out.glob("slice-*.xml"))]
        answers.append([[etree.tostring(item, method="c14n") for item in document] for document in documents])
        rows = [[tuple(leaf.text for leaf in row) for row in document.findall("row")] for document in documents]
        assert rows[1] == [("1", "0", "4", "75.5")]
        assert rows[2] == [("1", "1", "5", "73.5")]
    assert [sorted(items) for items in answers[0]] == [sorted(items) for items in answers[1]]
