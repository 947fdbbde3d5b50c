"""The meets of two sets of punctuations (setCombine of Tucker et al. 2003, Table 1) without going through all pairs.

Punctuations that restrict one attribute meet as value sets; the others are looked up by their constants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from punct_ns.pattern import patterns, values
from punct_ns.punctuation import Punctuation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from punct_ns.punctuation_set import PunctuationSet


def combined(left: PunctuationSet, right: PunctuationSet) -> Iterator[Punctuation]:
    """Punctuations that together describe what both sets describe; not minimal.

    >>> from punct_ns.punctuation_set import PunctuationSet
    >>> from punct_ns.schema import Schema
    >>> schema = Schema.of(hour="INT")
    >>> sets = [PunctuationSet(schema, [Punctuation.of(schema, hour=hours)]) for hours in ("1", "{1,7}")]
    >>> [str(p) for p in combined(*sets)]
    ['<1>']
    """
    if left.is_all or right.is_all:
        yield from right if left.is_all else left
        return
    for i, closed in left.singles.items():
        if i in right.singles:
            both = closed.value_set().intersection(right.singles[i].value_set())
            yield from (Punctuation.at(left.schema, {i: pattern}) for pattern in patterns(both))
    for p in right:
        yield from _meets(p, left)


def _meets(p: Punctuation, with_: PunctuationSet) -> Iterator[Punctuation]:
    """The meets of one punctuation with a set, but for those on a single attribute that both restrict."""
    given = {i: p.patterns[i] for i in p.restricted}
    for i, closed in with_.singles.items():
        if i not in given:
            parts = closed.patterns()
        elif len(given) > 1:
            parts = patterns(closed.value_set().intersection(values(given[i], with_.schema[i].domain)))
        else:
            continue
        for part in parts:
            yield Punctuation.at(with_.schema, {**given, i: part})
    for entry in with_.several(given):
        both = entry.punctuation.meet(p)
        if both is not None:
            yield both
