"""Punctuations over another schema: with renamed or losslessly widened attributes, or with fewer attributes.

*Recast*: values that only the wider domain has cannot come from the stream, so a pattern keeps its meaning there: the
pattern stays, and only its values change their type.

*Universal projection*: what punctuations close for some of the attributes, for all values of the others. A punctuation
over the attributes that stay holds when every extension over the removed ones is covered, by one punctuation or by the
union of several: `[0,30]` and `[31,59]` of a `min` declared 0..59 close the hour that both restrict. This is projPs of
Tucker et al. 2003, §5.3, in the more informative form that the paper announces, and the groupPs of its Table 3.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import product

from xmlstream.punct_ns.cover import ENOUGH, Budget, TooHardError, covered_regions, is_exact
from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.notation import format_pattern, parse_pattern
from xmlstream.punct_ns.pattern import (
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
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.value_set import ValueSet


def recast(punctuation: Punctuation, schema: Schema) -> Punctuation:
    """Returns the punctuation over `schema`, attribute by attribute, by position.

    >>> narrow, wide = Schema.parse("h INT"), Schema.parse("hour BIGINT")
    >>> str(recast(Punctuation.parse("<[3,7]>", narrow), wide))
    '<[3,7]>'
    """
    if punctuation.schema == schema:
        return punctuation
    pairs = zip(punctuation.patterns, punctuation.schema, schema, strict=True)
    patterns = tuple(recast_pattern(p, old.domain, new.domain) for p, old, new in pairs)
    return Punctuation(schema, patterns, punctuation.lifespan)


def placed(punctuations: Iterable[Punctuation], names: Sequence[str], schema: Schema) -> list[Punctuation]:
    """Returns punctuations over these attributes, in order, as ones over a schema that has them, with its domains.

    >>> hours, reports = Schema.of(hour="INT"), Schema.of(sid="STRING", hour="INT")
    >>> [str(p) for p in placed([Punctuation.of(hours, hour="[3,7]")], hours.names, reports)]
    ['<*, [3,7]>']
    """
    places = [schema.index(name) for name in names]
    return [Punctuation.at(schema, dict(zip(places, p.patterns, strict=True)), p.lifespan) for p in punctuations]


def over_first(punctuations: Iterable[Punctuation], schema: Schema) -> list[Punctuation]:
    """Returns those that restrict only the first attributes, as ones over a schema of these.

    >>> reports = Schema.of(hour="INT", stream="BIGINT")
    >>> several = [Punctuation.of(reports, hour="[3,7]"), Punctuation.of(reports, hour="8", stream="2")]
    >>> [str(p) for p in over_first(several, Schema.of(hour="INT"))]
    ['<[3,7]>']
    """
    return [
        Punctuation(schema, p.patterns[: len(schema)], p.lifespan)
        for p in punctuations
        if all(i < len(schema) for i in p.restricted)
    ]


def recast_all(punctuations: Iterable[Punctuation], schema: Schema) -> Iterator[Punctuation]:
    """Yields punctuations over `schema` with the same meaning: like `recast`, but lists lose nothing.

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


def narrowed_pattern(pattern: Pattern, old: Domain, new: Domain) -> Pattern:
    """Returns the pattern over a narrower domain, as far as it matches values of it; the wildcard if none is found.

    >>> wide, narrow = Domain("DOUBLE"), Domain("INT")
    >>> narrowed_pattern(Constant(5.0), wide, narrow)
    Constant(value=5)
    >>> narrowed_pattern(Range(1.5, None), wide, narrow)
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


def required_of(punctuation: Punctuation, schema: Schema) -> Punctuation | None:
    """Returns the punctuation over a narrower `schema` whose recast covers the given one.

    None if only the punctuation of wildcards does.

    >>> wide, narrow = Schema.of(a="INT", b="INT"), Schema.parse("a INT NOT NULL, b INT")
    >>> str(required_of(Punctuation.parse("<[1,5], 1>", wide), narrow))
    '<[1,5], 1>'
    >>> required_of(Punctuation.parse("<null, 1>", wide), narrow)
    """
    pairs = zip(punctuation.patterns, punctuation.schema, schema, strict=True)
    found = [required_pattern(p, wide.domain, own.domain) for p, wide, own in pairs]
    return None if None in found else Punctuation(schema, tuple(p for p in found if p is not None))


def required_pattern(pattern: Pattern, wide: Domain, narrow: Domain) -> Pattern | None:
    """Returns the pattern of a narrower domain whose recast covers the given one; values beyond its bounds map to them.

    If the wide domain has no null, the result does not match null.

    >>> wide, few = Domain("INT"), Domain("INT", low=0, high=4)
    >>> required_pattern(Range(2, None), wide, few), required_pattern(Constant(7), wide, few)
    (Range(low=3, high=None, low_closed=True, high_closed=False), Constant(value=4))
    >>> format_pattern(required_pattern(WILDCARD, Domain("INT", nullable=False), wide), wide)
    '(,)'
    """
    found = narrowed_pattern(pattern, wide, narrow)
    if narrow.nullable and not wide.nullable:
        found = meet(found, NOT_NULL, narrow)
    if not covers(recast_pattern(found, narrow, wide), pattern, wide):
        with_ends = values(found, narrow).union(ValueSet.of(narrow, _ends_beyond(pattern, wide, narrow)))
        found = pattern_of(with_ends) or WILDCARD
    return found if covers(recast_pattern(found, narrow, wide), pattern, wide) and found != EMPTY else None


def _ends_beyond(pattern: Pattern, wide: Domain, narrow: Domain) -> Iterator[Value]:
    """Yields the bounds of a narrower domain beyond which a pattern matches values."""
    for end, above in ((narrow.low, False), (narrow.high, True)):
        if end is not None:
            cut = wide.cut(wide.normal(end), after=above)
            beyond = ValueSet.of_intervals(wide, [(cut, wide.top) if above else (wide.bottom, cut)])
            if not values(pattern, wide).intersection(beyond).is_empty:
                yield end


def recast_pattern(pattern: Pattern, old: Domain, new: Domain) -> Pattern:
    """Returns the pattern over a domain that contains the old one; it may match more values that cannot occur.

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
            # As in ranges, the first and the last value also represent all values beyond them.
            low = None if old.cut(value, after=False) == old.bottom else moved(value)
            high = None if old.cut(value, after=True) == old.top else moved(value)
            pattern = Range(low, high, low is not None, high is not None)
        case Range():
            pattern = Range(moved(pattern.low), moved(pattern.high), pattern.low_closed, pattern.high_closed)
        case List(values=listed):
            pattern = List(tuple(map(moved, listed)))
    return canonical(pattern, new)


def recast_patterns(pattern: Pattern, old: Domain, new: Domain) -> tuple[Pattern, ...]:
    """Returns the patterns over a domain that contains the old one whose union has the same meaning.

    A list with the first or the last value of the old domain also closes all values beyond it, which is a range.
    """
    if old == new or not isinstance(pattern, List) or old.opaque:
        return (recast_pattern(pattern, old, new),)
    present = [value for value in pattern.values if value is not None]
    ends = [v for v in present if old.bottom == old.cut(v, after=False) or old.cut(v, after=True) == old.top]
    others = canonical(List(tuple(value for value in pattern.values if value not in ends)), old)
    parts = [*(Constant(value) for value in ends), *([] if others == EMPTY else [others])]
    return tuple(recast_pattern(part, old, new) for part in parts)


def project(
    closed_set: PunctuationSet, names: Sequence[str], schema: Schema, new: Iterable[Punctuation] | None = None
) -> list[Punctuation]:
    """Returns the punctuations over `schema` that the set implies for the named attributes, in this order; minimal.

    Null is one of the extensions unless the removed attribute is NOT NULL. Exact up to 4 restricted attributes and 64
    punctuations that complete each other; beyond, it may close less but never more. With `new`, only results to which
    those punctuations contribute are searched for, so that the cost depends on them. An attribute that is named twice
    gets a punctuation for each of its positions.

    >>> reports = Schema.parse("hour INT, min INT NOT NULL", domains="min 0..59")
    >>> parts = [Punctuation.parse(text, reports) for text in ("<5, [0,30]>", "<{5,6}, [31,59]>")]
    >>> [str(p) for p in project(PunctuationSet(reports, parts), ["hour"], Schema.parse("hour INT"))]
    ['<5>']
    """
    places = [closed_set.schema.index(name) for name in names]
    if closed_set.is_all:
        return [Punctuation.all(schema)]
    search = _Search(closed_set, frozenset(places))
    found = search.closed() if new is None else search.closed_by(new)
    return list(PunctuationSet(schema, (p for each in found for p in _placed(each, places, closed_set.schema, schema))))


class _Search:
    """The search for what a set closes over the attributes that stay."""

    def __init__(self, closed_set: PunctuationSet, staying: frozenset[int]) -> None:
        self._closed_set = closed_set
        self._staying = staying

    def closed(self) -> Iterator[Mapping[int, Pattern]]:
        """Yields patterns over the attributes that stay: of punctuations that restrict only these, and of covers."""
        others = yield from self._alone(self._closed_set)
        boxes = [entry.box for entry in self._closed_set.several() if not self._staying.issuperset(entry.restricted)]
        if is_exact(boxes):
            yield from self._completed({}, boxes, Budget())
            return
        budget = _budget_for(others)
        for there in dict.fromkeys(tuple(self._there(p).items()) for p in others):
            near = self._closed_set.several(dict(there))
            boxes = [entry.box for entry in near if not self._staying.issuperset(entry.restricted)]
            yield from self._completed(dict(there), boxes, budget)

    def closed_by(self, new: Iterable[Punctuation]) -> Iterator[Mapping[int, Pattern]]:
        """Like `closed_set`, where the attributes that stay match the patterns of new punctuations.

        New punctuations may have coalesced with older ones, and all older ones that match may be needed.
        """
        others = yield from self._alone(new)
        alone = {i: single.value_set() for i, single in self._closed_set.singles.items() if i in self._staying}
        budget = _budget_for(others)
        for there in dict.fromkeys(tuple(self._there(p).items()) for p in others):
            near = self._closed_set.several(dict(there))
            if not there and all(self._staying.issuperset(entry.restricted) for entry in near):
                continue  # no punctuation on attributes that stay becomes complete; those on them alone are known
            boxes: list[Mapping[int, ValueSet]] = [entry.box for entry in near]
            boxes += [{i: closed} for i, closed in alone.items()]
            yield from self._completed(dict(there), boxes, Budget() if is_exact(boxes) else budget)

    def _alone(self, ps: Iterable[Punctuation]) -> Generator[Mapping[int, Pattern], None, list[Punctuation]]:
        """Yields the patterns of punctuations that restrict only attributes that stay; returns the others."""
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
        """Yields what the boxes close where the attributes that stay match the given patterns."""
        target = {}
        for i in frozenset(there).union(*boxes):
            pattern = there.get(i, WILDCARD)
            domain = self._closed_set.schema[i].domain
            target[i] = values(pattern, domain) if i in self._staying else self._closed_set.open_part(i, pattern)
        try:
            for region in covered_regions(target, boxes, self._staying, budget):
                for chosen in product(*(patterns(part) for part in region.values())):
                    yield dict(zip(region, chosen, strict=True))
        except TooHardError:
            return


def _budget_for(punctuations: Sequence[Punctuation]) -> Budget:
    """Returns a budget sufficient for many punctuations with few others near each, not with many near each."""
    return Budget(ENOUGH + 100 * len(punctuations))


def _placed(found: Mapping[int, Pattern], places: Sequence[int], old: Schema, new: Schema) -> Iterator[Punctuation]:
    """Yields the punctuation over the new schema; several if an attribute occurs at several positions."""
    restricted = {i: pattern for i, pattern in found.items() if pattern != WILDCARD}
    choices = [[at for at, place in enumerate(places) if place == i] for i in restricted]
    for chosen in product(*choices):
        pairs = zip(chosen, restricted.items(), strict=True)
        each = (recast_patterns(pattern, old[i].domain, new[at].domain) for at, (i, pattern) in pairs)
        for whole in product(*each):
            yield Punctuation.at(new, dict(zip(chosen, whole, strict=True)))
