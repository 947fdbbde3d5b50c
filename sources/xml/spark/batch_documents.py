"""Documents of a batch: what a task of Spark writes of one partition of a streaming DataFrame's batch.

A document has tuples as a table of Parquet, and in its metadata punctuations and items that were set aside; a source
with `format 'stream'` reads it. A row with a text in the column of punctuations is a punctuation, in the notation.

Rows of one partition are in order, if Spark has read them from one file or none: it orders files by their size. Those
of two partitions are not. So the punctuations of a batch go into one document that comes after the tuples of all its
partitions. A tuple that comes after a punctuation of its own partition and file that matches it goes into a document
behind that one, where the source finds it ungrammatical.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.storage.records import DeadLetter
from xmlstream.operators.storage.store import folder_at
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import XmlStreamError, transported
from xmlstream.punct_ns.notation import format_pattern
from xmlstream.punct_ns.pattern import Wildcard
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.slices import LIFESPAN, POSITION, any_arrow_type, own
from xmlstream.punct_ns.xml_form import punctuation_from_texts
from xmlstream.sources.parquet_table import ASIDE, PUNCTUATIONS, SCHEMA, VOID
from xmlstream.sources.xml.grammar.grammar_filter import GrammarFilter
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.options.text_column import TextColumn
from xmlstream.sources.xml.parser.text_column import TextParser

pc: Any = pyarrow.compute

HASH = own("hash")
"""The column with a hash of each row, by which a batch that comes again is compared."""

FILE = own("file")
"""The column with the file of each row, empty where a row comes from no file; without it no row does."""

PUNCTUATION = own("punctuation")
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
        void: The number of ignored punctuations, by the undeclared leaf that they restrict.
    """

    number: int
    tuples: str | None
    late: str | None
    rows: int
    checksum: int
    punctuations: tuple[str, ...] = ()
    aside: tuple[DeadLetter, ...] = ()
    void: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchItems:
    """Consecutive items of a partition, each with its position.

    Attributes:
        tuples: The attributes, then `_position`.
        punctuations: `_position`, then the pattern text of each attribute, null for a wildcard.
        aside: What is no item, each after its position.
        void: The number of ignored punctuations, by the undeclared leaf that they restrict.
    """

    tuples: pa.RecordBatch
    punctuations: pa.RecordBatch
    aside: list[tuple[int, DeadLetter]]
    void: Counter[str] = field(default_factory=Counter)


def tuple_schema(options: SourceOptions) -> pa.Schema:
    """The columns of a source's tuples as Arrow has them."""
    return pa.schema([pa.field(attribute.name, any_arrow_type(attribute.domain.sql)) for attribute in options.schema])


_PLACE: pa.Field[Any] = pa.field(POSITION, pa.int64())


class RowItems:
    """The items of rows that are typed tuples or punctuations; the position of an item is the number of its row."""

    def __init__(self, options: SourceOptions) -> None:
        self._schema, self._columns = options.schema, tuple_schema(options)

    def of(self, batch: pa.RecordBatch, at: int) -> BatchItems:
        """The items of consecutive rows, numbered from `at` on."""
        rows = np.arange(at, at + batch.num_rows)
        said: list[tuple[int, str]] = []
        if PUNCTUATION in batch.schema.names and batch[PUNCTUATION].null_count < batch.num_rows:
            is_tuple = batch[PUNCTUATION].is_null()
            texts: list[Any] = batch[PUNCTUATION].drop_null().to_pylist()
            stays = is_tuple.to_numpy(zero_copy_only=False)
            said = list(zip(rows[~stays].tolist(), texts, strict=True))
            batch, rows = batch.filter(is_tuple), rows[stays]
        columns = [batch[each.name].cast(each.type) for each in self._columns]
        tuples = pa.RecordBatch.from_arrays([*columns, pa.array(rows)], schema=self._columns.append(_PLACE))
        aside = list(self._flaws(tuples))
        if aside:
            tuples = tuples.filter(pa.array(~np.isin(rows, [row for row, _ in aside])))
        punctuations, unreadable = self._read(said)
        return BatchItems(tuples, punctuations, [*aside, *unreadable])

    def _read(self, said: Iterable[tuple[int, str]]) -> tuple[pa.RecordBatch, list[tuple[int, DeadLetter]]]:
        """The punctuations that can be read, and what is set aside."""
        read, aside = list[Mapping[str, Any]](), list[tuple[int, DeadLetter]]()
        for row, text in said:
            try:
                punctuation = Punctuation.parse(text, self._schema)
                if punctuation.lifespan is not None:
                    raise XmlStreamError(_NO_LIFESPAN)
            except XmlStreamError as error:
                aside.append((row, DeadLetter(kind="punctuation", reason=error.what, raw=text)))
                continue
            domains = {attribute.name: attribute.domain for attribute in self._schema}
            patterns = zip(domains.items(), punctuation.patterns, strict=True)
            texts = {name: format_pattern(p, domain) for (name, domain), p in patterns if not isinstance(p, Wildcard)}
            read.append({POSITION: row, **texts})
        fields = [pa.field(name, pa.string()) for name in self._schema.names]
        return pa.RecordBatch.from_pylist(read, pa.schema([_PLACE, *fields])), aside

    def _flaws(self, tuples: pa.RecordBatch) -> Iterator[tuple[int, DeadLetter]]:
        """The rows with a value that is not in the domain of its attribute, each with why."""
        found: dict[int, str] = {}
        for attribute in self._schema:
            column, domain = tuples[attribute.name], attribute.domain
            if not domain.nullable and column.null_count:
                for row in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
                    found.setdefault(row, f"{attribute.name}: it is null, but the attribute is NOT NULL")
            if domain.opaque or (domain.low, domain.high) == (None, None) or _are_inside(column, domain):
                continue
            for row, value in enumerate(column.to_pylist()):
                if value is not None and not domain.contains(domain.normal(value)):
                    found.setdefault(row, f"{attribute.name}: {value} is not within its domain {domain}")
        for row, reason in sorted(found.items()):
            (values,) = tuples.slice(row, 1).to_pylist()
            at = values.pop(POSITION)
            yield at, DeadLetter(kind="tuple", reason=reason, raw=json.dumps(values, default=str))


class TextItems:
    """The items of XML texts in a column."""

    def __init__(self, options: SourceOptions, column: TextColumn) -> None:
        self._columns, self._parser = tuple_schema(options).append(_PLACE), TextParser(column)

    def of(self, batch: pa.RecordBatch, at: int) -> BatchItems:
        """The items of consecutive texts, numbered from `at` on."""
        found = self._parser.of(batch, at)
        tuples = pa.RecordBatch.from_arrays(
            [found.tuples[each.name].cast(each.type) for each in self._columns], schema=self._columns
        )
        punctuations, aside = found.punctuations, list(found.malformed)
        if LIFESPAN in punctuations.schema.names:
            lives = punctuations[LIFESPAN].is_valid()
            aside += [
                (row.pop(POSITION), DeadLetter(kind="punctuation", reason=_NO_LIFESPAN, raw=str(row)))
                for row in punctuations.filter(lives).to_pylist()
            ]
            punctuations = punctuations.filter(pc.invert(lives)).drop_columns([LIFESPAN])
        return BatchItems(tuples, punctuations, aside, found.void)


_NO_LIFESPAN = "a punctuation in a column has no lifespan"


def _are_inside(column: pa.Array[Any], domain: Domain) -> bool:
    ends = pc.min_max(column).as_py()
    return domain.listed is None and all(end is None or domain.contains(domain.normal(end)) for end in ends.values())


@dataclass(frozen=True, slots=True)
class PartitionWriter:
    """Writes a partition of a batch; sent to the tasks.

    Attributes:
        options: The source.
        place: The directory of the documents; None where they are only compared.
        number: The number of the batch.
        column: The column of XML texts; None if the rows are items.
        again: What the names of the documents begin with, different each time that the batch is written.
    """

    options: SourceOptions
    place: str | None
    number: int
    column: TextColumn | None = None
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
        columns = tuple_schema(self.options)
        reader = RowItems(self.options) if self.column is None else TextItems(self.options, self.column)
        plain, late = self._document(partition, "tuples"), self._document(partition, "late")
        said, aside, void = list[str](), list[tuple[int, DeadLetter]](), Counter[str]()
        rows = checksum = before = 0
        sieve, read = self._sieve(), ""

        def end() -> None:
            plain.write(sieve.rest().select(columns.names))
            values = [{name: one.row[name] for name in columns.names} for one in sieve.late]
            late.write(pa.Table.from_pylist(values, columns))

        for batch in batches:
            checksum = (checksum + _sum(batch[HASH])) % (1 << 64)
            for file, begin, part in _of_files(batch) if self.place is not None else ():
                if file != read and len(said) > before:
                    end()
                    sieve, before = self._sieve(), len(said)
                items, read = reader.of(part, rows + begin), file
                if (table := sieve.add(items.tuples, items.punctuations)) is not None:
                    plain.write(table.select(columns.names))
                said += self._notations(items.punctuations)
                aside += items.aside
                void += items.void
            rows += batch.num_rows
        end()
        letters = [replace(letter, position=row) for row, letter in sorted(aside, key=itemgetter(0))]
        done = plain.close(), late.close()
        return WrittenPartition(partition, *done, rows, checksum, tuple(said), tuple(letters), void)

    def _sieve(self) -> GrammarFilter:
        """What finds tuples after their punctuation; all of them go behind, whatever the source does with them."""
        return GrammarFilter(replace(self.options, ungrammatical="drop"), tuple_schema(self.options).append(_PLACE))

    def _notations(self, punctuations: pa.RecordBatch) -> Iterator[str]:
        """Punctuations, given as pattern texts, in the notation."""
        schema = self.options.schema
        for row in punctuations.to_pylist() if punctuations.num_rows else ():
            yield str(punctuation_from_texts([row[name] for name in schema.names], schema))

    def _document(self, partition: int, what: str) -> _Document:
        return _Document(self.place, f"{self.again}{self.number}-{partition}-{what}.parquet", self.options)


def _of_files(batch: pa.RecordBatch) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    """The consecutive rows of each file, after its name and the number of rows before them."""
    if FILE not in batch.schema.names:
        yield "", 0, batch
        return
    runs, begin = pc.run_end_encode(batch[FILE]), 0
    for file, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield file, begin, batch.slice(begin, end - begin)
        begin = end


def _sum(hashes: pa.Array[Any]) -> int:
    return int(np.add.reduce(hashes.to_numpy(zero_copy_only=False).view(np.uint64), dtype=np.uint64, initial=0))


def metadata_of(
    options: SourceOptions,
    punctuations: Sequence[str] = (),
    aside: Sequence[DeadLetter] = (),
    void: Mapping[str, int] | None = None,
) -> dict[bytes | str, bytes | str]:
    """The metadata of a document."""
    found: dict[bytes | str, bytes | str] = {SCHEMA: options.schema.ddl().encode()}
    found[PUNCTUATIONS] = json.dumps(list(punctuations)).encode()
    if aside:
        found[ASIDE] = json.dumps([letter.json() for letter in aside], default=str).encode()
    if void:
        found[VOID] = json.dumps(void).encode()
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
