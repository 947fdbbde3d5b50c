"""Mistakes in data and declarations that are no errors: each is said, in summary and metrics and at the terminal."""

from __future__ import annotations

import io
import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

import xmlstream as xs
from xmlstream.cli import progress
from xmlstream.punct_ns.errors import InputError, UsageError
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.splits.documents import Documents
from xmlstream.sources.xml.splits.slice_planner import Offset, Planner, waiting_note

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOOD = "<t><a>1</a><b>2</b></t><punct:t><a>1</a></punct:t>"

WIDE = f"<t><y>{''.join(f'<a{n:02}>{n}</a{n:02}>' for n in range(30))}</y><z><id>5</id></z><b>1</b></t>"


def document(path: Path, items: str, *, ended: bool = True) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    end = "</r>" if ended else ""
    path.write_text(f"<r xmlns:punct='{PUNCT_NS}' xmlns:x='urn:x' xmlns:near='{PUNCT_NS}/'>{items}{end}")
    return path


MISTAKES = {
    # name: items, options besides a row tag t and the scheme a; the kind, and words of what is said
    "well": (GOOD, {}, None, ()),
    "tag": (GOOD, {"rowTag": "tt"}, "no items", ("tt", "a, b, t")),
    "column": (GOOD, {"path.b": "bb"}, "misread", ("b", "bb", "no attribute reads are b; path.b 'b' would read one")),
    "void": (GOOD + 2 * "<punct:t><a>3</a><c>5</c></punct:t>", {}, "void", ("2 punctuations", "c")),
    "never": (GOOD, {"schemes": "a; b prefix"}, "broken promise", ("'b prefix'",)),
    "unpromised": (
        GOOD + "<punct:t><b>(,5]</b></punct:t>",
        {},
        "no promise",
        ("1 punctuation", "schemes 'a; b prefix' would"),
    ),
    "promised": (GOOD + "<punct:t><b>(,5]</b></punct:t>", {"schemes": "a; b prefix"}, None, ()),
    "dropped": (GOOD + "<t><a>x</a><b>1</b></t>", {"mode": "DROPMALFORMED"}, "malformed", ("1 malformed", "dropped")),
    "late": (
        GOOD + 2 * "<t><a>1</a></t>",
        {"ungrammatical": "divert"},
        "ungrammatical",
        ("2 ungrammatical", "diverted"),
    ),
    "namespace": (
        "<x:t><a>1</a><b>2</b></x:t><near:t><a>1</a></near:t>",
        {"rowTag": "{urn:x}t", "schemes": ""},
        "other namespace",
        (f"{{{PUNCT_NS}/}}t",),
    ),
    "stray": ("<t><a>1</a><b>2</b></t><punct:ts><a>1</a></punct:ts>", {}, "stray", ("ts",)),
}


@pytest.mark.spark
def test_each_mistake_is_said_in_the_summary_and_the_metrics_and_again_after_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    inserts = []
    for name, (items, options, _, _) in MISTAKES.items():
        path = document(tmp_path / "in" / f"{name}.xml", items)
        given = {"rowTag": "t", "schemes": "a", **options}
        inserts.append(xs.read(spark, path, "a INT, b INT", name=name, **given).insert_into(tmp_path / "out" / name))
    for number, ended in ((1, True), (2, False), (3, True)):
        document(tmp_path / "held" / f"{number}.xml", GOOD.replace("1", str(number)), ended=ended)
    held = xs.read(spark, tmp_path / "held", "a INT, b INT", name="held", rowTag="t", schemes="a")
    inserts.append(held.insert_into(tmp_path / "out" / "held"))
    metrics = tmp_path / "metrics.jsonl"
    summaries = [
        xs.run(inserts, checkpoint=tmp_path / "state", metrics=metrics, keep_open=True, overwrite=True)
        for _ in range(2)
    ]
    assert [summary.slices > 0 for summary in summaries] == [True, False]
    for summary in summaries:
        said = {name: [f for f in summary.findings if f.source == name] for name in (*MISTAKES, "held")}
        for name, (_, _, kind, words) in MISTAKES.items():
            if kind is None:
                assert not said[name]
                continue
            (what,) = [finding.what for finding in said[name] if finding.kind == kind]
            assert all(word in what for word in words), what
        (finding,) = said["held"]
        assert (finding.kind, "2.xml is unfinished, and 1 document behind it waits" in finding.what) == (
            "unfinished",
            True,
        )
    last = json.loads(metrics.read_text().splitlines()[-1])
    assert {(f["source"], f["kind"]) for f in last["findings"]} >= {
        *((name, kind) for name, (_, _, kind, _) in MISTAKES.items() if kind),
        ("held", "unfinished"),
    }


def test_a_query_that_reads_no_item_fails_at_the_end_of_its_input(tmp_path: Path) -> None:
    session = xs.open_session(engine="duckdb")
    path = document(tmp_path / "in.xml", GOOD)
    wrong = xs.read(session, path, "a INT, b INT", name="wrong", rowTag="tt")
    with pytest.raises(InputError, match="no item in wrong: no element is a tt; there are a, b, t; rowTag t is meant"):
        wrong.run(tmp_path / "out")
    assert not list((tmp_path / "out").glob("slice-*"))
    both = xs.read(session, path, "a INT, b INT", rowTag="t").union(wrong).run(tmp_path / "both", keep_open=False)
    assert [finding.kind for finding in both.findings if finding.source == "wrong"] == ["no items"]
    none = document(tmp_path / "none.xml", "")
    assert xs.read(session, none, "a INT, b INT", rowTag="t").run(tmp_path / "none").tuples_out == 0


@pytest.mark.spark
def test_a_source_without_a_document_is_an_error_unless_it_is_waited_for(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "*.xml"):
        query = xs.read(spark, path, "a INT", name="none", rowTag="t")
        with pytest.raises(UsageError, match="no document at"):
            query.run(tmp_path / "out")


def planner(directory: Path, **options: str) -> Planner:
    given = {"path": str(directory), "rowTag": "t", "schema": "a INT, b INT", "documentLog": str(directory / "_log")}
    source = SourceOptions.parse({**given, **options})
    return Planner(source, Documents(source, log=True))


def read_to_its_end(directory: Path, **options: str) -> tuple[Offset, list[tuple[str, int, int]]]:
    """Slice by slice, as little as can be taken; a slice that is planned anew is the same."""
    at, found = Offset(), list[tuple[str, int, int]]()
    while True:
        first = planner(directory, **options)
        after, ranges = first.advance(at, first.sizes(at), 1)
        if after == at:
            first.look(at, first.sizes(at))
            return at, found
        again = planner(directory, **options)
        again.sizes(after)
        assert again.ranges(at, after) == ranges
        found += [(Path(r.document.where).name, r.start, r.end) for r in ranges]
        at = after


@pytest.fixture
def held(tmp_path: Path) -> Path:
    for number, ended in ((1, True), (2, False), (3, True), (4, False)):
        document(tmp_path / "held" / f"{number}.xml", 40 * GOOD, ended=ended)
    return tmp_path / "held"


def test_an_unfinished_document_holds_back_those_behind_it_and_a_note_says_so(held: Path) -> None:
    _, found = read_to_its_end(held)
    assert {name for name, _, _ in found} == {"1.xml", "2.xml"}
    note = waiting_note(held / "_log")
    assert note is not None
    assert (note.documents, note.unfinished, note.behind) == (4, str(held / "2.xml"), 2)


def test_an_unfinished_document_is_passed_over_once_it_is_old_and_stays_so(held: Path) -> None:
    young = {"unfinished": "skip", "unfinishedAge": "1h"}
    assert {name for name, _, _ in read_to_its_end(held, **young)[1]} == {"1.xml", "2.xml"}
    old = {"unfinished": "skip", "unfinishedAge": "0s"}
    end, found = read_to_its_end(held, **old)
    assert {name for name, _, _ in found} == {"1.xml", "2.xml", "3.xml", "4.xml"}
    document(held / "2.xml", 80 * GOOD)
    again, ranges = read_to_its_end(held, **old)
    assert again == end
    assert max(last for name, _, last in ranges if name == "2.xml") == max(
        last for name, _, last in found if name == "2.xml"
    )
    note = waiting_note(held / "_log")
    assert note is not None
    assert (note.unfinished, note.passed) == (str(held / "4.xml"), (str(held / "2.xml"),))


def test_an_unfinished_document_stops_the_query_once_it_is_old_if_that_is_said(held: Path) -> None:
    read_to_its_end(held, unfinished="fail", unfinishedAge="1h")
    with pytest.raises(InputError, match=r"2\.xml is unfinished"):
        read_to_its_end(held, unfinished="fail", unfinishedAge="0s")


def test_where_nothing_more_can_come_all_unfinished_documents_are_passed_over(held: Path) -> None:
    options = {"follow": "false", "close": "true", "unfinished": "skip"}
    source = planner(held, **options)
    end, ranges = source.advance(Offset(), source.sizes(Offset()), None)
    assert end.closed
    assert {range_.ends for range_ in ranges if range_.document.key in ("2.xml", "4.xml")} == {"split"}


def test_what_is_noticed_is_said_while_waiting_and_at_the_end_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "NOTICED_EVERY_SECONDS", 0.01)
    out = io.StringIO()
    findings = ["bid: no element is a bidd"]
    with progress.noticed(Console(file=out, width=200), lambda: findings):
        deadline = time.monotonic() + 300
        while not out.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert out.getvalue() == "noticed in bid: no element is a bidd\n"
        monkeypatch.setattr(progress, "NOTICED_EVERY_SECONDS", 60)
        findings.append("bid: no document")
    assert out.getvalue().splitlines()[1:] == ["noticed in bid: no document"]


@pytest.mark.parametrize(
    ("items", "schema", "options", "what"),
    [
        (WIDE, "id INT, b INT", {}, "no tuple has a value of id, at the path id; .*; path.id 'z/id' would read one"),
        (WIDE, "id INT NOT NULL", {"mode": "PERMISSIVE"}, None),
        (
            GOOD,
            "a INT, b INT",
            {"rowTag": "T", "schemes": "a"},
            "no element is a T; there are a, b, t; rowTag t is meant?",
        ),
    ],
)
def test_that_a_source_is_misread_is_logged_before_its_result_and_can_be_mended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, items: str, schema: str, options: dict[str, str], what: str | None
) -> None:
    session, path = xs.open_session(engine="duckdb"), document(tmp_path / "in.xml", items, ended=False)
    before: list[tuple[str, ...]] = []

    def run(**more: str) -> tuple[xs.Summary, list[str]]:
        caplog.clear()
        query = xs.read(session, path, schema, name="s", **{"rowTag": "t", **options, **more})
        logged = lambda _: before.append(tuple(caplog.messages))  # noqa: E731
        done = query.run(tmp_path / f"out{len(more)}", keep_open=True, on_slice=logged)
        return done, [line for line in caplog.messages if line.startswith("noticed")]

    done, logged = run()
    if what is not None:
        assert len(logged) == 1
        assert re.fullmatch(f"noticed in s: {re.escape(what).replace(re.escape('.*'), '.*')}", logged[0])
        assert any(logged[0] in each for each in before)
    else:
        (finding,) = done.findings
        assert finding.what.endswith(
            "dead letters: id is null, but declared NOT NULL; write path.id 'z/id' in its OPTIONS"
        )
    done, logged = run(**({"rowTag": "t"} if "rowTag" in options else {"path.id": "z/id"}))
    assert (logged, done.findings, done.tuples_out > 0) == ([], (), True)


@pytest.mark.spark
def test_rows_of_a_static_table_that_are_not_there_are_logged(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    document(tmp_path / "in.xml", GOOD)
    tables = (
        f"CREATE TABLE s (a INT) USING punctuated_xml OPTIONS (path '{tmp_path}/in.xml', rowTag 't');"
        f"CREATE TABLE x (a INT, b INT) USING xml OPTIONS (path '{tmp_path}/in.xml', rowTag '{{}}');"
    )
    for tag, said in (("T", "no element is a T; there are a, b, r and 1 more; rowTag t is meant?"), ("t", None)):
        caplog.clear()
        done = xs.from_sql(spark, f"{tables.format(tag)} SELECT b FROM s JOIN x USING (a)").run(tmp_path / tag)
        logged = [line for line in caplog.messages if line.startswith("noticed")]
        assert (logged, done.tuples_out) == (([], 1) if said is None else ([f"noticed in x: {said}"], 0))
