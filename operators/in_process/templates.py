"""Texts without their values: a slice's conditions differ from those of the slice before in their literals alone.

Reading a text takes longer than computing it over a small slice. So literals are taken out, the rest is read once, and
the literals are put into the DuckDB SQL that was made of it. Only plain literals are taken out, as the project writes
them: a text without escapes, and CAST('…' AS type) of a text that is a value of the type, alone or `passed`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from xmlstream.dataclasses import dataclass
from xmlstream.operators.expressions.dialect import PASSED_LITERAL
from xmlstream.operators.expressions.operations.casts import cast
from xmlstream.operators.expressions.operations.part import Part, is_utc, text
from xmlstream.operators.expressions.operations.spark_type import NotProven, read_type
from xmlstream.punct_ns.slices import own

_TEXT = r"'[^'\\\x00]*'(?!')"
_CAST = rf"CAST\({_TEXT} AS [A-Z_]+(?:\(\d+,\d+\))?\)"
_FOUND = re.compile(
    rf"(?P<other>`(?:[^`]|``)*`|\b[A-Za-z_]+\s*'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\")"
    rf"|{PASSED_LITERAL}|(?P<cast>{_CAST})|(?P<text>{_TEXT})"
    r"|(?P<escaped>'(?:[^'\\]|\\.|'')*')",
    re.DOTALL,
)
"""Names, and literals behind a word, as in DATE '…', are left as they are; so is what has escapes."""

_PARTS = re.compile(r"CAST\('(?P<value>[^'\\]*)' AS (?P<type>.+)\)|'(?P<text>[^'\\]*)'|(?P<number>-?\d+)L")


@dataclass(frozen=True, slots=True)
class Template:
    """A text with names of columns in the place of its literals.

    Attributes:
        text: The text.
        values: The literals by these names, in order.
    """

    text: str
    values: Mapping[str, Part]

    def filled(self, sql: str) -> str:
        """DuckDB SQL made of the text, with the literals in their places."""
        return _MARK.sub(lambda found: self.values[found[1]].sql, sql) if self.values else sql


_MARK = re.compile(rf"\{{\{{({own('value')}\d+)\}}\}}")


def template(given: str, zone: str) -> Template:
    """The text without its literals.

    >>> found = template("`n` <=> CAST('7' AS INT) AND `s` IN ('a', 'b')", "UTC")
    >>> found.text, [part.sql for part in found.values.values()]
    ('`n` <=> __xs_value0 AND `s` IN (__xs_value1, __xs_value2)', ["CAST('7' AS INTEGER)", "'a'", "'b'"])
    """
    if own("value") in given.lower() or "--" in given or "/*" in given:
        return Template(given, {})
    values: dict[str, Part] = {}

    def taken(found: re.Match[str]) -> str:
        literal = found["passed"] or found["cast"] or found["text"]
        part = _literal(literal, zone) if literal else None
        if part is None:
            return found[0]
        name = own(f"value{len(values)}")
        values[name] = part
        return name

    return Template(_FOUND.sub(taken, given), values)


def _literal(written: str, zone: str) -> Part | None:
    """The literal; None if it is not a plain value of its type."""
    found = _PARTS.fullmatch(written)
    assert found is not None
    if found["text"] is not None:
        return Part(text(found["text"]), _STRING, False)
    if found["number"] is not None:
        number = int(found["number"])
        return Part(f"({number})::BIGINT", _BIGINT, False) if -(2**63) <= number < 2**63 else None
    return _cast(found["value"], found["type"], zone)


@lru_cache(maxsize=64)  # values of a slice do not come again in later ones
def _cast(value: str, type_: str, zone: str) -> Part | None:
    try:
        to = read_type(type_)
        if to.name == "TIMESTAMP" and not (value.endswith("Z") or is_utc(zone)):
            return None
        found = cast(Part(text(value), _STRING, False, constant=value), to, zone)
    except NotProven:
        return None
    return None if found.raises else found


_STRING, _BIGINT = map(read_type, ("STRING", "BIGINT"))
