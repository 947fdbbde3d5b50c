"""The options of single attributes, as `path.NAME`: where its values are in a row, how they are written.

What is said of no attribute by its name, holds for all of its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from punct_ns.domain import Domain
from punct_ns.errors import UsageError
from punct_ns.schema import Schema
from punct_ns.sql_type import StringType
from punct_ns.temporal_type import DateType, TimestampType
from punct_ns.window_attributes import windows
from sources.xml.options.namespace_prefixes import Prefixes
from sources.xml.options.nested_domains import element_of
from sources.xml.options.paths import LeafPath, default_path
from sources.xml.options.structures import Structure
from sources.xml.options.values import date_pattern

_FORMATS: Mapping[type, str] = {DateType: "dateFormat", TimestampType: "timestampFormat"}
"""The option that says how the values of a type are written."""


def prefixes_of(given: Mapping[str, str], schema: Schema) -> tuple[str, ...]:
    """What the texts of each attribute begin with and its values do not; raises UsageError."""
    found = [""] * len(schema)
    for name, prefix in given.items():
        if name.startswith("prefix."):
            place = _place(name, schema)
            domain = element_of(schema[place].domain) or schema[place].domain
            if domain.opaque or isinstance(domain.sql, StringType):
                what = f"{name} of a {schema[place].domain.type}"
                raise UsageError(what, hint="a prefix is taken off what is no string, as in person17")
            found[place] = prefix
    return tuple(found)


def formats_of(given: Mapping[str, str], schema: Schema, read: Mapping[str, str | None]) -> tuple[str | None, ...]:
    """The pattern of the dates or timestamps of each attribute; raises UsageError."""
    types = [type((element_of(attribute.domain) or attribute.domain).sql) for attribute in schema]
    found = [read[_FORMATS[type_]] if type_ in _FORMATS else None for type_ in types]
    for name, pattern in given.items():
        option, dot, _ = name.partition(".")
        if dot and option in _FORMATS.values():
            place = _place(name, schema)
            if _FORMATS.get(types[place]) != option:
                kind = next(
                    type_.__name__.removesuffix("Type").upper() for type_, of in _FORMATS.items() if of == option
                )
                raise UsageError(f"{name} of a {schema[place].domain.type}", hint=f"it is for columns of type {kind}")
            found[place] = date_pattern(name, pattern)
    return tuple(found)


def _place(option: str, schema: Schema) -> int:
    """The attribute that an option is for."""
    column = option.partition(".")[2]
    if column.lower() not in [known.lower() for known in schema.names]:
        raise UsageError(f"{option} names no attribute", hint=f"the attributes are {', '.join(schema.names)}")
    return schema.index(column)


def paths_of(
    given: Mapping[str, str], schema: Schema, prefixes: Prefixes, attribute_prefix: str, value_tag: str
) -> tuple[LeafPath, ...]:
    """The path to the leaf of each attribute; raises UsageError."""
    said = {_place(name, schema): path for name, path in given.items() if name.startswith("path.")}
    paths = [
        LeafPath.parse(said[i], prefixes) if i in said else default_path(name, attribute_prefix, value_tag, prefixes)
        for i, name in enumerate(schema.names)
    ]
    for i, name in windows(schema).items():
        for place, end in ((i, "start"), (i + 1, "end")):
            if place not in said:
                paths[place] = LeafPath(0, (name, end))
    return tuple(paths)


def structures_of(schema: Schema, prefixes: Prefixes, read: Mapping[str, Any]) -> tuple[Structure | None, ...]:
    """What is declared of the structure that each attribute is, or of those in its array."""

    def path(name: str) -> LeafPath:
        return default_path(name, read["attributePrefix"], read["valueTag"], prefixes)

    def format_(domain: Domain) -> str | None:
        return read[_FORMATS[type(domain.sql)]] if type(domain.sql) in _FORMATS else None

    return tuple(Structure.of(attribute.domain, path, format_) for attribute in schema)
