"""The bounds in a join of many inputs: what tuples of one wait for of another one's attributes, beside what is equal.

`b.t BETWEEN a.t AND a.t + 5` bounds for a tuple of `a` the tuples of `b` that it waits for, and the other way around. A
chain that has reached `a` knows the values of its bounds, and asks `b` for no more than what they leave. What `b` says
of its classes and of what is bounded of it is said in the terms of these values, as in a join of two (`bounded_key`).
Only comparisons of two inputs are bounds, and none of an attribute that is joined on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations

from operators.expressions.bounds import Bound, bounds_between
from operators.joins.bounded_key import end_of
from operators.joins.punctuation_graph import Link, PunctuationGraph
from operators.state.completion import closed_so_far
from operators.state.operator_state import OperatorState
from punct_ns.containment import End, beyond, contained
from punct_ns.domain import Domain
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Attribute, Schema
from punct_ns.slices import own


@dataclass(frozen=True, slots=True)
class PairBounds:
    """The bounds that a tuple of one input, `asker`, sets to the tuples of another one, `asked`, that it waits for."""

    asker: int
    asked: int
    bounds: tuple[Bound, ...]

    @property
    def link(self) -> Link:
        """What they mean to the punctuation graph; those from below alone bring nothing about."""
        return Link(self.asker, self.asked, {b.attribute: b for b in self.bounds if b.upper})


@dataclass(frozen=True)
class ChainBounds:
    """All bounds between the inputs of a join."""

    pairs: tuple[PairBounds, ...] = ()

    @staticmethod
    def between(residual: str | None, graph: PunctuationGraph, inputs: Sequence[Schema]) -> ChainBounds:
        """Those in a condition on combinations, beside the equalities of a graph."""
        if residual is None:
            return NO_CHAIN_BOUNDS
        found = []
        for i, j in permutations(range(len(inputs)), 2):
            on = [tuple(graph.keys(input_).values()) for input_ in (i, j)]
            bounds, _ = bounds_between(residual, on, (inputs[i], inputs[j]))
            if bounds:
                found.append(PairBounds(i, j, bounds))
        return ChainBounds(tuple(found))

    @property
    def links(self) -> tuple[Link, ...]:
        """What they mean to the punctuation graph, one by one."""
        return tuple(pair.link for pair in self.pairs)

    def needs(self, input_: int) -> tuple[str, ...]:
        """The attributes of an input by which its tuples set bounds; where one is null, there is no partner."""
        return tuple(dict.fromkeys(name for p in self.pairs if p.asker == input_ for b in p.bounds for name in b.needs))

    def bounded(self, input_: int) -> tuple[str, ...]:
        """The attributes of an input that others bound."""
        return tuple(dict.fromkeys(b.attribute for p in self.pairs if p.asked == input_ for b in p.bounds))

    def values(self, input_: int) -> dict[str, Bound]:
        """The columns of a tuple's bounds, with what they are."""
        found = dict.fromkeys((b.value, b.type) for p in self.pairs if p.asker == input_ for b in p.bounds)
        known = {(b.value, b.type): b for p in self.pairs if p.asker == input_ for b in p.bounds}
        return {own(f"v{input_}_{number}"): known[each] for number, each in enumerate(found)}

    def asked_of(self, input_: int) -> dict[str, int]:
        """The columns in which an input is asked, each with the place among the bounds of those whose it is."""
        return {
            name: number
            for number, pair in enumerate(self.pairs)
            if pair.asked == input_
            for name in self._columns(pair)
        }

    def _columns(self, pair: PairBounds) -> list[str]:
        """The columns of a pair's bounds, one by one."""
        named = {(bound.value, bound.type): name for name, bound in self.values(pair.asker).items()}
        return [named[bound.value, bound.type] for bound in pair.bounds]

    def terms(self, input_: int, classes: Schema) -> Schema:
        """What is asked of an input: its classes, and the values of the bounds that others set it."""
        types = {name: bound.type for pair in self.pairs for name, bound in self.values(pair.asker).items()}
        columns = [Attribute(name, Domain(types[name])) for name in self.asked_of(input_)]
        return Schema((*classes, *columns))

    def punctuation_sets(self, classes: Mapping[int, Schema]) -> dict[str, Schema]:
        """What is kept of what inputs say in the terms in which they are asked."""
        asked = dict.fromkeys(pair.asked for pair in self.pairs)
        return {f"bounded-{i}": self.terms(i, classes[i]) for i in asked}

    def told(
        self, input_: int, new: Sequence[Punctuation], graph: PunctuationGraph, state: OperatorState
    ) -> list[Punctuation]:
        """What an input newly says in the terms in which it is asked, because of what is newly complete of it."""
        if not new or not self.bounded(input_):
            return []
        known, held = closed_so_far(state, input_), state.punctuations(f"bounded-{input_}")
        schema, places = held.set.schema, {i: i for i in range(len(graph.keys(input_)))}
        found: list[Punctuation] = []
        for pair in self.pairs:
            if pair.asked == input_:
                ends = self._ends(pair, schema, graph, state)
                found += known.following(new, partial(contained, places=places, ends=ends, schema=schema))
        return held.absorb(found)

    def answers(self, input_: int, graph: PunctuationGraph, state: OperatorState) -> list[Punctuation]:
        """All that an input has said in the terms in which it is asked, and what no tuple of it could match anyway."""
        if not self.bounded(input_):
            return list(closed_so_far(state, input_).set)
        return [*state.punctuations(f"bounded-{input_}").set, *self.never(input_, graph, state)]

    def never(self, input_: int, graph: PunctuationGraph, state: OperatorState) -> Iterator[Punctuation]:
        """What no tuple of an input could match, of attributes whose domain is declared.

        What lies beyond the values of a type hardly anybody asks for.
        """
        schema = state.punctuations(f"bounded-{input_}").set.schema
        known = closed_so_far(state, input_).set.schema
        for pair in self.pairs:
            if pair.asked == input_:
                for at, ends in self._ends(pair, schema, graph, state).items():
                    if (known[at].domain.low, known[at].domain.high) != (None, None):
                        yield from beyond(ends, schema, known[at].domain)

    def _ends(
        self, pair: PairBounds, schema: Schema, graph: PunctuationGraph, state: OperatorState
    ) -> dict[int, list[End]]:
        """The ends of what is waited for, by the place of the bounded attribute among what is known of the input."""
        bounded, before = self.bounded(pair.asked), len(graph.keys(pair.asked))
        found: dict[int, list[End]] = {before + bounded.index(b.attribute): [] for b in pair.bounds}
        # What others alone bound is not waited for by this one, and closed of no value but of all.
        for at in range(before, before + len(bounded)):
            found.setdefault(at, [])
        for bound, name in zip(pair.bounds, self._columns(pair), strict=True):
            end = end_of(bound, schema.index(name), schema, state.inputs[pair.asked], state)
            found[before + bounded.index(bound.attribute)].append(end)
        return found


NO_CHAIN_BOUNDS = ChainBounds()
