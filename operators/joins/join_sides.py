"""Sides of a join in its output: whose tuples all come, for whom nulls stand, and which punctuations hold then.

Each tuple of a preserved side comes, with nulls for the other side where it has no partner. So a side for which nulls
may stand is nullable in the output, and its punctuations and promises hold for its partners alone: they must not match
the nulls. A side whose key stands in each tuple of the output, or null, lends its patterns to the equal attributes.

The keys of both sides of a full outer join close together what neither side closes alone. A tuple of the output has
nulls for one side, or equal keys of both. So a side's punctuations hold for its own tuples, those with a value among
what they restrict, and null on both sides may be either side's: it is closed once both have closed their null keys.
Where a key of each side has a value, both have a tuple there, and none of their keys is null. Of `coalesce` of the
keys, as USING has it, that is what closes its null, and leaves out the tuples with a key of the left side and
another one of the right side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import permutations, product
from typing import Literal

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.joins.equal_attributes import narrower, rewritten, rewritten_schemes
from xmlstream.operators.joins.equi_join import EquiJoin
from xmlstream.operators.required_punctuations import Way
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.punct_ns.lifespan import Lifespan, shortest
from xmlstream.punct_ns.pattern import EMPTY, NOT_NULL, NULL, WILDCARD, Pattern, matches, meet
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import required_pattern
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.scheme import Scheme, Term

JoinKind = Literal["inner", "left", "right", "full"]

_PRESERVED: dict[JoinKind, tuple[int, ...]] = {"inner": (), "left": (0,), "right": (1,), "full": (0, 1)}


@dataclass(frozen=True, slots=True)
class JoinSides:
    """Both sides of a join of a kind, with its join attributes.

    `never_keys`, `null_keys` and `way_to_null_keys` hold for a full outer join alone.
    """

    kind: JoinKind
    equi_join: EquiJoin

    @property
    def preserved(self) -> tuple[int, ...]:
        """The sides whose tuples all go out."""
        return _PRESERVED[self.kind]

    def is_padded(self, side: int) -> bool:
        """Whether the output may have nulls in place of a tuple of the side."""
        return 1 - side in self.preserved

    def schema(self, inputs: Sequence[Schema]) -> Schema:
        """The left side's attributes, then the right side's; those of a padded side are nullable."""
        sides = [
            tuple(_nullable(a) for a in side) if self.is_padded(i) else side.attributes for i, side in enumerate(inputs)
        ]
        return Schema((*sides[0], *sides[1]))

    def schemes(self, inputs: Sequence[tuple[Scheme, ...]]) -> tuple[Scheme, ...]:
        """The schemes of each side whose tuples the other side's schemes purge, and their forms on equal attributes."""
        found: list[Scheme] = []
        for i, side in enumerate(inputs):
            if self.equi_join.bounded_keys[i].is_described(inputs[1 - i]):
                moved = rewritten_schemes(side, {} if self.is_padded(i) else self.equi_join.equivalents(i))
                own = {term.attribute for scheme in side for term in scheme.terms}
                found += [
                    self._of_partners(scheme, i, own) for scheme in moved if scheme.terms or not self.is_padded(i)
                ]
        if self.kind == "full":
            if all(key.is_described(inputs[1 - key.side]) for key in self.equi_join.bounded_keys):
                found += self._schemes_on_keys(inputs)
            if all(Scheme(()) in side for side in inputs):
                found.append(Scheme(()))
        return tuple(dict.fromkeys(found))

    def _of_partners(self, scheme: Scheme, side: int, own: AbstractSet[str]) -> Scheme:
        """A side's scheme, its own or moved; it does not cover the nulls in place of a tuple."""
        padded = {True: self.is_padded(side), False: self.is_padded(1 - side)}
        return Scheme(tuple(replace(t, null=t.null and not padded[t.attribute in own]) for t in scheme.terms))

    def of_output(
        self, ps: Iterable[Punctuation], side: int, output: Schema, inputs: Sequence[Schema]
    ) -> Iterator[Punctuation]:
        """A side's punctuations over the output; a padded side's do not match the nulls in place of its tuples."""
        own, other = (0, len(inputs[0]))[:: 1 if side == 0 else -1]
        places = [[own + i] for i in range(len(inputs[side]))]
        if not self.is_padded(side):
            for mine, theirs in self.equi_join.places(side, inputs):
                places[mine].append(other + theirs)
            for p in ps:
                yield from rewritten(p, output, places)
            return
        key = output.index(self.equi_join.on[side][0])
        for p in ps:
            present = (_of_its_own(written, key) for written in rewritten(p, output, places))
            yield from (each for each in present if each is not None)

    def never_out(self, inputs: Sequence[Schema]) -> list[Punctuation]:
        """Punctuations on tuples that never go out: a null key of a padded side beside a value of that side."""
        output, found = self.schema(inputs), list[Punctuation]()
        for side, begin in enumerate((0, len(inputs[0]))):
            if self._is_whole(side, inputs):
                key = inputs[side].index(self.equi_join.on[side][0])
                others = (begin + at for at in range(len(inputs[side])) if at != key)
                found += [Punctuation.at(output, {begin + key: NULL, other: NOT_NULL}) for other in others]
        return found

    def _is_whole(self, side: int, inputs: Sequence[Schema]) -> bool:
        """Whether all attributes of a side are null if its key is: its own tuples do not go out with a null key."""
        domain = inputs[side].attribute(self.equi_join.on[side][0]).domain
        return self.is_padded(side) and not (side in self.preserved and domain.nullable)

    def of_side(
        self, p: Punctuation, side: int, inputs: Sequence[Schema], *, punctuates: bool = False
    ) -> Punctuation | None:
        """The side's punctuation that an output punctuation needs; None if it cannot follow from the side.

        A side's punctuations do not cover the nulls in place of its tuples. Its key distinguishes these from its
        tuples; if the join punctuates what never goes out, any attribute does.
        """
        begin = 0 if side == 0 else len(inputs[0])
        if self.is_padded(side):
            telling = range(len(inputs[side]))
            if not (punctuates and self._is_whole(side, inputs)):
                telling = range(key := inputs[side].index(self.equi_join.on[side][0]), key + 1)
            if all(matches(p.patterns[begin + at], None) for at in telling):
                return None
        own = {
            at: required_pattern(p.patterns[begin + at], p.schema[begin + at].domain, attribute.domain) or WILDCARD
            for at, attribute in enumerate(inputs[side])
        }
        if not self.is_padded(side):
            for mine, theirs in zip(*(self.equi_join.on[i] for i in (side, 1 - side)), strict=True):
                at, other = inputs[side].index(mine), p.schema.index(theirs)
                own[at] = narrower(own[at], p.patterns[other], inputs[side][at].domain, p.schema[other].domain)
        return Punctuation.at(inputs[side], own)

    def _schemes_on_keys(self, inputs: Sequence[tuple[Scheme, ...]]) -> Iterator[Scheme]:
        """Schemes on keys of both sides, null included; on several keys of one side, with a value in one of them."""
        on_keys = [
            [scheme for scheme in schemes if scheme.terms and self._is_of_keys(scheme, side)]
            for side, schemes in enumerate(inputs)
        ]
        for scheme in (*on_keys[0], *on_keys[1]):
            for present in scheme.terms if len(scheme.terms) > 1 else ():
                yield Scheme(tuple(replace(t, null=t.null and t is not present) for t in scheme.terms))
        for left, right in product(*on_keys):
            if all(term.null for term in (*left.terms, *right.terms)):
                yield Scheme((*map(_each, left.terms), *right.terms))
                yield Scheme((*left.terms, *map(_each, right.terms)))

    def _is_of_keys(self, scheme: Scheme, side: int) -> bool:
        keys = {name.lower() for name in self.equi_join.on[side]}
        return all(term.attribute.lower() in keys for term in scheme.terms)

    def never_keys(self, output: Schema, inputs: Sequence[Schema]) -> Iterator[Punctuation]:
        """Punctuations on tuples where keys of both sides have values and one is null: no such tuple exists."""
        for side in range(2):
            own, others = self._places(side, inputs), self._places(1 - side, inputs)
            for i, j in permutations(range(len(own)), 2):
                here: dict[int, Pattern] = {own[i]: NOT_NULL, own[j]: NULL}
                if inputs[side].attribute(self.equi_join.on[side][j]).domain.nullable:
                    here[others[j]] = NOT_NULL
                yield Punctuation.at(output, here)

    def null_keys(self, output: Schema, state: OperatorState) -> Iterator[Punctuation]:
        """Punctuations on the null keys that both sides have closed or do not have: on each, and on all together."""
        for (left, one), (right, other) in product(*(list(self._null_of(side, state)) for side in range(2))):
            yield Punctuation.at(output, dict.fromkeys((*left, *right), NULL), shortest((one, other)))

    def _null_of(self, side: int, state: OperatorState) -> Iterator[tuple[tuple[int, ...], Lifespan | None]]:
        """Places in the output at which a side has no more null, and the lifespan of that."""
        given, there, held = state.inputs[side], self._places(side, state.inputs), state.punctuations(f"input-{side}")
        own = [given.index(name) for name in self.equi_join.on[side]]
        for keys in dict.fromkeys([*((i,) for i in range(len(own))), tuple(range(len(own)))]):
            at, p = tuple(there[i] for i in keys), Punctuation.at(given, {own[i]: NULL for i in keys})
            if not all(given[own[i]].domain.nullable for i in keys):
                yield at, None
            elif held.set.covers(p):
                yield at, held.lifespan(p)

    def way_to_null_keys(self, p: Punctuation, inputs: Sequence[Schema]) -> Way | None:
        """The way on which both sides close their null keys, if the punctuation is on these only; otherwise None."""
        wants: list[tuple[int, Punctuation]] = []
        for side in range(2):
            own = {i: place for i, place in enumerate(self._places(side, inputs)) if place in p.restricted}
            if not own or any(not matches(p.patterns[place], None) for place in own.values()):
                return None
            names = [self.equi_join.on[side][i] for i in own]
            wants.append((side, Punctuation.at(inputs[side], {inputs[side].index(name): NULL for name in names})))
        both = {place for side in range(2) for place in self._places(side, inputs)}
        return tuple(wants) if both.issuperset(p.restricted) else None

    def _places(self, side: int, inputs: Sequence[Schema]) -> list[int]:
        """The places of a side's keys in the output."""
        begin = 0 if side == 0 else len(inputs[0])
        return [begin + inputs[side].index(name) for name in self.equi_join.on[side]]


def _each(term: Term) -> Term:
    """The term with a constant for each value."""
    return term if term.kind == "each" else Term(term.attribute)


def _of_its_own(p: Punctuation, key: int) -> Punctuation | None:
    """A padded side's punctuation without the nulls in its place: with a key, if all its patterns match null."""
    if any(not matches(p.patterns[i], None) for i in p.restricted):
        return p
    present = meet(p.patterns[key], NOT_NULL, p.schema[key].domain)
    patterns = (*p.patterns[:key], present, *p.patterns[key + 1 :])
    return None if present == EMPTY else Punctuation(p.schema, patterns, p.lifespan)


def _nullable(attribute: Attribute) -> Attribute:
    return Attribute(attribute.name, replace(attribute.domain, nullable=True))
