"""What it takes to plan one query, and many in one file: CPU seconds of Python and Java, from a fresh session.

    make bench, or .ci/java .venv/bin/pytest --capture=no tests/benchmarks/planning.py

The queries are those of `data/auctions` over the three streams of the auction, as often as it takes; no job is run.
Beside 21 of them: one, which pays for what Java loads and compiles once.

And what it takes to judge them before they run, without Spark: the slowest of all queries in `data`, read, optimized
and judged with remedies; and a join of 200 inputs in a ring.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.benchmarks.measuring import Measure, take_turns

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MANY = 21

PLANNED = """
import os, sys, time
from pathlib import Path
from xmlstream.sql import script
from xmlstream.optimizer.rules import optimized
from xmlstream.session.spark_session import open_spark_session
spark = open_spark_session("local[2]", {})
(java,) = [entry for entry in Path("/proc").glob("[0-9]*/stat") if " (java) " in (text := entry.read_text())
           and text.rsplit(")", 1)[1].split()[1] == str(os.getpid())]
def seconds():
    ticks = java.read_text().rsplit(")", 1)[1].split()[11:13]
    return time.process_time() + sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
before = seconds()
optimized(script.read(sys.stdin.read(), {"AUCTIONS": "in"}).plan(spark))
print(seconds() - before)
spark.stop()
"""


def queries(number: int) -> str:
    """A file of so many INSERTs."""
    from sqlglot import exp

    from xmlstream.sql.query_text import QueryText
    from xmlstream.sql.statements import parse_statements

    tables: dict[str, str] = {}
    asked: list[str] = []
    for path in sorted(Path("data/auctions").glob("nexmark_q*.sql")):
        text = path.read_text(encoding="utf-8")
        declared = {}
        for statement in parse_statements(QueryText.of(text)):
            written = text[statement.start : statement.end]
            if isinstance(statement.tree, exp.Create):
                table = statement.tree.find(exp.Table)
                assert table is not None
                declared[table.name] = written
            elif all(tables.setdefault(name, table) == table for name, table in declared.items()):
                asked.append(written)
    parts = [*tables.values()]
    for n in range(number):
        parts.append(f"CREATE TABLE out{n} USING punctuated_xml OPTIONS (path 'out/{n}', rowTag 'row')")
        parts.append(f"INSERT INTO out{n} {asked[n % len(asked)]}")
    return ";\n".join(parts)


def cpu(text: str) -> float:
    done = subprocess.run([sys.executable, "-c", PLANNED], input=text, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def test_planning(bench: list[Measure]) -> None:
    times = take_turns({str(n): partial(cpu, queries(n)) for n in (1, MANY)}, within=120)
    name = f"planning, {MANY} queries of one file, CPU"
    bench.append(Measure(name, "s", "less", times[str(MANY)], "one query", times["1"], 4))


def judging(work: Callable[[], object]) -> float:
    """Milliseconds of CPU that it takes."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def slowest() -> float:
    """The most that any query takes."""
    from xmlstream.optimizer.rules import optimized
    from xmlstream.safety.words import unsafe
    from xmlstream.sql.script import read

    def judge(text: str) -> None:
        unsafe(optimized(read(text, dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "in")).sketch()))

    texts = [path.read_text(encoding="utf-8") for path in sorted(Path("data").rglob("*.sql"))]
    return max(judging(partial(judge, text)) for text in texts)


def test_judging(bench: list[Measure]) -> None:
    from tests.samples.rings import ring
    from xmlstream.safety.verdicts import judged

    slowest()  # loads what is loaded once
    root = ring(200)
    times = take_turns({"query": slowest, "ring": lambda: judging(partial(judged, root, follow=True))}, within=60)
    bench.append(Measure("judging the slowest query of data, CPU", "ms", "less", times["query"], target=100))
    bench.append(Measure("judging a join of 200 inputs in a ring, CPU", "ms", "less", times["ring"], target=50))
