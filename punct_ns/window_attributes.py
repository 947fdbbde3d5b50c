"""A window's two attributes: its start and its end, which together stand for one structure, as in `window.start`.

A punctuation speaks of attributes, and Spark's windows are structures of two moments. So here a window is two
attributes that stand side by side, `w.start` and `w.end`; in XML they are two elements in one, `w`.
"""

from __future__ import annotations

import re

from punct_ns.domain import Domain
from punct_ns.schema import Attribute, Schema
from punct_ns.temporal_type import TimestampType

START, END = ".start", ".end"

_DECLARED = re.compile(r"(?i)struct<\s*start\s*:?\s*(timestamp(?:_ntz)?)\s*,\s*end\s*:?\s*\1\s*>")


def windows(schema: Schema) -> dict[int, str]:
    """Where the windows of a schema begin, and their names: two attributes side by side, of one type of moments.

    >>> windows(Schema.parse("a INT, `w.start` TIMESTAMP, `w.end` TIMESTAMP, `v.start` TIMESTAMP"))
    {1: 'w'}
    """
    found = {}
    for i, (start, end) in enumerate(zip(schema.attributes, schema.attributes[1:], strict=False)):
        name = start.name.removesuffix(START)
        is_pair = name and f"{name}{START}" == start.name and f"{name}{END}" == end.name
        if is_pair and start.domain.type == end.domain.type and isinstance(start.domain.sql, TimestampType):
            found[i] = name
    return found


def flattened(schema: Schema) -> Schema:
    """The schema with two attributes for each that is declared as the structure of a window.

    >>> flattened(Schema.parse("w STRUCT<start: TIMESTAMP, end: TIMESTAMP> NOT NULL, a INT")).ddl()
    '`w.start` TIMESTAMP NOT NULL, `w.end` TIMESTAMP NOT NULL, `a` INT'
    """
    found: list[Attribute] = []
    for attribute in schema:
        declared = _DECLARED.fullmatch(attribute.domain.type)
        if declared is None:
            found.append(attribute)
        else:
            domain = Domain(declared[1], attribute.domain.nullable)
            found += (Attribute(f"{attribute.name}{end}", domain) for end in (START, END))
    return Schema(tuple(found))


def structured(schema: Schema) -> list[tuple[str, str]]:
    """The names and the types of what Spark is shown of a schema: a window as the structure that it stands for.

    >>> structured(Schema.parse("a INT, `w.start` TIMESTAMP, `w.end` TIMESTAMP"))
    [('a', 'INT'), ('w', 'struct<start:TIMESTAMP,end:TIMESTAMP>')]
    """
    begins = windows(schema)
    shown = []
    for i, attribute in enumerate(schema):
        if i in begins:
            type_ = attribute.domain.type
            shown.append((begins[i], f"struct<start:{type_},end:{type_}>"))
        elif i - 1 not in begins:
            shown.append((attribute.name, _with_null(attribute)))
    return shown


def leaves(schema: Schema) -> list[str]:
    """Where the values of each attribute stand: by its own name, or as one of two elements in that of a window.

    >>> leaves(Schema.parse("a INT, `w.start` TIMESTAMP, `w.end` TIMESTAMP"))
    ['a', 'w/start', 'w/end']
    """
    begins = windows(schema)
    places = list(schema.names)
    for i, name in begins.items():
        places[i], places[i + 1] = f"{name}/start", f"{name}/end"
    return places


def _with_null(attribute: Attribute) -> str:
    return f"{attribute.domain.type}{'' if attribute.domain.nullable else ' NOT NULL'}"
