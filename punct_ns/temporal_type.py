"""DATE and the two timestamps: discrete, by days and by microseconds."""

# ruff: noqa: D102 – SqlType documents these methods

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import ClassVar, TypeAlias

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.sql_type import BLANKS, DiscreteType, Value

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_MOMENT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(Z|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII
)
_EPOCH = datetime(1970, 1, 1)
_EPOCH_OF_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY = 86_400_000_000  # microseconds


@dataclass(frozen=True, slots=True)
class DateType(DiscreteType):
    """DATE, written `2003-05-15`; years 1 to 9999.

    >>> DateType().read("2003-05-15"), DateType().place_of_text("0001-01-01T12:00")
    (datetime.date(2003, 5, 15), Fraction(3, 2))
    """

    name: ClassVar[str] = "DATE"
    counted = True
    low: ClassVar[date] = date.min
    high: ClassVar[date] = date.max

    def read(self, text: str) -> date:
        parts = _DATE.fullmatch(text.strip(BLANKS))
        if not parts:
            raise ValueError(f"{text!r} is not a valid DATE (2003-05-15)")
        try:
            return date(int(parts[1]), int(parts[2]), int(parts[3]))
        except ValueError as error:
            raise ValueError(f"{text!r} is not a valid DATE: {error}") from None

    def write(self, value: Value) -> str:
        assert isinstance(value, date)
        return value.isoformat()

    def normal(self, value: object) -> date:
        if isinstance(value, datetime) or not isinstance(value, date):
            raise ValueError(f"{value!r} is not a valid DATE")
        return value

    def ordinal(self, value: Value) -> int:
        assert isinstance(value, date)
        return value.toordinal()

    def value(self, ordinal: int) -> date:
        return date.fromordinal(ordinal)

    def place_of_text(self, text: str) -> int | Fraction:
        if _DATE.fullmatch(text.strip(BLANKS)):
            return self.read(text).toordinal()
        # A time of day lies between two dates.
        micros, _ = _microseconds(text)
        return Fraction(micros) / _DAY + _EPOCH.toordinal()


@dataclass(frozen=True, slots=True)
class TimestampType(DiscreteType):
    """TIMESTAMP (a moment in UTC; a text without a zone is in UTC) or TIMESTAMP_NTZ (a local date and time).

    Written `2003-05-15T17:20:00.5Z`, without the `Z` for TIMESTAMP_NTZ; years 1 to 9999.

    >>> moment = TimestampType(zoned=True).read("1970-01-01 01:00:00.5+01:00")
    >>> TimestampType(zoned=True).ordinal(moment), TimestampType(zoned=True).write(moment)
    (500000, '1970-01-01T00:00:00.5Z')
    """

    zoned: bool

    @property
    def name(self) -> str:
        return "TIMESTAMP" if self.zoned else "TIMESTAMP_NTZ"

    @property
    def low(self) -> datetime:
        return datetime.min.replace(tzinfo=UTC if self.zoned else None)

    @property
    def high(self) -> datetime:
        return datetime.max.replace(tzinfo=UTC if self.zoned else None)

    def read(self, text: str) -> datetime:
        place = self.place_of_text(text)
        if place.denominator != 1:
            raise ValueError(f"{text!r} has more than six digits of a second")
        try:
            return self.value(int(place))
        except OverflowError:
            raise ValueError(f"{text!r} is beyond the years 1 to 9999") from None

    def write(self, value: Value) -> str:
        assert isinstance(value, datetime)
        text = value.replace(tzinfo=None).isoformat()
        if "." in text:
            text = text.rstrip("0")
        return text + "Z" if self.zoned else text

    def normal(self, value: object) -> datetime:
        if not isinstance(value, datetime):
            raise ValueError(f"{value!r} is not a valid timestamp")
        if (value.tzinfo is not None) != self.zoned:
            raise ValueError(f"{value!r} {'lacks' if self.zoned else 'has'} a time zone")
        try:
            return value.astimezone(UTC) if self.zoned else value
        except OverflowError:
            raise ValueError(f"{value!r} is beyond the years 1 to 9999") from None

    def ordinal(self, value: Value) -> int:
        assert isinstance(value, datetime)
        since = value - (_EPOCH_OF_UTC if self.zoned else _EPOCH)
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds

    def value(self, ordinal: int) -> datetime:
        return (_EPOCH_OF_UTC if self.zoned else _EPOCH) + timedelta(0, 0, ordinal)

    def place_of_text(self, text: str) -> int | Fraction:
        micros, zoned = _microseconds(text)
        if zoned and not self.zoned:
            raise ValueError(f"{text!r} has a time zone, TIMESTAMP_NTZ has none")
        return micros


def _microseconds(text: str) -> tuple[int | Fraction, bool]:
    """Returns the exact microseconds since 1970, and whether the text names a time zone."""
    parts = _MOMENT.fullmatch(text.strip(BLANKS))
    if not parts:
        raise ValueError(f"{text!r} is not a valid timestamp (2003-05-15T17:20:00Z)")
    year, month, day, hour, minute, second, fraction, zone = parts.groups()
    try:
        moment = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0))
    except ValueError as error:
        raise ValueError(f"{text!r} is not a valid timestamp: {error}") from None
    micros: int | Fraction = (moment - _EPOCH) // _MICROSECOND
    if fraction:
        micros += Fraction(int(fraction), 10 ** len(fraction)) * 1_000_000
    if zone and zone != "Z":
        hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
        if hours > 18 or minutes > 59:
            raise ValueError(f"{zone!r} in {text!r} is not a valid time zone")
        offset = (hours * 60 + minutes) * 60_000_000
        micros = micros - offset if zone[0] == "+" else micros + offset
    return micros, zone is not None


TemporalType: TypeAlias = DateType | TimestampType
"""The types of days and moments."""
