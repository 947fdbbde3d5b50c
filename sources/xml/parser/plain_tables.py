"""Static tables of plain XML, which are read here as by Spark's own XML source.

Plain is a row whose columns are attributes of its element, or child elements with a text alone, each once, and without
namespaces; and a text that each reader takes for the same value of its type. Whatever else there is, is left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
from lxml import etree

from xmlstream.punct_ns.errors import MalformedInput
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import WholeReading
from xmlstream.sources.xml.splits.tags import parse_reason

_OPTIONS = {"path", "rowtag", "mode"}
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_TEXTS = {
    "STRING": re.compile(r"(?s)|\S|\S.*\S"),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), _WHOLE),
    "DOUBLE": re.compile(r"-?[0-9]+(\.[0-9]+)?"),
    "BOOLEAN": re.compile("true|false"),
    "DATE": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
}
"""The texts of a value by its type; all but those of strings have no blanks around them."""


def not_plain(schema: Schema, options: Mapping[str, str]) -> str | None:
    """What of a static table may be read otherwise by Spark, as far as its declaration tells; None for nothing.

    >>> not_plain(Schema.parse("_id INT, name STRING"), {"rowtag": "row"})
    >>> not_plain(Schema.parse("at TIMESTAMP"), {"rowtag": "row"})
    'XML of type TIMESTAMP'
    """
    for name, value in options.items():
        if name.lower() not in _OPTIONS:
            return f"the option {name} '{value}' of XML"
    given = {name.lower(): value for name, value in options.items()}
    if ":" in given.get("rowtag", ""):
        return "a row tag with a prefix"
    if "://" in given.get("path", "").removeprefix("file://"):
        return "XML in an object store"
    for attribute in schema:
        if attribute.domain.type not in _TEXTS:
            return f"XML of type {attribute.domain.type}"
        if not re.fullmatch(r"_?[A-Za-z][\w.-]*", attribute.name):
            return f"XML with the column {attribute.name}"
    return None


def plain_rows(files: Iterable[Path], schema: Schema, options: Mapping[str, str]) -> pa.Table | str:
    """The rows of files of plain XML; or what in them may be read otherwise by Spark."""
    tag = {name.lower(): value for name, value in options.items()}.get("rowtag", "ROW")
    parts = list[pa.Table]()
    for file in files:
        with file.open("rb") as opened, closing(_reasons(opened, schema, tag)) as reasons:
            if reason := next(reasons, None):
                return f"{reason}, as in {file},"
        read = SourceOptions.parse({"path": str(file), "rowTag": tag}, schema.ddl())
        try:
            tuples = [piece.tuples for piece in WholeReading(read).pieces()]
        except MalformedInput as error:
            return f"XML with {error.what}, as in {file},"
        parts += [pa.Table.from_batches([each]).select(schema.names) for each in tuples]
    return pa.concat_tables(parts) if parts else "XML without rows"


def _reasons(file: BinaryIO, schema: Schema, tag: str) -> Generator[str, None, None]:
    """Why Spark may read a file otherwise."""
    attributes = {a.name[1:].lower(): a for a in schema if a.name.startswith("_")}
    elements = {a.name.lower(): a for a in schema if not a.name.startswith("_")}
    try:
        options: Any = {"events": ("start-ns", "end"), "tag": tag, "resolve_entities": False, "no_network": True}
        for event, row in etree.iterparse(file, **options):
            if event == "start-ns":
                yield "XML with namespaces"
            if row.getroottree().docinfo.doctype:
                yield "XML with a document type"
            yield from _of_row(row, attributes, elements)
            row.clear(keep_tail=True)
    except etree.XMLSyntaxError as error:
        yield f"XML that is not well-formed: {parse_reason(error)}"


def _of_row(row: Any, attributes: Mapping[str, Attribute], elements: Mapping[str, Attribute]) -> Iterator[str]:
    if not len(row) and not row.attrib:
        yield "XML with an empty row"
    if any(text and not text.isspace() for text in (row.text, *(child.tail for child in row))):
        yield "XML with text beside elements"
    for name, text in row.attrib.items():
        if name.startswith("{"):
            yield "XML with namespaces"
        yield from _of_value(f"_{name}", text, attributes.get(name.lower()))
    tags = [child.tag for child in row]
    for child in row:
        if not isinstance(child.tag, str):
            yield "XML with comments or instructions in rows"
        elif child.tag.lower() in elements:
            if tags.count(child.tag) > 1 or len(child) or child.attrib:
                yield f"XML with {child.tag} twice in a row, or with elements or attributes"
            yield from _of_value(child.tag, child.text or "", elements[child.tag.lower()])


def _of_value(name: str, text: str, of: Attribute | None) -> Iterator[str]:
    if of is not None and name != of.name:
        yield f"XML with {name} in another case than {of.name}"
    if of is not None and not _TEXTS[of.domain.type].fullmatch(text):
        yield f"XML with the {of.domain.type} {text!r}"
