"""Tuples as XML text, columnwise: Arrow in, bytes out, no loop over rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute

from punct_ns.domain import Domain
from punct_ns.errors import QueryError
from punct_ns.schema import Schema

Column: TypeAlias = Any  # an Arrow array, or chunks of it
pc: Any = pyarrow.compute  # its stubs know neither mixed scalars and columns nor chunked text
ATTRIBUTE_PREFIX = "_"
"""A column so named is an attribute of the row element, as in Spark's XML source."""

_FORBIDDEN = "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\ufffe\uffff]"


def is_name(text: str) -> bool:
    """Whether the text can be the name of an element without a prefix (NCName).

    >>> is_name("maxtemp"), is_name("max(currtmp)"), is_name("2nd")
    (True, False, False)
    """
    return re.fullmatch(r"[^\W\d][\w.\-·]*", text) is not None


def rows_text(table: pa.Table, schema: Schema, row_tag: str) -> list[pa.Buffer]:
    """One element per tuple, one a line: a column is a child, or an attribute where it is so named; a null is absent.

    Raises:
        QueryError: a string holds a character that XML cannot carry.
    """
    if table.num_rows == 0:
        return []
    attributes = [a for a in schema if a.name.startswith(ATTRIBUTE_PREFIX)]
    children = [a for a in schema if not a.name.startswith(ATTRIBUTE_PREFIX)]
    parts: list[Any] = [f"<{row_tag}"]
    for attribute in attributes:
        name = attribute.name.removeprefix(ATTRIBUTE_PREFIX)
        parts.append(_wrapped(f' {name}="', _text(table[attribute.name], attribute.domain, _IN_ATTRIBUTES), '"'))
    parts.append(">")
    parts += [
        _wrapped(f"<{child.name}>", _text(table[child.name], child.domain, _IN_CONTENT), f"</{child.name}>")
        for child in children
    ]
    parts.append(f"</{row_tag}>\n")
    lines = pc.binary_join_element_wise(*_merged(parts), "")
    return [data for chunk in _chunks(lines) if (data := _data(chunk)) is not None]


_IN_CONTENT = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\r", "&#13;"))
_IN_ATTRIBUTES = (*_IN_CONTENT, ('"', "&quot;"), ("\n", "&#10;"), ("\t", "&#9;"))


def _text(values: Column, domain: Domain, escapes: Sequence[tuple[str, str]]) -> Column:
    if domain.type == "STRING":
        if pc.any(pc.match_substring_regex(values, _FORBIDDEN)).as_py():
            raise QueryError("a string of the result holds a control character, which XML cannot carry")
        for character, reference in escapes:
            if pc.any(pc.match_substring(values, character)).as_py():
                values = pc.replace_substring(values, character, reference)
        return values
    if domain.type == "TIMESTAMP":
        return pc.binary_join_element_wise(pc.strftime(values, "%Y-%m-%dT%H:%M:%S"), "Z", "")
    if domain.type == "TIMESTAMP_NTZ":
        return pc.strftime(values, "%Y-%m-%dT%H:%M:%S")
    if domain.type in ("DOUBLE", "FLOAT"):
        text = pc.cast(values, pa.string())
        finite = pc.is_finite(values)
        if pc.all(finite).as_py() is not False:
            return text
        named = pc.case_when(pc.make_struct(pc.is_nan(values), pc.greater(values, 0)), "NaN", "Infinity", "-Infinity")
        return pc.if_else(finite, text, named)
    return pc.cast(values, pa.string())


def _wrapped(before: str, text: Column, after: str) -> Column:
    whole = pc.binary_join_element_wise(before, text, after, "")
    return pc.fill_null(whole, "") if text.null_count else whole


def _merged(parts: list[Any]) -> list[Any]:
    """Adjacent constant strings as one."""
    merged: list[Any] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return merged


def _chunks(lines: Any) -> list[pa.Array[Any]]:
    return list(lines.chunks) if isinstance(lines, pa.ChunkedArray) else [lines]


def _data(chunk: pa.Array[Any]) -> pa.Buffer | None:
    """The bytes of all strings of an array, which lie one after the other."""
    if len(chunk) == 0:
        return None
    _, offsets, data = chunk.buffers()
    assert offsets is not None
    assert data is not None
    view = memoryview(offsets).cast("q") if pa.types.is_large_string(chunk.type) else memoryview(offsets).cast("i")
    start, end = view[chunk.offset], view[chunk.offset + len(chunk)]
    return data.slice(start, end - start)
