"""SQL types by their names: a type is read from a text of Spark SQL once, and its `name` is the text again.

Aliases are resolved, and complex types are split at their brackets and commas.
"""

from __future__ import annotations

import re
from functools import lru_cache

from xmlstream.punct_ns.numeric_type import DecimalType, FloatType, IntegerType
from xmlstream.punct_ns.sql_type import (
    ArrayType,
    BooleanType,
    Field,
    MapType,
    NamedType,
    SqlType,
    StringType,
    StructType,
)
from xmlstream.punct_ns.temporal_type import DateType, TimestampType

TYPES: dict[str, SqlType] = {
    type_.name: type_
    for type_ in (
        StringType(),
        IntegerType("TINYINT", 8),
        IntegerType("SMALLINT", 16),
        IntegerType("INT", 32),
        IntegerType("BIGINT", 64),
        FloatType("FLOAT", 32),
        FloatType("DOUBLE", 64),
        BooleanType(),
        DateType(),
        TimestampType(zoned=True),
        TimestampType(zoned=False),
    )
}
"""The types with an order, but for DECIMAL."""

ALIASES = {
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "TIMESTAMP_LTZ": "TIMESTAMP",
}

_DECIMAL = re.compile(r"(?i)(?:decimal|dec|numeric)(?: ?\( ?(\d+) ?(?:, ?(\d+) ?)?\))?")
_NESTED = re.compile(r"(?i)(array|map|struct) ?<\s*(\S.*)>")
_FIELD = re.compile(r"\s*(?:`((?:[^`]|``)+)`\s*:?|([^:<'\"]+?)\s*:|(\w+)\s)\s*(.+?)\s*")
_REMARK = re.compile("(?i)not null|comment|collate")
_OPENING, _CLOSING = "<([{", ">)]}"


@lru_cache(maxsize=1024)
def sql_type(name: str) -> SqlType:
    """Returns the type of a name in Spark SQL; a type that the algebra cannot order is opaque.

    >>> sql_type("DECIMAL(10,2)").high
    Decimal('99999999.99')
    >>> [sql_type(name).name for name in ("integer", "decimal( 10 )", "array<long>")]
    ['INT', 'DECIMAL(10,0)', 'ARRAY<BIGINT>']
    >>> sql_type("array<struct<a:int,`b c` : map<string, long>>>").name
    'ARRAY<STRUCT<a:INT,`b c`:MAP<STRING,BIGINT>>>'
    >>> sql_type("struct<b c:long,`d`: int not null,e struct<f:int>>").name
    'STRUCT<`b c`:BIGINT,d:INT not null,e:STRUCT<f:INT>>'

    Raises:
        ValueError: There is no DECIMAL of so many digits.
    """
    tidy = " ".join(name.split())
    if decimal := _DECIMAL.fullmatch(tidy):
        return DecimalType(int(decimal[1] or 10), int(decimal[2] or 0))
    if nested := _NESTED.fullmatch(tidy):
        return _nested(nested[1].upper(), split_outside(nested[2], ","))
    upper = tidy.upper()
    # Names of fields inside a complex type keep their case.
    known = ALIASES.get(upper, upper if re.fullmatch(r"\w+", tidy) else tidy)
    return TYPES.get(known) or NamedType(known)


def _nested(constructor: str, parts: list[str]) -> SqlType:
    """The type that a constructor makes of its arguments; one with a name alone if they are not as it needs them."""
    match constructor, [_field(part) if constructor == "STRUCT" else _inner(part) for part in parts]:
        case "ARRAY", [SqlType() as element]:
            return ArrayType(element)
        case "MAP", [SqlType() as key, SqlType() as to]:
            return MapType(key, to)
        case "STRUCT", [*fields] if all(isinstance(each, Field) for each in fields):
            return StructType(tuple(each for each in fields if isinstance(each, Field)))
        case _, found:
            names = (each.written() if isinstance(each, Field) else each.name for each in found)
            return NamedType(f"{constructor}<{','.join(names)}>")


def _inner(text: str) -> SqlType:
    """A type inside another; a DECIMAL that there is not has a name alone."""
    try:
        return sql_type(text)
    except ValueError:
        return NamedType(" ".join(text.split()).upper())


def _field(text: str) -> Field | NamedType:
    """A field of a structure as `name:TYPE`; whatever follows the type stays as it is, and so does what is no field."""
    found = _FIELD.fullmatch(text)
    if found is None:
        return NamedType(text.strip())
    name = found[1].replace("``", "`") if found[1] else found[2] or found[3]
    words = split_outside(found[4], " ")
    end = next((at for at in range(1, len(words)) if _REMARK.match(" ".join(words[at:]))), len(words))
    remark = " ".join(words[end:])
    return Field(name, _inner(" ".join(words[:end])), not remark.lower().startswith("not null"), remark)


def split_outside(text: str, separator: str, quotes: str = "`'\"") -> list[str]:
    """Splits a text at the separators that are outside quotes and brackets.

    >>> split_outside("a STRUCT<x: INT, y: INT>, `b,c` INT", ",")
    ['a STRUCT<x: INT, y: INT>', ' `b,c` INT']
    """
    parts, start, depth, quote = [], 0, 0, ""
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in quotes:
            quote = char
        elif char in _OPENING:
            depth += 1
        elif char in _CLOSING:
            depth -= 1
        elif char == separator and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]
