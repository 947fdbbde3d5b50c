"""The answers so far: beside a run in another process, from any checkpoint, on both engines, as a command."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from lxml import etree

import xmlstream as xs
from tests.harness.drawn_rows import insert
from tests.xmlstream.diagnosis.test_command import Command, here
from tests.xmlstream.diagnosis.test_inspection import Stream, declared
from xmlstream.diagnosis.so_far import SoFar, answers_so_far, results_so_far
from xmlstream.operators.expressions.operations import python_functions
from xmlstream.operators.storage.store import folder_at
from xmlstream.punct_ns.errors import QueryError, StateError, UsageError, XmlStreamError
from xmlstream.runtime.checkpoint.commit_log import numbers_in
from xmlstream.runtime.metrics import read_metrics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import InProcessSession

__all__ = ["here"]

QUERIES = {
    "totals": "SELECT k, count(*) AS n, sum(v) AS v FROM a GROUP BY k",
    "matched": "SELECT a.k, a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k AND a.v = b.v",
    "lonely": "SELECT k, v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.v = a.v)",
    "highest": "SELECT k, v FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM b) AS t"
    " WHERE n <= 2",
    "tens": "SELECT k DIV 10 AS k, max(v) AS v FROM (SELECT k, v FROM a UNION ALL SELECT k, v FROM b) AS u"
    " GROUP BY k DIV 10",
}
"""Queries over a and b, which DuckDB reads, too, but for DIV."""

EACH, BEHIND = 7, 3
COLUMNS = "(k INT, v INT)"


def tuples(name: str, key: int) -> list[tuple[int, int]]:
    """The tuples of a key in a stream; the values of a key differ in each stream."""
    return [(key, (key * 7 + i * (3 if name == "a" else 5)) % 31) for i in range(EACH)]


def script(tmp_path: Path) -> str:
    text = declared(tmp_path, COLUMNS, a="schemes 'k'", b="schemes 'k'")
    for name in QUERIES:
        text += f"CREATE TABLE {name} USING punctuated_xml OPTIONS (path '{tmp_path / name}', rowTag 't');\n"
    return text + "".join(f"INSERT INTO {name} {query};\n" for name, query in QUERIES.items())


def rows(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def written(directory: Path, names: list[str], slice_: int) -> Counter[tuple[Any, ...]]:
    """The tuples in the documents of an output up to a slice."""
    found: Counter[tuple[Any, ...]] = Counter()
    for path in directory.glob("slice-*.xml"):
        if int(path.stem.rpartition("-")[2]) <= slice_:
            for element in etree.parse(path).getroot().iterfind("t"):
                texts = [element.findtext(name) for name in names]
                found[tuple(None if text is None else int(text) for text in texts)] += 1
    return found


def expected(prefix: dict[str, list[tuple[int, int]]]) -> dict[str, Counter[tuple[Any, ...]]]:
    """What another database answers over the first tuples of the streams."""
    database = duckdb.connect()
    for name, some in prefix.items():
        database.execute(f"CREATE TABLE {name} {COLUMNS}")
        insert(database, name, some)
    return {n: Counter(database.execute(q.replace(" DIV ", " // ")).fetchall()) for n, q in QUERIES.items()}


class Feed:
    """Writes the documents of both streams; b is behind, and a key is closed one document later."""

    def __init__(self, tmp_path: Path) -> None:
        self.came: dict[str, list[tuple[int, int]]] = {"a": [], "b": []}
        self._streams = {name: Stream(tmp_path / name, "k v") for name in self.came}
        self._next = 0

    def more(self) -> None:
        """A document of each stream."""
        for name, behind in (("a", 0), ("b", BEHIND)):
            key = self._next - behind
            some = tuples(name, key) if key >= 0 else []
            self.came[name] += some
            self._streams[name].comes(*(f"{k} {v}" for k, v in some), *([f"<{key - 1} *>"] if key > 0 else []))
        self._next += 1


def until(holds: Callable[[], object], seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_at_ten_cuts_of_a_run_that_goes_on_elsewhere_they_complete_its_output(
    in_process: InProcessSession, tmp_path: Path
) -> None:
    (tmp_path / "q.sql").write_text(script(tmp_path))
    feed, state, metrics = Feed(tmp_path), tmp_path / "state", tmp_path / "metrics.jsonl"
    command = [sys.executable, "-m", "xmlstream", "run", str(tmp_path / "q.sql"), "--engine", "duckdb", "--follow"]
    command += ["--checkpoint", str(state), "--metrics", str(metrics)]
    found: dict[int, tuple[SoFar, ...]] = {}
    with subprocess.Popen(command, stderr=subprocess.PIPE) as run:

        def has_gone_on() -> bool:
            assert run.poll() is None, run.stderr and run.stderr.read()
            return (numbers_in(folder_at(state / "commits")) or [-1])[-1] > max(found, default=-1)

        try:
            while len(found) < 10:
                feed.more()
                until(has_gone_on)
                feed.more()  # a slice that is committed meanwhile
                answers = results_so_far(state, in_process)
                found[answers[0].slice] = answers
            until(lambda: came(metrics, 1 << 30) == {name: len(those) for name, those in feed.came.items()})
        finally:
            run.terminate()
    for number, answers in found.items():
        due = expected({name: feed.came[name][:count] for name, count in came(metrics, number).items()})
        for answer in answers:
            name = str(answer.result)
            out = written(tmp_path / name, list(answer.schema.names), number)
            assert out + rows(answer.tuples) == due[name], (name, number)
    kinds = {name: {one.undecided for each in found.values() for one in each[i].open} for i, name in enumerate(QUERIES)}
    assert kinds == {"totals": {False}, "matched": {True}, "lonely": {True}, "highest": {True}, "tens": {False}}
    # Nobody noticed: all that is closed is out, and nothing else.
    last, due = results_so_far(state, in_process), expected(feed.came)
    for answer in last:
        out = written(tmp_path / str(answer.result), list(answer.schema.names), 1 << 30)
        assert out + rows(answer.tuples) == due[str(answer.result)]


def came(metrics: Path, slice_: int) -> dict[str, int]:
    """How many tuples of each source the slices up to one had."""
    reports = [each for each in read_metrics(metrics) if each.slice <= slice_] if metrics.exists() else []
    named = [one for report in reports for one in report.operators]
    return {name: sum(one.tuples_out for one in named if one.name == name) for name in ("a", "b")}


@pytest.fixture
def state(in_process: InProcessSession, tmp_path: Path) -> Path:
    """The checkpoint of the queries after a slice in which a has closed 1, and b nothing."""
    a, b = (Stream(tmp_path / name, "k v") for name in "ab")
    a.comes("1 5", "1 6", "2 7", "<1 *>")
    b.comes("2 7", "13 4")
    xs.run(xs.inserts_from_sql(in_process, script(tmp_path)), tmp_path / "state", keep_open=True)
    return tmp_path / "state"


def test_each_says_from_which_rows_it_comes_and_which_of_these_are_undecided(
    in_process: InProcessSession, state: Path
) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in state.rglob("*"))
    found = {answer.result: answer for answer in results_so_far(state, in_process)}
    assert {name: str(answer).partition(": ")[2] for name, answer in found.items()} == {
        "totals": "from 1 open group of group_by",
        "matched": "from 2 undecided tuples of the left side of join",
        "lonely": "from 2 undecided tuples of the left side of not_exists",
        "highest": "from 2 undecided first tuples of top_n",
        "tens": "from 2 open groups of group_by-2",
    }
    assert rows(found["tens"].tuples) == {(0, 7): 1, (1, 4): 1}
    assert str(found["lonely"]).startswith("lonely, provisional, as of slice 0, ")
    origin = json.loads(found["lonely"].to_arrow().schema.metadata[b"xmlstream.so_far"])
    assert (origin["provisional"], origin["slice"]) == (True, 0)
    assert origin["open"][0]["undecided"]
    written_out = json.loads(found["matched"].json())
    assert written_out["tuples"] == [{"k": 1, "v": 5}, {"k": 1, "v": 6}]
    assert "\n" not in found["matched"].json()
    assert before == sorted((path, path.stat().st_mtime_ns) for path in state.rglob("*"))


def test_a_condition_and_a_name_choose(in_process: InProcessSession, state: Path) -> None:
    (answer,) = results_so_far(state, in_process, "k = 1 AND v > 5", "lonely")
    assert rows(answer.tuples) == {(1, 6): 1}
    with pytest.raises(UsageError, match="the query has several results") as several:
        answers_so_far(str(state), in_process)
    assert several.value.hint == "name one: result='totals'; there are totals, matched, lonely, highest, tens"
    with pytest.raises(UsageError, match="there is no result sums"):
        results_so_far(state, in_process, result="sums")
    with pytest.raises(QueryError, match="there is no attribute n") as lacking:
        results_so_far(state, in_process, "n = 1")
    assert lacking.value.hint == "for the result matched: there are k, v, w; --result names another"
    with pytest.raises(QueryError, match="is not a condition on the attributes of one tuple"):
        results_so_far(state, in_process, "ts < current_timestamp()".replace("ts", "timestamp_seconds(k)"), "lonely")


def test_where_links_cannot_be_made_files_are_copied_and_where_one_is_gone_it_begins_anew(
    in_process: InProcessSession, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected_ = [rows(answer.tuples) for answer in results_so_far(state, in_process)]
    calls: list[str] = []

    def link(source: str, target: str) -> None:
        calls.append(source)
        if len(calls) == 2:
            raise FileNotFoundError(errno.ENOENT, "the query goes on", source)
        raise OSError(errno.EXDEV, "another file system")

    monkeypatch.setattr(os, "link", link)
    assert [rows(answer.tuples) for answer in results_so_far(state, in_process)] == expected_
    assert calls[0] == calls[2]
    assert len(calls) > 4


def test_a_checkpoint_in_an_object_store_has_them(in_process: InProcessSession, tmp_path: Path) -> None:
    url = f"memory://tests/{uuid.uuid4().hex}"
    Stream(tmp_path / "a", "k v").comes("1 5", "2 7", "<1 *>")
    query = xs.read(in_process, str(tmp_path / "a"), schema="k INT, v INT", rowTag="t", schemes="k")
    query.group_by("k").agg("max(v) AS top").run(tmp_path / "out", url, keep_open=True)
    assert answers_so_far(url, in_process).tuples.to_pylist() == [{"k": 2, "top": 7}]


def test_functions_of_python_are_those_of_the_process_that_runs_the_query(
    in_process: InProcessSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    xs.function("BIGINT", name="thrice")(lambda v: v * 3)
    Stream(tmp_path / "a", "k v").comes("1 5", "2 7", "<1 *>")
    query = xs.read(in_process, str(tmp_path / "a"), schema="k INT, v INT", rowTag="t", schemes="k")
    query.group_by("k").agg("max(thrice(v)) AS top").run(tmp_path / "out", tmp_path / "state", keep_open=True)
    (answer,) = results_so_far(tmp_path / "state", in_process)
    assert answer.tuples.to_pylist() == [{"k": 2, "top": 21}]
    monkeypatch.setattr(python_functions, "_BY_KEY", {})
    with pytest.raises(QueryError, match=r"the query calls the function thrice of Python \(.*\), which this process"):
        results_so_far(tmp_path / "state", in_process)


def test_whatever_an_engine_raises_is_an_error_in_words(
    in_process: InProcessSession, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def advance(*_: object) -> None:
        raise RuntimeError("no more memory")

    monkeypatch.setattr("xmlstream.diagnosis.so_far.advance", advance)
    with pytest.raises(XmlStreamError, match="the answers so far cannot be computed: no more memory"):
        results_so_far(state, in_process)


def test_arrays_are_texts_in_json(in_process: InProcessSession, tmp_path: Path) -> None:
    Stream(tmp_path / "a", "k v").comes("1 5", "1 6", "2 7", "<2 *>")
    query = xs.read(in_process, str(tmp_path / "a"), schema="k INT, v INT", rowTag="t", schemes="k").group_by("k")
    sink = query.agg("array_sort(collect_list(v)) AS all").foreach_slice(lambda *_: None)
    sink.run(tmp_path / "state", keep_open=True)
    (answer,) = results_so_far(tmp_path / "state", in_process)
    assert answer.tuples.to_pylist() == [{"k": 1, "all": [5, 6]}]
    assert answer.objects() == ['{"k":1,"all":"[5, 6]"}']


def test_before_the_first_commit_and_without_a_checkpoint_there_are_none(
    in_process: InProcessSession, tmp_path: Path
) -> None:
    with pytest.raises(StateError, match="there is no checkpoint in"):
        results_so_far(tmp_path / "state", in_process)


def test_a_running_query_has_them_and_goes_on(in_process: InProcessSession, tmp_path: Path) -> None:
    stream = Stream(tmp_path / "a", "k v")
    stream.comes("1 5", "2 7", "<1 *>")
    query = xs.read(in_process, str(tmp_path / "a"), schema="k INT, v INT", rowTag="t", schemes="k")
    handle = query.group_by("k").agg("max(v) AS top").start(tmp_path / "out", tmp_path / "state")
    try:
        handle.processAllAvailable()
        assert handle.so_far().to_arrow().to_pylist() == [{"k": 2, "top": 7}]
        with pytest.raises(UsageError, match="there is no Spark in this session"):
            handle.so_far().to_dataframe()
        stream.comes("2 9", "3 1", "<2 *>")
        handle.processAllAvailable()
        assert handle.so_far("top > 1").tuples.num_rows == 0
        assert handle.so_far().tuples.to_pylist() == [{"k": 3, "top": 1}]
    finally:
        handle.stop()
    assert written_tops(tmp_path / "out") == {(1, 5), (2, 9)}


def written_tops(directory: Path) -> set[tuple[int, int]]:
    found = [etree.parse(path).getroot().iterfind("row") for path in directory.glob("slice-*.xml")]
    return {(int(e.findtext("k") or 0), int(e.findtext("top") or 0)) for each in found for e in each}


@pytest.mark.spark
def test_on_spark_they_are_a_dataframe_of_the_session(spark: SparkSession, state: Path) -> None:
    found = results_so_far(state, spark, "v > 4")
    assert {str(answer.result): set(map(tuple, answer.to_dataframe().collect())) for answer in found} == {
        "totals": {(2, 1, 7)},
        "matched": {(1, 5, None), (1, 6, None)},
        "lonely": {(1, 5), (1, 6)},
        "highest": {(2, 7)},
        "tens": {(0, 7)},
    }


def test_the_command_prints_them_as_a_table_or_as_json(here: Command, state: Path) -> None:
    code, text = here("so-far", state, "--result", "matched", "--rows", "1")
    assert code == 0
    assert text.splitlines()[1:] == ["  k  v     w", "  1  5  null", "  and 1 more"]
    code, text = here("so-far", state, "--where", "v > 5", "--format", "json", "--engine", "duckdb")
    assert [(json.loads(line)["result"], len(json.loads(line)["tuples"])) for line in text.splitlines()] == [
        ("totals", 1),
        ("matched", 1),
        ("lonely", 1),
        ("highest", 1),
        ("tens", 1),
    ]
    code, text = here("so-far", state.parent / "nowhere")
    assert (code, "there is no checkpoint in" in text) == (2, True)


def test_explain_has_the_value_so_far_of_a_key(here: Command, state: Path) -> None:
    def explained(*key: str) -> list[str]:
        code, text = here("explain", "--checkpoint", state, *(word for each in key for word in ("--key", each)))
        assert code == 0
        return [line for line in text.splitlines() if "so far" in line or "more" in line]

    assert explained("n=1") == ["  so far: k=2, n=1, v=7"]
    assert explained("w=*") == [f"  so far, undecided: k=1, v={v}, w=null" for v in (5, 6)]
    # It is out of totals, the first result that has k; of the others the first that waits is said.
    assert explained("k=1") == [f"  so far, undecided: k=1, v={v}, w=null" for v in (5, 6)]
    assert "k=1 of matched is not final" in here("explain", "--checkpoint", state, "--key", "k=1")[1]
    assert explained("k=9") == []


def test_watched_they_are_printed_after_each_commit_until_the_input_ends(
    in_process: InProcessSession, state: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "xmlstream", "so-far", str(state), "--watch", "--result", "totals"]
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as watching:
        assert watching.stdout is not None
        lines = iter(watching.stdout)
        assert "from 1 open group" in next(lines)
        xs.run(xs.inserts_from_sql(in_process, script(tmp_path)), state)
        assert [next(lines).split() for _ in range(2)] == [["k", "n", "v"], ["2", "1", "7"]]
        assert "the input has ended, and all answers are out" in "".join(lines)
        assert watching.wait(300) == 0
