"""Tuples as XML text, columnwise: Arrow in, bytes out, no loop over rows.

Every piece of text that rows are made of is written down once: the text of each value, of each distinct value where a
column has few, and what stands between them. A line is the numbers of its pieces, and all lines are gathered at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from punct_ns.errors import QueryError
from punct_ns.numeric_type import FloatType
from punct_ns.schema import Attribute, Schema
from punct_ns.sql_type import StringType
from punct_ns.temporal_type import DateType, TemporalType, TimestampType
from punct_ns.window_attributes import windows
from xmlstream.sink.dictionary_encoding import ArrowColumn, dictionary_encoded, pc
from xmlstream.sink.writable import ATTRIBUTE_PREFIX

AT_ONCE = 1 << 20
"""Rows that are gathered into one buffer."""

REPLACE = r"take them out, for instance with regexp_replace(…, '[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\ufffe\\uffff]', '')"
"""What can be done about a string that XML cannot carry."""

_FORBIDDEN = "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\ufffe\uffff]"


def rows_text(table: pa.Table, schema: Schema, row_tag: str) -> list[pa.Buffer]:
    """One element per tuple, one a line: a column is a child, or an attribute where it is so named; a null is absent.

    A window is a child with two children. Columns may come as dictionaries.

    Raises:
        QueryError: A value cannot be written so that it is read again: a string with a control character, a day or a
            moment beyond the years 1 to 9999.
    """
    frames = list(_frames(schema, row_tag))
    batches = table.combine_chunks().to_batches(max_chunksize=AT_ONCE)
    return [
        _gathered([_pieces(batch[frame.attribute.name], frame) for frame in frames], batch.num_rows)
        for batch in batches
        if batch.num_rows
    ]


@dataclass(frozen=True, slots=True)
class _Frame:
    """What stands around the values of an attribute, and what in place of it all where the value is null."""

    attribute: Attribute
    before: str
    after: str
    absent: str
    escapes: Sequence[tuple[str, str]]


def _frames(schema: Schema, row_tag: str) -> Iterator[_Frame]:
    """In the order of the text; the tags of the row itself belong to the first and the last."""
    due, end = f"<{row_tag}", f"</{row_tag}>\n"
    attributes = [a for a in schema if a.name.startswith(ATTRIBUTE_PREFIX)]
    children = [a for a in schema if not a.name.startswith(ATTRIBUTE_PREFIX)]
    for left, attribute in enumerate(attributes, 1 - len(attributes)):
        close = f">{end}" if left == 0 and not children else ""
        name = attribute.name.removeprefix(ATTRIBUTE_PREFIX)
        yield _Frame(attribute, f'{due} {name}="', f'"{close}', due + close, _IN_ATTRIBUTES)
        due = ""
    due += ">"
    begins = windows(Schema(tuple(children)))
    for i, child in enumerate(children):
        close = end if i == len(children) - 1 else ""
        name, around = child.name, begins.get(i) or begins.get(i - 1)
        if around is not None:  # two elements in one
            name = name.removeprefix(f"{around}.")
            due, close = (f"{due}<{around}>", "") if i in begins else ("", f"</{around}>{close}")
        yield _Frame(child, f"{due}<{name}>", f"</{name}>{close}", due + close, _IN_CONTENT)
        due = ""


_IN_CONTENT = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\r", "&#13;"))
_IN_ATTRIBUTES = (*_IN_CONTENT, ('"', "&quot;"), ("\n", "&#10;"), ("\t", "&#9;"))


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Texts, and which of them a row has one after the other: at each place the numbers of all rows, or one for all."""

    texts: list[pa.LargeStringArray]
    places: list[npt.NDArray[Any] | int]


def _pieces(values: ArrowColumn, frame: _Frame) -> _Pieces:
    values = dictionary_encoded(values)
    if pa.types.is_dictionary(values.type):
        text = _text(values.dictionary, frame)
        whole = pc.binary_join_element_wise(frame.before, text, frame.after, "")
        numbers = pc.fill_null(values.indices, len(whole)).to_numpy()
        return _Pieces([_large(whole), _large([frame.absent])], [numbers])
    text = _large(_text(values, frame))
    around = _large([frame.before, frame.after, frame.absent, ""])
    before, after, absent, nothing = range(len(text), len(text) + 4)
    rows = np.arange(len(text), dtype=np.int32)
    if not text.null_count:
        return _Pieces([text, around], [before, rows, after])
    there = text.is_valid().to_numpy(zero_copy_only=False)
    chosen = [np.where(there, before, absent), np.where(there, rows, nothing), np.where(there, after, nothing)]
    return _Pieces([text, around], [*chosen])


def _large(texts: Any) -> pa.LargeStringArray:
    """With offsets for any amount of text."""
    return pc.cast(texts, pa.large_string()) if isinstance(texts, pa.Array) else pa.array(texts, pa.large_string())


def _gathered(columns: Sequence[_Pieces], rows: int) -> pa.Buffer:
    """Row by row, the bytes of all pieces."""
    texts: list[pa.LargeStringArray] = []
    places: list[npt.NDArray[Any] | int] = []
    for pieces in columns:
        known = sum(map(len, texts))
        places += [place + known for place in pieces.places]
        texts += pieces.texts
    numbers = np.empty((rows, len(places)), np.int32)
    for at, place in enumerate(places):
        numbers[:, at] = place
    return _data(pc.take(pa.concat_arrays(texts), pa.array(numbers.reshape(-1)), boundscheck=False))


def _text(values: ArrowColumn, frame: _Frame) -> ArrowColumn:
    type_ = frame.attribute.domain.sql
    if isinstance(type_, StringType):
        return _escaped(values, frame)
    if isinstance(type_, TemporalType):
        _require_years(values, frame.attribute)
    if isinstance(type_, TimestampType):
        clock = _wall_clock(values)
        return pc.binary_join_element_wise(clock, "Z", "") if type_.zoned else clock
    if isinstance(type_, FloatType):
        text = pc.cast(values, pa.string())
        finite = pc.is_finite(values)
        if pc.all(finite).as_py() is not False:
            return text
        named = pc.case_when(pc.make_struct(pc.is_nan(values), pc.greater(values, 0)), "NaN", "Infinity", "-Infinity")
        return pc.if_else(finite, text, named)
    return pc.cast(values, pa.string())


_DAY = 86_400_000_000  # microseconds
_FIRST_DAY, _LAST_DAY = (day.toordinal() - date(1970, 1, 1).toordinal() for day in (date.min, date.max))
_MOMENTS = (pa.int64(), _FIRST_DAY * _DAY, (_LAST_DAY + 1) * _DAY - 1)
_YEARS = {DateType: (pa.int32(), _FIRST_DAY, _LAST_DAY), TimestampType: _MOMENTS}
"""As what the days and moments are counted, and the first and the last of them that are read again."""


def _require_years(values: ArrowColumn, attribute: Attribute) -> None:
    kind, first, last = _YEARS[type(attribute.domain.sql)]
    counted = values.cast(pa.timestamp("us")) if kind == pa.int64() and values.type.unit != "us" else values
    ends = pc.min_max(counted.view(kind))
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if low is not None and (low < first or high > last):
        raise QueryError(
            f"a value of the result's column {attribute.name} lies beyond the years 1 to 9999: nothing would read it",
            hint=f"leave it out with WHERE, or write it as text: CAST({attribute.name} AS STRING) AS {attribute.name}",
        )


def _wall_clock(moments: ArrowColumn) -> ArrowColumn:
    """To the microsecond; of moments in a zone, the clock of UTC. A cast takes a thirtieth of strftime's time."""
    return pc.replace_substring(pc.cast(pc.cast(moments, pa.timestamp("us")), pa.string()), " ", "T")


def _escaped(values: ArrowColumn, frame: _Frame) -> ArrowColumn:
    """What needs a reference has it; the bytes of all values together say what there is to look for."""
    bytes_ = np.frombuffer(memoryview(_data(values)), np.uint8)
    if not bytes_.size:
        return values
    least, most = bytes_.min(), bytes_.max()
    if most >= 0x80:
        _require_text(values, frame.attribute)
    # U+FFFE and U+FFFF begin with 0xEF in UTF-8.
    if (least < 0x20 or most >= 0xEF) and pc.any(pc.match_substring_regex(values, _FORBIDDEN)).as_py():
        raise QueryError(
            f"a string of the result's column {frame.attribute.name} holds a control character, which XML cannot carry",
            hint=REPLACE,
        )
    for character, reference in frame.escapes:
        if np.any(bytes_ == ord(character)):
            values = pc.replace_substring(values, character, reference)
    return values


def _require_text(values: ArrowColumn, attribute: Attribute) -> None:
    """Spark takes any bytes for a string."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        raise QueryError(
            f"a string of the result's column {attribute.name} is no UTF-8 text",
            hint=f"write its bytes in letters, for instance with base64({attribute.name})",
        ) from None


def _data(texts: pa.Array[Any]) -> pa.Buffer:
    """The bytes of all strings of an array, which lie one after the other."""
    _, offsets, data = texts.buffers()
    if len(texts) == 0 or offsets is None or data is None:
        return pa.py_buffer(b"")
    view = memoryview(offsets).cast("q" if pa.types.is_large_string(texts.type) else "i")
    start, end = view[texts.offset], view[texts.offset + len(texts)]
    return data.slice(start, end - start)
