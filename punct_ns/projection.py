"""Universal projection: what punctuations say of some attributes alone, whatever the others are.

A punctuation over the attributes that stay holds when every extension over the removed ones is covered, by one
punctuation or by several together: `[0,30]` and `[31,59]` of a `min` declared 0..59 leave the hour they stand with.
This is projPs of Tucker et al. 2003, §5.3, in the more informative form that the paper announces, and the groupPs
of its Table 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from punct_ns.cover import Budget, Cell, Cover, TooHardError
from punct_ns.pattern import WILDCARD, Pattern, patterns, values
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.recast import recast_pattern
from punct_ns.schema import Schema
from punct_ns.value_set import ValueSet

Region = dict[int, ValueSet]
"""A box over the attributes that stay, by their places in the input."""


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
    for patterns_at in search.closed(said) if new is None else search.closed_by(new):
        for p in _placed(patterns_at, places, said.schema, schema):
            found.add(p)
    return list(found)


class _Search:
    """What a set says of the attributes that stay."""

    def __init__(self, said: PunctuationSet, staying: frozenset[int]) -> None:
        self._said = said
        self._staying = staying
        self._budget = Budget()

    def closed(self, asked: Iterable[Punctuation]) -> Iterator[Mapping[int, Pattern]]:
        """Patterns over the attributes that stay, of all that the asked punctuations say by themselves or complete."""
        seen: set[tuple[tuple[int, Pattern], ...]] = set()
        for p in asked:
            within = {i: p.patterns[i] for i in p.restricted if i in self._staying}
            if len(within) == len(p.restricted):
                yield within
            elif (key := tuple(within.items())) not in seen:
                seen.add(key)
                yield from self._completed(within)

    def closed_by(self, new: Iterable[Punctuation]) -> Iterator[Mapping[int, Pattern]]:
        """The same for punctuations that were added lately, and may have coalesced with their fellows since."""
        for p in new:
            within = {i: p.patterns[i] for i in p.restricted if i in self._staying}
            yield from self.closed([p])
            if len(within) < len(p.restricted):
                yield from self._said_within(within)

    def _said_within(self, within: Mapping[int, Pattern]) -> Iterator[Mapping[int, Pattern]]:
        """What punctuations that restrict only attributes that stay say where those match the given patterns."""
        for i, single in self._said.singles.items():
            if i in self._staying:
                parts = single.patterns()
                if i in within:
                    wanted = values(within[i], self._said.schema[i].domain)
                    parts = patterns(single.value_set().intersection(wanted))
                yield from ({**within, i: part} for part in parts)
        for entry in self._said.several(within):
            if self._staying.issuperset(entry.restricted):
                met = entry.punctuation.meet(Punctuation.at(self._said.schema, within))
                if met is not None:
                    yield {i: met.patterns[i] for i in met.restricted}

    def _completed(self, within: Mapping[int, Pattern]) -> Iterator[Mapping[int, Pattern]]:
        """What several punctuations complete together where the attributes that stay match the given patterns."""
        near = [e for e in self._said.several(within) if not self._staying.issuperset(e.restricted)]
        cover = Cover(self._said.schema, [entry.box for entry in near], within, self._said.closes, self._budget)
        removed = cover.attributes - self._staying
        if cover.exact and not cover.whole(cover.everything, removed):
            return  # not even if all held for the same values
        try:
            for region in self._regions(cover, cover.everything, cover.attributes):
                for chosen in product(*(patterns(part) for part in region.values())):
                    yield dict(zip(region, chosen, strict=True))
        except TooHardError:
            return

    def _regions(self, cover: Cover, active: Cell, attributes: frozenset[int]) -> Iterator[Region]:
        """Boxes over the attributes that stay, for all of whose values the active boxes cover what is removed."""
        staying = attributes & self._staying
        restricted = [i for i in staying if any(i in cover.boxes[number] for number in active)]
        if restricted:
            attribute = cover.busiest(active, restricted)
            for cell, part in cover.cells(active, attribute):
                for region in self._regions(cover, cell, attributes - {attribute}):
                    yield {**region, attribute: part}
        elif cover.whole(active, attributes - staying):
            yield {i: cover.target(i) for i in staying}


def _gathered(punctuations: Iterable[Punctuation]) -> PunctuationSet | None:
    given = list(punctuations)
    return PunctuationSet(given[0].schema, given) if given else None


def _placed(found: Mapping[int, Pattern], places: Sequence[int], old: Schema, new: Schema) -> Iterator[Punctuation]:
    """The punctuation over the new schema; one for each choice of places where attributes stand several times."""
    restricted = {i: pattern for i, pattern in found.items() if pattern != WILDCARD}
    choices = [[at for at, place in enumerate(places) if place == i] for i in restricted]
    for chosen in product(*choices):
        pairs = zip(chosen, restricted.items(), strict=True)
        yield Punctuation.at(
            new, {at: recast_pattern(pattern, old[i].domain, new[at].domain) for at, (i, pattern) in pairs}
        )
