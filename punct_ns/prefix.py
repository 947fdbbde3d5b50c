"""The largest covered prefix of an order: the tuples that no later tuple can equal or precede.

This is `init` of Tucker et al. 2003, §5.2: if `[2,4]` of the hours is closed there is no such prefix, and once `[0,3]`
is closed too, it is `[0,4]`. Several attributes are ordered lexicographically: if all of hour 4 is closed, and
the first half of hour 5, the prefix ends within hour 5. A dense attribute mostly has no next value within which
a prefix could end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.domain import BEYOND, Domain
from xmlstream.punct_ns.pattern import NULL, WILDCARD, Constant, Pattern, canonical, matches, patterns, values
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.recast import project
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.value_set import ValueSet


@dataclass(frozen=True, slots=True)
class Direction:
    """The sort direction of one attribute, and whether null comes first."""

    descending: bool = False
    nulls_first: bool = True


def covered_prefix(closed: PunctuationSet, directions: Sequence[Direction]) -> list[Punctuation]:
    """Returns the covered prefix, minimal, for the set's attributes in order, each in its direction.

    Exact as far as `project` is; beyond, the prefix may be shorter but never longer.

    >>> hours = Schema.parse("hour INT NOT NULL", domains="hour 0..")
    >>> closed = PunctuationSet(hours, [Punctuation.of(hours, hour="[2,4]")])
    >>> covered_prefix(closed, [Direction()])
    []
    >>> closed.add(Punctuation.of(hours, hour="[0,3]"))
    True
    >>> [str(p) for p in covered_prefix(closed, [Direction()])]
    ['<(,4]>']
    """
    schema = closed.schema
    return list(PunctuationSet(schema, (Punctuation(schema, each) for each in _prefix(closed, directions))))


def covered_prefixes(
    closed: PunctuationSet, new: Iterable[Punctuation], groups: int, directions: Sequence[Direction]
) -> Iterator[Punctuation]:
    """Yields, for groups by the set's first attributes, the covered prefix of the other attributes in each group.

    Considers only the groups that the new punctuations match; these must be in the set. The result is not minimal.

    >>> reports = Schema.parse("sid INT NOT NULL, hour INT NOT NULL")
    >>> punctuations = [Punctuation.of(reports, sid="1", hour="(,4]"), Punctuation.of(reports, hour="(,2]")]
    >>> closed = PunctuationSet(reports, punctuations)
    >>> [str(p) for p in covered_prefixes(closed, punctuations[:1], 1, [Direction()])]
    ['<*, (,2]>', '<1, (,4]>']
    """
    schema = closed.schema
    if closed.is_all:
        yield Punctuation.all(schema)
        return
    if not directions:
        yield from new
        return
    keys = Schema(schema.attributes[groups:])
    whole_groups = (p.patterns[groups:] for p in closed if all(i >= groups for i in p.restricted))
    everywhere = PunctuationSet(keys, (Punctuation(keys, each) for each in whole_groups))
    for prefix in covered_prefix(everywhere, directions):
        yield Punctuation(schema, (*(WILDCARD for _ in range(groups)), *prefix.patterns))
    for box in dict.fromkeys(p.patterns[:groups] for p in new if groups):
        for cell, punctuations in _cells(box, closed):
            within = PunctuationSet(keys, (Punctuation(keys, each[groups:]) for each in punctuations))
            for prefix in covered_prefix(within, directions):
                for chosen in product(*map(patterns, cell)):
                    yield Punctuation(schema, (*chosen, *prefix.patterns))


_Punctuations = list[tuple[Pattern, ...]]
"""Punctuations, each as its patterns."""


def _cells(box: Sequence[Pattern], closed: PunctuationSet) -> list[tuple[tuple[ValueSet, ...], _Punctuations]]:
    """Splits the groups of a box into parts, each with the punctuations that match all of it; the others match none."""
    schema = closed.schema
    given = {i: pattern for i, pattern in enumerate(box) if pattern != WILDCARD}
    punctuations = [entry.punctuation.patterns for entry in closed.several(given)]
    for i, single in closed.singles.items():
        punctuations += [Punctuation.at(schema, {i: pattern}).patterns for pattern in single.patterns()]
    cells: list[tuple[tuple[ValueSet, ...], _Punctuations]] = [((), punctuations)]
    for i, pattern in enumerate(box):
        here = values(pattern, schema[i].domain)
        cells = [((*cell, part), those) for cell, left in cells for part, those in _parts(here, i, left)]
    return cells


def _parts(here: ValueSet, i: int, punctuations: _Punctuations) -> list[tuple[ValueSet, _Punctuations]]:
    """Splits values of one attribute by the punctuations that match them; parts that few match come first."""
    by_pattern: dict[Pattern, _Punctuations] = {}
    for each in punctuations:
        by_pattern.setdefault(each[i], []).append(each)
    parts = [(here, by_pattern.pop(WILDCARD, []))]
    for pattern, those in by_pattern.items():
        matched = values(pattern, here.domain)
        for at in range(len(parts)):
            part, before = parts[at]
            inside, outside = part.intersection(matched), part.difference(matched)
            if inside.is_empty:
                continue
            parts[at] = (inside, [*before, *those])
            if not outside.is_empty:
                parts[at] = (outside, before)
                parts.append((inside, [*before, *those]))
            matched = matched.difference(inside)
            if matched.is_empty:
                break
    return parts


def prefix_until(pattern: Pattern, domain: Domain, direction: Direction) -> tuple[Pattern, ...]:
    """Returns the prefix of an attribute's order that ends with the last of some values; null, if in it, separately.

    >>> prefix_until(Constant(5), Domain("INT"), Direction())
    (Range(low=None, high=5, low_closed=False, high_closed=True), Constant(value=None))
    >>> prefix_until(Constant(5), Domain("INT"), Direction(descending=True, nulls_first=False))
    (Range(low=5, high=None, low_closed=True, high_closed=False),)
    """
    ending = values(pattern, domain)
    if ending.null and not direction.nulls_first:
        return (WILDCARD,)
    if not ending.cuts:
        pairs = []
    elif direction.descending:
        pairs = [(ending.cuts[0], domain.top)]
    else:
        pairs = [(domain.bottom, domain.top if len(ending.cuts) % 2 else ending.cuts[-1])]
    return patterns(ValueSet.of_intervals(domain, pairs, null=domain.nullable and direction.nulls_first))


def _prefix(closed: PunctuationSet, directions: Sequence[Direction]) -> Iterator[tuple[Pattern, ...]]:
    """Yields the closed prefix of the first attribute; then, within its next value, that of the other attributes."""
    first, others = closed.schema[0], Schema(closed.schema.attributes[1:])
    alone = Schema((first,))
    whole = PunctuationSet(alone, project(closed, [first.name], alone)).values(first.name)
    begun, following = _begun(whole, directions[0])
    for pattern in patterns(begun):
        yield (pattern, *(WILDCARD for _ in others))
    if following is None or not others.attributes:
        return
    after_it = (p.patterns[1:] for p in closed if matches(p.patterns[0], following.value))
    within = PunctuationSet(others, (Punctuation(others, each) for each in after_it))
    for rest in _prefix(within, directions[1:]):
        yield (canonical(following, first.domain), *rest)


def _begun(whole: ValueSet, direction: Direction) -> tuple[ValueSet, Constant | None]:
    """Returns the values up to the first gap, with null; and the one value that follows, if it is the only one."""
    domain = whole.domain
    if domain.nullable and direction.nulls_first and not whole.null:
        return ValueSet(domain), NULL
    if whole.has_every_value:
        return whole, NULL if domain.nullable and not whole.null else None
    null = whole.null and direction.nulls_first
    if direction.descending:
        low = whole.cuts[-1] if len(whole.cuts) % 2 else domain.top
        return ValueSet(domain, (low,) if low != domain.top else (), null), _next_to(low, domain, above=False)
    begins = bool(whole.cuts) and whole.cuts[0] == domain.bottom
    high = whole.cuts[1] if begins else domain.bottom
    return ValueSet(domain, (domain.bottom, high) if begins else (), null), _next_to(high, domain, above=True)


def _next_to(cut: object, domain: Domain, *, above: bool) -> Constant | None:
    """Returns the value next to a cut; None if values are dense there, or end."""
    if domain.opaque or cut is BEYOND:
        return None
    value, is_there = domain.bound(cut, above=above)
    return Constant(value) if is_there else None
