"""The remainder of a punctuation: what of it a set does not say yet, as punctuations that do not overlap.

It is what somebody who waits for the punctuation still waits for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from punct_ns.cover import Box
from punct_ns.pattern import WILDCARD, Pattern, patterns, values
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.value_set import ValueSet

MOST_PARTS = 256
"""Parts into which a punctuation is cut, beyond which what is left is not narrowed further."""


def remainder(p: Punctuation, said: PunctuationSet) -> list[Punctuation]:
    """The parts of a punctuation that a set does not cover; empty where it covers all of it.

    Of many parts, what is said of several attributes at once is no longer cut out: they may then say more than is left,
    never less.

    >>> from punct_ns.schema import Schema
    >>> schema = Schema.of(hour="INT", min="INT").bounded("min 0..59")
    >>> said = PunctuationSet(schema, [Punctuation.parse(text, schema) for text in ("<5, [0,29]>", "<[7,9], *>")])
    >>> [str(left) for left in remainder(Punctuation.of(schema, hour="[5,9]"), said)]
    ['<6, *>', '<5, [30,)>', '<5, null>']
    """
    if said.covers(p):
        return []
    box = {i: values(pattern, p.schema[i].domain) for i, pattern in enumerate(p.patterns) if pattern != WILDCARD}
    for i, single in said.singles.items():
        box[i] = single.rest_of(box.get(i, ValueSet.everything(p.schema[i].domain)))
    parts = [box]
    given: dict[int, Pattern] = {i: p.patterns[i] for i in p.restricted}
    for entry in said.several(given):
        parts = [piece for part in parts for piece in _without(part, entry.box, p)]
        if len(parts) > MOST_PARTS:
            return _written([box], p)
    return _written(parts, p)


def _without(part: Box, hole: Mapping[int, ValueSet], p: Punctuation) -> Iterator[Box]:
    """A box without another one, as boxes that do not overlap."""
    rest = dict(part)
    for i, held in hole.items():
        if rest.get(i, ValueSet.everything(p.schema[i].domain)).intersection(held).is_empty:
            yield part
            return
    for i, held in hole.items():
        here = rest.get(i, ValueSet.everything(p.schema[i].domain))
        if not (beside := here.difference(held)).is_empty:
            yield {**rest, i: beside}
        rest[i] = here.intersection(held)


def _written(parts: Iterable[Box], p: Punctuation) -> list[Punctuation]:
    found = PunctuationSet(p.schema)
    for part in parts:
        for chosen in product(*(patterns(held) for held in part.values())):
            found.add(Punctuation.at(p.schema, dict(zip(part, chosen, strict=True))))
    return list(found)
