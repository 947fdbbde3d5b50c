"""Tables with transactions as sinks: each slice once, what is closed beside it, and what is wrong said in words."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg import catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.utils.config import Config

import xmlstream as xs
from tests.harness.dying import Died, dying
from tests.harness.nights import AT_NIGHT, SEED
from tests.harness.postgres import PASSWORD, postgres
from xmlstream.operators.storage.object_urls import with_options
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.punct_ns.errors import QueryError, StateError, UsageError, XmlStreamError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import any_arrow_type
from xmlstream.punct_ns.type_names import sql_type
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.settings import Settings
from xmlstream.sink import staged_sink
from xmlstream.sink.closings import ClosedSoFar
from xmlstream.sink.databases import delta, iceberg, postgresql
from xmlstream.sink.directory_sink import WrittenPart
from xmlstream.sink.sink import ComputedSlice, Exactness, SinkHome, SliceSink
from xmlstream.sink.staged_sink import StagedSlice
from xmlstream.sink.target import Target
from xmlstream.sql import script

SCHEMA = Schema.parse("hour INT, temp DOUBLE")
ALL = Schema.parse(
    "s STRING, i INT, t TINYINT, l BIGINT, d DOUBLE, f FLOAT, m DECIMAL(10,2), b BOOLEAN, day DATE, at TIMESTAMP,"
    " local TIMESTAMP_NTZ, `window.start` TIMESTAMP"
)
MOMENT = datetime(2003, 5, 15, 17, 20, 0, 5, tzinfo=UTC)
VALUES: list[tuple[Any, ...]] = [
    (
        'a,"\n\\N ü',
        1,
        -128,
        1 << 62,
        0.1,
        1.5,
        Decimal("-1.50"),
        True,
        date(2003, 5, 15),
        MOMENT,
        MOMENT.replace(tzinfo=None),
        MOMENT,
    ),
    ("", -1, 127, None, float("inf"), float("nan"), None, False, None, None, None, None),
    (None,) * 12,
]


_ICEBERG_NAMES = {
    "S3__ENDPOINT": "AWS_ENDPOINT_URL",
    "S3__ACCESS_KEY_ID": "AWS_ACCESS_KEY_ID",
    "S3__SECRET_ACCESS_KEY": "AWS_SECRET_ACCESS_KEY",
    "S3__REGION": "AWS_REGION",
}
"""Variables of the environment by which pyiceberg reaches a store, and those of the server in tests."""


def served(form: str) -> Any:
    """A form that needs a server."""
    return pytest.param(form, marks=pytest.mark.rest)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres() as url:
        yield url


@pytest.fixture(params=["delta", served("delta objects"), "iceberg", served("iceberg objects"), served("postgresql")])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An output of each form, which nobody has written to."""
    form, _, objects = request.param.partition(" ")
    home = request.getfixturevalue("bucket") if objects else str(tmp_path)
    if form == "delta":
        return f"{home}/hottest.delta"
    if form == "iceberg":
        settings = {"URI": f"sqlite:///{tmp_path}/catalog.db", "WAREHOUSE": home if objects else f"file://{home}"}
        for name, variable in _ICEBERG_NAMES.items() if objects else ():
            settings[name] = os.environ[variable]
        for name, value in settings.items():
            monkeypatch.setenv(f"PYICEBERG_CATALOG__TESTS__{name}", value)
        monkeypatch.setattr(catalog, "_ENV_CONFIG", Config())  # which was read at the import
        return "iceberg://tests/there.hottest"
    url: str = request.getfixturevalue("server")
    table = re.sub(r"\W", "_", tmp_path.name)[-40:]
    return f"{url}#{table}"


@pytest.fixture
def hottest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table of Iceberg in a catalog of its own."""
    for name, value in {"URI": f"sqlite:///{tmp_path}/catalog.db", "WAREHOUSE": f"file://{tmp_path}"}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__TESTS__{name}", value)
    monkeypatch.setattr(catalog, "_ENV_CONFIG", Config())
    return "iceberg://tests/there.hottest"


def _read(output: str, suffix: str = "") -> list[dict[str, Any]]:
    """The rows of a table, or of the one beside it."""
    if output.startswith("iceberg"):
        found_rows: list[dict[str, Any]] = (
            catalog.load_catalog("tests").load_table(f"there.hottest{suffix}").scan().to_arrow().to_pylist()
        )
        return found_rows
    if output.startswith("s3"):
        url = output.replace(".delta", f"{suffix}.delta")
        options = {"aws_allow_http": "true", "aws_conditional_put": "etag"}
        return DeltaTable(url, storage_options=options).to_pyarrow_table().to_pylist()
    if not output.startswith("postgresql"):
        path = Path(output)
        rows: list[dict[str, Any]] = (
            DeltaTable(str(path.with_name(path.stem + suffix + ".delta"))).to_pyarrow_table().to_pylist()
        )
        return rows
    url, _, table = output.partition("#")
    with psycopg.connect(url) as connection:
        connection.execute("SET TIME ZONE 'UTC'")
        found = connection.execute(f'SELECT * FROM "{table}{suffix}"')
        names = [column.name for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found]


_SINKS: list[SliceSink] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while _SINKS:
        _SINKS.pop().close()


def _sink(output: str, drafts: Path, schema: Schema = SCHEMA, query: str = "q", **known: bool) -> SliceSink:
    home = SinkHome(drafts / "drafts", query, known.get("goes_on", False), known.get("overwrite", False))
    _SINKS.append(Target(output).sink(schema, (), home))
    return _SINKS[-1]


def _slice(number: int, *rows: tuple[int, float], said: str = "") -> ComputedSlice:
    table = pa.table({"hour": pa.array([r[0] for r in rows], pa.int32()), "temp": [float(r[1]) for r in rows]})
    return ComputedSlice(number, [(table if rows else None, [Punctuation.parse(said, SCHEMA)] if said else [])])


def _hours(output: str) -> list[int]:
    return sorted(row["hour"] for row in _read(output))


def test_a_slice_is_there_once_however_often_it_is_published(place: str, tmp_path: Path) -> None:
    sink = _sink(place, tmp_path)
    first = sink.draft(_slice(0, (1, 0.5), (2, 1.5), said="<[,2], *>"))
    assert _hours(place) == []  # a draft is seen by nobody
    sink.publish(first)
    sink.publish(first)
    assert _hours(place) == [1, 2]
    # The process died after the table had taken the slice, and before it was known here.
    second = sink.draft(_slice(1, (3, 2.5), said="<3, *>"))
    kept = {path: path.read_bytes() for path in (tmp_path / "drafts").iterdir()}
    sink.publish(second)
    for path, content in kept.items():
        path.write_bytes(content)
    again = _sink(place, tmp_path, goes_on=True)
    again.publish(second)
    assert _hours(place) == [1, 2, 3]
    again.publish(again.draft(_slice(2, said="<*, *>")))
    assert again.draft(_slice(3)) is None
    closed = [(row["slice"], row["punctuation"], row["hour_from"], row["hour_to"]) for row in _read(place, "_closed")]
    assert sorted(closed) == [(0, "<(,2], *>", None, 2), (1, "<3, *>", 3, 3), (2, "<*, *>", None, None)]
    assert [row["punctuation"] for row in xs.closed(place, slice=1).to_pylist()] == ["<(,2], *>", "<3, *>"]
    assert not list((tmp_path / "drafts").iterdir())


def test_what_a_table_has_closed_is_seen_slice_by_slice(place: str, tmp_path: Path) -> None:
    closed = ClosedSoFar(place, {"hour": "[2,3]"})
    assert list(closed.read()) == []  # there is no table yet
    sink = _sink(place, tmp_path)
    assert list(closed.read()) == []
    with pytest.raises(UsageError, match=r"no slice 0: its last one is|there is no result"):
        xs.closed(place, slice=0)
    sink.publish(sink.draft(_slice(0, (1, 0.5), (2, 1.5), said="<[,2], *>")))
    assert list(closed.read()) == [0]
    assert list(map(str, closed.missing)) == ["<3, *>"]
    sink.publish(sink.draft(_slice(1, (4, 2.5))))
    assert list(closed.read()) == []
    sink.publish(sink.draft(_slice(2, (3, 2.5), said="<3, *>")))
    assert (list(closed.read()), closed.missing) == ([2], [])
    with pytest.raises(UsageError, match="no slice 3: its last one is 2"):
        xs.closed(place, slice=3)
    with pytest.raises(UsageError, match="has 1 patterns for 2 attributes") as refused:
        list(ClosedSoFar(place, "<3>").read())
    assert "hour INT, temp DOUBLE" in (refused.value.hint or "")


def test_a_commit_of_delta_and_a_snapshot_of_iceberg_have_what_they_close(hottest: str, tmp_path: Path) -> None:
    for number, output in enumerate((hottest, f"{tmp_path}/hottest.delta")):
        sink = _sink(output, tmp_path / str(number))
        sink.publish(sink.draft(_slice(0, (1, 0.5), said="<[,1], *>")))
        many = [Punctuation.parse(f"<{hour}, [{hour}.25,{hour}.5]>", SCHEMA) for hour in range(1000, 2000)]
        sink.publish(
            sink.draft(ComputedSlice(1, [(pa.table({"hour": pa.array([7], pa.int32()), "temp": [1.5]}), many)]))
        )
    table = catalog.load_catalog("tests").load_table("there.hottest")
    snapshots = [dict(snapshot.summary.additional_properties) for snapshot in table.snapshots() if snapshot.summary]
    commits = DeltaTable(f"{tmp_path}/hottest.delta").history()[-2::-1]
    for marks in (snapshots, commits):
        assert json.loads(marks[0]["xmlstream.closed"]) == ["<(,1], *>"]
        fit = json.loads(marks[1]["xmlstream.closed"])
        assert fit == list(map(str, many[: len(fit)]))
        assert len(fit) + int(marks[1]["xmlstream.closed.more"]) == 1000
        assert 3000 < len(marks[1]["xmlstream.closed"]) <= 4096


_LOOKS: dict[str, tuple[Any, str]] = {
    "delta": (DeltaTable, "transaction_version"),
    "iceberg": (SqlCatalog, "load_table"),
    "postgresql": (StagedSlice, "batches"),
}
"""What a loader of each kind of table calls last in its look at a table, before its write."""


def _standing_still(place: str, look: int, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """Has the loader that looks next call `meanwhile` after so many looks, before its write."""
    kind, name = _LOOKS["delta" if place.endswith(".delta") else place.partition(":")[0]]
    original, looks = getattr(kind, name), iter(range(look + 1))

    def looked(self: Any, *args: Any) -> Any:
        found = original(self, *args)
        if next(looks, None) == look:
            meanwhile()
        return found

    monkeypatch.setattr(kind, name, looked)


@pytest.mark.parametrize(("number", "look", "further"), [(0, 0, 0), (0, 0, 2), (1, 0, 2), (1, 1, 0)])
def test_a_slice_that_a_successor_adds_between_the_look_and_the_write_is_there_once(
    place: str, number: int, look: int, further: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slice_of(number: int) -> ComputedSlice:
        return _slice(number, (number, 0.5), said=f"<{number}, *>")

    def succeed() -> None:
        successor = _sink(place, tmp_path / "successor", goes_on=True)
        successor.publish(draft)
        for later in range(number + 1, number + 1 + further):
            successor.publish(successor.draft(slice_of(later)))

    sink = _sink(place, tmp_path)
    for done in range(number):
        sink.publish(sink.draft(slice_of(done)))
    draft = sink.draft(slice_of(number))
    shutil.copytree(tmp_path / "drafts", tmp_path / "successor" / "drafts")
    _standing_still(place, 0 if place.startswith("postgresql") else look, monkeypatch, succeed)
    sink.publish(draft)
    there = list(range(number + 1 + further))
    assert (_hours(place), sorted(row["slice"] for row in _read(place, "_closed"))) == (there, there)
    # Nor does the table forget what it has: the last slice is published again at the next start.
    again = _sink(place, tmp_path / "successor", goes_on=True)
    again.publish(again.draft(slice_of(there[-1])))
    assert _hours(place) == there


def test_an_empty_slice_of_a_late_run_does_not_hide_the_later_ones_of_its_successor(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def succeed() -> None:
        successor = _sink(place, tmp_path / "successor", goes_on=True)
        successor.publish(draft)
        successor.publish(successor.draft(_slice(2, (2, 0.5))))

    sink = _sink(place, tmp_path)
    sink.publish(sink.draft(_slice(0, (0, 0.5), said="<0, *>")))
    draft = sink.draft(_slice(1, said="<1, *>"))
    shutil.copytree(tmp_path / "drafts", tmp_path / "successor" / "drafts")
    _standing_still(place, 0, monkeypatch, succeed)
    sink.publish(draft)
    again = _sink(place, tmp_path / "successor", goes_on=True)
    again.publish(again.draft(_slice(2, (2, 0.5))))
    assert (_hours(place), sorted(row["slice"] for row in _read(place, "_closed"))) == ([0, 2], [0, 1])


_CALLS: dict[str, list[tuple[Any, str]]] = {
    "delta": [(DeltaTable, "create"), (deltalake, "write_deltalake")],
    "iceberg": [(SqlCatalog, "create_table"), (SqlCatalog, "commit_table")],
}
"""By what a loader creates a table and adds to it."""


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("place", [served("delta objects"), "iceberg"], indirect=True)
def test_after_an_error_of_the_store_a_loader_looks_again_whether_the_write_was_done(
    place: str, is_done: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = []
    for holder, name in _CALLS["delta" if place.endswith(".delta") else "iceberg"]:
        original, failing = getattr(holder, name), [1, 1]

        def called(*args: Any, original: Any = original, failing: list[int] = failing, **named: Any) -> Any:
            done = original(*args, **named) if is_done or not failing else None
            if failing:
                failing.pop()
                raise OSError("Generic S3 error\n  \x1b[31m↳\x1b[0m no answer")
            return done

        monkeypatch.setattr(holder, name, called)
        failures.append(failing)
    sink = _sink(place, tmp_path)
    for number in range(2):
        sink.publish(sink.draft(_slice(number, (number, 0.5), said=f"<{number}, *>")))
    assert failures == [[], []]
    assert (_hours(place), sorted(row["slice"] for row in _read(place, "_closed"))) == ([0, 1], [0, 1])


@pytest.mark.parametrize("place", ["delta", served("delta objects"), "iceberg"], indirect=True)
def test_an_error_that_lasts_names_the_table_and_what_the_store_said(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staged_sink, "_PAUSES", (0.0,))
    sink = _sink(place, tmp_path)
    holder, name = _CALLS["delta" if place.endswith(".delta") else "iceberg"][1]

    def called(*args: Any, **named: Any) -> None:
        raise OSError("Generic S3 error\n  \x1b[31m↳\x1b[0m Error performing PUT\n    \x1b[31m↳\x1b[0m timed out")

    monkeypatch.setattr(holder, name, called)
    draft = sink.draft(_slice(0, (0, 0.5)))
    said = r"the \w+ table \S*hottest\S* cannot be written: Generic S3 error: timed out\n"
    with pytest.raises(XmlStreamError, match=said) as raised:
        sink.publish(draft)
    assert "the next run with the same checkpoint continues here" in (raised.value.hint or "")


def test_a_table_that_was_emptied_of_another_query_is_gone_on_with(place: str, tmp_path: Path) -> None:
    first = _sink(place, tmp_path, query="one")
    first.publish(first.draft(_slice(0, (1, 0.5), said="<1, *>")))
    other = _sink(place, tmp_path, query="other", overwrite=True)
    other.publish(other.draft(_slice(0, (2, 0.5))))
    again = _sink(place, tmp_path, query="other", goes_on=True)
    again.publish(again.draft(_slice(1, (3, 0.5))))
    assert _hours(place) == [2, 3]
    with pytest.raises(StateError, match="has slices of another query"):
        _sink(place, tmp_path, query="one", goes_on=True)


@pytest.mark.rest
@pytest.mark.parametrize("region", ["AWS_REGION", None])
def test_a_catalog_reaches_the_store_of_the_environment_and_looks_up_no_region(
    region: str | None, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looked_up(bucket: str) -> str:
        raise AssertionError(f"Amazon is asked where {bucket} is")

    monkeypatch.setattr("pyiceberg.io.pyarrow._cached_resolve_s3_region", looked_up)
    monkeypatch.setenv("PYICEBERG_CATALOG__TESTS__URI", f"sqlite:///{tmp_path}/catalog.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__TESTS__WAREHOUSE", bucket)
    monkeypatch.setattr(catalog, "_ENV_CONFIG", Config())
    if region is None:
        monkeypatch.delenv("AWS_REGION")
    sink = _sink("iceberg://tests/there.hottest", tmp_path)
    sink.publish(sink.draft(_slice(0, (1, 0.5))))
    assert any(each.key.endswith(".parquet") for each in ObjectStore(bucket).listed())


def test_a_process_that_dies_before_the_table_has_the_slice_loads_it_later(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = _sink(place, tmp_path)
    draft = sink.draft(_slice(0, (1, 0.5)))
    with monkeypatch.context() as patched:
        patched.setattr(staged_sink, "StagedSlice", None)
        with pytest.raises(TypeError):
            sink.publish(draft)
    _sink(place, tmp_path, goes_on=True).publish(draft)
    assert _hours(place) == [1]


def test_parts_that_tasks_have_written_are_loaded_in_one_transaction(place: str, tmp_path: Path) -> None:
    sink = _sink(place, tmp_path)
    writer = sink.part_writer(0, Exactness.EXACT)
    assert writer is not None
    parts = []
    for hours in ([1, 2], [3]):
        batch = _slice(0, *((hour, 0.0) for hour in hours)).parts[0][0]
        assert batch is not None
        (report,) = type(writer)(writer.form, writer.store, 0, Exactness.EXACT, few=0)(batch.to_batches())
        (row,) = report.to_pylist()
        parts.append(WrittenPart(row["name"], row["checksum"]))
    draft = sink.draft(replace(_slice(0, (4, 0.0), said="<4, *>"), before=parts))
    assert draft is not None
    assert len(draft.parts) == 2
    sink.publish(draft)
    assert _hours(place) == [1, 2, 3, 4]


def test_all_types_come_back(place: str, tmp_path: Path) -> None:
    sink = _sink(place, tmp_path, ALL)
    from xmlstream.punct_ns.slices import arrow_type

    columns = [
        pa.array(values, arrow_type(attribute.domain))
        for attribute, values in zip(ALL, zip(*VALUES, strict=True), strict=True)
    ]
    sink.publish(sink.draft(ComputedSlice(0, [(pa.Table.from_arrays(columns, names=list(ALL.names)), [])])))
    found = [tuple(row[name] for name in ALL.names) for row in _read(place)]
    assert sorted(map(_shown, found)) == sorted(map(_shown, VALUES))


def _shown(row: tuple[Any, ...]) -> str:
    """A row, with moments in the one zone that has several names."""
    plain = [value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value for value in row]
    return repr(plain)


def test_a_table_with_other_columns_is_refused(place: str, tmp_path: Path) -> None:
    _sink(place, tmp_path, Schema.parse("hour STRING, other INT"))
    with pytest.raises(
        UsageError, match=r"other columns than the result: hour is (text|string), not .*temp is missing"
    ):
        _sink(place, tmp_path)


def test_a_table_of_another_query_is_refused_unless_it_may_go(place: str, tmp_path: Path) -> None:
    sink = _sink(place, tmp_path, query="one")
    sink.publish(sink.draft(_slice(0, (1, 0.5), said="<1, *>")))
    with pytest.raises(StateError, match="has slices of another query"):
        _sink(place, tmp_path, query="other")
    sink = _sink(place, tmp_path, query="other", overwrite=True)
    assert (_read(place), _read(place, "_closed")) == ([], [])
    sink.publish(sink.draft(_slice(0, (2, 0.5))))
    assert _hours(place) == [2]


@pytest.mark.rest
def test_a_table_of_the_users_own_may_have_wider_types_and_rows(server: str, tmp_path: Path) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE TABLE wide (temp double precision, hour bigint PRIMARY KEY, noted text)")
        connection.execute("INSERT INTO wide VALUES (1, 1, 'mine')")
    sink = _sink(f"{server}#wide", tmp_path)
    sink.publish(sink.draft(_slice(0, (2, 0.5))))
    assert _hours(f"{server}#wide") == [1, 2]
    # What the table does not take is told, nothing of it stays, and nothing is lost.
    draft = sink.draft(_slice(1, (3, 0.5), (1, 0.5), said="<3, *>"))
    with pytest.raises(XmlStreamError, match=r"refuses the write: .*already exists") as error:
        sink.publish(draft)
    assert PASSWORD not in str(error.value)
    assert (_hours(f"{server}#wide"), _read(f"{server}#wide", "_closed")) == ([1, 2], [])
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DELETE FROM wide WHERE hour = 1")
    sink.publish(draft)
    assert _hours(f"{server}#wide") == [1, 2, 3]


@pytest.mark.rest
def test_a_connection_that_was_lost_between_two_slices_is_begun_anew(server: str, tmp_path: Path) -> None:
    sink = _sink(f"{server}#lost", tmp_path)
    sink.publish(sink.draft(_slice(0, (1, 0.5))))
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    sink.publish(sink.draft(_slice(1, (2, 0.5))))
    assert _hours(f"{server}#lost") == [1, 2]


def _wrong(url: str) -> dict[str, tuple[str, str]]:
    return {
        "down": ("postgresql://ann@127.0.0.1:1/postgres#t", r"no connection to .*127\.0\.0\.1:1.*refused"),
        "password": (url.replace("knows", "guesses") + "#t", "no connection to .*password authentication failed"),
        "database": (url.replace("/postgres", "/none") + "#t", 'database "none" does not exist'),
        "table": (url, "names no table"),
    }


@pytest.mark.rest
@pytest.mark.parametrize("case", _wrong(""))
def test_a_database_that_cannot_be_reached_is_told_in_words(server: str, tmp_path: Path, case: str) -> None:
    output, what = _wrong(server)[case]
    for attempt in _attempts(output, tmp_path):
        with pytest.raises(UsageError, match=what) as error:
            attempt()
        assert "what%20she" not in str(error.value)


def _attempts(output: str, tmp_path: Path) -> list[Callable[[], object]]:
    return [Target(output).require_reachable, lambda: _sink(output, tmp_path)]


def test_a_table_that_a_killed_run_was_creating_is_created(tmp_path: Path) -> None:
    (tmp_path / "hottest.delta" / "_delta_log").mkdir(parents=True)
    (tmp_path / "hottest.delta" / "_delta_log" / "_commit_1f0c.json.tmp").write_text("{")
    _sink(str(tmp_path / "hottest.delta"), tmp_path)
    assert (tmp_path / "hottest.delta" / "_delta_log" / "00000000000000000000.json").exists()


def test_what_is_no_delta_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hottest.delta").mkdir()
    (tmp_path / "hottest.delta" / "mine.txt").write_text("")
    with pytest.raises(UsageError, match=r"hottest\.delta exists, but is not a Delta table"):
        _sink(str(tmp_path / "hottest.delta"), tmp_path)


@pytest.mark.parametrize("place", ["delta", served("delta objects")], indirect=True)
def test_a_delta_table_that_another_run_creates_meanwhile_is_taken(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _sink(place, tmp_path)
    looks, original = iter([False]), delta._is_table
    monkeypatch.setattr(delta, "_is_table", lambda store: next(looks, None) is None and original(store))
    sink = _sink(place, tmp_path)
    sink.publish(sink.draft(_slice(0, (1, 0.5))))
    assert _hours(place) == [1]


TABLES = "CREATE TABLE s (hour INT) USING punctuated_xml OPTIONS (path 'in', rowTag 'r');"


@pytest.mark.parametrize(
    ("sink", "output", "shown"),
    [
        ("USING postgresql OPTIONS (url 'postgresql://a:b@h/d')", "postgresql://a:b@h/d#t", "postgresql://a@h/d#t"),
        (
            "USING PostgreSQL OPTIONS (url 'postgresql://h/d', table 'x.y')",
            "postgresql://h/d#x.y",
            "postgresql://h/d#x.y",
        ),
        ("USING delta OPTIONS (path 'lake/t')", "lake/t", "lake/t"),
    ],
)
def test_a_sink_is_declared_and_its_password_is_not_recorded(sink: str, output: str, shown: str) -> None:
    (answer,) = script.read(f"{TABLES} CREATE TABLE t {sink}; INSERT INTO t SELECT * FROM s").answers
    assert answer.sink is not None
    target = answer.sink.target
    assert (target.output, target.shown, target.documents()) == (output, shown, None)
    assert "b@h" not in str(target.recorded)


@pytest.mark.parametrize(
    ("sink", "what"),
    [
        ("USING postgresql", "the option url is missing"),
        ("USING postgresql OPTIONS (path 'x')", "a sink has no option path"),
        ("USING delta OPTIONS (path 'x', rowTag 'r')", "a sink has no option rowTag"),
        ("USING orc OPTIONS (path 'x')", "a sink USING orc is not supported"),
    ],
)
def test_a_sink_that_is_declared_wrong_is_refused(sink: str, what: str) -> None:
    with pytest.raises(QueryError, match=what):
        script.read(f"{TABLES} CREATE TABLE t {sink}; INSERT INTO t SELECT * FROM s")


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_commit_of_iceberg_that_another_was_faster_than_or_whose_answer_is_lost_counts_once(
    hottest: str, tmp_path: Path, is_lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = _sink(hottest, tmp_path)
    sink.publish(sink.draft(_slice(0, (1, 0.5))))
    commit, failures = SqlCatalog.commit_table, [1]

    def committed(self: SqlCatalog, *args: Any) -> Any:
        done = commit(self, *args) if is_lost or not failures else None
        if failures and failures.pop():
            raise CommitStateUnknownException("no answer") if is_lost else CommitFailedException("another was faster")
        return done

    monkeypatch.setattr(SqlCatalog, "commit_table", committed)
    sink.publish(sink.draft(_slice(1, (2, 0.5))))
    assert not failures
    assert _hours(hottest) == [1, 2]
    table = catalog.load_catalog("tests").load_table("there.hottest")
    summaries = [dict(snapshot.summary.additional_properties) for snapshot in table.snapshots() if snapshot.summary]
    assert [(each["xmlstream.query"], each["xmlstream.slice"]) for each in summaries] == [("q", "0"), ("q", "1")]
    assert summaries[0]["xmlstream.exact"] == "true"


def test_a_catalog_of_iceberg_that_is_not_configured_or_no_table_is_named_in_words() -> None:
    with pytest.raises(UsageError, match="catalog nowhere cannot be opened") as raised:
        Target("iceberg://nowhere/there.hottest").require_reachable()
    assert "PYICEBERG_CATALOG__NOWHERE__URI" in (raised.value.hint or "")
    with pytest.raises(UsageError, match="names no table of a catalog"):
        Target("iceberg://nowhere/hottest").require_reachable()


def test_tables_in_an_object_store_that_denies_access_are_named(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    with pytest.raises(UsageError, match=r"access to s3://tests/.* is denied"):
        _sink(f"{bucket}/hottest.delta", tmp_path)


def test_a_table_of_delta_does_not_begin_among_other_objects(bucket: str, tmp_path: Path) -> None:
    ObjectStore(bucket).write("hottest.delta/notes.txt", [b"mine"])
    with pytest.raises(UsageError, match=r"exists, but is not a Delta table"):
        _sink(f"{bucket}/hottest.delta", tmp_path)
    endpoint = os.environ["AWS_ENDPOINT_URL"]
    with pytest.raises(UsageError, match=r"exists, but is not a Delta table"):
        _sink(with_options(f"{bucket}/hottest.delta", {"endpoint": endpoint}), tmp_path)


class _Nights:
    """A query that is run night by night into one table, on DuckDB; each night has 10 rows, in its own slice."""

    def __init__(self, place: str, home: Path) -> None:
        self.place, self.home, self.nights = place, home, 0
        (home / "in").mkdir()

    def night(self, *, closes: bool = True, rows: int = 10, **options: Any) -> None:
        """One more night."""
        self.nights += 1
        text = "".join(f"<r><hour>{self.nights}</hour><temp>{n}</temp></r>" for n in range(rows))
        text += f"<p:r><hour>{self.nights}</hour></p:r>" if closes else ""
        (self.home / "in" / f"{self.nights:03}.xml").write_text(f"<rs xmlns:p='{PUNCT_NS}'>{text}</rs>")
        self.run(**options)

    def run(self, **options: Any) -> None:
        session = xs.open_session(engine="duckdb")
        text = f"""CREATE TABLE s (hour INT, temp DOUBLE) USING punctuated_xml
            OPTIONS (path '{self.home}/in', rowTag 'r', schemes 'hour'); SELECT hour, temp FROM s"""
        query = xs.from_sql(session, text)
        query.run(output=self.place, checkpoint=self.home / "state", keep_open=True, **options)

    def rows(self) -> int:
        return len(_read(self.place))


class _Table:
    """The two tables of a place: saved, removed, and put back, by whatever their users have for it."""

    def __init__(self, place: str, nights: _Nights) -> None:
        self.place, self.nights = place, nights

    def _paths(self) -> list[Path]:
        path = Path(self.place)
        return [path, path.with_name(f"{path.stem}_closed{path.suffix}")]

    def _execute(self, *commands: str) -> None:
        url, _, table = self.place.partition("#")
        with psycopg.connect(url) as connection:
            for command in commands:
                connection.execute(command.replace("T_", table))

    def drop(self, which: str = "both") -> None:
        """Removes the tables, or one of them."""
        suffixes = {"both": ("", "_closed"), "rows": ("",), "closed": ("_closed",)}[which]
        for suffix in suffixes:
            if self.place.startswith("iceberg"):
                catalog.load_catalog("tests").drop_table(f"there.hottest{suffix}")
            elif self.place.startswith("postgresql"):
                self._execute(f"DROP TABLE T_{suffix}")
            else:
                shutil.rmtree(self._paths()[suffix == "_closed"])

    def save(self) -> None:
        """Makes a copy of the tables, as a backup does."""
        if self.place.startswith("iceberg"):
            shutil.copy(self.nights.home / "catalog.db", self.nights.home / "saved.db")
        elif self.place.startswith("postgresql"):
            names = ("T_", "T__closed", "xmlstream_slices")
            self._execute(*(f"DROP TABLE IF EXISTS T__saved{i}" for i in range(3)))
            self._execute(*(f"CREATE TABLE T__saved{i} AS TABLE {name}" for i, name in enumerate(names)))
        else:
            for path in self._paths():
                shutil.rmtree(f"{path}.saved", ignore_errors=True)
                shutil.copytree(path, f"{path}.saved")

    def put_back(self) -> None:
        """Returns to the copy."""
        if self.place.startswith("iceberg"):
            shutil.copy(self.nights.home / "saved.db", self.nights.home / "catalog.db")
        elif self.place.startswith("postgresql"):
            names = ("T_", "T__closed", "xmlstream_slices")
            for i, name in enumerate(names):
                self._execute(f"TRUNCATE {name}", f"INSERT INTO {name} TABLE T__saved{i}")
        else:
            for path in self._paths():
                shutil.rmtree(path)
                shutil.copytree(f"{path}.saved", path)

    def roll_back(self, which: str) -> None:
        """Has a table show what it had two slices before, by the format's own means."""
        suffix = "_closed" if which == "closed" else ""
        if self.place.startswith("iceberg"):
            table = catalog.load_catalog("tests").load_table(f"there.hottest{suffix}")
            before = table.metadata.snapshots[-3].snapshot_id
            with table.manage_snapshots() as snapshots:
                snapshots.rollback_to_snapshot(before)
        else:
            written = DeltaTable(str(self._paths()[suffix == "_closed"]))
            written.restore(written.version() - 2)


@pytest.fixture(params=["delta", "iceberg", served("postgresql")])
def nights(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Nights:
    """Nights into a table of each form."""
    if request.param == "iceberg":
        return _Nights(request.getfixturevalue("hottest"), tmp_path)
    if request.param == "delta":
        return _Nights(f"{tmp_path}/hottest.delta", tmp_path)
    table = re.sub(r"\W", "_", tmp_path.name)[-40:]
    return _Nights(f"{request.getfixturevalue('server')}#{table}", tmp_path)


@pytest.mark.parametrize("which", ["both", "rows", "closed"])
def test_a_table_that_is_gone_is_refused(nights: _Nights, which: str) -> None:
    nights.night()
    nights.night()
    _Table(nights.place, nights).drop(which)
    for _ in range(2):  # what a start refuses it does not make meanwhile
        with pytest.raises(StateError, match=r"has lost slices of this query: it is gone, .* but slice 1 was loaded"):
            nights.night()
    nights.run(moved=True)
    assert nights.rows() == (40 if which == "closed" else 20)
    nights.night()
    assert nights.rows() == (50 if which == "closed" else 30)


def test_a_table_that_is_older_than_its_checkpoint_is_refused(nights: _Nights) -> None:
    nights.night()
    table = _Table(nights.place, nights)
    table.save()
    nights.night()
    nights.night()
    table.put_back()
    assert nights.rows() == 10
    with pytest.raises(StateError, match=r"the last one that it has is slice 0, but slice 2 was loaded") as raised:
        nights.night()
    assert raised.value.hint is not None
    assert "--moved goes on without" in raised.value.hint
    nights.run(moved=True)
    assert nights.rows() == 20
    nights.night()
    assert nights.rows() == 30


def test_a_table_that_is_newer_than_its_checkpoint_is_refused(nights: _Nights) -> None:
    nights.night()
    shutil.copytree(nights.home / "state", nights.home / "saved")
    nights.night()
    shutil.rmtree(nights.home / "state")
    shutil.copytree(nights.home / "saved", nights.home / "state")
    with pytest.raises(StateError, match=r"has slice 1 of this query, but the last one of the checkpoint is 0"):
        nights.night()


@pytest.mark.parametrize("which", ["rows", "closed"])
def test_a_table_that_was_rolled_back_is_refused(nights: _Nights, which: str) -> None:
    if nights.place.startswith("postgresql"):
        pytest.skip("PostgreSQL has no earlier versions of a table")
    for _ in range(4):
        nights.night()
    _Table(nights.place, nights).roll_back(which)
    with pytest.raises(StateError, match=r"the last one that it has is slice 1, but slice 3 was loaded"):
        nights.night()


def test_what_a_table_has_is_known_from_slices_without_rows_and_without_closings(nights: _Nights) -> None:
    for closes, rows in ((True, 0), (False, 3), (False, 2), (True, 0), (True, 0)):
        nights.night(closes=closes, rows=rows)
    assert nights.rows() == 5
    _Table(nights.place, nights).save()
    nights.night(rows=0)
    nights.run()
    _Table(nights.place, nights).put_back()
    with pytest.raises(StateError, match=r"has lost slices of this query"):
        nights.run()


def test_a_restore_of_delta_by_a_moment_or_a_version_is_seen(tmp_path: Path) -> None:
    """As Spark and this package write it."""
    commits: list[dict[str, Any]] = [
        {"version": v, "timestamp": 1000 * v, "xmlstream.query": "q", "xmlstream.slice": str(v)} for v in range(4)
    ]

    def last(**parameters: object) -> int | None:
        restore = {"version": 4, "timestamp": 9000, "operation": "RESTORE", "operationParameters": parameters}
        return delta._last_slice([restore, *reversed(commits)], "q", 3)

    assert last(version="1") == 1
    assert last(version=2, timestamp=None) == 2
    assert last(datetime="1500") == 1
    assert last(version=None, timestamp=str(datetime.fromtimestamp(2))) == 2
    assert last(version=None, timestamp="some time") == 3
    assert delta._last_slice([], "q", 3) == 3


@pytest.mark.parametrize("seed", range(SEED, SEED + (40 if AT_NIGHT else 2)))
def test_a_table_is_refused_exactly_if_it_lacks_what_was_loaded(nights: _Nights, seed: int) -> None:
    """Nights of any kind, runs that die at any step of a load, tables that are put back, and mended again."""
    drawn, table = random.Random(f"{nights.place.partition(':')[0]} {seed}"), _Table(nights.place, nights)
    loaders: dict[str, tuple[type, str]] = {
        "iceberg": (iceberg.IcebergLoader, "_add"),
        "postgresql": (postgresql.PostgresqlLoader, "load"),
    }
    of = loaders.get(nights.place.partition(":")[0], (delta.DeltaLoader, "_add"))
    nights.night()
    table.save()
    saved, waits, total = nights.nights, False, 10
    for _ in range(8):
        # A slice that no run has seen loaded is loaded again by the next one.
        match drawn.choice(["night", "night", "save", "older", "killed"]):
            case "save" if not waits:
                table.save()
                saved = nights.nights
            case "older":
                table.put_back()
                if saved < nights.nights - waits:
                    with pytest.raises(StateError, match="has lost slices of this query"):
                        nights.run()
                    return
            case "killed":
                rows, step = drawn.randint(1, 9), 0 if waits or of[1] == "load" else drawn.randint(0, 1)
                if waits:
                    nights.run()
                with pytest.raises(Died), dying(step, of, behind=drawn.random() < 0.5):
                    nights.night(rows=rows)
                total, waits = total + rows, True
            case _:
                rows = drawn.choice([0, 1, 9])
                nights.night(rows=rows)
                total, waits = total + rows, False
                assert nights.rows() == total


TEXTS = ["", " ", "abc  ", "x" * 300, "é€\n"]
MOMENTS = [datetime(2003, 5, 15, 17, 20, 0, 999_999, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC), MOMENT]
NUMBERS: dict[str, list[Any]] = {
    "SMALLINT": [-32768, 32767],
    "INT": [-(1 << 31), (1 << 31) - 1, 16_777_217],
    "BIGINT": [-(1 << 63), (1 << 63) - 1, (1 << 53) + 1],
    "FLOAT": [0.1, 3.4e38, -0.5],
    "DOUBLE": [0.1, 1.7e308, 5e-324],
    "DECIMAL(10,2)": [Decimal("12345678.99"), Decimal("-0.01")],
    "DECIMAL(2,2)": [Decimal("0.99")],
    "DECIMAL(38,0)": [Decimal(10**38 - 1)],
    "BOOLEAN": [True, False],
    "DATE": [date(1, 1, 1), date(9999, 12, 31)],
    "TIMESTAMP": MOMENTS,
    "TIMESTAMP_NTZ": [each.replace(tzinfo=None) for each in MOMENTS],
    "STRING": TEXTS,
}
COLUMN_TYPES = re.split(
    r"\s+",
    """smallint integer bigint real numeric numeric(10,0) numeric(10,2) numeric(12,2) numeric(12,4) numeric(5,0) date
    numeric(19,0) numeric(20,1) numeric(38,0) numeric(3,-2) numeric(2,5) boolean text varchar varchar(300) varchar(3)
    char(3) timestamp timestamptz timestamp(0) timestamptz(0) timestamp(3) timestamptz(6) timestamp(6) time""",
)


@pytest.mark.rest
@pytest.mark.parametrize("kind", NUMBERS)
def test_an_existing_column_has_each_value_as_it_is_or_is_refused(kind: str, server: str, tmp_path: Path) -> None:
    schema, refused = Schema.parse(f"v {kind}"), set[str]()
    there = pa.table({"v": pa.array(NUMBERS[kind], any_arrow_type(sql_type(kind)))})
    for number, column in enumerate([*COLUMN_TYPES, "double precision"]):
        table = f"held_{re.sub(r'[^a-z0-9]', '_', kind.lower())}_{number}"
        with psycopg.connect(server) as connection:
            connection.execute(f"DROP TABLE IF EXISTS {table}")
            connection.execute(f"CREATE TABLE {table} (v {column})")
        try:
            sink = _sink(f"{server}#{table}", tmp_path / str(number), schema, query=table)
        except UsageError:
            refused.add(column)
            continue
        sink.publish(sink.draft(ComputedSlice(0, [(there, [])])))
        found = [row["v"] for row in _read(f"{server}#{table}")]
        if kind == "FLOAT":
            found = pa.array(found, pa.float32()).to_pylist()
        assert Counter(found) == Counter(there["v"].to_pylist()), column
    assert len(refused) <= len(COLUMN_TYPES)


@pytest.mark.rest
def test_a_table_by_two_names_is_one(server: str, tmp_path: Path) -> None:
    sink = _sink(f"{server}#named_twice", tmp_path / "1")
    sink.publish(sink.draft(_slice(0, (1, 0.5), said="<1, *>")))
    with pytest.raises(StateError, match="named_twice has slices of another query"):
        _sink(f"{server}#public.named_twice", tmp_path / "2", query="other")
    # As markers were before a table had one name.
    with psycopg.connect(server) as connection:
        connection.execute("UPDATE xmlstream_slices SET result = 'named_twice' WHERE result = 'public.named_twice'")
    assert len(xs.closed(f"{server}#named_twice").to_pylist()) == 1
    again = _sink(f"{server}#public.named_twice", tmp_path / "1", goes_on=True)
    again.publish(again.draft(_slice(0, (1, 0.5))))
    assert _hours(f"{server}#named_twice") == [1]
    assert len(xs.closed(f"{server}#public.named_twice").to_pylist()) == 1
    host = server.replace("postgresql://", "postgres://")
    with pytest.raises(UsageError, match="two results go to"):
        Settings((Target(f"{server}#t"), Target(f"{host}#public.t"))).outputs  # noqa: B018


@pytest.mark.rest
@pytest.mark.parametrize(("table", "column"), [("t" * 57, "hour"), ("é" * 29, "hour"), ("long_column", "h" * 59)])
def test_a_name_that_would_be_cut_off_is_refused(server: str, tmp_path: Path, table: str, column: str) -> None:
    with pytest.raises(UsageError, match=r"would cut off the name .*: it has 64 bytes|it has 65 bytes"):
        _sink(f"{server}#{table}", tmp_path, Schema.parse(f"{column} INT"))


@pytest.mark.rest
def test_a_text_is_the_same_in_a_database_of_another_encoding(server: str, tmp_path: Path) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    sink = _sink(f"{server.rpartition('/')[0]}/latin#texts", tmp_path, Schema.parse("s STRING"))
    sink.publish(sink.draft(ComputedSlice(0, [(pa.table({"s": ["é"]}), [])])))
    with psycopg.connect(f"{server.rpartition('/')[0]}/latin", client_encoding="UTF8") as connection:
        assert connection.execute("SELECT s FROM texts").fetchall() == [("é",)]
