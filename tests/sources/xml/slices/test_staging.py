"""Tasks of a slice, staged in this process and in others: the same rows, the same errors, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.harness.nights import AT_NIGHT, SEED
from xmlstream.operators.storage.shared_files import rows_of
from xmlstream.punct_ns.errors import MalformedInput, XmlStreamError
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.item_templates import ItemTemplate
from xmlstream.sources.xml.slices.micro_batches import ReadTask
from xmlstream.sources.xml.slices.sources_reader import SourcesReader
from xmlstream.sources.xml.slices.staging import LocalStager
from xmlstream.sources.xml.slices.staging_process import StagingProcess
from xmlstream.sources.xml.splits.byte_ranges import ByteRange


def source(path: Path, **more: str) -> Reading:
    given = {"path": str(path), "rowTag": "row", "schema": "h INT", "maxBytesPerPartition": "8k", **more}
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
        assert {Path(each.path).parent for each in ranges if isinstance(each.path, str)} == {stage}
        found += [row["h"] for each in ranges if each.path is not None for row in rows_of(each.path).to_pylist()]
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


def test_few_tuples_that_this_process_computes_are_in_no_file(tmp_path: Path) -> None:
    """More of them are, all together, and those with columns of columns."""
    items = "".join(f"<row><h>{number}</h><of><n>1</n></of></row>" for number in range(900))
    (tmp_path / "a.xml").write_text(f"<r>{items}</r>")
    tasks = [ReadTask((ByteRange(Document.at(tmp_path / "a.xml"), 0, 0, len(items) + 7, ends="root"),))]
    plain, nested = source(tmp_path), source(tmp_path, schema="h INT, of STRUCT<n: INT>")
    staged_in = {
        (held, options): LocalStager([options], cores=1, held=held).begin(tasks, tmp_path / "stage").rows()[0].path
        for options in (plain, nested)
        for held in (0, 899, 900)
    }
    assert {key for key, staged in staged_in.items() if isinstance(staged, pa.Table)} == {(900, plain)}
    for staged in staged_in.values():
        assert staged is not None
        assert rows_of(staged, ["h"]).to_pydict() == {"h": list(range(900))}
    assert len(list((tmp_path / "stage").iterdir())) == 5


ITEMS = 4000  # so many that it pays to learn their templates
SHAPES = (
    "<row><h>{}</h></row>",
    "<row><x/><h>{}</h></row>",
    '<row a="1">\n<h>{}</h></row>',
    "<row><h>{}</h><y>z</y></row>",
)


def shaped(path: Path, shapes: list[str], root: str = "r") -> list[int]:
    """Writes documents whose items have one shape each; returns their values."""
    numbers = iter(range(len(shapes) * ITEMS))
    for number, shape in enumerate(shapes):
        items = "".join(shape.format(next(numbers)) for _ in range(ITEMS))
        (path / f"{number:03}.xml").write_text(f"<{root.format(number)}>{items}</r>")
    return list(range(len(shapes) * ITEMS))


def staged_one_by_one(options: Reading, path: Path, *, anew: bool = False) -> tuple[list[Any], list[int], LocalStager]:
    """What each document has as a slice of its own: values, numbers of punctuations, of bad items; what each learnt."""
    found, learnt, stager = list[Any](), list[int](), LocalStager([options], cores=1)
    learn, count = ItemTemplate.learn, [0]

    def counted(*given: Any, **named: Any) -> ItemTemplate | None:
        count[0] += 1
        return learn(*given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ItemTemplate, "learn", counted)
        for number, document in enumerate(sorted(path.glob("*.xml"))):
            range_ = ByteRange(Document.at(document), 0, 0, document.stat().st_size, ends="root", namespaces=("",))
            count[0] = 0
            stager = LocalStager([options], cores=1) if anew else stager
            (row,) = stager.begin([ReadTask((range_,))], path / f"stage-{number % 2}").rows()
            values = [] if row.path is None else rows_of(row.path, ["h"])["h"].to_pylist()
            found.append((values, len(row.punctuations or ()), [bad.position for bad in row.bad]))
            learnt.append(count[0])
    return found, learnt, stager


def values_of(found: list[Any]) -> list[int]:
    return [value for values, _, _ in found for value in values]


def test_templates_are_learnt_once_and_anew_when_the_shape_of_documents_changes(tmp_path: Path) -> None:
    shapes = [SHAPES[number] for number in (0, 0, 0, 1, 1, 1, 0, 0, 2, 2, 3, 3, 0, 0)]
    expected = shaped(tmp_path, shapes)
    found, learnt, _ = staged_one_by_one(source(tmp_path), tmp_path)
    assert values_of(found) == expected
    assert learnt[0] > 0
    assert learnt[1] == learnt[2] == learnt[5] == learnt[7] == learnt[9] == learnt[11] == learnt[13] == 0


def test_what_was_learnt_does_not_grow_with_shapes_nor_with_the_elements_around_items(tmp_path: Path) -> None:
    shapes = [f"<row><n{number}/><h>{{}}</h></row>" for number in range(12)]
    expected = shaped(tmp_path, shapes, "r day='{}'")
    found, learnt, stager = staged_one_by_one(source(tmp_path), tmp_path)
    assert values_of(found) == expected
    assert all(learnt)
    (kept,) = [each for each in stager._learnt.values() if each is not None]
    assert sum(len(known.templates) for known in kept.templates.values()) <= 2


ODD = (
    *SHAPES,
    "<row a='1'><h>{}</h></row>",
    "<row><h><![CDATA[{}]]></h></row>",
    "<row><!-- {0} --><h>{0}</h></row>",
    '<p:row xmlns:p="urn:p"><h>{}</h></p:row>',
    "<row>{0}<h>\n{0} </h></row>",
    "<other>{0}</other><row><h>{0}</h></row>",
    "<row><h>{}</h></row><p:row xmlns:p='http://www.cse.ogi.edu/dot/niagara/punct'><h>-1</h></p:row>",
)


@pytest.mark.parametrize("seed", range(SEED, SEED + (100 if AT_NIGHT else 4)))
def test_what_was_learnt_changes_no_row(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    shapes = []
    for _ in range(8):
        mixed = random.choices(ODD, k=random.choice([1, 1, 2, 3]))
        rare = random.choice([0, 0, 0.03])
        shapes.append((mixed, rare))
    for at, (mixed, rare) in enumerate(shapes):
        items = "".join(
            (random.choice(ODD) if random.random() < rare else mixed[value % len(mixed)]).format(value)
            for value in range(ITEMS)
        )
        root = random.choice(["r", "r", f'r day="{at}"'])
        (tmp_path / f"{at:03}.xml").write_text(f"<{root}>{items}</r>")
    reading = source(tmp_path, mode=random.choice(["FAILFAST", "PERMISSIVE", "DROPMALFORMED"]), ungrammatical="drop")
    found, _, _ = staged_one_by_one(reading, tmp_path)
    expected, _, _ = staged_one_by_one(reading, tmp_path, anew=True)
    assert found == expected
