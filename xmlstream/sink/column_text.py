"""Columns as the text that Spark reads as the same values, without a loop over rows."""

from __future__ import annotations

import pyarrow as pa

from xmlstream.sink.dictionary_encoding import ArrowColumn, pc


def plain(column: ArrowColumn) -> ArrowColumn:
    """The values themselves, where they are places in a dictionary."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def text_of(column: ArrowColumn) -> ArrowColumn:
    """Each value as text, null where it is null: moments in ISO 8601, those of an instant in UTC.

    >>> text_of(pa.chunked_array([[1.5, None, float("nan")]])).to_pylist()
    ['1.5', None, 'NaN']
    """
    kind = column.type
    if pa.types.is_timestamp(kind):
        zone = "Z" if kind.tz else ""
        moments = column.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us")) if kind.tz else column
        return pc.strftime(moments, "%Y-%m-%dT%H:%M:%S" + zone)
    text = column.cast(pa.string())
    if pa.types.is_floating(kind):
        for ours, sparks in (("nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")):
            text = pc.if_else(pc.equal(text, ours), sparks, text)
    return text
