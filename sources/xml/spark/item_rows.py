"""Items as rows for Spark: tuples and punctuations in one stream, in their order."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from punct_ns.lifespan import Lifespan
from punct_ns.slices import LIFESPAN, POSITION, POSITION_SHOWN, PUNCTUATION_SHOWN
from punct_ns.xml_form import punctuation_from_texts
from sources.xml.options.source import SourceOptions
from sources.xml.parser.malformed import malformed_error
from sources.xml.parser.range_parser import Parsed, RangeParser
from sources.xml.splits.byte_ranges import ByteRange


def item_rows(ranges: tuple[ByteRange, ...], options: SourceOptions, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The items of ranges, in batches of a schema that names any of the attributes, `_position` and `_punctuation`.

    Without `_punctuation` in the schema there are tuples only.

    Raises:
        MalformedInput: A document that is not well-formed, or not accepted; what else cannot be read if the mode is
            FAILFAST; in other modes that is left out.
    """
    columns = tuple(name for name in schema.names if name not in (POSITION_SHOWN, PUNCTUATION_SHOWN))
    parser = RangeParser(options, columns)
    for range_ in ranges:
        for parsed in parser.parse(range_):
            if parsed.malformed and (options.mode == "FAILFAST" or parsed.is_last):
                raise malformed_error(parsed.malformed[0 if options.mode == "FAILFAST" else -1], options.encoding)
            table = _table(parsed, options, schema)
            if table.num_rows:
                yield from table.combine_chunks().to_batches()


def _table(parsed: Parsed, options: SourceOptions, schema: pa.Schema) -> pa.Table:
    tuples = pa.Table.from_batches([parsed.tuples])
    tuples = tuples.rename_columns([POSITION_SHOWN if n == POSITION else n for n in tuples.column_names])
    if PUNCTUATION_SHOWN not in schema.names:
        return tuples.select(schema.names).cast(schema)
    tuples = tuples.append_column(PUNCTUATION_SHOWN, pa.nulls(len(tuples), pa.string()))
    said = parsed.punctuations
    texts = zip(*(said[name].to_pylist() for name in options.schema.names), strict=True)
    lifespans = said[LIFESPAN].to_pylist() if LIFESPAN in said.schema.names else [None] * said.num_rows
    notations = [
        str(punctuation_from_texts(text, options.schema).lasting(lifespan and Lifespan.read(lifespan, options.schema)))
        for text, lifespan in zip(texts, lifespans, strict=True)
    ]
    known = {POSITION_SHOWN: said[POSITION], PUNCTUATION_SHOWN: pa.array(notations, pa.string())}
    punctuations = pa.table(
        [known.get(field.name, pa.nulls(len(notations), field.type)) for field in schema], names=schema.names
    )
    both = [tuples.select(schema.names).cast(schema), punctuations.cast(schema)]
    table = pa.concat_tables(both)
    if not len(punctuations):
        return table
    if POSITION_SHOWN in schema.names:
        return table.sort_by(POSITION_SHOWN)
    order = pa.concat_arrays([parsed.tuples[POSITION], said[POSITION]])
    return table.take(pa.compute.sort_indices(order))
