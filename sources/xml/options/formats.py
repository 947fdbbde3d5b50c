"""Formats of values other than their types': patterns of dates and timestamps, prefixes of numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute

from punct_ns.errors import UsageError

pc: Any = pyarrow.compute

_FIELDS = {
    "yyyy": ("year", r"\d{4}"),
    "MM": ("month", r"\d{2}"),
    "dd": ("day", r"\d{2}"),
    "HH": ("hour", r"\d{2}"),
    "mm": ("minute", r"\d{2}"),
    "ss": ("second", r"\d{2}"),
    "XXX": ("zone", r"Z|[+-]\d{2}:\d{2}"),
    "XX": ("zone", r"Z|[+-]\d{4}"),
    "Z": ("zone", r"[+-]\d{4}"),
}
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")


@dataclass(frozen=True, slots=True)
class IsoRewriting:
    """Turns texts of one pattern into ISO 8601; what is not of the pattern is left so that no type can read it."""

    regex: str
    iso: str
    pattern: str

    @staticmethod
    def of(pattern: str) -> IsoRewriting:
        """For a pattern in the letters of Java's DateTimeFormatter: yyyy MM dd HH mm ss S… XXX.

        Raises:
            UsageError: A letter that is not known, or no year, month and day in it.

        >>> IsoRewriting.of("MM/dd/yyyy").rewrite(pa.array(["07/05/2000", "2000-07-05", None])).to_pylist()
        ['2000-07-05', '2000-07-05 is not MM/dd/yyyy', None]
        """
        regex, groups = "", []
        for token in _TOKEN.finditer(pattern):
            text = token[0]
            if token[1] is not None:
                regex += re.escape(token[1].replace("''", "'") or "'")
            elif text in _FIELDS:
                name, expression = _FIELDS[text]
                groups.append(name)
                regex += f"({expression})"
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
        return IsoRewriting(f"^(?:{regex})$", iso, pattern)

    def rewrite(self, texts: Any) -> pa.StringArray:
        """The texts in ISO 8601; blank ones and nulls as they are."""
        fits = pc.or_(pc.match_substring_regex(texts, self.regex), pc.equal(texts, ""))
        refused = pc.binary_join_element_wise(texts, f"is not {self.pattern}", " ")
        rewritten: pa.StringArray = pc.if_else(fits, pc.replace_substring_regex(texts, self.regex, self.iso), refused)
        return rewritten


@dataclass(frozen=True, slots=True)
class PrefixRewriting:
    """Takes a prefix off texts: `person17` is 17; what does not begin with it is left so that no type can read it."""

    prefix: str

    def rewrite(self, texts: Any) -> pa.StringArray:
        """The texts without it; blank ones and nulls as they are.

        >>> PrefixRewriting("person").rewrite(pa.array(["person17", "17", "person", "", None])).to_pylist()
        ['17', '17 does not begin with person', 'person ends behind person', '', None]
        """
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


_HINT = "yyyy, MM, dd, HH, mm, ss, S…, XXX and text in between, as in MM/dd/yyyy"
