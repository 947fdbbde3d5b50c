"""Alerts: a command runs once when a condition begins, and once when it has ended; what it does never ends the run."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from xmlstream.dataclasses import replace
from xmlstream.operators.state.state_schema import OperatorRecord
from xmlstream.operators.storage.store import Folder
from xmlstream.punct_ns.errors import UsageError
from xmlstream.runtime import alerts
from xmlstream.runtime.alerts import Alert, Alerts
from xmlstream.runtime.checkpoint.commit_log import Commit
from xmlstream.runtime.checkpoint.slice_report import BEFORE, Activity, OperatorReport
from xmlstream.runtime.watching import Watched
from xmlstream.sql import script

BEGIN = datetime(2026, 11, 22, 19, tzinfo=UTC)
ROOT = script.read(
    "CREATE TABLE in4 (hour INT) USING punctuated_xml OPTIONS (path 'in4.xml', rowTag 't', schemes 'hour');"
    "SELECT hour, count(*) AS n FROM in4 GROUP BY hour"
).sketch()
NOTE = 'echo "$XMLSTREAM_STATE $XMLSTREAM_SOURCE $XMLSTREAM_VALUE $XMLSTREAM_ALERT" >> {}'


class Run:
    """A run whose time the test sets, and the lines that the command has written."""

    def __init__(self, home: Path, *texts: str, command: str = NOTE) -> None:
        self.home, self.now = home, BEGIN
        self.alerts = Alerts(texts, command.format(home / "lines"), lambda: self.now)
        self.alerts.ended(None)  # the test looks by itself
        self.alerts.begun(Watched(ROOT, True, Folder(home), Folder(home)))

    def after(self, seconds: float, record: Commit | None = None) -> list[str]:
        self.now = BEGIN + timedelta(seconds=seconds)
        if record is not None:
            self.alerts.committed(record)
        self.alerts.look()
        lines = self.home / "lines"
        return lines.read_text().splitlines() if lines.exists() else []


def sent(seconds: float, kept: int = 0, closed: str = "<0>", end: Mapping[str, Any] | None = None) -> Commit:
    """A commit, with the time at which in4 has sent a punctuation last, and what it has closed."""
    activity = Activity(last_sent=(0, BEGIN + timedelta(seconds=seconds)))
    states = {"in4": OperatorRecord(sets={"added": [closed]})}
    report = replace(BEFORE, operators=(OperatorReport("group_by", 1, 0, kept, 0, 0, 0, 0),))
    return Commit(0, end or {}, last_activity={"in4": activity}, report=report, operators=states)


def test_a_silence_is_noted_when_it_begins_and_when_it_ends_once_each(tmp_path: Path) -> None:
    run = Run(tmp_path, "in4 silent 10m")
    assert run.after(599) == []
    first = ["begun in4 600 in4 silent 10m"]
    assert run.after(600) == first
    assert run.after(900, sent(200)) == first
    both = [*first, "ended in4 50 in4 silent 10m"]
    assert run.after(950, sent(900)) == both
    assert run.after(1400) == both
    assert run.after(1600) == [*both, "begun in4 700 in4 silent 10m"]


def test_what_is_kept_is_compared(tmp_path: Path) -> None:
    run = Run(tmp_path, "GROUP_BY kept > 1_000")
    assert run.after(1, sent(1, kept=1000)) == []
    first = ["begun group_by 1001 GROUP_BY kept > 1_000"]
    assert run.after(2, sent(2, kept=1001)) == first
    assert run.after(3, sent(3, kept=0)) == [*first, "ended group_by 0 GROUP_BY kept > 1_000"]


def test_a_source_that_was_left_out_or_has_ended_is_not_silent(tmp_path: Path) -> None:
    assert Run(tmp_path, "in4 silent 10s").after(100, sent(0, closed="<*>")) == []
    assert Run(tmp_path, "in4 silent 10s").after(100, sent(0, end={"in4": {"closed": True}})) == []
    assert len(Run(tmp_path, "in4 silent 10s").after(100, sent(0, closed="<[1,2]>"))) == 1


def test_a_command_that_fails_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.WARNING, "xmlstream.alerts")
    Run(tmp_path, "in4 silent 10s", command="exit 3").after(100)
    assert caplog.messages == ["the command of the alert 'in4 silent 10s' has failed, with exit code 3"]
    monkeypatch.setattr(alerts, "COMMAND_SECONDS", 0.05)
    Run(tmp_path, "in4 silent 10s", command="sleep 1000").after(100)
    assert caplog.messages[1].endswith("took longer than 0 s, and was killed")


@pytest.mark.parametrize("text", ["in4", "in4 silent", "in4 silent soon", "in4 kept 5", "in4 kept > few"])
def test_what_is_no_alert_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Alert.parse(text)


def test_an_alert_names_a_source_or_an_operator(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="names nothing of the plan") as raised:
        Run(tmp_path, "in5 silent 10m")
    assert raised.value.hint == "there are in4"
