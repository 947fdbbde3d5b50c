"""Tuples as JSON text, columnwise: Arrow in, bytes out, no loop over rows."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from xmlstream.sink.column_text import text_of
from xmlstream.sink.dictionary_encoding import ArrowColumn, pc

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
    for plain, escape in _FIRST:
        text = pc.replace_substring(text, plain, escape)
    if pc.any(pc.match_substring_regex(text, _RARE)).as_py():
        for code in range(0x20):
            text = pc.replace_substring(text, chr(code), f"\\u{code:04x}")
    return text
