"""Domains: the values an attribute can have, given its type, its declared bounds and whether it may be null.

Sets of values are described by *cuts*. A cut lies between two neighbouring values: for a discrete type
it is the ordinal of the value above it; for a dense type it is `(value, 0)` below a value or `(value, 1)` above it.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, TypeAlias

from xmlstream.dataclasses import dataclass, field
from xmlstream.punct_ns.sql_type import BLANKS, NAN, DiscreteType, Greatest, ListedType, SqlType, Value
from xmlstream.punct_ns.type_names import TYPES, sql_type

__all__ = ["BLANKS", "NAN", "TYPES", "Cut", "Domain", "Value", "sql_type"]

Cut: TypeAlias = Any
"""A point between two neighbouring values: an ordinal, or (value, side). Cuts of one domain are ordered."""


class _Beyond(Greatest):
    """The cut above all strings, greater than any other cut."""

    __slots__ = ()
    name = "BEYOND"


BEYOND = _Beyond()

_DIGITS = {"FLOAT": 6, "DOUBLE": 15}
"""The decimal digits that each value of the type holds."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The domain of an attribute.

    `type` is Spark's SQL name. `low` and `high` are inclusive bounds, None where only the type limits the values
    (a bound at the type's own end becomes None, so that equal domains are equal). `listed` are all the values, None
    where they are not listed; `low` and `high` are then the first and the last. The other fields follow from these:
    the type as `sql`, what numbers the values (`numbered`; None for a dense type), the cuts below the first and above
    the last value, and `lone`, true for a single value.

    >>> minute = Domain("int", low=0, high=59)
    >>> minute.type, minute.discrete, minute.contains(60), minute.contains(None)
    ('INT', True, False, True)
    >>> sender = Domain("STRING", nullable=False, listed=("S3", "S1"))
    >>> sender.size, sender.low, sender.contains("S2"), sender.contains("S3")
    (2, 'S1', False, True)
    """

    sparse: ClassVar = ("listed",)

    type: str
    nullable: bool = True
    low: Value | None = None
    high: Value | None = None
    listed: tuple[Value, ...] | None = None
    sql: SqlType = field(init=False, repr=False, compare=False)
    numbered: DiscreteType | None = field(init=False, repr=False, compare=False)
    bottom: Cut = field(init=False, repr=False, compare=False)
    top: Cut = field(init=False, repr=False, compare=False)
    lone: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sql = sql_type(self.type)
        low = None if self.low is None else sql.normal(self.low)
        high = None if self.high is None else sql.normal(self.high)
        known: dict[str, object] = {"type": sql.name, "sql": sql}
        numbered = sql if isinstance(sql, DiscreteType) else None
        if self.listed is not None:
            values = tuple(sorted({sql.normal(value) for value in self.listed}))
            if not values:
                raise ValueError("no value is listed")
            numbered, low, high = ListedType(sql, values), values[0], values[-1]
            known |= {"listed": values, "low": low, "high": high}
        else:
            known["low"] = None if low == sql.low else low
            known["high"] = None if high == sql.high else high
        known["numbered"] = numbered
        first, last = (sql.low if low is None else low), (sql.high if high is None else high)
        bottom: Cut = 0
        top: Cut = 1
        second: Cut = 1
        if numbered is None:
            bottom, top, second = (first, 0), (BEYOND if last is None else _above(last)), _above(first)
        elif first is not None and last is not None:
            bottom, top = numbered.ordinal(first), numbered.ordinal(last) + 1
            second = bottom + 1
        if not bottom < top:
            raise ValueError(f"no value lies between {self.low} and {self.high}")
        for name, value in {**known, "bottom": bottom, "top": top, "lone": second == top}.items():
            object.__setattr__(self, name, value)

    @property
    def discrete(self) -> bool:
        """Whether every value has a next one.

        >>> Domain("DATE").discrete, Domain("DOUBLE").discrete
        (True, False)
        """
        return self.numbered is not None

    @property
    def counted(self) -> bool:
        """Whether ranges contain few enough values to be closed one by one: integers, dates, booleans.

        Timestamps are discrete, too, but a second has a million of them, and no source closes each one.

        >>> Domain("BIGINT").counted, Domain("DATE").counted, Domain("TIMESTAMP").counted, Domain("STRING").counted
        (True, True, False, False)
        """
        return self.sql.counted if self.numbered is None else self.numbered.counted

    @property
    def opaque(self) -> bool:
        """Whether patterns can only distinguish null from not null.

        >>> Domain("ARRAY<INT>").opaque
        True
        """
        return self.sql.opaque

    @property
    def size(self) -> int | None:
        """The number of values; None for a dense type.

        >>> Domain("INT", low=0, high=59).size
        60
        """
        return self.top - self.bottom if self.discrete else None

    @property
    def vast(self) -> bool:
        """Whether it has more values than a source closes one after the other, until all are closed.

        A day has 86,400 seconds.

        >>> Domain("INT").vast, Domain("INT", low=0, high=59).vast, Domain("STRING").vast
        (True, False, True)
        """
        return self.size is None or self.size > 100_000

    def read(self, text: str) -> Value:
        """Parses a text into a value; ValueError with the reason. Surrounding blanks only count for STRING.

        >>> Domain("INT").read(" 17 ")
        17
        """
        return self.sql.read(text)

    def write(self, value: Value) -> str:
        """Writes a canonical value as text; `read` parses it back.

        >>> Domain("TIMESTAMP").write(Domain("TIMESTAMP").read("2003-05-15 17:20+02:00"))
        '2003-05-15T15:20:00Z'
        """
        return self.sql.write(value)

    def shown(self, value: object) -> str:
        """Writes a value, or null, for people: of a DOUBLE or FLOAT without the last digits, which are inexact.

        >>> Domain("DOUBLE").shown(83525.11000000002), Domain("INT").shown(None)
        ('83525.11', 'null')
        """
        if value is None:
            return "null"
        if self.opaque:
            return str(value)
        exact = self.normal(value)
        if isinstance(exact, float) and math.isfinite(exact):
            short = f"{exact:.{_DIGITS.get(self.type, 17)}g}"
            return short if float(short) != exact else self.write(exact)
        return self.write(exact)

    def normal(self, value: object) -> Value:
        """Converts a value to its canonical form; ValueError if it is not of the type. Ignores the declared bounds.

        >>> Domain("DECIMAL(5,2)").normal(3), Domain("DOUBLE").normal(-0.0)
        (Decimal('3.00'), 0.0)
        """
        return self.sql.normal(value)

    def contains(self, value: object) -> bool:
        """Whether a value, or null (None), is in the domain.

        >>> Domain("INT", nullable=False).contains(None), Domain("INT").contains(True)
        (False, False)
        """
        if value is None:
            return self.nullable
        if self.opaque:
            return True
        try:
            own = self.normal(value)
            cut = self.cut(own, after=False) if self.numbered is None else self.numbered.ordinal(own)
        except ValueError:
            return False
        return bool(self.bottom <= cut < self.top)

    def cut(self, bound: object, *, after: bool) -> Cut:
        """Returns the cut below a value, or above it; a bound between two values lies on the cut between them.

        >>> Domain("INT").cut(17, after=True), Domain("INT").cut(17.5, after=False)
        (18, 18)
        """
        if self.numbered is not None:
            place = self.numbered.place(bound)
            return math.floor(place) + 1 if after else math.ceil(place)
        value = self.sql.normal(bound)
        return _above(value) if after else (value, 0)

    def cut_of_text(self, text: str, *, after: bool) -> Cut:
        """Like `cut`, for a bound given as text.

        >>> Domain("INT").cut_of_text("17.5", after=True)
        18
        """
        if self.numbered is not None:
            place = self.numbered.place_of_text(text)
            return math.floor(place) + 1 if after else math.ceil(place)
        value = self.sql.read(text)
        return _above(value) if after else (value, 0)

    def bound(self, cut: Cut, *, above: bool) -> tuple[Value, bool]:
        """Returns the value next to a cut, above or below it, and whether it lies on that side of the cut itself.

        >>> Domain("INT").bound(18, above=False), Domain("STRING").bound(("b", 1), above=True)
        ((17, True), ('b', False))
        """
        if self.numbered is not None:
            return self.numbered.value(cut if above else cut - 1), True
        value, side = cut
        if value == NAN and side == 0 and not above:
            return math.inf, True
        return value, (side == 0) == above


def _above(value: Value | None) -> Cut:
    """Returns the cut above a dense value; the cut above infinity is that below NaN, since nothing lies between."""
    return (NAN, 0) if value == math.inf else (value, 1)
