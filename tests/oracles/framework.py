"""The framework for stream iterators of Tucker et al. 2003, §4, written down as the paper has it.

An iterator is functions of new items and a state, called slice by slice in the paper's order: step with the new tuples,
then pass, prop and keep with the new punctuations; of a binary one first for the left input, then for the right. The
state is any value. `sdupelim` and `sdiff` are the paper's own, after §4.2; `sjoin` follows its Tables 3 and 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracles import oracle
from tests.oracles.oracle import Slice, Tuple
from xmlstream.punct_ns.punctuation import Punctuation

Step = Callable[[Sequence[Tuple], Any], tuple[list[Tuple], Any]]
Pass = Callable[[Sequence[Punctuation], Any], list[Tuple]]
Prop = Callable[[Sequence[Punctuation], Any], list[Punctuation]]
Keep = Callable[[Sequence[Punctuation], Any], Any]


@dataclass(frozen=True, slots=True)
class Iterator:
    """The four functions for one input; by default the trivial passT, propT and keepT."""

    step: Step
    pass_: Pass = lambda ps, st: []
    prop: Prop = lambda ps, st: []
    keep: Keep = lambda ps, st: st


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the paper's tables: what one slice put out, and the state it left."""

    output: list[Tuple]
    punctuations: list[Punctuation]
    state: Any


def unary(initial: Any, iterator: Iterator, slices: Sequence[Slice]) -> list[Row]:
    """The rows of an iterator of one input."""
    return binary(initial, [iterator], [[slice_] for slice_ in slices])


def binary(initial: Any, iterators: Sequence[Iterator], slices: Sequence[Sequence[Slice]]) -> list[Row]:
    """The rows of an iterator of several inputs, whose slices come together."""
    rows: list[Row] = []
    state = initial
    for inputs in slices:
        output: list[Tuple] = []
        punctuations: list[Punctuation] = []
        for iterator, (ts, ps) in zip(iterators, inputs, strict=True):
            stepped, state = iterator.step(ts, state)
            output += [*stepped, *iterator.pass_(ps, state)]
            punctuations += iterator.prop(ps, state)
            state = iterator.keep(ps, state)
        rows.append(Row(output, punctuations, state))
    return rows


def sdupelim(slices: Sequence[Slice]) -> list[Row]:
    """§4.2: δ(ts − st), all punctuations, st − setMatchTs(st, ps)."""

    def step(ts: Sequence[Tuple], st: list[Tuple]) -> tuple[list[Tuple], list[Tuple]]:
        new = [t for t in oracle.distinct(ts) if not oracle.is_in(t, st)]
        return new, [*st, *new]

    return unary([], Iterator(step, prop=lambda ps, st: list(ps), keep=_without_matches), slices)


def sdiff(slices: Sequence[Sequence[Slice]]) -> list[Row]:
    """§4.2, without the sdupelim around it; the state is (lts, rts, lps, rps)."""

    def left(ts: Sequence[Tuple], st: Any) -> tuple[list[Tuple], Any]:
        return [], ([*st[0], *ts], *st[1:])

    def right(ts: Sequence[Tuple], st: Any) -> tuple[list[Tuple], Any]:
        return [], (st[0], [*st[1], *ts], *st[2:])

    def undecided(st: Any) -> list[Tuple]:
        return [t for t in st[0] if not oracle.is_in(t, st[1])]

    def pass_right(ps: Sequence[Punctuation], st: Any) -> list[Tuple]:
        return [t for t in undecided(st) if oracle.set_match(t, [*ps, *st[3]])]

    def keep_right(ps: Sequence[Punctuation], st: Any) -> Any:
        said = [*st[3], *ps]
        return _without_matches(said, undecided(st)), _without_matches(st[2], st[1]), st[2], said

    def prop_right(ps: Sequence[Punctuation], st: Any) -> list[Punctuation]:
        return [met for p in st[2] for q in [*st[3], *ps] if (met := p.meet(q)) is not None]

    return binary(
        ([], [], [], []),
        [
            Iterator(left, keep=lambda ps, st: (st[0], st[1], [*st[2], *ps], st[3])),
            Iterator(right, pass_right, prop_right, keep_right),
        ],
        slices,
    )


def sjoin(key: Callable[[Tuple], Tuple], universe: Sequence[Tuple], slices: Sequence[Sequence[Slice]]) -> list[Row]:
    """§7.2's symmetric hash join on one key, purged by Table 4's joinPs; the state is (lts, rts, lps, rps).

    A tuple that the other input has covered when it comes is joined and not kept.
    """

    def joined(lefts: Sequence[Tuple], rights: Sequence[Tuple]) -> list[Tuple]:
        return [(*a, *b) for a in lefts for b in rights if None not in key(a) and oracle.same_tuple(key(a), key(b))]

    def covered(k: Tuple, ps: Sequence[Punctuation]) -> bool:
        return None in k or all(oracle.set_match(t, ps) for t in universe if oracle.same_tuple(key(t), k))

    def side(own: int) -> Iterator:
        other = 1 - own

        def step(ts: Sequence[Tuple], st: Any) -> tuple[list[Tuple], Any]:
            pairs = joined(ts, st[1]) if own == 0 else joined(st[0], ts)
            kept = [t for t in ts if not covered(key(t), st[2 + other])]
            return pairs, tuple([*part, *kept] if i == own else part for i, part in enumerate(st))

        def keep(ps: Sequence[Punctuation], st: Any) -> Any:
            said = [*st[2 + own], *ps]
            purged = [t for t in st[other] if not covered(key(t), said)]
            return tuple({other: purged, 2 + own: said}.get(i, part) for i, part in enumerate(st))

        return Iterator(step, keep=keep)

    return binary(([], [], [], []), [side(0), side(1)], slices)


def _without_matches(ps: Sequence[Punctuation], ts: Sequence[Tuple]) -> list[Tuple]:
    """setNomatchTs of Table 1."""
    return [t for t in ts if not oracle.set_match(t, ps)]
