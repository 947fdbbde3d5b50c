"""Punctuations over another schema: attributes renamed or widened without loss, or only some of the attributes.

*Recast*: the other values of a wider domain cannot come from the stream, so a pattern means the same there: it is read
anew as it stands, and only its values change their type.

*Universal projection*: what punctuations close for some attributes alone, whatever the others are. A punctuation over
the attributes that stay holds when every extension over the removed ones is covered, by one punctuation or by several
together: `[0,30]` and `[31,59]` of a `min` declared 0..59 leave the hour they stand with. This is projPs of Tucker et
al. 2003, §5.3, in the more informative form that the paper announces, and the groupPs of its Table 3.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import product

from punct_ns.cover import ENOUGH, Budget, TooHardError, covered_regions, is_exact
from punct_ns.domain import Domain, Value
from punct_ns.notation import format_pattern, parse_pattern
from punct_ns.pattern import (
    EMPTY,
    NOT_NULL,
    WILDCARD,
    Constant,
    List,
    Pattern,
    Range,
    canonical,
    covers,
    meet,
    pattern_of,
    patterns,
    values,
)
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.schema import Schema
from punct_ns.value_set import ValueSet


def recast(punctuation: Punctuation, schema: Schema) -> Punctuation:
    """The punctuation over `schema`, attribute by attribute, by position.

    >>> narrow, wide = Schema.parse("h INT"), Schema.parse("hour BIGINT")
    >>> str(recast(Punctuation.parse("<[3,7]>", narrow), wide))
    '<[3,7]>'
    """
    if punctuation.schema == schema:
        return punctuation
    pairs = zip(punctuation.patterns, punctuation.schema, schema, strict=True)
    patterns = tuple(recast_pattern(p, old.domain, new.domain) for p, old, new in pairs)
    return Punctuation(schema, patterns, punctuation.lifespan)


def recast_all(punctuations: Iterable[Punctuation], schema: Schema) -> Iterator[Punctuation]:
    """The punctuations over `schema` that say together what these do: `recast`, and of lists what it leaves out.

    >>> few, wide = Schema.parse("h INT", domains="h 0..4"), Schema.parse("hour INT")
    >>> [str(p) for p in recast_all([Punctuation.parse("<{2,4}>", few)], wide)]
    ['<[4,)>', '<2>']
    """
    for p in punctuations:
        if p.schema == schema:
            yield p
            continue
        pairs = zip(p.patterns, p.schema, schema, strict=True)
        for choice in product(*(recast_patterns(own, old.domain, new.domain) for own, old, new in pairs)):
            yield Punctuation(schema, choice, p.lifespan)


def narrowed(pattern: Pattern, old: Domain, new: Domain) -> Pattern:
    """The pattern over a domain of which the old one is wider, as far as it is of its values; the wildcard at worst.

    >>> wide, narrow = Domain("DOUBLE"), Domain("INT")
    >>> narrowed(Constant(5.0), wide, narrow)
    Constant(value=5)
    >>> narrowed(Range(1.5, None), wide, narrow)
    Range(low=2, high=None, low_closed=True, high_closed=False)
    """
    if old == new:
        return pattern
    if isinstance(pattern, Constant | List):
        listed = pattern.values if isinstance(pattern, List) else (pattern.value,)
        whole = (int(v) if isinstance(v, float | Decimal) and v == v // 1 else v for v in listed)
        try:
            return canonical(List(tuple(None if v is None else new.normal(v) for v in whole)), new)
        except ValueError:
            return WILDCARD
    try:
        return parse_pattern(format_pattern(pattern, old), new)
    except ValueError:
        return WILDCARD


def asked_of(punctuation: Punctuation, schema: Schema) -> Punctuation | None:
    """What must be said over `schema`, of which the punctuation's is wider, that recast it says all of the punctuation.

    None where no punctuation does but that of all.

    >>> wide, narrow = Schema.of(a="INT", b="INT"), Schema.parse("a INT NOT NULL, b INT")
    >>> str(asked_of(Punctuation.parse("<[1,5], 1>", wide), narrow))
    '<[1,5], 1>'
    >>> asked_of(Punctuation.parse("<null, 1>", wide), narrow)
    """
    pairs = zip(punctuation.patterns, punctuation.schema, schema, strict=True)
    found = [asked_pattern(p, wide.domain, own.domain) for p, wide, own in pairs]
    return None if None in found else Punctuation(schema, tuple(p for p in found if p is not None))


def asked_pattern(pattern: Pattern, wide: Domain, narrow: Domain) -> Pattern | None:
    """The same of one attribute: what is asked of its values, and of those that lie beyond its bounds the last one.

    Where the wide one has no null, none is asked for.

    >>> wide, few = Domain("INT"), Domain("INT", low=0, high=4)
    >>> asked_pattern(Range(2, None), wide, few), asked_pattern(Constant(7), wide, few)
    (Range(low=3, high=None, low_closed=True, high_closed=False), Constant(value=4))
    >>> format_pattern(asked_pattern(WILDCARD, Domain("INT", nullable=False), wide), wide)
    '(,)'
    """
    found = narrowed(pattern, wide, narrow)
    if narrow.nullable and not wide.nullable:
        found = meet(found, NOT_NULL, narrow)
    if not covers(recast_pattern(found, narrow, wide), pattern, wide):
        with_ends = values(found, narrow).union(ValueSet.of(narrow, _ends_beyond(pattern, wide, narrow)))
        found = pattern_of(with_ends) or WILDCARD
    return found if covers(recast_pattern(found, narrow, wide), pattern, wide) and found != EMPTY else None


def _ends_beyond(pattern: Pattern, wide: Domain, narrow: Domain) -> Iterator[Value]:
    """The bounds of a narrower domain that a pattern has values beyond."""
    for end, above in ((narrow.low, False), (narrow.high, True)):
        if end is not None:
            cut = wide.cut(wide.normal(end), after=above)
            beyond = ValueSet.of_intervals(wide, [(cut, wide.top) if above else (wide.bottom, cut)])
            if not values(pattern, wide).intersection(beyond).is_empty:
                yield end


def recast_pattern(pattern: Pattern, old: Domain, new: Domain) -> Pattern:
    """The pattern over a domain that holds the old one's values; of values that cannot come it may say more.

    >>> recast_pattern(Constant(5), Domain("INT"), Domain("DOUBLE"))
    Constant(value=5.0)
    >>> recast_pattern(Constant(4), Domain("INT", low=0, high=4), Domain("INT"))
    Range(low=4, high=None, low_closed=True, high_closed=False)
    """
    if old == new:
        return pattern

    def moved(value: Value | None) -> Value | None:
        return None if value is None else new.normal(value)

    match pattern:
        case Constant(value=value) if value is not None and not old.opaque:
            # As of ranges, the first and the last value stand for all that would lie beyond.
            low = None if old.cut(value, after=False) == old.bottom else moved(value)
            high = None if old.cut(value, after=True) == old.top else moved(value)
            pattern = Range(low, high, low is not None, high is not None)
        case Range():
            pattern = Range(moved(pattern.low), moved(pattern.high), pattern.low_closed, pattern.high_closed)
        case List(values=listed):
            pattern = List(tuple(map(moved, listed)))
    return canonical(pattern, new)


def recast_patterns(pattern: Pattern, old: Domain, new: Domain) -> tuple[Pattern, ...]:
    """The patterns that together are the same over a domain that holds the old one's values.

    A list that has the first or the last value of the old domain says that nothing comes beyond it, which is a range.
    """
    if old == new or not isinstance(pattern, List) or old.opaque:
        return (recast_pattern(pattern, old, new),)
    present = [value for value in pattern.values if value is not None]
    ends = [v for v in present if old.bottom == old.cut(v, after=False) or old.cut(v, after=True) == old.top]
    others = canonical(List(tuple(value for value in pattern.values if value not in ends)), old)
    parts = [*(Constant(value) for value in ends), *([] if others == EMPTY else [others])]
    return tuple(recast_pattern(part, old, new) for part in parts)


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
