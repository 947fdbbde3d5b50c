"""An interval join, five seconds wide, beside Spark's own stream-stream join over the same tuples.

    make bench, or .ci/java .venv/bin/pytest --capture=no tests/benchmarks/interval_join.py

Both streams are in order. Ours says so every ten seconds by a punctuation (`at prefix`), plain Spark is told by a
watermark without delay, and reads a file of each stream a batch where we read as much a slice. Both must find the same
pairs; what is kept after a slice is compared with the rows of Spark's state after a batch.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

import xmlstream as xs
from tests.benchmarks import asking, plain_spark
from tests.benchmarks.measuring import Measure, few_rounds, rates, scaled, take_turns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

A_SECOND, KEYS, SLICES = 50, 500, 10
SECONDS = scaled(2000, at_least=10 * SLICES) // (10 * SLICES) * 10 * SLICES
"""Of each stream: so many times 50 tuples."""

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_HEAD = '<items xmlns:punct="http://www.cse.ogi.edu/dot/niagara/punct">\n'


def _tuples(name: str, first: int, last: int, draw: random.Random, *, punctuated: bool) -> Iterator[str]:
    """The tuples of some seconds, one a line, and each ten seconds what no longer comes."""
    for second in range(first, last):
        at = (_BEGIN + timedelta(seconds=second)).isoformat().replace("+00:00", "Z")
        for _ in range(A_SECOND):
            yield f"<{name}><{name}_key>{draw.randrange(KEYS)}</{name}_key><{name}_at>{at}</{name}_at></{name}>\n"
        if punctuated and second % 10 == 9:
            yield f"<punct:{name}><{name}_at>(,{at}]</{name}_at></punct:{name}>\n"


@pytest.fixture(scope="module")
def streams(shared: Path) -> Path:
    """Both streams: punctuated, a document each; and plain, a document a batch."""
    directory = shared / "intervals"
    directory.mkdir()
    each = SECONDS // SLICES
    for number, name in enumerate("ab"):
        draw = random.Random(number)
        with (directory / f"{name}.xml").open("w") as document:
            document.writelines([_HEAD, *_tuples(name, 0, SECONDS, draw, punctuated=True), "</items>\n"])
        draw = random.Random(number)
        (directory / name).mkdir()
        for batch in range(SLICES):
            with (directory / name / f"{name}-{batch:03d}.xml").open("w") as document:
                tuples = _tuples(name, batch * each, (batch + 1) * each, draw, punctuated=False)
                document.writelines([_HEAD, *tuples, "</items>\n"])
    return directory


def ours(spark: SparkSession, directory: Path) -> xs.Query:
    sides = [
        xs.read(
            spark,
            directory / f"{name}.xml",
            schema=f"{name}_key INT, {name}_at TIMESTAMP",
            rowTag=name,
            schemes=f"{name}_at prefix",
            maxBytesPerSlice=str((directory / f"{name}.xml").stat().st_size // SLICES),
        )
        for name in "ab"
    ]
    return sides[0].join(sides[1], "a_key = b_key AND b_at BETWEEN a_at AND a_at + INTERVAL 5 SECONDS")


def plain(spark: SparkSession, directory: Path) -> DataFrame:
    sides = []
    for name in "ab":
        reader = spark.readStream.format("xml").schema(f"{name}_key INT, {name}_at TIMESTAMP").option("rowTag", name)
        frame = reader.option("maxFilesPerTrigger", 1).load(str(directory / name))
        sides.append(frame.withWatermark(f"{name}_at", "0 seconds"))
    within = "a_key = b_key AND b_at BETWEEN a_at AND a_at + INTERVAL 5 SECONDS"
    return sides[0].join(sides[1], F.expr(within))


def pairs(output: Path) -> Counter[tuple[str, ...]]:
    """The pairs, with what is written of times alike."""
    return Counter(
        (row["a_key"], row["a_at"][:19], row["b_key"], row["b_at"][:19]) for row in asking.rows(output, "row")
    )


def test_interval_join(spark: SparkSession, bench: list[Measure], streams: Path, scratch: Path) -> None:
    session = plain_spark.session(spark)
    kept: dict[str, list[int]] = {}

    def our_run() -> float:
        done = asking.run(ours(spark, streams), scratch / "pairs")
        kept["ours"] = [sum(operator["kept"] for operator in one["operators"]) for one in done.slices]
        return done.seconds

    def plain_run() -> float:
        done = plain_spark.run(plain(session, streams), scratch / "plain-pairs")
        kept["plain"] = done.kept
        return done.seconds

    times = take_turns({"ours": our_run, "plain": plain_run}, rounds=few_rounds(2), within=70)
    assert pairs(scratch / "pairs") == pairs(scratch / "plain-pairs")
    most, theirs = max(kept["ours"]), max(kept["plain"])
    assert 0 < most <= theirs
    amount = 2 * SECONDS * A_SECOND
    rate = {key: rates(amount, each) for key, each in times.items()}
    name = f"interval join of two streams, {amount:,} tuples"
    bench.append(Measure(name, "tuples/s", "more", rate["ours"], "plain Spark's stream-stream join", rate["plain"]))
    note = f"after each slice, and after each batch: {kept['ours']} and {kept['plain']}"
    bench.append(
        Measure(f"{name}, kept at the most", "tuples", "less", [most], "rows of its state", [theirs], 1e6, 1.0, note)
    )
