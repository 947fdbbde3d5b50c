"""What the least slice of all costs, with the way in which Spark writes its log here, and with its usual one.

    .ci/java .venv/bin/pytest --capture=no tests/benchmarks/least_slice.py

Spark's usual way has the local file system start processes, some twenty in every slice.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.benchmarks import asking
from tests.benchmarks.measuring import Measure, few_rounds, take_turns
from xmlstream.punct_ns.xml_form import PUNCT_NS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SLICES = 12

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
USUAL = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"


def test_the_least_slice(spark: SparkSession, bench: list[Measure], scratch: Path) -> None:
    nights = scratch / "nights"
    nights.mkdir()
    for number in range(SLICES):
        text = f"<s xmlns:p='{PUNCT_NS}'><t><a>{number}</a></t><p:t><a>{number}</a></p:t></s>"
        (nights / f"{number:03d}.xml").write_text(text, encoding="utf-8")
    read = xs.read(spark, nights, "a INT", rowTag="t", schemes="a", maxFilesPerSlice="1")
    ours = str(spark.conf.get(MANAGER))

    def slices(manager: str) -> float:
        spark.conf.set(MANAGER, manager)
        done = asking.run(read.where("a > 0"), scratch / "least")
        return median(done.between_commits[2:])

    try:
        slices(ours)
        took = take_turns({"ours": lambda: slices(ours), "usual": lambda: slices(USUAL)}, few_rounds(4))
    finally:
        spark.conf.set(MANAGER, ours)
    name = "least slice"
    note = f"the median of {SLICES - 3} is a round; from commit to commit"
    bench.append(
        Measure(name, "s", "less", took["ours"], "Spark's usual way to write its log", took["usual"], note=note)
    )
