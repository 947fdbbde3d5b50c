"""Lifespans of punctuations (Li et al. 2006, §5.1): for how long a punctuation that is not permanent holds.

Ids are used again: a sequence number after some hours, a session's name after a year. So a punctuation may have a
lifespan: a duration, counted from the recorded time of its slice, or a bound of an attribute
(`dateTime < 2026-01-01T00:00:00`): the punctuation holds until its stream has closed all values below the bound.
When the lifespan ends, the same key may occur again. A punctuation derived from several others has their shortest
lifespan: it ends as soon as one of them ends.

When a punctuation arrives, its duration becomes an end time, and its bound gets the name of the stream (`begun`).
Lifespans are written, parsed and compared: one punctuation absorbs another only if it ends no sooner.

Durations follow ISO 8601: `PT1H`, `P1DT12H`, `P1M`, added to a moment or subtracted from it. Years and months follow
the calendar, as in XML Schema: a month after 31 January is the last day of February.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from xmlstream.dataclasses import dataclass, replace
from xmlstream.punct_ns.domain import BLANKS, Cut, Domain
from xmlstream.punct_ns.errors import NotationError, XmlStreamError

if TYPE_CHECKING:
    from xmlstream.punct_ns.schema import Schema


_FORM = re.compile(
    r"P(?=.)(?:(?P<years>\d+)Y)?(?:(?P<months>\d+)M)?(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?=.)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,6})?)S)?)?",
    re.ASCII,
)
LONGEST = timedelta(days=3_650_000)
"""A span that is longer than the calendar."""

_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)", re.ASCII)
UNITS = {
    **dict.fromkeys(("microsecond", "microseconds"), timedelta(microseconds=1)),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), timedelta(milliseconds=1)),
    **dict.fromkeys(("s", "sec", "second", "seconds"), timedelta(seconds=1)),
    **dict.fromkeys(("m", "min", "minute", "minutes"), timedelta(minutes=1)),
    **dict.fromkeys(("h", "hour", "hours"), timedelta(hours=1)),
    **dict.fromkeys(("d", "day", "days"), timedelta(days=1)),
    **dict.fromkeys(("w", "week", "weeks"), timedelta(weeks=1)),
}
"""The units of spans of time, by their names and abbreviations."""


@dataclass(frozen=True, slots=True)
class Duration:
    """A span of time: months, whose length depends on the calendar, and a span of fixed length.

    >>> duration = Duration.parse("P1M")
    >>> duration.after(datetime(2026, 1, 31, tzinfo=UTC)).date().isoformat(), str(duration)
    ('2026-02-28', 'P1M')
    """

    months: int = 0
    span: timedelta = timedelta()

    @staticmethod
    def parse(text: str) -> Duration:
        """Parses an ISO 8601 duration.

        Raises:
            ValueError: The text is not a duration.

        >>> str(Duration.parse("P1DT90M"))
        'P1DT1H30M'
        """
        found = _FORM.fullmatch(text)
        if found is None:
            raise ValueError(f"'{text}' is not a valid duration of ISO 8601, such as PT1H or P7D")
        part = {name: int(each or 0) for name, each in found.groupdict().items() if name != "seconds"}
        whole, _, fraction = (found["seconds"] or "0").partition(".")
        try:
            days = part["weeks"] * 7 + part["days"]
            span = timedelta(days=days, hours=part["hours"], minutes=part["minutes"], seconds=int(whole))
            span += timedelta(microseconds=int(fraction.ljust(6, "0")))
        except OverflowError:
            span = LONGEST
        return Duration(part["years"] * 12 + part["months"], min(span, LONGEST))

    @staticmethod
    def of_words(text: str) -> Duration | None:
        """The duration of numbers with units, or of ISO 8601; None for any other text.

        >>> texts = ("5m", "5 minutes", "1 hour 30 min", "INTERVAL '1.5' DAYS", "pt5m", "5", "5 apples", "")
        >>> [str(Duration.of_words(text)) for text in texts]
        ['PT5M', 'PT5M', 'PT1H30M', 'P1DT12H', 'PT5M', 'None', 'None', 'None']
        """
        if _FORM.fullmatch(text.strip().upper()):
            return Duration.parse(text.strip().upper())
        words = re.sub(r"^interval\b", "", text.strip().lower()).replace("'", "")
        parts = _PART.findall(words)
        if not parts or _PART.sub("", words).strip() or any(unit not in UNITS for _, unit in parts):
            return None
        try:
            return Duration(span=min(sum((float(n) * UNITS[unit] for n, unit in parts), timedelta()), LONGEST))
        except OverflowError:
            return Duration(span=LONGEST)

    def after(self, moment: datetime) -> datetime:
        """Returns the moment at the end of the duration that starts at a moment; limited to the end of the calendar.

        >>> Duration.parse("PT1H").after(datetime(2026, 1, 1, 23, tzinfo=UTC)).isoformat()
        '2026-01-02T00:00:00+00:00'
        """
        try:
            return _months_on(moment, self.months) + self.span
        except (OverflowError, ValueError):
            return datetime.max.replace(tzinfo=UTC)

    def before(self, moment: datetime) -> datetime:
        """Returns the moment at the start of the duration that ends at a moment; limited to the start of the calendar.

        >>> Duration.parse("P1M").before(datetime(2026, 3, 31, tzinfo=UTC)).date().isoformat()
        '2026-02-28'
        """
        try:
            return _months_on(moment, -self.months) - self.span
        except (OverflowError, ValueError):
            return datetime.min.replace(tzinfo=UTC)

    def __str__(self) -> str:
        years, months = divmod(self.months, 12)
        minutes, seconds = divmod(self.span.seconds, 60)
        hours, minutes = divmod(minutes, 60)
        micros = f".{self.span.microseconds:06}".rstrip("0") if self.span.microseconds else ""
        date = _parts((years, "Y"), (months, "M"), (self.span.days, "D"))
        time = _parts((hours, "H"), (minutes, "M")) + (f"{seconds}{micros}S" if seconds or micros else "")
        return f"P{date}{'T' if time else ''}{time}" if date or time else "PT0S"


def _parts(*parts: tuple[int, str]) -> str:
    return "".join(f"{number}{unit}" for number, unit in parts if number)


def _months_on(moment: datetime, months: int) -> datetime:
    if not months:
        return moment
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    return moment.replace(year=year, month=month + 1, day=min(moment.day, monthrange(year, month + 1)[1]))


_VALUE = r'"(?:[^"]|"")*+"'
_QUOTED = rf"{_VALUE}|`(?:[^`]|``)*+`"
_BOUND = re.compile(
    rf"""\s*(?: `(?P<quoted>(?:[^`]|``)+)` | (?P<attribute>[^\s<>=`"]+) )
        \s*(?P<how><=?)\s*(?P<value> {_VALUE} | [^\s<>"`=][^<>"`]*? )\s*""",
    re.VERBOSE,
)
_AND = re.compile(rf'((?:{_QUOTED}|(?!\s+and\s)[^"`])*+)(?:\s+and\s+|\Z)')
_NAME = re.compile(r"[^\s<>=`\"]+")
_WORD = re.compile(rf'\s*(?P<word>for|until|while)\s+(?P<text>(?:{_QUOTED}|(?!\s(?:for|until|while)\s)[^"`])++)')
_BEHIND = re.compile(rf">(?P<lifespan>\s*(?:for|until|while)\s(?:{_QUOTED}|[^\"`>])*+)\Z")
_PLAIN = re.compile(r'(?s:(?!(?:.*\s)?(?:and|for|until|while)(?:\s|\Z)))[^\s<>"`=](?:[^<>"`]*[^\s<>"`])?')


@dataclass(frozen=True)
class Bound:
    """The values below a value of a stream's attribute: the lifespan ends once the stream has closed all of them.

    Attributes:
        value: The bound, in the notation.
        closed: Whether the bound itself is one of the values.
        stream: The stream's name; empty where the context determines it.
    """

    attribute: str
    domain: Domain
    value: str
    closed: bool = False
    stream: str = ""

    @cached_property
    def cut(self) -> Cut:
        """The cut that separates the values below the bound from the others."""
        return self.domain.cut_of_text(self.value, after=self.closed)

    def is_within(self, other: Bound) -> bool:
        """Whether it ends no later than another bound of the same attribute."""
        return (self.stream, self.attribute) == (other.stream, other.attribute) and bool(self.cut <= other.cut)

    @staticmethod
    def read(text: str, schema: Schema) -> Bound | None:
        """Parses a bound; None if the text is not one.

        Raises:
            ValueError: The attribute's type has no order, or the value is not of its type.
        """
        found = _BOUND.fullmatch(text)
        if found is None:
            return None
        attribute = schema.attribute(found["attribute"] or found["quoted"].replace("``", "`"))
        domain = attribute.domain
        if domain.opaque:
            raise ValueError(f"{attribute.name} is {domain.type}, and nothing closes what is below a value of it")
        value = found["value"]
        value = value[1:-1].replace('""', '"') if value[0] == '"' else value
        Domain(domain.type).cut_of_text(value, after=False)
        return Bound(attribute.name, Domain(domain.type), value, found["how"] == "<=")

    def __str__(self) -> str:
        name = self.attribute if _NAME.fullmatch(self.attribute) else f"`{self.attribute.replace('`', '``')}`"
        value = self.value if _PLAIN.fullmatch(self.value) else '"' + self.value.replace('"', '""') + '"'
        return f"{name} {'<=' if self.closed else '<'} {value}"


@dataclass(frozen=True)
class Lifespan:
    """How long a punctuation holds: until the earliest of its ends.

    Attributes:
        duration: Counted from the punctuation's arrival; set only before it arrives.
        until: The end time, computed from the recorded time of the slice.
        bounds: The values that streams have to close.

    >>> from xmlstream.punct_ns.schema import Schema
    >>> print(Lifespan.read("dateTime < 2026-01-01 00:00:00", Schema.parse("id INT, dateTime TIMESTAMP")))
    while dateTime < 2026-01-01 00:00:00
    """

    duration: Duration | None = None
    until: datetime | None = None
    bounds: tuple[Bound, ...] = ()

    @staticmethod
    def read(text: str, schema: Schema) -> Lifespan:
        """Parses the attribute `lifespan` of a punctuation's element: a duration, a bound, or both joined by `and`.

        Raises:
            NotationError: The text is not a lifespan.
        """
        duration, bounds = None, list[Bound]()
        tidy = text.strip(BLANKS)
        try:
            for part in _AND.findall(tidy)[:-1] or [tidy]:
                if (bound := Bound.read(part, schema)) is not None:
                    bounds.append(bound)
                    continue
                if "<" in part or ">" in part:
                    raise ValueError(f"'{part}' is not a valid bound, such as hour < 17")
                if duration is not None:
                    raise ValueError("it has two durations")
                duration = Duration.parse(part)
        except (ValueError, XmlStreamError) as error:
            raise NotationError(f"the lifespan '{text}' cannot be read: {getattr(error, 'what', error)}") from None
        return Lifespan(duration, None, tuple(bounds))

    @staticmethod
    def parse(text: str, schema: Schema) -> Lifespan:
        """Parses the notation of a lifespan, as it follows a punctuation's patterns; it does not name the stream.

        Raises:
            NotationError: The text is not a lifespan.

        >>> from xmlstream.punct_ns.schema import Schema
        >>> str(Lifespan.parse("for PT1H while id <= 3", Schema.parse("id INT")))
        'for PT1H while id <= 3'
        """
        duration, until, bounds, at = None, None, list[Bound](), 0
        try:
            while at < len(text.rstrip(BLANKS)):
                found = _WORD.match(text, at)
                if found is None:
                    raise ValueError("expected for, until or while")
                at, argument = found.end(), found["text"].strip(BLANKS)
                match found["word"]:
                    case "for" if duration is None:
                        duration = Duration.parse(argument)
                    case "until" if until is None:
                        until = datetime.fromisoformat(argument)
                    case "while" if (bound := Bound.read(argument, schema)) is not None:
                        bounds.append(bound)
                    case "while":
                        raise ValueError(f"'{argument}' is not a valid bound, such as hour < 17")
                    case word:
                        raise ValueError(f"'{word}' occurs twice")
        except (ValueError, XmlStreamError) as error:
            raise NotationError(
                f"the lifespan '{text.strip()}' cannot be read: {getattr(error, 'what', error)}"
            ) from None
        return Lifespan(duration, until, tuple(bounds))

    def begun(self, now: datetime, stream: str) -> Lifespan:
        """Returns the lifespan of a punctuation that arrives now from a stream."""
        until = None if self.duration is None else self.duration.after(now)
        return Lifespan(None, until, tuple(replace(bound, stream=stream) for bound in self.bounds))

    def is_over(self, now: datetime, has_closed: Callable[[Bound], bool]) -> bool:
        """Whether one of its ends has been reached."""
        return (self.until is not None and self.until <= now) or any(map(has_closed, self.bounds))

    def written(self, now: datetime, names: Mapping[tuple[str, str], str]) -> str:
        """Formats the remaining lifespan as the text of the attribute `lifespan`.

        Args:
            now: The time of writing.
            names: The names that attributes of streams have in the output; without a name a bound ends immediately.
        """
        known = [names.get((bound.stream, bound.attribute)) for bound in self.bounds]
        if None in known:
            return str(Duration())
        bounds = [str(replace(b, attribute=name)) for b, name in zip(self.bounds, known, strict=True) if name]
        left = [] if self.until is None else [str(Duration(span=max(self.until - now, timedelta())))]
        return " and ".join([*left, *bounds])

    def __str__(self) -> str:
        parts = [] if self.duration is None else [f"for {self.duration}"]
        parts += [] if self.until is None else [f"until {self.until.isoformat()}"]
        return " ".join([*parts, *(f"while {bound}" for bound in self.bounds)])

    def record(self) -> list[object]:
        """Returns a JSON representation; `restore` reads it back."""
        bounds = [
            [b.attribute, b.domain.type, b.value, b.closed, b.stream] for b in self.bounds
        ]  # the type of a domain is enough: the bound need not lie within the declared values
        return [None if self.until is None else self.until.isoformat(), bounds]

    @staticmethod
    def restore(record: list[object]) -> Lifespan:
        """Reads a lifespan back from `record`."""
        until, bounds = record
        assert isinstance(bounds, list)
        made = (Bound(a, Domain(kind), value, closed, stream) for a, kind, value, closed, stream in bounds)
        return Lifespan(None, None if until is None else datetime.fromisoformat(str(until)), tuple(made))


def lives_as_long(one: Lifespan | None, other: Lifespan | None) -> bool:
    """Whether the first lifespan ends no sooner than the second; None never ends. False where that is unknown.

    >>> from datetime import UTC
    >>> day, week = (Lifespan(until=datetime(2026, 1, end, tzinfo=UTC)) for end in (2, 8))
    >>> lives_as_long(week, day), lives_as_long(day, week), lives_as_long(None, week), lives_as_long(week, None)
    (True, False, True, False)
    """
    if one is None or one == other:
        return True
    if other is None:
        return False
    if one.until is not None and (other.until is None or other.until > one.until):
        return False
    return all(any(theirs.is_within(mine) for theirs in other.bounds) for mine in one.bounds)


def shortest(lifespans: Iterable[Lifespan | None]) -> Lifespan | None:
    """Returns the lifespan of a punctuation derived from several others: it ends with the first of them.

    >>> from datetime import UTC
    >>> day = Lifespan(until=datetime(2026, 1, 2, tzinfo=UTC))
    >>> shortest([None, day]) == day, shortest([None])
    (True, None)
    """
    given = [lifespan for lifespan in lifespans if lifespan is not None]
    if not given:
        return None
    ends = [lifespan.until for lifespan in given if lifespan.until is not None]
    bounds: dict[tuple[str, str], Bound] = {}
    for bound in (bound for lifespan in given for bound in lifespan.bounds):
        key = (bound.stream, bound.attribute)
        if key not in bounds or bound.is_within(bounds[key]):
            bounds[key] = bound
    return Lifespan(None, min(ends, default=None), tuple(bounds[key] for key in sorted(bounds)))


def split_lifespan(text: str) -> tuple[str, str]:
    """Splits a punctuation's notation into its patterns and its lifespan; the lifespan is empty if there is none.

    >>> split_lifespan('<"x> for y", 5> for PT1H')
    ('<"x> for y", 5>', 'for PT1H')
    """
    if text.endswith(">"):
        return text, ""
    found = _BEHIND.search(text)
    return (text, "") if found is None else (text[: found.start() + 1], found["lifespan"].strip(BLANKS))
