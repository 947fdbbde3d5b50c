"""A punctuation in another schema's terms: the same attributes, renamed, or widened without loss.

The other values of a wider domain cannot come from the stream, so a pattern means the same there: it is read anew as it
stands, and only its values change their type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import product

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
    values,
)
from punct_ns.punctuation import Punctuation
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
        for patterns in product(*(recast_patterns(own, old.domain, new.domain) for own, old, new in pairs)):
            yield Punctuation(schema, patterns, p.lifespan)


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
