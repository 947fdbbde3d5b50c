"""Declared punctuations: a silent source is closed in its place, once, behind all that it has sent."""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.harness.dying import Died, dying
from tests.harness.nights import AT_NIGHT, IN_PROCESS_BY_DAY, SEED
from xmlstream.diagnosis.inspection import inspect, plan_of
from xmlstream.punct_ns.errors import StateError, UngrammaticalStream, UsageError
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.checkpoint.checkpoint import Checkpoint
from xmlstream.runtime.checkpoint.commit_log import CommitLog, Declared, made_whole
from xmlstream.runtime.checkpoint.declared import DeclaredNotes, change_rosters, declare, rosters
from xmlstream.runtime.loop.execution import Execution

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession, Session

QUERY = """
CREATE TABLE north (sid STRING, hour INT NOT NULL) USING punctuated_xml
OPTIONS (path '${HOME}/north', rowTag 't', schemes 'hour prefix'${MORE});
CREATE TABLE south (sid STRING, hour INT NOT NULL) USING punctuated_xml
OPTIONS (path '${HOME}/south', rowTag 't', schemes 'hour prefix'${MORE});
SELECT hour, count(*) AS n FROM (SELECT hour FROM north UNION ALL SELECT hour FROM south) GROUP BY hour;
"""


class Feed:
    """Two senders, each a directory of documents, and the query over both, which is run again and again."""

    def __init__(self, session: Session, home: Path, more: str = "") -> None:
        self.session, self.home, self.more, self.documents = session, home, more, 0
        for name in ("north", "south"):
            (home / name).mkdir(parents=True)

    def write(self, sender: str, *hours: int, closed: int | None = None) -> None:
        """One more document of a sender, which may close the hours up to one at its end."""
        self.documents += 1
        text = "".join(f"<t><sid>{sender}</sid><hour>{hour}</hour></t>" for hour in hours)
        text += "" if closed is None else f"<p:t><hour>(,{closed}]</hour></p:t>"
        document = self.home / sender / f"{self.documents:05}.xml"
        document.with_suffix(".draft").write_text(f"<s xmlns:p='{PUNCT_NS}'>{text}</s>")
        document.with_suffix(".draft").rename(document)

    def query(self) -> xs.Query:
        return xs.from_sql(self.session, QUERY, {"HOME": str(self.home), "MORE": self.more})

    def run(self) -> dict[int, int]:
        """One more run over what is there; the answers that are out then."""
        self.finish(keep_open=True)
        return self.answers()

    def finish(self, *, keep_open: bool = False) -> None:
        self.query().run(output=self.home / "out", checkpoint=self.home / "state", keep_open=keep_open)

    def answers(self) -> dict[int, int]:
        rows = Counter[int]()
        found: dict[int, int] = {}
        for path in sorted((self.home / "out").glob("*.xml")):
            for row in path.read_text().split("<row>")[1:]:
                hour, n = (int(row.split(f"<{name}>")[1].split("<")[0]) for name in ("hour", "n"))
                rows[hour] += 1
                found[hour] = n
        assert set(rows.values()) <= {1}, "no answer goes out twice"
        return found

    def declare(
        self, source: str, punctuation: str | None = None, where: str | None = None, by: str | None = None
    ) -> list[Declared]:
        state = self.home / "state"
        last = made_whole(CommitLog(state / "commits").records())
        return declare(state, plan_of(state), last, source, punctuation, where, by)

    def declared(self) -> list[Declared]:
        """What commits have taken in."""
        last = made_whole(CommitLog(self.home / "state" / "commits").records())
        return [] if last is None else list(last.declared)

    def waiting(self) -> list[Declared]:
        return DeclaredNotes(self.home / "state").waiting()


def begun(session: Session, home: Path, more: str = "") -> Feed:
    """South has died in hour 2; north goes on."""
    feed = Feed(session, home, more)
    feed.write("north", 1, 2, 3, closed=3)
    feed.write("south", 1, 2, closed=1)
    assert feed.run() == {1: 2}
    return feed


def test_what_is_declared_closes_as_if_the_source_had_sent_it(session: Session, tmp_path: Path) -> None:
    feed = begun(session, tmp_path)
    (note,) = feed.declare("south", "<*, (,2]>", by="ann")
    assert [each.punctuation for each in feed.waiting()] == ["<*, (,2]>"]
    assert feed.run() == {1: 2, 2: 2}
    assert (feed.waiting(), feed.declared()) == ([], [note])
    assert (note.by, note.source, note.time.tzinfo is not None) == ("ann", "south", True)


@IN_PROCESS_BY_DAY
def test_a_condition_declares_what_it_is_true_for(session: Session, tmp_path: Path) -> None:
    feed = begun(session, tmp_path)
    (note,) = feed.declare("SOUTH", where="hour BETWEEN 2 AND 3")
    assert note.punctuation == "<*, [2,3]>"
    assert feed.run() == {1: 2, 2: 2, 3: 1}


@IN_PROCESS_BY_DAY
def test_a_source_that_is_left_out_delays_nothing_any_more(session: Session, tmp_path: Path) -> None:
    feed = begun(session, tmp_path)
    feed.declare("south")
    assert feed.run() == {1: 2, 2: 2, 3: 1}
    feed.write("north", 4, closed=4)
    assert feed.run() == {1: 2, 2: 2, 3: 1, 4: 1}


@IN_PROCESS_BY_DAY
def test_a_tuple_behind_a_declared_punctuation_is_late(session: Session, tmp_path: Path) -> None:
    feed = begun(session, tmp_path)
    feed.declare("south", "<*, 2>", by="ann")
    feed.run()
    feed.write("south", 2)
    with pytest.raises(UngrammaticalStream) as raised:
        feed.run()
    assert raised.value.hint is not None
    assert "declared by ann" in raised.value.hint
    feed.more += ", ungrammatical 'divert'"
    assert feed.run() == {1: 2, 2: 2}
    letters = [
        json.loads(line) for p in (tmp_path / "out" / "_dead_letters").iterdir() for line in p.read_text().splitlines()
    ]
    assert [letter["source"] for letter in letters] == ["south"]


@IN_PROCESS_BY_DAY
def test_an_attribute_that_no_scheme_names_may_be_declared(session: Session, tmp_path: Path) -> None:
    feed = begun(session, tmp_path)
    feed.declare("south", "<south, 2>")
    feed.declare("south", "<{null,north}, *>")
    feed.run()
    feed.write("south", 2)
    with pytest.raises(UngrammaticalStream):
        feed.run()


@IN_PROCESS_BY_DAY
def test_it_stands_behind_all_that_had_arrived_however_many_slices_that_takes(session: Session, tmp_path: Path) -> None:
    feed = begun(session, tmp_path, ", maxFilesPerSlice '1'")
    for _ in range(4):
        feed.write("south", 2)
    feed.declare("south", "<*, 2>")
    assert feed.run() == {1: 2, 2: 6}
    records = CommitLog(tmp_path / "state" / "commits").records()
    assert [len(record.declared) for record in records] == [0, 0, 0, 0, 1]


@IN_PROCESS_BY_DAY
def test_what_arrives_behind_it_while_a_run_ends_is_left_to_the_next_run(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = begun(session, tmp_path)
    process = Execution.process_ranges

    def late(execution: Execution, *arguments: object) -> None:
        if not feed.declared() and not feed.waiting():
            feed.write("south", 2)
            feed.declare("south", "<*, 2>")
        process(execution, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Execution, "process_ranges", late)
    feed.write("north", 4, closed=4)
    assert feed.run() == {1: 2}
    assert len(feed.waiting()) == 1
    assert feed.run() == {1: 2, 2: 3}


@IN_PROCESS_BY_DAY
def test_a_run_that_follows_takes_it_in_without_input(session: Session, tmp_path: Path) -> None:
    feed = begun(session, tmp_path)
    running = feed.query().start(output=tmp_path / "out", checkpoint=tmp_path / "state")
    try:
        feed.declare("south", "<*, 2>")
        until = time.monotonic() + 300
        while feed.waiting() and time.monotonic() < until:
            time.sleep(0.02)
        running.processAllAvailable()
        assert feed.answers() == {1: 2, 2: 2}
    finally:
        running.stop()


KILLED_AT = [(Checkpoint, "commit"), (DeclaredNotes, "forget"), (Execution, "_go_on"), (Execution, "_slice")]


@pytest.mark.sampled(3)
@IN_PROCESS_BY_DAY
@pytest.mark.parametrize(("of", "name"), KILLED_AT)
@pytest.mark.parametrize("behind", [False, True])
def test_it_counts_once_whenever_a_run_is_killed(
    session: Session, tmp_path: Path, of: type, name: str, behind: bool
) -> None:
    feed = begun(session, tmp_path)
    (note,) = feed.declare("south", "<*, 2>")
    with pytest.raises(Died), dying(0, (of, name), behind=behind):
        feed.run()
    assert feed.run() == {1: 2, 2: 2}
    assert (feed.declared(), feed.waiting()) == ([note], [])


@pytest.mark.sampled(2)
@IN_PROCESS_BY_DAY
@pytest.mark.parametrize("seed", range(SEED, SEED + (200 if AT_NIGHT else 4)))
def test_answers_are_those_of_a_source_that_had_sent_it_itself(session: Session, tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    feeds = Feed(session, tmp_path / "declared"), Feed(session, tmp_path / "sent")
    for feed in feeds:
        feed.write("north")
        feed.write("south")
        feed.run()
    closed = dict.fromkeys(("north", "south"), 0)
    for _ in range(6):
        sender = drawn.choice(["north", "south"])
        first = closed[sender] + 1
        hours = [drawn.randint(first, first + 3) for _ in range(drawn.randint(0, 4))]
        if drawn.random() < 0.6:
            closed[sender] += drawn.randint(1, 3)
            feeds[0].write(sender, *hours)
            feeds[1].write(sender, *hours, closed=closed[sender])
            feeds[0].declare(sender, f"<*, (,{closed[sender]}]>")
            assert feeds[0].run() == feeds[1].run()
        else:
            for feed in feeds:
                feed.write(sender, *hours)


@IN_PROCESS_BY_DAY
def test_what_cannot_be_declared_is_refused_by_name(session: Session, tmp_path: Path) -> None:
    feed = begun(session, tmp_path)
    with pytest.raises(UsageError, match="no source west") as raised:
        feed.declare("west", "<*, 2>")
    assert raised.value.hint == "it has north, south"
    for punctuation, what in (("<2>", "1 patterns for 2"), ("<*, x>", "not a valid INT"), ("<*, {}>", "no tuple")):
        with pytest.raises(UsageError, match=what) as raised:
            feed.declare("south", punctuation)
        assert raised.value.hint == "south has the attributes sid STRING, hour INT"
    with pytest.raises(UsageError, match="no punctuation follows"):
        feed.declare("south", where="hour % 2 = 0")
    for where, what, hint in (
        ("sid = A", "south has no attribute A", "if A is a text, write it in quotes: 'A'; "),
        ("hoor = 2", "south has no attribute hoor", "did you mean hour?"),
        ("sid = 'A", "cannot be read as a condition", "compare attributes with constants"),
    ):
        with pytest.raises(UsageError, match=what) as raised:
            feed.declare("south", where=where)
        assert (raised.value.hint or "").startswith(hint)
    assert feed.waiting() == []
    feed.finish()
    with pytest.raises(StateError, match="is closed"):
        feed.declare("south", "<*, 3>")


ROSTER = """
CREATE TABLE report (sid ${TYPE}, hour INT) USING punctuated_xml
OPTIONS (path '${HOME}/in', rowTag 't', schemes 'sid, hour', punctuate 'roster of sid (${MEMBERS})${ORDER}',
 ungrammatical '${LATE}');
SELECT hour, count(*) AS n FROM report GROUP BY hour;
"""


class Senders(Feed):
    """Senders in one stream, of which a roster lists two."""

    def __init__(
        self,
        session: Session,
        home: Path,
        order: str = "",
        type: str = "STRING",
        members: str = "S1, S2",
        late: str = "fail",
    ) -> None:
        super().__init__(session, home)
        (home / "in").mkdir()
        self.of = {"HOME": str(home), "TYPE": type, "MEMBERS": members, "ORDER": order, "LATE": late}

    def query(self) -> xs.Query:
        return xs.from_sql(self.session, ROSTER, self.of)

    def send(self, *senders: str, hour: int) -> None:
        """One more document, in which each of these senders reports an hour and closes it."""
        self.documents += 1
        text = "".join(f"<t><sid>{s}</sid><hour>{hour}</hour></t>" for s in senders)
        text += "".join(f"<p:t><sid>{s}</sid><hour>{hour}</hour></p:t>" for s in senders if not self.of["ORDER"])
        (self.home / "in" / f"{self.documents:05}.xml").write_text(f"<s xmlns:p='{PUNCT_NS}'>{text}</s>")

    def change(self, added: tuple[str, ...] = (), removed: tuple[str, ...] = ()) -> None:
        state = self.home / "state"
        last = made_whole(CommitLog(state / "commits").records())
        change_rosters(state, plan_of(state), last, "report", added, removed, "ann")


def test_a_sender_is_added_to_a_roster_and_taken_from_it(session: Session, tmp_path: Path) -> None:
    feed = Senders(session, tmp_path)
    feed.send("S1", "S2", hour=1)
    feed.send("S1", hour=2)
    assert feed.run() == {1: 2}
    feed.change(removed=("S2",))
    assert feed.run() == {1: 2, 2: 1}
    feed.change(added=("S3",))
    feed.send("S1", hour=3)
    assert feed.run() == {1: 2, 2: 1}, "hour 3 was closed in the slice that took the change in"
    ((example,),) = (waits.examples for waits in inspect(tmp_path / "state").waits)
    assert [need.missing for need in example.needs if need.missing] == [("<S3, 3>",)]
    feed.send("S3", hour=3)
    assert feed.run() == {1: 2, 2: 1, 3: 2}
    with pytest.raises(UsageError, match="S2 is not on the roster of sid") as raised:
        feed.change(removed=("S2",))
    assert raised.value.hint == "it has S1, S3"
    with pytest.raises(UsageError, match="no sender would be left"):
        feed.change(removed=("S1", "S3"))


def test_the_draft_of_a_note_that_was_killed_is_removed(in_process: InProcessSession, tmp_path: Path) -> None:
    feed = begun(in_process, tmp_path)
    drafts = [tmp_path / "state" / "declared" / f".{number}.json.tmp" for number in range(2)]
    drafts[0].parent.mkdir(exist_ok=True)
    for draft in drafts:
        draft.write_text("begun")
    os.utime(drafts[0], (0, 0))
    feed.run()
    assert [draft.exists() for draft in drafts] == [False, True]


BY_ORDER = ", order of hour"


def test_a_late_tuple_of_a_sender_that_was_added_is_late(session: Session, tmp_path: Path) -> None:
    feed = Senders(session, tmp_path, BY_ORDER)
    feed.send("S1", "S2", hour=5)
    assert feed.run() == {}
    feed.change(added=("S3",))
    assert feed.run() == {}
    feed.send("S3", hour=3)
    for _ in range(2):
        with pytest.raises(UngrammaticalStream, match="S3") as raised:
            feed.run()
        assert raised.value.tuple == ("S3", 3)
        assert raised.value.tuple_position is not None


@IN_PROCESS_BY_DAY
def test_changes_of_a_roster_are_judged_together_with_what_waits(session: Session, tmp_path: Path) -> None:
    feed = Senders(session, tmp_path)
    feed.send("S1", hour=1)
    assert feed.run() == {}
    feed.change(removed=("S2",))
    with pytest.raises(UsageError, match="S2 is not on the roster of sid"):
        feed.change(removed=("S2",))
    with pytest.raises(UsageError, match="no sender would be left"):
        feed.change(removed=("S1",))
    feed.change(added=("S3",))
    feed.change(removed=("S1",))
    feed.change(added=("S1",), removed=("S3",))
    assert feed.run() == {1: 1}


@IN_PROCESS_BY_DAY
def test_changes_that_would_leave_nobody_change_nothing(
    session: Session, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Two programs may each take one of two senders from the roster at the same moment."""
    feed = Senders(session, tmp_path)
    feed.send("S1", hour=1)
    assert feed.run() == {}
    notes = DeclaredNotes(tmp_path / "state")
    for number, who in enumerate(("S2", "S1")):
        notes.add(Declared(f"{number:018}.json", "report", "", "ann", datetime.now(UTC), (), (who,)))
    assert feed.run() == {1: 1}
    assert feed.waiting() == []
    assert "report roster -S1" in caplog.text
    assert "it would leave no sender on the roster" in caplog.text


@IN_PROCESS_BY_DAY
def test_a_sender_that_the_source_cannot_have_is_not_added(session: Session, tmp_path: Path) -> None:
    feed = Senders(session, tmp_path, type="INT", members="1, 2")
    feed.send("1", hour=1)
    feed.run()
    for text in ("x", "", "1.5", "99999999999"):
        with pytest.raises(UsageError, match="sid"):
            feed.change(added=(text,))
    feed.change(added=("3", " 3", "03"))
    with pytest.raises(UsageError, match="no sender would be left"):
        feed.change(removed=("1", "2", "+3"))
    assert feed.run() == {}


OF_TYPES = {
    "STRING": ["S1", "S2", "S3", "it's", "", "{S1}"],
    "INT": ["1", "2", "-3", "+4", "05"],
    "DOUBLE": ["1", "2", "NaN", "-0.0", "1e300"],
    "DATE": ["2026-01-01", "2026-01-02", "9999-12-31"],
    "TIMESTAMP": ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-02T01:00:00+01:00"],
}


@IN_PROCESS_BY_DAY
@pytest.mark.parametrize("order", ["", BY_ORDER], ids=["punctuations", "order"])
@pytest.mark.parametrize("type", OF_TYPES)
@pytest.mark.parametrize("seed", range(SEED, SEED + (20 if AT_NIGHT else 1)))
def test_no_change_of_a_roster_ends_the_query(
    session: Session, tmp_path: Path, type: str, order: str, seed: int
) -> None:
    """Any changes, taken in one by one or many together, and tuples of any sender behind and between them."""
    drawn, texts = random.Random(f"{type} {order} {seed}"), OF_TYPES[type]
    domain = Schema.parse(f"sid {type}").attribute("sid").domain
    feed = Senders(session, tmp_path, order, type, ", ".join(texts[:2]), "divert")
    feed.send(*texts[:2], hour=1)
    feed.run()
    members = [domain.read(text) for text in texts[:2]]
    for _ in range(12):
        if drawn.random() < 0.3:
            feed.run()
            ((_, _, rule),) = rosters(plan_of(tmp_path / "state"), "report")
            last = made_whole(CommitLog(tmp_path / "state" / "commits").records())
            assert last is not None
            assert rule.members(last.state("punctuate").notes, domain) == members
        elif drawn.random() < 0.5:
            feed.send(*drawn.choices(texts, k=drawn.randint(1, 3)), hour=drawn.randint(1, 5))
        else:
            added, removed = (tuple(drawn.choices(texts, k=drawn.randint(0, 2))) for _ in range(2))
            joined, fewer = ([domain.read(text) for text in some] for some in (added, removed))
            after = [member for member in dict.fromkeys([*members, *joined]) if member not in fewer]
            if after and all(member in members for member in fewer):
                feed.change(added, removed)
                members = after
            else:
                with pytest.raises(UsageError, match="roster"):
                    feed.change(added, removed)
    feed.run()


@IN_PROCESS_BY_DAY
@pytest.mark.parametrize(("of", "name"), KILLED_AT)
def test_a_change_of_a_roster_counts_once_whenever_a_run_is_killed(
    session: Session, tmp_path: Path, of: type, name: str
) -> None:
    feed = Senders(session, tmp_path)
    feed.send("S1", hour=1)
    assert feed.run() == {}
    feed.change(added=("S3",), removed=("S2",))
    with pytest.raises(Died), dying(0, (of, name), behind=True):
        feed.run()
    assert feed.run() == {}
    feed.send("S3", hour=1)
    assert feed.run() == {1: 2}
    assert (len(feed.declared()), feed.waiting()) == (1, [])
