"""IN, EXISTS and aggregates as values answer as SQL's own subqueries do; what is refused says what to write.

The oracle is DuckDB's SQL over the same rows. `tests/properties/drawn_queries.py` draws subqueries for Spark's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import duckdb
import pytest

import xmlstream.testing as xt
from tests.harness.drawn_rows import insert
from tests.harness.pointing import pointed_at
from xmlstream.plan.nodes import topological
from xmlstream.punct_ns.errors import QueryError, XmlStreamError
from xmlstream.sql.script import read
from xmlstream.testing.case import Case, prepared

TABLES = """
CREATE TABLE s (id INT, k INT, v INT) USING punctuated_xml OPTIONS (path 's.xml', rowTag 'r', schemes 'k');
CREATE TABLE u (x INT, k INT, w INT) USING {} OPTIONS (path 'u.csv'{});
"""
STREAM, STATIC = TABLES.format("punctuated_xml", ", rowTag 'r', schemes 'k'"), TABLES.format("csv", "")
BEGIN = STREAM.count("\n") + 1

QUERIES = [
    "SELECT * FROM s WHERE v IN (SELECT w FROM u)",
    "SELECT * FROM s WHERE v IN (SELECT w FROM u WHERE u.k = s.k AND x < id)",
    "SELECT * FROM s WHERE v NOT IN (SELECT w FROM u)",
    "SELECT * FROM s WHERE NOT (v IN (SELECT w FROM u WHERE u.k = s.k)) AND id > 0",
    "SELECT id FROM s WHERE v IS NOT NULL AND v NOT IN (SELECT w FROM u WHERE w > 0)",
    "SELECT * FROM s WHERE v + 1 NOT IN (SELECT w FROM (SELECT k, w + 1 AS w FROM u) AS q WHERE q.k <> s.k)",
    "SELECT * FROM s WHERE v + 1 NOT IN (SELECT w + 1 FROM u WHERE u.k = s.k)",
    "SELECT * FROM s WHERE (v, k) IN (SELECT w, k FROM u)",
    "SELECT * FROM s WHERE v IN (SELECT k FROM u UNION SELECT x FROM u)",
    "SELECT * FROM s WHERE v IN (SELECT max(w) FROM u GROUP BY k HAVING count(*) > 1)",
    "WITH q AS (SELECT k, count(*) AS n FROM u GROUP BY k) SELECT * FROM s WHERE k IN (SELECT k FROM q WHERE n > 1)",
    "SELECT * FROM s WHERE v IN (WITH q AS (SELECT w FROM u) SELECT w FROM q)",
    "SELECT * FROM s WHERE EXISTS (SELECT 1 FROM u WHERE u.k = s.k AND w > v)",
    "SELECT * FROM s WHERE NOT EXISTS (SELECT * FROM u WHERE u.k = s.k AND w > v)",
    "SELECT * FROM s WHERE EXISTS (SELECT s.id FROM u WHERE w > v)",
    "SELECT * FROM s WHERE NOT EXISTS (SELECT * FROM u)",
    "SELECT id FROM s WHERE EXISTS (SELECT max(w) FROM u)",
    "SELECT * FROM s WHERE NOT EXISTS (SELECT k FROM u GROUP BY k HAVING count(*) > 1)",
    "SELECT DISTINCT v FROM s WHERE EXISTS (SELECT 1 FROM u JOIN u AS b ON u.x = b.w WHERE b.k = s.k)",
    "SELECT * FROM s WHERE v > (SELECT avg(w) FROM u)",
    "SELECT * FROM s WHERE v = (SELECT max(w) FROM u WHERE u.k = s.k)",
    "SELECT * FROM s WHERE v < 2 * (SELECT min(w) FROM u WHERE u.k = s.k) + 1",
    "SELECT * FROM s WHERE (SELECT count(w) FROM u WHERE u.k = s.k) = 0",
    "SELECT * FROM s WHERE v > 2 OR (SELECT count(*) FROM u WHERE w = v AND u.k = s.k) > 0",
    "SELECT * FROM s WHERE (SELECT min(w) FROM u WHERE u.k = s.k) IS NULL",
    "SELECT * FROM s WHERE coalesce((SELECT min(w) FROM u WHERE u.k = s.k), 2) = v",
    "SELECT id FROM s WHERE v BETWEEN (SELECT min(w) FROM u) AND (SELECT max(w) FROM u WHERE u.k = s.k)",
    "SELECT * FROM s WHERE (SELECT min(w) FROM u WHERE u.k = s.k) IN (SELECT x FROM u)",
    "SELECT *, (SELECT max(w) FROM u WHERE u.k = s.k) AS m, (SELECT count(*) + 1 FROM u WHERE u.k = s.k) AS n FROM s",
    "SELECT id, (SELECT sum(w) + count(x) FROM u WHERE k = s.k AND x = v) AS m, (SELECT max(x) FROM u) AS n FROM s",
    "SELECT id, CASE WHEN v > (SELECT min(w) FROM u) THEN 'a' ELSE 'b' END AS c FROM s",
    "SELECT v, count(*) AS n FROM s WHERE k = (SELECT max(k) FROM u) GROUP BY v HAVING count(*) > 1",
    "SELECT * FROM s WHERE v IN (SELECT w FROM u WHERE EXISTS (SELECT 1 FROM s AS t WHERE t.k = u.k AND t.v > w))",
    "SELECT id FROM s WHERE v IN (SELECT w FROM u WHERE w = (SELECT max(w) FROM u AS b WHERE b.k = u.k))",
    "SELECT a.id, b.w FROM s AS a, u AS b WHERE a.k = b.k AND a.v IN (SELECT x FROM u)",
    # Of no row, or of one.
    "SELECT id, (SELECT w FROM u WHERE u.k = s.k AND u.k > 2) AS m FROM s",
    "SELECT id, (SELECT w FROM u ORDER BY x NULLS FIRST, k NULLS FIRST, w NULLS FIRST LIMIT 1) AS m FROM s",
    "SELECT id FROM s WHERE coalesce((SELECT w + 1 FROM u WHERE w > 100), v) = v",
    "SELECT id, (SELECT DISTINCT k FROM u WHERE k = 2) AS m, (SELECT count(*) FROM u GROUP BY k"
    " HAVING k = 1) AS n FROM s",
    # What is written for a subquery within an aggregate.
    "SELECT v, max(id) FILTER (WHERE n > 0) AS m, count_if(n > 1) AS o"
    " FROM (SELECT *, (SELECT count(*) FROM u WHERE u.k = s.k) AS n FROM s) AS q GROUP BY v",
    # A bare name means the subquery's own attribute first.
    "SELECT * FROM s WHERE v IN (SELECT w FROM u WHERE k = 1)",
    "SELECT * FROM s WHERE EXISTS (SELECT 1 FROM u AS s WHERE s.k = s.w AND x = id)",
]

Rows = Sequence[tuple[int | None, ...]]

BAGS: list[tuple[Rows, Rows]] = [
    # Nulls on both sides, one of them beside values that have no null; duplicates.
    (
        [(0, 1, 1), (1, 1, 2), (2, 2, None), (3, None, 1), (4, 3, 3), (5, 2, 2), (5, 2, 2)],
        [(1, 1, 1), (None, 1, 3), (3, 2, None), (2, 2, 2), (2, 2, 2), (1, None, 3)],
    ),
    # No nulls; a group of one side that the other does not have.
    ([(0, 1, 1), (1, 1, 2), (2, 2, 3), (3, 3, 1), (3, 3, 1)], [(1, 1, 1), (3, 1, 2), (2, 2, 2), (2, 2, 2), (1, 4, 2)]),
    # Nothing to be in.
    ([(0, 1, 1), (1, None, None), (2, 2, 3)], []),
]


def answer(query: str, s: Rows, u: Rows) -> Counter[tuple[object, ...]]:
    with duckdb.connect() as duck:
        duck.execute("CREATE TABLE s (id INT, k INT, v INT); CREATE TABLE u (x INT, k INT, w INT)")
        for name, rows in (("s", s), ("u", u)):
            insert(duck, name, rows)
        return Counter(duck.execute(query).fetchall())


def closing(rows: Rows) -> list[object]:
    """The rows, each `k` closed after its last row."""
    items: list[object] = []
    for i, row in enumerate(rows):
        items.append(row)
        if row[1] is not None and all(other[1] != row[1] for other in rows[i + 1 :]):
            items.append(xt.punctuation(k=row[1]))
    return items


@pytest.mark.parametrize(("s", "u"), [BAGS[0], *(pytest.param(*bags, marks=pytest.mark.rest) for bags in BAGS[1:])])
@pytest.mark.parametrize("query", QUERIES)
def test_subqueries_answer_as_sql_does(query: str, s: Rows, u: Rows) -> None:
    streams = {"s": closing(s), "u": closing(u)}
    with Case(prepared(STREAM + query, allow_unsafe=True)) as case:
        case.slice({name: items[:4] for name, items in streams.items()})
        case.restart()
        case.slice({name: [*items[4:], xt.END] for name, items in streams.items()})
        assert Counter(case.tuples) == answer(query, s, u)


@pytest.mark.parametrize("query", QUERIES[::5])
def test_a_subquery_may_read_a_static_table(query: str) -> None:
    s, u = BAGS[0]
    expected = [*answer(query, s, u).elements()]
    xt.assert_result(STATIC + query, {"s": [s[:3], s[3:]], "u": [u]}, [expected], end=True, allow_unsafe=True)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM s WHERE k NOT IN (SELECT k FROM u WHERE w = id)",
        "SELECT *, (SELECT count(*) FROM u WHERE u.k = s.k) AS n FROM s WHERE EXISTS (SELECT 1 FROM u WHERE u.k = s.k)",
        "SELECT * FROM s WHERE v = (SELECT max(w) FROM u WHERE u.k = s.k)",
    ],
)
def test_the_cuts_of_the_streams_do_not_matter(query: str) -> None:
    s, u = BAGS[0]
    streams = {"s": [closing(s)], "u": [closing(u)]}
    xt.assert_cut_independent(STREAM + query, streams, cuts=3, end=True, allow_unsafe=True)


def labels(query: str, tables: str = STREAM) -> Counter[str]:
    return Counter(node.label for node in topological(prepared(tables + query, allow_unsafe=True).root))


def test_groups_of_the_query_around_are_emitted_as_they_close() -> None:
    query = "SELECT id, (SELECT count(*) FROM u WHERE u.k = s.k) AS n FROM s"
    case = xt.assert_result(
        STREAM + query, {"s": "(7, 1, 1) (8, 2, 1) | <*, 1, *>", "u": "(1, 1, 1) | <*, 1, *>"}, "| (7, 1)"
    )
    assert case.slices[1].kept == 1


def test_not_in_tests_for_null_only_where_there_may_be_null() -> None:
    for query, number in (
        ("SELECT * FROM s WHERE v NOT IN (SELECT w FROM u)", 3),
        ("SELECT * FROM s WHERE v IS NOT NULL AND v NOT IN (SELECT w FROM u)", 2),
        ("SELECT * FROM s WHERE v > 1 AND v NOT IN (SELECT w FROM u WHERE w IS NOT NULL)", 1),
        ("SELECT * FROM s WHERE v > 1 AND v NOT IN (SELECT w FROM (SELECT w FROM u WHERE NOT (w IS NULL)) AS q)", 1),
        ("SELECT * FROM s WHERE v IN (SELECT w FROM u)", 0),
    ):
        assert labels(query)["not_in"] == number, query


def test_a_star_and_names_mean_the_query_around_alone() -> None:
    query = "SELECT * FROM s WHERE v < (SELECT max(w) FROM u WHERE u.k = s.k) AND k IN (SELECT k FROM u)"
    assert read(STREAM + query).sketch().schema.names == ("id", "k", "v")
    for name in ("w", "u.k", "`value of a subquery`"):
        with pytest.raises(QueryError, match="there is no attribute") as raised:
            read(f"{STREAM}SELECT {name} FROM s WHERE k IN (SELECT k FROM u) AND v < (SELECT max(w) FROM u)")
        assert "value of a subquery" not in (raised.value.hint or "")


def test_a_table_around_may_have_the_name_of_an_attribute() -> None:
    query = "SELECT id FROM s AS x WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = x.k AND x = 1)"
    xt.assert_result(STREAM + query, {"s": "(7, 1, 1) (8, 2, 1)", "u": "(1, 1, 1) <*, 1, *>"}, "(8)", end=True)


REFUSALS = [
    ("SELECT id FROM s GROUP BY id HAVING id IN (SELECT k FROM u)", "id IN", "IN with a subquery", "below"),
    ("SELECT s.id FROM s JOIN u ON s.k = u.k AND EXISTS (SELECT 1 FROM u)", "EXISTS", "EXISTS is", "below"),
    ("SELECT id FROM s WHERE v IN ((SELECT w FROM u))", "v", "a single value", "brackets"),
    ("SELECT id FROM s WHERE v = (SELECT max(w), min(w) FROM u)", "max", "several attributes", "one attribute"),
    ("SELECT id FROM s WHERE v = (SELECT sum(w) OVER (ORDER BY x) FROM u)", "sum", "with OVER", "max(a)"),
    ("SELECT id, (SELECT max(w) FROM u) + 1 FROM s", "max", "without a name", "AS m"),
    ("SELECT k, (SELECT max(w) FROM u) AS m FROM s GROUP BY k", "max", "beside aggregates", "in a query around"),
    ("SELECT max(v) - (SELECT max(w) FROM u) AS m FROM s", "max(w)", "beside aggregates", "in a query around"),
    ("SELECT k FROM s GROUP BY k HAVING max(v) > (SELECT max(w) FROM u)", "max(w)", "not supported here", "around"),
    ("SELECT sum((SELECT max(w) FROM u)) AS m FROM s", "max", "within an aggregate", "in a query below"),
    ("SELECT sum(v) FILTER (WHERE EXISTS (SELECT 1 FROM u)) AS m FROM s", "EXISTS", "within an aggregate", "below"),
    ("SELECT sum(v) FILTER (WHERE NOT k IN (SELECT k FROM u)) AS m FROM s", "k IN", "within an aggregate", "below"),
    ("SELECT max(v) FILTER (WHERE v > (SELECT max(w) FROM u)) AS m FROM s", "max(w)", "within an aggregate", "below"),
    ("SELECT count_if(EXISTS (SELECT 1 FROM u WHERE u.k = s.k)) AS m FROM s", "EXISTS", "within an aggregate", "below"),
    ("SELECT rank() OVER (PARTITION BY EXISTS (SELECT 1 FROM u) ORDER BY v) AS m FROM s", "EXISTS", "OVER", "below"),
    ("SELECT id FROM s WHERE v > ANY (SELECT w FROM u)", "ANY", "ANY", "(SELECT max(…) FROM …)"),
    ("SELECT id FROM s WHERE (v, k) NOT IN (SELECT w, k FROM u)", "v", "NOT IN with several values", "NOT EXISTS"),
    ("SELECT id FROM s WHERE v IN (SELECT w, k FROM u)", "v", "1 values with the 2", "same number"),
    ("SELECT id FROM s WHERE v = (SELECT max(w) FROM u WHERE u.k < s.k)", "u.k", "other than an equality", "by ="),
    ("SELECT id FROM s WHERE v = (SELECT max(w + id) FROM u)", "id", "id of the query around", "in its WHERE"),
    ("SELECT id FROM s WHERE v IN (SELECT w + s.id FROM u)", "s.id", "s.id of the query around", "in its WHERE"),
    ("SELECT id FROM s WHERE v IN (SELECT max(w) FROM u WHERE u.k = s.k GROUP BY x)", "u.k", "groups, ranks", "JOIN"),
    ("SELECT id FROM s WHERE EXISTS (SELECT nosuch FROM u)", "nosuch", "no attribute nosuch", None),
    ("SELECT id FROM s WHERE EXISTS (SELECT 1 FROM u WHERE u.k = s.nosuch)", "s.nosuch", "no attribute s.nosuch", None),
    ("SELECT id FROM s WHERE EXISTS (SELECT 1 FROM nosuch)", "nosuch", "no table nosuch", "declared"),
    ("SELECT id FROM s WHERE max(v) > (SELECT max(w) FROM u)", "max(v)", "an aggregate in WHERE", "HAVING"),
]


@pytest.mark.parametrize(("query", "at", "what", "hint"), REFUSALS)
def test_what_is_refused_says_what_to_write(query: str, at: str, what: str, hint: str | None) -> None:
    with pytest.raises(QueryError) as raised:
        read(STREAM + query)
    assert what in raised.value.what
    assert hint is None or hint in (raised.value.hint or "")
    assert pointed_at(raised.value, query, BEGIN).startswith(at)


@pytest.mark.parametrize("value", ["SELECT w FROM u WHERE u.k = s.k", "SELECT k FROM u GROUP BY k"])
def test_several_rows_of_a_value_are_an_error_that_says_so(value: str) -> None:
    with Case(prepared(STREAM + f"SELECT id, ({value}) AS m FROM s", allow_unsafe=True)) as case:
        case.slice(s=[(0, 1, 1)], u=[(1, 1, 1), (2, 2, 3), (2, 2, 4)])
        if "GROUP" not in value:  # a row that looks up a single one has it
            assert case.slice(u=[xt.END]).rows == [{"id": 0, "m": 1}]
        with pytest.raises(XmlStreamError, match="a subquery that is used as one value has 2 rows") as raised:
            case.slice(s=[(1, 2, 1), xt.END], u=[] if "GROUP" not in value else [xt.END])
    assert raised.value.hint == "select max(…) in it, or write a condition that leaves one row"


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ("(SELECT max(w) FROM u)", "scalarsubquery()"),
        ("(SELECT w FROM u WHERE u.k = s.k AND u.x = s.v AND s.k = u.w)", "scalarsubquery(k, v)"),
        ("EXISTS (SELECT 1 FROM u)", "exists()"),
        ("EXISTS (SELECT 1 FROM u WHERE u.k = s.k AND u.w < s.v)", "exists(k, v)"),
        ("exists (SELECT max(w) FROM u GROUP BY k)", "exists()"),
    ],
)
def test_an_item_without_a_name_has_that_of_spark(item: str, name: str) -> None:
    assert read(STREAM + f"SELECT id, {item} FROM s").sketch().schema.names == ("id", name)
