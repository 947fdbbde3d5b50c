"""The queries of `data/` over Spark Connect: what they write in a classic session, with restarts, and what is refused.

`make connect` runs this in an environment of its own: a client of Spark Connect needs pandas and gRPC. The server runs
in a Java that this process starts. The classic session runs in another process, since one has a single kind.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.harness.data_queries import queries, run, write_inputs, written
from tests.harness.set_clock import set_clock
from xmlstream.operators.frames import connect_engine
from xmlstream.operators.frames.zones import PythonZone
from xmlstream.operators.storage import segments
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.punct_ns.errors import QueryError, UsageError
from xmlstream.runtime.loop import driving
from xmlstream.session.engines import spark_engine_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.harness.seaweed import ObjectServer
    from xmlstream.session.engines import InProcessSession, Session

if __name__ != "__main__":
    pytest.importorskip("grpc", reason="needs what PySpark needs for Spark Connect: make connect")

pytestmark = pytest.mark.spark

EVENTS, SLICE = 400, "32k"
SWITCHED = ("nexmark_q5", "nexmark_q9", "nexmark_q20", "warehouse")


@pytest.fixture(scope="module")
def connected(object_server: ObjectServer) -> Iterator[SparkSession]:
    """A session of Spark Connect with a server on this machine, whose workers find the object store."""
    from pyspark.sql import SparkSession

    os.environ.update(object_server.environment)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.remote("local[2]")
    for name, value in {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.python.authenticate.socketTimeout": "300s",
    }.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        # Some of these are settings of the server: the session that begins with it says that it cannot change them.
        warnings.simplefilter("ignore", UserWarning)
        session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("inputs")
    write_inputs(directory, EVENTS)
    return directory


def all_queries(session: Session, inputs: Path, out: Path) -> None:
    run([each for asked in queries(SLICE) for each in asked.inserts(session, inputs, out)])


def test_the_queries_write_what_they_write_in_a_classic_session(
    connected: SparkSession, inputs: Path, tmp_path: Path
) -> None:
    classic = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    command = [sys.executable, __file__, str(inputs), str(tmp_path / "classic")]
    subprocess.run(command, check=True, env={**classic, "PYTHONPATH": os.pathsep.join(sys.path)})
    all_queries(connected, inputs, tmp_path / "connect")
    expected, found = written(tmp_path / "classic"), written(tmp_path / "connect")
    assert expected.keys() == found.keys()
    for name, documents in expected.items():
        assert found[name] == documents, name
    assert max(map(len, expected.values())) > 3


class Stopped(Exception):
    """The run is to go on in another session."""


def slices(session: Session, inputs: Path, out: Path, begin: int, *, is_one: bool) -> int:
    """Runs queries from their checkpoint on, to the end or for one slice; returns the number of slices."""
    seen = 0

    def noting(report: dict[str, Any]) -> None:
        nonlocal seen
        seen += 1
        if is_one:
            raise Stopped

    asked = [each for each in queries(SLICE) if each.name in SWITCHED]
    inserts = [each for one in asked for each in one.inserts(session, inputs, out)]
    with set_clock(seconds=4, begin=begin):
        xs.run(inserts, out.with_suffix(".state"), on_slice=noting)
    return seen


def test_a_query_goes_on_over_spark_connect_and_back_at_each_slice(
    connected: SparkSession, in_process: InProcessSession, inputs: Path, tmp_path: Path
) -> None:
    whole = slices(in_process, inputs, tmp_path / "whole", 0, is_one=False)
    assert whole > 3
    for number in range(whole + 1):
        with suppress(Stopped):
            slices(in_process if number % 2 else connected, inputs, tmp_path / "switched", number, is_one=True)
    expected, found = written(tmp_path / "whole"), written(tmp_path / "switched")
    assert expected.keys() == found.keys()
    for name, documents in expected.items():
        assert found[name] == documents, name


def test_workers_that_see_no_directory_have_a_checkpoint_in_an_object_store(
    connected: SparkSession,
    in_process: InProcessSession,
    inputs: Path,
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The workers look for a file of another name; large segments have a hundred rows, and are theirs.
    monkeypatch.setattr(driving, "_SEEN", "unseen")
    monkeypatch.setattr(segments, "COLLECTED", 100)
    asked = [each for each in queries(SLICE) if each.name in SWITCHED]
    for session, name, state in (
        (in_process, "whole", str(tmp_path / "state")),
        (connected, "apart", f"{bucket}/state"),
    ):
        run([each for one in asked for each in one.inserts(session, inputs, tmp_path / name)], state)
    expected, found = written(tmp_path / "whole"), written(tmp_path / "apart")
    assert expected
    assert found == expected
    assert [each.key for each in ObjectStore(bucket).below("state/commits").listed()]


TABLE = "CREATE TABLE a (h INT, t TIMESTAMP) USING punctuated_xml OPTIONS (path 'a', rowTag 'a', schemes 'h');"


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT h FROM a WHERE t > TIMESTAMP '2020-01-01 00:00:00' AND h < 3L", None),
        ("SELECT x FROM a", "there is no attribute x"),
        ("SELECT h + t AS s FROM a", "Cannot resolve"),
        ("SELECT h FROM a WHERE h > 1 / 0", "Division by zero"),
        ("SELECT date_format(t, 'ppp') AS s FROM a", "'ppp' is not a pattern of date_format"),
    ],
)
def test_the_server_checks_a_query_before_it_runs(connected: SparkSession, query: str, why: str | None) -> None:
    if why is None:
        assert xs.from_sql(connected, TABLE + query).schema.names == ("h",)
        return
    with pytest.raises(QueryError, match=why):
        xs.from_sql(connected, TABLE + query)


def test_streams_and_directories_of_this_machine_only_are_refused(
    connected: SparkSession, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="stream, whose batches a session of Spark Connect"):
        xs.from_stream(connected.readStream.format("rate").load(), schemes="value")
    # The workers look for a file of another name.
    monkeypatch.setattr(driving, "_SEEN", "unseen")
    with pytest.raises(UsageError, match="do not see the directory"):
        run(queries(SLICE)[0].inserts(connected, inputs, tmp_path))


def test_the_clocks_of_the_server_are_compared_with_those_here(
    connected: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Behind(PythonZone):
        def offset(self, second: int) -> int:
            return super().offset(second) - 3600 * (second > 0)

    try:
        connected.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
        assert spark_engine_of(connected).zone_rules().offset(1_593_561_600) == 7200
        connected.conf.set("spark.sql.session.timeZone", "Europe/Paris")
        monkeypatch.setattr(connect_engine, "PythonZone", Behind)
        with pytest.raises(UsageError, match="different clocks for the time zone Europe/Paris"):
            spark_engine_of(connected).zone_rules()
    finally:
        connected.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_static_frame_is_a_stream_that_ends(connected: SparkSession, tmp_path: Path) -> None:
    frame = connected.range(3).selectExpr("id AS n", "CAST(NULL AS STRING) AS punct")
    found = xs.from_stream(frame, schemes="n", punctuation="punct").where("n > 0").to_arrow()
    assert {row["n"] for row in found.to_pylist()} == {1, 2}


if __name__ == "__main__":
    all_queries(xs.open_session("local[2]"), Path(sys.argv[1]), Path(sys.argv[2]))
