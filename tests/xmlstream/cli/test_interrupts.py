"""Ctrl-C, SIGTERM and their like: how the command ends, and that nothing of it is left.

At every moment and in every way: `tests.campaigns.signals`, out of the default run.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.campaigns.signals import QUERY, Running, documents, processes
from tests.harness.nights import AT_NIGHT
from xmlstream.cli import interrupts
from xmlstream.sources.generators.sensors import write_sensors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import InProcessSession

CODES = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


def started(program: str) -> subprocess.Popen[str]:
    """A Python that has said that it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize(("number", "code"), CODES)
def test_before_anything_is_open_a_signal_ends_the_command_without_a_word(number: signal.Signals, code: int) -> None:
    process = started(
        """
import time
from xmlstream.cli import interrupts

interrupts.deadly()
print("ready", flush=True)
time.sleep(600)
"""
    )
    process.send_signal(number)
    assert process.communicate(timeout=300) == ("", "")
    assert process.returncode == code


def test_an_interrupt_that_was_lost_on_the_way_comes_again() -> None:
    process = started(
        """
import time
from xmlstream.cli import interrupts

with interrupts.raised():
    print("ready", flush=True)
    try:
        time.sleep(600)
    except BaseException:
        time.sleep(600)
"""
    )
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=300)[1].endswith("xmlstream.cli.interrupts.Interrupted: 15\n")


@pytest.mark.parametrize(("number", "code"), CODES)
def test_a_command_without_spark_says_that_it_was_interrupted(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    run = Running(["generate", "sensors", "--rate", 1, "--out", tmp_path / "out"], tmp_path)
    while not any(path.stat().st_size for path in tmp_path.glob("out/*")):
        assert run.process.poll() is None
        time.sleep(0.05)
    run.send(number, to_group=True)
    ended = run.ended()
    assert (ended.code, ended.said, ended.left) == (code, "interrupted\n", ())


def test_what_is_sent_twice_at_once_is_one_press(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([5.0, 5.01, 7.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    asked = interrupts.Interrupts()
    for number, at_once in (signal.SIGTERM, False), (signal.SIGTERM, False), (signal.SIGINT, True):
        asked.note(number)
        assert (asked.number, asked.at_once) == (signal.SIGTERM, at_once)


@pytest.mark.parametrize("seconds", [0.0, 0.6] if not AT_NIGHT else [step / 10 for step in range(40)])
def test_a_run_that_follows_its_input_and_is_interrupted_at_its_start_ends_with_success(
    seconds: float, tmp_path: Path
) -> None:
    (tmp_path / "query.sql").write_text(
        "CREATE TABLE s (a INT) USING punctuated_xml OPTIONS (path '${IN}', rowTag 'r', schemes 'a'); SELECT a FROM s"
    )
    (tmp_path / "in").mkdir()
    given = ["-D", f"IN={tmp_path / 'in'}", "-o", tmp_path / "out", "--engine", "duckdb", "--follow"]
    run = Running(["run", tmp_path / "query.sql", *given], tmp_path)
    run.wait_until_it_listens()
    time.sleep(seconds)
    run.send(signal.SIGTERM, to_group=True)
    assert run.ended().faults(0) == []


@pytest.fixture
def command(tmp_path: Path) -> list[object]:
    # Slices for half a minute: this process may be slow to interrupt it.
    write_sensors(tmp_path / "in", sensors=2, hours=20, punctuations_per_hour=2, reports_per_hour=40, seed=3)
    (tmp_path / "query.sql").write_text(QUERY)
    files = ["-o", tmp_path / "out", "--checkpoint", tmp_path / "state"]
    return ["run", tmp_path / "query.sql", "-D", f"SENSORS={tmp_path / 'in'}", "--master", "local[2]", *files]


@pytest.mark.spark
def test_nothing_is_left_of_a_run_that_is_ended_while_spark_starts(command: list[object], tmp_path: Path) -> None:
    run = Running(command, tmp_path)
    while not any("java" in line for line in processes(run.mark).values()):
        assert run.process.poll() is None
        time.sleep(0.05)
    run.send(signal.SIGTERM, to_group=True)
    ended = run.ended()
    assert ended.faults(143) == []
    assert ended.said.startswith("starting Spark\n")
    assert "interrupted before the end of the input\n" in ended.said


@pytest.mark.rest
@pytest.mark.spark
@pytest.mark.slow
def test_ctrl_c_ends_a_run_after_its_slice_and_the_next_goes_on(
    in_process: InProcessSession, command: list[object], tmp_path: Path
) -> None:
    """The next run is one in process: what Spark has kept, either engine goes on with."""
    run = Running(command, tmp_path)
    while not documents(tmp_path / "out"):
        assert run.process.poll() is None
        time.sleep(0.05)
    run.send(signal.SIGINT, to_group=True)
    assert run.ended().faults(130) == []
    begun = documents(tmp_path / "out")
    asked = xs.from_sql(in_process, QUERY, {"SENSORS": str(tmp_path / "in")})
    asked.run(tmp_path / "out", tmp_path / "state")
    asked.run(tmp_path / "whole", tmp_path / "whole-state")
    whole = documents(tmp_path / "whole")
    assert documents(tmp_path / "out") == whole
    assert begun.items() <= whole.items()


@pytest.mark.spark
def test_a_job_that_is_stopped_leaves_no_traceback_of_an_accumulator(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    server = spark.sparkContext._accumulatorServer
    try:
        raise EOFError
    except EOFError:
        server.handle_error(None, None)  # type: ignore[arg-type]
    assert capsys.readouterr() == ("", "")
