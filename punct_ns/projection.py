"""Universal projection: what punctuations say of some attributes alone, whatever the others are.

A punctuation over the attributes that stay holds when every extension over the removed ones is covered, by one
punctuation or by several together: `[0,30]` and `[31,59]` of a `min` declared 0..59 leave the hour they stand with.
This is projPs of Tucker et al. 2003, §5.3, in the more informative form that the paper announces, and the groupPs
of its Table 3.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import product

from punct_ns.cover import ENOUGH, Budget, TooHardError, covered_regions, is_exact
from punct_ns.pattern import WILDCARD, Pattern, patterns, values
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.recast import recast_patterns
from punct_ns.schema import Schema
from punct_ns.value_set import ValueSet


def project(
    punctuations: Iterable[Punctuation],
    names: Sequence[str],
    schema: Schema,
    new: Iterable[Punctuation] | None = None,
) -> list[Punctuation]:
    """The punctuations over `schema` that hold for the named attributes, in the same order; minimal.

    Null is among the extensions unless the removed attribute is NOT NULL. Exact up to 4 restricted attributes and 64
    punctuations that complete each other; beyond, it may close less but never more. With `new`, only what those of
    the punctuations can have brought about is looked for, so that the cost follows them. An attribute named twice is
    described at each of its places, by a punctuation each.

    >>> reports = Schema.parse("hour INT, min INT NOT NULL", domains="min 0..59")
    >>> said = [Punctuation.parse(text, reports) for text in ("<5, [0,30]>", "<{5,6}, [31,59]>")]
    >>> [str(p) for p in project(said, ["hour"], Schema.parse("hour INT"))]
    ['<5>']
    """
    said = punctuations if isinstance(punctuations, PunctuationSet) else _gathered(punctuations)
    if said is None:
        return []
    places = [said.schema.index(name) for name in names]
    found = PunctuationSet(schema)
    if said.is_all:
        found.add(Punctuation.all(schema))
        return list(found)
    search = _Search(said, frozenset(places))
    for closed in search.said() if new is None else search.brought_about(new):
        for p in _placed(closed, places, said.schema, schema):
            found.add(p)
    return list(found)


class _Search:
    """What a set says of the attributes that stay."""

    def __init__(self, said: PunctuationSet, staying: frozenset[int]) -> None:
        self._said = said
        self._staying = staying

    def said(self) -> Iterator[Mapping[int, Pattern]]:
        """Patterns over the attributes that stay: what punctuations say of them alone, and what several complete."""
        others = yield from self._alone(self._said)
        boxes = [entry.box for entry in self._said.several() if not self._staying.issuperset(entry.restricted)]
        if is_exact(boxes):
            yield from self._completed({}, boxes, Budget())
            return
        budget = _budget_for(others)
        for there in dict.fromkeys(tuple(self._there(p).items()) for p in others):
            near = self._said.several(dict(there))
            boxes = [entry.box for entry in near if not self._staying.issuperset(entry.restricted)]
            yield from self._completed(dict(there), boxes, budget)

    def brought_about(self, new: Iterable[Punctuation]) -> Iterator[Mapping[int, Pattern]]:
        """The same, where the attributes that stay match what new punctuations say of them.

        The new ones may have coalesced with their fellows, and all that was said there may be needed.
        """
        others = yield from self._alone(new)
        alone = {i: single.value_set() for i, single in self._said.singles.items() if i in self._staying}
        budget = _budget_for(others)
        for there in dict.fromkeys(tuple(self._there(p).items()) for p in others):
            boxes: list[Mapping[int, ValueSet]] = [entry.box for entry in self._said.several(dict(there))]
            boxes += [{i: closed} for i, closed in alone.items()]
            yield from self._completed(dict(there), boxes, Budget() if is_exact(boxes) else budget)

    def _alone(self, ps: Iterable[Punctuation]) -> Generator[Mapping[int, Pattern], None, list[Punctuation]]:
        """What punctuations say that restrict only attributes that stay; returns the others."""
        others: list[Punctuation] = []
        for p in ps:
            if self._staying.issuperset(p.restricted):
                yield self._there(p)
            else:
                others.append(p)
        return others

    def _there(self, p: Punctuation) -> dict[int, Pattern]:
        return {i: p.patterns[i] for i in p.restricted if i in self._staying}

    def _completed(
        self, there: Mapping[int, Pattern], boxes: Sequence[Mapping[int, ValueSet]], budget: Budget
    ) -> Iterator[Mapping[int, Pattern]]:
        """What the boxes close where the attributes that stay match the given patterns."""
        target = {}
        for i in frozenset(there).union(*boxes):
            pattern = there.get(i, WILDCARD)
            domain = self._said.schema[i].domain
            target[i] = values(pattern, domain) if i in self._staying else self._said.open_part(i, pattern)
        try:
            for region in covered_regions(target, boxes, self._staying, budget):
                for chosen in product(*(patterns(part) for part in region.values())):
                    yield dict(zip(region, chosen, strict=True))
        except TooHardError:
            return


def _budget_for(asked: Sequence[Punctuation]) -> Budget:
    """Enough for many that are near a few others each, not for many that are near many."""
    return Budget(ENOUGH + 100 * len(asked))


def _gathered(punctuations: Iterable[Punctuation]) -> PunctuationSet | None:
    given = list(punctuations)
    return PunctuationSet(given[0].schema, given) if given else None


def _placed(found: Mapping[int, Pattern], places: Sequence[int], old: Schema, new: Schema) -> Iterator[Punctuation]:
    """The punctuation over the new schema; one for each choice of places where attributes stand several times."""
    restricted = {i: pattern for i, pattern in found.items() if pattern != WILDCARD}
    choices = [[at for at, place in enumerate(places) if place == i] for i in restricted]
    for chosen in product(*choices):
        pairs = zip(chosen, restricted.items(), strict=True)
        each = (recast_patterns(pattern, old[i].domain, new[at].domain) for at, (i, pattern) in pairs)
        for whole in product(*each):
            yield Punctuation.at(new, dict(zip(chosen, whole, strict=True)))
