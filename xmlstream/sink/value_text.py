"""Values of one attribute as text that XML can carry, columnwise and without a loop over rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from punct_ns.errors import QueryError
from punct_ns.numeric_type import FloatType
from punct_ns.schema import Attribute
from punct_ns.sql_type import StringType
from punct_ns.temporal_type import DateType, TemporalType, TimestampType
from xmlstream.sink.dictionary_encoding import ArrowColumn, pc

REPLACE = r"take them out, for instance with regexp_replace(…, '[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\ufffe\\uffff]', '')"
"""What can be done about a string that XML cannot carry."""

Escapes: TypeAlias = Sequence[tuple[str, str]]
"""Characters, and the references in their place."""

IN_CONTENT: Escapes = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\r", "&#13;"))
"""Between tags."""

IN_ATTRIBUTES: Escapes = (*IN_CONTENT, ('"', "&quot;"), ("\n", "&#10;"), ("\t", "&#9;"))
"""In the values of XML attributes."""

_FORBIDDEN = "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\ufffe\uffff]"


def value_text(values: ArrowColumn, attribute: Attribute, escapes: Escapes) -> ArrowColumn:
    """The text of each value, in which what needs a reference has it; null where it is null.

    Args:
        values: Of a type that has a text.
        attribute: What they are values of.
        escapes: Characters that have a reference where the text will stand.

    Raises:
        QueryError: A value cannot be written so that it is read again.
    """
    type_ = attribute.domain.sql
    if isinstance(type_, StringType):
        return _escaped(values, attribute, escapes)
    if isinstance(type_, TemporalType):
        _require_years(values, attribute)
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


def _escaped(values: ArrowColumn, attribute: Attribute, escapes: Escapes) -> ArrowColumn:
    """What needs a reference has it; the bytes of all values together say what there is to look for."""
    bytes_ = np.frombuffer(memoryview(text_bytes(values)), np.uint8)
    if not bytes_.size:
        return values
    least, most = bytes_.min(), bytes_.max()
    if most >= 0x80:
        _require_text(values, attribute)
    # U+FFFE and U+FFFF begin with 0xEF in UTF-8.
    if (least < 0x20 or most >= 0xEF) and pc.any(pc.match_substring_regex(values, _FORBIDDEN)).as_py():
        raise QueryError(
            f"a string of the result's column {attribute.name} holds a control character, which XML cannot carry",
            hint=REPLACE,
        )
    for character, reference in escapes:
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


def text_bytes(texts: pa.Array[Any]) -> pa.Buffer:
    """The bytes of all strings of an array, which lie one after the other."""
    _, offsets, data = texts.buffers()
    if len(texts) == 0 or offsets is None or data is None:
        return pa.py_buffer(b"")
    view = memoryview(offsets).cast("q" if pa.types.is_large_string(texts.type) else "i")
    start, end = view[texts.offset], view[texts.offset + len(texts)]
    return data.slice(start, end - start)
