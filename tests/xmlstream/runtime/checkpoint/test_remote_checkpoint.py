"""A checkpoint in an object store: restarts in empty working copies, runs that take over, crashes, damage, requests."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

import xmlstream as xs
from tests.campaigns.signals import QUERY
from xmlstream.diagnosis.inspection import inspect
from xmlstream.operators.storage import object_requests
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.operators.storage.store import unsealed
from xmlstream.punct_ns.errors import StateError, UsageError
from xmlstream.runtime.checkpoint import remote_checkpoint
from xmlstream.runtime.checkpoint.checkpoint import Checkpoint
from xmlstream.runtime.checkpoint.commit_log import CommitLog
from xmlstream.runtime.checkpoint.remote_checkpoint import RemoteCheckpoint, readable
from xmlstream.runtime.checkpoint.same_query import SameQuery
from xmlstream.runtime.loop.execution import Execution
from xmlstream.sink.directory_sink import DirectorySink
from xmlstream.sink.staged_sink import StagedSink
from xmlstream.sources.generators.sensors import write_sensors

if TYPE_CHECKING:
    from xmlstream.builder.runnable import Runnable
    from xmlstream.session.engines import InProcessSession, Session

HERE = Path(__file__).parents[1]

JOIN = QUERY[: QUERY.index("SELECT")] + (
    "SELECT a.hour, count(*) AS n, max(a.currtmp + b.currtmp) AS hottest\n"
    "FROM sensor1 AS a JOIN sensor2 AS b ON a.hour = b.hour AND a.min = b.min GROUP BY a.hour;"
)


class Ends(Exception):
    """What stands for the end of a process."""


def documents(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(out.glob("slice-*"))}


@pytest.fixture
def url() -> str:
    return f"memory://tests/{uuid.uuid4().hex}"


@pytest.fixture(scope="module")
def sensors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("sensors")
    write_sensors(home, sensors=2, hours=9, punctuations_per_hour=2, reports_per_hour=40, seed=3)
    return home


@pytest.fixture(scope="module")
def whole(in_process: InProcessSession, sensors: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The documents of a run with a directory as checkpoint."""
    home = tmp_path_factory.mktemp("whole")
    query(in_process, sensors).run(home / "out", home / "checkpoint")
    assert len(documents(home / "out")) > 3
    return documents(home / "out")


def query(session: Session, sensors: Path, text: str = JOIN) -> Runnable:
    return xs.from_sql(session, text, {"SENSORS": str(sensors)})


def ending_after_each_slice(run: Callable[..., Any]) -> int:
    """Runs again and again, each time to the end of one slice; returns the number of runs."""

    def end(_: object) -> None:
        raise Ends

    for count in range(1, 100):
        try:
            run(on_slice=end)
        except Ends:
            continue
        return count
    raise AssertionError("no end")


def records(url: str) -> list[dict[str, Any]]:
    """The records of the log, barriers too, by number."""
    store = ObjectStore(url)
    found = [unsealed(store.read(one.key)) for one in store.listed() if one.key.startswith("commits/")]
    assert None not in found
    return [each for each in found if each is not None]


def committed(url: str) -> list[int]:
    return [each["slice"] for each in records(url) if "slice" in each]


@pytest.mark.rest
def test_ended_after_each_slice_and_begun_in_an_empty_copy_it_writes_the_same(
    in_process: InProcessSession, sensors: Path, whole: dict[str, bytes], bucket: str, tmp_path: Path
) -> None:
    asked, out = query(in_process, sensors), tmp_path / "out"
    runs = ending_after_each_slice(lambda **options: asked.run(out, bucket, **options))
    assert runs > 3
    assert documents(out) == whole
    assert committed(bucket) == [*range(runs - 1)]
    assert len(ObjectStore(bucket).names("commits")) == 2 * (runs - 1) + 1  # and a barrier for each run


def test_a_working_copy_with_a_name_stays_and_is_used_again(
    in_process: InProcessSession, sensors: Path, whole: dict[str, bytes], url: str, tmp_path: Path
) -> None:
    asked, out, work = query(in_process, sensors), tmp_path / "out", tmp_path / "work"
    ending_after_each_slice(lambda **options: asked.run(out, url, work=work, **options))
    assert documents(out) == whole
    assert (work / "query.json").exists()
    fetched = []
    read = ObjectStore.read

    def noting(self: ObjectStore, key: str, *others: Any, **given: Any) -> bytes:
        fetched.append(key)
        return read(self, key, *others, **given)

    with mock.patch.object(ObjectStore, "read", noting):
        assert asked.run(out, url, work=work).closed_before
    assert fetched
    assert not [there for there in fetched if there.startswith("objects/")]


def test_many_whole_records_and_few_parts_of_logs(
    in_process: InProcessSession, sensors: Path, whole: dict[str, bytes], url: str, tmp_path: Path
) -> None:
    pieces = mock.patch.object(remote_checkpoint, "CHUNK", 100)  # and files in many pieces
    with mock.patch("xmlstream.runtime.checkpoint.commit_log.WHOLE_EVERY", 2), pieces:
        asked, out = query(in_process, sensors), tmp_path / "out"
        runs = ending_after_each_slice(lambda **options: asked.run(out, url, **options))
    assert documents(out) == whole
    assert committed(url) == [*range((runs - 2) // 2 * 2, runs - 1)]  # those before a whole record are gone
    with readable(url) as (copy, _):
        assert len(copy.path("published.jsonl").read_text().splitlines()) >= len(whole) - 2
    (published,) = [each["remote"]["logs"]["published.jsonl"] for each in records(url)[-2:] if "slice" in each][-1:]
    assert len(published) <= 3


def test_a_younger_run_takes_over_and_the_older_one_stops_in_words(
    in_process: InProcessSession, sensors: Path, whole: dict[str, bytes], url: str, tmp_path: Path
) -> None:
    asked = query(in_process, sensors)
    has_begun: list[bool] = []

    def take_over(_: object) -> None:
        if not has_begun:
            has_begun.append(True)
            asked.run(tmp_path / "younger", url, overwrite=True, moved=True)

    with pytest.raises(StateError) as stopped:
        asked.run(tmp_path / "older", url, on_slice=take_over)
    assert stopped.value.what == f"another run has taken over the checkpoint {url}"
    assert stopped.value.hint
    assert [*documents(tmp_path / "older")] == [*whole][:1]
    assert committed(url) == [*range(len(committed(url)))]
    with readable(url) as (copy, _):
        assert [each.slice for each in CommitLog(copy.below("commits")).records()] == committed(url)


@pytest.mark.parametrize("takes_over", [False, True])
def test_on_a_cluster_a_task_that_misses_what_a_younger_run_has_removed_is_explained(
    takes_over: bool, in_process: InProcessSession, sensors: Path, url: str, tmp_path: Path
) -> None:
    def missing(execution: Execution, *_: object) -> None:
        assert isinstance(execution._checkpoint.mirror, RemoteCheckpoint)
        execution._checkpoint.mirror.is_shared = True
        if takes_over:
            RemoteCheckpoint(url, tmp_path / "younger").begin()
        raise FileNotFoundError("no such object")

    words = f"another run has taken over the checkpoint {url}" if takes_over else "no such object"
    error = StateError if takes_over else FileNotFoundError
    with mock.patch.object(Execution, "_write_letters", missing), pytest.raises(error, match=words):
        query(in_process, sensors).run(tmp_path / "out", url)


def test_a_start_says_from_which_run_it_takes_over_unless_that_has_ended(
    in_process: InProcessSession, sensors: Path, url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked = query(in_process, sensors)

    def end(_: object) -> None:
        raise Ends

    def lines() -> list[str]:
        found = [record.getMessage() for record in caplog.records if record.name == "xmlstream.checkpoint"]
        caplog.clear()
        return found

    with suppress(Ends):
        asked.run(tmp_path / "out", url, on_slice=end)
    assert not lines()
    with suppress(Ends):
        asked.run(tmp_path / "out", url, on_slice=end)
    assert not lines()  # the run before has noted that it failed
    store, *_, last = ObjectStore(url), *(each for each in records(url) if "slice" in each)
    run = last["remote"]["run"]
    store.delete(f"runs/{run}.ended.json")  # as if it had been killed
    asked.run(tmp_path / "out", url)
    before = f"taking the checkpoint {url} over from run {run}, which has left no note of its end; "
    assert lines() == [f"{before}the last commit is of {last['time']}: if it still runs, it stops at its next commit"]


def test_what_a_copy_lacks_is_named_by_its_url(
    in_process: InProcessSession, sensors: Path, url: str, tmp_path: Path
) -> None:
    RemoteCheckpoint(url, tmp_path / "begun").begin()
    with readable(url) as (copy, _), pytest.raises(StateError) as told:
        inspect(copy)
    assert told.value.what == f"there is no checkpoint in {url}"
    query(in_process, sensors).run(tmp_path / "out", url)
    with readable(url) as (copy, _):
        assert inspect(copy).checkpoint == url
        copy.path("query.json").write_text("{}")
        with pytest.raises(StateError, match=re.escape(f"damaged: {url}/query.json is not as it was written")):
            SameQuery(copy, query(in_process, sensors).root, "UTC", []).require(moved=False)
        last = f"commits/{copy.names('commits')[-1]}"
        copy.path(last).write_text("{}")
        with pytest.raises(StateError, match=re.escape(f"damaged: {url}/{last} is not as it was written")):
            Checkpoint(copy)


def test_a_log_of_documents_is_put_in_parts_and_not_as_a_file_too(
    in_process: InProcessSession, url: str, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.xml").write_text(f"<s><r><a>{number}</a></r></s>")
    table = "CREATE TABLE s (a INT) USING punctuated_xml OPTIONS (path '${IN}', rowTag 'r', maxFilesPerSlice '1');"
    asked = xs.from_sql(in_process, f"{table} SELECT * FROM s", {"IN": str(tmp_path / "in")})
    ending_after_each_slice(lambda **options: asked.run(tmp_path / "out", url, **options))
    remote = [each["remote"] for each in records(url) if "slice" in each]
    assert all(any(key.startswith("documents/") for key in each["logs"]) for each in remote)
    assert not [key for each in remote for key in each["objects"] if key.startswith("documents/")]


@pytest.mark.rest
def test_of_many_runs_at_once_no_two_commit_a_slice(
    in_process: InProcessSession, sensors: Path, whole: dict[str, bytes], url: str, tmp_path: Path
) -> None:
    """Twenty starts against each other, each for a slice; which run goes on is left to chance."""
    failures: list[str] = []

    def end(_: object) -> None:
        raise Ends

    def run(number: int) -> None:
        asked = query(xs.open_session(engine="duckdb"), sensors)
        try:
            asked.run(tmp_path / f"out-{number}", url, moved=True, on_slice=end)
        except Ends:
            pass
        except Exception as error:  # noqa: BLE001 - looked at below
            failures.append(str(error))

    for first in range(0, 20, 4):
        threads = [threading.Thread(target=run, args=(number,)) for number in range(first, first + 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    query(in_process, sensors).run(tmp_path / "out-20", url, moved=True)
    assert all("has taken over" in failure for failure in failures), failures
    assert committed(url) == [*range(len(committed(url)))]
    numbers = ObjectStore(url).names("commits")
    assert numbers == [f"{number:09d}.json" for number in range(len(numbers))]
    for number in range(21):
        for name, text in documents(tmp_path / f"out-{number}").items():
            assert text == whole[name]


def test_a_run_of_another_query_is_refused_and_stops_nobody(
    in_process: InProcessSession, sensors: Path, url: str, tmp_path: Path
) -> None:
    query(in_process, sensors).run(tmp_path / "out", url)
    before = ObjectStore(url).names("commits")
    with pytest.raises(StateError, match=re.escape(f"the checkpoint {url} belongs to another query")):
        query(in_process, sensors, QUERY).run(tmp_path / "other", url)
    assert ObjectStore(url).names("commits") == before


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("owner", "name", "after"),
    [
        (RemoteCheckpoint, "create", False),
        (RemoteCheckpoint, "create", True),
        (DirectorySink, "publish", False),
        (DirectorySink, "publish", True),
        (CommitLog, "create", False),
    ],
    ids=["before the commit", "after it", "before publication", "after it", "before the record in the copy"],
)
def test_a_crash_around_the_commit_loses_nothing_and_repeats_nothing(
    in_process: InProcessSession,
    sensors: Path,
    whole: dict[str, bytes],
    url: str,
    tmp_path: Path,
    owner: type,
    name: str,
    after: bool,
) -> None:
    asked, out = query(in_process, sensors), tmp_path / "out"
    original = getattr(owner, name)
    calls: list[int] = []

    def dying(*args: Any, **given: Any) -> Any:
        calls.append(1)
        if len(calls) == 2 and not after:
            raise Ends
        result = original(*args, **given)
        if len(calls) == 2:
            raise Ends
        return result

    with mock.patch.object(owner, name, dying), pytest.raises(Ends):
        asked.run(out, url)
    asked.run(out, url)
    assert documents(out) == whole
    assert committed(url) == [*range(len(committed(url)))]


def test_drafts_of_a_committed_slice_outlast_the_working_copy(
    in_process: InProcessSession, sensors: Path, url: str, tmp_path: Path
) -> None:
    """A table is loaded after the commit: its drafts lie in the checkpoint."""
    table, whole = tmp_path / "t.delta", tmp_path / "whole.delta"
    pytest.importorskip("deltalake")
    asked = query(in_process, sensors)
    asked.run(whole, tmp_path / "checkpoint")
    published = StagedSink.publish
    calls: list[int] = []

    def dying(self: Any, draft: Any) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise Ends
        published(self, draft)

    with mock.patch.object(StagedSink, "publish", dying), pytest.raises(Ends):
        asked.run(table, url)
    asked.run(table, url)
    from deltalake import DeltaTable

    rows = [sorted(DeltaTable(str(each)).to_pyarrow_table().to_pylist(), key=str) for each in (table, whole)]
    assert rows[0] == rows[1]


@pytest.mark.rest
def test_a_lost_response_is_no_other_run(
    in_process: InProcessSession, sensors: Path, whole: dict[str, bytes], bucket: str, tmp_path: Path
) -> None:
    """Of each request that puts a record, the store acts and the response is lost: the request comes again."""
    import obstore
    from obstore.exceptions import GenericError

    put, lost = obstore.put, set[str]()

    def losing(client: Any, key: str, *others: Any, **given: Any) -> Any:
        done = put(client, key, *others, **given)
        if "/commits/" in key and key not in lost:
            lost.add(key)
            raise GenericError("the connection was closed")
        return done

    with mock.patch.object(obstore, "put", losing):
        query(in_process, sensors).run(tmp_path / "out", bucket)
    assert documents(tmp_path / "out") == whole
    assert len(lost) == 1 + len(committed(bucket)) > 4


@pytest.mark.sampled(3)
@pytest.mark.parametrize("is_gone", [True, False], ids=["gone", "changed"])
@pytest.mark.parametrize("folder", ["objects/", "logs/", "commits/000000003"])
def test_a_damaged_object_is_named(
    in_process: InProcessSession, sensors: Path, url: str, tmp_path: Path, folder: str, is_gone: bool
) -> None:
    asked, store = query(in_process, sensors), ObjectStore(url)
    seen: list[Any] = []

    def end(report: Any) -> None:
        seen.append(report)
        if len(seen) == 4:
            raise Ends

    with mock.patch("xmlstream.runtime.checkpoint.commit_log.WHOLE_EVERY", 2), pytest.raises(Ends):
        asked.run(tmp_path / "out", url, on_slice=end)
    key = max(one.key for one in store.listed() if one.key.startswith(folder))
    if is_gone:
        store.delete(key)
    else:
        store.write(key, [store.read(key)[:-3] + b"no\n"])
    state = "gone" if is_gone else "not as it was written"
    with pytest.raises(StateError, match=re.escape(f"{store.where(key)} is {state}")) as error:
        asked.run(tmp_path / "out", url)
    assert error.value.hint


def test_litter_goes_and_what_counts_stays(
    in_process: InProcessSession, sensors: Path, whole: dict[str, bytes], url: str, tmp_path: Path
) -> None:
    asked, store, out = query(in_process, sensors), ObjectStore(url), tmp_path / "out"
    seen: list[Any] = []

    def end(report: Any) -> None:
        seen.append(report)
        if len(seen) == 3:
            raise Ends

    with pytest.raises(Ends):
        asked.run(out, url, on_slice=end)
    litter = ["objects/dead/state/join/1.parquet", "logs/published.jsonl/0-9-dead", "runs/dead.json"]
    for key in litter:
        store.write(key, [b"x"])
    remote = RemoteCheckpoint(url, tmp_path / "a")
    remote.begin()
    remote.settle()
    assert all(store.size(key) is not None for key in litter)
    with mock.patch.object(remote_checkpoint, "LITTER_SECONDS", -60):
        remote = RemoteCheckpoint(url, tmp_path / "b")
        remote.begin()
        remote.settle()
    assert not any(store.size(key) is not None for key in litter)
    asked.run(out, url)
    assert documents(out) == whole


@pytest.mark.rest
def test_the_requests_of_starts_and_slices_are_few_and_reported(
    in_process: InProcessSession, sensors: Path, bucket: str, tmp_path: Path
) -> None:
    asked, out = query(in_process, sensors), tmp_path / "out"
    reports: list[dict[str, Any]] = []
    starts: list[int] = []
    begin = RemoteCheckpoint.begin

    def counted(self: RemoteCheckpoint) -> None:
        begin(self)
        self.settle()
        starts.append(object_requests.requests.total() - before)

    def end(report: dict[str, Any]) -> None:
        reports.append(report)
        if len(reports) == 5:
            raise Ends

    for _ in range(2):
        before = object_requests.requests.total()
        with mock.patch.object(RemoteCheckpoint, "begin", counted), suppress(Ends):
            asked.run(out, bucket, on_slice=end)
    slices = [sum(report["requests"].values()) for report in reports if "requests" in report]
    print(f"requests of a start: {starts}; of a slice: {slices}")
    assert len(slices) >= 5
    assert max(slices) <= 10
    assert starts[0] <= 12
    assert starts[1] <= 40
    reports.clear()
    asked.run(out, tmp_path / "directory", on_slice=reports.append, overwrite=True)
    assert not [report for report in reports if "requests" in report]


def test_a_start_removes_dead_letters_of_runs_before_it_and_none_of_those_after_it(tmp_path: Path) -> None:
    url = f"memory://letters/{tmp_path.name}"
    store = ObjectStore(url)
    store.write("_dead_letters/s-000000001-dead.jsonl", [b"{}"])
    run = RemoteCheckpoint(url, tmp_path / "one")
    run.begin()
    run.settle()
    assert store.names("_dead_letters") == []
    # A run that has taken over meanwhile, when the first one comes to look for litter.
    store.write("_dead_letters/s-000000001-next.jsonl", [b"{}"])
    run._remove_litter(0, [], None)
    assert store.names("_dead_letters") == ["s-000000001-next.jsonl"]


def test_dead_letters_without_an_output_directory_go_to_the_store(
    in_process: InProcessSession, url: str, tmp_path: Path
) -> None:
    (tmp_path / "in.xml").write_text("<r><row><h>1</h></row><row><h>x</h></row></r>")
    options = f"path '{tmp_path}/in.xml', rowTag 'row', mode 'PERMISSIVE'"
    table = f"CREATE TABLE t (h INT) USING punctuated_xml OPTIONS ({options});"
    assert list(xs.from_sql(in_process, f"{table} SELECT h FROM t").slices(url))
    (name,) = ObjectStore(url).names("_dead_letters")
    assert re.fullmatch(r"\w+-\d{9}-[0-9a-f]{16}\.jsonl", name)


def test_what_reads_a_checkpoint_reads_one_in_a_store(
    in_process: InProcessSession, sensors: Path, url: str, tmp_path: Path
) -> None:
    from xmlstream.monitor.monitor import recorded_view

    seen: list[Any] = []

    def end(report: Any) -> None:
        seen.append(report)
        if len(seen) == 3:
            raise Ends

    with pytest.raises(Ends):
        query(in_process, sensors).run(tmp_path / "out", url, on_slice=end)
    before = ObjectStore(url).names("commits")
    with readable(url) as (copy, refresh):
        refresh()
        assert recorded_view(copy).state == "failed"
        assert recorded_view(copy).totals.slices == 3
    assert not copy.exists()
    assert ObjectStore(url).names("commits") == before


def test_what_cannot_be_is_refused_in_words(in_process: InProcessSession, sensors: Path, tmp_path: Path) -> None:
    asked = query(in_process, sensors)
    with pytest.raises(UsageError, match="hdfs://there/state is neither on this file system"):
        asked.run(tmp_path / "out", "hdfs://there/state")
    with pytest.raises(UsageError, match=r"the working copy .*work for a checkpoint that is not in an object store"):
        asked.run(tmp_path / "out", tmp_path / "state", work=tmp_path / "work")


@pytest.mark.rest
def test_killed_again_and_again_it_goes_on(
    in_process: InProcessSession, sensors: Path, whole: dict[str, bytes], bucket: str, tmp_path: Path
) -> None:
    """Each time by SIGKILL, each time in a new process with an empty working copy."""
    text, out = tmp_path / "query.sql", tmp_path / "out"
    text.write_text(JOIN)
    points = ["after a segment is written", "before the commit", "after the commit", "after the document is published"]
    for slice_id, point in enumerate(points, start=1):
        killed = [sys.executable, str(HERE / "killed_run.py"), str(text), str(sensors), str(out), bucket]
        done = subprocess.run([*killed, point, str(slice_id), "duckdb"], check=False, timeout=300)
        assert done.returncode == -signal.SIGKILL, point
    query(in_process, sensors).run(out, bucket)
    assert documents(out) == whole
    assert not list(out.glob(".slice-*"))


@pytest.mark.rest
@pytest.mark.spark
@pytest.mark.slow
def test_under_spark_it_goes_on_in_an_empty_copy(
    spark: Session, sensors: Path, whole: dict[str, bytes], bucket: str, tmp_path: Path
) -> None:
    asked, out = query(spark, sensors), tmp_path / "out"
    seen: list[Any] = []

    def end(report: Any) -> None:
        seen.append(report)
        if len(seen) % 2 == 0:
            raise Ends

    def runs() -> Iterator[bool]:
        while True:
            try:
                asked.run(out, bucket, on_slice=end)
            except Ends:
                yield True
            else:
                return

    assert sum(runs()) >= 2
    assert documents(out) == whole
