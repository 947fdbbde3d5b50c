"""Templates of regular items, literal markup with slots between, and the items in a text that match one.

A template is built from a sample item: its slots are filled with placeholders, and the reference reader shows which
attribute each of them is. Any text that has the same literal markup, and in the slots no characters with a meaning in
XML, is then well-formed wherever the sample is, and is read in the same way.

All items of a template in a window of text are recognised at once. It takes a few comparisons of eight-byte words per
run of a template, each for all candidates of the window.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import accumulate

import numpy as np
import numpy.typing as npt
from lxml import etree

from xmlstream.dataclasses import dataclass
from xmlstream.sources.xml.options.arrow_text import Mask
from xmlstream.sources.xml.parser.elements import UnreadableError
from xmlstream.sources.xml.parser.item_reader import ItemReader, VoidPunctuationError
from xmlstream.sources.xml.splits.all_tags import Offsets
from xmlstream.sources.xml.splits.tags import parse_content

MOST_SLOTS = 1_000
"""The greatest number of slots of a template: each costs several passes over the items, the parser needs only one."""

_TAG = re.compile(rb"<(/?)[^<>\"'!?]*(?:(?:\"[^\"<]*\"|'[^'<]*')[^<>\"']*)*>")
# Other attributes stay in the markup: nil, declarations of namespaces, and values that libxml2 checks.
_PLAIN_ATTRIBUTE = re.compile(
    rb"(?<=[ \t\r\n])(?!xmlns[=:]|xml:)(?:[^\s<>\"'=:]+:(?!nil=))?[^\s<>\"'=:]+=\"([^\"<]*)\""
)


@dataclass(frozen=True, slots=True)
class ItemTemplate:
    """Literal runs with a slot between any two.

    Attributes:
        runs: The literal text; every slot is followed by `<`, or by the quote that ends an attribute's value.
        places: The number of delimiters (`<`, and quotes if there are attributes) before each run.
        delimiters: The number of all delimiters.
        is_punctuation: Whether the item is a punctuation; otherwise it is a tuple.
        sources: For each attribute its slot, its constant text, or None if it is absent; for a punctuation, also for
            the lifespan.
        quoted: For each slot, whether it is the value of an XML attribute.
        stream: The number of the source, among those read together, to which the items belong.
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
        """Builds the template of an item; None if it has none that recognises others safely.

        Args:
            sample: The item's text.
            open_: Start tags of the elements around it.
            reader: The reference reader.
            quotes: Whether quotes are delimiters, so that values of XML attributes may be slots.
            stream: The number of the reader's source.
        """
        if b"<!" in sample or b"<?" in sample or any(b"'" in tag[0] for tag in _TAG.finditer(sample)):
            return None
        runs, quoted = _runs(sample, quotes=quotes, tested=reader.tested)
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
        if any(isinstance(text, list | dict) for text in texts):
            return None  # an array or a structure
        sources = tuple(None if text is None else slots.get(text, text) for text in texts)
        if any(isinstance(source, str) and _PLACEHOLDER in source for source in sources):
            return None  # a text that consists of several slots
        counts = [run.count(b"<") + (run.count(b'"') if quotes else 0) for run in runs]
        places = tuple(accumulate(counts[:-1], initial=0))
        return ItemTemplate(tuple(runs), places, sum(counts), is_punctuation, sources, tuple(quoted), stream)


_PLACEHOLDER = "\ue0ff"


def _placeholder(slot: int) -> bytes:
    return f"{_PLACEHOLDER}{slot}{_PLACEHOLDER}".encode()


def _runs(sample: bytes, *, quotes: bool, tested: Collection[str]) -> tuple[list[bytes], list[bool]]:
    """Returns the literal runs of a sample, and whether each slot between them is an attribute's value.

    The values of the XML attributes `tested` are literal.
    """
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
                if not tested or value[0].partition(b"=")[0].strip().rpartition(b":")[2].decode() not in tested
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
        at: For each run of the template, its offset in the window for each item.
    """

    template: ItemTemplate
    at: list[Offsets]

    def __len__(self) -> int:
        return len(self.at[0])

    @property
    def start(self) -> Offsets:
        """The offset of each item."""
        return self.at[0]

    @property
    def end(self) -> Offsets:
        """The end offset of each item."""
        return self.at[-1] + len(self.template.runs[-1])

    def slot(self, slot: int) -> tuple[Offsets, Offsets]:
        """Returns the begin and end offsets of a slot for each item."""
        return self.at[slot] + len(self.template.runs[slot]), self.at[slot + 1]

    def those(self, which: Offsets | Mask) -> Matches:
        """Returns some of the items, in the given order."""
        return Matches(self.template, [at[which] for at in self.at])


class TextWindow:
    """A text with its delimiters, in which items of templates are searched.

    Attributes:
        quotes: Whether quotes are delimiters.
    """

    def __init__(self, text: bytes, *, quotes: bool) -> None:
        """Finds the delimiters: `<`, and quotes if `quotes`."""
        padded = text + bytes(_WORD)
        self.text, self.quotes, self._found = text, quotes, dict[int, Matches]()
        self.byte: npt.NDArray[np.uint8] = np.frombuffer(padded, np.uint8)[: len(text)]
        # The word of eight bytes at every offset.
        self._word = np.ndarray((len(text) + 1,), np.dtype("<u8"), padded, strides=(1,))
        delimits = self.byte == _LT
        if quotes:
            delimits |= self.byte == _QUOTE
        self._delimiters: Offsets = np.flatnonzero(delimits)
        self._first = self._word[self._delimiters]
        self.has_references = False
        self._lively = self._find_lively()

    def find(self, template: ItemTemplate) -> Matches:
        """Returns the items of a template."""
        if id(template) not in self._found:
            self._found[id(template)] = self._find(template)
        return self._found[id(template)]

    def _find(self, template: ItemTemplate) -> Matches:
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
        """Returns the items whose slots contain nothing with a meaning in XML, and no forbidden characters."""
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
        """Returns the offsets of special characters: references, CR, forbidden characters, the end of CDATA.

        References to the five predefined entities do not count: `dereferenced` replaces them.
        """
        matches = []
        is_control = self.byte < _BLANK
        # In most windows all of them are line feeds; counting is cheaper than finding.
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
    """Returns up to eight bytes as a word, with a mask of the significant bits."""
    value = int.from_bytes(literal, "little")
    return np.uint64(value), np.uint64((1 << 8 * len(literal)) - 1)
