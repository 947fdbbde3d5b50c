"""The numeric types: integers and DECIMAL, which are discrete, FLOAT and DOUBLE, which are dense."""

# ruff: noqa: D102 – SqlType documents these methods

from __future__ import annotations

import math
import re
import struct
from decimal import Context, Decimal
from fractions import Fraction
from typing import ClassVar, TypeAlias

from xmlstream.dataclasses import dataclass, field
from xmlstream.punct_ns.sql_type import BLANKS, NAN, DiscreteType, SqlType, Value

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SPECIAL = {
    "nan": NAN,
    "inf": math.inf,
    "+inf": math.inf,
    "-inf": -math.inf,
    "infinity": math.inf,
    "+infinity": math.inf,
    "-infinity": -math.inf,
}
_PLAIN = 100  # digits up to which a whole number is exact without a limit
_EXACT = Context(prec=80)  # more digits than any DECIMAL has
FAR: int = 10**100
"""A number beyond the ends of every discrete type."""


def exact_number(text: str) -> Decimal:
    """Parses a number exactly; ValueError if the text is not one.

    >>> exact_number(" 17.50 ")
    Decimal('17.50')
    """
    tidy = text.strip(BLANKS)
    if not _NUMBER.fullmatch(tidy):
        raise ValueError(f"{text!r} is not a valid number")
    return Decimal(tidy)


def exactly(bound: object) -> int | Fraction:
    """Converts a numeric bound to an exact number; bounds beyond every type are limited to `FAR`.

    >>> exactly(17.5), exactly(Decimal("1e999999999")) > 10**90
    (Fraction(35, 2), True)
    """
    if type(bound) is int:
        return bound
    if isinstance(bound, bool) or not isinstance(bound, int | float | Decimal | Fraction):
        raise ValueError(f"{bound!r} is not a valid number")
    if isinstance(bound, Fraction):
        return bound
    exact = Decimal(bound)
    if exact.is_nan():
        raise ValueError("NaN is not a valid bound of this type")
    if not exact:
        return 0
    if exact.is_infinite() or exact.adjusted() > 100:
        return -FAR if exact < 0 else FAR
    if exact.adjusted() < -100:
        return Fraction(-1 if exact < 0 else 1, FAR)
    return Fraction(exact)


@dataclass(frozen=True, slots=True)
class IntegerType(DiscreteType):
    """TINYINT, SMALLINT, INT and BIGINT: two's complement integers of `bits` bits.

    >>> TINYINT = IntegerType("TINYINT", 8)
    >>> TINYINT.low, TINYINT.high, TINYINT.read(" +17"), TINYINT.place_of_text("17.5")
    (-128, 127, 17, Fraction(35, 2))
    """

    counted = True
    name: str = field()
    bits: int = field()

    @property
    def digits(self) -> tuple[int, int]:
        return len(str(self.high)), 0

    @property
    def free_digits(self) -> int:
        """The greatest number of digits for which every number is a value.

        >>> IntegerType("INT", 32).free_digits
        9
        """
        return self.digits[0] - 1

    @property
    def low(self) -> int:
        return -(1 << (self.bits - 1))

    @property
    def high(self) -> int:
        return (1 << (self.bits - 1)) - 1

    def read(self, text: str) -> int:
        tidy = text.strip(BLANKS)
        if not _INTEGER.fullmatch(tidy):
            raise ValueError(f"{text!r} is not a valid {self.name}")
        return self._bounded(int(tidy))

    def write(self, value: Value) -> str:
        return str(value)

    def normal(self, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{value!r} is not a valid {self.name}")
        return self._bounded(value)

    def _bounded(self, value: int) -> int:
        if not -(1 << (self.bits - 1)) <= value < 1 << (self.bits - 1):
            raise ValueError(f"{value} is beyond {self.name}")
        return value

    def ordinal(self, value: Value) -> int:
        assert isinstance(value, int)
        return value

    def value(self, ordinal: int) -> int:
        return ordinal

    def place(self, bound: object) -> int | Fraction:
        return exactly(bound)

    def place_of_text(self, text: str) -> int | Fraction:
        tidy = text.strip(BLANKS)
        plain = len(tidy) <= _PLAIN and _INTEGER.fullmatch(tidy)
        return int(tidy) if plain else exactly(exact_number(text))


@dataclass(frozen=True, slots=True)
class DecimalType(DiscreteType):
    """DECIMAL(precision, scale): neighbouring values differ by 10 to the power of minus scale.

    >>> price = DecimalType(5, 2)
    >>> price.high, price.read("1.5"), price.ordinal(price.read("1.5")), price.write(price.value(151))
    (Decimal('999.99'), Decimal('1.50'), 150, '1.51')
    """

    precision: int
    scale: int
    kind: ClassVar[str] = "DECIMAL"

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= 38 or not 0 <= self.scale <= self.precision:
            raise ValueError(f"{self.name} is not a type: 1 to 38 digits, scale within them")

    @property
    def name(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})"

    @property
    def digits(self) -> tuple[int, int]:
        return self.precision, self.scale

    @property
    def low(self) -> Decimal:
        return self.value(1 - 10**self.precision)

    @property
    def high(self) -> Decimal:
        return self.value(10**self.precision - 1)

    def read(self, text: str) -> Decimal:
        return self.normal(exact_number(text))

    def write(self, value: Value) -> str:
        return format(value, "f")

    def normal(self, value: object) -> Decimal:
        if isinstance(value, float):
            raise ValueError(f"{value!r} is not a valid {self.name}")
        place = self.place(value)
        if place.denominator != 1:
            raise ValueError(f"{value} has more than {self.scale} digits after the point")
        if abs(place) >= 10**self.precision:
            raise ValueError(f"{value} is beyond {self.name}")
        return self.value(int(place))

    def ordinal(self, value: Value) -> int:
        assert isinstance(value, Decimal)
        return int(value.scaleb(self.scale, _EXACT))

    def value(self, ordinal: int) -> Decimal:
        return Decimal(ordinal).scaleb(-self.scale, _EXACT)

    def place(self, bound: object) -> int | Fraction:
        return exactly(bound) * int(10**self.scale)

    def place_of_text(self, text: str) -> int | Fraction:
        return self.place(exact_number(text))


@dataclass(frozen=True, slots=True)
class FloatType(SqlType):
    """FLOAT (32 bits) and DOUBLE (64 bits): a text is parsed as the nearest value; NaN is the last value.

    >>> FLOAT = FloatType("FLOAT", 32)
    >>> FLOAT.read("0.1"), FLOAT.write(FLOAT.read("0.1")), FLOAT.read("-0"), FLOAT.high
    (0.10000000149011612, '0.1', 0.0, NAN)
    """

    low: ClassVar[float] = -math.inf
    high: ClassVar[float] = NAN

    name: str = field()
    bits: int = field()

    @property
    def significand(self) -> int:
        """The number of significant bits: integers with no more bits are represented exactly.

        >>> FloatType("FLOAT", 32).significand, FloatType("DOUBLE", 64).significand
        (24, 53)
        """
        return 53 if self.bits == 64 else 24

    def read(self, text: str) -> float:
        tidy = text.strip(BLANKS)
        special = _SPECIAL.get(tidy.lower())
        if special is not None:
            return special
        if not _NUMBER.fullmatch(tidy):
            raise ValueError(f"{text!r} is not a valid {self.name}")
        return self._nearest(float(tidy))

    def write(self, value: Value) -> str:
        assert isinstance(value, float)
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        if self.bits == 64:
            return repr(value)
        # The shortest text that a 32-bit parser reads as this value.
        return next(text for digits in range(1, 18) if self.read(text := repr(float(f"{value:.{digits}g}"))) == value)

    def normal(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{value!r} is not a valid {self.name}")
        try:
            return self._nearest(float(value))
        except OverflowError:
            raise ValueError(f"{value} is beyond {self.name}") from None

    def _nearest(self, value: float) -> float:
        if math.isnan(value):
            return NAN
        if self.bits == 32:
            try:
                value = struct.unpack("f", struct.pack("f", value))[0]
            except OverflowError:
                value = math.copysign(math.inf, value)
        return value + 0.0  # -0.0 is read as 0.0


NumericType: TypeAlias = IntegerType | DecimalType | FloatType
"""The types of numbers."""
