"""A punctuation in another schema's terms: the same attributes, renamed, or widened without loss.

The other values of a wider domain cannot come from the stream, so a pattern means the same there: it is read anew as it
stands, and only its values change their type.
"""

from __future__ import annotations

from decimal import Decimal

from punct_ns.domain import Domain, Value
from punct_ns.notation import format_pattern, parse_pattern
from punct_ns.pattern import WILDCARD, Constant, List, Pattern, Range, canonical
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema


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


def recast_pattern(pattern: Pattern, old: Domain, new: Domain) -> Pattern:
    """The pattern over a domain that holds the old one's values; of values that cannot come it may say more.

    >>> recast_pattern(Constant(5), Domain("INT"), Domain("DOUBLE"))
    Constant(value=5.0)
    """
    if old == new:
        return pattern

    def moved(value: Value | None) -> Value | None:
        return None if value is None else new.normal(value)

    match pattern:
        case Constant(value=value):
            pattern = Constant(moved(value))
        case Range():
            pattern = Range(moved(pattern.low), moved(pattern.high), pattern.low_closed, pattern.high_closed)
        case List(values=values):
            pattern = List(tuple(map(moved, values)))
    return canonical(pattern, new)
