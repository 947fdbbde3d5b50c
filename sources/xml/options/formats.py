"""Formats of values other than their types': patterns of dates and timestamps, prefixes of numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from punct_ns.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

_FIELDS = {
    "yyyy": ("year", r"\d{4}"),
    "MM": ("month", r"\d{2}"),
    "MMM": ("month", "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"),
    "dd": ("day", r"\d{2}"),
    "d": ("day", r"\d{1,2}"),
    "EEE": ("", "Mon|Tue|Wed|Thu|Fri|Sat|Sun"),
    "HH": ("hour", r"\d{2}"),
    "mm": ("minute", r"\d{2}"),
    "ss": ("second", r"\d{2}"),
    "XXX": ("zone", r"Z|[+-]\d{2}:\d{2}"),
    "XX": ("zone", r"Z|[+-]\d{4}"),
    "Z": ("zone", r"[+-]\d{4}|GMT|UTC?"),
    "z": ("zone", r"[+-]\d{4}|GMT|UTC?|Z|[ECMP][SD]T"),
}
_MONTHS = {f"-{name}-": f"-{number:02}-" for number, name in enumerate(_FIELDS["MMM"][1].split("|"), 1)}
_ZONES = {"GMT": "Z", "UTC": "Z", "UT": "Z"} | {
    f"{zone}{kind}T": f"-{hours + (kind == 'S'):02}00"
    for zone, hours in zip("ECMP", range(4, 8), strict=True)
    for kind in "SD"
}
"""The zones of RFC 822, which are those of its authors' country."""

_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")


@dataclass(frozen=True, slots=True)
class IsoRewriting:
    """Turns texts of one pattern into ISO 8601; what is not of the pattern is left so that no type can read it."""

    regex: str
    iso: str
    pattern: str
    has_names: bool = False

    @staticmethod
    def of(pattern: str) -> IsoRewriting:
        """For a pattern in the letters of Java's DateTimeFormatter: yyyy MM MMM dd d EEE HH mm ss S… XXX Z z.

        Names of days and months are English. `Z` is an offset as Java has it, and GMT; `z` any zone of RFC 822.

        Raises:
            UsageError: A letter that is not known, or no year, month and day in it.

        >>> import pyarrow as pa
        >>> IsoRewriting.of("MM/dd/yyyy").rewrite(pa.array(["07/05/2000", "2000-07-05", None])).to_pylist()
        ['2000-07-05', '2000-07-05 is not MM/dd/yyyy', None]
        >>> mail = IsoRewriting.of("EEE, d MMM yyyy HH:mm:ss z")
        >>> mail.rewrite(pa.array(["Tue, 3 Jun 2003 09:39:21 EDT"])).to_pylist()
        ['2003-06-03T09:39:21-0400']
        """
        regex, groups = "", []
        for token in _TOKEN.finditer(pattern):
            text = token[0]
            if token[1] is not None:
                regex += re.escape(token[1].replace("''", "'") or "'")
            elif text in _FIELDS:
                name, expression = _FIELDS[text]
                groups += [name] if name else []
                regex += f"({expression})" if name else f"(?:{expression})"
            elif set(text) == {"S"}:
                groups.append("fraction")
                regex += rf"(\d{{{len(text)}}})"
            elif text[0].isalpha():
                raise UsageError(f"'{text}' in the format '{pattern}' is not known", hint=_HINT)
            else:
                regex += re.escape(text)
        if len(set(groups)) != len(groups) or not {"year", "month", "day"} <= set(groups):
            raise UsageError(f"the format '{pattern}' does not say a day", hint=_HINT)
        at = {name: f"\\{number}" for number, name in enumerate(groups, 1)}
        iso = f"{at['year']}-{at['month']}-{at['day']}"
        if {"hour", "minute", "second", "fraction", "zone"} & set(groups):
            iso += f"T{at.get('hour', '00')}:{at.get('minute', '00')}:{at.get('second', '00')}"
            iso += ("." + at["fraction"] if "fraction" in at else "") + at.get("zone", "")
        # What is no number in the text is made one once it stands where ISO has it.
        has_names = bool({"MMM", "d", "Z", "z"} & {token[0] for token in _TOKEN.finditer(pattern)})
        return IsoRewriting(f"^(?:{regex})$", iso, pattern, has_names)

    def rewrite(self, texts: Any) -> pa.StringArray:
        """The texts in ISO 8601; blank ones and nulls as they are."""
        pc = _compute()
        fits = pc.or_(pc.match_substring_regex(texts, self.regex), pc.equal(texts, ""))
        refused = pc.binary_join_element_wise(texts, f"is not {self.pattern}", " ")
        iso = pc.replace_substring_regex(texts, self.regex, self.iso)
        rewritten: pa.StringArray = pc.if_else(fits, _without_names(iso) if self.has_names else iso, refused)
        return rewritten


def _without_names(iso: Any) -> Any:
    """Dates with the names of months and of zones, and days of one digit, as ISO 8601 has them."""
    pc = _compute()
    for name, number in _MONTHS.items():
        iso = pc.replace_substring(iso, name, number, max_replacements=1)
    for name, offset in _ZONES.items():
        iso = pc.replace_substring_regex(iso, f"{name}$", offset)
    # A group's number has one digit to Arrow: the zero is one.
    return pc.replace_substring_regex(iso, r"^(\d{4}-\d{2}-)(\d)(T|$)", r"\10\2\3")


@dataclass(frozen=True, slots=True)
class PrefixRewriting:
    """Takes a prefix off texts: `person17` is 17; what does not begin with it is left so that no type can read it."""

    prefix: str

    def rewrite(self, texts: Any) -> pa.StringArray:
        """The texts without it; blank ones and nulls as they are.

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
        """The text of a pattern whose every constant has the prefix, without it; ValueError if one has not.

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


_HINT = "yyyy, MM, MMM, dd, d, EEE, HH, mm, ss, S…, XXX, Z, z and text in between, as in EEE, dd MMM yyyy HH:mm:ss Z"


def _compute() -> Any:
    """Arrow's functions, imported where texts are rewritten: the process that plans slices does without."""
    import pyarrow.compute

    return pyarrow.compute
