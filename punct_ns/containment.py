"""Containment: what punctuations on an attribute x say of intervals of x that tuples elsewhere wait for.

A tuple of the other side of a join waits for values of x between ends of its own, `f(x) >= low` and `f(x) <= high`. It
waits in vain once all of them are closed. So what is closed of x, interval by interval, is said here of the ends: with
`[10,29]` closed it is `low >= 10` and `high <= 29`, with `(,29]` it is `high <= 29` alone. The intervals that several
punctuations close together are found by `punct_ns.consensus`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeAlias

from punct_ns.consensus import Box, widest_boxes
from punct_ns.domain import Cut, Domain, Value
from punct_ns.image import Function, neighbours
from punct_ns.pattern import patterns
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.schema import Schema
from punct_ns.sql_type import DiscreteType
from punct_ns.value_set import ValueSet

Relation: TypeAlias = Literal["<", "<=", ">", ">="]
"""How a value of x, or f of it, must stand to an end."""


@dataclass(frozen=True, slots=True)
class End:
    """One end of the values of x that are waited for: those with `f(x) relation y`, for y of the attribute at a place.

    Without `f` it is x itself. f gives null for null alone, and never falls as x rises, or never rises if it is
    `falling`; NaN is no value of x then.
    """

    place: int
    relation: Relation
    f: Function | None = None
    falling: bool = False

    @property
    def upper(self) -> bool:
        """Whether it is above the values of x that are waited for.

        >>> End(0, "<=").upper, End(0, "<=", falling=True).upper
        (True, False)
        """
        return (self.relation in ("<", "<=")) != self.falling


def contained(
    said: PunctuationSet,
    places: Mapping[int, int],
    ends: Mapping[int, Sequence[End]],
    schema: Schema,
    new: Iterable[Punctuation],
) -> list[Punctuation]:
    """The punctuations on ends that hold because of new ones; not minimal, and perhaps some that held before.

    Args:
        said: All punctuations, the new ones among them. None restricts attributes but those of the next two.
        places: For the attributes that stay, by their places, where they stand in `schema`.
        ends: For each attribute of whose values intervals are waited for, by its place, their ends, which are
            attributes of `schema`. Values that are null are never waited for.
        schema: What the result is over.
        new: Those that are new; what follows from others is left out.

    Exact where few punctuations are near each new one; it may close less, never more.

    >>> reports, waiting = Schema.of(sid="INT", t="INT"), Schema.of(id="INT", low="INT", high="INT")
    >>> closed = PunctuationSet(reports, [Punctuation.parse(text, reports) for text in ("<*, (,9]>", "<7, [10,19]>")])
    >>> found = contained(closed, {0: 0}, {1: (End(1, ">="), End(2, "<="))}, waiting, closed)
    >>> [str(p) for p in found]
    ['<*, *, (,9]>', '<7, *, (,19]>']
    """
    if said.is_all:
        return [Punctuation.all(schema)]
    boxes = widest_boxes(said, ends, new)
    writer = _Writer(said.schema, places, ends, schema, boxes)
    found = PunctuationSet(schema)
    for box in boxes:
        for p in writer.written(box):
            found.add(p)
    return list(found)


def beyond(ends: Sequence[End], schema: Schema, x: Domain) -> list[Punctuation]:
    """The punctuations on ends that hold before anything is said: beyond them x has no values.

    Of a function of x as far as its domain is declared.

    >>> minute, waiting = Schema.of(min="INT").bounded("min 0..59")["min"].domain, Schema.of(low="INT", high="INT")
    >>> [str(p) for p in beyond((End(0, ">"), End(1, "<=")), waiting, minute)]
    ['<[59,), *>', '<*, (,-1]>']
    """
    found = []
    for end in ends:
        y = schema[end.place].domain
        if end.f is None:
            held = _within(end, x.bottom if end.upper else x.top, x, y)
        else:
            last = x.low if end.upper else x.high
            of = None if last is None else end.f([last]).get(last)
            held = ValueSet(y) if of is None else _failing(end, of, y)
        found += [Punctuation.at(schema, {end.place: pattern}) for pattern in patterns(held)]
    return [p for p in found if not p.is_empty]


class _Writer:
    """Boxes as punctuations on ends; what functions of x make of the values around them is asked all at once."""

    def __init__(
        self,
        given: Schema,
        places: Mapping[int, int],
        ends: Mapping[int, Sequence[End]],
        schema: Schema,
        boxes: Sequence[Box],
    ) -> None:
        self._given, self._places, self._ends, self._schema = given, places, ends, schema
        self._known = {}
        for x, several in ends.items():
            domain = given[x].domain
            for end in several:
                if end.f is not None:
                    cuts = {span[end.upper] for box in boxes for i, span in box.spans if i == x}
                    asked = [self._outside(end, cut, domain) for cut in cuts if domain.bottom < cut < domain.top]
                    self._known[end] = end.f(asked) if asked else {}

    def written(self, box: Box) -> Iterator[Punctuation]:
        """The box, once for each way to say it by the ends of its intervals."""
        there = {self._places[i]: held for i, held in box.there}
        choices: list[list[tuple[tuple[int, ValueSet], ...]]] = []
        for x, span in box.spans:
            domain = self._given[x].domain
            for upper, cut, outermost in ((False, span[0], domain.bottom), (True, span[1], domain.top)):
                if cut != outermost:
                    choices.append([((end.place, held),) for end, held in self._said_by(x, cut, upper=upper)])
        for chosen in product(*choices):
            held = dict(there)
            for ((place, part),) in chosen:
                held[place] = held[place].intersection(part) if place in held else part
            for each in product(*(patterns(part) for part in held.values())):
                yield Punctuation.at(self._schema, dict(zip(held, each, strict=True)))

    def _said_by(self, x: int, cut: Cut, *, upper: bool) -> Iterator[tuple[End, ValueSet]]:
        """The ends on that side, each with its values that leave nothing of x beyond the cut to be waited for."""
        domain = self._given[x].domain
        for end in self._ends[x]:
            if end.upper != upper:
                continue
            y = self._schema[end.place].domain
            if end.f is None:
                yield end, _within(end, cut, domain, y)
            elif (of := self._known[end].get(self._outside(end, cut, domain))) is not None:
                yield end, _failing(end, of, y)

    @staticmethod
    def _outside(end: End, cut: Cut, x: Domain) -> Value:
        """The value of x next to a cut, beyond it."""
        return neighbours(cut, x)[end.upper]


def _failing(end: End, of: Value, y: Domain) -> ValueSet:
    """The values of an end to which a value of f, and all beyond it, do not stand in its relation."""
    edge = y.cut(of, after=end.relation in ("<", ">="))
    return ValueSet.of_intervals(y, [(edge, y.top) if end.relation in (">", ">=") else (y.bottom, edge)])


def _within(end: End, cut: Cut, x: Domain, y: Domain) -> ValueSet:
    """The values of an end of x itself that leave nothing beyond a cut to be waited for."""
    if end.relation in ("<", ">"):
        if isinstance(x.sql, DiscreteType):
            cut += 1 if end.upper else -1
        else:
            cut = (cut[0], 1) if end.upper else (cut[0], 0)
    return ValueSet.of_intervals(y, [(y.bottom, cut) if end.upper else (cut, y.top)])
