"""Templates of regular items, literal markup with slots between, and the items in a text that match one.

A template is learnt from a sample item: its slots are filled with placeholders, and the reference reading shows which
attribute each of them is. Any text that has the same literal markup, and in the slots nothing that means anything to
XML, is then well-formed wherever the sample is, and reads alike.

All items of a template in a window of text are recognised at once. It takes a few comparisons of eight-byte words per
run of a template, each for all candidates of the window.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt
from lxml import etree

from sources.xml.options.arrow_text import Mask
from sources.xml.parser.elements import UnreadableError
from sources.xml.parser.item_reader import ItemReader, VoidPunctuationError
from sources.xml.splits.split_points import Offsets
from sources.xml.splits.tags import parse_content

MOST_SLOTS = 1_000
"""Slots of a template at the most: each costs several passes over the items, and the parser reads all in one."""

_TAG = re.compile(rb"<(/?)[^<>\"'!?]*(?:(?:\"[^\"<]*\"|'[^'<]*')[^<>\"']*)*>")
# Other attributes are part of the markup: they say nil, or what names mean, or libxml2 looks at their values.
_PLAIN_ATTRIBUTE = re.compile(
    rb"(?<=[ \t\r\n])(?!xmlns[=:]|xml:)(?:[^\s<>\"'=:]+:(?!nil=))?[^\s<>\"'=:]+=\"([^\"<]*)\""
)


@dataclass(frozen=True, slots=True)
class ItemTemplate:
    """Literal runs with a slot between any two.

    Attributes:
        runs: The literal text; every slot is followed by `<`, or by the quote that ends an attribute's value.
        places: How many delimiters (`<`, and quotes if there are attributes) stand before each run.
        delimiters: How many there are in all.
        is_punctuation: Whether the item is a punctuation; else it is a tuple.
        sources: For each attribute its slot, or its constant text, or None if it is absent; of a punctuation for its
            lifespan, too.
        quoted: For each slot, whether it is the value of an XML attribute.
        stream: Of which of the sources that are read together the items are.
    """

    runs: tuple[bytes, ...]
    places: tuple[int, ...]
    delimiters: int
    is_punctuation: bool
    sources: tuple[int | str | None, ...]
    quoted: tuple[bool, ...]
    stream: int = 0

    @staticmethod
    def learn(
        sample: bytes, open_: tuple[bytes, ...], reader: ItemReader, *, quotes: bool, stream: int = 0
    ) -> ItemTemplate | None:
        """The template of an item; None if it has none by which others could be recognised safely.

        Args:
            sample: The item's text.
            open_: Start tags of the elements open around it.
            reader: The reference reading.
            quotes: Whether quotes are delimiters, so that values of XML attributes may be slots.
            stream: Which source's the reading is.
        """
        if b"<!" in sample or b"<?" in sample or any(b"'" in tag[0] for tag in _TAG.finditer(sample)):
            return None
        runs, quoted = _runs(sample, quotes=quotes)
        if len(quoted) > MOST_SLOTS:
            return None
        filled = runs[0] + b"".join(_placeholder(slot) + run for slot, run in enumerate(runs[1:]))
        try:
            items = list(reader.items(parse_content(filled, open_, open_)))
            if len(items) != 1:
                return None
            is_punctuation = reader.is_punctuation(items[0])
            texts = reader.patterns(items[0]) if is_punctuation else reader.values(items[0])
            texts += [reader.lifespan(items[0])] if is_punctuation else []
        except (etree.XMLSyntaxError, UnreadableError, VoidPunctuationError):
            return None
        slots = {_placeholder(slot).decode(): slot for slot in range(len(quoted))}
        sources = tuple(None if text is None else slots.get(text, text) for text in texts)
        if any(isinstance(source, str) and _PLACEHOLDER in source for source in sources):
            return None  # made of several slots
        counts = [run.count(b"<") + (run.count(b'"') if quotes else 0) for run in runs]
        places = tuple(accumulate(counts[:-1], initial=0))
        return ItemTemplate(tuple(runs), places, sum(counts), is_punctuation, sources, tuple(quoted), stream)


_PLACEHOLDER = "\ue0ff"


def _placeholder(slot: int) -> bytes:
    return f"{_PLACEHOLDER}{slot}{_PLACEHOLDER}".encode()


def _runs(sample: bytes, *, quotes: bool) -> tuple[list[bytes], list[bool]]:
    """The literal runs of a sample, and for each slot between them whether it is an attribute's value."""
    gaps: list[tuple[int, int, bool]] = []
    before = None
    for tag in _TAG.finditer(sample):
        if before is not None:
            start, end = before.end(), tag.start()
            # The text of a leaf varies; blanks between other tags are layout.
            is_leaf = tag[1] and not before[1] and not before[0].endswith(b"/>")
            if is_leaf or sample[start:end].strip(b" \t\r\n"):
                gaps.append((start, end, False))
        if quotes:
            gaps += [
                (tag.start() + value.start(1), tag.start() + value.end(1), True)
                for value in _PLAIN_ATTRIBUTE.finditer(tag[0])
            ]
        before = tag
    ends = [0, *(end for _, end, _ in gaps)]
    starts = [*(start for start, _, _ in gaps), len(sample)]
    return [sample[a:b] for a, b in zip(ends, starts, strict=True)], [quoted for _, _, quoted in gaps]


_LT, _QUOTE, _AMPERSAND, _BRACKET, _BLANK, _TAB, _LF = b'<"&] \t\n'
_WORD = 8
_PREDEFINED = (b"&lt;", b"&gt;", b"&amp;", b"&quot;", b"&apos;")


@dataclass(frozen=True, slots=True)
class Matches:
    """Items of one template in a window, in order.

    Attributes:
        template: Their template.
        at: For each run of the template, where in the window it begins in each of the items.
    """

    template: ItemTemplate
    at: list[Offsets]

    def __len__(self) -> int:
        return len(self.at[0])

    @property
    def start(self) -> Offsets:
        """Where the items begin."""
        return self.at[0]

    @property
    def end(self) -> Offsets:
        """Where they end."""
        return self.at[-1] + len(self.template.runs[-1])

    def slot(self, slot: int) -> tuple[Offsets, Offsets]:
        """Where a slot begins and ends in each of the items."""
        return self.at[slot] + len(self.template.runs[slot]), self.at[slot + 1]

    def those(self, which: Offsets | Mask) -> Matches:
        """Some of the items, in the order given."""
        return Matches(self.template, [at[which] for at in self.at])


class Window:
    """A text with its delimiters, in which items of templates are found."""

    def __init__(self, text: bytes, *, quotes: bool) -> None:
        """Find the delimiters: `<`, and quotes if they are."""
        padded = text + bytes(_WORD)
        self.text = text
        self.byte: npt.NDArray[np.uint8] = np.frombuffer(padded, np.uint8)[: len(text)]
        # The eight bytes that begin at every offset.
        self._word = np.ndarray((len(text) + 1,), np.dtype("<u8"), padded, strides=(1,))
        delimits = self.byte == _LT
        if quotes:
            delimits |= self.byte == _QUOTE
        self._delimiters: Offsets = np.flatnonzero(delimits)
        self._first = self._word[self._delimiters]
        self.has_references = False
        self._lively = self._find_lively()

    def find(self, template: ItemTemplate) -> Matches:
        """The items of a template."""
        value, mask = _as_word(template.runs[0][:_WORD])
        first = self._first & mask if len(template.runs[0]) < _WORD else self._first
        items = np.flatnonzero(first == value)
        items = items[: np.searchsorted(items, len(self._delimiters) - template.delimiters, "right")]
        matches = Matches(template, [self._delimiters[items + place] for place in template.places])
        for number, run in enumerate(template.runs):
            words = range(_WORD if number == 0 else 0, len(run), _WORD)
            # The last word of a longer run overlaps the one before.
            for offset in (min(word, max(len(run) - _WORD, 0)) for word in words):
                value, mask = _as_word(run[offset : offset + _WORD])
                there = self._word[matches.at[number] + offset]
                fits = (there & mask if len(run) < _WORD else there) == value
                if not fits.all():
                    matches = matches.those(fits)
        return self._inert(matches)

    def _inert(self, matches: Matches) -> Matches:
        """The items whose slots hold nothing that means anything to XML, or is forbidden in it."""
        if not len(self._lively) or not len(matches):
            return matches
        item = np.searchsorted(matches.start, self._lively, "right") - 1
        inside = item >= 0
        at, item = self._lively[inside], item[inside]
        hit = np.zeros(len(at), np.bool_)
        for slot in range(len(matches.template.runs) - 1):
            start, end = matches.slot(slot)
            hit |= (start[item] <= at) & (at < end[item])
        inert = np.ones(len(matches), np.bool_)
        inert[item[hit]] = False
        return matches if inert.all() else matches.those(inert)

    def _find_lively(self) -> Offsets:
        """Offsets of what is more than a character in text: references, CR, forbidden characters, the end of CDATA.

        References to the five entities that every document has are no matter: whoever takes a text undoes them.
        """
        matches = []
        is_control = self.byte < _BLANK
        # All of them are line feeds in most windows; to count is cheaper than to find.
        if np.count_nonzero(is_control) > np.count_nonzero(self.byte == _LF):
            control = np.flatnonzero(is_control)
            which = self.byte[control]
            matches.append(control[(which != _TAB) & (which != _LF)])
        if b"&" in self.text:
            references = np.flatnonzero(self.byte == _AMPERSAND)
            words, predefined = self._word[references], np.zeros(len(references), np.bool_)
            for value, mask in map(_as_word, _PREDEFINED):
                predefined |= (words & mask) == value
            self.has_references = bool(predefined.any())
            matches.append(references[~predefined])
        if b"]" in self.text:
            matches.append(np.flatnonzero((self.byte[:-2] == _BRACKET) & (self.byte[1:-1] == _BRACKET)))
        return np.sort(np.concatenate(matches)) if matches else np.zeros(0, np.int64)


def _as_word(literal: bytes) -> tuple[np.uint64, np.uint64]:
    """Up to eight bytes as a word, and the mask of those that count."""
    value = int.from_bytes(literal, "little")
    return np.uint64(value), np.uint64((1 << 8 * len(literal)) - 1)
