"""XML to XML through a selection that selects everything: 1,000,000 reports of one document, beside plain Spark.

    make bench, or .ci/java .venv/bin/pytest --capture=no tests/benchmarks/pass_through.py

Plain Spark reads the document line by line, since its generator writes a report a line: so both cores can parse it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.benchmarks import asking, plain_spark
from tests.benchmarks.measuring import Measure, rates, scaled, take_turns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EVERYTHING = "currtmp > -300"
BYTES_PER_SLICE = "128m"

_REPORT = re.compile(
    rb"<report>\s*<sid>(\w+)</sid>\s*<hour>(\d+)</hour>\s*<min>(\d+)</min>\s*<currtmp>([\d.]+)</currtmp>\s*</report>"
)


def reports(output: Path) -> list[tuple[bytes, int, int, float]]:
    """The tuples of a result, in order of their values."""
    found = []
    for path in output.glob("*.xml"):
        found += _REPORT.findall(path.read_bytes())
    return sorted((sid, int(hour), int(minute), float(temperature)) for sid, hour, minute, temperature in found)


def test_pass_through(
    spark: SparkSession, bench: list[Measure], warehouse: Path, small_warehouse: Path, scratch: Path
) -> None:
    ours, theirs = scratch / "passed", scratch / "plain-passed"
    plain = plain_spark.session(spark)

    def our_run(directory: Path = warehouse) -> float:
        options = {"rowTag": "tempdata", "schemes": "hour", "maxBytesPerSlice": BYTES_PER_SLICE}
        source = xs.read(spark, directory / "sensor1.xml", schema=plain_spark.REPORT, **options)
        return asking.run(source.where(EVERYTHING), ours, "report").seconds

    def plain_run(directory: Path = warehouse) -> float:
        by_line = plain_spark.stream(plain, directory / "sensor1.xml", "tempdata", plain_spark.REPORT, by_line=True)
        return plain_spark.run(by_line.where(EVERYTHING), theirs, "report").seconds

    our_run(small_warehouse)
    plain_run(small_warehouse)
    times = take_turns({"ours": our_run, "plain": plain_run}, within=60)
    hours = scaled(1000, at_least=10)
    passed = reports(ours)
    assert len(passed) == 1000 * hours
    assert passed == reports(theirs)

    rate = {name: rates(len(passed), each) for name, each in times.items()}
    name = "pass-through with a selection, XML to XML, 1,000,000 tuples"
    bench.append(Measure(name, "tuples/s", "more", rate["ours"], "plain Spark", rate["plain"], 500_000, 4))
