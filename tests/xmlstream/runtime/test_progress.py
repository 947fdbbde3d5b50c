"""One silent sender before all who speak of it.

They are the page, an alert, a finding, `explain --checkpoint`, the metrics with the rules for Prometheus, and who waits
for the output.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import xmlstream as xs
from tests.harness.pages import blocks
from xmlstream.dataclasses import replace
from xmlstream.diagnosis.inspection import inspect, plan_of
from xmlstream.diagnosis.report import in_words
from xmlstream.monitor import lateness, run_view
from xmlstream.monitor.routes import openmetrics
from xmlstream.monitor.run_view import RunView
from xmlstream.operators.storage.store import folder_at
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.alerts import Alerts
from xmlstream.runtime.checkpoint.commit_log import Commit, CommitLog, Declared, made_whole
from xmlstream.runtime.checkpoint.declared import declare
from xmlstream.runtime.checkpoint.slice_report import BEFORE, Activity, OperatorReport
from xmlstream.runtime.loop.execution import Execution
from xmlstream.runtime.progress import SourceProgress
from xmlstream.runtime.runner import start
from xmlstream.runtime.settings import Settings
from xmlstream.sink.closings import ClosedSoFar
from xmlstream.sink.target import Target

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

BEGIN = datetime(2026, 11, 22, 19, tzinfo=UTC)
QUERY = """
CREATE TABLE in1 (hour INT, v INT) USING punctuated_xml OPTIONS (path '${HOME}/in1.xml', rowTag 'r', schemes 'hour');
CREATE TABLE in4 (hour INT, v INT) USING punctuated_xml OPTIONS (path '${HOME}/in4.xml', rowTag 'r', schemes 'hour');
SELECT hour, max(v) AS x FROM (SELECT * FROM in1 UNION ALL SELECT * FROM in4) GROUP BY hour;
"""


BY_RULE = QUERY.replace("schemes 'hour'", "punctuate 'order of hour'")
ONE_TABLE = """
CREATE TABLE {name} (hour INT, v INT, sid STRING) USING punctuated_xml
OPTIONS (path '${{HOME}}/{path}', rowTag 'r', {how});
SELECT hour, max(v) AS x FROM {name} GROUP BY hour;
"""
STREAMS = ONE_TABLE.format(name="both", path="in*.xml", how="documents 'files', punctuate 'order of hour'")
ROSTER = ONE_TABLE.format(name="both", path="in1.xml", how="punctuate 'roster of sid (in1, in4), order of hour'")


class Clock(datetime):
    """The time, which a test sets."""

    moment = BEGIN

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return cls.moment


class Bell(Alerts):
    """Alerts that note whether they hold, in place of a command."""

    holds = False

    def _call(self, alert: Any, state: str, value: float) -> None:
        self.holds = state == "begun"


class Feed:
    """Two senders of a followed query, and what is said of the second one."""

    def __init__(
        self, session: InProcessSession, home: Path, text: str = QUERY, warn_after: str | None = "PT10S"
    ) -> None:
        self.home, self.view, self.text = home, RunView(), text
        for name in ("in1", "in4"):
            (home / f"{name}.xml").write_text(f"<s xmlns:p='{PUNCT_NS}'>")
        self.bell = Bell([f"{'both' if text in (STREAMS, ROSTER) else 'in4'} silent 10s"], "", Clock.now)
        query, target = xs.from_sql(session, text, {"HOME": str(home)}), Target.of(str(home / "out"))
        settings = Settings((target,), checkpoint=str(home / "state"), follow=True, warn_after=warn_after)
        self.handle = start(session, query.root, replace(settings, watcher=self.view, alerts=self.bell))

    def send(self, name: str, text: str) -> None:
        with (self.home / f"{name}.xml").open("a") as file:
            file.write(text)

    def hour(self, name: str, hour: int) -> None:
        """An hour is over: a punctuation says so, or by rule the first tuple of the next one."""
        row, end = "<r><hour>{}</hour><v>1</v><sid>{}</sid></r>", f"<p:r><hour>{hour}</hour></p:r>"
        next_ = end if self.text == QUERY else row.format(hour + 1, name)
        self.send("in1" if self.text == ROSTER else name, row.format(hour, name) + next_)

    def metrics(self) -> str:
        """What Prometheus gets."""
        return openmetrics(self.view.totals, self.view.state, self.view.last_sent()).decode()

    def said(self, second: int) -> dict[str, bool]:
        """What each says after a slice in this second: whether the second sender is silent, or the output lacks."""
        self.handle.processAllAvailable()
        self.bell.look()
        stands = self.view.waiting()["stands"]["text"]
        found = [one for one in self.view.totals.last.findings if one["kind"] == "silent"]
        silent = "both" if self.text in (STREAMS, ROSTER) else "in4"
        assert all(one["source"] == silent for one in found)
        wanted = ClosedSoFar(str(self.home / "out"), {"hour": str(second)}, "hour INT, x INT")
        list(wanted.read())
        return {
            "page": stands == f"waits for {silent}",
            "alert": self.bell.holds,
            "finding": bool(found),
            "explain": bool(inspect(self.home / "state").silent),
            "metrics": bool(re.search(r'source_behind\{source="(in4|both)"\} 1', self.metrics())),
            "wait": bool(wanted.missing),
        }


@contextmanager
def feed(session: InProcessSession, home: Path, monkeypatch: pytest.MonkeyPatch, *how: Any) -> Iterator[Feed]:
    for module in (lateness, run_view):
        monkeypatch.setattr(module, "datetime", Clock)
    monkeypatch.setattr(lateness, "WAITING_EVERY_SECONDS", 0.0)
    monkeypatch.setattr(Execution, "clock", staticmethod(Clock.now))
    monkeypatch.setattr(Clock, "moment", BEGIN)
    found = Feed(session, home, *how)
    try:
        yield found
    finally:
        found.handle.stop()


def seconds(feed: Feed, *these: int, both: bool = False) -> dict[str, list[int]]:
    """The seconds, of these, in which each speaks; the first sender closes an hour in each; if `both`, both do."""
    spoke: dict[str, list[int]] = {}
    for second in these:
        Clock.moment = BEGIN + timedelta(seconds=second)
        for name in ("in1", "in4") if both else ("in1",):
            feed.hour(name, second)
        for who, speaks in feed.said(second).items():
            spoke.setdefault(who, []).extend([second] if speaks else [])
    return spoke


SILENT = ("page", "alert", "finding", "explain", "metrics")


def test_all_say_in_the_same_second_that_a_sender_is_silent_and_that_it_sends_again(
    in_process: InProcessSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with feed(in_process, tmp_path, monkeypatch) as one:
        assert not any(seconds(one, 0, 1, both=True).values())
        spoke = seconds(one, 2, 9, 10, 11, 12)
        assert {who: spoke[who] for who in SILENT} == {who: [11, 12] for who in SILENT}
        assert spoke["wait"] == [2, 9, 10, 11, 12]
        for hour in spoke["wait"]:
            one.hour("in4", hour)
        assert not any(seconds(one, 13, 14, both=True).values())


@pytest.mark.parametrize("how", ["left out", "ended", "wildcards"])
def test_nobody_calls_a_sender_silent_that_has_closed_everything(
    in_process: InProcessSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    with feed(in_process, tmp_path, monkeypatch) as one:
        seconds(one, 0, both=True)
        spoke = seconds(one, 12)
        assert [spoke[who] for who in SILENT] == [[12]] * len(SILENT)
        if how == "left out":
            state = folder_at(tmp_path / "state")
            last = made_whole(CommitLog(state.below("commits")).records())
            declare(state, plan_of(state), last, "in4", "<*, *>", None, "ann")
        else:
            one.send("in4", "</s>" if how == "ended" else "<p:r><hour>*</hour></p:r>")
        # Rows of the first sender wait for its own punctuation meanwhile.
        one.send("in1", "<r><hour>99</hour><v>1</v></r>")
        assert not any(seconds(one, 13, 24, 40).values())


def test_a_sender_that_has_sent_no_punctuation_is_silent_since_the_run_began(
    in_process: InProcessSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However late the rows came that wait for it; a finding needs a tuple of its own, and begins with it."""
    with feed(in_process, tmp_path, monkeypatch) as one:
        spoke = seconds(one, 3, 9, 10, 11)
        assert {who: spoke[who] for who in SILENT if spoke[who]} == {"page": [10, 11], "alert": [10, 11]}
        one.send("in4", "<r><hour>3</hour><v>1</v></r>")
        assert seconds(one, 13, 22, 23)["finding"] == [23]


def test_all_say_that_a_sender_whose_rule_closes_its_hours_is_behind_the_other(
    in_process: InProcessSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the slice in which the other has passed it; the alert counts from its last punctuation, a second before."""
    with feed(in_process, tmp_path, monkeypatch, BY_RULE) as one:
        assert not any(seconds(one, 0, 1, both=True).values())
        spoke = seconds(one, 2, 10, 11, 12, 13)
        expected = {who: [12, 13] for who in SILENT} | {"alert": [11, 12, 13]}
        assert {who: spoke[who] for who in SILENT} == expected
        (finding,) = one.view.totals.last.findings
        since = "in1 has closed more, and this source nothing for 5 slices, 11 s, while results wait for it"
        assert finding["what"] == since
        assert f"noticed in in4: {since}" in in_words(inspect(tmp_path / "state"))
        one.hour("in4", 13)
        assert not any(seconds(one, 14, both=True).values())
        assert [one["kind"] for one in one.view.totals.last.findings] == ["sends again"]


@pytest.mark.parametrize("text", [STREAMS, ROSTER], ids=["streams", "roster"])
def test_all_say_that_one_of_several_senders_of_a_table_is_behind(
    in_process: InProcessSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    with feed(in_process, tmp_path, monkeypatch, text) as one:
        assert not any(seconds(one, 0, 1, both=True).values())
        spoke = seconds(one, 2, 10, 11, 12, 13)
        assert {who: spoke[who] for who in SILENT if who != "alert"} == {
            who: [12, 13] for who in SILENT if who != "alert"
        }
        (finding,) = one.view.totals.last.findings
        assert finding["what"].startswith(
            "some of its senders have closed more, and this source nothing for 5 slices, 11 s"
        )
        (cause,) = one.view.waiting()["causes"]
        assert [sender.split()[0] for sender in cause["senders"]] == ["in4" if text == ROSTER else "in4.xml"]
        one.hour("in4", 13)
        assert not any(seconds(one, 14, both=True).values())


def test_without_warn_after_a_sender_may_pause_three_times_as_long_as_it_has_before(
    in_process: InProcessSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with feed(in_process, tmp_path, monkeypatch, BY_RULE, None) as one:
        seconds(one, 0, both=True)
        spoke = seconds(one, 1, 60, 61, 101)
        assert [spoke[who] for who in SILENT if who != "alert"] == [[61, 101]] * 4
        assert not any(seconds(one, 102, both=True).values())
        spoke = seconds(one, 103, 400, 403, 404)
        assert [spoke[who] for who in SILENT if who != "alert"] == [[403, 404]] * 4


@pytest.mark.parametrize("how", ["left out", "ended", "alone"])
def test_nobody_calls_a_sender_behind_that_has_closed_everything_or_is_the_only_one(
    in_process: InProcessSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    alone = BY_RULE.replace("(SELECT * FROM in1 UNION ALL SELECT * FROM in4)", "in4")
    with feed(in_process, tmp_path, monkeypatch, alone if how == "alone" else BY_RULE) as one:
        seconds(one, 0, both=True)
        if how == "left out":
            state = folder_at(tmp_path / "state")
            last = made_whole(CommitLog(state.below("commits")).records())
            declare(state, plan_of(state), last, "in4", "<*, *>", None, "ann")
        elif how == "ended":
            one.send("in4", "</s>")
        spoke = seconds(one, 13, 24, 100)
        assert not any(spoke[who] for who in SILENT if (who, how) != ("alert", "alone"))


@pytest.mark.rest
@pytest.mark.parametrize("query", [QUERY, BY_RULE])
def test_the_rules_for_prometheus_fire_for_a_silent_source_and_for_no_other(
    in_process: InProcessSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """A run of half an hour in which one of two sources stops after ten minutes is scraped once a minute."""
    if (promtool := which("promtool")) is None:
        pytest.skip("promtool is not installed: .ci/setup tested installs it")
    monkeypatch.setattr(sys.modules[__name__], "BEGIN", datetime(1970, 1, 1, tzinfo=UTC))
    series: dict[str, list[float]] = {}
    with feed(in_process, tmp_path, monkeypatch, query, "PT5M") as one:
        for minute in range(31):
            seconds(one, 60 * minute, both=minute < 10)
            for family in text_string_to_metric_families(one.metrics()):  # type: ignore[no-untyped-call]
                for name, labels, value, *_ in family.samples:
                    key = f"{name}{{{','.join(f'{label}={json.dumps(text)}' for label, text in labels.items())}}}"
                    series.setdefault(key, [0.0] * minute).append(value)
    (rules,) = [block.text for block in blocks("xmlstream/manual/operations.md") if "- alert:" in block.text]
    (tmp_path / "rules.yml").write_text(rules)
    silent = {"exp_labels": {"source": "in4"}}
    fires = {"SourceSilent": (9, 21), "SourceBehind": (9, 16)}
    tests = [
        {"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": [silent] if late else []}
        for alert, minutes in fires.items()
        for late, minute in enumerate(minutes)
    ]
    tests += [
        {"eval_time": "30m", "alertname": each, "exp_alerts": []} for each in ("NoSlice", "QueryClosed", "NotExact")
    ]
    given = [
        {"series": key, "values": " ".join(map(str, values))} for key, values in series.items() if "bucket" not in key
    ]
    case = {"rule_files": ["rules.yml"], "tests": [{"interval": "1m", "input_series": given, "alert_rule_test": tests}]}
    (tmp_path / "test.yml").write_text(json.dumps(case))
    done = subprocess.run(
        [promtool, "test", "rules", str(tmp_path / "test.yml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_a_rule_says_counts_as_sent_what_is_declared_does_not_and_the_last_time_never_goes_back() -> None:
    progress = SourceProgress({"in4": Schema.parse("hour INT")}, {"punctuate": "in4"}, BEGIN)

    def committed(number: int, sent: int | None, said: int, *declared: Declared) -> timedelta:
        activity = Activity() if sent is None else Activity((sent, BEGIN + timedelta(seconds=sent)))
        report = replace(BEFORE, operators=(OperatorReport("punctuate", 1, 1, 0, 0, 0, said, 0),))
        time = BEGIN + timedelta(seconds=number)
        progress.add(Commit(number, time=time, report=report, last_activity={"in4": activity}, declared=declared))
        return progress.silent("in4", BEGIN + timedelta(seconds=10))

    assert [committed(*each).seconds for each in ((1, None, 0), (2, 2, 0), (5, 2, 1), (6, 2, 0))] == [10, 8, 5, 5]
    note = Declared("k", "in4", "<3>", "ann", BEGIN)
    assert committed(7, 2, 1, note).seconds == 5
    assert committed(8, 2, 1, note).seconds == 2
