"""The first rows of each key in the order of the source, whatever the cuts, and night by night."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xmlstream as xs
import xmlstream.testing as xt
from tests.harness.pointing import pointed_at
from xmlstream.operators.distinct_on import DistinctOn
from xmlstream.operators.row_window import RowWindow
from xmlstream.operators.top_n import TopN
from xmlstream.plan.nodes import topological
from xmlstream.punct_ns.errors import QueryError
from xmlstream.safety.words import caution
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import InProcessSession

TABLE = (
    "CREATE TABLE s (id INT, at INT NOT NULL, v INT) USING punctuated_xml"
    " OPTIONS (path 'none.xml', rowTag 'r', schemes 'id'{});\n"
)
OVER = "row_number() OVER (PARTITION BY id ORDER BY {})"


def query(sql: str, punctuate: str = "") -> str:
    return TABLE.format(f", punctuate '{punctuate}'" if punctuate else "") + sql


QUERIES = {
    "QUALIFY": (1, query(f"SELECT * FROM s QUALIFY {OVER.format('arrival')} = 1")),
    "a bound around it": (
        1,
        query(f"SELECT id, at, v FROM (SELECT *, {OVER.format('Arrival')} AS r FROM s) WHERE r <= 1"),
    ),
    "two": (2, query(f"SELECT * FROM s QUALIFY {OVER.format('arrival')} <= 2")),
    "by an attribute in whose order the source is": (
        1,
        query(f"SELECT * FROM s QUALIFY {OVER.format('at')} = 1", "order of at, per id"),
    ),
    "two, by an attribute": (2, query(f"SELECT * FROM s QUALIFY {OVER.format('at')} < 3", "order of at")),
    "by the time at which it comes": (
        1,
        query(
            f"SELECT id, at, v FROM (SELECT *, current_timestamp() AS came FROM s) QUALIFY {OVER.format('came')} = 1"
        ),
    ),
}
"""How many rows of each id, and the query."""

Row = tuple[int | None, int, int]


def firsts(rows: list[Row], n: int) -> list[Row]:
    """The first n rows of each id, the oracle."""
    seen = Counter[int | None]()
    found = []
    for row in rows:
        seen[row[0]] += 1
        if seen[row[0]] <= n:
            found.append(row)
    return found


Cut = list[Row | int | None]
"""A slice: rows, and ids that are closed behind them."""


@st.composite
def streams(draw: st.DrawFn) -> list[Cut]:
    """Slices of rows, each different and in the order of `at`; ids are closed behind their last row."""
    ids = draw(st.lists(st.sampled_from([None, 0, 1, 2, 3]), max_size=14))
    slices: list[Cut] = [[]]
    at = 0
    for i, id_ in enumerate(ids):
        at += draw(st.integers(0, 2))
        slices[-1].append((id_, at, 100 - i))
        if id_ not in ids[i + 1 :] and draw(st.booleans()):
            slices[-1].append(id_)
        if draw(st.booleans()):
            slices.append([])
    return slices


def named(rows: list[Row]) -> list[dict[str, int | None]]:
    return [dict(zip(("id", "at", "v"), row, strict=True)) for row in rows]


def rows_of(slices: list[Cut]) -> list[Row]:
    return [item for items in slices for item in items if isinstance(item, tuple)]


def written(slices: list[Cut]) -> str:
    """The stream in the notation, a bar between slices."""

    def text(item: Row | int | None) -> str:
        row = item if isinstance(item, tuple) else (item, "*", "*")
        whole = ", ".join("null" if value is None else str(value) for value in row)
        return f"({whole})" if isinstance(item, tuple) else f"<{whole}>"

    return " | ".join(" ".join(map(text, items)) for items in slices)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("called", QUERIES)
@given(slices=streams())
@settings(max_examples=6)
def test_they_come_at_once_and_each_open_key_is_kept(called: str, slices: list[Cut]) -> None:
    """After each slice what has come out is the oracle's answer to the input so far."""
    n, sql = QUERIES[called]
    with xt.case(sql) as case:
        for i, items in enumerate(slices):
            result = case.slice(s=written([items]))
            so_far = slices[: i + 1]
            assert Counter(map(tuple, case.tuples)) == Counter(firsts(rows_of(so_far), n))
            closed = [item for each in so_far for item in each if not isinstance(item, tuple)]
            for id_ in closed:
                xt.assert_closed(case, written([[id_]]))
            if "punctuate" not in sql:
                assert result.kept == len({row[0] for row in rows_of(so_far)} - set(closed))


SLICES: list[Cut] = [
    [(2, 0, 9), (1, 0, 8), (2, 1, 7), (None, 1, 3)],
    [(1, 2, 6), (2, 2, 5), 2, (None, 2, 1)],
    [(3, 3, 4), (1, 3, 2), 1],
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("called", QUERIES)
def test_no_cut_and_no_restart_changes_them(called: str) -> None:
    n, sql = QUERIES[called]
    xt.assert_result(sql, {"s": written(SLICES)}, named(firsts(rows_of(SLICES), n)))
    xt.assert_cut_independent(sql, {"s": written(SLICES)}, cuts=2)


@pytest.mark.parametrize("called", ["QUALIFY", "two"])
def test_spark_finds_the_same(spark: SparkSession, called: str) -> None:
    n, sql = QUERIES[called]
    xt.assert_result(sql, {"s": written(SLICES)}, named(firsts(rows_of(SLICES), n)), session=spark)


def test_spark_types_the_rank_alike(spark: SparkSession) -> None:
    """A plan whose types differ from those that Spark finds is refused."""
    ranked = query(f"SELECT * FROM (SELECT *, {OVER.format('arrival')} AS r FROM s) WHERE r = 1")
    assert str(read(ranked).plan(spark).schema.attribute("r").domain.type) == "INT"


def operators(sql: str) -> list[type]:
    return [type(node.operator) for node in topological(read(sql).sketch())]


FIRST = f"SELECT * FROM s QUALIFY {OVER.format('at')} = 1"


@pytest.mark.parametrize(
    ("punctuate", "nullable", "is_first"),
    [
        ("order of at", False, True),
        ("order of at, per id", False, True),
        ("order of at, per v", False, False),
        ("order of at, slack 1", False, False),
        ("order of v", False, False),
        ("order of at", True, False),
    ],
)
def test_an_order_counts_if_no_later_row_can_come_before(punctuate: str, nullable: bool, is_first: bool) -> None:
    sql = query(FIRST, punctuate)
    found = operators(sql.replace(" NOT NULL", "") if nullable else sql)
    assert (DistinctOn in found, TopN in found) == (is_first, not is_first)


@pytest.mark.parametrize(
    ("sql", "is_first"),
    [
        (f"SELECT * FROM (SELECT id, at AS t FROM s WHERE v > 1) QUALIFY {OVER.format('t')} = 1", True),
        (f"SELECT * FROM (SELECT id, at + 1 AS t FROM s) QUALIFY {OVER.format('t')} = 1", False),
        (f"SELECT * FROM s QUALIFY {OVER.format('at DESC')} = 1", False),
        (f"SELECT * FROM s QUALIFY {OVER.format('at, v')} = 1", False),
        (f"SELECT * FROM s QUALIFY {OVER.format('at').replace('row_number', 'rank')} = 1", False),
        (f"SELECT * FROM (SELECT id, at FROM s UNION ALL SELECT id, at FROM s) QUALIFY {OVER.format('at')} = 1", False),
        (f"SELECT * FROM (SELECT id, 1 AS arrival FROM s) QUALIFY {OVER.format('arrival')} = 1", False),
    ],
)
def test_what_else_is_ordered_waits_for_its_group(sql: str, is_first: bool) -> None:
    found = operators(query(sql, "order of at"))
    assert (DistinctOn in found, TopN in found) == (is_first, not is_first)


def test_a_rank_by_arrival_without_a_bound_numbers_each_row() -> None:
    sql = query(f"SELECT v, {OVER.format('arrival')} AS n FROM s")
    assert RowWindow in operators(sql)
    rows = "(1, 0, 5) (2, 0, 4) | (1, 0, 3)"
    xt.assert_result(sql, {"s": rows}, "(5, 1) (4, 1) | (3, 2)")


@pytest.mark.parametrize(
    ("sql", "at", "what"),
    [
        (f"SELECT * FROM s QUALIFY {OVER.format('arrival DESC')} = 1", "arrival", "ascending and as the only key"),
        (f"SELECT * FROM s QUALIFY {OVER.format('at, arrival')} = 1", "arrival", "ascending and as the only key"),
        ("SELECT lag(v) OVER (PARTITION BY id ORDER BY arrival) AS w FROM s", "arrival", "rows of ROW_NUMBER() only"),
        (
            f"SELECT * FROM (SELECT id FROM s UNION ALL SELECT id FROM s) QUALIFY {OVER.format('arrival')} = 1",
            "row_number",
            "merge has no order of arrival",
        ),
        (
            "SELECT s.id FROM s JOIN s AS t USING (id)"
            " QUALIFY row_number() OVER (PARTITION BY s.id ORDER BY arrival) = 1",
            "row_number",
            "join has no order of arrival",
        ),
        (
            f"SELECT n, {OVER.format('arrival')} AS r FROM (SELECT id, count(*) AS n FROM s GROUP BY id)",
            "row_number",
            "group_by has no order of arrival",
        ),
        (
            f"SELECT {OVER.format('arrival')} AS r, lag(at) OVER (PARTITION BY id ORDER BY at) AS b"
            " FROM (SELECT id, at FROM s UNION ALL SELECT id, at FROM s)",
            "row_number",
            "merge has no order of arrival",
        ),
    ],
)
def test_where_there_is_no_arrival_the_error_says_so(sql: str, at: str, what: str) -> None:
    whole = query(sql)
    with pytest.raises(QueryError, match=re.escape(what)) as raised:
        read(whole)
    assert pointed_at(raised.value, whole.splitlines()[1]).startswith(at)
    assert raised.value.hint


def test_merged_documents_have_no_order(tmp_path: Path) -> None:
    sql = query(QUERIES["QUALIFY"][1].splitlines()[1]).replace("rowTag", "documents 'files', rowTag")
    with pytest.raises(QueryError, match="s has no order of arrival") as raised:
        read(sql)
    assert "documents 'files'" in (raised.value.hint or "")


def command(*arguments: object, cwd: Path) -> tuple[int, str]:
    """The exit code of the command, and what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "xmlstream", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "COLUMNS": "200"},
        cwd=cwd,
    )
    return done.returncode, done.stderr + done.stdout


def night(tmp_path: Path, name: str, *rows: tuple[int, str]) -> None:
    inner = "".join(f"<r><id>{id_}</id><text>{text}</text></r>" for id_, text in rows)
    (tmp_path / "in" / name).write_text(f"<rows>{inner}</rows>", encoding="utf-8")


ENDLESS = "with --keep-open the input of this query does not end: "


def nightly(order: str) -> str:
    table = "CREATE TABLE s (id BIGINT, text STRING) USING punctuated_xml OPTIONS (path 'in', rowTag 'r', schemes '');"
    return f"{table}\nSELECT * FROM s QUALIFY {OVER.format(order)} = 1"


def test_night_after_night_each_key_comes_once(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "first.sql").write_text(nightly("arrival"), encoding="utf-8")
    run = ("run", "first.sql", "-o", "out", "--checkpoint", "state", "--keep-open", "--engine", "duckdb")
    night(tmp_path, "monday.xml", (1, "a"), (2, "b"), (1, "c"))
    code, said = command(*run, cwd=tmp_path)
    assert (code, said.splitlines()[0]) == (0, f"{ENDLESS}distinct_on keeps keys for ever, since nothing closes id")
    night(tmp_path, "tuesday.xml", (2, "d"), (3, "e"))
    code, said = command(*run, cwd=tmp_path)
    assert (code, "1 tuple out" in said, "the query is open" in said) == (0, True, True)
    found = [line for path in sorted((tmp_path / "out").glob("*.xml")) for line in path.read_text().splitlines()]
    assert [line for line in found if line.startswith("<row>")] == [
        "<row><id>1</id><text>a</text></row>",
        "<row><id>2</id><text>b</text></row>",
        "<row><id>3</id><text>e</text></row>",
    ]


def test_kept_open_the_run_says_what_never_answers_and_what_would() -> None:
    root = read(nightly("text")).sketch()
    said = caution(root, keep_open=True)
    assert said is not None
    first, hint = said.splitlines()
    assert first == f"{ENDLESS}top_n never answers, since nothing closes id, and 1 more"
    assert hint.startswith("  Hint: if you want the first row of each key as it comes, write ORDER BY arrival within")
    assert "declare schemes 'id' in the options of s" in hint
    assert (caution(root) or "").startswith("only the end of its input lets this query answer or purge: top_n never")


def test_without_an_end_a_key_must_be_closed(tmp_path: Path, in_process: InProcessSession) -> None:
    (tmp_path / "in").mkdir()
    rows = xs.read(in_process, tmp_path / "in", schema="id BIGINT", rowTag="r", schemes="")
    with pytest.raises(xs.UnsafeQuery, match="distinct_on keeps keys for ever, since nothing closes id") as raised:
        rows.dropDuplicates(["id"]).start(tmp_path / "out", tmp_path / "state")
    assert "declare schemes 'id' in the options" in (raised.value.hint or "")
