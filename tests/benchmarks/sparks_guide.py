"""The examples of Spark's guide to Structured Streaming, with its watermarks, and as they are asked here.

    .ci/java .venv/bin/pytest --capture=no tests/benchmarks/sparks_guide.py

Clicks are joined with the impressions of the hour before them, events without duplicates, sessions of users: with the
delays and lengths of the guide. Both read the same files, one in each batch of Spark's, whose tuples are out of order
within the delay; both write Parquet. Whatever is answered must be the same.

What is kept is looked at after each batch, and after each slice, which may be several batches of a stream. Processor
time is that of this process, of Java and of its workers, from the start of a query to its end.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import xmlstream as xs
from tests.benchmarks import asking, plain_spark
from tests.benchmarks.engines import processor_seconds
from tests.benchmarks.measuring import Measure, few_rounds, scaled, take_turns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BATCHES = 16
SIZES = {"few": scaled(100, at_least=10), "many": scaled(3_000, at_least=100)}
"""The tuples of a batch."""

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)

Row = tuple[Any, ...]


def times(draw: random.Random, each: timedelta, late: timedelta, rows: int) -> Iterator[tuple[int, datetime]]:
    """Moments with the number of the batch in which each comes, which lasts `each`; at most so late."""
    for number in range(BATCHES * rows):
        comes = _BEGIN + (number + 1) * each / rows
        yield number // rows, comes - draw.random() * late


def impressions(rows: int) -> Iterator[tuple[int, Row]]:
    draw = random.Random(1)
    moments = times(draw, timedelta(hours=1), timedelta(hours=2), rows)
    yield from ((batch, (number, moment)) for number, (batch, moment) in enumerate(moments))


def clicks(rows: int) -> Iterator[tuple[int, Row]]:
    """A click on each other impression, up to two hours after it; half of them are too late."""
    draw = random.Random(2)
    for number, (_, (ad, shown)) in enumerate(impressions(rows)):
        at = shown + draw.random() * timedelta(hours=2)
        batch = int((at - _BEGIN + draw.random() * timedelta(hours=1)) / timedelta(hours=1))
        if number % 2 and 0 <= batch < BATCHES:
            yield batch, (ad, at)


def events(rows: int) -> Iterator[tuple[int, Row]]:
    """A fifth of the events come twice, within the delay."""
    draw = random.Random(3)
    each = timedelta(seconds=10)
    for number, (batch, at) in enumerate(times(draw, each, timedelta(seconds=5), rows * 5 // 6)):
        yield batch, (f"guid-{number:09d}", at)
        again = int((at - _BEGIN + draw.random() * timedelta(seconds=9)) / each)
        if number % 5 == 0 and batch <= again < BATCHES:
            yield again, (f"guid-{number:09d}", at)


def visits(rows: int) -> Iterator[tuple[int, Row]]:
    """A user begins a visit of ten events, a minute apart on average; each visit is a session."""
    draw = random.Random(4)
    for batch, at in times(draw, timedelta(minutes=10), timedelta(minutes=10), rows):
        yield batch, (draw.randrange(rows // 8), at)


@dataclass(frozen=True)
class Stream:
    """Rows in files, one for each batch."""

    schema: str
    rows: Callable[[int], Iterator[tuple[int, Row]]]

    def write(self, directory: Path, rows: int) -> None:
        """Writes the files, in the order in which they come."""
        directory.mkdir(parents=True)
        batches: list[list[Row]] = [[] for _ in range(BATCHES)]
        for number, row in self.rows(rows):
            batches[number].append(row)
        names = [column.split()[0] for column in self.schema.split(", ")]
        for number, batch in enumerate(batches):
            random.Random(number).shuffle(batch)
            file = directory / f"{number:03d}.parquet"
            columns = zip(*batch, strict=True)
            pq.write_table(pa.table(dict(zip(names, map(list, columns), strict=True))), file)
            os.utime(file, (1e9 + number, 1e9 + number))

    def frame(self, spark: SparkSession, directory: Path) -> DataFrame:
        """The streaming DataFrame of the files."""
        return spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1).parquet(str(directory))


IMPRESSIONS = Stream("impressionAdId BIGINT, impressionTime TIMESTAMP", impressions)
CLICKS = Stream("clickAdId BIGINT, clickTime TIMESTAMP", clicks)
EVENTS = Stream("guid STRING, eventTime TIMESTAMP", events)
VISITS = Stream("userId BIGINT, timestamp TIMESTAMP", visits)

WITHIN_AN_HOUR = """
    clickAdId = impressionAdId AND clickTime >= impressionTime AND clickTime <= impressionTime + INTERVAL 1 HOUR
"""


def plain_join(impressions: DataFrame, clicks: DataFrame) -> DataFrame:
    shown = impressions.withWatermark("impressionTime", "2 hours")
    return shown.join(clicks.withWatermark("clickTime", "3 hours"), F.expr(WITHIN_AN_HOUR))


def our_join(impressions: DataFrame, clicks: DataFrame) -> xs.Query:
    shown = xs.from_stream(impressions, name="impressions", punctuate="order of impressionTime, slack 2h")
    clicked = xs.from_stream(clicks, name="clicks", punctuate="order of clickTime, slack 3h")
    return shown.join(clicked, WITHIN_AN_HOUR)


def plain_distinct(events: DataFrame) -> DataFrame:
    return events.withWatermark("eventTime", "10 seconds").dropDuplicates(["guid", "eventTime"])


def our_distinct(events: DataFrame) -> xs.Query:
    source = xs.from_stream(events, punctuate="order of eventTime, slack 10s")
    return source.drop_duplicates(["guid", "eventTime"])


def plain_sessions(visits: DataFrame) -> DataFrame:
    session = F.session_window("timestamp", "5 minutes").alias("session")
    counted = visits.withWatermark("timestamp", "10 minutes").groupBy(session, "userId").count()
    return counted.select("userId", "session.start", "session.end", F.col("count").alias("n"))


def our_sessions(visits: DataFrame) -> xs.Query:
    source = xs.from_stream(visits, punctuate="order of timestamp, slack 10m")
    sessions = source.group_by("userId", "session_window(timestamp, '5 minutes')")
    counted = sessions.agg("count(*) AS n")
    return counted.select("userId", "session_window.start", "session_window.end", "n")


EXAMPLES: dict[str, tuple[list[Stream], Callable[..., DataFrame], Callable[..., xs.Query]]] = {
    "clicks within an hour of impressions": ([IMPRESSIONS, CLICKS], plain_join, our_join),
    "events without duplicates": ([EVENTS], plain_distinct, our_distinct),
    "sessions of users": ([VISITS], plain_sessions, our_sessions),
}


@dataclass(frozen=True)
class Done:
    """A run: its processor seconds, its seconds by the clock, what was kept after each batch or slice."""

    processor: float
    seconds: float
    kept: list[int]


def answers(output: Path) -> Counter[Row]:
    """The tuples of an output."""
    files = [path for path in output.rglob("*.parquet") if not path.is_relative_to(output / "_spark_metadata")]
    tables = [pq.read_table(path, partitioning=None) for path in files]
    return Counter(chain.from_iterable(zip(*map(values, table.columns), strict=True) for table in tables))


def values(column: Any) -> list[Any]:
    """Values that can be compared, whether or not a file says that its moments are of UTC."""
    moments = pa.types.is_timestamp(column.type)
    return (column.cast(pa.timestamp("us")).cast(pa.int64()) if moments else column).to_pylist()  # type: ignore[no-any-return]


def plain_run(frame: DataFrame, output: Path) -> Done:
    """Runs a query of plain Spark."""
    shutil.rmtree(output, ignore_errors=True)
    before = processor_seconds()
    done = plain_spark.run(frame, output, format="parquet")
    return Done(processor_seconds() - before, done.seconds, done.kept)


def our_run(query: xs.Query, output: Path, engine: Literal["auto"] | None) -> Done:
    """Runs a query, by Spark or as `auto` chooses."""
    before = processor_seconds()
    done = asking.run(query, output, engine=engine)
    kept = [sum(operator["kept"] for operator in one["operators"]) for one in done.slices]
    return Done(processor_seconds() - before, done.seconds, kept)


HEAD = """| example | tuples a batch | | rows out | kept at the most | kept at the end | processor time | by the clock |
| --- | --- | --- | --- | --- | --- | --- | --- |"""


@pytest.fixture(scope="module")
def table() -> Iterator[list[str]]:
    """The lines of the table, which is shown at the end."""
    lines = [HEAD]
    yield lines
    print("\n\n" + "\n".join(lines))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_guide(
    spark: SparkSession, bench: list[Measure], scratch: Path, table: list[str], example: str, size: str
) -> None:
    streams, plain, ours = EXAMPLES[example]
    session = plain_spark.session(spark)
    places = [scratch / f"guide-{size}-{stream.rows.__name__}" for stream in streams]
    for stream, place in zip(streams, places, strict=True):
        stream.write(place, SIZES[size])
    found: dict[str, list[Done]] = {"ours": [], "ours, engine='auto'": [], "plain Spark": []}
    outputs = {name: scratch / f"guide-{number}.parquet" for number, name in enumerate(found)}

    def run(name: str) -> float:
        is_plain = name == "plain Spark"
        frames = [
            stream.frame(session if is_plain else spark, place) for stream, place in zip(streams, places, strict=True)
        ]
        if is_plain:
            done = plain_run(plain(*frames), outputs[name])
        else:
            done = our_run(ours(*frames), outputs[name], None if name == "ours" else "auto")
        found[name].append(done)
        return done.processor / BATCHES

    if size == "few":
        for name in outputs:
            run(name)  # to get warm
    took = take_turns({name: partial(run, name) for name in found}, few_rounds(3), within=60)
    *both, plain_out = (answers(output) for output in outputs.values())
    assert plain_out.total() > 0
    for ours_out in both:
        assert plain_out == ours_out, f"{(plain_out - ours_out).total()} less, {(ours_out - plain_out).total()} more"
    for name, done in found.items():
        kept = done[-1].kept
        seconds = median(each.seconds for each in done[-len(took[name]) :]) / BATCHES
        table.append(
            f"| {example} | {SIZES[size]:,} | {name} | {plain_out.total():,} | {max(kept):,} | {kept[-1]:,} |"
            f" {median(took[name]):.2f} s | {seconds:.2f} s |"
        )
    what = f"Spark's guide: {example}, a batch of {SIZES[size]:,}"
    bench.append(Measure(what, "s of CPU", "less", took["ours"], "plain Spark's watermark", took["plain Spark"]))
    auto = took["ours, engine='auto'"]
    bench.append(Measure(f"{what}, engine='auto'", "s of CPU", "less", auto, "plain Spark", took["plain Spark"]))
    most = [[float(max(each.kept)) for each in found[name]] for name in ("ours", "plain Spark")]
    bench.append(Measure(f"{what}: kept at the most", "tuples", "less", most[0], "rows of its state", most[1]))
