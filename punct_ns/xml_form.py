"""The XML form of a punctuation (Tucker et al. 2003, §7.1).

An element is a punctuation if its namespace is `PUNCT_NS`, whatever its prefix. It has the local name and the
structure of the tuples, attributes included; the texts of its leaves are patterns. An absent leaf
is a wildcard; null is written `null`, or as `xsi:nil="true"`. An attribute `lifespan` in the same namespace
limits how long the punctuation holds (`xmlstream.punct_ns.lifespan`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from xmlstream.punct_ns.domain import BLANKS, Domain
from xmlstream.punct_ns.notation import format_pattern, parse_pattern
from xmlstream.punct_ns.pattern import WILDCARD, Constant, Pattern, canonical
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.sql_type import StringType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xmlstream.punct_ns.schema import Schema

PUNCT_NS = "http://www.cse.ogi.edu/dot/niagara/punct"
"""The namespace of punctuations in the original engine; a source may set another one."""

LIFESPAN = "lifespan"
"""The local name of the attribute with a punctuation's lifespan; its namespace is the punctuations'."""

XSI_NIL = "{http://www.w3.org/2001/XMLSchema-instance}nil"

NO_NAME_LETTER = (
    r"\x00-,/:-@\[-^`{-\xb6\xb8-\xbf\xd7\xf7\u037e\u2000-\u200b\u200e-\u203e\u2041-\u206f\u2190-\u2bff\u2ff0-\u3000"
    r"\ud800-\uf8ff\ufdd0-\ufdef\ufffe\uffff\U000f0000-\U0010ffff"
)
"""The characters that are in no name of XML, for a regular expression's set: they are fewer, and sooner compiled."""

NAME = rf"[^{NO_NAME_LETTER}\-.0-9\xb7\u0300-\u036f\u203f\u2040][^{NO_NAME_LETTER}]*"
"""A regular expression of XML's names; names here have no prefix (NCName)."""

_LONG = 200  # characters beyond which a text is a list that is unlikely to occur twice, and is not cached
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

IN_CONTENT = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
"""The references that replace characters between tags; `&` is the first."""

IN_ATTRIBUTES = {**IN_CONTENT, '"': "&quot;", "\n": "&#10;", "\t": "&#9;"}
"""The references that replace characters in values of attributes; `&` is the first."""

_TEXT, _QUOTED = str.maketrans(IN_CONTENT), str.maketrans(IN_ATTRIBUTES)


def in_quotes(text: str) -> str:
    """A text as the value of an attribute.

    >>> in_quotes('urn:"a"&b')
    '"urn:&quot;a&quot;&amp;b"'
    """
    return f'"{text.translate(_QUOTED)}"'


def punctuation_from_texts(texts: Sequence[str | None], schema: Schema, *, trim: bool = True) -> Punctuation:
    """Parses the texts of a punctuation's leaves, in schema order; None is an absent leaf, which is a wildcard.

    With `trim` false, blanks around a bare constant belong to the string, for sources whose tuples keep blanks.
    Raises NotationError for a text that is not a pattern.

    >>> from xmlstream.punct_ns.schema import Schema
    >>> schema = Schema.parse("sid STRING, hour INT")
    >>> str(punctuation_from_texts([None, "[17,20)"], schema))
    '<*, [17,19]>'
    """
    return Punctuation(
        schema,
        tuple(
            [
                WILDCARD if text is None or text == "*" else pattern_from_text(text, attribute.domain, trim=trim)
                for text, attribute in zip(texts, schema.attributes, strict=True)
            ]
        ),
    )


def pattern_from_text(text: str, domain: Domain, *, trim: bool = True) -> Pattern:
    """Parses the pattern of one leaf, wildcards included; otherwise like `punctuation_from_texts`.

    >>> from xmlstream.punct_ns.domain import Domain
    >>> pattern_from_text("[17,20)", Domain("INT"))
    Range(low=17, high=19, low_closed=True, high_closed=True)
    """
    if not trim and isinstance(domain.sql, StringType):
        tidy = text.strip(BLANKS)
        if tidy != text and tidy not in ("*", "null") and tidy[:1] not in ('"', "[", "(", "{"):
            return canonical(Constant(text), domain)
    return parse_pattern(text, domain) if len(text) > _LONG else _known(text, domain)


_known = lru_cache(maxsize=1 << 12)(parse_pattern)
"""Patterns by their texts: the streams of a query close the same values, often in one slice."""


def write_element(
    p: Punctuation, row_tag: str, prefix: str = "punct", paths: Sequence[str] | None = None, lifespan: str | None = None
) -> str:
    """Writes the punctuation as one element with a tuple's structure; the enclosing element must bind `prefix`.

    `paths` locate the attributes' leaves, as `hour`, `@id` or `bidder/@person`; by default each is a child
    element with the attribute's name. `lifespan` is the text of the attribute `lifespan`, if any. Raises ValueError
    for a character that XML cannot represent.

    >>> from xmlstream.punct_ns.schema import Schema
    >>> write_element(Punctuation.parse("<5, *>", Schema.parse("hour INT, min INT")), "tempdata")
    '<punct:tempdata><hour>5</hour><min>*</min></punct:tempdata>'
    """
    leaves = []
    for path, pattern, attribute in zip(paths or p.schema.names, p.patterns, p.schema, strict=True):
        text = format_pattern(pattern, attribute.domain)
        if _FORBIDDEN.search(text):
            raise ValueError(f"{text!r} contains a character that XML does not allow")
        leaves.append((path.split("/"), text))
    if lifespan is not None and _FORBIDDEN.search(lifespan):
        raise ValueError(f"{lifespan!r} contains a character that XML does not allow")
    lives = "" if lifespan is None else f" {prefix}:{LIFESPAN}={in_quotes(lifespan)}"
    return _element(f"{prefix}:{row_tag}", leaves, lives)


def _element(tag: str, leaves: Sequence[tuple[Sequence[str], str]], attributes: str = "") -> str:
    inner = ""
    below: dict[str, list[tuple[Sequence[str], str]]] = {}
    for path, text in leaves:
        if not path:
            inner = text.translate(_TEXT)
        elif path[0].startswith("@"):
            attributes += f" {path[0][1:]}={in_quotes(text)}"
        else:
            below.setdefault(path[0], []).append((path[1:], text))
    children = "".join(_element(name, under) for name, under in below.items())
    return f"<{tag}{attributes}>{inner}{children}</{tag}>"
