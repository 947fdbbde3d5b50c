"""What a run waits for, as its page shows it: one input withholds what rows of several results need; how it ends."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.xmlstream.monitor.test_page import seen, wait_for
from tests.xmlstream.monitor.test_watched_run import asked, until
from xmlstream.diagnosis import so_far
from xmlstream.monitor import lateness, run_view
from xmlstream.monitor.monitor import recorded_view
from xmlstream.operators.storage.locks import DirectoryLocks, is_locked
from xmlstream.punct_ns.errors import InputError
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime import progress

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from xmlstream.session.engines import InProcessSession

INPUTS = ("in1", "in2", "in3", "in4")
SENSORS = 5

UNION = "(SELECT hour, v FROM {} UNION ALL SELECT hour, v FROM in4)"
QUERIES = {
    "a": f"SELECT hour, max(v) AS x FROM {UNION.format('in1')} GROUP BY hour",
    "b": "SELECT in2.hour, in2.sid, in4.v FROM in2 LEFT JOIN in4 ON in2.hour = in4.hour AND in2.sid = in4.sid",
    "c": "SELECT hour, count(*) AS x FROM in3 GROUP BY hour",
    "d": f"SELECT hour, avg(v) AS x FROM {UNION.format('in3')} GROUP BY hour",
}
COLUMNS = {"b": "hour INT, sid STRING, v DOUBLE", "c": "hour INT, x BIGINT"}


def script(directory: Path, *results: str) -> str:
    """A file of SQL with some of the queries, over inputs in a directory."""
    made = "USING punctuated_xml OPTIONS"
    tables = [
        f"CREATE TABLE {name} (hour INT, sid STRING, v DOUBLE) {made}"
        f" (path '{directory / name}.xml', rowTag 'r', schemes 'hour');"
        for name in INPUTS
    ]
    for name in results:
        columns = COLUMNS.get(name, "hour INT, x DOUBLE")
        tables.append(f"CREATE TABLE {name} ({columns}) {made} (path '{directory / 'out' / name}', rowTag 't');")
    return "\n".join([*tables, *(f"INSERT INTO {name} {QUERIES[name]};" for name in results)])


class Inputs:
    """The inputs of the queries: documents that grow by hours."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in INPUTS:
            (directory / f"{name}.xml").write_text(f'<s xmlns:p="{PUNCT_NS}">', encoding="utf-8")

    def send(self, first: int, last: int, *names: str) -> None:
        """All reports of some hours, each closed."""
        for name in names:
            with (self.directory / f"{name}.xml").open("a", encoding="utf-8") as file:
                for hour in range(first, last + 1):
                    reports = (f"<r><hour>{hour}</hour><sid>S{n}</sid><v>{n}</v></r>" for n in range(SENSORS))
                    file.write(f"{''.join(reports)}<p:r><hour>{hour}</hour><sid>*</sid><v>*</v></p:r>")

    def end(self) -> None:
        for name in INPUTS:
            with (self.directory / f"{name}.xml").open("a", encoding="utf-8") as file:
                file.write("</s>")


@contextmanager
def running(session: InProcessSession, inputs: Inputs, *results: str) -> Iterator[tuple[Any, Callable[[str], Any]]]:
    """The queries, following their inputs, and a function that returns what a path of their monitor does."""
    inserts = xs.inserts_from_sql(session, script(inputs.directory, *results))
    handle: Any = xs.start(inserts, inputs.directory / "state", monitor=True)
    try:
        handle.processAllAvailable()
        yield handle, lambda path: json.loads(asked(handle.monitor, path))
    finally:
        handle.stop()


def said(cause: dict[str, Any]) -> tuple[str, int, list[str], list[str]]:
    return cause["source"], cause["rows"], cause["results"], cause["missing"]


def shown(path: Path) -> tuple[str, str, str, str]:
    """How the page of a checkpoint shows that its run stands."""
    view = recorded_view(path)
    stands = view.waiting()["stands"]
    return view.state, stands["tone"], stands["text"], stands["word"]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page waits no time before it shows that an input is behind, and looks at each commit."""
    monkeypatch.setattr(progress, "LAGS_AFTER", timedelta())
    monkeypatch.setattr(lateness, "WAITING_EVERY_SECONDS", 0.0)


@pytest.mark.usefixtures("at_once")
def test_an_input_that_withholds_what_three_results_need_is_one_cause(
    in_process: InProcessSession, tmp_path: Path
) -> None:
    inputs = Inputs(tmp_path)
    inputs.send(0, 2, *INPUTS)
    inputs.send(3, 9, "in1", "in2", "in3")
    with running(in_process, inputs, *QUERIES) as (handle, asks):
        waiting = asks("waiting.json")
        (cause,) = waiting["causes"]
        # Of 7 hours, a and d keep a group each, b the reports of in2.
        assert said(cause) == ("in4", 7 + 7 * SENSORS + 7, ["a", "b", "d"], ["<[3,9], *, *>"])
        assert (cause["behind"], cause["lacks"], cause["is_last"]) == (True, ["hour 3 to 9"], True)
        since = {"word": "since", "time": cause["since"]["time"]}
        assert waiting["stands"] == {"tone": "late", "text": "waits for in4", **since}
        assert {one["name"]: (one["tuples_out"], one["waits"]) for one in waiting["results"]} == {
            "a": (3, ["in4"]), "b": (3 * SENSORS, ["in4"]), "c": (10, []), "d": (3, ["in4"]),
        }  # fmt: skip
        inputs.send(3, 9, "in4")
        handle.processAllAvailable()
        waiting = asks("waiting.json")
        assert waiting["causes"] == []
        assert waiting["stands"] == {"tone": "good", "text": "running", "word": "", "time": ""}
        assert [one["waits"] for one in waiting["results"]] == [[], [], [], []]


@pytest.mark.usefixtures("at_once")
def test_rows_that_wait_for_the_next_punctuation_of_all_inputs_are_no_reason_to_worry(
    in_process: InProcessSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = Inputs(tmp_path)
    inputs.send(0, 2, *INPUTS)
    for name in INPUTS:
        with (tmp_path / f"{name}.xml").open("a", encoding="utf-8") as file:
            file.write("<r><hour>3</hour><sid>S0</sid><v>1</v></r>")
    with running(in_process, inputs, "a", "c") as (_, asks):
        waiting = asks("waiting.json")
        assert sorted(map(said, waiting["causes"])) == [
            ("in1", 1, ["a"], ["<3, *, *>"]), ("in3", 1, ["c"], ["<3, *, *>"]), ("in4", 1, ["a"], ["<3, *, *>"]),
        ]  # fmt: skip
        assert not any(cause["behind"] for cause in waiting["causes"])
        assert waiting["stands"]["text"] == "running"
        # Until the inputs are silent for much longer than they have ever been.
        monkeypatch.setattr(progress, "SPAN", timedelta())
        assert asks("waiting.json")["stands"]["text"].startswith("waits for ")
        monkeypatch.setattr(progress, "PAUSES", 10**6)
        inputs.send(3, 3, *INPUTS)
        # The first slice may have read some of the documents only.
        until(lambda: asks("healthz")["slices"] > 1 and asks("waiting.json")["causes"] == [])
        inputs.send(4, 4, "in1")
        until(lambda: asks("waiting.json")["causes"] != [])
        assert [cause["source"] for cause in asks("waiting.json")["causes"] if cause["behind"]] == ["in4"]


@pytest.mark.usefixtures("at_once")
def test_the_page_says_first_what_is_waited_for_and_at_last_that_the_run_was_stopped(
    in_process: InProcessSession, browser: Browser, tmp_path: Path
) -> None:
    inputs = Inputs(tmp_path)
    inputs.send(0, 2, *INPUTS)
    inputs.send(3, 9, "in1", "in2", "in3")
    page = browser.new_page()
    problems: list[str] = []
    page.on("console", lambda said: problems.append(said.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    with running(in_process, inputs, *QUERIES) as (handle, _):
        page.goto(handle.monitor)
        wait_for(page, "#state.late", "waits for in4 since ")
        late, cause = page.get_attribute("#icon", "href"), page.inner_text("#held h3")
        assert re.fullmatch(r"in4, since \d\d:\d\d: 14 groups, 35 tuples of the left side of a, b, d", cause)
        assert page.locator("#held .cause").count() == 1
        assert page.locator("#cards dd.large").all_inner_texts()[::2] == ["1 of 4 results", "in4"]
        assert page.locator(".chip").all_inner_texts() == ["○ a", "○ b", "● c", "○ d"]
        assert page.locator('#plan [data-operator="in4"] .late-edge').count() == 1
    wait_for(page, "#state.plain", "stopped at ")
    wait_for(page, "#cards", "14 groups, 35 tuples of the left side still wait")
    assert page.get_attribute("#icon", "href") != late
    assert problems == []
    page.close()


def test_operators_are_named_by_the_results_that_they_belong_to(in_process: InProcessSession, tmp_path: Path) -> None:
    inputs = Inputs(tmp_path)
    with running(in_process, inputs, "a", "b", "d") as (handle, asks):
        kept = [one["name"] for one in asks("plan.json")["operators"] if one["keeps"]]
        with urllib.request.urlopen(f"{handle.monitor}events", timeout=300) as answer:
            (state,) = (json.loads(line[6:]) for line in [next(line for line in answer if line.startswith(b"data: "))])
    assert kept == ["group_by", "join", "group_by-2"]
    assert [state["labels"][name] for name in kept] == ["a", "b", "d"]
    assert state["labels"]["merge-2"] == "d merge"
    assert "in1" not in state["labels"]


def test_a_recorded_run_is_shown_as_stopped_died_or_closed(in_process: InProcessSession, tmp_path: Path) -> None:
    inputs, state = Inputs(tmp_path), tmp_path / "state"
    inputs.send(0, 2, *INPUTS)
    with running(in_process, inputs, "a", "c"):
        assert shown(state) == ("recorded", "good", "running in another process", "")
    assert shown(state) == ("ended", "plain", "stopped", "at")
    before = recorded_view(state).totals.time
    assert recorded_view(state).waiting()["stands"]["time"] > before
    (tmp_path / "run.sql").write_text(script(tmp_path, "a", "c"), encoding="utf-8")
    command = [sys.executable, "-m", "xmlstream", "run", str(tmp_path / "run.sql"), "--engine", "duckdb", "--follow"]
    with subprocess.Popen([*command, "--checkpoint", str(state)], stderr=subprocess.DEVNULL) as process:
        inputs.send(3, 3, *INPUTS)
        until(lambda: recorded_view(state).totals.time > before)
        assert shown(state) == ("recorded", "good", "running in another process", "")
        process.send_signal(signal.SIGKILL)
    view = recorded_view(state)
    assert shown(state) == ("died", "bad", "died", "after")
    assert view.waiting()["stands"]["time"] == view.totals.time
    inputs.end()
    inserts = xs.inserts_from_sql(in_process, script(tmp_path, "a", "c"))
    assert xs.run(inserts, state).closed
    assert shown(state) == ("ended", "good", "closed: all of its input was read", "at")
    end = recorded_view(state).waiting()["stands"]
    xs.run(inserts, state)  # there is nothing to do
    assert recorded_view(state).waiting()["stands"] == end


def test_a_recorded_run_is_shown_as_failed_with_the_reason(in_process: InProcessSession, tmp_path: Path) -> None:
    inputs = Inputs(tmp_path)
    inputs.send(0, 2, *INPUTS)
    with (tmp_path / "in1.xml").open("a", encoding="utf-8") as file:
        file.write("<r><hour>no hour</hour><sid>S0</sid><v>1</v></r>")
    with pytest.raises(InputError), running(in_process, inputs, "a"):
        pass
    state, tone, text, word = shown(tmp_path / "state")
    assert (state, tone, word) == ("failed", "bad", "at")
    assert text.startswith("failed: ")
    assert "no hour" in text


def test_a_run_that_takes_a_directory_waits_for_a_page_that_looks_whether_it_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_locked(tmp_path)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            os.close(descriptor)

    monkeypatch.setattr("xmlstream.operators.storage.locks.time", SimpleNamespace(sleep=wait))
    locks = DirectoryLocks()
    locks.take(tmp_path)
    assert len(waits) == 2
    assert is_locked(tmp_path)
    locks.release()
    assert not is_locked(tmp_path)


def look_at(page: Page, section: str) -> None:
    page.evaluate(f"document.getElementById('{section}').scrollIntoView({{ behavior: 'instant' }})")


def test_answers_so_far_are_on_the_page_while_somebody_looks_at_them(
    browser: Browser, in_process: InProcessSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[object] = []
    beside = so_far.computed_beside

    def counted(checkpoint: Any) -> Any:
        computed.append(checkpoint)
        return beside(checkpoint)

    monkeypatch.setattr(run_view, "computed_beside", counted)
    monkeypatch.setattr(run_view, "SO_FAR_EVERY_SECONDS", 0.0)
    monkeypatch.setattr(run_view, "SO_FAR_PAUSES", 0)
    inputs = Inputs(tmp_path)
    inputs.send(0, 2, *INPUTS)
    inputs.send(3, 4, "in1", "in2", "in3")
    with (
        running(in_process, inputs, *QUERIES) as (handle, asks),
        seen(browser, SimpleNamespace(where=handle.monitor), wide=380) as page,  # type: ignore[arg-type]
    ):
        look_at(page, "so-far")
        wait_for(page, "#so-far .result", "from 2 open groups of group_by")
        look_at(page, "noticed")
        assert page.evaluate("document.getElementById('so-far').getBoundingClientRect().bottom") < 0
        before = len(computed)
        inputs.send(5, 5, "in1", "in2", "in3")
        handle.processAllAvailable()
        wait_for(page, "#pulse", f"slice {handle.lastProgress['batchId']} took")
        assert len(computed) == before
        look_at(page, "so-far")
        wait_for(page, "#so-far .result", "from 3 open groups of group_by")
        wait_for(page, "#so-far .result", "from 15 undecided tuples of the left side of join")
        assert page.locator("#so-far .result").nth(2).locator("tr").count() == 0
        rows = page.locator("#so-far .result").first.locator("tr").evaluate_all("all => all.map(one => one.innerText)")
        assert [row.split() for row in rows] == [["hour", "x"], ["3", "4.0"], ["4", "4.0"], ["5", "4.0"]]
        assert page.evaluate("document.documentElement.scrollWidth") == 380
        # Nothing has come since: nothing is computed again.
        before = len(computed)
        assert asks("so-far.json") == asks("so-far.json")
        assert len(computed) == before


def test_where_they_are_not_computed_for_the_page_it_names_the_command(
    in_process: InProcessSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = Inputs(tmp_path)
    inputs.send(0, 2, *INPUTS)
    with running(in_process, inputs, "a") as (_, asks):
        monkeypatch.setattr(run_view, "MOST_KEPT", -1)
        assert asks("so-far.json")["what"] == "0 tuples are kept: xmlstream so-far prints them from the checkpoint"
    with running(in_process, inputs, "a") as (_, asks):
        monkeypatch.setattr(run_view, "MOST_KEPT", 1000)
        monkeypatch.setattr(so_far, "find_spec", lambda name: None)
        assert asks("so-far.json")["what"].startswith("Spark is needed to compute them: ")
