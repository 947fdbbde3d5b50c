"""Tokens of a text: its tags as columns, from which elements, attributes and texts are selected.

libxml2 checks the text without building anything, at several hundred megabytes a second, unless the tokens prove sooner
that it is well-formed (`token_proof`). In a well-formed text without comments, CDATA sections and processing
instructions every `<` begins a tag, a start tag ends at the first `>` outside quotes, and the depth is the number of
start tags without their end tags. So elements are compared by their names, levels and parents with a few comparisons
for all tags at once, whatever the form of the items.

libxml2 does not check namespaces without building a tree. So a text that declares namespaces, or has a name with an
undeclared prefix, is refused here, and read in another way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from string import ascii_letters
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
from lxml import etree

from xmlstream.dataclasses import dataclass
from xmlstream.sources.xml.options.arrow_text import Mask, character_data, only_bytes, plain_text, slots
from xmlstream.sources.xml.parser.token_proof import CDATA, proven
from xmlstream.sources.xml.splits.all_tags import Offsets, Tags
from xmlstream.sources.xml.splits.tags import MAX_DEPTH, check_content, local_name, on_one_line, parse_content

Words = npt.NDArray[np.uint64]

_XMLNS = np.uint64(int.from_bytes(b"xmlns=", "little"))
_QUERY, _EQUALS, _COLON, _QUOTE, _APOSTROPHE = b"?=:\"'"
_MARKS = b"&\r\n\t"
WORD = 8
"""The number of bytes that are compared at once, as one number."""

_IS_DELIMITER = only_bytes(b" \t\r\n/>")
_IS_BLANK, _BEFORE_NAME = only_bytes(b" \t\r\n"), only_bytes(b" \t\r\n</")
_BEGINS_NAME = only_bytes(b"_" + ascii_letters.encode())
_MARKUP = re.compile(
    rb"<!--.*?-->|<!\[CDATA\[(.*?)\]\]>|<\?.*?\?>|<[^!?<>\"'][^<>\"']*(?:(?:\"[^\"<]*\"|'[^'<]*')[^<>\"']*)*>",
    re.DOTALL,
)
_NAME_WITH_COLON = re.compile(rb"<\?[^\s?]*:")


MOST_LEVELS = 64
"""The greatest number of levels between elements that are selected together: each costs a pass over all tags."""


class UndecidedError(Exception):
    """A text has something that tokens do not decide, so that it must be read in another way."""


@dataclass(frozen=True, slots=True)
class Context:
    """The elements open at the beginning of a text.

    Attributes:
        open: Their start tags, from the root.
        elements: The same elements, parsed.
        prefixes: The namespaces in scope by prefix; None for the default namespace.
    """

    open: tuple[bytes, ...]
    elements: tuple[etree._Element, ...]
    prefixes: Mapping[bytes | None, str]

    @staticmethod
    def of(open_: tuple[bytes, ...]) -> Context | None:
        """Parses the start tags; None if that is impossible, or nothing is open."""
        if not open_:
            return None
        try:
            element = parse_content(b"", open_, open_)
        except etree.XMLSyntaxError:
            return None
        elements = [element]
        for _ in open_[1:]:
            elements.append(elements[-1][0])
        prefixes = {prefix and prefix.encode(): uri for prefix, uri in elements[-1].nsmap.items()}
        prefixes[b"xml"] = "http://www.w3.org/XML/1998/namespace"
        return Context(open_, tuple(elements), cast(Any, prefixes))

    def levels(self, name: str) -> list[int]:
        """Returns the levels of the open elements with a local name."""
        return [level for level, element in enumerate(self.elements, 1) if etree.QName(element).localname == name]

    def written(self, name: str) -> list[bytes]:
        """Returns the qualified names, as they are written in this context, of an element `{uri}name` or `name`.

        A name without a namespace is that of an element in any namespace, or in none.
        """
        uri, brace, local = name.rpartition("}")
        known = [p for p, bound in self.prefixes.items() if not brace or bound == uri[1:]]
        if not brace or (uri == "{" and None not in self.prefixes):
            known = [None, *(prefix for prefix in known if prefix is not None)]
        return [local.encode() if prefix is None else prefix + b":" + local.encode() for prefix in known]


class TokenWindow:
    """The tags of a well-formed text; an element is denoted by the index of its start tag.

    Attributes:
        start: The offset of each tag.
        end: The offset after each tag.
        closes: Whether it is an end tag.
        opens: Whether it is a start tag of an element that is not empty.
        depth: The number of elements open after it.
        level: The level of its element; the root has 1.
        is_whole: Whether every other `<` begins a comment, a CDATA section or a processing instruction.
        marks: Which characters of the text are not what they stand for: references, line breaks.
        special: The begin and end offset of each comment, CDATA section and processing instruction, in a row.
        nil: Offsets of apparent nil attributes.
    """

    def __init__(self, text: bytes, context: Context, tags: Tags) -> None:
        padded = bytes(WORD) + text + bytes(WORD)
        self.text, self.context = text, context
        self.byte: npt.NDArray[np.uint8] = np.frombuffer(padded, np.uint8)[WORD:-WORD]
        # The word of eight bytes at every offset, from eight bytes before the text.
        self._word = np.ndarray((len(text) + WORD + 1,), np.dtype("<u8"), padded, strides=(1,))
        self.start, self.end, self.opens, self.closes = tags.start, tags.end, tags.opens, tags.closes
        self.depth, self.is_whole = tags.depth, tags.whole >= len(text)
        self.level = tags.depth + (~self.opens).view(np.int8)
        self.starts: Offsets = np.flatnonzero(~self.closes)
        self._named: dict[str, Offsets] = {}
        self._at_level: dict[tuple[int, bool], Offsets] = {}
        self.special = tags.special[: np.searchsorted(tags.special[:, 0], len(text))]
        self.nil: Offsets = np.zeros(0, np.int64)
        self.marks = bytes(mark for mark in _MARKS if mark in text)

    @staticmethod
    def of(
        text: bytes,
        context: Context,
        after: tuple[bytes, ...],
        tags: Tags | None = None,
        *,
        is_checked: bool = False,
    ) -> TokenWindow | None:
        """Returns the tokens of a text; None if it is not well-formed, or has something that is not decided here.

        Args:
            text: Content of a document between two split points.
            context: The elements open at its beginning.
            after: Start tags of the elements open at its end.
            tags: Its tags, if they are known.
            is_checked: Whether libxml2 has found that it is well-formed.
        """
        tags = Tags.of(text, len(context.open)) if tags is None else tags
        if not len(tags.start):
            return None
        lowest, highest = int(tags.depth.min()), int(tags.depth.max())
        if highest >= MAX_DEPTH or lowest < 0:
            return None
        if lowest < len(context.open) and any(b"xmlns" in tag for tag in context.open[1:]):
            return None
        window = TokenWindow(text, context, tags)
        if (nil := proven(window, after)) is not None:
            window.nil = nil
            return window
        if not is_checked:
            try:
                check_content(text, context.open, after)
            except etree.XMLSyntaxError:
                return None
        return window if window._has_known_names() else None

    def _has_known_names(self) -> bool:
        """Whether no namespace is declared, and all prefixes are; False if this is not decided here."""
        starts = self.special[:, 0]
        if any(_NAME_WITH_COLON.match(self.text, at) for at in starts[self.byte[starts + 1] == _QUERY].tolist()):
            return False
        # A default namespace is declared before a quote; a prefix is found by its colon.
        for quotes in (self.quotes, self.apostrophes):
            before = self.words_before(quotes)
            if ((before >> np.uint64(16)) == _XMLNS).any():
                return False
            last, second = ((before >> np.uint64(shift)).astype(np.uint8) for shift in (56, 48))
            if (_IS_BLANK[last] | ((last == _EQUALS) & _IS_BLANK[second])).any() and b"xmlns" in self.text:
                return False
        return b":" not in self.text or self._has_known_prefixes()

    def _has_known_prefixes(self) -> bool:
        """Whether all prefixes of elements and attributes are declared; False if this is not decided here."""
        colon = np.flatnonzero(self.byte == _COLON)
        tag = np.searchsorted(self.start, colon, "right") - 1
        inside = tag >= 0
        inside[inside] = colon[inside] < self.end[tag[inside]]
        colon, tag = colon[inside], tag[inside]
        prefix = np.full(len(colon), -1, np.int64)
        for known in self.context.prefixes:
            if known is not None:
                at = colon - len(known)
                fits = self.is_at(at, known) & _BEFORE_NAME[self.byte[np.maximum(at - 1, 0)]]
                prefix[fits] = at[fits]
        prefix[~_BEGINS_NAME[self.byte[np.minimum(colon + 1, len(self.byte) - 1)]]] = -1
        others = np.flatnonzero(prefix != self.start[tag] + 1 + self.closes[tag])
        quoted = self._is_quoted(colon[others], tag[others])
        if quoted is None or (prefix[others[~quoted]] < 0).any():
            return False
        if (self.is_at(colon, b":id") & (prefix >= 0) & self.is_at(colon - 3, b"xml")).any():
            return False
        self.nil = colon[self.is_at(colon, b":nil")]
        # Two prefixes of one namespace could write one attribute twice.
        uris = list(self.context.prefixes.values())
        return bool(quoted.all()) or len(set(uris)) == len(uris)

    def _is_quoted(self, offset: Offsets, tag: Offsets) -> Mask | None:
        """Whether these offsets, each in a tag, are in an attribute's value; None if that is not decided."""
        if b"'" in self.text and self.have_apostrophes(self.start[tag], self.end[tag]).any():
            return None
        before = np.searchsorted(self.quotes, offset) - np.searchsorted(self.quotes, self.start[tag])
        quoted: Mask = before % 2 == 1
        return quoted

    @cached_property
    def quotes(self) -> Offsets:
        """The offsets of all double quotes."""
        return np.flatnonzero(self.byte == _QUOTE)

    @cached_property
    def apostrophes(self) -> Offsets:
        """The offsets of all single quotes."""
        return np.flatnonzero(self.byte == _APOSTROPHE)

    def have_apostrophes(self, start: Offsets, end: Offsets) -> Mask:
        """Returns which of the tags between offsets have a single quote outside of all double quotes."""
        result = np.zeros(len(start), np.bool_)
        first, last = np.searchsorted(self.apostrophes, start), np.searchsorted(self.apostrophes, end)
        count = last - first
        if not count.any():
            return result
        which = np.repeat(np.arange(len(start)), count)
        within = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        place = self.apostrophes[first[which] + within]
        before = np.searchsorted(self.quotes, place) - np.searchsorted(self.quotes, start[which])
        result[which[before % 2 == 0]] = True
        return result

    def is_at(self, offset: Offsets, text: bytes) -> Mask:
        """Whether a text is at each of these offsets; outside of this text, where nothing is, it is not."""
        result: Mask | None = None
        for begin in range(0, len(text), WORD):
            part = text[begin : begin + WORD]
            value, mask = int.from_bytes(part, "little"), (1 << 8 * len(part)) - 1
            there = self._word[np.minimum(np.maximum(offset + (begin + WORD), 0), len(self._word) - 1)]
            fits = (there & np.uint64(mask) if len(part) < WORD else there) == np.uint64(value)
            result = fits if result is None else result & fits
        assert result is not None
        return result

    def first_words(self, elements: Offsets) -> Words:
        """Returns the first eight bytes of the names of elements, and what follows."""
        return self._word[self.start[elements] + (1 + WORD)]

    def words_before(self, offsets: Offsets) -> Words:
        """Returns the eight bytes before each offset."""
        return self._word[offsets]

    def are_named(self, elements: Offsets, words: Words, name: bytes) -> Offsets:
        """Returns the indexes of those of these elements, with their `first_words`, that have a qualified name."""
        size = min(len(name), WORD)
        value, mask = np.uint64(int.from_bytes(name[:WORD], "little")), np.uint64((1 << 8 * size) - 1)
        found = np.flatnonzero((words if size == WORD else words & mask) == value)
        if len(name) > WORD:
            found = found[self.is_at(self.start[elements[found]] + (1 + WORD), name[WORD:])]
        fits = _IS_DELIMITER[self.byte[self.start[elements[found]] + (1 + len(name))]]
        return found if fits.all() else found[fits]

    def at_level(self, level: int, *, closing: bool = False) -> Offsets:
        """Returns the indexes of the start tags, or of the end tags, of a level."""
        known = self._at_level.get((level, closing))
        if known is None:
            both = self.level == level
            known = np.flatnonzero(both & self.closes if closing else both & ~self.closes)
            self._at_level[level, closing] = known
        return known

    def levels(self, elements: Offsets) -> list[int]:
        """Returns the levels of these elements; UndecidedError if they are too many."""
        level = self.level[elements]
        if not len(level):
            return []
        low, high = int(level.min()), int(level.max())
        if high - low > MOST_LEVELS:
            raise UndecidedError
        return [low] if low == high else [each for each in range(low, high + 1) if (level == each).any()]

    def ancestors(self, elements: Offsets, up: int) -> Offsets:
        """Returns the ancestor of each element so many levels up; -1 for one that is open at the text's beginning."""
        result = np.full(len(elements), -1, np.int64)
        for level in self.levels(elements):
            here = np.flatnonzero(self.level[elements] == level)
            above = self.at_level(level - up)
            place = np.searchsorted(above, elements[here]) - 1
            inside = place >= 0
            result[here[inside]] = above[place[inside]]
        return result

    def children(self, elements: Offsets, rows: Offsets) -> tuple[Offsets, Offsets]:
        """Returns the child elements of these elements, in order, and the row of the parent of each."""
        found = []
        levels = self.levels(elements)
        for level in levels:
            below, above = self.at_level(level + 1), self.at_level(level)
            row = np.full(len(above) + 1, -1, np.int64)
            here, of = (elements, rows) if len(levels) == 1 else _those(self.level[elements] == level, elements, rows)
            row[np.searchsorted(above, here) + 1] = of
            # The children before the first element here are of an element around the text, which has no row.
            bounds = np.concatenate([np.zeros(1, np.int64), np.searchsorted(below, above), [len(below)]])
            found.append((below, np.repeat(row, np.diff(bounds))))
        if not found:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        if len(found) > 1:
            child = np.concatenate([child for child, _ in found])
            order = np.argsort(child, kind="stable")
            children, parents = child[order], np.concatenate([parent for _, parent in found])[order]
        else:
            ((children, parents),) = found
        wanted = parents >= 0
        return (children, parents) if wanted.all() else (children[wanted], parents[wanted])

    def of_local_name(self, name: str) -> Offsets:
        """Returns the elements with a local name, in any namespace."""
        known = self._named.get(name)
        if known is None:
            found = [self.starts[self.are_named(self.starts, self.words, each)] for each in self.context.written(name)]
            known = self._named[name] = np.sort(np.concatenate(found))
        return known

    def local_name(self, element: int) -> str:
        return local_name(self.text[self.start[element] : self.end[element]]).decode()

    @cached_property
    def words(self) -> Words:
        """The `first_words` of all elements."""
        return self.first_words(self.starts)

    def ends(self, elements: Offsets) -> Offsets:
        """Returns the end tag of each element, the start tag of an empty one, or -1 for one that is open at the end."""
        result = np.where(self.opens[elements], -1, elements)
        for level in self.levels(elements):
            here = np.flatnonzero((self.level[elements] == level) & self.opens[elements])
            ends = np.append(self.at_level(level, closing=True), -1)
            result[here] = ends[np.searchsorted(ends[:-1], elements[here])]
        return result

    def context_end(self, level: int) -> int | None:
        """Returns the end tag of the element of a level that is open at the text's beginning; None if it stays open."""
        starts, ends = self.at_level(level), self.at_level(level, closing=True)
        return int(ends[0]) if len(ends) and (not len(starts) or ends[0] < starts[0]) else None

    def last_tags(self, elements: Offsets) -> Offsets:
        """Returns the last tag of each element; all of them end in the text."""
        return self.ends(elements)

    def chain(self, element: int) -> tuple[bytes, ...]:
        """Returns the start tags of an element's ancestors, from the root; UndecidedError if they are too many."""
        if self.level[element] > MOST_LEVELS:
            raise UndecidedError
        here, chain = np.array([element]), list[bytes]()
        for level in range(int(self.level[element]) - 1, 0, -1):
            here = self.ancestors(here, 1)
            if here[0] < 0:
                return (*self.context.open[:level], *chain)
            chain.insert(0, on_one_line(self.text[self.start[here[0]] : self.end[here[0]]]))
        return tuple(chain)

    def are_nil(self, elements: Offsets) -> Mask:
        """Returns which elements may be nil."""
        if not len(self.nil):
            return np.zeros(len(elements), np.bool_)
        result: Mask = np.searchsorted(self.nil, self.start[elements]) < np.searchsorted(self.nil, self.end[elements])
        return result

    def values(self, begin: Offsets, end: Offsets) -> pa.StringArray:
        """Returns the values of XML attributes between offsets, which are in order."""
        return character_data(slots(self.text, begin, end), self.marks, quoted=True)

    def texts(self, elements: Offsets) -> pa.StringArray:
        """Returns the string values of elements, which are in order and not in each other."""
        after = np.minimum(elements + 1, len(self.start) - 1)
        begin, end = self.end[elements], np.where(self.opens[elements], self.start[after], self.end[elements])
        mixed, literal = self.have_children(elements), np.zeros(len(elements), np.bool_)
        if len(self.special):
            # A text that is one CDATA section is what is in it.
            place = np.searchsorted(self.special[:, 0], begin)
            span = self.special[np.minimum(place, len(self.special) - 1)]
            literal = (span[:, 0] == begin) & (span[:, 1] == end) & self.is_at(begin, CDATA) & ~mixed
            mixed |= (place < np.searchsorted(self.special[:, 0], end)) & ~literal
            begin, end = begin + len(CDATA) * literal, end - len(b"]]>") * literal
        raw = slots(self.text, begin, np.where(mixed, begin, end))
        texts = character_data(raw, self.marks)
        if literal.any() and texts is not raw:
            plain = character_data(raw.filter(pa.array(literal)), self.marks.replace(b"&", b""))
            texts = pyarrow.compute.replace_with_mask(texts, pa.array(literal), plain)
        if not mixed.any():
            return texts
        places = zip(begin[mixed].tolist(), self.start[self.last_tags(elements[mixed])].tolist(), strict=True)
        parts = pa.array([_string_value(self.text[a:b]) for a, b in places], pa.string())
        whole: pa.StringArray = pyarrow.compute.replace_with_mask(texts, pa.array(mixed), parts)
        return whole

    def have_children(self, elements: Offsets) -> Mask:
        """Returns which of these elements have child elements."""
        after = np.minimum(elements + 1, len(self.start) - 1)
        return self.opens[elements] & ~self.closes[after]


def _those(which: Mask, *columns: Offsets) -> tuple[Offsets, ...]:
    return tuple(column[which] for column in columns)


def _string_value(content: bytes) -> str:
    """Returns the character data of an element with markup inside."""
    parts, end = [], 0
    for markup in _MARKUP.finditer(content):
        parts.append(plain_text(content[end : markup.start()]))
        if markup[1]:
            parts.append(plain_text(markup[1], has_references=False))
        end = markup.end()
    return "".join([*parts, plain_text(content[end:])])
