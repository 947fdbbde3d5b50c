"""Parses ranges and writes their tuples down, within a task of Spark."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from punct_ns.slices import POSITION
from sources.item_parser import ItemParser
from sources.malformed import Malformed, as_table
from sources.noticing import Noticing, restrictions
from sources.parsed import Parsed
from sources.ranges import Range
from sources.sieve import Sieve
from sources.source import SourceOptions
from sources.staging import to_ipc
from sources.xml_parser import XmlParser


def stage(ranges: Iterable[Range], options: SourceOptions) -> list[dict[str, Any]]:
    """Parse ranges, write their tuples to a Parquet file in the stage's directory, and say so as a staged row.

    There is a file and a row for the source and for each of those beside it. Nothing is raised for bad input: it is all
    in the rows.
    """
    ranges = list(ranges)
    parser = XmlParser(options)
    streams = [_Stream(each, stream) for each, stream in zip((options, *options.beside), parser.streams, strict=True)]
    for range_ in ranges:
        for each in parser.parse_all(range_):
            for stream, parsed in zip(streams, each, strict=True):
                stream.add(parsed, range_)
    return [stream.row(ranges) for stream in streams]


class _Stream:
    """What becomes of one source's items."""

    def __init__(self, options: SourceOptions, parser: ItemParser) -> None:
        self._options, self._schema = options, parser.punctuation_schema
        self._noticing = Noticing(options, parser)
        self._sieve = Sieve(options, parser.tuple_schema)
        self._file = _TupleFile(options, parser.tuple_schema)
        self._punctuations: list[pa.RecordBatch] = []
        self._malformed: list[Malformed] = []

    def add(self, parsed: Parsed, range_: Range) -> None:
        """The next piece."""
        if (table := self._sieve.add(parsed.tuples, parsed.punctuations, range_.path)) is not None:
            self._file.write(table)
        if parsed.punctuations.num_rows:
            self._punctuations.append(parsed.punctuations)
        self._malformed += parsed.malformed
        self._noticing.add(parsed)

    def row(self, ranges: list[Range]) -> dict[str, Any]:
        """The staged row, once all pieces have come."""
        self._file.write(self._sieve.rest(ranges[-1].path))
        said = pa.Table.from_batches(self._punctuations, self._schema)
        positions = [*self._file.bounds, *(said[POSITION][end].as_py() for end in (0, -1) if len(said))]
        wrong = pa.concat_tables([as_table(self._malformed, self._options.encoding), self._sieve.table()])
        wrong = wrong.sort_by(POSITION)
        encoded = _encoded(said)
        noticed = self._noticing.findings(ranges, restrictions(encoded, self._options.schema))
        positions += [wrong[POSITION][end].as_py() for end in (0, -1) if len(wrong)]
        return {
            "source": self._options.source,
            "path": self._file.close(),
            "tuples": self._file.tuples,
            "bytes": sum(range_.end - range_.start for range_ in ranges),
            "first_position": min(positions, default=None),
            "last_position": max(positions, default=None),
            "documents": json.dumps(list(dict.fromkeys((range_.path, range_.base) for range_ in ranges))),
            "findings": noticed.text(),
            "punctuations": to_ipc(encoded),
            "malformed": to_ipc(wrong),
        }


def _encoded(said: pa.Table) -> pa.Table:
    """Pattern texts as dictionaries: most are the wildcard."""
    columns = [said[POSITION], *(said[name].dictionary_encode() for name in said.column_names[1:])]
    return pa.table([column.combine_chunks() for column in columns], names=said.column_names).unify_dictionaries()


class _TupleFile:
    """The Parquet file of a range's tuples; there is none without tuples."""

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        assert options.stage is not None
        self._directory, self._schema = Path(options.stage), schema
        self._writer: pq.ParquetWriter | None = None
        self._hidden = self._directory / f".{uuid.uuid4().hex}.tmp"
        self.tuples = 0
        self.bounds: list[int] = []

    def write(self, tuples: pa.Table) -> None:
        """Add tuples, in the order of their positions."""
        if not tuples.num_rows:
            return
        at = tuples[POSITION]
        self.bounds = [self.bounds[0] if self.bounds else at[0].as_py(), at[-1].as_py()]
        if self._writer is None:
            self._directory.mkdir(parents=True, exist_ok=True)
            strings: Any = [field.name for field in self._schema if pa.types.is_string(field.type)]
            self._writer = pq.ParquetWriter(
                self._hidden, self._schema, compression="none", use_dictionary=strings, store_schema=False
            )
        self._writer.write_table(tuples, row_group_size=len(tuples))
        self.tuples += tuples.num_rows

    def close(self) -> str | None:
        """Make the file visible under its name, and say which."""
        if self._writer is None:
            return None
        self._writer.close()
        # The source's name is the user's: Spark leaves out files that are called _bid or .bid, without a word.
        path = self._directory / f"tuples-{self.bounds[0]:019d}-{uuid.uuid4().hex}.parquet"
        self._hidden.replace(path)
        return str(path)
