"""Tasks of a slice, staged in this process and in others: the same rows, the same errors, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from xmlstream.punct_ns.errors import MalformedInput, XmlStreamError
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.slices.sources_reader import SourcesReader
from xmlstream.sources.xml.slices.staging import LocalStager
from xmlstream.sources.xml.slices.staging_process import StagingProcess
from xmlstream.sources.xml.splits.byte_ranges import ByteRange


def source(path: Path) -> Reading:
    given = {"path": str(path), "rowTag": "row", "schema": "h INT", "maxBytesPerPartition": "8k"}
    declared = SourceOptions.parse({**given, "follow": "false", "close": "true"})
    return Reading.of(declared, stage=str(path.parent / "stage"), name="a")


def document(path: Path, rows: int) -> Path:
    path.write_text(f"<r>{''.join(f'<row><h>{number}</h></row>' for number in range(rows))}</r>")
    return path


def staged(options: Reading, stager: LocalStager, slices: int = 1) -> list[int]:
    """The values that some slices over the whole document have staged."""
    reader, found = SourcesReader([options]), list[int]()
    start = reader.initial()
    tasks = reader.tasks(start, reader.end(start))
    for number in range(slices):
        stage = Path(options.stage) / str(number)
        ranges = stager.begin(tasks, stage).rows()
        assert {Path(each.path).parent for each in ranges if each.path} == {stage}
        found += [row["h"] for each in ranges if each.path for row in pq.read_table(each.path).to_pylist()]
    return found


def test_with_processes_and_without_the_rows_are_the_same_and_in_order(tmp_path: Path) -> None:
    options = source(document(tmp_path / "a.xml", 9000))
    for cores, worth, has_workers in ((1, 0.0, False), (3, 60.0, False), (3, 0.0, True)):
        stager = LocalStager([options], cores, worth)
        assert staged(options, stager, slices=3) == [*range(9000)] * 3
        if has_workers:
            deadline = time.monotonic() + 300
            while not stager.works_ahead and time.monotonic() < deadline:
                time.sleep(0.01)
        assert stager.works_ahead == has_workers
        stager.close()


def test_a_slice_is_staged_ahead_while_this_process_does_something_else(tmp_path: Path) -> None:
    options = source(document(tmp_path / "a.xml", 9000))
    stager = LocalStager([options], 2, 0.0)
    assert len(staged(options, stager)) == 9000
    reader = SourcesReader([options])
    start = reader.initial()
    ahead = stager.begin(reader.tasks(start, reader.end(start)), tmp_path / "stage" / "1")
    deadline = time.monotonic() + 300
    while not all(job.done.done() for job in ahead._jobs) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert all(job.done.done() for job in ahead._jobs), "without a call of rows"
    assert sum(range_.tuples for range_ in ahead.rows()) == 9000
    stager.close()


@pytest.mark.parametrize("worth", [60.0, 0.0])
def test_an_error_keeps_its_class_message_place_and_hint(tmp_path: Path, worth: float) -> None:
    options = source(path := document(tmp_path / "a.xml", 3000))
    reader, stager = SourcesReader([options]), LocalStager([options], 2, worth)
    start = reader.initial()
    tasks = reader.tasks(start, reader.end(start))
    assert stager.begin(tasks, tmp_path / "stage").rows()
    path.unlink()
    with pytest.raises(XmlStreamError) as here:
        stager.begin(tasks, tmp_path / "stage").rows()
    process = StagingProcess()
    assert process.is_ready()
    with pytest.raises(XmlStreamError) as there:
        process.stage(tasks[0].ranges, options)
    process.end()
    stager.close()
    met = [(type(each.value), each.value.what, each.value.where, each.value.hint) for each in (here, there)]
    assert met[0] == met[1]


def test_all_parts_of_an_error_come_out_of_a_process(tmp_path: Path) -> None:
    from xmlstream.sources.xml.slices.staging_process import _portable

    error = MalformedInput("no number", document="a.xml", line=3, column=4, position=5, hint="mend it")
    found = _portable(error)
    assert isinstance(found, MalformedInput)
    assert (found.line, found.column, found.where) == (3, 4, error.where)


def test_a_process_that_is_killed_is_told_in_words(tmp_path: Path) -> None:
    options = source(document(tmp_path / "a.xml", 9))
    process = StagingProcess()
    assert process.is_ready()
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(XmlStreamError, match="has ended by signal 9"):
        process.stage([ByteRange(Document.at(tmp_path / "a.xml"), 0, 0, 9, ends="root")], options)
    process.end()


PROGRAM = """
import os, signal
from xmlstream.sources.xml.slices.staging_process import StagingProcess
process = StagingProcess()
assert process.is_ready()
print(process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_processes_end_with_the_one_that_started_them_and_run_no_script_of_the_user(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)  # without a guard: to run it again would print again
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False)
    (pid,) = map(int, ran.stdout.split())
    deadline = time.monotonic() + 300
    while _lives(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _lives(pid)


def _lives(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
