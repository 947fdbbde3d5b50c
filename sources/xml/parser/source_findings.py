"""Findings: what is noticed in a source and is no error, counted by the tasks that read it, and added up.

Nothing here is looked for item by item: the parser has it at hand, and the documents are looked at again, for a sample
of paths, only where something is missing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Any

NAMES_SHOWN = 20
"""Names that are kept of each kind at the most: they are shown to people."""

NameSet = frozenset[str]


@dataclass(frozen=True, slots=True)
class Findings:
    """What was noticed in a part of a source, or in all of it up to now.

    Attributes:
        bytes: How much of it was read.
        tuples: How many tuples came.
        read: The attributes whose values were looked for.
        had: Those of them that some tuple had.
        leaves: Paths of leaves below the row element, where an attribute was missing.
        elements: Names of the elements that are there, where no item was.
        foreign: Names of elements called as the items are, of other namespaces, which are neither tuple nor
            punctuation.
        stray: Names of punctuations that are called otherwise than the tuples.
        said: How many punctuations restrict which attributes, written as a scheme: `hour`, `ts prefix`.
        void: How many punctuations say nothing because of which leaf that the schema does not declare.
        bounds: How many punctuations hold until the stream has closed a bound of which attribute.
        ended: Of those, how many came when it had closed it.
        aside: How many items were set aside, and of which kind they were.
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
        """Both parts together."""
        return Findings(**{f.name: _sum(f.name, getattr(self, f.name), getattr(other, f.name)) for f in fields(self)})

    @property
    def missing(self) -> NameSet:
        """Attributes that were looked for, and no tuple had."""
        return self.read - self.had if self.tuples else frozenset()

    @property
    def is_nothing(self) -> bool:
        """Whether something was read, and no item was in it."""
        return bool(self.bytes) and not (self.tuples or self.said or self.void or self.aside)

    @property
    def saw_nothing(self) -> bool:
        """Whether other elements are there than items, or no tuple had anything that was looked for."""
        return (self.is_nothing and bool(self.elements or self.foreign)) or bool(self.missing and not self.had)

    def json(self) -> dict[str, Any]:
        """As JSON has it; what is empty is left out."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: sorted(v) if isinstance(v, frozenset) else v for name, v in found.items() if v}

    @staticmethod
    def of(json: Mapping[str, Any]) -> Findings:
        """What `json` gave."""
        known = {f.name for f in fields(Findings)}
        found: dict[str, Any] = {}
        for name, value in json.items():
            if name in known:
                found[name] = frozenset(value) if isinstance(value, list) else value
        return Findings(**found)

    def text(self) -> str:
        """As the text of a staged row."""
        return json.dumps(self.json())


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
    """Some of the names, the same of the same."""
    return frozenset(islice(sorted(set(names)), NAMES_SHOWN))
