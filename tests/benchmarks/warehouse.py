"""The warehouse query (union, distinct, group-by) over 2,000,000 reports, beside plain Spark and what is below us.

As anyone would ask it, beside a plain Spark with a `dropDuplicates` and one without, which a maximum does not need and
our optimizer leaves out; and with the distinct done as it is written.

    make bench, or .ci/java .venv/bin/pytest --capture=no tests/benchmarks/warehouse.py

A backlog, taken in one large slice by us and by plain Spark. Of plain Spark's answer the
last hour is missing, since nothing tells it that it is over.
"""

from __future__ import annotations

import shutil
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks import asking, plain_spark
from tests.benchmarks.libxml2 import tokenize
from tests.benchmarks.measuring import Measure, rates, scaled, seconds, take_turns
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.slices.sources_reader import SourcesReader
from xmlstream.sources.xml.slices.staging import LocalStager
from xmlstream.sources.xml.spark.data_source import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BYTES_PER_SLICE = "128m"
"""A backlog is taken in large slices: here all that there is of a document."""


def highest(output: Path) -> dict[int, float]:
    """The highest temperature of each hour, as a result says it."""
    found = [(int(row["hour"]), float(row["maxtemp"])) for row in asking.rows(output, "hottest")]
    assert len(dict(found)) == len(found), "an hour is answered once"
    return dict(found)


def alone(spark: SparkSession, directory: Path) -> float:
    """The data source into nothing: both documents parsed to rows."""
    register(spark)
    one, two = (
        spark.readStream.format("punctuated_xml")
        .options(path=str(directory / f"sensor{number}.xml"), rowTag="tempdata", schema=plain_spark.REPORT)
        .option("maxBytesPerSlice", BYTES_PER_SLICE)
        .load()
        for number in (1, 2)
    )
    return plain_spark.run(one.unionAll(two), None).seconds


def staged(directory: Path, scratch: Path) -> float:
    """The sources as the runner has them read: both documents parsed, checked and written down as Parquet."""
    stage = scratch / "stage"
    stage.mkdir()
    sources = [
        Reading.of(
            SourceOptions.parse(
                {
                    "path": str(directory / f"sensor{number}.xml"),
                    "rowTag": "tempdata",
                    "schema": plain_spark.REPORT,
                    "maxBytesPerSlice": BYTES_PER_SLICE,
                }
            ),
            stage=str(stage),
            name=f"sensor{number}",
            document_log=str(scratch / "documents" / str(number)),
        )
        for number in (1, 2)
    ]
    began = time.perf_counter()
    reader, stager = SourcesReader(sources), LocalStager(sources)
    reader.settle()
    at = reader.initial()
    while (end := reader.end(at)) != at:
        stager.begin(reader.tasks(at, end), stage).rows()
        at = end
    stager.close()
    took = time.perf_counter() - began
    shutil.rmtree(stage)
    shutil.rmtree(scratch / "documents", ignore_errors=True)
    return took


def test_warehouse(
    spark: SparkSession, bench: list[Measure], warehouse: Path, small_warehouse: Path, scratch: Path
) -> None:
    ours, theirs = scratch / "hottest", scratch / "plain-hottest"
    plain = plain_spark.session(spark)
    documents = sorted(warehouse.glob("*.xml"))
    slices: dict[bool, list[float]] = {False: [], True: []}
    our_answers: list[dict[int, float]] = []
    plain_answers: list[dict[int, float]] = []

    def our_run(*, as_written: bool) -> float:
        query = asking.warehouse(spark, warehouse, BYTES_PER_SLICE)
        done = asking.run(query, ours, "hottest", as_written=as_written)
        slices[as_written].append(done.slice_seconds)
        our_answers.append(highest(ours))
        return done.seconds

    def plain_run(directory: Path = warehouse, *, all_reports: bool = False) -> float:
        query = plain_spark.warehouse(plain, directory, all_reports=all_reports)
        took = plain_spark.run(query, theirs, "hottest").seconds
        plain_answers.append(highest(theirs))
        return took

    for as_written in (False, True):
        asking.run(asking.warehouse(spark, small_warehouse), ours, "hottest", as_written=as_written)
    for all_reports in (False, True):
        plain_run(small_warehouse, all_reports=all_reports)
    times = take_turns(
        {
            "as written": partial(our_run, as_written=True),
            "ours": partial(our_run, as_written=False),
            "plain": plain_run,
            "plain, all": partial(plain_run, all_reports=True),
            "alone": lambda: alone(spark, warehouse),
            "staged": lambda: staged(warehouse, scratch),
            "tokenizer": lambda: seconds(lambda: [*map(tokenize, documents)]),
        },
        few={"alone": 2, "staged": 3, "plain, all": 3},
        within=120,
    )
    hours = scaled(1000, at_least=10)
    right = our_answers[0]
    assert right.keys() == set(range(hours))
    assert all(answer == right for answer in our_answers)
    for answer in plain_answers[2:]:
        assert answer == {hour: top for hour, top in right.items() if hour < hours - 1}

    tuples = 2 * 1000 * hours
    rate = {n: rates(tuples, t) for n, t in times.items()}
    name = "warehouse query (union, distinct, group-by), 2 × 1,000,000 tuples of XML"
    note = (
        "the whole call, from the query's start to its end, and by default: our optimizer sees that a maximum needs no "
        "distinct; plain Spark lacks the last hour, the others are equal"
    )
    add = bench.append
    add(Measure(name, "tuples/s", "more", rate["ours"], "plain Spark", rate["plain"], 700_000, 4, note))
    add(Measure(name, "tuples/s", "more", rate["ours"], "plain Spark without its distinct", rate["plain, all"]))
    add(Measure(f"{name}, its slices alone", "tuples/s", "more", rates(tuples, slices[False])))
    name, wall = "warehouse query, its distinct done as it is written", rate["as written"]
    add(Measure(name, "tuples/s", "more", wall, "plain Spark", rate["plain"], 700_000, 4))
    add(Measure(name, "tuples/s", "more", wall, "the data source alone, to rows", rate["alone"]))
    add(Measure(name, "tuples/s", "more", wall, "the data source alone, checked and staged", rate["staged"]))
    add(Measure(name, "tuples/s", "more", wall, "libxml2's tokenizer, one core", rate["tokenizer"]))
    add(Measure(f"{name}, its slices alone", "tuples/s", "more", rates(tuples, slices[True])))
