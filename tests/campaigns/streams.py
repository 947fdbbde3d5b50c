"""The streams' campaign: queries over streams of Spark's are killed at random moments.

    .ci/java .venv/bin/python -m tests.campaigns.streams [--kills 20] [KIND ...]

Each kind of stream is read by a query in a process of its own, which is killed so many times, and started again. What
it writes has the rows of a run that was not killed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from tests.harness.topic import Topic, send

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCHES, ROWS = 60, 40
"""The batches of a stream, and the rows of each."""

LONGEST = 4.0
"""Seconds in which a run is killed, from its first sign on: what comes before is the begin of Spark's session."""

MOST = 600.0
"""Seconds after which a run that was not killed has hung."""

COLUMNS = "auction BIGINT, price DOUBLE, at TIMESTAMP"


def rows_of(batch: int) -> list[dict[str, Any]]:
    """The rows of a batch; in each the times go on."""
    at = (f"2021-01-01T{batch // 10:02d}:{batch % 10 * 6 + row // 10:02d}:{row % 10 * 6:02d}" for row in range(ROWS))
    return [{"auction": row % 7, "price": float(batch + row), "at": moment} for row, moment in enumerate(at)]


def write_json(spark: Any, place: Path) -> None:
    """Files of JSON, in the order of their times."""
    place.mkdir()
    for batch in range(BATCHES):
        path = place / f"{batch:05d}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows_of(batch)))
        os.utime(path, (1e9 + batch, 1e9 + batch))


def write_topic(spark: Any, place: Path) -> None:
    """Three partitions with values of JSON."""
    for batch in range(BATCHES):
        for number, row in enumerate(rows_of(batch)):
            send(place, number % 3, json.dumps(row))


def write_messages(spark: Any, place: Path) -> None:
    """Three partitions with values of XML, each a fragment."""
    for batch in range(BATCHES):
        for number, row in enumerate(rows_of(batch)):
            leaves = "".join(f"<{name}>{value}</{name}>" for name, value in row.items())
            send(place, number % 3, f"<bid>{leaves}</bid>")


def write_parquet(spark: SparkSession, place: Path) -> None:
    """Files of Parquet."""
    place.mkdir()
    for batch in range(BATCHES):
        path = place / f"{batch:05d}.parquet"
        table = spark.createDataFrame(rows_of(batch), "auction BIGINT, price DOUBLE, at STRING")
        pq.write_table(table.selectExpr("auction", "price", "CAST(at AS TIMESTAMP) AS at").toArrow(), path)
        os.utime(path, (1e9 + batch, 1e9 + batch))


def _files(spark: SparkSession) -> Any:
    return spark.readStream.option("maxFilesPerTrigger", 1)


def read_json(spark: SparkSession, place: Path) -> DataFrame:
    """Rows of JSON files."""
    frame: DataFrame = _files(spark).schema(COLUMNS).json(str(place))
    return frame


def read_text(spark: SparkSession, place: Path) -> DataFrame:
    """Lines of text, with JSON in each."""
    lines = _files(spark).text(str(place))
    frame: DataFrame = lines.selectExpr(f"from_json(value, '{COLUMNS}') AS row").select("row.*")
    return frame


def read_parquet(spark: SparkSession, place: Path) -> DataFrame:
    """Rows of Parquet files."""
    frame: DataFrame = _files(spark).schema(COLUMNS).parquet(str(place))
    return frame


def read_topic(spark: SparkSession, place: Path) -> DataFrame:
    """Values of a topic."""
    return messages(spark, place).selectExpr(f"from_json(value, '{COLUMNS}') AS row").select("row.*")


def messages(spark: SparkSession, place: Path) -> DataFrame:
    """A topic in batches."""
    spark.dataSource.register(Topic)
    return spark.readStream.format("topic").option("path", str(place)).option("perTrigger", ROWS // 3 + 1).load()


KINDS: Mapping[str, tuple[Callable[[Any, Path], None], Callable[[Any, Path], Any]]] = {
    "json": (write_json, read_json),
    "text": (write_json, read_text),
    "parquet": (write_parquet, read_parquet),
    "topic": (write_topic, read_topic),
    "xml": (write_messages, messages),
}


def run(kind: str, directory: Path) -> None:
    """The run that is killed: counts and sums by hour."""
    import xmlstream as xs

    spark = xs.open_session()
    frame = KINDS[kind][1](spark, directory / "in")
    options = {"name": "bids", "punctuate": "order of at, slack 30m"}
    if kind == "xml":
        query = xs.read_column(frame, "value", COLUMNS, rowTag="bid", keep=["partition", "offset"], **options)
    else:
        query = xs.from_stream(frame, **options)
    by_hour = query.select("date_trunc('HOUR', at) AS hour", "price", "auction").group_by("hour", "auction")
    print("begins", flush=True)
    by_hour.agg("sum(price) AS total", "count(*) AS n").run(directory / "out.parquet", directory / "state")


def started(kind: str, directory: Path) -> subprocess.Popen[str]:
    """A run in a process group of its own, which has begun."""
    command = [sys.executable, "-m", "tests.campaigns.streams", "--run", kind, str(directory)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=(directory / "log").open("w"), text=True, start_new_session=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def killed(kind: str, directory: Path, kills: int, chance: random.Random) -> int:
    """Runs it with kills; returns how many there were before it ended."""
    for kill in range(kills):
        process = started(kind, directory)
        try:
            process.wait(chance.uniform(0.2, LONGEST))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            continue
        if process.returncode:
            raise AssertionError((directory / "log").read_text()[-4000:])
        return kill
    process = started(kind, directory)
    if process.wait(MOST):
        raise AssertionError((directory / "log").read_text()[-4000:])
    return kills


def answers(directory: Path) -> Counter[tuple[Any, ...]]:
    """The rows that a run has written."""
    tables = [pq.read_table(path).to_pylist() for path in sorted((directory / "out.parquet").glob("*.parquet"))]
    return Counter(tuple(row.values()) for table in tables for row in table)


def main() -> int:
    """Runs the kinds; whether there was a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=41)
    parser.add_argument("--run", action="store_true")
    parser.add_argument("kinds", nargs="*", default=[])
    given = parser.parse_args()
    if given.run:
        run(given.kinds[0], Path(given.kinds[1]))
        return 0
    import xmlstream as xs

    faults = 0
    for kind in given.kinds or KINDS:
        with tempfile.TemporaryDirectory() as directory:
            plain, broken = (Path(directory) / name for name in ("plain", "broken"))
            for place in (plain, broken):
                place.mkdir()
                KINDS[kind][0](xs.open_session(), place / "in")
            begun = time.monotonic()
            killed(kind, plain, 0, random.Random(given.seed))
            kills = killed(kind, broken, given.kills, random.Random(given.seed))
            same = answers(plain) == answers(broken) and answers(plain)
            faults += not same
            said = "the rows of a run without kills" if same else "OTHER ROWS"
            print(f"streams, {kind}: killed {kills} times, {said} ({time.monotonic() - begun:.0f} s)", flush=True)
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
