"""Findings: observations about a source that are not errors, counted by the tasks that read it, and added up.

Nothing is searched for item by item: the counts are by-products of parsing. Only if something is missing are the
documents read again, for a sample of paths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from xmlstream.dataclasses import dataclass, field, fields
from xmlstream.operators.storage.records import Record

NAMES_SHOWN = 20
"""The greatest number of names of each kind, since people read them."""

NameSet = frozenset[str]


@dataclass(frozen=True, slots=True)
class Findings(Record):
    """The observations in a part of a source, or in all of it so far.

    Attributes:
        read: The attributes whose values were read.
        had: Those of them that at least one tuple had.
        leaves: Paths of leaves below the row element, if an attribute was missing.
        elements: Names of the elements in the document, if it had no item.
        foreign: Names of elements with the items' local names that are neither tuple nor punctuation, because of
            their namespaces.
        stray: Names of punctuations that differ from the tuples' names.
        said: The number of punctuations by the attributes that they restrict, as a scheme: `hour`, `ts prefix`.
        void: The number of punctuations that close nothing, by the undeclared leaf that they restrict.
        bounds: The number of punctuations that hold until the stream closes a bound, by the bound's attribute.
        ended: The number of those that arrived after the bound was closed.
        aside: The number of diverted items, by kind.
    """

    bytes: int = 0
    tuples: int = 0
    read: NameSet = frozenset()
    had: NameSet = frozenset()
    leaves: NameSet = frozenset()
    elements: NameSet = frozenset()
    foreign: NameSet = frozenset()
    stray: NameSet = frozenset()
    said: Mapping[str, int] = field(default_factory=Counter)
    void: Mapping[str, int] = field(default_factory=Counter)
    bounds: Mapping[str, int] = field(default_factory=Counter)
    ended: Mapping[str, int] = field(default_factory=Counter)
    aside: Mapping[str, int] = field(default_factory=Counter)

    def __add__(self, other: Findings) -> Findings:
        """Adds the findings of two parts."""
        return Findings(
            **{f.name: _sum(f.name, getattr(self, f.name), getattr(other, f.name)) for f in fields(Findings)}
        )

    @property
    def missing(self) -> NameSet:
        """The attributes that were read and that no tuple had."""
        return self.read - self.had if self.tuples else frozenset()

    @property
    def is_nothing(self) -> bool:
        """Whether something was read, and it had no item."""
        return bool(self.bytes) and not (self.tuples or self.said or self.void or self.aside)

    @property
    def saw_nothing(self) -> bool:
        """Whether there are only other elements than items, or no tuple had any attribute that was read."""
        return (self.is_nothing and bool(self.elements or self.foreign)) or bool(self.missing and not self.had)


Findings.sparse = tuple(each.name for each in fields(Findings))


def _sum(name: str, one: Any, other: Any) -> Any:
    match one:
        case int():
            return one + other
        case frozenset():
            return one | other if name in ("read", "had") else few_names(one | other)
        case _:
            both = Counter(one) + Counter(other)
            return Counter(dict(both.most_common(NAMES_SHOWN)))


def few_names(names: Iterable[str]) -> NameSet:
    """Returns the first names in order, a deterministic choice."""
    return frozenset(islice(sorted(set(names)), NAMES_SHOWN))
