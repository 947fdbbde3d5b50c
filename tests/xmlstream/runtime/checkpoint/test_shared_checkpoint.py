"""Segments and staged tuples as objects, for executors that share nothing but an object store with the driver."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import xmlstream as xs
from xmlstream.operators.frames.spark_engine import SparkEngine
from xmlstream.operators.storage import segments, shared_files
from xmlstream.operators.storage.object_requests import requests
from xmlstream.operators.storage.object_urls import joined
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.operators.storage.segments import SegmentStore
from xmlstream.operators.storage.shared_files import PartsOfTask, RowsOfObjects
from xmlstream.operators.storage.store import store_of
from xmlstream.punct_ns.errors import StateError
from xmlstream.punct_ns.slices import POSITION
from xmlstream.runtime import runner
from xmlstream.runtime.checkpoint import remote_checkpoint
from xmlstream.runtime.checkpoint.commit_log import Commit
from xmlstream.runtime.checkpoint.remote_checkpoint import RemoteCheckpoint
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.slices.stage_writer import stage
from xmlstream.sources.xml.splits.byte_ranges import ByteRange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.operators.frames.frame import Frame
    from xmlstream.session.engines import InProcessSession


def numbers(engine: SparkEngine, count: int) -> Frame:
    table = pa.table({"n": pa.array(range(count), pa.int64()), "text": [f"t{n}" for n in range(count)]})
    return engine.rows(table, "n BIGINT, text STRING")


def read(store: SegmentStore, segment: segments.Segment) -> list[int]:
    """The numbers of a segment, as tasks of Spark read them, or the driver itself if they are few."""
    found: list[Any] = store.frame(segment).select("n").to_arrow()["n"].to_pylist()
    return sorted(found)


def names(directory: Path) -> list[str]:
    """The names of the segments in a working copy."""
    return [path.name for path in (directory / "state/join").iterdir()]


def begun(engine: SparkEngine, remote: RemoteCheckpoint, directory: Path) -> SegmentStore:
    store = SegmentStore(engine, directory / "state/join", remote.segments("state/join"))
    store.begin(1)
    return store


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few rows that segments of more lie in the store."""
    monkeypatch.setattr(segments, "HELD", 10)
    monkeypatch.setattr(shared_files, "PART_ROWS", 300)


def test_large_segments_lie_in_the_store_alone(spark: SparkSession, bucket: str, tmp_path: Path, few: None) -> None:
    engine, remote = SparkEngine(spark), RemoteCheckpoint(bucket, tmp_path / "a", is_shared=True)
    remote.begin()
    store = begun(engine, remote, tmp_path / "a")
    small, large = store.write(numbers(engine, 5), 5), store.write(numbers(engine, 1000), 1000)
    written = [store.record(each) for each in (small, large)]
    assert read(store, large) == list(range(1000))
    assert sum(map(len, store.batches(large, ["n"]))) == 1000
    assert names(tmp_path / "a") == [small.name]
    kept = {f"state/join/{each.name}" for each in (small, large)}
    remote.create(remote.secure(Commit(0, whole=True), {}, kept, store.unsynced()))
    assert len(remote.places(f"state/join/{large.name}")) == 4
    # A new driver has nothing, and brings over what it reads itself.
    other = RemoteCheckpoint(bucket, tmp_path / "b", is_shared=True)
    other.begin()
    assert names(tmp_path / "b") == [small.name]
    again = begun(engine, other, tmp_path / "b")
    sums = {record.name: record.checksum for record in written}
    again.require_sound(sums)
    assert [read(again, again.restore(record)) for record in written] == [list(range(5)), list(range(1000))]
    ObjectStore(bucket).delete(other.places(f"state/join/{large.name}")[2])
    with pytest.raises(StateError, match="is gone"):
        again.require_sound(sums)


def test_tasks_write_what_the_driver_does_not_collect(
    spark: SparkSession, bucket: str, tmp_path: Path, few: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "COLLECTED", 100)
    engine, remote = SparkEngine(spark), RemoteCheckpoint(bucket, tmp_path, is_shared=True)
    store = begun(engine, remote, tmp_path)
    whole = store.write(numbers(engine, 1000), 1000)
    leaving, staying = store.split(store.frame(whole), "n < 300", 1000)
    assert (leaving.rows, staying.rows) == (300, 700)
    assert read(store, leaving) == list(range(300))
    assert read(store, staying) == list(range(300, 1000))
    nothing = store.write(numbers(engine, 1000).where("n < 0"), 1000)
    assert read(store, nothing) == []
    assert [path.name for path in (tmp_path / "state").rglob("*.parquet")] == []


def test_a_task_writes_parts_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_files, "PART_BYTES", 1000)
    rows = pa.table({"n": pa.array(range(1000), pa.int64())})
    url = "memory://parts/segment?region=r"
    reports = pa.Table.from_batches(PartsOfTask(url)(rows.to_batches(max_chunksize=200)))
    assert reports["rows"].to_pylist() == [200] * 5
    names = pa.record_batch({"url": [joined(url, str(name)) for name in reports["name"].to_pylist()]})
    fields: list[pa.Field[Any]] = [pa.field("n", pa.int64()), pa.field("lacks", pa.string())]
    schema = pa.schema(fields)
    found = pa.Table.from_batches(RowsOfObjects(schema)([names]), schema)
    assert found["n"].to_pylist() == list(range(1000))
    assert found["lacks"].null_count == 1000


def test_a_range_is_staged_as_an_object(tmp_path: Path) -> None:
    document = tmp_path / "in.xml"
    document.write_text("<r><bid><n>1</n></bid><bid><n>2</n></bid></r>")
    options = SourceOptions.parse({"path": str(document), "rowTag": "bid", "schema": "n INT"})
    range_ = ByteRange(Document.at(document), 0, 0, document.stat().st_size, ends="root")
    (staged,) = stage([range_], Reading.of(options, stage="memory://stage/run", name="bid"))
    path = staged.path
    assert isinstance(path, str)
    assert path.startswith("memory://stage/run/tuples-")
    found = shared_files.opened(path)
    assert pq.read_table(found).select(["n"]).to_pylist() == [{"n": 1}, {"n": 2}]
    before = requests.copy()
    assert pq.read_metadata(shared_files.opened(path)).num_rows == 2
    assert pq.read_table(shared_files.opened(path), columns=["n"]).num_rows == 2
    assert requests == before
    left = shared_files.written(pa.table({"n": [1], POSITION: [3]}), shared_files.beside(path, "other.parquet"))
    assert pq.read_table(shared_files.opened(left)).num_rows == 1
    store, key = store_of(path)
    store.delete(key)
    assert ObjectStore("memory://stage/run").names() == ["other.parquet"]


def test_staged_objects_are_removed_after_the_commit_and_those_of_dead_runs_at_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "memory://staged-by-a-dead-run"
    dead = RemoteCheckpoint(url, tmp_path / "a", is_shared=True)
    dead.begin()
    dead.staged.write("tuples-1.parquet", [b"1"])
    dead.staged.write("documents/bid/restricted.json", [b"[]"])
    dead.clear_stage()
    dead.settle()
    assert [each.key for each in ObjectStore(url).below("staged").listed()] == [
        f"{dead.run}/documents/bid/restricted.json"
    ]
    monkeypatch.setattr(remote_checkpoint, "LITTER_SECONDS", -1)
    after = RemoteCheckpoint(url, tmp_path / "b", is_shared=True)
    after.begin()
    after.settle()
    assert ObjectStore(url).names("staged") == []


JOINED = """
CREATE TABLE one (k INT, a INT) USING punctuated_xml OPTIONS (path '${IN}/one', rowTag 't', schemes 'k');
CREATE TABLE two (k INT, b INT) USING punctuated_xml OPTIONS (path '${IN}/two', rowTag 't', schemes 'k');
SELECT one.k, a, b FROM one JOIN two ON one.k = two.k
"""


def document(place: Path, name: str, values: Iterable[int]) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / "a.xml").write_text("<r>" + "".join(f"<t><k>{n}</k><{name}>{n}</{name}></t>" for n in values) + "</r>")


@pytest.mark.rest
def test_another_engine_on_one_machine_goes_on_from_what_a_cluster_has_kept(
    spark: SparkSession,
    in_process: InProcessSession,
    bucket: str,
    tmp_path: Path,
    few: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(segments, "COLLECTED", 100)
    monkeypatch.setattr(runner, "is_apart", lambda session, _: not hasattr(session, "engine"))
    document(tmp_path / "in/one", "a", range(200))
    document(tmp_path / "in/two", "b", range(190, 230))
    places = tmp_path / "out", f"{bucket}/state"
    xs.from_sql(spark, JOINED, {"IN": str(tmp_path / "in")}).run(*places, keep_open=True)
    kept = [each.key for each in ObjectStore(bucket).below("state/objects").listed()]
    assert any(key.count(".parquet") == 2 for key in kept), kept
    (tmp_path / "in/two/b.xml").write_bytes((tmp_path / "in/two/a.xml").read_bytes())
    xs.from_sql(in_process, JOINED, {"IN": str(tmp_path / "in")}).run(*places)
    texts = [path.read_text() for path in (tmp_path / "out").glob("*.xml")]
    assert sorted(int(k) for text in texts for k in re.findall("<k>([0-9]+)</k>", text)) == sorted(
        [*range(190, 200)] * 2
    )
