"""Documents of a batch: what a task of Spark writes of one partition of a streaming DataFrame's batch.

A document has tuples as a table of Parquet, and in its metadata punctuations and items that were set aside; a source
with `format 'stream'` reads it. A row with a text in the column of punctuations is a punctuation, in the notation.

Rows of one partition are in order; those of two partitions are not. So the punctuations of a batch go into one document
that comes after the tuples of all its partitions. A tuple that comes after a punctuation of its own partition that
matches it goes into a document behind that one, where the source finds it ungrammatical.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.storage.records import DeadLetter
from xmlstream.operators.storage.store import folder_at
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import XmlStreamError
from xmlstream.punct_ns.notation import format_pattern
from xmlstream.punct_ns.pattern import Wildcard
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.slices import POSITION, any_arrow_type
from xmlstream.sources.parquet_table import ASIDE, PUNCTUATIONS, SCHEMA
from xmlstream.sources.xml.grammar.grammar_filter import GrammarFilter
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.spark.error_transport import transported

pc: Any = pyarrow.compute

HASH = "_hash"
"""The column with a hash of each row, by which a batch that comes again is compared."""

PUNCTUATION = "_punctuation"
"""The column with the notation of a punctuation, null in the row of a tuple."""


@dataclass(frozen=True, slots=True)
class WrittenPartition:
    """What a task has written of a partition.

    Attributes:
        number: The number of the partition.
        tuples: The document of its tuples; None without any.
        late: The document of tuples that its own punctuations match; None without any.
        rows: The number of its rows.
        checksum: The sum of their hashes, modulo 2⁶⁴.
        punctuations: Its punctuations in the notation.
        aside: The rows that are no items.
    """

    number: int
    tuples: str | None
    late: str | None
    rows: int
    checksum: int
    punctuations: tuple[str, ...] = ()
    aside: tuple[DeadLetter, ...] = ()


@dataclass(slots=True)
class Items:
    """Consecutive items of a partition: tuples, with the row of each, and punctuations with theirs."""

    tuples: pa.RecordBatch
    rows: pa.Array[Any]
    punctuations: list[tuple[int, str]] = field(default_factory=list)
    aside: list[tuple[int, DeadLetter]] = field(default_factory=list)


def tuple_schema(options: SourceOptions) -> pa.Schema:
    """The columns of a source's tuples as Arrow has them."""
    return pa.schema([pa.field(attribute.name, any_arrow_type(attribute.domain.type)) for attribute in options.schema])


class RowItems:
    """The items of rows that are typed tuples or punctuations."""

    def __init__(self, options: SourceOptions) -> None:
        self._schema, self._columns = options.schema, tuple_schema(options)

    def of(self, batch: pa.RecordBatch, at: int) -> Items:
        """The items of consecutive rows, the first of which has the number `at`."""
        rows = pa.array(np.arange(at, at + batch.num_rows))
        said: list[tuple[int, str]] = []
        if PUNCTUATION in batch.schema.names and batch[PUNCTUATION].null_count < batch.num_rows:
            is_tuple = batch[PUNCTUATION].is_null()
            texts: list[Any] = batch[PUNCTUATION].drop_null().to_pylist()
            places: list[Any] = rows.filter(pc.invert(is_tuple)).to_pylist()
            said = list(zip(places, texts, strict=True))
            batch, rows = batch.filter(is_tuple), rows.filter(is_tuple)
        columns = [batch[each.name].cast(each.type) for each in self._columns]
        tuples = pa.RecordBatch.from_arrays(columns, schema=self._columns)
        flaws, aside = dict(sorted(self._flaws(tuples))), list[tuple[int, DeadLetter]]()
        if flaws:
            values = tuples.take(pa.array(list(flaws))).to_pylist()
            for (row, reason), raw in zip(flaws.items(), values, strict=True):
                letter = DeadLetter(kind="tuple", reason=reason, raw=json.dumps(raw, default=str))
                aside.append((rows[row].as_py(), letter))
            stays = np.ones(tuples.num_rows, np.bool_)
            stays[list(flaws)] = False
            tuples, rows = tuples.filter(pa.array(stays)), rows.filter(pa.array(stays))
        return Items(tuples, rows, *self._read(said, aside))

    def _read(
        self, said: Iterable[tuple[int, str]], aside: list[tuple[int, DeadLetter]]
    ) -> tuple[list[tuple[int, str]], list[tuple[int, DeadLetter]]]:
        """The punctuations that can be read; the others are set aside."""
        read = []
        for row, text in said:
            try:
                punctuation = Punctuation.parse(text, self._schema)
                if punctuation.lifespan is not None:
                    raise XmlStreamError("a punctuation in a column has no lifespan")
                read.append((row, text))
            except XmlStreamError as error:
                aside.append((row, DeadLetter(kind="punctuation", reason=error.what, raw=text)))
        return read, aside

    def _flaws(self, tuples: pa.RecordBatch) -> Iterator[tuple[int, str]]:
        """The rows with a value that is not in the domain of its attribute, each with why."""
        for attribute in self._schema:
            column, domain = tuples[attribute.name], attribute.domain
            if not domain.nullable and column.null_count:
                for row in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
                    yield row, f"{attribute.name}: it is null, but the attribute is NOT NULL"
            if domain.opaque or (domain.low, domain.high) == (None, None) or _are_inside(column, domain):
                continue
            for row, value in enumerate(column.to_pylist()):
                if value is not None and not domain.contains(domain.normal(value)):
                    yield row, f"{attribute.name}: {value} is not within its domain {domain}"


def _are_inside(column: pa.Array[Any], domain: Domain) -> bool:
    ends = pc.min_max(column).as_py()
    return all(end is None or domain.contains(domain.normal(end)) for end in ends.values())


@dataclass(frozen=True, slots=True)
class PartitionWriter:
    """Writes a partition of a batch; sent to the tasks.

    Attributes:
        options: The source.
        place: The directory of the documents; None where they are only compared.
        number: The number of the batch.
        again: What the names of the documents begin with, different each time that the batch is written.
    """

    options: SourceOptions
    place: str | None
    number: int
    again: str = ""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> WrittenPartition:
        """Writes the documents of the partition of a task."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        with transported():
            return self.written(batches, context.partitionId())

    def written(self, batches: Iterable[pa.RecordBatch], partition: int) -> WrittenPartition:
        """Writes the documents of a partition."""
        columns, reader = tuple_schema(self.options), self.items()
        with_position = columns.append(pa.field(POSITION, pa.int64()))
        plain, late = self._document(partition, "tuples"), self._document(partition, "late")
        # All late tuples go behind, whatever the source does with them.
        sieve = GrammarFilter(replace(self.options, ungrammatical="drop"), with_position)
        said: list[tuple[int, str]] = []
        aside: list[tuple[int, DeadLetter]] = []
        rows = checksum = 0
        for batch in batches:
            checksum = (checksum + _sum(batch[HASH])) % (1 << 64)
            if self.place is not None and batch.num_rows:
                items = reader.of(batch, rows)
                tuples = pa.RecordBatch.from_arrays([*items.tuples.columns, items.rows], schema=with_position)
                table = sieve.add(tuples, _patterns(items.punctuations, self.options))
                if table is not None:
                    plain.write(table.select(columns.names))
                said += items.punctuations
                aside += items.aside
            rows += batch.num_rows
        plain.write(sieve.rest().select(columns.names))
        values = [{name: one.row[name] for name in columns.names} for one in sieve.late]
        late.write(pa.Table.from_pylist(values, columns))
        letters = [replace(letter, position=row) for row, letter in sorted(aside, key=lambda pair: pair[0])]
        texts = tuple(text for _, text in said)
        return WrittenPartition(partition, plain.close(), late.close(), rows, checksum, texts, tuple(letters))

    def items(self) -> RowItems:
        """What makes items of rows."""
        return RowItems(self.options)

    def _document(self, partition: int, what: str) -> _Document:
        return _Document(self.place, f"{self.again}{self.number}-{partition}-{what}.parquet", self.options)


def _sum(hashes: pa.Array[Any]) -> int:
    return int(np.add.reduce(hashes.to_numpy(zero_copy_only=False).view(np.uint64), dtype=np.uint64, initial=0))


def _patterns(said: Sequence[tuple[int, str]], options: SourceOptions) -> pa.RecordBatch:
    """Punctuations as columns of pattern texts, each with the row before which it comes."""
    schema = options.schema
    parsed = [Punctuation.parse(text, schema) for _, text in said]
    texts = [
        [
            None if isinstance(p.patterns[at], Wildcard) else format_pattern(p.patterns[at], attribute.domain)
            for p in parsed
        ]
        for at, attribute in enumerate(schema)
    ]
    places = pa.array([row for row, _ in said], pa.int64())
    columns: list[pa.Array[Any]] = [places, *(pa.array(each, pa.string()) for each in texts)]
    return pa.RecordBatch.from_arrays(columns, names=[POSITION, *schema.names])


def metadata_of(
    options: SourceOptions, punctuations: Sequence[str] = (), aside: Sequence[DeadLetter] = ()
) -> dict[bytes | str, bytes | str]:
    """The metadata of a document."""
    found: dict[bytes | str, bytes | str] = {SCHEMA: options.schema.ddl().encode()}
    found[PUNCTUATIONS] = json.dumps(list(punctuations)).encode()
    if aside:
        found[ASIDE] = json.dumps([letter.json() for letter in aside], default=str).encode()
    return found


class _Document:
    """A document that is begun with its first tuple; `place` is None for one that is never written."""

    def __init__(self, place: str | None, name: str, options: SourceOptions) -> None:
        self._place, self._name, self._options = place, name, options
        self._writer: pq.ParquetWriter | None = None

    def write(self, tuples: pa.Table) -> None:
        """Adds tuples."""
        if not tuples.num_rows or self._place is None:
            return
        if self._writer is None:
            schema = tuple_schema(self._options).with_metadata(metadata_of(self._options))
            strings: Any = [field.name for field in schema if pa.types.is_string(field.type)]
            path = folder_at(self._place).path_to_write(self._name)
            self._writer = pq.ParquetWriter(path, schema, compression="none", use_dictionary=strings)
        self._writer.write_table(tuples, row_group_size=len(tuples))

    def close(self) -> str | None:
        """Ends the document; returns its name, None if it has no tuples."""
        if self._writer is None:
            return None
        self._writer.close()
        return self._name
