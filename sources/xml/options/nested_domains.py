"""Domains of arrays and structures that are read from XML: what their elements and their fields are."""

from __future__ import annotations

from punct_ns.domain import Domain
from punct_ns.schema import Schema
from punct_ns.sql_type import OpaqueType


def element_of(domain: Domain) -> Domain | None:
    """The domain of an array's elements; None of what is no array, or one of what cannot be read.

    >>> element_of(Domain("ARRAY<INT>")), element_of(Domain("ARRAY<ARRAY<INT>>")), element_of(Domain("INT"))
    (Domain(type='INT', nullable=True, low=None, high=None), None, None)
    >>> element_of(Domain("ARRAY<STRUCT<x: INT>>")) == Domain("STRUCT<x: INT>")
    True
    """
    name = domain.sql.element if isinstance(domain.sql, OpaqueType) else None
    element = None if name is None else Domain(name)
    return element if element is not None and (not element.opaque or fields_of(element)) else None


def fields_of(domain: Domain) -> Schema | None:
    """The fields of a structure; None of what is none, or has a field that cannot be read.

    >>> fields_of(Domain("STRUCT<a: INT, b: ARRAY<STRING>>")).names
    ('a', 'b')
    >>> fields_of(Domain("STRUCT<a: MAP<INT,INT>>")) is None
    True
    """
    if not isinstance(domain.sql, OpaqueType) or domain.sql.constructor != "STRUCT":
        return None
    fields = Schema.parse(domain.sql.name.partition("<")[2].rpartition(">")[0])
    return fields if all(is_readable(field.domain) for field in fields) else None


def is_readable(domain: Domain) -> bool:
    """Whether values of a domain can be read from XML.

    >>> is_readable(Domain("ARRAY<STRUCT<x: ARRAY<INT>>>")), is_readable(Domain("MAP<INT,INT>"))
    (True, False)
    """
    return not domain.opaque or element_of(domain) is not None or fields_of(domain) is not None
