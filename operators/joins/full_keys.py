"""The keys of both sides of a full outer join, together: what neither side says alone.

A tuple of the output has nulls for one side, or equal keys of both. So a side's punctuations speak of its own tuples,
those with a value among what they restrict, and null on both sides may be either side's: it is closed once both have
closed their null keys. Where a key of each side has a value, both have a tuple there, and none of their keys is null.
Of `coalesce` of the keys, as USING has it, that is what closes its null, and leaves out the tuples of which one key is
the left side's and another one the right side's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product

from operators.joins.equi_join import EquiJoin
from operators.state.operator_state import OperatorState
from operators.wants import Way
from punct_ns.lifespan import Lifespan, shortest
from punct_ns.pattern import NOT_NULL, NULL, Pattern, matches
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme, Term


@dataclass(frozen=True, slots=True)
class FullKeys:
    """The keys of a full outer join."""

    equi_join: EquiJoin

    def schemes(self, inputs: Sequence[tuple[Scheme, ...]]) -> Iterator[Scheme]:
        """Of keys of both sides, null included; of several of a side, of those tuples that have one of them."""
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

    def never(self, output: Schema, inputs: Sequence[Schema]) -> Iterator[Punctuation]:
        """The tuples of which keys of both sides have values while one is null: there is none, ever."""
        for side in range(2):
            own, others = self._places(side, inputs), self._places(1 - side, inputs)
            for i, j in permutations(range(len(own)), 2):
                here: dict[int, Pattern] = {own[i]: NOT_NULL, own[j]: NULL}
                if inputs[side].attribute(self.equi_join.on[side][j]).domain.nullable:
                    here[others[j]] = NOT_NULL
                yield Punctuation.at(output, here)

    def null(self, output: Schema, state: OperatorState) -> Iterator[Punctuation]:
        """The null keys that both sides have closed, or do not have: of each key by itself, and of all of them."""
        for (left, one), (right, other) in product(*(list(self._null_of(side, state)) for side in range(2))):
            yield Punctuation.at(output, dict.fromkeys((*left, *right), NULL), shortest((one, other)))

    def _null_of(self, side: int, state: OperatorState) -> Iterator[tuple[tuple[int, ...], Lifespan | None]]:
        """Places in the output at which a side has no null any more, and for how long that holds."""
        given, there, held = state.inputs[side], self._places(side, state.inputs), state.punctuations(f"input-{side}")
        own = [given.index(name) for name in self.equi_join.on[side]]
        for keys in dict.fromkeys([*((i,) for i in range(len(own))), tuple(range(len(own)))]):
            at, p = tuple(there[i] for i in keys), Punctuation.at(given, {own[i]: NULL for i in keys})
            if not all(given[own[i]].domain.nullable for i in keys):
                yield at, None
            elif held.set.covers(p):
                yield at, held.lifespan(p)

    def wanted(self, p: Punctuation, inputs: Sequence[Schema]) -> Way | None:
        """That both sides close their null keys, where a punctuation says nothing else; None if it does."""
        asked: list[tuple[int, Punctuation]] = []
        for side in range(2):
            own = {i: place for i, place in enumerate(self._places(side, inputs)) if place in p.restricted}
            if not own or any(not matches(p.patterns[place], None) for place in own.values()):
                return None
            names = [self.equi_join.on[side][i] for i in own]
            asked.append((side, Punctuation.at(inputs[side], {inputs[side].index(name): NULL for name in names})))
        both = {place for side in range(2) for place in self._places(side, inputs)}
        return tuple(asked) if both.issuperset(p.restricted) else None

    def _places(self, side: int, inputs: Sequence[Schema]) -> list[int]:
        """Where the keys of a side stand in the output."""
        begin = 0 if side == 0 else len(inputs[0])
        return [begin + inputs[side].index(name) for name in self.equi_join.on[side]]


def _each(term: Term) -> Term:
    """Constants of the values of a term."""
    return term if term.kind == "each" else Term(term.attribute)
