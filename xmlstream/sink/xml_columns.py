"""Columns whose texts are XML, written as the elements that they are: what a source reads with `xml(description)`.

    description STRING    <description>An <emph>old</emph> clock</description>

Without more a text is written as text, with references for its markup. Of a column that is written so each text is one
well-formed element of the column's name, so that `xml(description)` reads it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from lxml import etree

from punct_ns.errors import QueryError, UsageError
from punct_ns.schema import Attribute, Schema
from punct_ns.sql_type import StringType
from sources.xml.splits.tags import parse_reason, safe_parser
from xmlstream.sink.dictionary_encoding import ArrowColumn, pc
from xmlstream.sink.writable import ATTRIBUTE_PREFIX

_SHOWN = 40


def require_xml_columns(schema: Schema, columns: Sequence[str], row_tag: str) -> frozenset[str]:
    """The names of the columns that are written as XML, as the schema has them.

    Raises:
        UsageError: There is no such column, or it holds no text, or would be an XML attribute, or a row of its own.
    """
    known = {attribute.name.lower(): attribute for attribute in schema}
    found: set[str] = set()
    for name in columns:
        attribute = known.get(name.lower())
        if attribute is None:
            raise UsageError(f"no column {name} to write as XML", hint=f"the columns are {', '.join(schema.names)}")
        if not isinstance(attribute.domain.sql, StringType) or attribute.name.startswith(ATTRIBUTE_PREFIX):
            what = f"the column {attribute.name}, a {attribute.domain.type}, cannot be written as XML"
            raise UsageError(what, hint="a STRING that becomes a child is: xml(description) reads such a one")
        if attribute.name == row_tag:
            what = f"the column {attribute.name}, written as XML, would be read as a row: {row_tag} is the row tag"
            raise UsageError(what, hint="choose another rowTag")
        found.add(attribute.name)
    return frozenset(found)


def xml_elements(values: ArrowColumn, attribute: Attribute, row_tag: str) -> ArrowColumn:
    """Each text as the element that it is; null where it is null.

    Raises:
        QueryError: One is not well-formed, of another name, or has an element within that would be read as a row.
    """
    distinct: Any = pc.dictionary_encode(values)
    whole: Any = distinct.combine_chunks() if isinstance(distinct, pa.ChunkedArray) else distinct
    texts = [_element(str(text), attribute.name, row_tag) for text in whole.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(whole.indices)


def _element(text: str, name: str, row_tag: str) -> str:
    try:
        root = etree.fromstring(text, safe_parser(keep_comments=True))
    except (etree.XMLSyntaxError, ValueError) as error:
        raise _refusal(text, name, parse_reason(error)) from None
    described: Any = root.getroottree().docinfo
    if described.doctype:
        raise _refusal(text, name, "it has a document type declaration")
    if root.tag != name and etree.QName(root).localname != name:
        raise _refusal(text, name, f"the element is called {etree.QName(root).localname}, not {name}")
    if next(root.iter("{*}" + row_tag), None) is not None:
        raise _refusal(text, name, f"an element {row_tag} in it would be read as a row")
    return etree.tostring(root, encoding="unicode", with_tail=False)


def _refusal(text: str, name: str, reason: str) -> QueryError:
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return QueryError(
        f"the column {name} is written as XML, and {shown!r} is none: {reason}",
        hint=f"concat('<{name}>', …, '</{name}>') makes an element; without path.{name} it is written as text",
    )
