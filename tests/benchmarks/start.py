"""How long `xmlstream run` takes for ten tuples, from a cold start; and how much of that is Spark's own.

    make bench, or .ci/java .venv/bin/pytest --capture=no tests/benchmarks/start.py

Spark's own start is a Python process that makes an equal session, with the same options of Java, and runs the least
that is a stream: ten lines of a text file, by trigger, into nothing. Beside it: one that makes the session and counts
to one; and ours without the archive of Java's classes that `xmlstream prepare` makes, as before anyone has called it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.benchmarks.measuring import Measure, seconds, take_turns
from xmlstream.session import warm_start
from xmlstream.session.spark_session import JAVA_OPTIONS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_SESSION = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[*]").appName("start")
for key, value in {
    "spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "localhost", "spark.driver.bindAddress": "127.0.0.1", "spark.log.level": "ERROR",
    "spark.sql.adaptive.enabled": "false", "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.driver.extraJavaOptions": {java!r},
}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
"""
STREAM = (
    _SESSION
    + """
stream = spark.readStream.text(sys.argv[1]).writeStream.format("noop").option("checkpointLocation", sys.argv[2])
stream.trigger(availableNow=True).start().awaitTermination()
spark.stop()
"""
)
COUNT = (
    _SESSION
    + """
assert spark.range(1).count() == 1
spark.stop()
"""
)
QUERY = """
CREATE TABLE sensor (sid STRING, hour INT, min INT, currtmp DOUBLE)
USING punctuated_xml OPTIONS (path '{path}', rowTag 'tempdata', schemes 'hour');
SELECT hour, MAX(currtmp) AS maxtemp FROM sensor GROUP BY hour;
"""


def process(*arguments: str, bare: bool = False) -> None:
    """Runs Python to its end, with the archive of Java's classes or without."""
    environment = {**os.environ, "XMLSTREAM_CLASS_ARCHIVES": ""} if bare else None
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)


def test_start(bench: list[Measure], scratch: Path) -> None:
    directory, out, checkpoint = scratch / "ten", scratch / "ten-out", scratch / "ten-checkpoint"
    directory.mkdir()
    tuples = [
        f"<tempdata><sid>S1</sid><hour>0</hour><min>{n}</min><currtmp>6{n}.5</currtmp></tempdata>\n" for n in range(10)
    ]
    document = directory / "ten.xml"
    document.write_text(f"<readings>\n{''.join(tuples)}</readings>\n", encoding="utf-8")
    query = scratch / "ten.sql"
    query.write_text(QUERY.format(path=document), encoding="utf-8")
    java = f"{JAVA_OPTIONS} {warm_start.java_options()}".rstrip()
    runs = {
        "ours": ("-m", "xmlstream", "run", str(query), "-o", str(out), "--overwrite"),
        "stream": ("-c", STREAM.replace("{java!r}", repr(java)), str(directory)),
        "count": ("-c", COUNT.replace("{java!r}", repr(java))),
    }
    numbers = iter(range(100))

    def turn(name: str, *, bare: bool = False) -> float:
        fresh = [f"{checkpoint}{next(numbers)}"] if name == "stream" else []
        return seconds(partial(process, *runs[name], *fresh, bare=bare))

    turns = {name: partial(turn, name) for name in runs}
    turns["bare"] = partial(turn, "ours", bare=True)
    times = take_turns(turns, few={"count": 1, "bare": 1}, within=90)
    (document,) = out.glob("slice-*.xml")
    assert "<maxtemp>69.5</maxtemp>" in document.read_text(encoding="utf-8")

    name = "start, `xmlstream run` of ten tuples, cold"
    bench.append(Measure(name, "s", "less", times["ours"], "Spark's start and least stream", times["stream"], 12))
    bench.append(Measure(name, "s", "less", times["ours"], "Spark's start and a count to one", times["count"]))
    name = "start, the same before `xmlstream prepare`"
    bench.append(Measure(name, "s", "less", times["bare"], target=12))
    own = [ours - spark for ours, spark in zip(times["ours"], times["stream"], strict=True)]
    note = "the former less Spark's start and least stream (a text file into nothing)"
    bench.append(Measure("start, beyond Spark's own", "s", "less", own, target=3, note=note, is_compared=False))
