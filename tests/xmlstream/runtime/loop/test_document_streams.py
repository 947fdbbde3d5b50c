"""Documents as streams of their own: each case of `closing.md` in one test, and what they cost once they have ended."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import xmlstream as xs
import xmlstream.testing as xt
from tests.harness.nights import SPARK_IN_THE_REST
from tests.xmlstream.runtime.killed_run import POINTS, crash
from xmlstream.diagnosis.inspection import inspect, plan_of
from xmlstream.operators.punctuate import Punctuate, Streams
from xmlstream.operators.storage.store import folder_at
from xmlstream.plan.nodes import names, topological
from xmlstream.punct_ns.errors import InputError, QueryError, UngrammaticalStream, UsageError
from xmlstream.punct_ns.schema import Schema
from xmlstream.runtime.checkpoint.commit_log import CommitLog, made_whole
from xmlstream.runtime.checkpoint.declared import change_rosters, declare
from xmlstream.runtime.progress import SourceProgress
from xmlstream.session.engines import InProcessSession, Session
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.splits.documents import Documents
from xmlstream.sources.xml.splits.slice_planner import Offset, Planner
from xmlstream.sources.xml.splits.streams_planner import StreamsPlanner
from xmlstream.sql.tables.declaration import scan


class Feed:
    """Senders' documents, and the count of rows for each time, run after run."""

    def __init__(self, session: Session, directory: Path, rule: str = "order of at", **options: Any) -> None:
        self.session, self.directory = session, directory
        self.options = {"documents": "files", "punctuate": rule, "schemes": "", **options}
        (directory / "in").mkdir()

    def write(self, name: str, *times: int, who: str = "", end: bool = False) -> None:
        path = self.directory / "in" / f"{name}.xml"
        path.parent.mkdir(exist_ok=True)
        text = path.read_text() if path.exists() else "<rs>"
        rows = "".join(f"<r><who>{who or name}</who><at>{at}</at></r>" for at in times)
        path.write_text(f"{text}{rows}{'</rs>' if end else ''}")

    def query(self) -> Any:
        path = f"{self.directory}/in" if self.options["documents"] == "directories" else f"{self.directory}/in/*.xml"
        read = xs.read(self.session, path, "who STRING, at INT", name="t", rowTag="r", **self.options)
        return read.group_by("at").agg("count(*) AS n")

    def run(self, **settings: Any) -> dict[int, int]:
        """One more run to the end of what is there; the count of rows of each time that is out."""
        settings = {"keep_open": True, **settings}
        self.query().run(self.directory / "out", checkpoint=self.directory / "state", **settings)
        texts = [path.read_text() for path in sorted((self.directory / "out").glob("slice-*.xml"))]
        found = re.findall(r"<row><at>(\d+)</at><n>(\d+)</n></row>", "".join(texts))
        return {int(at): int(n) for at, n in found}

    @property
    def last(self) -> Any:
        return made_whole(CommitLog(folder_at(self.directory / "state").below("commits")).records())

    def waits_for(self) -> list[str]:
        """The names of the streams that others wait for, and what these have closed."""
        waits = inspect(self.directory / "state").waits
        return [
            name for wait in waits for example in wait.examples[:1] for need in example.needs for name in need.behind
        ]

    def leave_out(self, name: str) -> None:
        state = self.directory / "state"
        declare(state, plan_of(state), self.last, f"t/{name}.xml")


@SPARK_IN_THE_REST
def test_a_sender_that_is_silent_is_waited_for_and_named(session: Session, tmp_path: Path) -> None:
    feed = Feed(session, tmp_path)
    feed.write("a", 1, 2, 3)
    feed.write("b", 1)
    assert feed.run() == {}
    feed.write("a", 4, 5)
    assert feed.run() == {}
    assert feed.waits_for() == ["b.xml (it has closed <*, (,0]>)"]
    feed.write("b", 4)
    assert feed.run() == {1: 2, 2: 1, 3: 1}


@SPARK_IN_THE_REST
def test_a_sender_is_late_by_its_own_rows_alone(session: Session, tmp_path: Path) -> None:
    feed = Feed(session, tmp_path, "order of at, slack 2", ungrammatical="divert")
    feed.write("a", 9, 1, 7)
    feed.write("b", 3, 1, 2, end=True)
    feed.write("c", 4)
    assert feed.run() == {1: 1}
    feed.write("c", 13)
    assert feed.run() == {1: 1, 2: 1, 3: 1, 4: 1}
    (letters,) = (tmp_path / "out" / "_dead_letters").glob("*.jsonl")
    (letter,) = map(json.loads, letters.read_text().splitlines())
    assert (letter["document"], "<at>1</at>" in letter["raw"]) == (str(tmp_path / "in" / "a.xml"), True)


@SPARK_IN_THE_REST
def test_a_sender_whose_document_ends_holds_nobody_up(session: Session, tmp_path: Path) -> None:
    feed = Feed(session, tmp_path)
    feed.write("a", 1, 2, end=True)
    feed.write("b", 5)
    assert feed.run() == {1: 1, 2: 1}
    assert [one.number for one in Offset.from_json(feed.last.end["t"]).streams] == [1]


def test_while_no_document_is_open_what_any_had_closed_is_closed(in_process: InProcessSession, tmp_path: Path) -> None:
    feed = Feed(in_process, tmp_path)
    feed.write("a", 1, 2, 5, end=True)
    feed.write("b", 3, end=True)
    assert feed.run() == {1: 1, 2: 1, 3: 1}
    feed.write("c", 6, 7)
    assert feed.run() == {1: 1, 2: 1, 3: 1, 5: 1, 6: 1}
    feed.write("c", end=True)
    assert feed.run(keep_open=False) == {1: 1, 2: 1, 3: 1, 5: 1, 6: 1, 7: 1}


@SPARK_IN_THE_REST
def test_a_sender_that_begins_in_the_middle_is_behind_what_is_closed(session: Session, tmp_path: Path) -> None:
    feed = Feed(session, tmp_path, ungrammatical="drop")
    feed.write("a", 1, 5)
    assert feed.run() == {1: 1}
    feed.write("a", 6, 7)
    feed.write("b", 3, 5, 6)  # 3 is closed
    assert feed.run() == {1: 1, 5: 2}
    (tmp_path / "strict").mkdir()
    strict = Feed(session, tmp_path / "strict")
    strict.write("a", 5)
    strict.run()
    strict.write("b", 3)
    with pytest.raises(
        UngrammaticalStream, match=r"\(b, 3, .* comes after .*\n.*\n.*a stream that begins later goes on behind"
    ):
        strict.run()


def test_a_sender_that_starts_again_is_another_stream_and_one_in_its_directory_is_not(
    in_process: InProcessSession, tmp_path: Path
) -> None:
    for name, documents in (("files", "files"), ("directories", "directories")):
        (tmp_path / name).mkdir()
        feed = Feed(in_process, tmp_path / name, documents=documents, ungrammatical="drop")
        sub = "a/" if documents == "directories" else "a"
        feed.write(f"{sub}1", 1, 2, who="a", end=True)
        feed.write("b/1" if documents == "directories" else "b", 4)
        assert feed.run() == ({1: 1} if documents == "directories" else {1: 1, 2: 1})
        feed.write(f"{sub}2", 3, 4, who="a")
        # In the directory the sender has been waited for; as a stream of its own it is behind what is closed.
        assert feed.run() == ({1: 1, 2: 1, 3: 1} if documents == "directories" else {1: 1, 2: 1})


def test_a_roster_waits_for_senders_wherever_they_write(in_process: InProcessSession, tmp_path: Path) -> None:
    feed = Feed(in_process, tmp_path, "roster of who (a, b, c), order of at, slack 1")
    feed.write("a", 1, 4, 3)
    feed.write("b", 2, 5)
    assert feed.run() == {}  # c never came
    feed.write("c-1", 1, 4, who="c", end=True)
    assert feed.run() == {1: 2, 2: 1}
    feed.write("a", 9)
    feed.write("b", 9)
    assert feed.run() == {1: 2, 2: 1}  # the end of a document is not the end of its sender
    feed.write("c-2", 5, 6, who="c")
    assert feed.run() == {1: 2, 2: 1, 3: 1, 4: 2}
    state = tmp_path / "state"
    change_rosters(state, plan_of(state), feed.last, "t", (), ("c",))
    assert feed.run() == {1: 2, 2: 1, 3: 1, 4: 2, 5: 2, 6: 1}


def test_one_stream_is_left_out(in_process: InProcessSession, tmp_path: Path) -> None:
    feed = Feed(in_process, tmp_path, ungrammatical="drop")
    feed.write("a", 1, 2, 3)
    feed.write("b", 1)
    assert feed.run() == {}
    with pytest.raises(UsageError, match=r"t has no open stream z\.xml") as raised:
        feed.leave_out("z")
    assert raised.value.hint == "open are t/a.xml, t/b.xml"
    feed.leave_out("b")
    assert feed.run() == {1: 2, 2: 1}
    feed.write("b", 7)
    feed.write("a", 5, end=True)
    # That none is open any more closes nothing for good.
    assert feed.run() == {1: 2, 2: 1, 3: 1}
    feed.write("c", 5, 6)
    assert feed.run() == {1: 2, 2: 1, 3: 1, 5: 2}


def test_what_all_open_documents_close_before_their_ends_is_closed_for_good(
    in_process: InProcessSession, tmp_path: Path
) -> None:
    feed = Feed(in_process, tmp_path, "order of at", sectionEnds="rs *")
    feed.write("a", 1, 2, end=True)
    feed.write("b", 2)
    assert feed.run() == {1: 1}
    feed.write("b", 3, end=True)
    assert feed.run() == {1: 1, 2: 2, 3: 1}


def test_a_document_that_is_renamed_is_the_same_stream(in_process: InProcessSession, tmp_path: Path) -> None:
    feed = Feed(in_process, tmp_path)
    feed.write("a", 1, 2)
    feed.write("b", 1)
    assert feed.run() == {}
    (tmp_path / "in" / "a.xml").rename(tmp_path / "in" / "z.xml")
    with (tmp_path / "in" / "z.xml").open("a") as document:
        document.write("<r><who>a</who><at>3</at></r>")
    feed.write("b", 5)
    assert feed.run() == {1: 2, 2: 1}
    assert [one.place["path"] for one in Offset.from_json(feed.last.end["t"]).streams] == ["z.xml", "b.xml"]
    feed.write("a", 4)  # another document of the name
    feed.write("z", 9)
    assert feed.run() == {1: 2, 2: 1, 3: 1}


def test_a_document_that_rotates_is_one_stream(in_process: InProcessSession, tmp_path: Path) -> None:
    feed = Feed(in_process, tmp_path, onReplaced="new")
    feed.write("a", 1, 2)
    feed.write("b", 1, 9)
    assert feed.run() == {1: 2}
    (tmp_path / "in" / "a.xml").rename(tmp_path / "in" / "a-old.xml")
    with (tmp_path / "in" / "a-old.xml").open("a") as document:
        document.write("<r><who>a</who><at>3</at></r></rs>")
    feed.write("a", 4, 6)
    assert feed.run() == {1: 2, 2: 1, 3: 1, 4: 1}
    assert Offset.from_json(feed.last.end["t"]).document == 2


def test_a_silent_document_is_passed_over_where_that_is_wanted(in_process: InProcessSession, tmp_path: Path) -> None:
    for unfinished in ("skip", "fail"):
        (tmp_path / unfinished).mkdir()
        feed = Feed(in_process, tmp_path / unfinished, unfinished=unfinished, unfinishedAge="1ms")
        feed.write("a", 1, 2, 3)
        options = SourceOptions.parse(
            {"path": f"{tmp_path}/{unfinished}/in/*.xml", "rowTag": "r", "schema": "at INT", "documents": "files",
             "unfinished": unfinished, "unfinishedAge": "1ms", "documentLog": str(tmp_path / unfinished / "log"),
             "follow": "true"}, giver="reader",
        )  # fmt: skip
        feed.write("b", 1)
        planner = StreamsPlanner(options, Documents(options, log=True, streams=True))
        end, _ = planner.advance(Offset(), planner.sizes(Offset()), None)
        found = planner.sizes(end)
        if unfinished == "fail":
            with pytest.raises(InputError, match=r"a\.xml is unfinished"):
                planner.look(end, found)
            continue
        after, ranges = planner.advance(end, found, None)
        assert [(range_.stream, range_.close) for range_ in ranges] == []
        assert [(one.number, one.ended) for one in after.streams] == [(0, True), (1, None)]
        last, ranges = planner.advance(after, planner.sizes(after), None)
        assert [(range_.stream, range_.close) for range_ in ranges] == [(0, True)]
        assert [one.number for one in last.streams] == [1]  # the last open one waits


@pytest.mark.parametrize("clean", ["delete", "off"])
def test_what_was_read_is_removed_and_what_is_open_stays(
    in_process: InProcessSession, tmp_path: Path, clean: str
) -> None:
    feed = Feed(in_process, tmp_path, cleanSource=clean)
    feed.write("a", 1)
    feed.write("b", 2, end=True)
    feed.write("c", 3, end=True)
    feed.run()
    feed.write("a", 5)
    feed.run()
    left = {path.name for path in (tmp_path / "in").iterdir()}
    assert left == ({"a.xml"} if clean == "delete" else {"a.xml", "b.xml", "c.xml"})
    feed.write("d", 9, end=True)
    feed.write("a", 7, end=True)
    feed.run()
    assert feed.run() == {1: 1, 2: 1, 3: 1, 5: 1, 7: 1}
    assert clean == "off" or not list((tmp_path / "in").iterdir())


def test_killed_at_each_point_it_goes_on_as_if_it_had_not_been(in_process: InProcessSession, tmp_path: Path) -> None:
    steps: tuple[dict[str, tuple[int | None, ...]], ...] = (
        {"a": (1, 2, 4, 3), "b": (1, 3)},
        {"a": (5, 6, None), "c": (2, 6, 8)},
        {"b": (9, 7), "d": (6, None)},
        {"c": (11, None), "b": (12, None)},
    )
    expected: dict[int, int] | None = None
    for point in [None, *POINTS]:
        (tmp_path / str(point)).mkdir()
        feed = Feed(
            in_process, tmp_path / str(point), "order of at, slack 2", ungrammatical="drop", maxBytesPerSlice="80"
        )
        for number, step in enumerate(steps):
            for name, times in step.items():
                feed.write(name, *(at for at in times if at is not None), end=None in times)
            if point is not None and number < 3:
                last = -1 if feed.last is None or not (tmp_path / point / "state").exists() else feed.last.slice
                crash(feed.run, point, last + 1 + number % 2)
            feed.run()
        found = feed.run(keep_open=False)
        expected = found if expected is None else expected
        assert found == expected, point
    assert expected
    assert sum(expected.values()) > 12


def test_what_has_ended_costs_nothing_in_later_slices(in_process: InProcessSession, tmp_path: Path) -> None:
    def visits(ended: int) -> tuple[int, int]:
        (tmp_path / str(ended)).mkdir()
        feed = Feed(in_process, tmp_path / str(ended))
        for number in range(ended):
            feed.write(f"e{number:04}", number % 7, end=True)
        feed.write("a", 8)
        feed.write("b", 9)
        feed.run()
        feed.write("a", 10)
        calls = 0

        def counted(original: Any) -> Any:
            def call(*args: Any, **options: Any) -> Any:
                nonlocal calls
                calls += 1
                return original(*args, **options)

            return call

        with (
            mock.patch.object(Planner, "advance", counted(Planner.advance)),
            mock.patch.object(Planner, "sizes", counted(Planner.sizes)),
            mock.patch.object(Documents, "__init__", counted(Documents.__init__)),
        ):
            feed.run()
        commits = sorted((tmp_path / str(ended) / "state" / "commits").iterdir())
        return calls, commits[-1].stat().st_size

    (few, small), (many, large) = visits(3), visits(90)
    assert many == few
    assert large < small + 300


def test_rules_are_refused_or_shown_in_words() -> None:
    given = {"path": "in", "rowTag": "r", "documents": "files"}
    with pytest.raises(UsageError, match="compares the times of all document streams"):
        scan("t", {**given, "punctuate": "end of who, or after 5 of at"}, "who STRING, at INT")
    node = scan("t", {**given, "punctuate": "order of at, slack 2; end of who after 3"}, "who STRING, at INT")
    assert isinstance(node.operator, Streams)
    below = node.inputs[0]
    texts = []
    while isinstance(below.operator, Punctuate):
        texts.append(str(below.operator.rule))
        below = below.inputs[0]
    assert texts == ["end of who after 3, in each stream", "order of at, slack 2, in each stream"]
    assert node.schema == Schema.parse("who STRING, at INT")
    assert [str(scheme) for scheme in node.schemes] == ["at prefix", "who"]
    assert set(names(node).values()) == {"t", "punctuate", "punctuate-2", "streams"}


def test_no_path_is_left_behind(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path)
    options = SourceOptions.parse({"path": f"{tmp_path}/x", "rowTag": "r", "schema": "a INT", "documents": "files"})
    with pytest.raises(InputError, match="there is no file"):
        Documents(options, log=False, streams=True).find()
    with pytest.raises(UsageError, match=r"documents 'files' of .* needs a query"):
        Documents(options, log=False)


def test_rules_of_python_hold_in_each_stream_too(in_process: InProcessSession, tmp_path: Path) -> None:
    feed = Feed(in_process, tmp_path)
    feed.write("a", 1, 3, 5)
    feed.write("b", 2, 3)
    given = {"rowTag": "r", "documents": "files", "schemes": ""}
    read = xs.read(in_process, f"{tmp_path}/in/*.xml", "who STRING, at INT", name="t", **given)
    for query in (
        read.punctuate(xs.ByOrder("at")).punctuate(xs.ByRoster(None, "who", ("a", "b"))),
        read.punctuate("roster of who (a, b); order of at"),
        xs.read(
            in_process, f"{tmp_path}/in/*.xml", "who STRING, at INT", name="t", punctuate="order of at", **given
        ).punctuate("roster of who (a, b)"),
    ):
        rules = [str(one.operator.rule) for one in topological(query.root) if isinstance(one.operator, Punctuate)]
        assert rules == ["order of at, in each stream", "all streams; by who", "roster of who (a, b)"]
    with pytest.raises(QueryError, match="a rule needs the order of a source"):
        read.where("at > 1").punctuate("order of at")


def test_rules_of_groups_count_in_each_stream(in_process: InProcessSession, tmp_path: Path) -> None:
    feed = Feed(in_process, tmp_path, "end of at after 2", partitionedBy="at")
    feed.write("a", 1, 2, 1)
    feed.write("b", 2, 3)
    assert feed.run() == {1: 2}  # that is a's own, and 2 would be, too, were there two in one stream
    feed.write("b", 3)
    assert feed.run() == {1: 2, 3: 2}


def test_a_case_of_the_test_kit_is_one_stream() -> None:
    case = xt.case(
        "CREATE TABLE t (at INT, v INT) USING punctuated_xml OPTIONS (path 'in/*.xml', rowTag 'r', documents 'files',"
        " schemes 'v', punctuate 'order of at'); SELECT at, count(*) AS n FROM t GROUP BY at"
    )
    assert str(case.slice(t="(1, 7) (2, 7)")) == "(1, 1) <(,1], *>"
    assert str(case.end()) == "(2, 1) <*, *>"


@pytest.mark.parametrize("documents", ["files", "directories"])
def test_a_changed_query_goes_on_in_each_stream(in_process: InProcessSession, tmp_path: Path, documents: str) -> None:
    feed = Feed(in_process, tmp_path, "order of at, slack 2", documents=documents)
    names = ("a/1", "b/1") if documents == "directories" else ("a", "b")
    feed.write(names[0], 1, 3, 4)
    feed.write(names[1], 1, 5)
    assert feed.run() == {1: 2}
    feed.options["punctuate"] = "order of at, slack 1"
    feed.write(names[0], 6)
    feed.write(names[1], 4, 6)
    assert feed.run(change=True) == {1: 2, 3: 1, 4: 2}
    feed.write(names[0], end=True)
    feed.write(names[1], end=True)
    assert feed.run(keep_open=False) == {1: 2, 3: 1, 4: 2, 5: 1, 6: 2}


def test_a_silent_sender_makes_its_source_late_while_others_go_on(in_process: InProcessSession, tmp_path: Path) -> None:
    feed = Feed(in_process, tmp_path)
    feed.write("a", 1)
    feed.write("b", 1, 2)
    feed.run()
    progress = SourceProgress.of(plan_of(tmp_path / "state"), datetime.now(UTC))
    for at in range(2, 5):
        feed.write("a", at)
        feed.run()
        progress.add(feed.last)
    # Since b is at 2, what a has closed closes nothing more.
    slices = [record.slice for record in CommitLog(folder_at(tmp_path / "state").below("commits")).records()]
    assert (progress.last_sent("t") or (0,))[0] == 1 < max(slices)
    assert feed.waits_for() == ["b.xml (it has closed <*, (,1]>)"]


def test_a_document_that_is_removed_stops_the_query_or_ends_its_stream(
    in_process: InProcessSession, tmp_path: Path
) -> None:
    feed = Feed(in_process, tmp_path)
    feed.write("a", 1, 2, 3)
    feed.write("b", 1)
    assert feed.run() == {}
    (tmp_path / "in" / "b.xml").unlink()
    with pytest.raises(InputError, match=r"b\.xml was removed before it was completely read") as raised:
        feed.run()
    assert raised.value.hint == "put it back; or unfinished 'skip' goes on without its rest"
    feed.options["unfinished"] = "skip"
    assert feed.run() == {1: 2, 2: 1}
    assert [one.name for one in Offset.from_json(feed.last.end["t"]).streams] == ["a.xml"]
