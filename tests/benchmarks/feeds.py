"""What a feed costs in process: documents of ten tuples, a quiet directory, a cold start, wide rows, pairs of ranges.

    make bench, or .venv/bin/pytest --capture=no tests/benchmarks/feeds.py

Processor time of a whole process and its children: `xmlstream run --engine duckdb`, with what starts and ends it.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import pytest
from lxml import etree

from tests.benchmarks.apart import resident
from tests.benchmarks.measuring import Measure, few_rounds, scaled, take_turns
from xmlstream.sources.generators import sensors

pytestmark = [pytest.mark.slow]

DOCUMENTS, EACH = scaled(2_000, at_least=100), 10
ROOT = "<readings xmlns:punct='http://www.cse.ogi.edu/dot/niagara/punct'>"
DATA = Path(__file__).parents[2] / "data"
QUIET_SECONDS = 60.0
TABLE = "CREATE TABLE r ({columns}) USING punctuated_xml OPTIONS (path '{path}', rowTag 'r'{options});\n"


def xmlstream(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "xmlstream", *arguments]


def processor_seconds(query: str, scratch: Path, *definitions: str) -> float:
    """The processor time of a cold run of a query, given as a text or as a file of `data`."""
    file = DATA / query if query.endswith(".sql") else scratch / "query.sql"
    if file.parent == scratch:
        file.write_text(query, encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = xmlstream("run", str(file), "--engine", "duckdb", "-o", str(scratch / "out"), "--overwrite", *definitions)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_documents_of_ten_tuples(bench: list[Measure], scratch: Path) -> None:
    many, few = scratch / "many", scratch / "few"
    tuples = "".join(f"<r><id>{number}</id><t>{number % 7}</t></r>" for number in range(EACH))
    for directory, documents in ((many, DOCUMENTS), (few, EACH)):
        directory.mkdir()
        for number in range(documents):
            (directory / f"{number:06}.xml").write_text(f"{ROOT}{tuples}</readings>\n", encoding="utf-8")

    def loop() -> float:
        began = time.process_time()
        for path in many.iterdir():
            for _, element in etree.iterparse(path, tag="r"):
                element.clear()
        return (time.process_time() - began) / DOCUMENTS * 1000

    def ours() -> float:
        query = TABLE + "SELECT t, count(*) AS n FROM r GROUP BY t;"
        took = [
            processor_seconds(query.format(columns="id INT, t INT", path=directory, options=""), scratch)
            for directory in (many, few)
        ]
        return (took[0] - took[1]) / (DOCUMENTS - EACH) * 1000

    times = take_turns({"ours": ours, "loop": loop}, few_rounds(3))
    name = "a document of ten tuples, of 2,000, in process"
    bench.append(Measure(name, "ms", "less", times["ours"], "lxml's iterparse", times["loop"], target=0.3))


def test_a_quiet_directory(bench: list[Measure], scratch: Path) -> None:
    directory = scratch / "quiet"
    directory.mkdir()
    for number in range(DOCUMENTS):
        (directory / f"{number:06}.xml").write_text(f"{ROOT}<r><id>{number}</id></r></readings>\n", encoding="utf-8")
    file = scratch / "quiet.sql"
    text = TABLE.format(columns="id INT", path=directory, options="") + "SELECT id FROM r;"
    file.write_text(text, encoding="utf-8")
    out = scratch / "quiet-out"
    command = xmlstream("run", str(file), "--engine", "duckdb", "--follow", "-o", str(out))
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not list(out.glob("slice-*.xml")):
            time.sleep(0.2)
        time.sleep(5)
        before, began = _processor(process.pid), time.monotonic()
        time.sleep(QUIET_SECONDS)
        part = (_processor(process.pid) - before) / (time.monotonic() - began)
    finally:
        process.terminate()
        process.wait(60)
    bench.append(Measure("a quiet minute, part of a core", "", "less", [part], target=0.01))


LYING = scaled(100_000, at_least=2_000)


def test_documents_that_lie_there_read(bench: list[Measure], scratch: Path) -> None:
    """What each costs a process that follows: the one that has read it, and the one that goes on after a restart."""
    read, restarted, seconds = list[float](), list[float](), list[float]()
    for many in (LYING // 100, LYING):
        directory, out = scratch / f"lying-{many}", scratch / f"lying-{many}-out"
        directory.mkdir()
        for number in range(many):
            text = f"{ROOT}<r><id>{number}</id></r></readings>\n"
            (directory / f"report-{number:08}.xml").write_text(text, encoding="utf-8")
        file = scratch / "lying.sql"
        columns, options = "id INT", ", maxFilesPerSlice '2000'"
        query = TABLE.format(columns=columns, path=directory, options=options) + "SELECT id FROM r WHERE id < 0;"
        file.write_text(query, encoding="utf-8")
        follows = xmlstream(
            "run", str(file), "--engine", "duckdb", "--follow", "--checkpoint", f"{out}.state", "-o", str(out)
        )
        for found in (read, restarted):
            with subprocess.Popen(follows, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                used = _once_quiet(process.pid)
                found.append(_proportional(process.pid))
                process.terminate()
        seconds.append(used)
    name, few = f"a document that lies there, read, {LYING:,} of them", LYING - LYING // 100
    each = {"in the process that read it": read, "in one that goes on": restarted}
    for what, (least, most) in each.items():
        bench.append(Measure(f"{name}, {what}", "bytes of PSS", "less", [(most - least) / few]))
    note = "processor time to the first quiet second, beyond that with a hundredth of them"
    bench.append(Measure(f"{name}, a restart", "s more", "less", [seconds[1] - seconds[0]], note=note))


def _once_quiet(process: int) -> float:
    """The processor time of a process once it has used little of it for some seconds."""
    time.sleep(3)
    before, used = 0.0, _processor(process)
    while used - before > 0.3:
        time.sleep(6)
        before, used = used, _processor(process)
    return used


def _proportional(process: int) -> int:
    """The memory of a process, of shared pages its part, in bytes."""
    for line in Path(f"/proc/{process}/smaps_rollup").read_text(encoding="utf-8").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) << 10
    raise AssertionError(f"the system says nothing of the memory of process {process}")


def _processor(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_cold_start(bench: list[Measure], scratch: Path) -> None:
    directory = scratch / "start"
    sensors.write_sensors(directory, 2, 6, 1, 60, seed=7)
    run = partial(processor_seconds, "warehouse.sql", scratch, "-D", f"SENSORS={directory}", "--row-tag", "hottest")
    reads = [sys.executable, "-c", "import duckdb, lxml.etree, pyarrow.parquet, sqlglot"]

    def imports() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(reads, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    times = take_turns({"ours": run, "imports": imports}, few_rounds(5))
    name = "a cold run of 720 tuples in process, processor time"
    bench.append(Measure(name, "s", "less", times["ours"], "imports of its libraries alone", times["imports"], 0.9))
    out = str(scratch / "out")
    command = xmlstream("run", str(DATA / "warehouse.sql"), "--engine", "duckdb", "-o", out, "--overwrite")
    command += ["-D", f"SENSORS={directory}", "--row-tag", "hottest"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, resident(process.pid) / 2**20)
            time.sleep(0.005)
    bench.append(Measure("a cold run of 720 tuples in process, memory", "MiB", "less", [peak], target=165))


def test_wide_rows(bench: list[Measure], scratch: Path) -> None:
    def rows(columns: int) -> Callable[[], float]:
        path = scratch / f"wide-{columns}.xml"
        row = "".join(f"<c{n}>{n}</c{n}>" for n in range(columns))
        path.write_text(f"{ROOT}{f'<r>{row}</r>' * 300}</readings>", encoding="utf-8")
        names = ", ".join(f"c{n} INT" for n in range(columns))
        query = TABLE.format(columns=names, path=path, options="") + "SELECT * FROM r WHERE c1 >= 0;"
        return lambda: processor_seconds(query, scratch) / columns * 1000

    times = take_turns({columns: rows(columns) for columns in (400, 3_000)}, few_rounds(3))
    name = "a column of rows of 3,000"
    bench.append(Measure(name, "ms", "less", times[3_000], "of rows of 400", times[400], ratio_target=1.2))


@pytest.mark.parametrize("type_", ["INT", "STRING"])
def test_punctuations_of_two_ranges_are_checked(bench: list[Measure], scratch: Path, type_: str) -> None:
    drawn = Random(3)
    path = scratch / f"ranges-{type_}.xml"
    items = []
    for number in range(500):
        low, high = number * 7, number * 7 + drawn.randrange(1, 9)
        first, last = (f"{low}", f"{high}") if type_ == "INT" else (f"k{low:05}", f"k{high:05}")
        items.append(f"<punct:r><a>[{first},{last}]</a><b>[{number % 20},{number % 20 + 3}]</b></punct:r>")
        items.append(f"<r><a>{last}x</a><b>40</b></r>" if type_ == "STRING" else f"<r><a>{high}</a><b>40</b></r>")
    path.write_text(f"{ROOT}{''.join(items)}</readings>", encoding="utf-8")
    query = TABLE.format(columns=f"a {type_}, b INT", path=path, options=", schemes 'a, b'") + "SELECT a, b FROM r;"
    file = scratch / "check.sql"
    file.write_text(query, encoding="utf-8")

    def check() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            xmlstream("check", str(path), "--row-tag", "r", "--schema", f"a {type_}, b INT"),
            check=True,
            capture_output=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    times = take_turns({"check": check}, few_rounds(3))
    name = f"`check` of 500 punctuations of two ranges, {type_}"
    bench.append(Measure(name, "s", "less", times["check"], target=2))
