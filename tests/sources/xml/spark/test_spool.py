"""The spool of a stream: each batch is in it exactly once, whenever the process is killed; without Spark."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xmlstream.operators.storage import durable
from xmlstream.operators.storage.store import Folder
from xmlstream.punct_ns.errors import InputError, StateError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.sources.parquet_table import ASIDE, PUNCTUATIONS
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.spark import spool as spools
from xmlstream.sources.xml.spark.batch_documents import FILE, HASH, PUNCTUATION, PartitionWriter, WrittenPartition
from xmlstream.sources.xml.spark.spool import Batch, BatchSpool

OPTIONS = SourceOptions.parse(
    {"path": "stream s", "rowTag": "row", "format": "stream", "domains": "a 0..9"}, "a INT NOT NULL, b STRING", "query"
)

Row = tuple[int | None, str | None, str | None]
"""The attributes `a` and `b`, and a punctuation."""

A_TUPLE = st.tuples(st.none() | st.integers(-1, 10), st.none() | st.sampled_from("xy"), st.none())
SAID = st.integers(0, 9).map(lambda a: (None, None, f"<[, {a}], *>"))
BATCHES = st.lists(st.lists(st.lists(A_TUPLE | SAID, max_size=5), min_size=1, max_size=3), min_size=1, max_size=4)


class Killed(BaseException):
    """The end of the process."""


def columns(rows: list[Row]) -> pa.RecordBatch:
    """Rows as Spark gives them to a task, each with a hash."""
    a, b, said = zip(*rows, strict=True) if rows else ((), (), ())
    hashes = [hash(row) for row in rows]
    arrays: list[pa.Array[Any]] = [
        pa.array(a, pa.int32()),
        pa.array(b, pa.string()),
        pa.array(said, pa.string()),
        pa.array(hashes, pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=["a", "b", PUNCTUATION, HASH])


def written(spool: BatchSpool, number: int, batch: list[list[Row]]) -> list[WrittenPartition]:
    """What the tasks of a batch write, each partition in two pieces."""
    writer = PartitionWriter(OPTIONS, spool.pending.address(), number)
    return [writer.written([columns(rows[:2]), columns(rows[2:])], partition) for partition, rows in enumerate(batch)]


def items(spool: BatchSpool) -> list[tuple[list[tuple[int, str | None]], list[str], int]]:
    """The documents in order: the tuples of each, its punctuations, and the number of rows that are no items."""
    found = []
    for path in sorted(Path(spool.path).iterdir()):
        table = pa.parquet.read_table(path)
        metadata = table.schema.metadata
        rows = [(row["a"], row["b"]) for row in table.to_pylist()]
        found.append((rows, json.loads(metadata[PUNCTUATIONS]), len(json.loads(metadata.get(ASIDE, b"[]")))))
    return found


def expected(
    batch: list[list[Row]],
) -> tuple[list[tuple[int, str | None]], set[str], int, list[tuple[int, str | None]]]:
    """The tuples of a batch, its punctuations, the number of rows that are no items, and the late tuples."""
    on_time: list[tuple[int, str | None]] = []
    late: list[tuple[int, str | None]] = []
    said_, bad = set[str](), 0
    for rows in batch:
        said: list[Punctuation] = []
        for a, b, text in rows:
            if text is not None:
                said.append(Punctuation.parse(text, OPTIONS.schema))
                said_.add(str(said[-1]))
            elif a is None or not 0 <= a <= 9:
                bad += 1
            else:
                (late if any(p.matches((a, b)) for p in said) else on_time).append((a, b))
    return on_time, said_, bad, late


@given(st.lists(st.lists(A_TUPLE | SAID, max_size=5), max_size=4), st.integers(0, 20))
def test_rows_of_one_partition_are_in_order_within_each_file_only(files: list[list[Row]], cut: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        spool = BatchSpool(Folder(Path(directory)), OPTIONS)
        names = pa.array([f"file{number}" for number, rows in enumerate(files) for _ in rows], pa.string())
        rows = columns([row for rows in files for row in rows]).append_column(FILE, names)
        writer = PartitionWriter(OPTIONS, spool.pending.address(), 0)
        part = writer.written([rows.slice(0, cut), rows.slice(cut)], 0)
        spool.publish(0, [part])
        on_time, said, bad, late = expected(files)
        found = items(spool)
        assert sorted(map(repr, (row for rows, _, _ in found for row in rows))) == sorted(map(repr, on_time + late))
        assert (part.late is None) == (not late)
        assert not late or sorted(map(repr, found[-1][0])) == sorted(map(repr, late))
        assert {text for _, texts, _ in found for text in texts} == said
        assert sum(count for _, _, count in found) == bad


@given(BATCHES, st.integers(0, 60))
def test_a_batch_is_in_the_spool_exactly_once_whenever_the_process_is_killed(
    batches: list[list[list[Row]]], kill: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        left = iter(range(kill))

        def step() -> None:
            if next(left, None) is None:
                raise Killed

        done = 0
        for number, batch in enumerate(batches):
            with _killing(step):
                try:
                    spool = BatchSpool(Folder(Path(directory)), OPTIONS)
                    if number == (-1 if spool.last is None else spool.last.number) + 1:
                        spool.publish(number, written(spool, number, batch))
                except Killed:
                    left = iter(range(1_000))
            # The process starts again, and Spark gives the batch again.
            spool = BatchSpool(Folder(Path(directory)), OPTIONS)
            parts = written(spool, number, batch)
            if spool.last is not None and spool.last.number == number:
                spool.require_again(Batch.of(number, parts), "s", replays=True)
            else:
                spool.publish(number, parts)
            there = items(spool)[done:]
            done += len(there)
            on_time, said, bad, late = expected(batch)
            tuples = [row for rows, texts, _ in there for row in rows if not texts]
            assert tuples == on_time + late
            assert {text for _, texts, _ in there for text in texts} == said
            assert sum(count for *_, count in there) == bad


@contextmanager
def _killing(step: Callable[[], None]) -> Iterator[None]:
    """Takes a step before and after each change that outlasts the process."""
    sync, rename = durable.sync, Path.rename

    def stepping(action: Callable[..., Any], *given: Any) -> Any:
        step()
        done = action(*given)
        step()
        return done

    with (
        patch.object(spools, "sync", lambda paths: stepping(sync, paths)),
        patch.object(Path, "rename", lambda path, to: stepping(rename, path, to)),
    ):
        yield


def test_a_batch_that_comes_again_with_other_rows_is_refused(tmp_path: Path) -> None:
    spool = BatchSpool(Folder(tmp_path), OPTIONS)
    spool.publish(0, written(spool, 0, [[(1, "x", None)]]))
    other = Batch.of(0, written(spool, 0, [[(1, "y", None)]]))
    with pytest.raises(InputError, match="batch 0 of stream s comes again with other rows"):
        spool.require_again(other, "s", replays=True)
    spool.require_again(other, "s", replays=False)


def test_a_batch_from_before_the_checkpoint_is_refused(tmp_path: Path) -> None:
    spool = BatchSpool(Folder(tmp_path), OPTIONS)
    for number in (0, 1):
        spool.publish(number, written(spool, number, [[(number, "x", None)]]))
    with pytest.raises(StateError, match="Spark gives batch 0 of stream s, and the checkpoint has those up to 1"):
        spool.require_again(Batch(0, 0, 0), "s", replays=True)


def test_a_batch_is_sorted_where_a_rule_knows_its_order(tmp_path: Path) -> None:
    spool = BatchSpool(Folder(tmp_path), OPTIONS)
    batch: list[list[Row]] = [[(5, "x", None), (1, "y", None), (None, None, "<[, 0], *>")], [(3, None, None)]]
    spool.publish(0, written(spool, 0, batch), ["a"])
    (rows, _, _), (_, said, _) = items(spool)
    assert (rows, said) == ([(1, "y"), (3, None), (5, "x")], ["<0, *>"])
