"""Results as tables: an Arrow table with its punctuations for the program; Parquet, CSV and JSON for any program.

A Parquet document has beside its rows what is final: its metadata has the slice's punctuations. CSV and JSON have no
place for that, and a slice without tuples has no document in them. JSON is written columnwise, without a loop over
rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from punct_ns.errors import QueryError
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme, format_schemes
from punct_ns.slices import POSITION, arrow_type, in_utc
from sources.parquet_table import EXACT, PUNCTUATIONS, SCHEMA, SCHEMES
from xmlstream.sink.arrow_columns import ArrowColumn, in_row_order, pc, plain, text_of
from xmlstream.sink.sink import Bytes, ComputedSlice, Exactness, Moment, Part, together
from xmlstream.sink.sink_kind import SinkKind
from xmlstream.sink.xml_values import require_text_types


@dataclass(frozen=True, slots=True)
class ResultSlice:
    """One slice of a query's result.

    Attributes:
        number: Of the slice; a slice that comes again, after a crash, has the number that it had.
        tuples: One column per attribute, moments in UTC, by position or else in the order of the values; perhaps empty.
        punctuations: What holds from here on: no later slice has a tuple that one of them matches.
        exact: Whether no kept tuple was overdue up to here (`purge_after`).
    """

    number: int
    tuples: pa.Table
    punctuations: tuple[Punctuation, ...]
    exact: bool = True

    @staticmethod
    def of(slice_: ComputedSlice, schema: Schema) -> ResultSlice | None:
        """What a sink is given, as the program gets it; None where that says nothing."""
        tuples, punctuations = together(slice_.parts)
        if (tuples is None or not tuples.num_rows) and not punctuations and slice_.exactness is not Exactness.LOST:
            return None
        rows = no_rows(schema) if tuples is None else values_alone(tuples)
        return ResultSlice(slice_.number, rows, tuple(punctuations), slice_.exactness is Exactness.EXACT)


def values_alone(tuples: pa.Table) -> pa.Table:
    """The tuples in their order, without their positions."""
    can_be_ordered = POSITION in tuples.column_names or not any(map(pa.types.is_nested, tuples.schema.types))
    ordered = in_row_order(tuples) if can_be_ordered else tuples
    names = [name for name in ordered.column_names if name != POSITION]
    return in_utc(pa.table({name: plain(ordered[name]) for name in names}))


def no_rows(schema: Schema) -> pa.Table:
    """A table without rows."""
    if not any(attribute.domain.opaque for attribute in schema):
        return pa.schema([pa.field(a.name, arrow_type(a.domain)) for a in schema]).empty_table()
    # Only Spark knows what carries an array or a map.
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    columns = StructType.fromDDL(schema.ddl())
    assert isinstance(columns, StructType)
    return to_arrow_schema(columns, timezone="UTC").empty_table()


_FIRST = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))
_RARE = "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f]"


def objects_text(table: pa.Table) -> bytes:
    r"""One object per tuple, one a line; an attribute that is null is left out.

    >>> objects_text(pa.table({"sid": ["S\"1", None], "hour": [17, 18]}))
    b'{"sid":"S\\"1","hour":17}\n{"hour":18}\n'
    """
    members = [_members(name, table[name]) for name in table.column_names]
    if not members:
        return b"{}\n" * table.num_rows
    inside = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*members, ""), start=1)
    lines = pc.binary_join_element_wise("{", inside, "}\n", "")
    return b"".join(map(_text, lines.chunks if isinstance(lines, pa.ChunkedArray) else [lines]))


def _text(chunk: ArrowColumn) -> bytes:
    """All strings of a chunk, one after the other, as they lie in memory."""
    offsets = np.frombuffer(chunk.buffers()[1], np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
    return bytes(chunk.buffers()[2].slice(int(offsets[0]), int(offsets[-1] - offsets[0])))


def _members(name: str, column: ArrowColumn) -> ArrowColumn:
    """`,"name":value` of each tuple, nothing where the value is null."""
    kind, text = column.type, text_of(column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        text = _escaped(text)
    is_bare = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)
    if pa.types.is_floating(kind):
        # What is no number of JSON is a string, which Spark reads as the number.
        quoted = pc.binary_join_element_wise('"', text, '"', "")
        text = pc.if_else(pc.is_finite(column), text, quoted)
        is_bare = True
    quote = "" if is_bare else '"'
    before = f",{json.dumps(name, ensure_ascii=False)}:{quote}"
    return pc.fill_null(pc.binary_join_element_wise(before, text, quote, ""), "")


def _escaped(text: ArrowColumn) -> ArrowColumn:
    for character, escape in _FIRST:
        text = pc.replace_substring(text, character, escape)
    if pc.any(pc.match_substring_regex(text, _RARE)).as_py():
        for code in range(0x20):
            text = pc.replace_substring(text, chr(code), f"\\u{code:04x}")
    return text


class ParquetForm:
    """Parquet, whose metadata has the punctuations of the slice, and the attributes and schemes of the result."""

    suffix = ".parquet"

    def __init__(self, schema: Schema, schemes: Sequence[Scheme] = ()) -> None:
        self._schema = schema
        told = format_schemes(scheme for scheme in schemes if scheme.terms and scheme.has_exact_text(schema))
        self._told = {SCHEMA: schema.ddl(), SCHEMES: told}

    def document(self, parts: Sequence[Part], exactness: Exactness, written: Moment) -> Sequence[Bytes]:
        """A file; one without rows where there are punctuations only."""
        tuples, punctuations = together(parts)
        if tuples is None or not tuples.num_rows:
            if not punctuations and exactness is not Exactness.LOST:
                return ()
            tuples = no_rows(self._schema) if tuples is None else tuples
        return self._file(tuples, punctuations, exactness)

    def closings(self, punctuations: Sequence[Punctuation], exactness: Exactness) -> Sequence[Bytes]:
        """A file without rows, which says what is closed and which attributes there are."""
        return self._file(no_rows(self._schema), punctuations, exactness)

    def _file(self, tuples: pa.Table, punctuations: Sequence[Punctuation], exactness: Exactness) -> Sequence[Bytes]:
        said = {
            **self._told,
            PUNCTUATIONS: json.dumps([str(punctuation) for punctuation in punctuations], ensure_ascii=False),
        }
        if exactness is not Exactness.EXACT:
            said[EXACT] = "false"
        out = pa.BufferOutputStream()
        pq.write_table(values_alone(tuples).replace_schema_metadata(said), out)
        return (out.getvalue(),)


class CsvForm:
    """CSV with a line of names; null is nothing between commas, an empty string two quotes: to Spark both are null."""

    suffix = ".csv"

    def __init__(self, schema: Schema, schemes: Sequence[Scheme] = ()) -> None:
        require_text_types(schema)

    def document(self, parts: Sequence[Part], exactness: Exactness, written: Moment) -> Sequence[Bytes]:
        """A file; none without tuples."""
        tuples, _ = together(parts)
        if tuples is None or not tuples.num_rows:
            return ()
        rows = values_alone(tuples)
        text = pa.table({name: text_of(rows[name]) for name in rows.column_names})
        for name in text.column_names:
            _require_whole(text, name)
        out = pa.BufferOutputStream()
        pa.csv.write_csv(text, out)
        return (out.getvalue(),)


def _require_whole(text: pa.Table, name: str) -> None:
    """Spark ends a row at a line break, be it quoted, unless it is told otherwise."""
    if pc.any(pc.match_substring_regex(text[name], "[\r\n]")).as_py():
        raise QueryError(
            f"a value of {name} has a line break, which most readers of CSV take for the end of a row",
            hint=rf"write JSON or Parquet, or regexp_replace({name}, '[\r\n]', ' ') AS {name}",
        )


class JsonForm:
    """JSON, an object a line; an attribute that is null is left out, as Spark does."""

    suffix = ".json"

    def __init__(self, schema: Schema, schemes: Sequence[Scheme] = ()) -> None:
        require_text_types(schema)

    def document(self, parts: Sequence[Part], exactness: Exactness, written: Moment) -> Sequence[Bytes]:
        """A file; none without tuples."""
        tuples, _ = together(parts)
        return (objects_text(values_alone(tuples)),) if tuples is not None and tuples.num_rows else ()


PARQUET = SinkKind(name="parquet", example="out.parquet", suffix=ParquetForm.suffix, form=ParquetForm)
CSV = SinkKind(name="csv", example="out.csv", suffix=CsvForm.suffix, form=CsvForm)
JSON = SinkKind(name="json", example="out.json", suffix=JsonForm.suffix, form=JsonForm)
