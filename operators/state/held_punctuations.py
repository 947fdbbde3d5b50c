"""Held punctuations: a set of them that outlives the slice, with what the slice changed, for its commit.

A set takes in what is said, and forgets isolated punctuations (`punct_ns.isolated`) that can do nothing more. A change
is recorded as the text of a punctuation, behind a minus where it was forgotten. What came and went within one slice is
not recorded at all: an operator that forgets what it hands on commits nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from punct_ns.isolated import isolated
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.schema import Schema

FORGOTTEN = "-"
"""Before the text of a punctuation that was forgotten."""


class HeldPunctuations:
    """A set of punctuations of an operator or a source."""

    def __init__(self, schema: Schema, committed: Iterable[str] = ()) -> None:
        """Make it, empty or as the changes that were committed make it."""
        self.set = PunctuationSet(schema)
        self._changes: list[str] = []
        self._undoable: dict[str, None] = {}
        for gone, texts in groupby(committed, key=lambda text: text.startswith(FORGOTTEN)):
            said = (Punctuation.parse(text.removeprefix(FORGOTTEN), schema) for text in texts)
            if gone:
                self.set.forget(said)
            else:
                self.set.add_all(said)

    def absorb(self, punctuations: Iterable[Punctuation]) -> list[Punctuation]:
        """Adds them; returns, minimal, those that said something new."""
        new = self.set.add_all(punctuations)
        texts = [str(p) for p in new]
        self._changes += texts
        if not self.set.entries:
            # What absorbs no other leaves the set as it was, when it goes again.
            self._undoable |= dict.fromkeys(texts)
        return new

    def forget(self, punctuations: Iterable[Punctuation]) -> None:
        """Takes out the isolated ones of them, and what they cover; what coalesces stays."""
        gone = isolated(punctuations) if self.set else []
        if not gone:
            return
        self.set.forget(gone)
        texts = dict.fromkeys(map(str, gone))
        undone = texts.keys() & self._undoable.keys()
        self._changes = [text for text in self._changes if text not in undone]
        self._changes += (f"{FORGOTTEN}{text}" for text in texts if text not in undone)
        for text in undone:
            del self._undoable[text]

    @property
    def extent(self) -> int:
        """How many ranges and single values it holds, and punctuations that restrict several attributes."""
        return self.set.extent

    def record(self, whole: bool) -> list[str]:
        """What this slice changed, or the whole set, in notation."""
        changes, self._changes, self._undoable = self._changes, [], {}
        return [str(p) for p in self.set] if whole else changes
