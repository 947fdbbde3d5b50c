"""Patterns as text: `*`, `17`, `"*"`, `[17,20)`, `{1001,2004}`, `{}`, `null`.

Double quotes (doubled inside) enclose a constant that would otherwise be parsed as something else. Blanks outside
quotes are ignored. `parse_pattern` and `format_pattern` are inverse to each other.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from xmlstream.punct_ns.domain import BLANKS, Domain
from xmlstream.punct_ns.errors import NotationError
from xmlstream.punct_ns.pattern import (
    EMPTY,
    NULL,
    WILDCARD,
    Constant,
    Empty,
    List,
    Pattern,
    Range,
    Wildcard,
    between,
    canonical,
)

if TYPE_CHECKING:
    from xmlstream.punct_ns.domain import Value

_SPECIAL = re.compile(r'[,"\[\](){}]')
_ITEM = re.compile(
    r"""[ \t\r\n]*
        (?: "(?P<quoted>(?:[^"]++|"")*+)" | (?P<bare>[^,"]*+) )
        [ \t\r\n]* (?P<end>,|\Z)""",
    re.VERBOSE,
)
_PART = re.compile(
    r"""[ \t\r\n]*
        (?P<text> "(?:[^"]++|"")*+"
        | \{ (?:[^"}]++|"(?:[^"]++|"")*+")*+ \}
        | [\[(] (?:[^"\])]++|"(?:[^"]++|"")*+")*+ [\])]
        | [^,\[({"][^,]*+ | (?=,|\Z) )
        [ \t\r\n]* (?P<end>,|\Z)""",
    re.VERBOSE,
)


class _Item(NamedTuple):
    text: str
    quoted: bool


def parse_pattern(text: str, domain: Domain) -> Pattern:
    """Parses a text into a canonical pattern; NotationError with the reason if it is not one.

    An empty text is the empty string for STRING, and an error for other types.

    >>> parse_pattern("[17, 20)", Domain("INT"))
    Range(low=17, high=19, low_closed=True, high_closed=True)
    >>> parse_pattern('"*"', Domain("STRING"))
    Constant(value='*')
    """
    tidy = text.strip(BLANKS)
    if tidy == "*":
        return WILDCARD
    try:
        match tidy[:1]:
            case "{":
                return _parse_list(tidy, domain)
            case "[" | "(":
                return _parse_range(tidy, domain)
            case '"':
                items = _items(tidy)
                if len(items) != 1:
                    raise ValueError("text after the closing quote")
                return canonical(Constant(domain.read(items[0].text)), domain)
            case _:
                return canonical(_constant(_Item(tidy, quoted=False), domain), domain)
    except NotationError:
        raise
    except ValueError as reason:
        raise NotationError(f"'{_shortened(tidy)}' is not a valid pattern of {domain.type}: {reason}") from None


def format_pattern(pattern: Pattern, domain: Domain) -> str:
    """Writes a canonical pattern as text.

    >>> format_pattern(List((1001, 2004)), Domain("INT"))
    '{1001,2004}'
    >>> format_pattern(Range(None, "a,b", False, True), Domain("STRING"))
    '(,"a,b"]'
    """
    match pattern:
        case Wildcard():
            return "*"
        case Empty():
            return "{}"
        case Constant(value):
            return _write(value, domain)
        case List(listed):
            return "{" + ",".join(_write(value, domain) for value in listed) + "}"
        case Range(low, high, low_closed, high_closed):
            begin = "" if low is None else _write(low, domain)
            end = "" if high is None else _write(high, domain)
            return f"{'[' if low_closed else '('}{begin},{end}{']' if high_closed else ')'}"


def split_patterns(text: str) -> list[str]:
    """Splits a punctuation into the texts of its patterns; NotationError if they cannot be separated.

    >>> split_patterns('<*, [17,20), "a,b">')
    ['*', '[17,20)', '"a,b"']
    """
    tidy = text.strip(BLANKS)
    if not (len(tidy) >= 2 and tidy[0] == "<" and tidy[-1] == ">"):
        raise NotationError(
            f"'{_shortened(tidy)}' is not a valid punctuation: expected < at its beginning and > at its end"
        )
    inner = tidy[1:-1]
    if "[" not in inner and "(" not in inner and "{" not in inner and '"' not in inner:
        return [part.strip(BLANKS) for part in inner.split(",")]
    parts: list[str] = []
    part = _PART.match(inner)
    while part is not None:
        parts.append(part["text"].strip(BLANKS))
        if not part["end"]:
            return parts
        part = _PART.match(inner, part.end())
    raise NotationError(
        f"'{_shortened(tidy)}' is not a valid punctuation: its {len(parts) + 1}. pattern does not end at a comma"
    )


def _parse_list(text: str, domain: Domain) -> Pattern:
    if text[-1] != "}":
        raise ValueError("a list ends with }")
    if not text[1:-1].strip(BLANKS):
        return EMPTY
    found = [_constant(item, domain).value for item in _items(text[1:-1])]
    return canonical(List(tuple(found)), domain)


def _parse_range(text: str, domain: Domain) -> Pattern:
    if text[-1] not in "])":
        raise ValueError("a range ends with ] or )")
    ends = _items(text[1:-1])
    if len(ends) != 2:
        raise ValueError("a range has two ends, separated by a comma")
    low, high = _end(ends[0]), _end(ends[1])
    begin = domain.bottom if low is None else domain.cut_of_text(low, after=text[0] == "(")
    finish = domain.top if high is None else domain.cut_of_text(high, after=text[-1] == "]")
    return between(begin, finish, domain)


def _end(item: _Item) -> str | None:
    """Returns the text of one end of a range; None for an infinite one."""
    if item.quoted:
        return item.text
    if item.text in ("null", "*"):
        raise ValueError(f"{item.text} is not a valid end of a range")
    return item.text or None


def _constant(item: _Item, domain: Domain) -> Constant:
    if not item.quoted and item.text == "null":
        return NULL
    return Constant(domain.read(item.text))


def _items(text: str) -> list[_Item]:
    """Splits the constants of a list, or the ends of a range."""
    if '"' not in text:
        return [_Item(part.strip(BLANKS), quoted=False) for part in text.split(",")]
    items: list[_Item] = []
    found = _ITEM.match(text)
    while found is not None:
        inner = found["quoted"]
        bare = inner is None
        items.append(_Item(found["bare"].strip(BLANKS) if bare else inner.replace('""', '"'), quoted=not bare))
        if not found["end"]:
            return items
        found = _ITEM.match(text, found.end())
    raise ValueError("unexpected quote")


def _write(value: Value | None, domain: Domain) -> str:
    if value is None:
        return "null"
    text = domain.write(value)
    if not isinstance(value, str):
        return text
    plain = text and text not in ("*", "null") and text == text.strip(BLANKS) and not _SPECIAL.search(text)
    return text if plain else '"' + text.replace('"', '""') + '"'


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
