"""A run seen from its checkpoint: what its last commits say, what it waits for, and what another process commits."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.harness.sealed_files import seal
from tests.xmlstream.monitor.test_closed_map import lacking
from tests.xmlstream.monitor.test_monitor import ROOT, record
from xmlstream.cli.commands import app
from xmlstream.monitor.monitor import keep_reading, recorded_view
from xmlstream.operators.storage.records import CHECKPOINT_FORMAT
from xmlstream.plan.written_plan import PLAN_FILE, encoded
from xmlstream.punct_ns.errors import StateError, UsageError
from xmlstream.runtime.checkpoint.commit_log import CommitLog
from xmlstream.runtime.checkpoint.same_query import QueryRecord
from xmlstream.sink.target import OutputRecord


def commit(directory: Path, number: int, *, closed: bool = False, **sets: str) -> None:
    """Commits a slice of the warehouse query, the first one whole."""
    made = record(number, **sets)
    CommitLog(directory / "commits").create(
        replace(made, report=replace(made.report, closed=closed), whole=number == 3)
    )


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    found = tmp_path / "state"
    found.mkdir()
    seal(found / PLAN_FILE, encoded(ROOT))
    outputs = tuple(OutputRecord(output=output, form="xml") for output in ("-", str(tmp_path / "out")))
    seal(found / "query.json", QueryRecord(CHECKPOINT_FORMAT, "UTC", (), outputs).json())
    commit(found, 3, sensor1="<*, [,5], *, *>")
    commit(found, 4, sensor2="<*, [,4], *, *>")
    return found


def test_it_has_the_plan_the_last_slices_and_what_is_closed(checkpoint: Path, tmp_path: Path) -> None:
    letters = tmp_path / "out" / "_dead_letters"
    letters.mkdir(parents=True)
    (letters / "sensor1-000000003.jsonl").write_text('{"n": 1}\n', encoding="utf-8")
    view = recorded_view(checkpoint)
    assert (view.state, view.name, view.totals.slices) == ("died", "state", 2)
    operators: Any = view.plan()["operators"]
    assert [one["name"] for one in operators][:2] == ["sensor1", "project"]
    assert lacking(view.closed()) == {"sensor2": "5"}
    assert view.letters() == [{"n": 1}]


def test_a_metrics_file_has_the_slices_from_before(checkpoint: Path, tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text("".join(json.dumps(record(n).report.json()) + "\n" for n in range(5)), encoding="utf-8")
    assert recorded_view(checkpoint, metrics).totals.slices == 5
    with pytest.raises(UsageError, match="none cannot be read: no such file"):
        recorded_view(checkpoint, tmp_path / "none")


def test_what_another_process_commits_is_seen(checkpoint: Path) -> None:
    view, until = recorded_view(checkpoint), threading.Event()
    reader = threading.Thread(target=keep_reading, args=(checkpoint, view, until))
    reader.start()
    commit(checkpoint, 5, sensor2="<*, 5, *, *>", closed=True)
    reader.join(300)
    until.set()
    assert not reader.is_alive()
    assert (view.totals.slices, lacking(view.closed()), view.state) == (3, {}, "ended")


def test_a_run_whose_input_has_ended_is_told_as_ended(checkpoint: Path) -> None:
    commit(checkpoint, 5, closed=True)
    assert recorded_view(checkpoint).state == "ended"


def test_nothing_is_written(checkpoint: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in checkpoint.rglob("*")}
    view = recorded_view(checkpoint)
    view.waiting()
    view.answer({"hour": "5"})
    time.sleep(0.01)
    assert {path: path.stat().st_mtime_ns for path in checkpoint.rglob("*")} == before


def test_what_is_no_checkpoint_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(StateError, match="there is no checkpoint"):
        recorded_view(tmp_path)
    (checkpoint / PLAN_FILE).unlink()
    with pytest.raises(StateError, match="has no plan"):
        recorded_view(checkpoint)


def test_the_command_refuses_the_same(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["monitor", "--checkpoint", str(tmp_path)])
    assert isinstance(done.exception, StateError)
