"""Spark's SQL types as the algebra sees them: their values, the order, the text of a value, and the types' names.

A type is *discrete* when every value but the last has a next one; ordinals number its values, so that
neighbours are known. The other ordered types (STRING, FLOAT, DOUBLE) are dense.
Types without an order known to the algebra are opaque: it only distinguishes null from not null.

Type names are texts: aliases are resolved, and complex types are split at their brackets and commas.
"""

# ruff: noqa: D102 – SqlType documents these methods once for all types

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from bisect import bisect_left
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

from xmlstream.dataclasses import dataclass


def canonical_name(name: str) -> str:
    """Returns Spark's name of a type, in upper case, with aliases resolved.

    >>> canonical_name("integer"), canonical_name("decimal( 10 )"), canonical_name("array<long>")
    ('INT', 'DECIMAL(10,0)', 'ARRAY<BIGINT>')
    >>> canonical_name("array<struct<a:int,`b c` : map<string, long>>>")
    'ARRAY<STRUCT<a:INT,`b c`:MAP<STRING,BIGINT>>>'
    >>> canonical_name("struct<b c:long,`d`: int not null,e struct<f:int>>")
    'STRUCT<`b c`:BIGINT,d:INT not null,e:STRUCT<f:INT>>'
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
    """Canonicalizes the arguments of a type constructor."""
    parts = split_outside(inner, ",")
    if constructor == "STRUCT":
        return ",".join(map(_field, parts))
    return ",".join(map(canonical_name, parts))


def _field(text: str) -> str:
    """Canonicalizes a struct field as `name:TYPE`; whatever follows the type stays as it is."""
    found = re.fullmatch(r"\s*(?:`((?:[^`]|``)+)`\s*:?|([^:<'\"]+?)\s*:|(\w+)\s)\s*(.+?)\s*", text)
    if found is None:
        return text.strip()
    name = found[1] or (found[2] or found[3]).replace("`", "``")
    type_, *rest = re.split(r"(?i)\s+(?=not null|comment|collate)", found[4], maxsplit=1)
    quoted = name if re.fullmatch(r"\w+", name) else f"`{name}`"
    return " ".join([f"{quoted}:{canonical_name(type_)}", *rest])


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


ALIASES = {
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "TIMESTAMP_LTZ": "TIMESTAMP",
}

_OPENING, _CLOSING = "<([{", ">)]}"


Value = str | int | Decimal | float | bool | date | datetime
"""A value of an attribute, never null (null is None). TIMESTAMP values carry a time zone, UTC."""

BLANKS = " \t\r\n"
"""XML's white space; no other character counts as blank."""


class Greatest:
    """Compares as greater than everything but itself; its instance is pickled as the global of that `name`."""

    __slots__ = ()
    name: ClassVar[str]

    def __lt__(self, other: object) -> bool:
        return False

    def __le__(self, other: object) -> bool:
        return self == other

    def __gt__(self, other: object) -> bool:
        return not self == other

    def __ge__(self, other: object) -> bool:
        return True

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.name


class _NotANumber(Greatest, float):
    """NaN as one value, above all others (Spark's order)."""

    __slots__ = ()
    name = "NAN"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and math.isnan(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash("NaN")


NAN: float = _NotANumber("nan")
"""The only NaN: equal to itself and to any NaN, greater than every other number."""


class SqlType(ABC):
    """The values of one SQL type: their order, their lexical forms, their canonical Python values."""

    __slots__ = ()
    discrete: ClassVar[bool] = False
    counted: ClassVar[bool] = False
    opaque: ClassVar[bool] = False

    @property
    @abstractmethod
    def low(self) -> Value | None:
        """The first value in order."""

    @property
    @abstractmethod
    def high(self) -> Value | None:
        """The last value in order; None where there is none (strings)."""

    @abstractmethod
    def read(self, text: str) -> Value:
        """Parses a text into a value; ValueError with the reason if it is not one."""

    @abstractmethod
    def write(self, value: Value) -> str:
        """Writes a canonical value as text; `read` parses it back."""

    @abstractmethod
    def normal(self, value: object) -> Value:
        """Converts a value to its canonical form; ValueError if it is not of this type."""


class DiscreteType(SqlType):
    """A type with numbered values: `ordinal` and `value` are inverse and preserve the order."""

    __slots__ = ()
    discrete = True

    @abstractmethod
    def ordinal(self, value: Value) -> int:
        """Returns the number of a canonical value in the order."""

    @abstractmethod
    def value(self, ordinal: int) -> Value:
        """Returns the value with that number."""

    def place(self, bound: object) -> int | Fraction:
        """Returns the ordinal of a bound; a fraction if the bound lies between two values."""
        return self.ordinal(self.normal(bound))

    def place_of_text(self, text: str) -> int | Fraction:
        """Like `place`, for a bound given as text."""
        return self.ordinal(self.read(text))


@dataclass(frozen=True, slots=True)
class StringType(SqlType):
    """STRING, by code point; nothing is trimmed.

    >>> StringType().read(" S01 "), StringType().high is None
    (' S01 ', True)
    """

    low: ClassVar[str] = ""
    high: ClassVar[None] = None

    def read(self, text: str) -> str:
        return text

    def write(self, value: Value) -> str:
        return str(value)

    def normal(self, value: object) -> str:
        if not isinstance(value, str):
            raise ValueError(f"{value!r} is not a string")
        return str(value)


@dataclass(frozen=True, slots=True)
class BooleanType(DiscreteType):
    """BOOLEAN: false, then true.

    >>> BooleanType().read("1"), BooleanType().write(False), BooleanType().ordinal(True)
    (True, 'false', 1)
    """

    counted = True
    low: ClassVar[bool] = False
    high: ClassVar[bool] = True
    _READ: ClassVar[dict[str, bool]] = {"true": True, "1": True, "false": False, "0": False}

    def read(self, text: str) -> bool:
        value = self._READ.get(text.strip(BLANKS).lower())
        if value is None:
            raise ValueError(f"{text!r} is neither true nor false")
        return value

    def write(self, value: Value) -> str:
        return "true" if value else "false"

    def normal(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise ValueError(f"{value!r} is neither true nor false")
        return value

    def ordinal(self, value: Value) -> int:
        return 1 if value else 0

    def value(self, ordinal: int) -> bool:
        return ordinal == 1


@dataclass(frozen=True, slots=True)
class ListedType(DiscreteType):
    """The values of a type that a domain lists, ascending: each but the last has a next one.

    A value that is not listed has the ordinal behind the last one, and a place between its neighbours.

    >>> senders = ListedType(StringType(), ("S1", "S3"))
    >>> senders.ordinal("S3"), senders.ordinal("S2"), senders.place("S2")
    (1, 2, Fraction(1, 2))
    """

    of: SqlType
    values: tuple[Value, ...]
    counted = True

    @property
    def low(self) -> Value:
        return self.values[0]

    @property
    def high(self) -> Value:
        return self.values[-1]

    def read(self, text: str) -> Value:
        return self.of.read(text)

    def write(self, value: Value) -> str:
        return self.of.write(value)

    def normal(self, value: object) -> Value:
        return self.of.normal(value)

    def ordinal(self, value: Value) -> int:
        place = self.place(value)
        return place if isinstance(place, int) else len(self.values)

    def value(self, ordinal: int) -> Value:
        return self.values[ordinal]

    def place(self, bound: object) -> int | Fraction:
        value = self.of.normal(bound)
        at = bisect_left(self.values, value)
        return at if self.values[at : at + 1] == (value,) else at - Fraction(1, 2)

    def place_of_text(self, text: str) -> int | Fraction:
        return self.place(self.of.read(text))


@dataclass(frozen=True, slots=True)
class OpaqueType(DiscreteType):
    """A type without an order: patterns only distinguish null from not null; one stand-in represents all values.

    >>> OpaqueType("BINARY").read("x")
    Traceback (most recent call last):
    ...
    ValueError: BINARY admits only the patterns * and null
    """

    name: str
    opaque = True
    low: ClassVar[None] = None
    high: ClassVar[None] = None

    @property
    def constructor(self) -> str:
        """The type constructor (ARRAY, MAP or STRUCT), or the name of a simple type.

        >>> OpaqueType("MAP<STRING,INT>").constructor, OpaqueType("BINARY").constructor
        ('MAP', 'BINARY')
        """
        return self.name.partition("<")[0].strip().upper()

    @property
    def element(self) -> str | None:
        """The name of an array's element type; None for other types.

        >>> OpaqueType("ARRAY<INT>").element, OpaqueType("BINARY").element
        ('INT', None)
        """
        return self.inner[0].strip() if self.constructor == "ARRAY" else None

    @property
    def inner(self) -> list[str]:
        """What a type constructor is given: types, or fields with their types.

        >>> OpaqueType("STRUCT<a:INT,b:MAP<STRING,INT>>").inner
        ['a:INT', 'b:MAP<STRING,INT>']
        """
        return split_outside(self.name.partition("<")[2].rpartition(">")[0], ",")

    def read(self, text: str) -> Value:
        raise ValueError(f"{self.name} admits only the patterns * and null")

    def write(self, value: Value) -> str:
        raise ValueError(f"{self.name} admits only the patterns * and null")

    def normal(self, value: object) -> Value:
        raise ValueError(f"{self.name} admits only the patterns * and null")

    def ordinal(self, value: Value) -> int:
        return 0

    def value(self, ordinal: int) -> Value:
        raise ValueError(f"{self.name} admits only the patterns * and null")
