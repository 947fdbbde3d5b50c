"""Eager and lazy purge of a join of three streams, where tuples are kept for one slice, for ten, and for sixty.

    .ci/java .venv/bin/pytest --capture=no tests/benchmarks/purges.py

Three joins of the same streams take turns, slice by slice: one purges eagerly, the others in every second, fourth or
tenth slice. What counts is the processor's time of
this process and of Java together, since that of the clock differs with whatever else there is.
"""

from __future__ import annotations

import os
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks.measuring import Measure
from tests.harness.running import Items, Running
from xmlstream.operators.joins.punctuation_graph import Equality
from xmlstream.operators.joins.purge_strategy import PurgeStrategy
from xmlstream.operators.multiway_join import MultiwayJoin
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

INPUTS = [Schema.parse("a1 INT, b1 INT"), Schema.parse("b2 INT, c2 INT"), Schema.parse("c3 INT, a3 INT")]
RING: tuple[Equality, ...] = (((0, "b1"), (1, "b2")), ((1, "c2"), (2, "c3")), ((2, "a3"), (0, "a1")))
SAID = ("b1", "c2", "a3")
WARM, SLICES = 6, 20


@pytest.mark.parametrize(
    ("tuples", "kept_for", "ways"), [(2000, 1, (1, 2, 10)), (200, 10, (1, 4, 10)), (100, 60, (1, 2, 10))]
)
def test_purges(
    spark: SparkSession, bench: list[Measure], scratch: Path, tuples: int, kept_for: int, ways: tuple[int, ...]
) -> None:
    place = scratch / f"purges-{tuples}"
    joins = {n: Running(spark, place / str(n), MultiwayJoin(3, RING, None, PurgeStrategy(n)), *INPUTS) for n in ways}
    used: dict[int, list[float]] = {n: [] for n in ways}
    kept: dict[int, list[int]] = {n: [] for n in ways}
    out = dict.fromkeys(ways, 0)
    for number in range(kept_for - 1, kept_for + WARM + SLICES):
        came = slice_of(number, tuples, kept_for)
        for n in ways[:: -1 if number % 2 else 1]:
            began = processor_time()
            done = joins[n].slice(*came)
            out[n] += len(done.tuples)
            if number >= kept_for + WARM:
                used[n].append(1000 * (processor_time() - began))
                kept[n].append(done.kept)
    assert len(set(out.values())) == 1
    for n in ways:
        note = f"{fmean(kept[n]):,.0f} kept, eagerly {fmean(kept[1]):,.0f}"
        name = f"join of three, 3 × {tuples} tuples a slice, kept for {kept_for}: purge in every {n}."
        bench.append(Measure(name, "ms of CPU", "less", [fmean(used[n])], "eager", [fmean(used[1])], note=note))


def slice_of(number: int, tuples: int, kept_for: int) -> list[Items]:
    """What comes in a slice, and closes what came so long before; the first one brings all that is to be kept."""
    first = 0 if number < kept_for else number * tuples
    rows = [(key, key) for key in range(first, (number + 1) * tuples)]
    closed = f"[{(number - kept_for) * tuples},{(number - kept_for + 1) * tuples - 1}]"
    return [
        (rows, [Punctuation.of(schema, {name: closed})] if number >= kept_for else [])
        for schema, name in zip(INPUTS, SAID, strict=True)
    ]


def processor_time() -> float:
    """Seconds that this process and all below it have worked."""
    below: dict[int, list[int]] = {}
    worked: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        process = int(path.parent.name)
        below.setdefault(int(fields[1]), []).append(process)
        worked[process] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    total, left = 0.0, [os.getpid()]
    while left:
        process = left.pop()
        total += worked.get(process, 0.0)
        left += below.get(process, [])
    return total
