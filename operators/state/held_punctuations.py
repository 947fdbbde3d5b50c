"""Held punctuations: a set of them that outlives the slice, with what the slice changed, for its commit.

A set takes in what is said, and forgets isolated punctuations (`punct_ns.isolated`) that can do nothing more. A change
is recorded as the text of a punctuation, behind a minus where it was forgotten. What came and went within one slice is
not recorded at all: an operator that forgets what it hands on commits nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from punct_ns.isolated import isolated
from punct_ns.pattern import List
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.schema import Schema

FORGOTTEN = "-"
"""Before the text of a punctuation that was forgotten."""

MOVED = "moved "
"""Before the name of an attribute whose lone values were moved to where the commit says."""


class HeldPunctuations:
    """A set of punctuations of an operator or a source."""

    def __init__(self, schema: Schema, committed: Iterable[str] = ()) -> None:
        """Make it, empty or as the changes that were committed make it."""
        self.set = PunctuationSet(schema)
        self._changes: list[str] = []
        self._undoable: dict[str, None] = {}
        for mark, texts in groupby(committed, key=_mark):
            if mark == MOVED:
                for text in texts:
                    self._forget_lone(schema.index(text.removeprefix(MOVED)))
                continue
            said = (Punctuation.parse(text.removeprefix(mark), schema) for text in texts)
            if mark == FORGOTTEN:
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

    def move(self, i: int) -> None:
        """Takes out the lone values of the attribute at a place, which are elsewhere from now on."""
        self._forget_lone(i)
        self._changes.append(f"{MOVED}{self.set.schema[i].name}")
        self._undoable = {}

    def _forget_lone(self, i: int) -> None:
        if i in self.set.singles:
            lone = self.set.singles[i].value_set().lone_and_longer()[0]
            self.set.forget([Punctuation.at(self.set.schema, {i: List(tuple(lone))})])

    @property
    def extent(self) -> int:
        """How many ranges and single values it holds, and punctuations that restrict several attributes."""
        return self.set.extent

    def record(self, whole: bool) -> list[str]:
        """What this slice changed, or the whole set, in notation."""
        changes, self._changes, self._undoable = self._changes, [], {}
        return [str(p) for p in self.set] if whole else changes


def said_anew(changes: Iterable[str], schema: Schema) -> Iterator[Punctuation]:
    """The punctuations that recorded changes have added; what they forgot or moved was true all the same.

    >>> [str(p) for p in said_anew(["<a>", "moved sid", "-<b>"], Schema.parse("sid STRING"))]
    ['<a>']
    """
    return (Punctuation.parse(text, schema) for text in changes if not _mark(text))


def _mark(text: str) -> str:
    """What a recorded change begins with, if it is not something new."""
    return next((mark for mark in (FORGOTTEN, MOVED) if text.startswith(mark)), "")
