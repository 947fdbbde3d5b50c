"""What a second core brings: the warehouse query with local[1] and local[2], of two documents, and of a large one.

    make bench, or .ci/java .venv/bin/pytest --capture=no tests/benchmarks/cores.py

Each master in a process of its own; they take turns. `local[1]` bounds Spark's tasks, not what Java does beside them.
Last, what the machine's second processor is worth: libxml2 on both documents, side by side.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.benchmarks.apart import Apart
from tests.benchmarks.measuring import Measure, rates, scaled, seconds, take_turns

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BYTES_PER_SLICE = "128m"
"""All that there is of a document."""

HOURS = scaled(1000, at_least=10)


def tokenized(paths: Sequence[Path], at_once: int) -> None:
    """Reads documents by libxml2, each in a process of its own, so many side by side."""
    command = "import sys, pathlib; from tests.benchmarks.libxml2 import tokenize; tokenize(pathlib.Path(sys.argv[1]))"
    for first in range(0, len(paths), at_once):
        some = paths[first : first + at_once]
        started = [subprocess.Popen([sys.executable, "-c", command, str(path)]) for path in some]
        assert [process.wait() for process in started] == [0] * len(started)


def test_cores(bench: list[Measure], warehouse: Path, small_warehouse: Path) -> None:
    inputs = {"two documents": ("warehouse", warehouse), "a large document": ("hottest", warehouse / "sensor1.xml")}
    with Apart("local[1]") as one, Apart("local[2]") as two:
        for process in (one, two):
            process.ask("warehouse", small_warehouse)

        def run(process: Apart, name: str) -> float:
            answer = process.ask(*inputs[name], BYTES_PER_SLICE)
            assert answer["tuples"] == HOURS
            return answer["seconds"]

        contenders = {(n, name): partial(run, p, name) for name in inputs for n, p in ((1, one), (2, two))}
        times = take_turns(contenders, within=55)
    documents = sorted(warehouse.glob("*.xml"))
    floor = take_turns({n: partial(seconds, partial(tokenized, documents, n)) for n in (1, 2)})
    for name, tuples in (("two documents", 2000 * HOURS), ("a large document", 1000 * HOURS)):
        with_one, with_two = (rates(tuples, times[cores, name]) for cores in (1, 2))
        what = f"local[2], warehouse query of {name}"
        bench.append(Measure(what, "tuples/s", "more", with_two, "local[1]", with_one, None, 1.6))
    with_one, with_two = (rates(2000 * HOURS, floor[at_once]) for at_once in (1, 2))
    name = "two processors, libxml2 on two documents side by side"
    note = "what the machine gives, which may be less than two: processors may be threads of one core"
    bench.append(Measure(name, "tuples/s", "more", with_two, "one after the other", with_one, note=note))
