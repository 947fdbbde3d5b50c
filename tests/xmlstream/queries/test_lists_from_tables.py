"""Lists of senders from static tables: what a roster from a table closes is what the same list, written out, closes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import xmlstream as xs
import xmlstream.testing as xt
from tests.harness.dying import Died, dying
from tests.harness.nights import AT_NIGHT, IN_PROCESS_BY_DAY, SEED
from xmlstream.cli.commands import app
from xmlstream.diagnosis.inspection import inspect, plan_of
from xmlstream.punct_ns.errors import InputError, QueryError, UsageError
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.checkpoint.checkpoint import Checkpoint
from xmlstream.runtime.checkpoint.commit_log import CommitLog, Declared, made_whole
from xmlstream.runtime.checkpoint.declared import DeclaredNotes, change_rosters, read_lists
from xmlstream.runtime.loop.execution import Execution
from xmlstream.runtime.loop.query_inputs import members_of
from xmlstream.session.engines import engine_of
from xmlstream.sql import script

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession, Session

REPORT = """
CREATE TABLE report (sid STRING, hour INT) USING punctuated_xml
OPTIONS (path '${HOME}/in', rowTag 't', schemes 'sid, hour', punctuate 'roster of sid ${MEMBERS}${ORDER}');
SELECT hour, count(*) AS n FROM report GROUP BY hour;
"""
CSV = "CREATE TABLE senders (unit INT, sid STRING) USING csv OPTIONS (path '${HOME}/senders.csv', header 'true');"
BY_ORDER = ", order of hour"


class Senders:
    """Senders in one stream, whose roster is a table of CSV, or is written out."""

    def __init__(self, session: Session, home: Path, *members: str, order: str = "", written: bool = False) -> None:
        self.session, self.home, self.documents, self.written = session, home, 0, written
        (home / "in").mkdir(parents=True)
        self.write(*members)
        listed = f"({', '.join(members)})" if written else "from senders"
        self.of = {"HOME": str(home), "MEMBERS": listed, "ORDER": order}

    def write(self, *members: str) -> None:
        """Writes the table anew, each sender twice, and with an empty line."""
        self.members = members
        lines = [f"{number},{who}" for number, who in enumerate([*members, *members])]
        (self.home / "senders.csv").write_text("\n".join(["unit,sid", *lines, "7,", ""]))

    def send(self, *senders: str, hour: int) -> None:
        """One more document, in which each of these senders reports an hour, and closes it unless it is in order."""
        self.documents += 1
        text = "".join(f"<t><sid>{s}</sid><hour>{hour}</hour></t>" for s in senders)
        text += "".join(f"<p:t><sid>{s}</sid><hour>{hour}</hour></p:t>" for s in senders if not self.of["ORDER"])
        draft = self.home / "draft.xml"
        draft.write_text(f"<s xmlns:p='{PUNCT_NS}'>{text}</s>")
        draft.rename(self.home / "in" / f"{self.documents:05}.xml")

    def query(self) -> xs.Query:
        return xs.from_sql(self.session, ("" if self.written else CSV) + REPORT, self.of)

    def run(self, *, keep_open: bool = True) -> dict[int, int]:
        self.query().run(output=self.home / "out", checkpoint=self.home / "state", keep_open=keep_open)
        rows = [
            row for path in sorted((self.home / "out").glob("*.xml")) for row in path.read_text().split("<row>")[1:]
        ]
        found = [tuple(int(row.split(f"<{name}>")[1].split("<")[0]) for name in ("hour", "n")) for row in rows]
        assert len({hour for hour, _ in found}) == len(found), "no answer goes out twice"
        return dict(found)  # type: ignore[arg-type]

    @property
    def last(self) -> Any:
        return made_whole(CommitLog(self.home / "state" / "commits").records())

    def read(self) -> list[Declared]:
        state, engine = self.home / "state", engine_of(self.session)
        members = lambda rule, domain: members_of(engine, rule, domain)  # noqa: E731
        return read_lists(state, plan_of(state), self.last, members, "report", "ann")

    def change(self, *members: str) -> None:
        """Has the list be another one: the table's, or by what is added and removed."""
        before, state = self.members, self.home / "state"
        self.write(*members)
        added, removed = ([w for w in one if w not in other] for one, other in ((members, before), (before, members)))
        if self.written and (added or removed):
            change_rosters(state, plan_of(state), self.last, "report", added, removed, "ann")


def test_a_table_lists_the_senders(session: Session, tmp_path: Path) -> None:
    feed = Senders(session, tmp_path, "S1", "S2", "S3")
    feed.send("S1", "S2", "S9", hour=1)
    assert feed.run() == {}
    ((example,),) = (waits.examples for waits in inspect(tmp_path / "state").waits)
    assert [need.missing for need in example.needs if need.missing] == [("<S3, 1>",)]
    feed.send("S3", hour=1)
    assert feed.run() == {1: 4}


@IN_PROCESS_BY_DAY
def test_what_waits_for_a_roster_names_the_table_and_the_number(session: Session, tmp_path: Path) -> None:
    feed = Senders(session, tmp_path, "S1", "S2", "S3", order=BY_ORDER)
    feed.send("S1", "S2", "S3", hour=1)
    feed.send("S1", "S2", hour=2)
    assert feed.run() == {}
    ((example, *_),) = (waits.examples for waits in inspect(tmp_path / "state").waits)
    (need,) = (need for need in example.needs if need.missing)
    assert (need.rule, need.behind) == ("by roster of sid from senders (3 listed)", ("S3 (it is at 1)",))


def test_another_list_counts_at_a_restart(session: Session, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    feed = Senders(session, tmp_path, "S1", "S2")
    feed.send("S1", "S2", hour=1)
    feed.send("S1", hour=2)
    assert feed.run() == {1: 2}
    feed.write("S1", "S3")
    assert feed.run() == {1: 2}
    assert "report roster from senders +S3 -S2" in caplog.text
    feed.send("S3", hour=2)
    assert feed.run() == {1: 2, 2: 2}
    assert [(each.added, each.removed, each.table) for each in feed.last.declared] == [(("S3",), ("S2",), "senders")]


@IN_PROCESS_BY_DAY
@pytest.mark.parametrize("how", ["gone", "empty", "of another type"])
def test_a_table_that_lists_nobody_leaves_the_roster_as_it_was(
    session: Session, tmp_path: Path, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    feed = Senders(session, tmp_path, "S1", "S2")
    feed.send("S1", hour=1)
    assert feed.run() == {}
    texts = {"empty": "unit,sid\n", "of another type": "unit,sid\nx,S1\n"}
    (tmp_path / "senders.csv").write_text(texts.get(how, ""))
    if how == "gone":
        (tmp_path / "senders.csv").unlink()
    assert feed.run() == {}
    assert "the roster stays as it was" in caplog.text
    feed.send("S2", hour=1)
    assert feed.run() == {1: 2}


@IN_PROCESS_BY_DAY
def test_it_is_read_again_while_a_query_runs(session: Session, tmp_path: Path) -> None:
    feed = Senders(session, tmp_path, "S1", "S2")
    feed.send("S1", hour=1)
    running = feed.query().start(output=tmp_path / "out", checkpoint=tmp_path / "state")
    try:
        running.processAllAvailable()
        assert feed.read() == []
        feed.write("S1")
        (note,) = feed.read()
        assert (note.added, note.removed, note.by) == ((), ("S2",), "ann")
        assert feed.read() == [], "it waits already"
        while DeclaredNotes(tmp_path / "state").waiting():
            running.processAllAvailable()
    finally:
        running.stop()
    assert feed.run() == {1: 1}


def test_say_reads_it_again_and_says_what_changed(in_process: InProcessSession, tmp_path: Path) -> None:
    feed = Senders(in_process, tmp_path, "S1", "S2")
    feed.send("S1", hour=1)
    feed.run()

    def say(*words: str) -> str:
        result = CliRunner().invoke(app, ["say", str(tmp_path / "state"), *words])
        return result.output if result.exit_code == 0 else f"{result.exception}"

    assert say("report", "--read") == "the table lists the senders of report as before\n"
    refused = "the roster of report is the table senders"
    assert refused in say("report", "--remove", "S2")
    with pytest.raises(UsageError, match=refused) as raised:
        change_rosters(tmp_path / "state", plan_of(tmp_path / "state"), feed.last, "report", (), ("S2",))
    feed.write("S1")
    hint = (raised.value.hint or "").rpartition(": xmlstream ")[2].split()
    assert hint[0] == "say"
    assert "report roster from senders -S2, declared by " in CliRunner().invoke(app, hint).output
    assert feed.run() == {1: 1}
    written = Senders(in_process, tmp_path / "written", "S1", written=True)
    written.send("S1", hour=1)
    written.run()
    with pytest.raises(UsageError, match="no table lists the roster of report"):
        written.read()


@pytest.mark.sampled(2)
@IN_PROCESS_BY_DAY
@pytest.mark.parametrize("order", ["", BY_ORDER], ids=["punctuations", "order"])
@pytest.mark.parametrize("seed", range(SEED, SEED + (100 if AT_NIGHT else 2)))
def test_a_list_from_a_table_closes_what_the_list_closes(
    session: Session, tmp_path: Path, seed: int, order: str
) -> None:
    drawn, all_of_them = random.Random(f"{seed} {order}"), ["S1", "S2", "S3", "it's", "ä b"]
    members = drawn.sample(all_of_them, drawn.randint(1, 3))
    feeds = [
        Senders(session, tmp_path / str(written), *members, order=order, written=written) for written in (False, True)
    ]
    hours = dict.fromkeys(all_of_them, 1)
    for feed in feeds:
        feed.send(*members, hour=1)
        feed.run()
    for _ in range(8):
        if drawn.random() < 0.3:
            members = drawn.sample(all_of_them, drawn.randint(1, 4))
            for feed in feeds:
                feed.change(*members)
            if drawn.random() < 0.3:
                feeds[0].read()
        else:
            who = drawn.choice(all_of_them)
            hours[who] += drawn.randint(0, 2)
            for feed in feeds:
                feed.send(who, hour=hours[who] + 20 * (who not in members))
        if drawn.random() < 0.6:
            answers: list[object] = []
            for feed in feeds:
                try:
                    answers.append(feed.run())
                except xs.InputError as error:
                    answers.append(error.what)
            assert answers[0] == answers[1]
            if isinstance(answers[0], str):
                return


KILLED_AT = [
    (Checkpoint, "commit"), (DeclaredNotes, "add"), (DeclaredNotes, "forget"), (Execution, "_go_on"),
    (Execution, "_slice"), (Execution, "_read_lists"), (Execution, "_change_rosters"),
]  # fmt: skip


@pytest.mark.sampled(3)
@IN_PROCESS_BY_DAY
@pytest.mark.parametrize(("of", "name"), KILLED_AT)
@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("first", [True, False])
def test_a_list_counts_once_whenever_a_run_is_killed(
    session: Session, tmp_path: Path, of: type, name: str, behind: bool, first: bool
) -> None:
    feed = Senders(session, tmp_path, "S1", "S2")
    feed.send("S1", hour=1)
    if not first:
        feed.run()
        feed.write("S1", "S3")
    calls = []
    try:
        with dying(0, (of, name), behind=behind) as calls:
            feed.run()
    except Died:
        pass
    assert calls or (name, first) in {("add", True), ("forget", True)}
    feed.write("S1", "S3")
    assert feed.run() == {}
    feed.send("S3", hour=1)
    assert feed.run() == {1: 2}
    assert feed.run() == {1: 2}


def test_the_test_kit_gives_its_rows(session: Session) -> None:
    text = (CSV + REPORT).replace("${HOME}", ".").replace("${ORDER}", "").replace("${MEMBERS}", "from senders")
    with xt.case(text, session=session, static={"senders": "(1, S1) (2, S2) (2, S1) (3, null)"}) as case:
        assert case.slice(report="(S1, 1) (S2, 1) <S1, 1>").rows == []
        assert case.slice(report="<S2, 1>").rows == [{"hour": 1, "n": 2}]


def test_a_table_of_the_program_lists_the_senders(session: Session, tmp_path: Path) -> None:
    given = pa.table({"who": ["S1", "S2", None, "S1"]})
    (tmp_path / "in.xml").write_text(
        f"<s xmlns:p='{PUNCT_NS}'><t><sid>S1</sid><hour>1</hour></t><p:t><sid>S1</sid><hour>1</hour></p:t>"
        "<p:t><sid>S2</sid><hour>1</hour></p:t></s>"
    )
    report = xs.read(session, tmp_path / "in.xml", "sid STRING, hour INT", rowTag="t", schemes="sid, hour")
    listed = report.punctuate("roster of sid from senders.who", tables={"senders": given})
    assert "roster of sid from senders.who (2 listed)" in listed.explain()
    out = tmp_path / "out"
    listed.group_by("hour").agg("count(*) AS n").run(out, checkpoint=tmp_path / "state", keep_open=True)
    assert "<row><hour>1</hour><n>1</n></row>" in "".join(path.read_text() for path in out.glob("*.xml"))
    sql = REPORT.replace("${HOME}/in", str(tmp_path / "in.xml")).replace("${ORDER}", "")
    query = xs.from_sql(session, sql, {"MEMBERS": "from Senders.who"}, tables={"senders": given})
    assert "from Senders.who (2 listed)" in query.explain()
    with pytest.raises(QueryError, match="there is no static table senders"):
        report.punctuate("roster of sid from senders")


def test_explain_names_the_table_and_the_number(in_process: InProcessSession, tmp_path: Path) -> None:
    feed = Senders(in_process, tmp_path, "S1", "S2", "S3", order=BY_ORDER)
    (tmp_path / "q.sql").write_text(CSV + REPORT)
    define = [word for name, value in feed.of.items() for word in ("-D", f"{name}={value}")]
    result = CliRunner().invoke(app, ["explain", str(tmp_path / "q.sql"), "--follow", *define])
    assert "punctuate: roster of sid from senders (3 listed), order of hour" in result.output
    assert "It answers when groups close, and what it keeps is bounded." in result.output
    (tmp_path / "senders.csv").unlink()
    result = CliRunner().invoke(app, ["explain", str(tmp_path / "q.sql"), "--follow", *define])
    assert "punctuate: roster of sid from senders, order of hour" in result.output


@pytest.mark.parametrize(
    ("table", "listed", "what"),
    [
        ("", "from senders", "there is no static table senders"),
        (CSV, "from senders.sensor", "senders has no column sensor"),
        (CSV, "from senders.unit", "unit of senders is INT, and sid is STRING"),
        (CSV, "from report", "report is a stream, and no list"),
        (
            CSV,
            "from senders where unit = 1",
            "needs a list of STRING values in parentheses, not 'from senders where unit = 1'",
        ),
    ],
)
def test_what_is_no_list_is_refused_at_its_place(table: str, listed: str, what: str) -> None:
    text = (table + REPORT).replace("${HOME}", ".").replace("${ORDER}", "").replace("${MEMBERS}", listed)
    with pytest.raises(QueryError, match=what) as raised:
        script.read(text)
    assert "line " in (raised.value.where or "")
    if "write roster" in (raised.value.hint or ""):
        written = (raised.value.hint or "").rpartition("write roster of ")[2]
        script.read(text.replace(f"sid {listed}", written))


def test_a_table_that_lists_nobody_at_the_beginning_is_refused(session: Session, tmp_path: Path) -> None:
    feed = Senders(session, tmp_path)
    feed.send("S1", hour=1)
    with pytest.raises(InputError, match="the static table senders lists no sid"):
        feed.run()
    feed.write("S1")
    assert feed.run() == {1: 1}


def test_parquet_lists_the_senders(session: Session, tmp_path: Path) -> None:
    feed = Senders(session, tmp_path)
    pq.write_table(pa.table({"sid": ["S1", "S2"]}), tmp_path / "senders.parquet")
    text = "CREATE TABLE senders (sid STRING) USING parquet OPTIONS (path '${HOME}/senders.parquet');" + REPORT
    feed.send("S1", "S2", hour=1)
    query = xs.from_sql(session, text, feed.of)
    query.run(output=tmp_path / "out", checkpoint=tmp_path / "state", keep_open=True)
    assert "<n>2</n>" in "".join(path.read_text() for path in (tmp_path / "out").glob("*.xml"))


DOMAIN = REPORT.replace("punctuate 'roster of sid ${MEMBERS}${ORDER}'", "domains '${DOMAINS}', ${MORE}")


class Domains(Senders):
    """Senders whose list is the domain of their attribute."""

    def __init__(self, session: Session, home: Path, *members: str, written: bool = False, more: str = "") -> None:
        super().__init__(session, home, *members, written=written)
        listed = f"sid {{{', '.join(members)}}}" if written else "hour 0..9, sid from senders"
        mode = "mode 'PERMISSIVE'" if written else "ungrammatical 'divert'"
        self.of = {"HOME": str(home), "DOMAINS": listed, "MORE": more or mode, "ORDER": ""}

    def query(self) -> xs.Query:
        return xs.from_sql(self.session, ("" if self.written else CSV) + DOMAIN, self.of)


@pytest.mark.sampled(2)
@IN_PROCESS_BY_DAY
@pytest.mark.parametrize("seed", range(SEED, SEED + (60 if AT_NIGHT else 3)))
def test_a_domain_from_a_table_closes_and_takes_what_the_domain_takes(
    session: Session, tmp_path: Path, seed: int
) -> None:
    drawn, all_of_them = random.Random(seed), ["S1", "S2", "S3", "it's", "a b"]
    members = drawn.sample(all_of_them, drawn.randint(1, 3))
    feeds = [Domains(session, tmp_path / str(written), *members, written=written) for written in (False, True)]
    left = {(who, hour) for who in all_of_them for hour in range(4)}
    for _ in range(12):
        who, hour = drawn.choice(sorted(left))
        left.discard((who, hour))
        for feed in feeds:
            feed.send(who, hour=hour)
        if drawn.random() < 0.6:
            assert feeds[0].run() == feeds[1].run()
    letters = [
        sum(len(path.read_text().splitlines()) for path in (feed.home / "out" / "_dead_letters").glob("*.jsonl"))
        for feed in feeds
    ]
    assert letters[0] == letters[1]


@IN_PROCESS_BY_DAY
def test_a_sender_that_is_not_in_the_table_is_refused_until_it_is(session: Session, tmp_path: Path) -> None:
    feed = Domains(session, tmp_path, "S1", more="ungrammatical 'fail'")
    feed.send("S1", hour=1)
    assert feed.run() == {1: 1}
    feed.send("S2", hour=2)
    with pytest.raises(xs.InputError, match=r"the tuple \(S2, 2\) is of a sid that senders does not list") as raised:
        feed.run()
    assert "if it is a sender, add it to senders" in (raised.value.hint or "")
    feed.write("S1", "S2")
    assert feed.run() == {1: 1}
    feed.send("S1", hour=2)
    assert feed.run() == {1: 1, 2: 2}
    assert "senders (2 listed) and no others" in feed.query().explain()
