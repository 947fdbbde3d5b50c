"""Names of Spark's SQL types, as texts: aliases resolved, complex types taken apart at their brackets and commas."""

from __future__ import annotations

import re


def canonical_name(name: str) -> str:
    """Spark's name of a type, in upper case, aliases resolved.

    >>> canonical_name("integer"), canonical_name("decimal( 10 )"), canonical_name("array<long>")
    ('INT', 'DECIMAL(10,0)', 'ARRAY<BIGINT>')
    >>> canonical_name("array<struct<a:int,`b c` : map<string, long>>>")
    'ARRAY<STRUCT<a:INT,`b c`:MAP<STRING,BIGINT>>>'
    """
    tidy = " ".join(name.split())
    decimal = re.fullmatch(r"(?i)(?:decimal|dec|numeric)(?: ?\( ?(\d+) ?(?:, ?(\d+) ?)?\))?", tidy)
    if decimal:
        return f"DECIMAL({decimal[1] or 10},{decimal[2] or 0})"
    if (made := re.fullmatch(r"(?i)(array|map|struct) ?<(.*)>", tidy)) and (inner := made[2].strip()):
        return f"{made[1].upper()}<{_inner(made[1].upper(), inner)}>"
    upper = tidy.upper()
    # Names of fields inside a complex type keep their case.
    return ALIASES.get(upper, upper if re.fullmatch(r"\w+", tidy) else tidy)


def _inner(constructor: str, inner: str) -> str:
    """What a constructor is given, in canonical form."""
    parts = split_outside(inner, ",")
    if constructor == "STRUCT":
        return ",".join(map(_field, parts))
    return ",".join(map(canonical_name, parts))


def _field(text: str) -> str:
    """A field: `name:TYPE`, with what may follow the type as it is."""
    found = re.fullmatch(r"\s*(?:`((?:[^`]|``)+)`|(\w+)\s*[:\s]|([^:]+?)\s*:)\s*:?\s*(.+?)\s*", text)
    if found is None:
        return text.strip()
    name = found[1] or found[2] or found[3].replace("`", "``")
    type_, *rest = re.split(r"(?i)\s+(?=not null|comment|collate)", found[4], maxsplit=1)
    return " ".join([f"{name if found[2] else f'`{name}`'}:{canonical_name(type_)}", *rest])


def split_outside(text: str, separator: str) -> list[str]:
    """The parts of a text between separators that stand outside quotes and brackets.

    >>> split_outside("a STRUCT<x: INT, y: INT>, `b,c` INT", ",")
    ['a STRUCT<x: INT, y: INT>', ' `b,c` INT']
    """
    parts, start, depth, quote = [], 0, 0, ""
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "`'\"":
            quote = char
        elif char in _OPENING:
            depth += 1
        elif char in _CLOSING:
            depth -= 1
        elif char == separator and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


ALIASES = {
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "TIMESTAMP_LTZ": "TIMESTAMP",
}

_OPENING, _CLOSING = "<([", ">)]"
