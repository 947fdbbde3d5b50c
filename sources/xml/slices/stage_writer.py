"""Writer of staged ranges, within a task: parses ranges and writes their tuples to a Parquet file.

Dead letters, tuples that were diverted, are read again from the ranges: each gets its element as in its
document.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from xmlstream.operators.storage.records import DeadLetter
from xmlstream.operators.storage.shared_files import StagedTuples
from xmlstream.operators.storage.store import hidden, store_at, store_of
from xmlstream.punct_ns.errors import InputError
from xmlstream.punct_ns.slices import LIFESPAN, POSITION, STREAM
from xmlstream.sources.xml.grammar.grammar_filter import GrammarFilter, also_restricted, known_restricted
from xmlstream.sources.xml.grammar.late_tuples import late_items
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import of_streams
from xmlstream.sources.xml.parser.findings_collector import FindingsCollector, restriction_counts
from xmlstream.sources.xml.parser.item_batches import Parsed, concatenated
from xmlstream.sources.xml.parser.item_parser import ItemParser
from xmlstream.sources.xml.parser.malformed import Malformed, set_aside
from xmlstream.sources.xml.parser.range_parser import Learnt, Original, RangeParser, originals
from xmlstream.sources.xml.slices.micro_batches import StagedRange
from xmlstream.sources.xml.splits.byte_ranges import ByteRange, RangePart

LearntOf = dict[Reading, Learnt | None]
"""What the last slice of each reading taught, for the next one; a process keeps it as long as it stages a query."""


def stage(
    ranges: Iterable[ByteRange], reading: Reading, learnt: LearntOf | None = None, held: int = 0
) -> list[StagedRange]:
    """Parses ranges, writes their tuples to a Parquet file in the stage's directory, and returns what is staged.

    Up to `held` tuples of a source are returned instead, if none of their columns consists of others.

    There is a file for the source and for each source beside it. Bad input raises no error: it is reported. A file has
    the requested attributes and those that punctuations of its source are known to restrict: without these, tuples that
    violate such a punctuation could not be found.
    """
    part = RangePart(reading, 0, tuple(ranges))
    for number, source in enumerate((reading, *reading.beside)):
        part = replace(part, stream=number).with_columns(known_restricted(source))
    while True:
        streams = [_Stream(replace(part, stream=number), held) for number in range(len(reading.streams))]
        widened = _parsed(part, streams, {} if learnt is None else learnt)
        if widened is None:
            return [stream.staged() for stream in streams]
        # Start again, with the attributes that turned out to be needed.
        for stream in streams:
            stream.discard()
        part = widened


def staged_again(range_: StagedRange, names: Collection[str]) -> StagedTuples:
    """Stages a range again, with these additional attributes, and returns the file."""
    found = stage(range_.part.ranges, range_.part.with_columns(names).reading)
    path = found.pop(range_.part.stream).path
    for other in found:
        if isinstance(other.path, str):
            store, key = store_of(other.path)
            store.delete(key)
    if path is None:
        raise InputError(f"{range_.part.ranges[0].document.where} has changed while it was read")
    return path


def _parsed(part: RangePart, streams: Sequence[_Stream], learnt: LearntOf) -> RangePart | None:
    """Passes all items to the streams; returns a part with more attributes if punctuations restrict unread ones."""
    key = part.reading.staging("")
    parser = RangeParser(part.reading, learnt=learnt.pop(key, None))
    for stream, of in zip(streams, parser.streams, strict=True):
        stream.begin(of)
    for each in parser.parse_many(part.ranges):
        for number, (stream, parsed) in enumerate(zip(streams, each, strict=True)):
            if more := also_restricted(parsed.punctuations, stream.columns):
                return replace(part, stream=number).with_columns(more)
            stream.add(parsed)
    learnt[key] = parser.learnt
    return None


class _Stream:
    """Collects the staged items of one source."""

    def __init__(self, part: RangePart, held: int) -> None:
        self._held = held
        self._part, self._plain = part, (part.reading, *part.reading.beside)[part.stream]
        self._options = of_streams(self._plain)
        self._punctuations: list[pa.RecordBatch] = []
        self._malformed: list[Malformed] = []
        self._aside: list[DeadLetter] = []

    def begin(self, parser: ItemParser) -> None:
        """Starts with a parser."""
        self.columns = frozenset(parser.batches.tuple_schema.names)
        self._schema, tuples = parser.batches.punctuation_schema, parser.batches.tuple_schema
        if self._options.is_many:
            self._schema = self._schema.append(pa.field(STREAM, pa.string()))
            tuples = tuples.insert(len(tuples) - 1, pa.field(STREAM, pa.int64(), nullable=False))
            self._begins = np.array([range_.base + range_.start for range_ in self._part.ranges], np.int64)
            self._numbers: Any = pa.array([range_.stream for range_ in self._part.ranges], pa.int64())
        self._findings = FindingsCollector(self._plain, parser)
        self._sieve = GrammarFilter(self._options, tuples)
        self._file = _TupleFile(self._options, tuples, self._held)

    def discard(self) -> None:
        """Discards what was collected."""
        self._file.discard()

    def add(self, parsed: Parsed) -> None:
        """Adds the next piece."""
        if self._options.is_many:
            parsed = self._numbered(parsed)
        if (table := self._sieve.add(parsed.tuples, parsed.punctuations)) is not None:
            self._file.write(table)
        if parsed.punctuations.num_rows:
            self._punctuations.append(parsed.punctuations)
        self._malformed += parsed.malformed
        self._aside += parsed.aside
        self._findings.add(parsed)

    def _numbered(self, parsed: Parsed) -> Parsed:
        """The items of a piece with the numbers of their streams, by their positions in the ranges."""
        tuples, said = parsed.tuples, parsed.punctuations

        def numbers(items: pa.RecordBatch) -> Any:
            ranges: Any = np.searchsorted(self._begins, items[POSITION].to_numpy(), side="right") - 1
            return self._numbers.take(pa.array(ranges))

        field = pa.field(STREAM, pa.int64(), nullable=False)
        tuples = tuples.add_column(tuples.num_columns - 1, field, numbers(tuples))
        place = said.schema.get_field_index(LIFESPAN) if LIFESPAN in said.schema.names else said.num_columns
        said = said.add_column(place, pa.field(STREAM, pa.string()), numbers(said).cast(pa.string()))
        return replace(parsed, tuples=tuples, punctuations=said)

    def staged(self) -> StagedRange:
        """Returns what is staged, after all pieces."""
        ranges = self._part.ranges
        self._file.write(self._sieve.rest())
        said = concatenated(self._punctuations, self._schema)
        positions = [*self._file.bounds, *(said[POSITION][end].as_py() for end in (0, -1) if len(said))]
        bad = set_aside(self._malformed, self._options.encoding, whole=self._options.mode != "DROPMALFORMED")
        bad = sorted([*bad, *self._aside, *late_items(self._sieve.late, self._part)], key=attrgetter("position"))
        encoded = _encoded(said)
        noticed = self._findings.findings(ranges, restriction_counts(encoded, self._plain.schema))
        positions += [one.position for one in bad]
        return StagedRange(
            source=self._options.name,
            path=self._file.close(),
            tuples=self._file.tuples,
            bytes=sum(range_.length for range_ in ranges),
            first_position=min(positions, default=None),
            last_position=max(positions, default=None),
            part=self._part,
            findings=noticed,
            punctuations=encoded if len(encoded) else None,
            bad=tuple(bad),
        )


def _encoded(said: pa.Table) -> pa.Table:
    """Encodes pattern texts as an Arrow dictionary: most of them are the wildcard."""
    columns = [said[POSITION], *(said[name].dictionary_encode() for name in said.column_names[1:])]
    return pa.table([column.combine_chunks() for column in columns], names=said.column_names).unify_dictionaries()


class _TupleFile:
    """The Parquet file of a range's tuples; created with the first one that is not held in memory.

    In an object store it is put at its end.
    """

    def __init__(self, reading: Reading, schema: pa.Schema, held: int) -> None:
        self._store, self._schema = store_at(reading.stage), schema
        self._most = 0 if any(map(pa.types.is_nested, schema.types)) else held
        self._held: list[pa.Table] = []
        self._writer: pq.ParquetWriter | None = None
        self._key = ""
        self._file: Any = None
        self.tuples = 0
        self.bounds: list[int] = []

    def write(self, tuples: pa.Table) -> None:
        """Adds tuples, in the order of their positions."""
        if not tuples.num_rows:
            return
        at = tuples[POSITION]
        self.bounds = [self.bounds[0] if self.bounds else at[0].as_py(), at[-1].as_py()]
        self.tuples += tuples.num_rows
        self._held.append(tuples)
        if self.tuples > self._most:
            held, self._held = self._held, []
            for table in held:
                self._write(table)

    def _write(self, tuples: pa.Table) -> None:
        if self._writer is None:
            strings: Any = [field.name for field in self._schema if pa.types.is_string(field.type)]
            # Not named after the source: Spark silently skips files with names like _bid or .bid.
            self._key = f"tuples-{self.bounds[0]:019d}-{uuid.uuid4().hex}.parquet"
            self._file = self._store.begin(self._key)
            self._writer = pq.ParquetWriter(
                self._file, self._schema, compression="none", use_dictionary=strings, store_schema=False
            )
        self._writer.write_table(tuples, row_group_size=len(tuples))

    def discard(self) -> None:
        """Removes the file, if there is one."""
        if self._writer is not None:
            self._writer.close()
            self._store.delete(hidden(self._key))

    def close(self) -> StagedTuples | None:
        """Gives the file its visible name, and returns its path or URL, or what is held; None without tuples."""
        if self._writer is None:
            return pa.concat_tables(self._held) if self._held else None
        self._writer.close()
        self._store.finish(self._key, self._file)
        return self._store.address(self._key)


def with_elements(letters: Sequence[DeadLetter], ranges: Sequence[StagedRange]) -> list[DeadLetter]:
    """Returns dead letters of tuples from these ranges with the elements of the tuples instead of their values."""
    found: dict[int, Original] = {}
    for range_ in ranges:
        if range_.first_position is not None and range_.last_position is not None:
            inside = range(range_.first_position, range_.last_position + 1)
            positions = [letter.position for letter in letters if letter.position in inside]
            found |= originals(range_.part, positions) if positions else {}
    return [found[one.position].shown_in(one) if one.position in found else one for one in letters]
