"""Frontiers in words: what is closed of an attribute, and what of it is not, as people would say it.

Of hours `≤ 17`, of auctions `≤ 1041 but 1007, 1033`, of people `ann, bob and 12 more`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from punct_ns.domain import Cut, Domain
from punct_ns.sql_type import BooleanType
from punct_ns.value_set import ValueSet

SHOWN = 4
"""Values or ranges that are named, before the rest is counted."""


def frontier(closed: ValueSet) -> str:
    """What is closed, in words that follow an attribute's name.

    >>> hours = Domain("INT")
    >>> frontier(ValueSet(hours)), frontier(ValueSet.everything(hours))
    ('nothing yet', 'all')
    >>> frontier(ValueSet(hours, (hours.bottom, 7, 8, 18)))
    '≤ 17 but 7'
    >>> frontier(ValueSet.of(hours, [3, 9])), frontier(ValueSet.of(hours, [3, 4, 5]))
    ('3, 9', '3 to 5')
    """
    if closed.has_every_value:
        return "all"
    pairs = list(closed.intervals())
    if not pairs:
        return "null" if closed.null else "nothing yet"
    gaps = [(high, low) for (_, high), (low, _) in pairwise(pairs)]
    domain = closed.domain
    whole = (pairs[0][0], pairs[-1][1])
    if gaps and (closed.all_single or (len(gaps) > SHOWN and pairs[0][0] != domain.bottom)):
        return listed(pairs, domain)
    but = f" but {listed(gaps, domain)}" if gaps else ""
    return f"{_between(*whole, domain)}{but}"


def listed(pairs: Sequence[tuple[Cut, Cut]], domain: Domain) -> str:
    """Intervals by their values, the first few.

    >>> listed([(1, 2), (5, 9)], Domain("INT"))
    '1, 5 to 8'
    """
    named = [_between(low, high, domain) for low, high in pairs[:SHOWN]]
    more = len(pairs) - SHOWN
    return f"{', '.join(named)}{f' and {more:,} more' if more > 0 else ''}"


def _between(low: Cut, high: Cut, domain: Domain) -> str:
    return " ".join(_ends(low, high, domain))


def _ends(low: Cut, high: Cut, domain: Domain) -> Iterator[str]:
    has_ends = isinstance(domain.sql, BooleanType)
    first = None if low == domain.bottom and not has_ends else domain.bound(low, above=True)
    last = None if high == domain.top and not has_ends else domain.bound(high, above=False)
    if first is None and last is None:
        yield "all"
    elif first is not None and first == last:
        yield domain.write(first[0])
    elif first is None and last is not None:
        yield f"{'≤' if last[1] else '<'} {domain.write(last[0])}"
    elif first is not None and last is None:
        yield f"{'≥' if first[1] else '>'} {domain.write(first[0])}"
    elif first is not None and last is not None:
        yield f"{'' if first[1] else 'above '}{domain.write(first[0])}"
        yield f"to {'' if last[1] else 'below '}{domain.write(last[0])}"
