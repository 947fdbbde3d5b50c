"""Nested values in XML: the domains of arrays and structures, and structures parsed from their texts.

A structure is an element with its fields, each by its path from that element:

    b STRUCT<_id: INT, x: STRING, c: ARRAY<INT>>      <b id="1"><x>a</x><c>2</c><c>3</c></b>

A field's path is the default path of a column with the same name, unless it is declared: `path.b.x`. Before typing, a
structure has the texts of its fields, and an array a list of texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.schema import Schema, schema_within
from xmlstream.sources.xml.options.leaf_paths import LeafPath


def element_of(domain: Domain) -> Domain | None:
    """Returns the domain of an array's elements; None if it is not an array, or its elements are not readable.

    >>> element_of(Domain("ARRAY<INT>")), element_of(Domain("ARRAY<ARRAY<INT>>")), element_of(Domain("INT"))
    (Domain(type='INT', nullable=True, low=None, high=None, listed=None), None, None)
    >>> element_of(Domain("ARRAY<STRUCT<x: INT>>")) == Domain("STRUCT<x: INT>")
    True
    """
    element = None if domain.sql.element is None else Domain(domain.sql.element.name)
    return element if element is not None and (not element.opaque or fields_of(element)) else None


def fields_of(domain: Domain) -> Schema | None:
    """Returns the fields of a structure; None if it is not a structure, or a field is not readable.

    >>> fields_of(Domain("STRUCT<a: INT, b: ARRAY<STRING>>")).names
    ('a', 'b')
    >>> fields_of(Domain("STRUCT<a: MAP<INT,INT>>")) is None
    True
    """
    fields = schema_within(domain.sql)
    return None if fields is None or any(not is_readable(field.domain) for field in fields) else fields


def is_readable(domain: Domain) -> bool:
    """Whether values of a domain can be parsed from XML.

    >>> is_readable(Domain("ARRAY<STRUCT<x: ARRAY<INT>>>")), is_readable(Domain("MAP<INT,INT>"))
    (True, False)
    """
    return not domain.opaque or element_of(domain) is not None or fields_of(domain) is not None


@dataclass(frozen=True, slots=True)
class Structure:
    """The declaration of a structure, or of the structures in an array.

    Attributes:
        fields: The names and domains of the fields.
        paths: The paths of the fields from the structure's element.
        formats: The patterns of dates and timestamps; None for ISO 8601.
        structures: The declarations of fields that are structures or arrays of structures.
    """

    fields: Schema
    paths: tuple[LeafPath, ...]
    formats: tuple[str | None, ...]
    structures: tuple[Structure | None, ...]

    @staticmethod
    def of(
        name: str,
        domain: Domain,
        path: Callable[[str, str, Domain], LeafPath],
        format_: Callable[[str, Domain], str | None],
    ) -> Structure | None:
        """Returns the structure of a domain, or of the elements of its array; None for other domains.

        Args:
            name: The name of an attribute; for a field with those around it, `b.x`.
            domain: Its domain.
            path: Maps a field to its path, given its name in full and alone, and the domain of its values.
            format_: Maps a field to its pattern, given its name in full, and that domain.
        """
        fields = fields_of(element_of(domain) or domain)
        if fields is None:
            return None
        inside = [(f"{name}.{field.name}", field.name, element_of(field.domain) or field.domain) for field in fields]
        return Structure(
            fields,
            tuple(path(whole, field, each) for whole, field, each in inside),
            tuple(format_(whole, each) for whole, _, each in inside),
            tuple(Structure.of(whole, each, path, format_) for whole, _, each in inside),
        )


def text_type(domain: Domain, structure: Structure | None) -> pa.DataType:
    """Returns the type of an attribute before its texts are typed: a text, or lists and structures of texts.

    >>> domain = Domain("ARRAY<STRUCT<x: INT, y: ARRAY<DATE>>>")
    >>> structure = Structure.of("s", domain, lambda whole, name, _: LeafPath(0, (name,)), lambda name, domain: None)
    >>> str(text_type(domain, structure))
    'list<element: struct<x: string, y: list<element: string>>>'
    """
    element = element_of(domain)
    if element is not None:
        return pa.list_(pa.field("element", text_type(element, structure)))
    if structure is None:
        return pa.string()
    below = zip(structure.fields, structure.structures, strict=True)
    return pa.struct([pa.field(field.name, text_type(field.domain, inner)) for field, inner in below])


def read_structures(
    texts: Any, kind: pa.StructType, readers: Sequence[Callable[[Any], tuple[pa.Array[Any], Mapping[int, str]]]]
) -> tuple[pa.Array[Any], dict[int, str]]:
    """Parses structures of texts with one reader per field; also returns the reason for each unreadable row."""
    there = np.flatnonzero(texts.is_valid().to_numpy(zero_copy_only=False))
    given = texts.drop_null() if texts.null_count else texts
    columns: list[pa.Array[Any]] = []
    reasons: dict[int, str] = {}
    for fields, read in zip(given.flatten(), readers, strict=True):
        values, wrong = read(fields)
        columns.append(values)
        for element, reason in wrong.items():
            reasons.setdefault(int(there[element]), reason)
    structures: Any = pa.StructArray.from_arrays(columns, fields=list(kind))
    if len(there) == len(texts):
        return structures, reasons
    places = np.full(len(texts), -1, np.int64)
    places[there] = np.arange(len(there))
    return structures.take(pa.array(places, mask=places < 0)), reasons
