"""Results as tables: Parquet, CSV, JSON; what any program reads.

A Parquet document says beside its rows what is final: its metadata has the slice's punctuations. CSV and JSON have no
place for that, and a slice without tuples has no document in them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from punct_ns.errors import QueryError
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme, format_schemes
from sources.xml.splits.parquet_footer import EXACT, PUNCTUATIONS, SCHEMA, SCHEMES
from xmlstream.sink.column_text import text_of
from xmlstream.sink.dictionary_encoding import pc
from xmlstream.sink.exactness import Exactness
from xmlstream.sink.json_text import objects_text
from xmlstream.sink.result_slice import no_rows, values_alone
from xmlstream.sink.sink import Bytes, Moment, Part, together
from xmlstream.sink.writable import require_text_types


class ParquetForm:
    """Parquet, whose metadata has the punctuations of the slice, and the attributes and schemes of the result."""

    suffix = ".parquet"

    def __init__(self, schema: Schema, schemes: Sequence[Scheme] = ()) -> None:
        self._schema = schema
        told = format_schemes(scheme for scheme in schemes if scheme.terms and scheme.is_told_by_text(schema))
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
