"""Items of a test as the ranges that a task would have staged of a document: tuples as Parquet, patterns as texts.

The tuples are compared with the punctuations before them in the range as in a task; those of earlier ranges the query
itself compares. An attribute of `uniqueIds` is closed behind each tuple, as its document closes it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.notation import format_pattern
from xmlstream.punct_ns.pattern import Constant, Pattern
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import LIFESPAN, POSITION, arrow_type
from xmlstream.sources.places import Document
from xmlstream.sources.xml.grammar.grammar_filter import GrammarFilter
from xmlstream.sources.xml.grammar.late_tuples import late_items
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import SourceOptions, of_streams
from xmlstream.sources.xml.parser.findings_collector import Findings, restriction_counts
from xmlstream.sources.xml.parser.typed_columns import ColumnReader
from xmlstream.sources.xml.slices.micro_batches import StagedRange
from xmlstream.sources.xml.splits.byte_ranges import ByteRange, RangePart
from xmlstream.testing.notation import Item, Tuple


def staged(
    items: Sequence[Item], options: SourceOptions, source: str, slice_id: int, first: int, stage: Path
) -> tuple[StagedRange, int]:
    """The range of a slice's items; and the position behind it.

    Args:
        items: Rows of canonical values, and punctuations, in order.
        options: The source, all of whose attributes are staged.
        source: Its name in the plan.
        slice_id: The number of the slice, for messages.
        first: The position of the first item.
        stage: The directory for the file of the tuples.
    """
    wide = of_streams(options)
    every = list(_in_stream(_with_ids(items, options), wide))
    rows = [(at, item) for at, item in enumerate(every, first) if not isinstance(item, Punctuation)]
    said = [(at, item) for at, item in enumerate(every, first) if isinstance(item, Punctuation)]
    types = [ColumnReader.of(options, index).type for index in range(len(options.schema))]
    types += [pa.int64()] * (len(wide.schema) - len(types))
    tuples, punctuations = _tuples(rows, wide.schema, types), _punctuations(said, wide.schema)
    part = RangePart(
        Reading.of(options), 0, (ByteRange(Document.at(f"slice {slice_id + 1} of the test"), first, 0, 0),)
    )
    sieve = GrammarFilter(wide, tuples.schema)
    sieve.add(tuples, punctuations)
    left = sieve.rest()
    path = None
    if left.num_rows:
        path = stage / f"tuples-{uuid.uuid4().hex}.parquet"
        pq.write_table(left, path, compression="none", store_schema=False)
    patterns = pa.Table.from_batches([punctuations])
    end = first + len(every)
    range_ = StagedRange(
        source=source,
        path=None if path is None else str(path),
        tuples=left.num_rows,
        bytes=0,
        first_position=first if every else None,
        last_position=end - 1 if every else None,
        part=part,
        findings=Findings(tuples=len(rows), said=restriction_counts(patterns, options.schema)),
        punctuations=patterns if said else None,
        bad=tuple(late_items(sieve.late, part)),
    )
    return range_, end


def written(rows: Sequence[Tuple], schema: Schema, path: Path) -> None:
    """Writes rows as a Parquet file, for a static table."""
    types = [None if a.domain.opaque else arrow_type(a.domain) for a in schema]
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    pq.write_table(pa.Table.from_arrays(arrays, names=list(schema.names)), path, store_schema=False)


def _with_ids(items: Sequence[Item], options: SourceOptions) -> Iterator[Item]:
    for item in items:
        yield item
        if not isinstance(item, Punctuation):
            for i in options.structural.unique:
                yield Punctuation.at(options.schema, {i: Constant(item[i])})  # type: ignore[arg-type]  # canonical


def _in_stream(items: Iterable[Item], options: SourceOptions) -> Iterator[Item]:
    """The items of the first stream, if the source has many: what closes everything holds for all."""
    for item in items:
        if not options.is_many:
            yield item
        elif not isinstance(item, Punctuation):
            yield (*item, 0)
        else:
            stream: dict[int, Pattern] = {len(item.schema): Constant(0)} if item.restricted else {}
            yield Punctuation.at(options.schema, {i: item.patterns[i] for i in item.restricted} | stream, item.lifespan)


def _tuples(rows: Sequence[tuple[int, Tuple]], schema: Schema, types: Sequence[pa.DataType]) -> pa.RecordBatch:
    columns: list[Sequence[Any]] = list(zip(*(row for _, row in rows), strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    fields = [pa.field(name, type_) for name, type_ in zip(schema.names, types, strict=True)]
    at = pa.array([at for at, _ in rows], pa.int64())
    return pa.RecordBatch.from_arrays(
        [*arrays, at], schema=pa.schema([*fields, pa.field(POSITION, pa.int64(), nullable=False)])
    )


def _punctuations(said: Sequence[tuple[int, Punctuation]], schema: Schema) -> pa.RecordBatch:
    columns = [[format_pattern(p.patterns[i], attribute.domain) for _, p in said] for i, attribute in enumerate(schema)]
    arrays: list[Any] = [pa.array([at for at, _ in said], pa.int64()), *(pa.array(c, pa.string()) for c in columns)]
    names = [POSITION, *schema.names]
    if any(p.lifespan is not None for _, p in said):
        arrays.append(pa.array([_lifespan(p) for _, p in said], pa.string()))
        names.append(LIFESPAN)
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _lifespan(p: Punctuation) -> str | None:
    if p.lifespan is None:
        return None
    if p.lifespan.until is not None:
        raise UsageError(f"{p} ends at a moment", hint="a stream says how long: for PT1H, or while hour < 17")
    return " and ".join(map(str, [*([p.lifespan.duration] if p.lifespan.duration else []), *p.lifespan.bounds]))
