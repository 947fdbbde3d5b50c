"""Queries over documents in an object store, under both engines: what they answer to the same files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import xmlstream as xs
from tests.harness.seaweed import ObjectServer
from xmlstream.operators.storage.object_requests import requests
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.punct_ns.errors import InputError, UsageError
from xmlstream.punct_ns.xml_form import PUNCT_NS

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession, Session


def document(hour: int, rows: int = 3) -> bytes:
    items = "".join(f"<r><hour>{hour}</hour><n>{n}</n></r>" for n in range(rows))
    return f'<s>{items}<p:r xmlns:p="{PUNCT_NS}"><hour>{hour}</hour></p:r></s>'.encode()


def counts(session: Session, path: str, **options: str) -> xs.Query:
    source = xs.read(session, path, "hour INT, n INT", rowTag="r", schemes="hour", **options)
    return source.group_by("hour").agg("count(*) AS n")


def rows(table: pa.Table) -> list[tuple[int, int]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


def test_a_query_reads_objects_and_goes_on_after_a_restart(session: Session, bucket: str, tmp_path: Path) -> None:
    store = ObjectStore(bucket)
    for hour in range(4):
        store.write(f"in/day-{hour % 2}/{hour}.xml", [document(hour, 3 + hour)])
    query = counts(session, f"{bucket}/in/day-*/*.xml", maxFilesPerSlice="2")
    taken, slices = list[tuple[int, int]](), 0
    for slice_ in query.slices(tmp_path / "state", follow=True):
        taken += rows(slice_.tuples)
        slices += 1
        if len(taken) >= 4:
            break
    assert slices >= 2
    store.write("in/day-0/1.xml", [document(9)])
    for slice_ in query.slices(tmp_path / "state", follow=True):
        taken += rows(slice_.tuples)
        if (9, 3) in taken:
            break
    # The slice in which a loop ends comes again.
    assert sorted(set(taken)) == [(0, 3), (1, 4), (2, 5), (3, 6), (9, 3)]
    store.write("in/day-0/0.xml", [document(7)])
    with pytest.raises(InputError, match=r"/in/day-0/0\.xml was replaced by another object"):
        next(iter(query.slices(tmp_path / "state", follow=True)))


def test_options_of_the_store_and_the_output_of_another_query(
    in_process: InProcessSession,
    object_server: ObjectServer,
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = ObjectStore(bucket)
    for hour in range(3):
        store.write(f"in/{hour}.xml", [document(hour)])
    counts(in_process, f"{bucket}/in/").run(tmp_path / "out.parquet")
    for file in (tmp_path / "out.parquet").iterdir():
        if file.is_file():
            ObjectStore(bucket).write(f"out.parquet/{file.name}", [file.read_bytes()])
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    options = {"endpoint": object_server.endpoint, "region": "us-east-1"}
    assert rows(counts(in_process, f"{bucket}/in/", **options).to_arrow()) == [(0, 3), (1, 3), (2, 3)]
    assert rows(xs.read_parquet(in_process, f"{bucket}/out.parquet", **options).to_arrow()) == [(0, 3), (1, 3), (2, 3)]


def test_each_document_is_an_input_of_its_own(in_process: InProcessSession, bucket: str) -> None:
    for number in range(2):
        ObjectStore(bucket).write(f"{number}.xml", [document(7, 2)])
    assert rows(counts(in_process, f"{bucket}/", documents="files").to_arrow()) == [(7, 4)]


def test_requests_of_a_run(in_process: InProcessSession, tmp_path: Path) -> None:
    url = f"memory://{tmp_path.name}/in"
    for hour in range(3):
        ObjectStore(url).write(f"{hour}.xml", [document(hour)])
    query, before = counts(in_process, f"{url}/"), requests.copy()
    assert rows(query.to_arrow()) == [(0, 3), (1, 3), (2, 3)]
    # Two requests for each that looks for documents: what checks the inputs, and the reader. One read of each document,
    # for the one that plans slices and the one that parses.
    assert dict(requests - before) == {"list": 4, "get": 3}


def test_a_static_table_in_a_store_is_refused_at_the_start(session: Session, bucket: str) -> None:
    ObjectStore(bucket).write("in.xml", [document(1)])
    tables = (
        "CREATE TABLE s (hour INT, n INT) USING punctuated_xml OPTIONS "
        f"(path '{bucket}/in.xml', rowTag 'r', schemes 'hour');"
        f"CREATE TABLE t (hour INT) USING parquet OPTIONS (path '{bucket}/t.parquet');"
    )
    query = xs.from_sql(session, f"{tables} SELECT s.hour, n FROM s JOIN t ON s.hour = t.hour")
    with pytest.raises(UsageError, match=f"{bucket}/t.parquet, which a static table needs"):
        query.to_arrow()
