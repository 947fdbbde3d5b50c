"""Spark's SQL types: their names, their values, the order of these, and the text of a value.

A type is *discrete* when every value but the last has a next one; ordinals number its values, so that
neighbours are known. The other ordered types (STRING, FLOAT, DOUBLE) are dense.
Types without an order known to the algebra are opaque: it only distinguishes null from not null. Arrays, maps and
structures are, and know the types inside them, and where nulls may be among these.

A type is an immutable value; `type_names.sql_type` reads it from a text, and its `name` is that text again.
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
from typing import ClassVar, NamedTuple

from xmlstream.dataclasses import dataclass, field

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


INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
FLOATING = ("FLOAT", "DOUBLE")
NUMBERS = (*INTEGERS, *FLOATING, "DECIMAL")
MOMENTS = ("TIMESTAMP", "TIMESTAMP_NTZ")
TEMPORAL = ("DATE", *MOMENTS)
NESTED = ("ARRAY", "MAP", "STRUCT")
"""The kinds of types that have something in common (`SqlType.kind`)."""


class SqlType(ABC):
    """One SQL type: its name; its values' order, lexical forms and canonical Python values; the types inside it."""

    __slots__ = ()
    discrete: ClassVar[bool] = False
    counted: ClassVar[bool] = False
    opaque: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """Spark's name of the type, without aliases."""

    @property
    def kind(self) -> str:
        """The name without digits and inner types."""
        return self.name

    @property
    def digits(self) -> tuple[int, int]:
        """The precision and the scale of an exact number; zeros for other types."""
        return 0, 0

    @property
    def element(self) -> SqlType | None:
        """The type of an array's elements; None for other types."""
        return None

    @property
    def has_nulls(self) -> bool:
        """Whether an array's elements may be null."""
        return True

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of a structure; empty for other types."""
        return ()

    def same(self, other: SqlType) -> bool:
        """Whether both have the same values, whatever may be null inside."""
        return self.name == other.name

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

    name: ClassVar[str] = "STRING"
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

    name: ClassVar[str] = "BOOLEAN"
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
    def name(self) -> str:
        return self.of.name

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


class OpaqueType(DiscreteType):
    """A type without an order: patterns only distinguish null from not null; one stand-in represents all values.

    >>> NamedType("BINARY").read("x")
    Traceback (most recent call last):
    ...
    ValueError: BINARY admits only the patterns * and null
    """

    __slots__ = ()
    opaque = True
    low: ClassVar[None] = None
    high: ClassVar[None] = None

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


@dataclass(frozen=True, slots=True)
class NamedType(OpaqueType):
    """A type that is known by its name alone, such as BINARY, VOID or CHAR(5)."""

    name: str = field()

    @property
    def kind(self) -> str:
        return re.split("[(<]", self.name, maxsplit=1)[0].strip().upper()


@dataclass(frozen=True, slots=True)
class ArrayType(OpaqueType):
    """The arrays of elements of a type.

    >>> ArrayType(StringType()).name, ArrayType(StringType()).kind
    ('ARRAY<STRING>', 'ARRAY')
    """

    element: SqlType = field()
    has_nulls: bool = True
    name: str = field(init=False, repr=False, compare=False)
    kind: ClassVar[str] = "ARRAY"

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"ARRAY<{self.element.name}>")


@dataclass(frozen=True, slots=True)
class MapType(OpaqueType):
    """The maps from keys of a type to values of a type.

    >>> MapType(StringType(), NamedType("BINARY")).name
    'MAP<STRING,BINARY>'
    """

    key: SqlType
    to: SqlType
    name: str = field(init=False, repr=False, compare=False)
    kind: ClassVar[str] = "MAP"

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"MAP<{self.key.name},{self.to.name}>")


class Field(NamedTuple):
    """A field of a structure; `remark` is what follows its type in its declaration, such as NOT NULL, as written."""

    name: str
    type: SqlType
    nullable: bool = True
    remark: str = ""

    def written(self) -> str:
        """The field as a name of a type has it.

        >>> Field("a", StringType()).written(), Field("b`c", StringType(), nullable=False, remark="not null").written()
        ('a:STRING', '`b``c`:STRING not null')
        """
        name = self.name if re.fullmatch(r"\w+", self.name) else f"`{self.name.replace('`', '``')}`"
        return f"{name}:{self.type.name}{' ' * bool(self.remark)}{self.remark}"


@dataclass(frozen=True, slots=True)
class StructType(OpaqueType):
    """The structures with these fields.

    >>> StructType((Field("a", StringType(), nullable=False), Field("b c", ArrayType(StringType())))).name
    'STRUCT<a:STRING,`b c`:ARRAY<STRING>>'
    """

    fields: tuple[Field, ...] = field()
    name: str = field(init=False, repr=False, compare=False)
    kind: ClassVar[str] = "STRUCT"

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"STRUCT<{','.join(each.written() for each in self.fields)}>")
