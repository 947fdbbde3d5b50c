"""Closed runs: the intervals of one attribute that are closed without a gap, by what the other attributes are.

A session lies in one run of closed moments, or may still grow. Several punctuations make one run where their values of
the attribute meet: `<1, (,9]>` and `<*, [10,20]>` close all up to 20 where the first attribute is 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from punct_ns.domain import Cut
from punct_ns.pattern import EMPTY, WILDCARD, Pattern, meet, values
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.value_set import ValueSet

MOST = 64
"""Boxes of the other attributes that are looked at beside those of new punctuations."""


@dataclass(frozen=True, slots=True)
class Run:
    """Where the other attributes match `there`, by their places, all values from one cut to another are closed."""

    there: Mapping[int, Pattern]
    low: Cut
    high: Cut


def closed_runs(said: PunctuationSet, place: int, new: Iterable[Punctuation]) -> list[Run]:
    """The runs of the attribute that new punctuations made, or made longer; as long as they are, each by itself.

    `said` holds the new ones and all before them. Each of its boxes is looked at, and where two of them meet, up to a
    number; what several boxes only together cover of the other attributes is left out: less may be closed, never more.

    >>> from punct_ns.schema import Schema
    >>> schema = Schema.parse("k INT, t INT")
    >>> said = PunctuationSet(schema, [Punctuation.parse(text, schema) for text in ("<1, (,9]>", "<*, [10,20]>")])
    >>> [(run.there, run.low, run.high) for run in closed_runs(said, 1, [Punctuation.parse("<*, [10,20]>", schema)])]
    [({}, 10, 21), ({0: Constant(value=1)}, -2147483648, 21)]
    """
    domain = said.schema[place].domain
    if said.is_all:
        return [Run({}, domain.bottom, domain.top)]
    found: dict[tuple[tuple[tuple[int, Pattern], ...], Cut, Cut], Run] = {}
    for there, closing in _boxes(said, place, new).items():
        for low, high in _closed(said, place, dict(there)).intervals():
            if any(low < end and begin < high for begin, end in closing.intervals()):
                found[there, low, high] = Run(dict(there), low, high)
    return list(found.values())


def _boxes(
    said: PunctuationSet, place: int, new: Iterable[Punctuation]
) -> dict[tuple[tuple[int, Pattern], ...], ValueSet]:
    """What the other attributes are where new values were closed, and these values."""
    domain = said.schema[place].domain
    found: dict[tuple[tuple[int, Pattern], ...], ValueSet] = {}
    for p in new:
        closing = values(p.patterns[place], domain)
        there = {i: p.patterns[i] for i in p.restricted if i != place}
        for box in (there, *_met(said, place, there)):
            key = tuple(sorted(box.items()))
            found[key] = found[key].union(closing) if key in found else closing
    return found


def _met(said: PunctuationSet, place: int, there: Mapping[int, Pattern]) -> Iterator[dict[int, Pattern]]:
    """Where what is said elsewhere meets a box, in any number of its boxes, if that is not too often."""
    near = said.several(dict(there))
    found = [dict(there)]
    for entry in near if len(near) <= MOST else ():
        for known in found[:]:
            box = dict(known)
            for i in entry.restricted:
                if i != place:
                    box[i] = meet(box.get(i, WILDCARD), entry.punctuation.patterns[i], said.schema[i].domain)
            if EMPTY not in box.values() and box not in found and len(found) < MOST:
                found.append(box)
    yield from found[1:]


def _closed(said: PunctuationSet, place: int, there: Mapping[int, Pattern]) -> ValueSet:
    """The values that are closed all over a box of the other attributes."""
    domain = said.schema[place].domain
    box = {i: values(pattern, said.schema[i].domain) for i, pattern in there.items()}
    closed = ValueSet(domain, (), False)
    for i, single in said.singles.items():
        if i == place:
            closed = closed.union(single.value_set())
        elif i in box and single.value_set().covers(box[i]):
            return ValueSet.everything(domain)
    for entry in said.several(there):
        if all(i == place or (i in box and held.covers(box[i])) for i, held in entry.box.items()):
            closed = closed.union(entry.box[place]) if place in entry.box else ValueSet.everything(domain)
    return closed
