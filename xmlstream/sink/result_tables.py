"""Results as tables: an Arrow table with its punctuations for the program; Parquet, CSV and JSON for any program.

The metadata of a Parquet document holds the slice's punctuations. CSV and JSON cannot hold punctuations, and write no
document for a slice without tuples. JSON is written columnwise, without a loop over rows.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from xmlstream.dataclasses import dataclass, field
from xmlstream.punct_ns.errors import QueryError, UsageError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme, format_schemes
from xmlstream.punct_ns.slices import POSITION, any_arrow_type, in_utc
from xmlstream.sink.arrow_columns import ArrowColumn, in_row_order, pc, plain_array, text_bytes, text_of
from xmlstream.sink.sink import Bytes, ComputedSlice, Exactness, Moment, Part, SinkKind, one_part
from xmlstream.sink.xml_values import require_text_types
from xmlstream.sources.parquet_table import EXACT, PUNCTUATIONS, SCHEMA, SCHEMES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class ResultSlice:
    """Slice of a query's result.

    Attributes:
        number: Number of the slice.
        punctuations: Punctuations of the slice: no later slice has a tuple that matches one of them.
        exact: Whether no kept tuple was overdue up to and including this slice (`purge_after`).
        schema: Attributes of the result, with their types.
        query: Identifier of the query: the same in all runs of a checkpoint, and another one for another checkpoint.
    """

    number: int
    punctuations: tuple[Punctuation, ...]
    exact: bool
    schema: Schema = field(repr=False)
    query: str
    _table: Callable[[], pa.Table] = field(repr=False)
    _batches: Callable[[], Iterable[pa.RecordBatch]] = field(repr=False)
    _dataframe: Callable[[], DataFrame | None] = field(default=lambda: None, repr=False)

    @staticmethod
    def of(slice_: ComputedSlice, schema: Schema, query: str) -> ResultSlice | None:
        """The computed slice for a program; None if it has no tuples, no punctuations and no change of exactness."""
        tuples, punctuations = one_part(slice_.parts)
        if (tuples is None or not tuples.num_rows) and not punctuations and slice_.exactness is not Exactness.LOST:
            return None
        rows = no_rows(schema) if tuples is None else values_alone(tuples)
        is_exact = slice_.exactness is Exactness.EXACT
        return ResultSlice(slice_.number, tuple(punctuations), is_exact, schema, query, lambda: rows, rows.to_batches)

    @cached_property
    def tuples(self) -> pa.Table:
        """Tuples of the slice: one column per attribute, moments in UTC, sorted by position or else by value.

        There may be none. A large slice is sorted in pieces.
        """
        return self._table()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Tuples of the slice, batch by batch, so that a large slice need not fit into memory."""
        yield from self._batches()

    def to_dataframe(self) -> DataFrame:
        """Tuples of the slice as a DataFrame of Spark; a sink that has returned from `write` must not use it.

        Raises:
            UsageError: The session has no Spark, or the slice was not passed to `write`.
        """
        if (frame := self._dataframe()) is None:
            raise UsageError("this slice is not a DataFrame of Spark", hint="tuples has it as an Arrow table")
        return frame


def values_alone(tuples: pa.Table) -> pa.Table:
    """The tuples sorted as in `ResultSlice`, without their positions."""
    can_be_ordered = POSITION in tuples.column_names or not any(map(pa.types.is_nested, tuples.schema.types))
    ordered = in_row_order(tuples) if can_be_ordered else tuples
    names = [name for name in ordered.column_names if name != POSITION]
    return in_utc(pa.table({name: plain_array(ordered[name]) for name in names}))


def no_rows(schema: Schema) -> pa.Table:
    """An empty table with the columns of the schema."""
    return pa.schema([pa.field(a.name, any_arrow_type(a.domain.sql)) for a in schema]).empty_table()


_FIRST = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))
_RARE = "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f]"


def objects_text(table: pa.Table) -> bytes:
    r"""One object per tuple and line; null attributes are left out.

    >>> objects_text(pa.table({"sid": ["S\"1", None], "hour": [17, 18]}))
    b'{"sid":"S\\"1","hour":17}\n{"hour":18}\n'
    """
    members = [_members(name, table[name]) for name in table.column_names]
    if not members:
        return b"{}\n" * table.num_rows
    inside = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*members, ""), start=1)
    lines = pc.binary_join_element_wise("{", inside, "}\n", "")
    return b"".join(map(text_bytes, lines.chunks if isinstance(lines, pa.ChunkedArray) else [lines]))


def _members(name: str, column: ArrowColumn) -> ArrowColumn:
    """`,"name":value` for each tuple, the empty string for null."""
    kind, text = column.type, text_of(column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        text = _escaped(text)
    is_bare = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)
    if pa.types.is_floating(kind):
        # NaN and infinities are not JSON numbers: Spark reads their names in quotes as the numbers.
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
    """Parquet; its metadata holds the slice's punctuations, and the attributes and schemes of the result."""

    suffix = ".parquet"

    def __init__(self, schema: Schema, schemes: Sequence[Scheme] = ()) -> None:
        self._schema = schema
        exact = format_schemes(scheme for scheme in schemes if scheme.terms and scheme.has_exact_text(schema))
        self._metadata = {SCHEMA: schema.ddl(), SCHEMES: exact}

    def document(self, parts: Sequence[Part], exactness: Exactness, written: Moment) -> Sequence[Bytes]:
        """A file; without rows if the slice has only punctuations."""
        tuples, punctuations = one_part(parts)
        if tuples is None or not tuples.num_rows:
            if not punctuations and exactness is not Exactness.LOST:
                return ()
            tuples = no_rows(self._schema) if tuples is None else tuples
        return self._file(tuples, punctuations, exactness)

    def closings(self, punctuations: Sequence[Punctuation], exactness: Exactness) -> Sequence[Bytes]:
        """A file without rows that holds the punctuations and the attributes."""
        return self._file(no_rows(self._schema), punctuations, exactness)

    def _file(self, tuples: pa.Table, punctuations: Sequence[Punctuation], exactness: Exactness) -> Sequence[Bytes]:
        metadata = {
            **self._metadata,
            PUNCTUATIONS: json.dumps([str(punctuation) for punctuation in punctuations], ensure_ascii=False),
        }
        if exactness is not Exactness.EXACT:
            metadata[EXACT] = "false"
        out = pa.BufferOutputStream()
        pq.write_table(values_alone(tuples).replace_schema_metadata(metadata), out)
        return (out.getvalue(),)


class _TextForm:
    """A form that holds tuples alone, as text."""

    def __init__(self, schema: Schema, schemes: Sequence[Scheme] = ()) -> None:
        require_text_types(schema)

    def document(self, parts: Sequence[Part], exactness: Exactness, written: Moment) -> Sequence[Bytes]:
        """A file; none for a slice without tuples."""
        tuples, _ = one_part(parts)
        return (self.text(values_alone(tuples)),) if tuples is not None and tuples.num_rows else ()

    @abstractmethod
    def text(self, rows: pa.Table) -> Bytes:
        """The content of the file with these tuples."""


class CsvForm(_TextForm):
    """CSV with a header; null is an empty field, an empty string two quotes; Spark reads both as null."""

    suffix = ".csv"

    def text(self, rows: pa.Table) -> Bytes:
        """A line for each tuple, below the header."""
        text = pa.table({name: text_of(rows[name]) for name in rows.column_names})
        for name in text.column_names:
            _require_whole(text, name)
        out = pa.BufferOutputStream()
        pa.csv.write_csv(text, out)
        return out.getvalue()


def _require_whole(text: pa.Table, name: str) -> None:
    """Refuses line breaks: by default Spark ends a row at a line break, even within quotes."""
    if pc.any(pc.match_substring_regex(text[name], "[\r\n]")).as_py():
        raise QueryError(
            f"a value of {name} has a line break, which most readers of CSV interpret as the end of a row",
            hint=rf"write JSON or Parquet, or regexp_replace({name}, '[\r\n]', ' ') AS {name}",
        )


class JsonForm(_TextForm):
    """JSON, one object per line; null attributes are left out, as in Spark."""

    suffix = ".json"

    def text(self, rows: pa.Table) -> Bytes:
        """A line for each tuple."""
        return objects_text(rows)


PARQUET = SinkKind(name="parquet", example="out.parquet", suffix=ParquetForm.suffix, form=ParquetForm)
CSV = SinkKind(name="csv", example="out.csv", suffix=CsvForm.suffix, form=CsvForm)
JSON = SinkKind(name="json", example="out.json", suffix=JsonForm.suffix, form=JsonForm)
