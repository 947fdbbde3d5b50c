"""Elements and XML attributes of a text, selected by their names.

A name is compared by its eight first or last bytes, as one number, for all elements or attributes at once. For many
names the elements are grouped by such numbers, so that each is looked at once and not for every name.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xmlstream.dataclasses import dataclass
from xmlstream.sources.xml.options.arrow_text import Mask, only_bytes
from xmlstream.sources.xml.parser.token_window import WORD, TokenWindow, UndecidedError, Words
from xmlstream.sources.xml.splits.all_tags import Offsets

_EQUALS, _COLON = b"=:"
_IS_BLANK, _ENDS_NO_NAME = only_bytes(b" \t\r\n"), only_bytes(b" \t\r\n\"'")

MOST_NAMES = 4_000
"""The greatest number of qualified names by which elements are selected at once."""

MANY_NAMES = 16
"""The number of names from which on elements are grouped by them, instead of being compared with each."""


class NamedElements:
    """Selects elements by their qualified names."""

    def __init__(self, window: TokenWindow, elements: Offsets, names: Sequence[bytes]) -> None:
        """Prepares to select among these elements by these names; UndecidedError if there are too many."""
        if len(names) > MOST_NAMES:
            raise UndecidedError
        self._window, self._elements = window, elements
        self._words = window.first_words(elements)
        self._groups = self._grouped({_key(name) for name in names}) if len(names) > MANY_NAMES else None

    def having(self, name: bytes) -> Offsets:
        """Returns the indexes of the elements with a name."""
        if self._groups is None:
            return self._window.are_named(self._elements, self._words, name)
        found = [
            among[self._window.are_named(self._elements[among], self._words[among], name)]
            for among in (self._groups[_key(name)], self._others)
            if len(among)
        ]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *found])) if len(found) != 1 else found[0]

    def _grouped(self, known: set[int]) -> dict[int, Offsets]:
        """Returns the elements without attributes by the keys of their names; `_others` has all that are in no group.

        Names that begin and end alike have one key, and share a group.
        """
        window, elements = self._window, self._elements
        stop = window.end[elements] - 2 + window.opens[elements]
        length = stop - (window.start[elements] + 1)
        shift = (8 * (WORD - np.minimum(length, WORD))).astype(np.uint64)
        keys = self._words << shift >> shift
        longer = np.flatnonzero(length > WORD)
        keys[longer] ^= window.words_before(stop[longer]) * np.uint64(_SPREAD)
        declared = np.array(sorted(known), np.uint64)
        place = np.searchsorted(declared, keys)
        place[place == len(declared)] = 0
        place[(declared[place] != keys) | _ENDS_NO_NAME[window.byte[stop - 1]]] = len(declared)
        order = np.argsort(place.astype(np.int16 if len(declared) < 1 << 15 else np.int64), kind="stable")
        bounds = np.searchsorted(place[order], np.arange(len(declared) + 1))
        self._others = order[bounds[-1] :]
        return {key: order[bounds[at] : bounds[at + 1]] for at, key in enumerate(declared.tolist())}


_SPREAD = 0x9E3779B97F4A7C15


def _key(name: bytes) -> int:
    """Returns a number for a name, of its first and its last eight bytes, which another name may have, too."""
    key = int.from_bytes(name[:WORD], "little")
    if len(name) > WORD:
        key ^= int.from_bytes(name[-WORD:], "little") * _SPREAD
    return key & ((1 << 64) - 1)


@dataclass(frozen=True, slots=True)
class Attributes:
    """The XML attributes of some elements.

    Attributes:
        owner: The index, among the elements, of the owner of each.
        begin: The offset of each value, after its quote.
        end: The offset after each value.
        tails: The eight bytes before each equals sign, the end of the name.
        undecided: Which of the elements have attributes of another form than `name="value"`.
    """

    window: TokenWindow
    owner: Offsets
    begin: Offsets
    end: Offsets
    tails: Words
    undecided: Mask

    @staticmethod
    def of(window: TokenWindow, elements: Offsets) -> Attributes:
        """Finds the attributes of elements."""
        start, end = window.start[elements], window.end[elements]
        first, last = np.searchsorted(window.quotes, start), np.searchsorted(window.quotes, end)
        count = last - first
        undecided: Mask = count % 2 == 1
        count[undecided] = 0
        which = np.repeat(np.arange(len(elements)), count)
        within = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        place = window.quotes[first[which] + within]
        owner, begin, close = which[::2], place[::2] + 1, place[1::2]
        undecided[owner[(window.byte[begin - 2] != _EQUALS) | _IS_BLANK[window.byte[begin - 3]]]] = True
        if b"'" in window.text:
            undecided |= window.have_apostrophes(start, end)
        return Attributes(window, owner, begin, close, window.words_before(begin - 2), undecided)

    def named(self, name: bytes) -> tuple[Offsets, Offsets]:
        """Returns which attributes have a qualified name, and which elements have one with a prefix before it."""
        part = name[-WORD:]
        found = np.flatnonzero(self.tails >> np.uint64(64 - 8 * len(part)) == np.uint64(int.from_bytes(part, "little")))
        at = self.begin[found] - (2 + len(name))
        if len(name) > WORD:
            fits = self.window.is_at(at, name[:-WORD])
            found, at = found[fits], at[fits]
        before = self.window.byte[at - 1]
        blank = _IS_BLANK[before]
        if blank.all():
            return found, found[:0]
        return found[blank], self.owner[found[before == _COLON]]
