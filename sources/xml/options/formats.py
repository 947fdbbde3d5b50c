"""Formats of texts: of dates, timestamps and numbers in documents, and of the values of options.

A parser of an option's text raises a UsageError that names the option if the text is invalid.

>>> size("maxBytesPerSlice", "64m"), count("maxFilesPerSlice", "3"), flag("follow", "TRUE")
(67108864, 3, True)
>>> name_list("columns", "a, `b, c`"), choice("fail", "drop")("ungrammatical", "Drop")
(('a', 'b, c'), 'drop')
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from zoneinfo import available_timezones

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import UsageError, did_you_mean
from xmlstream.punct_ns.lifespan import Duration
from xmlstream.punct_ns.schema import split_name
from xmlstream.punct_ns.time_zones import full_zone, is_always_utc
from xmlstream.punct_ns.type_names import split_outside
from xmlstream.sources.xml.options.locales import months

if TYPE_CHECKING:
    import pyarrow as pa


_FIELDS = {
    "yyyy": ("year", r"\d{4}"),
    "MM": ("month", r"\d{2}"),
    "MMM": ("month", "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"),
    "dd": ("day", r"\d{2}"),
    "d": ("day", r"\d{1,2}"),
    "EEE": ("", "Mon|Tue|Wed|Thu|Fri|Sat|Sun"),
    "EEEE": ("", "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"),
    "HH": ("hour", r"\d{2}"),
    "mm": ("minute", r"\d{2}"),
    "ss": ("second", r"\d{2}"),
    "XXX": ("zone", r"Z|[+-]\d{2}:\d{2}"),
    "XX": ("zone", r"Z|[+-]\d{4}"),
    "Z": ("zone", r"[+-]\d{4}|GMT|UTC?"),
    "z": ("zone", r"[+-]\d{4}|GMT|UTC?|Z|[ECMP][SD]T"),
}
_OF_DAYS = _FIELDS | {
    "HH": ("hour", r"(?:[01]\d|2[0-3])"),
    "mm": ("minute", r"[0-5]\d"),
    "ss": ("second", r"[0-5]\d"),
    "XXX": ("zone", r"Z|[+-](?:0\d|1[0-8]):[0-5]\d"),
    "XX": ("zone", r"Z|[+-](?:0\d|1[0-8])[0-5]\d"),
}
"""The same for dates, whose time and zone are not kept, so that no type checks them."""

_MONTHS = {f"-{name}-": f"-{number:02}-" for number, name in enumerate(_FIELDS["MMM"][1].split("|"), 1)}
_ZONES = {"GMT": "Z", "UTC": "Z", "UT": "Z"} | {
    f"{zone}{kind}T": f"-{hours + (kind == 'S'):02}00"
    for zone, hours in zip("ECMP", range(4, 8), strict=True)
    for kind in "SD"
}
"""The time zones of RFC 822, all in North America."""

_TOKEN = re.compile(r"'((?:[^']|'')*)'|\[X+\]|([A-Za-z])\2*|[^A-Za-z']")


@dataclass(frozen=True, slots=True)
class IsoRewriting:
    """Rewrites texts of one pattern to ISO 8601; other texts get a suffix, so that no type can parse them."""

    regex: str
    iso: str
    pattern: str
    has_names: bool = False
    locale: str | None = None
    full: bool = False

    @staticmethod
    @lru_cache
    def of(pattern: str, *, days: bool = False, locale: str | None = None) -> IsoRewriting:
        """Creates a rewriting from a pattern in Java's DateTimeFormatter.

        Its letters are yyyy MM MMM MMMM dd d EEE EEEE HH mm ss S… XXX Z z. Names of days and months are English, or of
        the locale, short ones with or without a point. `Z` is an offset as in Java, or GMT; `z` is any time zone of RFC
        822. `[XXX]` is a zone that may be absent. With `days` only the date is kept, as it is written.

        Raises:
            UsageError: The pattern has an unknown letter, or lacks year, month or day.

        >>> import pyarrow as pa
        >>> IsoRewriting.of("MM/dd/yyyy").rewrite(pa.array(["07/05/2000", "2000-07-05", None])).to_pylist()
        ['2000-07-05', '2000-07-05 is not MM/dd/yyyy', None]
        >>> mail = IsoRewriting.of("EEE, d MMM yyyy HH:mm:ss z")
        >>> mail.rewrite(pa.array(["Tue, 3 Jun 2003 09:39:21 EDT"])).to_pylist()
        ['2003-06-03T09:39:21-0400']
        >>> dates = IsoRewriting.of("yyyy-MM-dd[XXX]", days=True)
        >>> dates.rewrite(pa.array(["2026-01-02+02:00", "2026-01-03"])).to_pylist()
        ['2026-01-02', '2026-01-03']
        """
        regex, groups, fields = "", [], (_OF_DAYS if days else _FIELDS) | _names_of(locale)
        for token in _TOKEN.finditer(pattern):
            text = token[0]
            if token[1] is not None:
                regex += re.escape(token[1].replace("''", "'") or "'")
            elif text.strip("[]") in fields:
                name, expression = fields[text.strip("[]")]
                groups += [name] if name else []
                regex += (f"({expression})" if name else f"(?:{expression})") + ("?" if text[0] == "[" else "")
            elif set(text) == {"S"}:
                groups.append("fraction")
                kept = min(len(text), 6)  # what is smaller than a microsecond is cut off, as in Spark
                regex += rf"(\d{{{kept}}})\d{{{len(text) - kept}}}"
            elif text.strip("[]").isalpha():
                raise UsageError(f"'{text}' in the format '{pattern}' is not known", hint=_HINT)
            else:
                regex += re.escape(text)
        if len(set(groups)) != len(groups) or not {"year", "month", "day"} <= set(groups):
            raise UsageError(f"the format '{pattern}' lacks year, month or day", hint=_HINT)
        at = {name: f"\\{number}" for number, name in enumerate(groups, 1)}
        iso = f"{at['year']}-{at['month']}-{at['day']}"
        if {"hour", "minute", "second", "fraction", "zone"} & set(groups) and not days:
            iso += f"T{at.get('hour', '00')}:{at.get('minute', '00')}:{at.get('second', '00')}"
            iso += ("." + at["fraction"] if "fraction" in at else "") + at.get("zone", "")
        # Names are replaced by numbers after the rewriting, when they are at their place in ISO 8601.
        tokens = {token[0] for token in _TOKEN.finditer(pattern)}
        has_names = bool({"MMM", "MMMM", "d", "Z", "z"} & tokens)
        return IsoRewriting(f"^(?:{regex})$", iso, pattern, has_names, locale, full="MMMM" in tokens)

    def rewrite(self, texts: Any) -> pa.StringArray:
        """Rewrites the texts to ISO 8601; blank texts and nulls are unchanged."""
        pc = _compute()
        fits = pc.or_(pc.match_substring_regex(texts, self.regex), pc.equal(texts, ""))
        refused = pc.binary_join_element_wise(texts, f"is not {self.pattern}", " ")
        iso = pc.replace_substring_regex(texts, self.regex, self.iso)
        iso = _without_names(iso, self.locale, full=self.full) if self.has_names else iso
        rewritten: pa.StringArray = pc.if_else(fits, iso, refused)
        return rewritten


_DAYS = ("dd.MM.yyyy", "dd/MM/yyyy", "MM/dd/yyyy", "yyyy/MM/dd", "dd-MM-yyyy", "MM-dd-yyyy")
_PATTERNS = (
    *(f"{day}{time}" for day in _DAYS for time in ("", " HH:mm:ss", " HH:mm")),
    *(f"yyyy-MM-dd'T'HH:mm:ss.{'S' * digits}{zone}" for digits in (7, 8, 9) for zone in ("", "XXX")),
    *("EEE, dd MMM yyyy HH:mm:ss Z", "EEE, d MMM yyyy HH:mm:ss z"),
    *("yyyy-MM-ddXXX", "yyyy-MM-dd[XXX]"),
)


_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def patterns_of(texts: Sequence[str]) -> list[str]:
    """The frequent patterns of dates and times that are not ISO 8601, and that all these texts have.

    >>> patterns_of(["20.11.2026"]), patterns_of(["05/07/2026"]), patterns_of(["2026-11-20"])
    (['dd.MM.yyyy'], ['dd/MM/yyyy', 'MM/dd/yyyy'], [])
    >>> patterns_of(["02-01-2021"]), patterns_of(["02-01-2021", "13-01-2021"])
    (['dd-MM-yyyy', 'MM-dd-yyyy'], ['dd-MM-yyyy'])
    >>> patterns_of(["2026-11-20", "2026-11-20+01:00"])
    ['yyyy-MM-dd[XXX]']
    >>> patterns_of(["05/07/2026", "13/07/2026", "31/02/2026"])
    []
    """
    # Without any zone these are dates as they are.
    found = [] if all(map(_ISO_DATE.fullmatch, texts)) else _PATTERNS
    patterns = [pattern for pattern in found if _are_dates(IsoRewriting.of(pattern), texts)]
    return patterns[:-1] if patterns[-2:] == ["yyyy-MM-ddXXX", "yyyy-MM-dd[XXX]"] else patterns


def _are_dates(form: IsoRewriting, texts: Sequence[str]) -> bool:
    if not re.match(form.regex, texts[0], re.ASCII):  # before Arrow is called: most texts have none of the patterns
        return False
    import pyarrow as pa

    domain = Domain("TIMESTAMP")
    try:
        return all(domain.read(str(text)) for text in form.rewrite(pa.array(texts)).to_pylist())
    except ValueError:
        return False


def _names_of(locale: str | None) -> dict[str, tuple[str, str]]:
    """The fields of names in a locale; without one full names of months are English."""
    full = {"MMMM": ("month", f"(?i:{'|'.join(months(locale or 'en', full=True))})")}
    if locale is None:
        return full
    day = ("", r"[^\s\d,.]+\.?")
    return {**full, "MMM": ("month", f"(?i:{'|'.join(months(locale))})"), "EEE": day, "EEEE": day}


def _without_names(iso: Any, locale: str | None = None, *, full: bool = False) -> Any:
    """Replaces the names of months and zones by numbers, and one-digit days by two digits."""
    pc = _compute()
    for place, month in enumerate(months(locale or "en", full=full) if locale or full else [], 1):
        iso = pc.replace_substring_regex(iso, f"(?i)-{month}-", f"-{place:02}-", max_replacements=1)
    for name, number in _MONTHS.items():
        iso = pc.replace_substring(iso, name, number, max_replacements=1)
    for name, offset in _ZONES.items():
        iso = pc.replace_substring_regex(iso, f"{name}$", offset)
    # Arrow reads only one digit as a group's number, so the 0 after \1 is literal.
    return pc.replace_substring_regex(iso, r"^(\d{4}-\d{2}-)(\d)(T|$)", r"\10\2\3")


@dataclass(frozen=True, slots=True)
class PrefixRewriting:
    """Strips a prefix from texts: `person17` becomes 17; other texts get a suffix, so that no type can parse them."""

    prefix: str

    def rewrite(self, texts: Any) -> pa.StringArray:
        """Strips the prefix; blank texts and nulls are unchanged.

        >>> import pyarrow as pa
        >>> PrefixRewriting("person").rewrite(pa.array(["person17", "17", "person", "", None])).to_pylist()
        ['17', '17 does not begin with person', 'person ends behind person', '', None]
        """
        pc = _compute()
        bare = pc.utf8_slice_codeunits(texts, len(self.prefix))
        fits = pc.starts_with(texts, self.prefix)
        refused = pc.binary_join_element_wise(texts, f"does not begin with {self.prefix}", " ")
        ended = pc.binary_join_element_wise(texts, f"ends behind {self.prefix}", " ")
        rewritten: pa.StringArray = pc.if_else(
            pc.equal(texts, self.prefix), ended, pc.if_else(pc.or_(fits, pc.equal(texts, "")), bare, refused)
        )
        return rewritten

    def of_pattern(self, pattern: str) -> str:
        """Strips the prefix from every constant of a pattern's text; ValueError if a constant lacks it.

        >>> PrefixRewriting("person").of_pattern('{person1,"person2"}'), PrefixRewriting("a").of_pattern("[a1,)")
        ('{"1","2"}', '["1",)')
        """
        bare = pattern.strip()
        if bare in ("*", "null", "{}"):
            return bare
        constant = re.compile(rf"(\"?){re.escape(self.prefix)}([\w.+:\-]+)\1(?=\s*[,)\]}}]|\s*\Z)")
        rest = constant.sub("", bare)
        if re.search(r"[^\[\](){},\s]", rest.replace("null", "")):
            raise ValueError(f"{pattern} does not begin with {self.prefix}")
        return constant.sub(r'"\2"', bare)


_HINT = (
    "yyyy, MM, MMM, MMMM, dd, d, EEE, EEEE, HH, mm, ss, S…, XXX, [XXX], Z, z and text in between, as in"
    " EEE, dd MMM yyyy HH:mm:ss Z"
)


def _compute() -> Any:
    """Imports Arrow's functions on first use: the process that plans slices does not need them."""
    import pyarrow.compute

    return pyarrow.compute


def text(name: str, given: str) -> str:
    """Accepts any text, unchanged."""
    return given


def codec(name: str, given: str) -> str:
    """Accepts the name of an encoding that Python knows."""
    try:
        codecs.lookup(given)
    except LookupError:
        raise UsageError(f"{name} '{given}' is not known", hint="write its name, such as ISO-8859-1") from None
    return given


def choice(*choices: str, **others: str) -> Callable[[str, str], str]:
    """Returns a parser that accepts one of these choices, or another word for one, without regard to case."""

    def read(name: str, given: str) -> str:
        word = given.strip().lower()
        for known in choices:
            if known.lower() == others.get(word, word).lower():
                return known
        raise UsageError(f"{name} '{given}' is not known", hint=f"write one of {', '.join(choices)}")

    return read


def flag(name: str, given: str) -> bool:
    """Parses true or false."""
    return choice("true", "false")(name, given) == "true"


_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size(name: str, given: str) -> int:
    """Parses a number of bytes."""
    match = re.fullmatch(r"\s*(\d+)\s*([kmg]?)b?\s*", given, re.IGNORECASE | re.ASCII)
    if not match or int(match[1]) == 0:
        raise UsageError(f"{name} '{given}' is not a valid size", hint="a number of bytes such as 100000, 512k or 64m")
    return int(match[1]) * _UNITS[match[2].lower()]


def seconds(name: str, given: str) -> float:
    """Parses a duration with its unit, into seconds.

    >>> seconds("unfinishedAge", "10m"), seconds("unfinishedAge", "1 hour 30 minutes"), seconds("rest", "PT0.5S")
    (600.0, 5400.0, 0.5)
    """
    length = Duration.of_words(given)
    if length is None or length.months:
        raise UsageError(
            f"{name} '{given}' is not a span of time", hint="write a number with a unit: 30s, 10m, 2 hours"
        )
    return length.span.total_seconds()


def rate(name: str, given: str) -> float:
    """Parses a rate: a number above 0.

    >>> rate("rate", "0.5"), rate("rate", "2000")
    (0.5, 2000.0)
    """
    if not re.fullmatch(r"\s*\d+(\.\d+)?\s*", given, re.ASCII) or float(given) == 0:
        raise UsageError(
            f"{name} '{given}' is not a valid number above 0", hint="tuples per second, or per any common unit"
        )
    return float(given)


def count(name: str, given: str) -> int:
    """Parses an integer above 0."""
    if not re.fullmatch(r"\s*0*[1-9]\d*\s*", given, re.ASCII):
        raise UsageError(f"{name} '{given}' is not a valid number above 0")
    return int(given)


def date_pattern(name: str, given: str) -> str:
    """Checks a pattern of dates or timestamps."""
    IsoRewriting.of(given)
    return given


def time_zone(name: str, given: str) -> str:
    """Checks the name of a time zone; any name of UTC is UTC.

    >>> time_zone("timeZone", "Europe/Berlin"), time_zone("timeZone", "Z")
    ('Europe/Berlin', 'UTC')
    """
    zone = full_zone(given.strip())
    try:
        return "UTC" if is_always_utc(zone) else zone
    except UsageError as error:
        hint = did_you_mean(zone, sorted(available_timezones()), error.hint or "", 0.75)
        raise UsageError(f"{name} '{given}': {error.what}", hint=hint) from None


def name_list(name: str, given: str) -> tuple[str, ...]:
    """Parses names separated by commas, each perhaps in back quotes."""
    parts = [part.strip() for part in split_outside(given, ",", "`") if part.strip()]
    return tuple(split_name(part)[0] if part[0] == "`" else part for part in parts)
