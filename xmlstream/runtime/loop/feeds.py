"""Feeds: streaming DataFrames of Spark as sources of a query.

Spark drives each stream, by a Structured Streaming query of its own. Its `foreachBatch` has tasks
write the rows to the stream's spool (`xmlstream.sources.xml.spark.spool`); the loop of the query reads the spool as it
reads any other source. So a slice does not have to be a batch, and a quiet stream does not keep the others waiting.
Spark's record of what it has given is in the same checkpoint. The feed waits while two batches are in the spool which
the query has not read.

A static DataFrame is a stream of one batch that ends.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.frames.held import FEW
from xmlstream.operators.punctuate import Punctuate
from xmlstream.operators.punctuators.order import ByOrder
from xmlstream.operators.punctuators.roster import ByRoster
from xmlstream.operators.storage.store import Folder
from xmlstream.plan.nodes import Node, StreamScan, names, topological
from xmlstream.punct_ns.errors import InputError, UsageError, original_error, transported
from xmlstream.punct_ns.schema import windows
from xmlstream.punct_ns.slices import own, quoted
from xmlstream.runtime.settings import Settings
from xmlstream.session.engines import spark_engine_of
from xmlstream.session.spark_errors import first_cause
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.spark.batch_documents import FILE, HASH, PUNCTUATION, PartitionWriter, WrittenPartition
from xmlstream.sources.xml.spark.spool import MOST_SORTED, Batch, BatchSpool

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


STREAMS = "streams"
"""The folder of a checkpoint for streams."""

_AHEAD, _LOOK = 2, 0.02

_EACH, _NUMBER = 1 << 33, own("number")
"""The distance between the numbers of Spark's rows from partition to partition, and the column with these numbers."""


@dataclass(frozen=True, slots=True)
class StreamedFrame:
    """A frame that is spooled.

    Attributes:
        name: The name of the source.
        scan: The source.
        spool: Where its documents lie.
        order: The attributes whose order a rule of the query knows: a batch is a set, and is written in that order.
    """

    name: str
    scan: StreamScan
    spool: BatchSpool
    order: tuple[str, ...]

    def spool_batch(self, frame: DataFrame, number: int) -> list[WrittenPartition]:
        """Has tasks write the rows of a batch; returns what they have written.

        Raises:
            InputError: The source gives other rows when it is read again.
        """
        rows = self._rows(frame)
        parts = self._written(rows, number)
        batch = Batch.of(number, parts)
        if not self.order or batch.rows <= MOST_SORTED:
            return parts
        is_tuple = "true" if self.scan.punctuation is None else f"{PUNCTUATION} IS NULL"
        ordered = self._written(rows.where(is_tuple).drop(FILE).orderBy(*map(quoted, self.order)), number, "ordered-")
        said = [replace(part, tuples=None, late=None) for part in parts]
        return [*ordered, *(replace(part, rows=0, checksum=0) for part in said if part.punctuations or part.aside)]

    def batch(self, frame: DataFrame, number: int) -> Batch:
        """A batch by its rows, without writing any."""
        return Batch.of(number, self._written(self._rows(frame), number, is_compared=True))

    def _rows(self, frame: DataFrame) -> DataFrame:
        """The rows of a batch in the form that tasks write, each with its hash and its file."""
        inner = frame.selectExpr(*_attributes(self.scan))
        # Of a static frame of several sources, Spark does not know the file.
        file = "input_file_name()" if self.scan.frame is not None and self.scan.frame.isStreaming else "''"
        return inner.selectExpr(
            "*", f"xxhash64({', '.join(map(quoted, inner.columns))}) AS {HASH}", f"{file} AS {FILE}"
        )

    def _written(
        self, rows: DataFrame, number: int, again: str = "", *, is_compared: bool = False
    ) -> list[WrittenPartition]:
        place = None if is_compared else self.spool.pending.address()
        writer = PartitionWriter(self.scan.options, place, number, self.scan.texts, again)
        try:
            were_few = self.spool.last is not None and self.spool.last.rows <= FEW
            if were_few and (here := _written_here(rows, writer)) is not None:
                return here
            return spark_engine_of(rows.sparkSession).results(rows, writer)
        except Exception as error:  # noqa: BLE001 - raised again as an error of this project
            raise original_error(error) or _unreadable(self.name, error) from None


def _written_here(rows: DataFrame, writer: PartitionWriter) -> list[WrittenPartition] | None:
    """Writes few rows in this process, without workers of Python; None, and nothing written, if a partition has many.

    Spark numbers the rows of each partition, from its own multiple of 2³³.
    """
    numbered = rows.selectExpr("*", f"monotonically_increasing_id() AS {_NUMBER}")
    try:
        table = numbered.where(f"{_NUMBER} & {_EACH - 1} <= {FEW}").toArrow().combine_chunks().sort_by(_NUMBER)
    except Exception:  # noqa: BLE001 - many partitions may be more than the driver takes; tasks meet other errors again
        return None
    parts: dict[int, list[int]] = {}
    numbers: list[Any] = table[_NUMBER].to_pylist()
    for row, number in enumerate(numbers):
        parts.setdefault(number // _EACH, []).append(row)
    if any(len(places) > FEW for places in parts.values()):
        return None
    with transported():
        return [
            writer.written(table.slice(places[0], len(places)).to_batches(), partition)
            for partition, places in parts.items()
        ]


def _unreadable(name: str, error: BaseException) -> InputError:
    return InputError(f"the stream {name} cannot be read: {first_cause(error)}")


def _attributes(scan: StreamScan) -> Iterator[str]:
    """The columns that a task needs: the attributes and the punctuations, or the texts and what is kept beside them."""
    schema = scan.options.schema
    if scan.texts is not None:
        yield quoted(scan.texts.column)
        for name in scan.texts.keep:
            yield f"CAST({quoted(name)} AS {schema.attribute(name).domain.type}) AS {quoted(name)}"
        return
    apart = {index for start in windows(schema) for index in (start, start + 1)}
    for index, attribute in enumerate(schema):
        name, end = attribute.name.rsplit(".", 1) if index in apart else (attribute.name, "")
        inner = f"{quoted(name)}.{quoted(end)}" if end else quoted(name)
        yield f"CAST({inner} AS {attribute.domain.type}) AS {quoted(attribute.name)}"
    if scan.punctuation is not None:
        yield f"CAST({quoted(scan.punctuation)} AS STRING) AS {PUNCTUATION}"


class _BatchGivenUp(Exception):
    """Raised to Spark in place of the failure of a batch, which the loop of the query raises."""


def _is_news(record: logging.LogRecord) -> bool:
    return record.exc_info is None or record.exc_info[0] is not _BatchGivenUp


logging.getLogger("py4j.clientserver").addFilter(_is_news)


class Feeds:
    """The feeds of a query.

    Args:
        frames: The frames that are spooled, by their nodes.
        settings: The settings of the run.
    """

    def __init__(self, frames: Mapping[Node, StreamedFrame] | None = None, settings: Settings | None = None) -> None:
        self._frames, self._settings = frames or {}, settings
        self._streams: list[StreamedFrame] = []
        self._queries: list[Any] = []
        self._stopping = threading.Event()
        self._failure: BaseException | None = None

    @staticmethod
    def of(root: Node, checkpoint: Folder, settings: Settings) -> Feeds:
        """The feeds of the frames that a plan reads, each with its spool in the checkpoint.

        Raises:
            UsageError: The checkpoint is in an object store, or a frame is not there.
        """
        name_of, found = names(root), dict[Node, StreamedFrame]()
        for node in topological(root):
            if not isinstance(scan := node.operator, StreamScan):
                continue
            if settings.is_remote:
                raise UsageError(
                    f"{scan.name} is a stream of Spark's, and the checkpoint of this query is in an object store",
                    hint="name a directory, on a disk that the driver and the executors share",
                )
            if scan.frame is None:
                raise UsageError(
                    f"there is no view {scan.view} for the stream {scan.name}",
                    hint="create it in the session of the program, and run the query by from_sql",
                )
            spool = BatchSpool(checkpoint.below(f"{STREAMS}/{name_of[node]}"), scan.options)
            found[node] = StreamedFrame(name_of[node], scan, spool, _order(root, node))
        return Feeds(found, settings)

    def reading(self, node: Node, reading: Reading) -> Reading:
        """How tasks read a source: from its spool, if it is one of these frames."""
        if (each := self._frames.get(node)) is None:
            return reading
        is_stream = each.scan.frame is not None and each.scan.frame.isStreaming
        return replace(
            reading,
            path=each.spool.path,
            clean_source="delete",
            follow=is_stream,
            close=not is_stream,
            keep_open=False,
        )

    @property
    def are_any(self) -> bool:
        """Whether there is a stream."""
        return bool(self._frames)

    def begin(self) -> None:
        """Starts the streams; static frames are spooled at once.

        Raises:
            XmlStreamError: A static frame cannot be read.
        """
        for each in self._frames.values():
            frame = each.scan.frame
            assert frame is not None
            if frame.isStreaming:
                try:
                    self._queries.append(self._started(each, frame))
                except Exception as error:  # noqa: BLE001 - whatever Spark finds wrong with the stream
                    raise _unreadable(each.name, error) from None
                self._streams.append(each)
            elif each.spool.last is None:
                each.spool.publish(0, each.spool_batch(frame, 0), each.order)

    def are_over(self) -> bool:
        """Whether no stream will give more.

        Raises:
            XmlStreamError: A stream has failed.
        """
        active = [query for query in self._queries if query.isActive]
        if self._failure is not None:
            raise self._failure
        for each, query in zip(self._streams, self._queries, strict=True):
            if query in active:
                continue
            if (failure := query.exception()) is not None:
                raise _unreadable(each.name, failure)
            assert self._settings is not None
            if not self._stopping.is_set() and (self._settings.follow or each.spool.is_interrupted()):
                what = f"Spark's query that reads the stream {each.name} was stopped, and not by this query"
                hint = "start the query again: it goes on where it was; its handle stops it with its streams"
                raise InputError(what, hint=hint)
        return not active

    def process_all(self) -> None:
        """Waits until Spark has given all that is there now."""
        for query in self._queries:
            with suppress(Exception):  # the loop raises what has failed
                query.processAllAvailable()

    def stop(self) -> None:
        """Ends the streams."""
        self._stopping.set()
        for query in self._queries:
            with suppress(Exception):  # a session that has been stopped has ended them
                query.stop()

    def _started(self, each: StreamedFrame, frame: DataFrame) -> Any:
        assert self._settings is not None
        writer = frame.writeStream.foreachBatch(lambda batch, number: self._batch(each, batch, number))
        place = each.spool.sparks()
        writer = writer.option("checkpointLocation", f"file://{place}")
        if self._settings.name:
            writer = writer.queryName(f"{self._settings.name}, stream {each.name}")
        if not self._settings.follow:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{self._settings.every} seconds").start()

    def _batch(self, each: StreamedFrame, frame: DataFrame, number: int) -> None:
        """Spools a batch, unless it is there; waits while the query is behind."""
        try:
            if self._has(each, frame, number):
                return
            parts = each.spool_batch(frame, number)
            while len(each.spool.unread()) >= _AHEAD and not self._stopping.wait(_LOOK):
                pass
            if self._stopping.is_set():
                raise _BatchGivenUp
            each.spool.publish(number, parts, each.order)
        except BaseException as failure:
            if not self._stopping.is_set():
                self._failure = self._failure or failure
            # So Spark does not commit the batch.
            raise _BatchGivenUp from failure

    def _has(self, each: StreamedFrame, frame: DataFrame, number: int) -> bool:
        """Whether a batch was spooled before; makes sure that it is the same."""
        last = -1 if each.spool.last is None else each.spool.last.number
        if number == last + 1:
            return False
        rows = each.batch(frame, number) if number == last else Batch(number, 0, 0)
        each.spool.require_again(rows, each.name, replays=each.scan.replays)
        return True


def _order(root: Node, scan: Node) -> tuple[str, ...]:
    """The attributes of a source by whose order a rule above it punctuates."""
    found: dict[str, None] = {}
    for node in topological(root):
        if isinstance(node.operator, Punctuate) and isinstance(rule := node.operator.rule, ByOrder | ByRoster):
            below = node
            while len(below.inputs) == 1:
                (below,) = below.inputs
            if below == scan and (rule.attribute or "").lower() in map(str.lower, scan.schema.names):
                found[scan.schema.attribute(str(rule.attribute)).name] = None
    return tuple(found)
