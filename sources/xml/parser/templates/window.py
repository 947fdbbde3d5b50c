"""A window of text, in which all the items of a template are recognised at once.

It takes a few comparisons of eight-byte words per run of a template, each for all candidates of the window.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sources.xml.options.arrow_text import Mask
from sources.xml.parser.templates.item_template import ItemTemplate
from sources.xml.splits.split_points import Offsets

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
