"""Functions of Python over whole groups: when they are called and with what, what they may return, and how often."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import xmlstream as xs
from xmlstream.punct_ns.errors import QueryError, UnsafeQuery
from xmlstream.session.engines import InProcessSession

if TYPE_CHECKING:
    from xmlstream.builder.query import Query
    from xmlstream.session.engines import Session

PUNCT = 'xmlns:punct="http://www.cse.ogi.edu/dot/niagara/punct"'


def stream(session: Session, directory: Path, *documents: str, schemes: str = "k") -> Query:
    """A query of documents, one in each slice: `1,5 1,. <1>` has two tuples, one without v, and closes k = 1."""
    (directory / "in").mkdir(exist_ok=True)
    for number, items in enumerate(documents):
        text = ""
        for item in items.split():
            if item.startswith("<"):
                text += f"<punct:t><k>{item[1:-1]}</k></punct:t>"
                continue
            pairs = zip("kv", item.split(","), strict=True)
            text += f"<t>{''.join(f'<{name}>{value}</{name}>' for name, value in pairs if value != '.')}</t>"
        (directory / "in" / f"{number}.xml").write_text(f"<r {PUNCT}>{text}</r>", encoding="utf-8")
    return xs.read(session, directory / "in", "k INT, v DOUBLE", rowTag="t", schemes=schemes, maxFilesPerSlice=1)


def rows_of(query: Query) -> list[tuple[Any, ...]]:
    """The rows of the result, sorted."""
    return sorted((tuple(row.values()) for row in query.to_arrow().to_pylist()), key=str)


def slices(query: Query) -> list[tuple[list[Any], list[str]]]:
    """The rows and the punctuations of each slice."""
    return [
        (sorted((tuple(row.values()) for row in found.tuples.to_pylist()), key=str), [*map(str, found.punctuations)])
        for found in query.slices()
    ]


def listed(key: Any, rows: pa.Table) -> list[dict[str, Any]]:
    """All rows of a group in one."""
    return [{"n": rows.num_rows, "vs": rows["v"].to_pylist()}]


LISTED = "k INT, n INT, vs ARRAY<DOUBLE>"


def test_a_group_is_given_as_a_whole_once_it_is_closed(session: Session, tmp_path: Path) -> None:
    query = stream(session, tmp_path, "1,5 2,7 1,3", "1,4 <1> 2,1", "2,9 .,8 <2>").group_by("k").apply(listed, LISTED)
    assert slices(query) == [
        ([(1, 3, [3.0, 4.0, 5.0])], ["<1, *, *>"]),
        ([(2, 3, [1.0, 7.0, 9.0]), (None, 1, [8.0])], ["<*, *, *>"]),
    ]
    assert rows_of(query) == [(1, 3, [3.0, 4.0, 5.0]), (2, 3, [1.0, 7.0, 9.0]), (None, 1, [8.0])]


def test_each_group_is_given_once(session: Session, tmp_path: Path) -> None:
    log = tmp_path / "calls"

    def noted(key: Any, rows: pa.Table) -> dict[str, int]:
        with log.open("a") as file:  # which Spark's workers write, too
            file.write(f"{key.k} {rows.num_rows}\n")
        return {"n": rows.num_rows}

    texts = " ".join(f"{k},{v}" for k in range(3000) for v in range(5))
    query = stream(session, tmp_path, texts, "7,1 <7>").group_by("k").apply(noted, "k INT, n INT").where("n > 3")
    assert query.select("n + k AS m", "n").join(query.select("k"), "m = k").to_arrow().num_rows == 2995
    assert sorted(log.read_text().splitlines()) == sorted(f"{k} {5 + (k == 7)}" for k in range(3000))


def test_rows_come_sorted_by_their_columns_null_last(session: Session, tmp_path: Path) -> None:
    given = stream(session, tmp_path, "1,5 1,. 1,NaN", "1,3 1,-Infinity 1,5").select("-v AS w", "v", "k")
    query = given.group_by("k").apply(lambda rows: [{"vs": rows["v"].to_pylist()}], "vs ARRAY<STRING>")
    with pytest.raises(QueryError, match="it is of Python's type float"):
        query.to_arrow()
    query = given.group_by("k").apply(lambda rows: [{"vs": [*map(str, rows["v"].to_pylist())]}], "vs ARRAY<STRING>")
    assert rows_of(query) == [(["5.0", "5.0", "3.0", "-inf", "nan", "None"],)]


TYPES = {
    "BOOLEAN": "v > 3",
    "SMALLINT": "CAST(k AS SMALLINT)",
    "BIGINT": "CAST(k AS BIGINT) * 4000000000",
    "FLOAT": "CAST(v / 3 AS FLOAT)",
    "DOUBLE": "v / 3",
    "DECIMAL(9,2)": "CAST(k AS DECIMAL(9,2))",
    "STRING": "CAST(k AS STRING)",
    "DATE": "CAST(timestamp_seconds(k * 100000) AS DATE)",
    "TIMESTAMP": "timestamp_millis(k * 7)",
    "TIMESTAMP_NTZ": "CAST(timestamp_millis(k * 7) AS TIMESTAMP_NTZ)",
    "ARRAY<DOUBLE>": "array(v, NULL, 1.5D)",
    "STRUCT<x:INT,y:ARRAY<STRING>>": "named_struct('x', k, 'y', array('a', CAST(k AS STRING)))",
}


@pytest.mark.parametrize("type_", TYPES)
def test_a_value_of_each_type_comes_through_as_it_is(session: Session, tmp_path: Path, type_: str) -> None:
    given = stream(session, tmp_path, "1,5 2,NaN 3,. 1,-2.5 .,4", "2,5").select("k", f"{TYPES[type_]} AS x")
    expected = str(rows_of(given))  # since NaN is not NaN
    for function in (lambda rows: rows, lambda rows: rows.to_pylist()):
        assert str(rows_of(given.group_by("k").apply(function, f"k INT, x {type_}"))) == expected
        if not type_.startswith(("ARRAY", "STRUCT")):
            for of_key in (function, lambda rows: rows.select(["k"])):
                assert str(rows_of(given.group_by("x").apply(of_key, f"k INT, x {type_}"))) == expected


def in_two(key: Any, rows: pa.Table) -> Iterator[dict[str, Any]]:
    yield {"n": rows.num_rows, "K": key.k}
    yield {"n": key[0]}


FORMS: list[tuple[Any, list[Any]]] = [
    (lambda key, rows: [{"n": rows.num_rows}, {"n": key.k}], [1, 2]),
    (in_two, [1, 2]),
    (lambda rows: {"n": rows.num_rows}, [2]),
    (lambda rows: [], []),
    (lambda rows: [{"k": None if k is None else k, "n": 0} for k in rows["k"].to_pylist()], [0, 0]),
    (lambda rows: pa.table({"n": pa.array([3, None], pa.int16()), "k": rows["k"]}), [3, None]),
    (lambda rows: pa.RecordBatch.from_pydict({"N": pa.array([3], pa.int64())}), [3]),
    (lambda rows: rows.select(["k"]).append_column("n", rows["k"]), [1, 1]),
    (lambda rows: rows.slice(0, 0).select(["k"]).append_column("n", rows["k"].slice(0, 0)), []),
]


TEXTS: list[Any] = [pa.array(["a", None], type_) for type_ in (pa.string(), pa.large_string(), pa.string_view())]
TEXTS += [TEXTS[0].dictionary_encode()]


@pytest.mark.parametrize("texts", TEXTS, ids=lambda texts: str(texts.type))
def test_texts_are_returned_as_other_libraries_have_them(
    in_process: InProcessSession, tmp_path: Path, texts: pa.Array[Any]
) -> None:
    query = stream(in_process, tmp_path, "1,5 <1>").group_by("k").apply(lambda rows: pa.table({"t": texts}), "t STRING")
    assert rows_of(query) == [("a",), (None,)]


@pytest.mark.parametrize("number", range(len(FORMS)))
def test_rows_are_returned_in_any_form(session: Session, tmp_path: Path, number: int) -> None:
    function, expected = FORMS[number]
    query = stream(session, tmp_path, "1,5 1,6 <1>").group_by("k").apply(function, "k INT, n BIGINT")
    assert rows_of(query) == sorted([(1, n) for n in expected], key=str)


def test_a_frame_of_pandas_is_given_where_it_is_annotated(session: Session, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    space: dict[str, Any] = {"pd": pd}
    exec("def spread(key, rows: pd.DataFrame) -> pd.DataFrame: return rows.agg({'v': ['min', 'max']})", space)
    query = stream(session, tmp_path, "1,5 1,6 1,. <1>").group_by("k").apply(space["spread"], "k INT, v DOUBLE")
    assert rows_of(query) == [(1, 5.0), (1, 6.0)]


WRONG: list[tuple[Any, str]] = [
    (lambda rows: None, "None; for no rows return []"),
    (lambda rows: 3, "3 is no rows"),
    (lambda rows: [(1, 2)], "the row (1, 2) is no dictionary"),
    (lambda rows: "abc", "the row 'a' is no dictionary"),
    (lambda rows: [{"n": 1, "m": 2}], "it has a column m"),
    (lambda rows: [{"n": 1}, {"k": 1}], "the row {'k': 1} lacks n"),
    (lambda rows: [{"n": 1.5}], "it is of Python's type float"),
    (lambda rows: [{"n": 1 << 40}], "too large"),
    (lambda rows: [{"k": 2, "n": 1}], "it has k = 2, and that column is the key"),
    (lambda rows: [{"k": None, "n": 1}], "it has k = None, and that column is the key"),
    (lambda rows: pa.table({"k": [7, 7], "n": [1, 2]}), "it has k = 7, and that column is the key"),
    (lambda rows: pa.table({"k": [1]}), "it lacks the column n"),
    (lambda rows: pa.table({"n": [1.5]}), "its column n is of Arrow's type double"),
    (lambda rows: pa.table({"n": [1], "x": [2]}), "it has a column x"),
    (lambda rows: pa.table([[1], [2]], ["n", "N"]), "two of its columns have one name"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_what_is_not_as_declared_is_an_error_with_the_group(session: Session, tmp_path: Path, number: int) -> None:
    function, words = WRONG[number]
    query = stream(session, tmp_path, "1,5 2,6").group_by("k", "k + 1 AS l").apply(function, "k INT, n INT")
    with pytest.raises(QueryError, match=re.escape(words)) as raised:
        query.to_arrow()
    assert "the group k = 1, l = 2" in raised.value.what or "the group k = 2, l = 3" in raised.value.what
    assert f"{Path(__file__).name}, line" in str(raised.value.where)


def fails(key: Any, rows: pa.Table) -> Iterator[dict[str, Any]]:
    yield {"n": 1}
    yield {"n": 1 // (rows.num_rows - 1)}


def test_an_error_that_it_raises_has_its_line_and_the_group(session: Session, tmp_path: Path) -> None:
    query = stream(session, tmp_path, "1,5 1,6 2,7").group_by("k").apply(fails, "k INT, n INT")
    with pytest.raises(QueryError, match="the function fails raised ZeroDivisionError for the group k = 2: ") as raised:
        query.to_arrow()
    line = fails.__code__.co_firstlineno + 2
    assert str(raised.value.where).endswith(f"{Path(__file__).name}, line {line}")


def test_without_a_key_all_rows_come_at_the_end_even_none(session: Session, tmp_path: Path) -> None:
    for number, documents in enumerate((("1,5", "2,4"), ("",))):
        (tmp_path / str(number)).mkdir()
        query = (
            stream(session, tmp_path / str(number), *documents)
            .group_by()
            .apply(lambda key, rows: {"n": rows.num_rows, "key": str(tuple(key))}, "n INT, key STRING")
        )
        assert rows_of(query) == [(2 if number == 0 else 0, "()")]


def test_a_key_that_the_schema_lacks_closes_nothing(session: Session, tmp_path: Path) -> None:
    query = stream(session, tmp_path, "1,5 <1>", "2,4").group_by("k").apply(lambda rows: {"n": 1}, "n INT")
    found = slices(query)
    assert found[0] == ([(1,)], [])
    assert [str(scheme) for scheme in query.plan.schemes] == []
    named = stream(session, tmp_path, "1,5 <1>", "2,4").group_by("k").apply(lambda rows: {"n": 1}, "n INT, K BIGINT")
    assert [str(scheme) for scheme in named.plan.schemes] == ["K"]
    assert slices(named)[0] == ([(1, 1)], ["<*, 1>"])


def test_keys_are_computed_renamed_and_windows(session: Session, tmp_path: Path) -> None:
    given = stream(session, tmp_path, "11,5 12,6 21,1 <[11,19]>", schemes="k")
    query = given.group_by("k DIV 10 AS ten").apply(lambda key, rows: {"n": rows.num_rows, "key": key._fields[0]},
                                                    "ten BIGINT, n INT, key STRING")  # fmt: skip
    assert rows_of(query) == [(1, 2, "ten"), (2, 1, "ten")]
    moments = (
        given.select("timestamp_seconds(k * 100) AS ts", "v")
        .window("ts", "30 minutes")
        .select("v", "window.start AS begin")
    )
    query = moments.group_by("begin").apply(lambda key, rows: {"n": rows.num_rows}, "begin TIMESTAMP, n INT")
    assert [(row[0].isoformat(), row[1]) for row in rows_of(query)] == [
        ("1970-01-01T00:00:00+00:00", 2), ("1970-01-01T00:30:00+00:00", 1),
    ]  # fmt: skip


def test_a_window_is_a_key(session: Session, tmp_path: Path) -> None:
    given = stream(session, tmp_path, "11,5 12,6 21,1 <(,19]>", "30,1", schemes="k prefix")
    moments = given.select("timestamp_seconds(k * 60) AS ts", "v")
    for window, name in (("window(ts, '20 minutes', '10 minutes') AS w", "w"), ("window(ts, '20 minutes')", "window")):
        query = moments.group_by(window).apply(
            lambda key, rows: {"n": rows.num_rows, "key": ",".join(key._fields)},
            f"`{name}.start` TIMESTAMP, n INT, key STRING",
        )
        assert [str(scheme) for scheme in query.plan.schemes] == [f"`{name}.start` prefix"]
        (first, *_), *others = [found for found, _ in slices(query)]
        assert first[1:] == (2, f"{name}_start,{name}_end")
        assert (first[0].minute, others != []) == (0, True)


def test_the_result_goes_on_through_other_operators(session: Session, tmp_path: Path) -> None:
    given = stream(session, tmp_path, "1,5 1,6 2,7 <1>", "2,9 3,1 <2>")
    spread = given.group_by("k").apply(lambda rows: [{"v": v} for v in rows["v"].to_pylist()], "k INT, v DOUBLE")
    assert rows_of(spread.where("k < 3 AND v > 5").group_by("k").agg("count(*) AS n")) == [(1, 1), (2, 2)]
    joined = spread.join(given.group_by("k").agg("max(v) AS m"), ["k"]).where("v = m").select("k", "v")
    assert rows_of(joined) == [(1, 6.0), (2, 9.0), (3, 1.0)]
    twice = spread.group_by("k").apply(lambda rows: {"n": rows.num_rows}, "k INT, n INT")
    assert slices(twice)[0] == ([(1, 2)], ["<1, *>"])


NOT_SO: list[tuple[Any, str]] = [
    (lambda g: g.apply(listed, "k STRING, n INT"), "has k STRING, and the key is of type INT"),
    (lambda g: g.apply(listed, "k SMALLINT, n INT"), "has k SMALLINT, and the key is of type INT"),
    (lambda g: g.apply(listed, "k INT NOT NULL, n INT"), "NOT NULL of the column k"),
    (lambda g: g.apply(listed, "k INT, m MAP<STRING, INT>"), "cannot return a TABLE (k INT, m MAP<STRING, INT>)"),
    (lambda g: g.apply(listed, ""), "a schema without attributes"),
    (lambda g: g.apply(lambda a, b, c: [], "k INT"), "does not take a key and rows: lambda takes 3 arguments, not 2"),
    (lambda g: g.apply(lambda: [{}], "k INT"), "write lambda key, rows: …"),
    (lambda g: g.apply(dict, "k INT"), "is a class"),
    (lambda g: g.apply("listed", "k INT"), "'listed' is not a function"),
    (lambda g: g.apply(listed, ["k INT"]), "['k INT'] is no schema"),
    (lambda g: g.query.group_by("count(*)").apply(listed, LISTED), "an aggregate as a key of groups"),
    (lambda g: g.query.group_by("session_window(timestamp_seconds(k), '1 day')").apply(listed, "n INT"), "session_win"),
    (lambda g: g.query.group_by("k + 1 AS k").apply(listed, LISTED), "would get two columns k"),
    (lambda g: g.query.select("k", "map('a', k) AS m").group_by("k").apply(listed, "k INT"), "the column m, of type"),
]


@pytest.mark.parametrize("number", range(len(NOT_SO)))
def test_what_cannot_be_is_refused_before_it_runs(session: Session, tmp_path: Path, number: int) -> None:
    build, words = NOT_SO[number]
    if "map(" in str(build.__code__.co_consts) and isinstance(session, InProcessSession):
        pytest.skip("DuckDB has no such map")
    with pytest.raises((QueryError, xs.UsageError), match=re.escape(words)):
        build(stream(session, tmp_path, "1,5").group_by("k"))


def test_without_what_closes_its_key_a_query_is_unsafe(in_process: InProcessSession, tmp_path: Path) -> None:
    query = stream(in_process, tmp_path, "1,5", schemes="").group_by("k").apply(listed, LISTED)
    with pytest.raises(UnsafeQuery):
        query.start(tmp_path / "out", tmp_path / "state")
    text = stream(in_process, tmp_path, "1,5").group_by("k").apply(listed, LISTED).explain("text")
    assert "tuples of groups" in text
    assert "what it keeps is bounded" in text


def test_rows_of_open_groups_outlive_a_restart_and_a_change(in_process: InProcessSession, tmp_path: Path) -> None:
    def run(output: str, documents: list[str], *columns: str, change: bool = False) -> list[str]:
        given = stream(in_process, tmp_path, *documents).select(*columns)
        query = given.group_by("k").apply(lambda rows: {"n": rows.num_rows, "s": sum(rows["v"].to_pylist())}, SUMS)
        query.run(tmp_path / output, checkpoint=tmp_path / "state", keep_open=True, change=change)
        return [text for path in sorted((tmp_path / output).glob("*.xml")) for text in ROWS.findall(path.read_text())]

    documents = ["1,5 2,6", "1,7 2,1 <1>", "2,3 <2>"]
    assert run("out", documents[:1], "v", "k", "v + 1 AS w") == []
    assert run("out", documents[:2], "v", "k", "v + 1 AS w") == ["<k>1</k><n>2</n><s>12</s>"]
    with pytest.raises(xs.StateError, match="belongs to another query"):
        run("out", documents, "v", "k")
    assert run("new", documents, "v", "k", change=True) == ["<k>2</k><n>3</n><s>10</s>"]


SUMS, ROWS = "k INT, n INT, s DOUBLE", re.compile("<row>(.*?)</row>")


def test_open_groups_have_answers_so_far(in_process: InProcessSession, tmp_path: Path) -> None:
    query = stream(in_process, tmp_path, "1,5 2,6", "1,7 <1>").group_by("k").apply(listed, LISTED)
    handle = query.start(tmp_path / "out", tmp_path / "state")
    try:
        handle.processAllAvailable()
        assert handle.so_far().to_arrow().to_pylist() == [{"k": 2, "n": 1, "vs": [6.0]}]
    finally:
        handle.stop()


MODULE = """
def listed(key, rows):
    yield {"n": rows.num_rows, "vs": rows["v"].to_pylist()}

def one(x):
    return x
"""
TABLE = "CREATE TABLE s (k INT, v DOUBLE) USING punctuated_xml OPTIONS (path '{path}', rowTag 't', schemes 'k');\n"
CREATE = "CREATE FUNCTION listed AS 'fns_{n}:listed' RETURNS TABLE (k INT, n INT, vs ARRAY<DOUBLE>);\n"


@pytest.fixture
def module(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The end of the name of a module beside the files of SQL of a test, which no other test has."""
    n = re.sub(r"\W", "_", request.node.name)
    (tmp_path / f"fns_{n}.py").write_text(MODULE, encoding="utf-8")
    sys.path.append(str(tmp_path))
    yield n
    sys.path.remove(str(tmp_path))


def of_sql(session: Session, directory: Path, text: str, n: str) -> Query:
    stream(session, directory, "1,5 2,7 1,3", "1,4")
    return xs.from_sql(session, (TABLE + CREATE + text).format(path=directory / "in", n=n))


IN_SQL = [
    ("SELECT * FROM listed(TABLE(s) PARTITION BY k)", [(1, 3, [3.0, 4.0, 5.0]), (2, 1, [7.0])]),
    ("SELECT * FROM listed(TABLE s PARTITION BY (k))", [(1, 3, [3.0, 4.0, 5.0]), (2, 1, [7.0])]),
    ("SELECT g.k AS x, g.n FROM Listed(TABLE(SELECT * FROM s WHERE v > 3) PARTITION BY k) AS g", [(1, 2), (2, 1)]),
    ("SELECT a, b FROM listed(TABLE(s) PARTITION BY (k, k + 1)) AS g(a, b, c) WHERE a > 1", [(2, 1)]),
    ("SELECT k, n, size(vs) AS m FROM listed(TABLE(SELECT v FROM s) WITH SINGLE PARTITION)", None),
    ("SELECT s.v, n FROM s JOIN listed(TABLE(s) PARTITION BY k) AS g ON s.k = g.k WHERE s.v = 5", [(5.0, 3)]),
    ("WITH w AS (SELECT * FROM listed(TABLE(s) PARTITION BY k)) SELECT count(*) AS c FROM w", [(2,)]),
    (
        "CREATE FUNCTION g AS 'fns_{n}:one' RETURNS INT; SELECT n FROM listed(TABLE(s) PARTITION BY (k, g(k)))",
        [(1,), (3,)],
    ),
    ("SELECT n, count(*) AS c FROM listed(TABLE(SELECT * FROM s) PARTITION BY k) GROUP BY n", [(1, 1), (3, 1)]),
    (
        "WITH w AS (SELECT k, CAST(n AS DOUBLE) AS v FROM listed(TABLE(s) PARTITION BY k)) "
        "SELECT * FROM listed(TABLE(SELECT w.* FROM (SELECT * FROM listed(TABLE(s) PARTITION BY k)) AS u JOIN w "
        "USING (k)) PARTITION BY k)",
        [(1, 1, [3.0]), (2, 1, [1.0])],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), IN_SQL)
def test_sql_calls_it_over_a_table(
    session: Session, tmp_path: Path, module: str, text: str, expected: list[Any] | None
) -> None:
    if expected is None:  # the key that the schema names is not among the keys: the function must return it
        with pytest.raises(QueryError, match="lacks k"):
            rows_of(of_sql(session, tmp_path, text, module))
        return
    assert rows_of(of_sql(session, tmp_path, text, module)) == sorted(expected, key=str)


NOT_IN_SQL = [
    ("SELECT * FROM listed(TABLE(s))", "listed has no groups", (3, 15)),
    ("SELECT * FROM listed(s)", "listed has no groups", (3, 15)),
    ("SELECT * FROM listed(TABLE(s) PARTITION BY k, v)", "listed takes a table, and nothing else", (3, 15)),
    ("SELECT * FROM listed(TABLE(s) PARTITION BY window(v, '1 hour'))", "window(…) is not supported as a key", (3, 44)),
    ("SELECT * FROM listed(TABLE(s) PARTITION BY k ORDER BY v)", "ORDER BY of the rows of listed", (3, 55)),
    ("SELECT listed(k) AS x FROM s", "listed is a function of groups, which stands in FROM", (3, 8)),
    ("SELECT * FROM listed(TABLE(s) PARTITION BY kk)", "there is no attribute kk", (3, 44)),
    ("SELECT * FROM listed(TABLE(t) PARTITION BY k)", "there is no table t", (3, 28)),
    ("SELECT inline(array(named_struct('a', k))) FROM s", "the function inline is not supported", (3, 8)),
    ("CREATE FUNCTION g AS 'fns_{n}:one' RETURNS INT; SELECT * FROM g(TABLE(s) PARTITION BY k)", "no table", None),
    ("CREATE FUNCTION g AS 'fns_{n}:listed' RETURNS TABLE (k INT) MONOTONE; SELECT k FROM s", "declared rising", None),
    ("CREATE FUNCTION g AS 'fns_{n}:listed' RETURNS TABLE (k INT NOT NULL); SELECT k FROM s", "NOT NULL", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words", "place"), NOT_IN_SQL)
def test_what_sql_cannot_say_is_refused_at_its_place(
    in_process: InProcessSession, tmp_path: Path, module: str, text: str, words: str, place: tuple[int, int] | None
) -> None:
    with pytest.raises(QueryError, match=re.escape(words)) as raised:
        of_sql(in_process, tmp_path, text, module)
    assert place is None or (raised.value.line, raised.value.column) == place


def test_a_program_declares_one_for_its_texts(session: Session, tmp_path: Path) -> None:
    @xs.function("TABLE (k INT, total DOUBLE)")
    def summed(key: Any, rows: pa.Table) -> dict[str, Any]:
        return {"total": sum(rows["v"].to_pylist())}

    stream(session, tmp_path, "1,5 2,7 1,3")
    text = TABLE.format(path=tmp_path / "in") + "SELECT total FROM summed(TABLE(s) PARTITION BY k) WHERE k = 1"
    assert rows_of(xs.from_sql(session, text)) == [(8.0,)]
