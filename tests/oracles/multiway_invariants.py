"""What a join of many inputs may put out, and must keep: the chained purge of Li et al. 2006, §3.2 and §4.2, by lists.

As `invariants`, over all tuples and punctuations of all inputs so far. A result is `(0, *first, 0, *second, …)`.
Attributes that are equal are a *class*: for each of its inputs the place of its attribute there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from tests.oracles import oracle
from tests.oracles.invariants import Invariants
from tests.oracles.oracle import Tuple
from tests.oracles.pair_invariants import lets_out
from xmlstream.punct_ns.punctuation import Punctuation

Tuples = Sequence[Sequence[Tuple]]
Punctuations = Sequence[Sequence[Punctuation]]
Classes = Sequence[Mapping[int, int]]
Bounds = Mapping[tuple[tuple[int, int], tuple[int, int]], Callable[[Any, Any], bool]]
"""What must also be true of two values that are not null, by the inputs of their tuples and their places there."""


def within(bounds: Bounds, chosen: Mapping[int, Tuple]) -> bool:
    """Whether tuples, by their inputs, satisfy what is asked of two of them, and may with tuples of the other inputs.

    A tuple with null in a bound satisfies it with no other tuple: it is in no result, and nothing waits for it.
    """
    for places, holds in bounds.items():
        values = [chosen[i][at] for i, at in places if i in chosen]
        if None in values or (len(values) == len(places) and not holds(*values)):
            return False
    return True


def agree(classes: Classes, chosen: Mapping[int, Tuple]) -> bool:
    """Whether tuples, by their inputs, have the same value, not null, in each class."""
    for places in classes:
        found = [t[places[i]] for i, t in chosen.items() if i in places]
        if any(value is None or not oracle.same(value, found[0]) for value in found):
            return False
    return True


def joined(classes: Classes, condition: Callable[[Sequence[Tuple]], bool], ts: Tuples) -> list[Tuple]:
    return [
        tuple(value for t in chosen for value in (0, *t))
        for chosen in product(*ts)
        if agree(classes, dict(enumerate(chosen))) and condition(chosen)
    ]


def is_done(
    classes: Classes,
    bounds: Bounds,
    chosen: Mapping[int, Tuple],
    ts: Tuples,
    ps: Punctuations,
    universe: Sequence[Tuple],
) -> bool:
    """Whether these tuples, which agree, are in no result to come that the chain can tell of.

    They are, if they are one of each input; or if, in some order, all that a further input could send to join them,
    within their bounds, is covered, and they are done with each tuple there that has their keys. Which such input comes
    first does not matter.
    """
    for i in range(len(ts)):
        if i not in chosen:
            wanted = [t for t in universe if agree(classes, more := {**chosen, i: t}) and within(bounds, more)]
            if all(oracle.set_match(t, ps[i]) for t in wanted):
                there = [t for t in oracle.distinct(ts[i]) if agree(classes, {**chosen, i: t})]
                return all(is_done(classes, bounds, {**chosen, i: t}, ts, ps, universe) for t in there)
    return len(chosen) == len(ts)


def multiway_joining(classes: Classes, universe: Sequence[Tuple], bounds: Bounds | None = None) -> Invariants:
    asked = bounds or {}

    def condition(chosen: Sequence[Tuple]) -> bool:
        return within(asked, dict(enumerate(chosen)))

    # Asked for each possible result; what has come is told from what had come before by how much it is.
    known: dict[tuple[int, ...], tuple[Tuples, list[list[Tuple]]]] = {}

    def kept(ts: Tuples, ps: Punctuations) -> list[list[Tuple]]:
        size = (*map(len, ts), *map(len, ps))
        if size not in known or known[size][0] is not ts:
            may_join = [[t for t in ts[i] if agree(classes, {i: t}) and within(asked, {i: t})] for i in range(len(ts))]
            found = [
                [t for t in each if not is_done(classes, asked, {i: t}, may_join, ps, universe)]
                for i, each in enumerate(may_join)
            ]
            known.clear()
            known[size] = (ts, found)
        return known[size][1]

    def cprop(u: Tuple, ts: Tuples, ps: Punctuations) -> bool:
        width = len(u) // len(ts)
        own = [u[i * width + 1 : (i + 1) * width] for i in range(len(ts))]
        return any(lets_out(t, ps[i], kept(ts, ps)[i]) for i, t in enumerate(own))

    return Invariants(
        cpass=lambda ts, ps: joined(classes, condition, ts),
        cprop=cprop,
        ckeep=lambda ts, ps: [t for each in kept(ts, ps) for t in each],
        relation=lambda ts: joined(classes, condition, ts),
    )
