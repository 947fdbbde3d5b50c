"""Results as objects of a store: the same bytes as in a directory, each document once, whatever ends a run."""

from __future__ import annotations

import io
import json
import os
import re
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from xmlstream.cli.concatenation import concatenate
from xmlstream.monitor.monitor import recorded_view
from xmlstream.operators.storage.object_requests import requests
from xmlstream.operators.storage.object_urls import joined, with_options
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.punct_ns.errors import QueryError, StateError, UsageError
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.loop import plan_walk
from xmlstream.runtime.metrics import read_metrics
from xmlstream.sink import directory_sink
from xmlstream.sink.target import Target
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

SLICES = 4
SOURCE = """CREATE TABLE s (k STRING, hour INT) USING punctuated_xml
OPTIONS (path '{}', rowTag 'r', schemes 'hour', maxFilesPerSlice '1', ungrammatical 'divert');
"""


@pytest.fixture(params=["memory", "server"])
def url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A place in a store of this process, and one on a real server."""
    if request.param == "server":
        return str(request.getfixturevalue("bucket"))
    return f"memory://{uuid.uuid4().hex[:12]}/there"


def documents(directory: Path, number: int = SLICES, late: int | None = None) -> Path:
    """A document a slice, of an hour each; the one of slice `late` has a tuple of the hour before."""
    directory.mkdir(exist_ok=True)
    for hour in range(number):
        hours = [hour, hour, *([hour - 1] if hour == late else [])]
        rows = "".join(f"<r><k>k{hour}-{i} &amp;</k><hour>{h}</hour></r>" for i, h in enumerate(hours))
        closed = f"<p:r><k>*</k><hour>{hour}</hour></p:r>"
        (directory / f"{hour:03}.xml").write_text(f"<rs xmlns:p='{PUNCT_NS}'>{rows}{closed}</rs>")
    return directory


FORMS = {"xml": "punctuated_xml", "parquet": "parquet", "csv": "csv", "json": "json"}


def tables(url: str) -> str:
    """Results in all forms, and partitioned ones, below a URL or a directory."""
    text = SOURCE
    for form, using in FORMS.items():
        text += f"CREATE TABLE {form} USING {using} OPTIONS (path '{joined(url, form)}');"
        text += f"INSERT INTO {form} SELECT k, hour FROM s;"
    for form in ("parquet", "json"):
        text += (
            f"CREATE TABLE by_{form} USING {form} PARTITIONED BY (hour) OPTIONS (path '{joined(url, f'by_{form}')}');"
        )
        text += f"INSERT INTO by_{form} SELECT k, hour FROM s;"
    return text


def run(session: Session, directory: Path, url: str, checkpoint: Path, **options: Any) -> xs.Summary:
    return xs.run(xs.inserts_from_sql(session, tables(url).format(directory)), checkpoint, **options)


def one(session: Session, directory: Path, url: str, checkpoint: Path, **options: Any) -> xs.Summary:
    query = xs.from_sql(session, SOURCE.format(directory) + "SELECT k, hour FROM s")
    return query.run(url, checkpoint, **options)


def objects_in(url: str) -> dict[str, bytes]:
    store = ObjectStore(url)
    return {each.key: store.read(each.key) for each in store.listed()}


def files_in(directory: Path) -> dict[str, bytes]:
    paths = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


def drafts_in(checkpoint: Path) -> list[str]:
    return [path.name for path in (checkpoint / "drafts").rglob("*.*")]


def cat(place: Path | str) -> bytes:
    out = io.BytesIO()
    concatenate(place, out)
    return out.getvalue()


class Killed(BaseException):
    """In place of SIGKILL: no code of the run expects it."""


def dying(monkeypatch: pytest.MonkeyPatch, part: str, *, put: bool = False) -> None:
    """Has the run die where it first creates an object whose key contains `part`, after that object was put or not."""
    create = ObjectStore.create

    def created(self: ObjectStore, key: str, pieces: Any) -> None:
        if part in key:
            monkeypatch.setattr(ObjectStore, "create", create)
            if put:
                create(self, key, pieces)
            raise Killed
        create(self, key, pieces)

    monkeypatch.setattr(ObjectStore, "create", created)


def test_objects_are_the_documents_that_a_directory_has(session: Session, tmp_path: Path, url: str) -> None:
    source = documents(tmp_path / "in", late=2)
    run(session, source, str(tmp_path / "out"), tmp_path / "there")
    run(session, source, url, tmp_path / "here")
    assert objects_in(url) == files_in(tmp_path / "out")
    assert sum("slice-" in key for key in objects_in(joined(url, "xml"))) == SLICES
    assert any(key.startswith("_dead_letters/") for key in objects_in(joined(url, "xml")))
    assert not drafts_in(tmp_path / "here")
    assert cat(joined(url, "xml")) == cat(tmp_path / "out" / "xml")
    assert cat(str(tmp_path / "out" / "xml")).count(b"<row>") == 2 * SLICES


@pytest.mark.sampled(4)
@pytest.mark.parametrize("put", [False, True])
@pytest.mark.parametrize(
    "part", ["slice-000000001.xml", "slice-000000002.json", "hour=1/_SUCCESS", "s-000000002.jsonl"]
)
def test_killed_between_commit_and_publication_the_next_run_publishes(
    in_process: Session, tmp_path: Path, url: str, part: str, put: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = documents(tmp_path / "in", late=2)
    run(in_process, source, str(tmp_path / "out"), tmp_path / "there")
    dying(monkeypatch, part, put=put)
    with pytest.raises(Killed):
        run(in_process, source, url, tmp_path / "here")
    run(in_process, source, url, tmp_path / "here")
    assert objects_in(url) == files_in(tmp_path / "out")
    assert not drafts_in(tmp_path / "here")


def test_an_object_of_another_with_the_name_of_a_document_is_an_error_that_names_both(
    in_process: Session, tmp_path: Path, bucket: str
) -> None:
    source, key = documents(tmp_path / "in"), "slice-000000002.xml"
    one(in_process, documents(tmp_path / "first", 2), bucket, tmp_path / "state", keep_open=True)
    ObjectStore(bucket).write(key, [b"foreign"])
    with pytest.raises(StateError) as raised:
        one(in_process, source, bucket, tmp_path / "state", moved=True)
    assert "1 document is not from this query" in raised.value.what
    assert raised.value.where == bucket
    assert ObjectStore(bucket).read(key) == b"foreign"


def test_an_object_that_appears_during_the_run_is_an_error_that_names_both(
    in_process: Session, tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, key, create = documents(tmp_path / "in"), "slice-000000002.xml", ObjectStore.create

    def created(self: ObjectStore, name: str, pieces: Any) -> None:
        if name == key:
            self.write(key, [b"foreign"])
        create(self, name, pieces)

    monkeypatch.setattr(ObjectStore, "create", created)
    with pytest.raises(StateError) as raised:
        one(in_process, source, bucket, tmp_path / "state")
    monkeypatch.setattr(ObjectStore, "create", create)
    assert f"{bucket}/{key} exists and is not from this query" in raised.value.what
    assert "7-" in raised.value.what
    assert re.search(r"those of this query's object are \d+-[0-9a-f]{8}", raised.value.what)
    with pytest.raises(StateError, match=f"{key} is not as it was published: its length and checksum are 7-"):
        one(in_process, source, bucket, tmp_path / "state")
    ObjectStore(bucket).delete(key)
    one(in_process, source, bucket, tmp_path / "state")
    one(in_process, source, str(tmp_path / "out"), tmp_path / "other")
    assert objects_in(bucket) == files_in(tmp_path / "out")


def test_an_output_with_documents_of_an_earlier_query_is_refused_or_emptied(
    in_process: Session, tmp_path: Path, url: str
) -> None:
    source = documents(tmp_path / "in", late=2)
    one(in_process, documents(tmp_path / "first", 9, late=3), url, tmp_path / "state")
    ObjectStore(url).write("notes/slice-000000001.xml", [b"no document"])
    with pytest.raises(StateError, match=r"holds 9 documents of an earlier query"):
        one(in_process, source, url, tmp_path / "other")
    one(in_process, source, url, tmp_path / "other", overwrite=True)
    ObjectStore(url).delete("notes/slice-000000001.xml")
    one(in_process, source, str(tmp_path / "out"), tmp_path / "there")
    assert objects_in(url) == files_in(tmp_path / "out")


def test_damaged_and_missing_objects_are_found_by_a_start(in_process: Session, tmp_path: Path, url: str) -> None:
    source, key = documents(tmp_path / "in", 3), "slice-000000001.xml"
    one(in_process, source, url, tmp_path / "state", keep_open=True)
    content = ObjectStore(url).read(key)
    ObjectStore(url).write(key, [content.swapcase()])
    with pytest.raises(StateError, match=f"{key} is not as it was published"):
        one(in_process, source, url, tmp_path / "state", keep_open=True)
    ObjectStore(url).delete(key)
    with pytest.raises(StateError, match=f"is gone: {key}"):
        one(in_process, source, url, tmp_path / "state", keep_open=True)
    one(in_process, documents(source), url, tmp_path / "state", moved=True)
    assert sorted(objects_in(url)) == [f"slice-{n:09}.xml" for n in (0, 2, 3)]


def test_the_page_of_a_run_shows_dead_letters_from_the_store(in_process: Session, tmp_path: Path, url: str) -> None:
    one(in_process, documents(tmp_path / "in", late=2), url, tmp_path / "state")
    (letter,) = recorded_view(tmp_path / "state").letters()
    assert letter["kind"] == "ungrammatical"


def test_a_start_and_a_slice_take_few_requests(in_process: Session, tmp_path: Path, bucket: str) -> None:
    def counted(number: int) -> dict[str, int]:
        before = Counter(requests)
        one(in_process, documents(tmp_path / "in", number), bucket, tmp_path / "state", keep_open=True)
        return dict(requests - before)

    counted(2)
    # Three slices more: a put each. The start probes (two puts, a get, a delete), lists, and reads the last documents.
    assert counted(5) == {"put": 2 + 3, "delete": 1, "list": 1, "get": 1 + 2}


def test_reports_of_slices_are_objects(in_process: Session, tmp_path: Path, url: str) -> None:
    for number in (2, 4):
        source, metrics = documents(tmp_path / "in", number), joined(url, "m/metrics.jsonl")
        one(in_process, source, url, tmp_path / "state", metrics=metrics, keep_open=True)
    assert sorted(objects_in(metrics)) == [f"{number:09}.json" for number in range(4)]
    assert [report.slice for report in read_metrics(metrics)] == [0, 1, 2, 3]
    assert json.loads(objects_in(metrics)["000000003.json"])["items_in"] == 3


def test_tasks_write_the_parts_of_a_large_slice(
    session: Session, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for owner, name, value in ((plan_walk, "LARGE", 5), (directory_sink, "FEW", 3), (directory_sink, "MANY", 10)):
        monkeypatch.setattr(owner, name, value)
    source = tmp_path / "in"
    source.mkdir()
    rows = "".join(f"<r><k>k{n}</k><hour>1</hour></r>" for n in range(60))
    (source / "1.xml").write_text(f"<rs xmlns:p='{PUNCT_NS}'>{rows}<p:r><k>*</k><hour>1</hour></p:r></rs>")
    puts: list[str] = []
    create: Callable[..., None] = ObjectStore.create

    def created(self: ObjectStore, key: str, pieces: Any) -> None:
        puts.append(key)
        create(self, key, pieces)

    monkeypatch.setattr(ObjectStore, "create", created)
    one(session, source, url, tmp_path / "state")
    assert puts == sorted(puts)
    assert len(puts) > 1
    assert puts[-1] == "slice-000000000.xml"
    assert not drafts_in(tmp_path / "state")
    assert sorted(re.findall(rb"<k>(k\d+)</k>", cat(url))) == sorted(f"k{n}".encode() for n in range(60))


def test_marks_follow_the_documents_of_partitions_which_are_put_several_at_a_time(
    in_process: Session, tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, hours = tmp_path / "in", range(20)
    source.mkdir()
    rows = "".join(f"<r><k>k</k><hour>{hour}</hour></r>" for hour in hours)
    (source / "1.xml").write_text(f"<rs xmlns:p='{PUNCT_NS}'>{rows}<p:r><k>*</k><hour>[,9]</hour></p:r></rs>")
    done: list[str] = []
    create: Callable[..., None] = ObjectStore.create
    together = threading.Barrier(2, timeout=300)

    def created(self: ObjectStore, key: str, pieces: Any) -> None:
        if key in ("hour=0/slice-000000000.json", "hour=1/slice-000000000.json"):
            together.wait()
        create(self, key, pieces)
        if not key.startswith(".probe"):
            done.append(key)

    monkeypatch.setattr(ObjectStore, "create", created)
    query = xs.from_sql(in_process, SOURCE.format(source) + "SELECT k, hour FROM s")
    insert = query.insert_into(f"{bucket}.json", partition_by="hour")
    xs.run([insert], tmp_path / "state", keep_open=True)
    assert sorted(done[:20]) == sorted(f"hour={hour}/slice-000000000.json" for hour in hours)
    assert sorted(done[20:]) == sorted(f"hour={hour}/_SUCCESS" for hour in range(10))


def test_an_output_may_move_to_an_object_store(
    in_process: Session, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = joined(url, "a"), joined(url, "b")
    source = documents(tmp_path / "in", 2)
    one(in_process, source, first, tmp_path / "state", keep_open=True)
    with pytest.raises(StateError, match=f"writes to {re.escape(second)}, before to {re.escape(first)}"):
        one(in_process, source, second, tmp_path / "state", keep_open=True)
    for key, content in objects_in(first).items():
        ObjectStore(second).write(key, [content])
    one(in_process, documents(source), second, tmp_path / "state", moved=True)
    one(in_process, source, str(tmp_path / "out"), tmp_path / "other")
    assert objects_in(second) == files_in(tmp_path / "out")


def test_options_of_a_table_reach_the_store_and_are_not_shown(
    in_process: Session, tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = os.environ["AWS_ENDPOINT_URL"]
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    options = f"path '{bucket}', endpoint '{endpoint}', region 'us-east-1'"
    text = f"CREATE TABLE o USING csv OPTIONS ({options}); INSERT INTO o SELECT k, hour FROM s"
    xs.run(xs.inserts_from_sql(in_process, SOURCE.format(documents(tmp_path / "in")) + text), tmp_path / "state")
    there = with_options(bucket, {"endpoint": endpoint})
    assert sorted(objects_in(there)) == [f"slice-{number:09}.csv" for number in range(SLICES)]
    assert json.loads((tmp_path / "state" / "query.json").read_text().splitlines()[0])["outputs"][0]["output"] == bucket
    table = "CREATE TABLE o USING csv OPTIONS (path 'out', endpoint 'http://127.0.0.1:1');"
    with pytest.raises(QueryError, match="endpoint is an option of an object store"):
        read(f"{SOURCE}{table} INSERT INTO o SELECT k FROM s")


def test_a_store_that_cannot_be_used_is_named_before_a_slice_begins(
    in_process: Session, tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = documents(tmp_path / "in")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    with pytest.raises(UsageError, match=r"access to s3://tests/.* is denied"):
        one(in_process, source, bucket, tmp_path / "state")
    assert not (tmp_path / "state" / "commits").exists()
    with pytest.raises(UsageError, match=r"access to s3://tests/.* is denied"):
        Target(bucket).require_reachable()
