"""A query under test: the real plan with its state, grammar, clock and restarts, over items that a test gives."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
import xmlstream.testing as xt
from tests.harness.pages import modules_in
from xmlstream.punct_ns.errors import QueryError

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

TABLE = "CREATE TABLE {} (k INT, v INT) USING punctuated_xml OPTIONS (path 'none.xml', rowTag 'r', {});\n"
SUMS = TABLE.format("s", "schemes 'k'") + "SELECT k, CAST(sum(v) AS INT) AS v FROM s GROUP BY k"


def test_a_slice_gives_what_the_query_makes_of_it(session: Session) -> None:
    with xt.case(SUMS, session=session) as case:
        first = case.slice(s=[{"k": 1, "v": 2}, (2, 5), {"k": 1, "v": 3}, xt.punctuation(k=1)])
        assert first.rows == [{"k": 1, "v": 5}]
        assert str(first) == "(1, 5) <1, *>"
        assert (first.number, first.kept, first.report["items_in"]) == (0, 1, 4)
        second = case.slice()
        assert (str(second), second.kept) == ("", 1)
        assert case.waiting() == ["k=2 waits for s: <2, *>"]
        assert str(case.end()) == "(2, 5) <*, *>"
        assert case.tuples == [(1, 5), (2, 5)]
        assert case.closed.is_all


def test_a_restart_goes_on_from_the_files(session: Session) -> None:
    with xt.case(SUMS, session=session) as case:
        case.slice(s="(1, 2) (2, 5)")
        case.restart().restart()
        case.slice(s="(1, 3)")
        case.restart()
        assert str(case.slice(s="<[1,2], *>")) == "(1, 5) (2, 5) <[1,2], *>"
        assert case.slices[-1].kept == 0


def test_an_error_of_a_function_is_in_its_own_words(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ends_badly.py").write_text("import math\n\n\ndef root(v):\n    return int(math.sqrt(v))\n")
    monkeypatch.syspath_prepend(tmp_path)
    made = "CREATE FUNCTION root AS 'ends_badly:root' RETURNS INT;"
    with xt.case(
        f"{made}{TABLE.format('s', '')} SELECT root(v) AS r FROM s".replace(", )", ")"), session=session
    ) as case:
        with pytest.raises(QueryError) as raised:
            case.slice(s="(1, -1)")
        what, where = str(raised.value).splitlines()
        assert what == "the function root raised ValueError for (-1): math domain error"
        assert where.endswith("ends_badly.py, line 5")
        assert str(case.slice(s="(1, 9)")) == "(3)"


def test_a_query_of_the_builder_needs_no_session(session: Session) -> None:
    source = xs.read(session, "none/s.xml", "k INT, v INT", rowTag="r", schemes="k")
    case = xt.case(source.group_by("k").agg("count(*) AS n"))
    assert str(case.slice({"S": "(1, 2) (1, 2) <1, *>"})) == "(1, 2) <1, *>"


def test_a_file_of_sql_and_its_variables(session: Session) -> None:
    warehouse = Path(__file__).parents[3] / "data" / "warehouse.sql"
    case = xt.case(warehouse, session=session, variables={"SENSORS": "none"})
    case.slice(sensor1="(S1, 17, 3, 20.5) <*, 17, *, *>")
    assert str(case.slice(sensor2="(S2, 17, 4, 21) <*, 17, *, *>")) == "(21.0, 17) <*, 17>"


def test_an_ungrammatical_tuple_is_reported_and_does_not_count(session: Session) -> None:
    case = xt.case(SUMS, session=session)
    case.slice(s="(1, 2) <1, *>")
    with pytest.raises(xs.UngrammaticalStream, match=r"\(1, 3\) comes after the punctuation <1, \*>"):
        case.slice(s="(2, 1) (1, 3)")
    with pytest.raises(xs.UngrammaticalStream, match=r"\(3, 3\) comes after") as raised:
        case.slice(s="<3, *> (3, 3)")
    assert raised.value.where == "source s, slice 2 of the test, item at position 3"
    assert str(case.slice(s="(2, 7) <2, *>")) == "(2, 7) <2, *>"


def test_diverted_tuples_are_dead_letters(session: Session) -> None:
    query = TABLE.format("s", "schemes 'k', ungrammatical 'divert'") + "SELECT k, v FROM s WHERE v > 0"
    case = xt.case(query, session=session)
    found = case.slice(s="<1, *> (1, 3) (2, 3)")
    assert found.tuples == [(2, 3)]
    found = case.slice(s="(1, 4) (2, 4)")
    assert found.tuples == [(2, 4)]
    assert [letter["kind"] for letter in found.dead_letters] == ["ungrammatical"]
    assert "(1, 4)" in found.dead_letters[0]["reason"]


def test_the_clock_is_set_and_lifespans_end_by_it(session: Session) -> None:
    query = TABLE.format("s", "schemes 'k'") + "SELECT k, current_timestamp() AS at FROM s"
    case = xt.case(query, session=session, at="2026-03-01T00:00:00Z")
    assert case.slice(s="(1, 1) <1, *> for PT1H").tuples == [(1, datetime(2026, 3, 1, tzinfo=UTC))]
    case.at("2026-03-01T00:30:00Z")
    with pytest.raises(xs.UngrammaticalStream, match="until 2026-03-01T01:00:00"):
        case.slice(s="(1, 2)")
    case.restart().at(datetime(2026, 3, 1, 1, tzinfo=UTC))
    assert str(case.slice(s="(1, 2)")).startswith("(1, 2026-03-01T01:00:00Z) <")


def test_a_clock_that_punctuates_follows_the_case(session: Session) -> None:
    query = """CREATE TABLE s (k INT, ts TIMESTAMP) USING punctuated_xml
        OPTIONS (path 'none.xml', rowTag 'r', schemes '', punctuate 'clock of ts, delay 1m');
        SELECT ts, count(*) AS n FROM s GROUP BY ts"""
    case = xt.case(query, session=session, at="2026-03-01T10:00:00Z")
    assert case.slice(s="(1, 2026-03-01T09:59:30) (2, 2026-03-01T09:59:30)").tuples == []
    assert str(case.at("2026-03-01T10:00:31Z").slice()).startswith("(2026-03-01T09:59:30Z, 2) <")


def test_an_unsafe_query_is_refused_unless_allowed(session: Session) -> None:
    query = TABLE.format("s", "schemes ''") + "SELECT k, CAST(sum(v) AS INT) AS v FROM s GROUP BY k"
    with pytest.raises(xs.UnsafeQuery):
        xt.case(query, session=session)
    assert str(xt.case(query, session=session, allow_unsafe=True).slice(s=["(1, 2)", xt.END])) == "(1, 2) <*, *>"


def test_a_static_table_has_the_rows_of_the_test(session: Session) -> None:
    query = (
        TABLE.format("s", "schemes 'k'")
        + "CREATE TABLE names (id INT, name STRING) USING csv OPTIONS (path 'none.csv');\n"
        + "SELECT name, v FROM s JOIN names ON k = id"
    )
    with xt.case(query, session=session, static={"Names": [{"id": 1, "name": "one"}, (2, "two")]}) as case:
        assert case.slice(s="(1, 5) (3, 5)").tuples == [("one", 5)]
        assert case.restart().slice(s="(2, 6)").tuples == [("two", 6)]
    with pytest.raises(xs.UsageError, match="names is a static table"):
        xt.case(query, session=session)
    with pytest.raises(xs.UsageError, match="no static table nams"):
        xt.case(query, session=session, static={"nams": []})
    with pytest.raises(xs.UsageError, match="no punctuations"):
        xt.case(query, session=session, static={"names": "(1, one) <1, *>"})


def test_one_of_several_results_is_named(session: Session) -> None:
    sink = "CREATE TABLE {} USING punctuated_xml OPTIONS (path 'out/{}', rowTag 'r');\n"
    query = TABLE.format("s", "schemes 'k'") + sink.format("big", "big") + sink.format("all_", "all")
    query += "INSERT INTO big SELECT k FROM s WHERE v > 5; INSERT INTO all_ SELECT k, v FROM s;"
    assert str(xt.case(query, session=session, result="big").slice(s="(1, 9) (2, 1)")) == "(1)"
    with pytest.raises(xs.UsageError, match="there are 2 results") as raised:
        xt.case(query, session=session)
    assert raised.value.hint == "name one with result=…: big, all_"


def test_a_unique_id_is_closed_behind_its_tuple(session: Session) -> None:
    query = TABLE.format("s", "uniqueIds 'k'") + "SELECT k, CAST(sum(v) AS INT) AS v FROM s GROUP BY k"
    case = xt.case(query, session=session)
    assert str(case.slice(s="(1, 2) (3, 4)")) == "(1, 2) (3, 4) <{1,3}, *>"
    with pytest.raises(xs.UngrammaticalStream):
        case.slice(s="(1, 5)")


def test_tuples_that_wait_too_long_are_dead_letters(session: Session) -> None:
    case = xt.case(SUMS, session=session, purge_after="1 slices")
    case.slice(s="(1, 2)")
    case.slice(s="(2, 2)")
    found = case.slice()
    assert found.kept == 1
    assert [letter["kind"] for letter in found.dead_letters] == ["overdue"]


def test_arrays_and_rows_in_order(session: Session) -> None:
    query = """CREATE TABLE s (k INT NOT NULL, tags ARRAY<STRING>) USING punctuated_xml
        OPTIONS (path 'none.xml', rowTag 'r', schemes 'k prefix');
        SELECT k, tag FROM s LATERAL VIEW explode(tags) t AS tag ORDER BY k DESC, tag"""
    case = xt.case(query, session=session, allow_unsafe=True)
    case.slice(s=[{"k": 1, "tags": ["b", "a"]}, {"k": 2, "tags": ["c"]}, {"k": 3}])
    assert case.end().tuples == [(2, "c"), (1, "a"), (1, "b")]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"sesion": None}, "a case has no option sesion"),
        ({"engine": "sparrow"}, "there is no engine sparrow"),
        ({"at": "noon"}, "'noon' is not a valid timestamp"),
    ],
)
def test_a_wrong_option_is_named(session: Session, options: dict[str, str], what: str) -> None:
    given = {} if "engine" in options else {"session": session}
    with pytest.raises(xs.UsageError, match=what):
        xt.case(SUMS, **given, **options)  # type: ignore[arg-type]


def test_an_unknown_stream_is_named(session: Session) -> None:
    case = xt.case(SUMS, session=session)
    with pytest.raises(xs.UsageError, match="the query reads no stream t") as raised:
        case.slice(t="(1, 2)")
    assert raised.value.hint == "it reads s"
    with pytest.raises(xs.UsageError, match="2 slices for one"):
        case.slice(s="(1, 2) | (2, 3)")
    assert case.slices == []


def test_nothing_is_left_of_a_case(session: Session) -> None:
    with xt.case(SUMS, session=session) as case:
        case.slice(s="(1, 2)")
        directory = case.directory
        assert directory.is_dir()
    assert not directory.exists()


def test_sql_over_a_stream_of_sparks_needs_no_session() -> None:
    text = """
        CREATE TABLE s (k INT, v INT, offset BIGINT) USING stream
        OPTIONS (view 'topic', column 'value', rowTag 'r', keep 'offset', punctuate 'order of k');
        SELECT k, max(offset) AS last FROM s GROUP BY k
    """
    case = xt.case(text)
    assert str(case.slice(s="(1, 2, 7) (1, 2, 8) (2, 2, 9)")) == "(1, 8) <(,1], *>"
    assert str(xt.case(text.replace("column 'value', rowTag 'r', keep 'offset', ", "")).end()) == "<*, *>"


def test_the_job_of_the_manual_passes_its_test(tmp_path: Path) -> None:
    for name, text in modules_in("xmlstream/manual/spark_jobs.md").items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_hall.py"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
