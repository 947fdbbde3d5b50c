"""Clauses that other suites use, rewritten onto operators that are there: the answers are DuckDB's over whole tables.

The streams are cut into slices and restarted in between. `test_two_tables` asks Spark about the same shapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xmlstream.testing as xt
from tests.harness.drawn_rows import insert
from tests.harness.nights import AT_NIGHT
from tests.harness.pointing import pointed_at
from tests.xmlstream.sql.clauses.test_subqueries import answer, closing
from xmlstream.punct_ns.errors import QueryError
from xmlstream.sql.script import read
from xmlstream.testing.case import Case, prepared

TABLES = """
CREATE TABLE s (id INT, k INT, v INT) USING punctuated_xml OPTIONS (path 's.xml', rowTag 'r', schemes 'k');
CREATE TABLE u (x INT, k INT, w INT) USING punctuated_xml OPTIONS (path 'u.xml', rowTag 'r', schemes 'k');
"""
Rows = Sequence[tuple[int | None, ...]]

S: Rows = [(0, 1, 1), (1, 1, 2), (2, 2, None), (3, None, 1), (4, 3, 3), (5, 2, 2), (5, 2, 2), (None, None, 2)]
U: Rows = [(1, 1, 1), (None, 1, 3), (3, 2, None), (2, 2, 2), (2, 2, 2), (1, None, 3), (5, 2, 2)]
BAGS: list[tuple[Rows, Rows]] = [
    (S, U),
    ([(0, 1, 1), (1, 1, 2), (2, 2, 3), (3, 3, 1), (3, 3, 1)], [(1, 1, 1), (3, 1, 2), (2, 2, 2), (2, 2, 2), (1, 4, 2)]),
    (S, []),
    ([], U),
]

SAME_NAMES = [
    "SELECT a.k, b.k FROM s AS a JOIN u AS b ON a.k = b.k",
    "SELECT * FROM s JOIN u ON s.k = u.k",
    "SELECT a.*, b.* FROM s AS a LEFT JOIN u AS b ON a.k = b.k AND a.v < b.w",
    "SELECT v, v, v FROM s",
    "SELECT k, count(*), count(*) FROM s GROUP BY k",
]
SETS = [
    "SELECT k, v, count(*) AS n, sum(v) AS total FROM s GROUP BY ROLLUP (k, v)",
    "SELECT k, v, count(*) AS n, max(id) AS m FROM s GROUP BY CUBE (k, v)",
    "SELECT k, sum(k) AS total, grouping(k) AS g FROM s GROUP BY GROUPING SETS ((k), (k), ())",
    "SELECT k, v, grouping(k) AS g, grouping(v) AS h, grouping_id(k, v) AS i FROM s GROUP BY CUBE (k, v)",
    "SELECT coalesce(k, -1) AS kk, count(*) AS n FROM s GROUP BY ROLLUP (k) HAVING count(*) > 1",
    "SELECT k + 1 AS kk, v, count(*) AS n FROM s GROUP BY k + 1, ROLLUP (v)",
    "SELECT k, v, id, count(*) AS n FROM s GROUP BY GROUPING SETS ((k, v), ROLLUP (id), v)",
    "SELECT k, v, id, count(*) AS n FROM s GROUP BY ROLLUP (k, (v, id))",
    "SELECT k, count(*) AS n FROM s WHERE v > 1 GROUP BY ROLLUP (k) HAVING grouping(k) = 0",
    "SELECT s.k, w, count(*) AS n FROM s JOIN u ON s.k = u.k GROUP BY CUBE (s.k, w)",
]
TESTS = [
    "SELECT * FROM s WHERE v > 1 OR k IN (SELECT k FROM u WHERE w = 3)",
    "SELECT * FROM s WHERE v > 1 OR EXISTS (SELECT 1 FROM u WHERE u.k = s.k AND w > v)",
    "SELECT * FROM s WHERE v > 1 OR NOT EXISTS (SELECT 1 FROM u WHERE u.k = s.k)",
    "SELECT * FROM s WHERE v > 1 OR v NOT IN (SELECT w FROM u WHERE u.k = s.k)",
    "SELECT * FROM s WHERE v IN (SELECT w FROM u) OR k IN (SELECT x FROM u)",
    "SELECT * FROM s WHERE (v > 1 OR EXISTS (SELECT 1 FROM u WHERE u.k = s.k)) AND id > 0",
    "SELECT * FROM s WHERE v = 2 OR (k IN (SELECT k FROM u) AND v IN (SELECT w FROM u))",
    "SELECT * FROM s WHERE NOT (v > 1 AND v IN (SELECT w FROM u))",
    "SELECT * FROM s WHERE NOT (v > 1 OR v IN (SELECT w FROM u))",
    "SELECT * FROM s WHERE NOT (id > 1 OR EXISTS (SELECT 1 FROM u WHERE u.k = s.k))",
    "SELECT id, EXISTS (SELECT 1 FROM u WHERE u.k = s.k AND w = v) AS m, NOT EXISTS (SELECT 1 FROM u) AS n FROM s",
    "SELECT id, CASE WHEN v IN (SELECT w FROM u) THEN 'a' WHEN k IN (SELECT x FROM u) THEN 'b' ELSE"
    " 'c' END AS c FROM s",
    "SELECT id, CASE WHEN NOT (k > 1 AND v IN (SELECT w FROM u)) THEN 'a' ELSE 'b' END AS c FROM s",
    "SELECT id, coalesce(v IN (SELECT w FROM u), FALSE) = (k > 1) AS c FROM s",
    "SELECT * FROM s WHERE (v, k) IN (SELECT w, k FROM u) OR id = 3",
    "SELECT k, count(*) AS n FROM s WHERE v > 1 OR k IN (SELECT k FROM u) GROUP BY k",
    "SELECT id FROM s WHERE v + 1 IN (SELECT w FROM u) OR (SELECT count(*) FROM u WHERE u.k = s.k) > 1",
]
NEVER_NULL = [
    "SELECT id, v IN (SELECT w FROM u) AS m FROM s",
    "SELECT id, v NOT IN (SELECT w FROM u WHERE u.k = s.k) AS m FROM s",
    "SELECT id, v IN (SELECT w FROM u WHERE w > 1) AS c, v IN (SELECT w FROM u WHERE w IS NOT NULL) AS d FROM s",
    "SELECT id, v IN (SELECT max(w) FROM u GROUP BY k) AS m FROM s",
]
"""As in Spark, IN and NOT IN as values are false where SQL has null."""
BAGS_OF = [
    "SELECT k, v FROM s EXCEPT ALL SELECT k, w FROM u",
    "SELECT k, v FROM s INTERSECT ALL SELECT k, w FROM u",
    "SELECT v FROM s EXCEPT ALL SELECT w FROM u WHERE w > 1",
    "SELECT v FROM s INTERSECT ALL (SELECT w FROM u EXCEPT ALL SELECT k FROM u)",
    "SELECT k FROM s UNION ALL SELECT k FROM u EXCEPT ALL SELECT x FROM u",
    "SELECT k, count(*) AS n FROM (SELECT k FROM s UNION ALL SELECT k FROM u EXCEPT ALL SELECT v FROM s) GROUP BY k",
]
ORDERS = [
    "SELECT id FROM s ORDER BY k NULLS FIRST, v DESC NULLS LAST LIMIT 3",
    "SELECT id FROM s ORDER BY v + coalesce(k, 0) DESC NULLS LAST, id NULLS FIRST LIMIT 4",
    "SELECT -v AS v, id FROM s ORDER BY v NULLS FIRST, id NULLS FIRST LIMIT 2",
    "SELECT -v AS v, id FROM s ORDER BY s.v NULLS FIRST, id NULLS FIRST LIMIT 2",
    "SELECT k FROM s GROUP BY k ORDER BY count(*) DESC, k NULLS FIRST LIMIT 2",
    "SELECT max(v) AS m FROM s GROUP BY k ORDER BY k NULLS FIRST LIMIT 3",
    "SELECT id FROM s ORDER BY id NULLS FIRST, v NULLS FIRST LIMIT 3 OFFSET 2",
    "SELECT id, v FROM s ORDER BY id NULLS FIRST, v NULLS FIRST OFFSET 3",
    "SELECT a.id FROM s AS a JOIN u AS b ON a.k = b.k ORDER BY b.w NULLS FIRST, a.id NULLS FIRST,"
    " b.x NULLS FIRST LIMIT 4",
    "SELECT b.k FROM s AS a LEFT JOIN u AS b ON a.k = b.k ORDER BY a.k NULLS FIRST, b.k NULLS FIRST LIMIT 5",
    "SELECT * FROM (SELECT id FROM s ORDER BY v NULLS FIRST, id NULLS FIRST LIMIT 4) WHERE id > 0",
    "SELECT v, k FROM s ORDER BY 2 NULLS FIRST, s.id NULLS FIRST LIMIT 3",
]
OVERS = [
    "SELECT id, sum(v) OVER (PARTITION BY k) AS t, count(*) OVER (PARTITION BY k) AS n FROM s",
    "SELECT id, v - avg(v) OVER (PARTITION BY k) AS d FROM s",
    "SELECT id, max(v) OVER () AS m, count(*) OVER (PARTITION BY k, v) AS n FROM s",
    "SELECT id, k, ntile(2) OVER (PARTITION BY k ORDER BY id NULLS FIRST, v NULLS FIRST) AS t FROM s",
    "SELECT id, percent_rank() OVER (PARTITION BY k ORDER BY v NULLS FIRST) AS p FROM s",
    "SELECT id, cume_dist() OVER (ORDER BY k NULLS FIRST) AS c FROM s",
    "SELECT id, sum(v) OVER (PARTITION BY k ORDER BY id NULLS FIRST ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)"
    " AS t FROM s",
    "SELECT id, last_value(v) OVER (PARTITION BY k ORDER BY id NULLS FIRST, v NULLS FIRST ROWS BETWEEN UNBOUNDED"
    " PRECEDING AND UNBOUNDED FOLLOWING) AS t FROM s",
    "SELECT id, bool_or(v > 1) OVER (PARTITION BY k) AS t, bool_and(v > 1) OVER (PARTITION BY k"
    " ORDER BY id NULLS FIRST)"
    " AS o FROM s",
    "SELECT id, v FROM (SELECT *, max(v) OVER (PARTITION BY k) AS m FROM s) WHERE v = m",
    "SELECT k, sum(v) AS t, rank() OVER (ORDER BY sum(v) DESC NULLS LAST) AS r FROM s GROUP BY k",
    "SELECT k, v, count(*) AS n, sum(count(*)) OVER (PARTITION BY k) AS t FROM s GROUP BY k, v",
    "SELECT k, max(v) AS m, max(max(v)) OVER () - max(v) AS d FROM s GROUP BY k HAVING count(*) > 0",
    "SELECT k, max(k) OVER () AS m, max(k) AS n FROM s GROUP BY k",
    "SELECT id, 10 * rank() OVER (ORDER BY v NULLS FIRST) + 1 AS r FROM s",
    "SELECT id, rank() OVER (ORDER BY v NULLS FIRST) AS r, dense_rank() OVER (ORDER BY k NULLS FIRST) AS d FROM s",
    "SELECT * FROM (SELECT k, count(*) AS n, row_number() OVER (ORDER BY count(*) DESC, k NULLS FIRST) AS r FROM s"
    " GROUP BY k) WHERE r <= 2",
]
IN_PARENTHESES = [
    "SELECT s.id, a.w, b.x FROM s JOIN (u AS a JOIN u AS b ON a.k = b.k) ON s.k = a.k",
    "SELECT s.id, a.w, b.x FROM s LEFT JOIN (u AS a LEFT JOIN u AS b ON a.k = b.k AND a.w < b.w) ON s.k = a.k",
    "SELECT a.id, b.w FROM (s AS a JOIN u AS b ON a.k = b.k) JOIN (s AS c JOIN u AS d ON c.k = d.k) ON a.id = d.x",
    "SELECT s.id, q.w FROM s FULL JOIN (u AS q JOIN (SELECT k FROM s) AS r USING (k)) ON s.id = q.x",
]
ELEMENTS = [
    ("SELECT id, unnest(array(v, k)) AS e FROM s", "SELECT id, unnest([v, k]) FROM s"),
    ("SELECT id, explode(array(v, k)) FROM s WHERE v > 1", "SELECT id, unnest([v, k]) FROM s WHERE v > 1"),
    (
        "SELECT *, explode_outer(CASE WHEN v > 1 THEN array(v) END) AS e FROM s",
        "SELECT *, CASE WHEN v > 1 THEN v END FROM s",
    ),
    (
        "SELECT DISTINCT explode(array(v, k)) AS e FROM s ORDER BY e LIMIT 3",
        "SELECT DISTINCT unnest([v, k]) AS e FROM s ORDER BY e NULLS FIRST LIMIT 3",
    ),
    (
        "SELECT id, e FROM s, UNNEST(array(v, k)) AS t(e) WHERE e > 1",
        "SELECT id, e FROM s, UNNEST([v, k]) AS t(e) WHERE e > 1",
    ),
    ("SELECT id, e FROM s, LATERAL explode(array(v, k)) AS t(e)", "SELECT id, e FROM s, UNNEST([v, k]) AS t(e)"),
    (
        "SELECT s.id, w, t.e FROM s JOIN u ON s.k = u.k CROSS JOIN UNNEST(array(v, w)) AS t(e)",
        "SELECT s.id, w, t.e FROM s JOIN u ON s.k = u.k CROSS JOIN UNNEST([v, w]) AS t(e)",
    ),
    (
        "SELECT e, count(*) AS n FROM s CROSS JOIN UNNEST(array(v, k)) AS e GROUP BY e",
        "SELECT e, count(*) AS n FROM s CROSS JOIN UNNEST([v, k]) AS t(e) GROUP BY e",
    ),
    ("SELECT id, generate_series(k, v) AS i FROM s", "SELECT id, i FROM s, generate_series(k, v) AS t(i)"),
    ("SELECT id, generate_series AS i FROM s, generate_series(1, s.v)",) * 2,
    ("SELECT id, t.i FROM s, generate_series(s.k, 2) AS t(i)",) * 2,
]
"""Texts, and what DuckDB has for them."""

QUERIES = [*SAME_NAMES, *SETS, *TESTS, *BAGS_OF, *ORDERS, *OVERS, *IN_PARENTHESES]


OF_BAGS = pytest.mark.parametrize(
    ("s", "u"), [BAGS[0], *(pytest.param(*bags, marks=pytest.mark.rest) for bags in BAGS[1:])]
)


def computed(query: str, s: Rows, u: Rows, cuts: Sequence[int] = (4,)) -> Counter[tuple[object, ...]]:
    """The rows that come out, with the streams cut at these places, and restarted there."""
    reads = {scan.name for scan in read(TABLES + query).sources}
    streams = {name: closing(rows) for name, rows in (("s", s), ("u", u)) if name in reads}
    with Case(prepared(TABLES + query, allow_unsafe=True)) as case:
        begin = 0
        for cut in cuts:
            case.slice({name: items[begin:cut] for name, items in streams.items()})
            case.restart()
            begin = cut
        case.slice({name: [*items[begin:], xt.END] for name, items in streams.items()})
        return Counter(case.tuples)


@OF_BAGS
@pytest.mark.parametrize("query", QUERIES)
def test_a_clause_answers_as_sql_does(query: str, s: Rows, u: Rows) -> None:
    if not (query in SETS and not (s and u)):
        assert computed(query, s, u) == answer(query, s, u)


@OF_BAGS
@pytest.mark.parametrize("query", NEVER_NULL)
def test_in_as_a_value_is_false_where_sql_has_null(query: str, s: Rows, u: Rows) -> None:
    expected = [
        tuple(False if value is None and i else value for i, value in enumerate(row))
        for row in answer(query, s, u).elements()
    ]
    assert computed(query, s, u) == Counter(expected)


@OF_BAGS
@pytest.mark.parametrize(("query", "of_duck"), ELEMENTS)
def test_elements_of_arrays_are_rows(query: str, of_duck: str, s: Rows, u: Rows) -> None:
    assert computed(query, s, u) == answer(of_duck, s, u)


@pytest.mark.parametrize("query", SETS[::3])
def test_sets_of_keys_have_no_row_for_no_tuples_as_in_spark(query: str) -> None:
    assert not computed(query, [], U)


@settings(max_examples=300 if AT_NIGHT else 3, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("query", [pytest.param(q, marks=pytest.mark.sampled(6)) for q in QUERIES])
def test_however_the_streams_are_cut(query: str, data: st.DataObject) -> None:
    value = st.none() | st.integers(1, 3)
    s, u = (data.draw(st.lists(st.tuples(value, value, value), max_size=9)) for _ in range(2))
    if query in SETS and not (s and u):
        return
    cuts = sorted(data.draw(st.lists(st.integers(0, 12), max_size=3)))
    assert computed(query, s, u, cuts) == answer(query, s, u)


def drawn_sets() -> st.SearchStrategy[str]:
    keys = st.lists(st.sampled_from(["k", "v", "id", "k + v"]), min_size=1, max_size=3, unique=True)
    one = st.builds(
        lambda kind, given: f"{kind} ({', '.join(given)})", st.sampled_from(["ROLLUP", "CUBE"]), keys
    ) | st.builds(
        lambda sets: f"GROUPING SETS ({', '.join('(' + ', '.join(each) + ')' for each in sets)})",
        st.lists(keys | st.just([]), min_size=1, max_size=3),
    )
    return st.lists(one | st.sampled_from(["k", "v"]), min_size=1, max_size=2).map(", ".join)


@settings(max_examples=1000 if AT_NIGHT else 10, deadline=None)
@given(sets=drawn_sets(), data=st.data())
def test_drawn_sets_of_keys(sets: str, data: st.DataObject) -> None:
    value = st.none() | st.integers(1, 2)
    rows = data.draw(st.lists(st.tuples(value, value, value), min_size=1, max_size=8))
    query = f"SELECT count(*) AS n, sum(id) AS t, max(k + v) AS m FROM s GROUP BY {sets}"
    assert computed(query, rows, []) == answer(query, rows, [])


@pytest.mark.parametrize(
    ("query", "names", "said"),
    [
        (SAME_NAMES[0], ("k", "k_2"), "k; the second of a name is named k_2"),
        (SAME_NAMES[1], ("id", "k", "v", "x", "k_2", "w"), "k; the second of a name is named k_2"),
        (SAME_NAMES[3], ("v", "v_2", "v_3"), "v; the second of a name is named v_2, v_3"),
        ("SELECT k AS K_2, k, K FROM s", ("K_2", "k", "K_3"), "K; the second of a name is named K_3"),
    ],
)
def test_the_second_of_a_name_gets_another_which_a_notice_says(query: str, names: tuple[str, ...], said: str) -> None:
    script = read(TABLES + query)
    assert script.sketch().schema.names == names
    (warning,) = script.warnings
    assert said in warning
    assert "give them names of their own with AS" in warning


def test_names_of_its_own_need_no_notice() -> None:
    sink = "CREATE TABLE o (a INT, b INT) USING punctuated_xml OPTIONS (path 'o', rowTag 'r'); INSERT INTO o "
    for query in ("SELECT a.k, b.k AS j FROM s AS a JOIN u AS b ON a.k = b.k", sink + SAME_NAMES[0]):
        assert not read(TABLES + query).warnings
    view = "CREATE VIEW q (a, b) AS SELECT k, k FROM s; SELECT * FROM q"
    assert read(TABLES + view).sketch().schema.names == ("a", "b")
    assert not read(TABLES + view).warnings


@pytest.mark.parametrize(
    ("query", "of"),
    [
        ("SELECT id FROM s LIMIT 2", S),
        ("SELECT id FROM s WHERE k > 0 LIMIT 2 OFFSET 1", S),
        ("SELECT k FROM s UNION ALL SELECT k FROM u LIMIT 3", S),
        ("SELECT s.id FROM s JOIN u ON s.k = u.k LIMIT 3", S),
        ("SELECT k, count(*) AS n FROM s GROUP BY k LIMIT 2 OFFSET 1", S),
        ("SELECT k FROM s UNION SELECT k FROM u OFFSET 1", S),
    ],
)
def test_limit_without_order_takes_as_many_as_there_are(query: str, of: Rows) -> None:
    whole = query.partition(" LIMIT")[0].partition(" OFFSET")[0]
    for cuts in ((), (1,), (2, 3, 7)):
        found, all_ = computed(query, of, U, cuts), answer(whole, of, U)
        assert found <= all_
        assert found.total() == answer(query, of, U).total()


def test_limit_without_order_takes_those_that_come_first() -> None:
    assert computed("SELECT id FROM s LIMIT 2", S, U, (1, 2)) == Counter([(0,), (1,)])
    assert computed("SELECT id FROM s LIMIT 1 OFFSET 2", S, U, (1, 2)) == Counter([(2,)])


def test_the_first_groups_do_not_wait_for_a_later_slice() -> None:
    table = "CREATE TABLE s (k INT, v INT) USING punctuated_xml OPTIONS (path 's', rowTag 'r', schemes 'k');"
    for query, first in (("SELECT DISTINCT k FROM s", (1,)), ("SELECT k, count(*) AS n FROM s GROUP BY k", (1, 2))):
        case = xt.case(f"{table} {query} LIMIT 1")
        assert case.slice(s="(1, 2) (1, 3) <1, *>").tuples == [first]
        assert case.slice(s="(2, 2) <2, *>").tuples == []


def rows_of(items: Iterable[object], query: str) -> list[list[tuple[object, ...]]]:
    """The rows of each slice, where each item is a slice of `s`."""
    with Case(prepared(TABLES + query, allow_unsafe=True)) as case:
        return [[tuple(row.values()) for row in case.slice(s=[item]).rows] for item in items]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM s ORDER BY v DESC NULLS LAST, id NULLS FIRST",
        "SELECT max(v) AS m FROM s GROUP BY k ORDER BY k NULLS FIRST",
        "SELECT id, -v AS v FROM s ORDER BY s.v NULLS FIRST, k NULLS FIRST, id NULLS FIRST LIMIT 5",
    ],
)
def test_what_is_sorted_by_an_attribute_that_is_left_out_comes_in_order(query: str) -> None:
    with duckdb.connect() as duck:
        duck.execute("CREATE TABLE s (id INT, k INT, v INT)")
        insert(duck, "s", S)
        expected = duck.execute(query).fetchall()
    with Case(prepared(TABLES + query, allow_unsafe=True)) as case:
        case.slice(s=closing(S)[:3])
        case.restart()
        case.slice(s=[*closing(S)[3:], xt.END])
        assert case.tuples == expected


def test_a_row_that_the_plain_alternative_selects_waits_for_no_other() -> None:
    query = "SELECT id FROM s WHERE v > 1 OR k IN (SELECT k FROM u)"
    with Case(prepared(TABLES + query, allow_unsafe=True)) as case:
        assert case.slice(s=[(1, 1, 2), (2, 1, 1)]).rows == [{"id": 1}]
        assert case.slice(u=[(1, 1, 1)]).rows == [{"id": 2}]


def test_a_group_of_a_set_comes_when_it_is_closed() -> None:
    query = "SELECT k, v, count(*) AS n FROM s GROUP BY ROLLUP (k, v)"
    found = rows_of([(1, 1, 2), (2, 1, 3), xt.punctuation(k=1), xt.END], query)
    assert [sorted(map(str, rows)) for rows in found] == [
        [],
        [],
        ["(1, 2, 1)", "(1, 3, 1)", "(1, None, 2)"],
        ["(None, None, 2)"],
    ]


def test_a_function_of_the_whole_partition_comes_when_it_is_closed() -> None:
    query = "SELECT id, max(v) OVER (PARTITION BY k) AS m FROM s"
    found = rows_of([(1, 1, 2), (2, 1, 3), (3, 2, 5), xt.punctuation(k=1), xt.END], query)
    assert found == [[], [], [], [(1, 3), (2, 3)], [(3, 5)]]


REFUSALS = [
    ("SELECT DISTINCT k FROM s ORDER BY v LIMIT 1", "ORDER BY an attribute that SELECT DISTINCT", "v LIMIT"),
    ("SELECT k, max(v) AS v FROM s GROUP BY k ORDER BY max(v) LIMIT 1", "v is ambiguous", "v) LIMIT"),
    ("SELECT k FROM s UNION SELECT k FROM u ORDER BY k + 1", "ORDER BY of a UNION takes", "k + 1"),
    ("SELECT k, max(v) AS m FROM s GROUP BY k ORDER BY id", "id is neither a key of GROUP BY", "id"),
    ("SELECT k, k FROM s ORDER BY k", "k is ambiguous", "k"),
    ("SELECT k FROM s LIMIT 1 OFFSET v", "OFFSET is supported only with a number", "OFFSET"),
    ("SELECT grouping(k) AS g FROM s GROUP BY k", "the function grouping is not supported", "grouping"),
    ("SELECT grouping(v) AS g FROM s GROUP BY ROLLUP (k)", "grouping takes one key of GROUP BY", "grouping"),
    ("SELECT id, (v, k) NOT IN (SELECT w, k FROM u) AS m FROM s", "NOT IN with several values", "v, k"),
    ("SELECT max(v IN (SELECT w FROM u)) AS m FROM s", "a subquery within an aggregate", "v IN"),
    ("SELECT k FROM s GROUP BY k HAVING EXISTS (SELECT 1 FROM u)", "EXISTS is supported only in WHERE", "EXISTS"),
    ("SELECT ntile(2) OVER (PARTITION BY k) AS n FROM s", "without ORDER BY", "ntile"),
    ("SELECT sum(v) OVER (PARTITION BY k ROWS 2 PRECEDING) AS n FROM s", "ROWS without ORDER BY", "sum"),
    ("SELECT count(DISTINCT v) OVER (PARTITION BY k) AS n FROM s", "DISTINCT beside OVER", "count"),
    ("SELECT k, rank() OVER (ORDER BY count(*)) AS r FROM s GROUP BY ROLLUP (k)", "OVER beside GROUPING SETS", "rank"),
    ("SELECT explode(array(v)) AS a, explode(array(k)) AS b FROM s", "a second explode in SELECT", "explode(array(k))"),
    ("SELECT explode(array(v)) AS a, count(*) AS n FROM s", "explode beside groups", "explode"),
]


@pytest.mark.parametrize(("query", "what", "at"), REFUSALS)
def test_what_is_refused_says_where(query: str, what: str, at: str) -> None:
    with pytest.raises(QueryError, match=what.replace("(", r"\(")) as raised:
        read(TABLES + query)
    assert pointed_at(raised.value, query).startswith(at)
    assert raised.value.hint
