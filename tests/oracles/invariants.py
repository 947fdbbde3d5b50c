"""What a stream operator may put out, and must keep: Tables 2 to 4 of Tucker et al. 2003 over all that has come.

Each operator as three functions of all tuples and punctuations of its inputs so far, in which several punctuations
count together. Like the oracle below it, this shares no code with what it checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from tests.oracles import oracle
from tests.oracles.oracle import Slice, Tuple
from xmlstream.punct_ns.punctuation import Punctuation

_Tuples = Sequence[Sequence[Tuple]]
_Punctuations = Sequence[Sequence[Punctuation]]
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Invariants:
    """An operator by its invariants over all that has come: `ts` and `ps` of each input so far.

    `cpass` gives all output so far, `cprop` whether an output tuple is among those of which no more will come, `ckeep`
    the tuples that must be kept. `relation` is the relational operator that the stream operator is faithful to. An
    operator may conclude more from several punctuations together than `cprop` does: `may_close` is whether it may.
    """

    cpass: Callable[[Sequence[Sequence[Tuple]], Sequence[Sequence[Punctuation]]], list[Tuple]]
    cprop: Callable[[Tuple, Sequence[Sequence[Tuple]], Sequence[Sequence[Punctuation]]], bool]
    ckeep: Callable[[Sequence[Sequence[Tuple]], Sequence[Sequence[Punctuation]]], list[Tuple]]
    relation: Callable[[Sequence[Sequence[Tuple]]], list[Tuple]]
    may_close: Callable[[Tuple, Sequence[Sequence[Tuple]], Sequence[Sequence[Punctuation]]], bool] | None = None


def remembered(of: Callable[[_Tuples, _Punctuations], _Found]) -> Callable[[_Tuples, _Punctuations], _Found]:
    """The function, which is asked of the same lists many times in turn and computes it once."""
    last: list[tuple[_Tuples, _Punctuations, _Found]] = []

    def asked(ts: _Tuples, ps: _Punctuations) -> _Found:
        if not last or last[0][0] is not ts or last[0][1] is not ps:
            last[:] = [(ts, ps, of(ts, ps))]
        return last[0][2]

    return asked


def selecting(predicate: Callable[[Tuple], bool | None]) -> Invariants:
    return Invariants(
        cpass=lambda ts, ps: oracle.select(predicate, ts[0]),
        cprop=lambda t, ts, ps: oracle.set_match(t, ps[0]),
        ckeep=lambda ts, ps: [],
        relation=lambda ts: oracle.select(predicate, ts[0]),
    )


def projecting(columns: Callable[[Tuple], Tuple], universe: Sequence[Tuple]) -> Invariants:
    """A tuple is closed when every possible tuple that is projected to it is."""
    return Invariants(
        cpass=lambda ts, ps: oracle.project(columns, ts[0]),
        cprop=lambda u, ts, ps: all(oracle.set_match(t, ps[0]) for t in universe if oracle.same_tuple(columns(t), u)),
        ckeep=lambda ts, ps: [],
        relation=lambda ts: oracle.project(columns, ts[0]),
    )


def exploding(array: Callable[[Tuple], Sequence[object] | None], *, outer: bool) -> Invariants:
    """A tuple is closed when that is of which it would be made, whatever its array holds."""
    return Invariants(
        cpass=lambda ts, ps: oracle.explode(array, ts[0], outer=outer),
        cprop=lambda u, ts, ps: oracle.set_match(u[:-1], ps[0]),
        ckeep=lambda ts, ps: [],
        relation=lambda ts: oracle.explode(array, ts[0], outer=outer),
    )


def deduplicating() -> Invariants:
    return Invariants(
        cpass=lambda ts, ps: oracle.distinct(ts[0]),
        cprop=lambda t, ts, ps: oracle.set_match(t, ps[0]),
        ckeep=lambda ts, ps: [t for t in oracle.distinct(ts[0]) if not oracle.set_match(t, ps[0])],
        relation=lambda ts: oracle.distinct(ts[0]),
    )


def first_of_each(key: Callable[[Tuple], Tuple], universe: Sequence[Tuple]) -> Invariants:
    """The first tuple of each key; its key is kept until every possible tuple of it is covered."""

    def first(ts: Sequence[Tuple]) -> list[Tuple]:
        return [t for i, t in enumerate(ts) if not any(oracle.same_tuple(key(t), key(u)) for u in ts[:i])]

    def complete(k: Tuple, ps: Sequence[Punctuation]) -> bool:
        return all(oracle.set_match(t, ps) for t in universe if oracle.same_tuple(key(t), k))

    return Invariants(
        cpass=lambda ts, ps: first(ts[0]),
        cprop=lambda t, ts, ps: oracle.set_match(t, ps[0]),
        ckeep=lambda ts, ps: [t for t in first(ts[0]) if not complete(key(t), ps[0])],
        relation=lambda ts: first(ts[0]),
    )


def merging() -> Invariants:
    return Invariants(
        cpass=lambda ts, ps: oracle.merge(*ts),
        cprop=lambda t, ts, ps: all(oracle.set_match(t, each) for each in ps),
        ckeep=lambda ts, ps: [],
        relation=lambda ts: oracle.merge(*ts),
    )


def grouping(
    key: Callable[[Tuple], Tuple], aggregate: Callable[[list[Tuple]], Tuple], universe: Sequence[Tuple]
) -> Invariants:
    """A group is complete when every possible tuple of it is covered."""

    def complete(k: Tuple, ps: Sequence[Punctuation]) -> bool:
        return all(oracle.set_match(t, ps) for t in universe if oracle.same_tuple(key(t), k))

    def width(t: Tuple) -> int:
        return len(key(t))

    return Invariants(
        cpass=lambda ts, ps: oracle.group_by(key, aggregate, [t for t in ts[0] if complete(key(t), ps[0])]),
        cprop=lambda u, ts, ps: complete(u[: width(universe[0])], ps[0]),
        ckeep=lambda ts, ps: [t for t in ts[0] if not complete(key(t), ps[0])],
        relation=lambda ts: oracle.group_by(key, aggregate, ts[0]),
    )


def leading(
    key: Callable[[Tuple], Tuple],
    keys: Sequence[oracle.Key],
    ranked: Callable[[list[Tuple]], list[Tuple]],
    n: int,
    universe: Sequence[Tuple],
    *,
    shown: bool,
) -> Invariants:
    """The tuples of rank n at the most, out once those of their groups are covered that are before or beside them.

    The rank stands behind each. Kept are such of the groups that are not complete, and the first n of what is not out.
    """
    still_open = remembered(lambda ts, ps: [t for t in universe if not oracle.set_match(t, ps[0])])

    def begun(t: Tuple, ts: _Tuples, ps: _Punctuations) -> bool:
        left = still_open(ts, ps)
        return all(oracle.compare(keys, t, u) < 0 for u in left if oracle.same_tuple(key(t), key(u)))

    def first(ts: Sequence[Tuple]) -> list[Tuple]:
        groups = [[t for t in ts if oracle.same_tuple(key(t), k)] for k in oracle.distinct([key(t) for t in ts])]
        return [t for group in groups for t in ranked(group) if t[-1] <= n]

    def passed(ts: _Tuples, ps: _Punctuations) -> list[Tuple]:
        return [t for t in first(ts[0]) if begun(t[:-1], ts, ps)]

    def kept(ts: _Tuples, ps: _Punctuations) -> list[Tuple]:
        not_complete = [key(u) for u in still_open(ts, ps)]
        waiting = first([t for t in ts[0] if not begun(t, ts, ps)])
        return [t[:-1] for t in (*waiting, *(t for t in passed(ts, ps) if oracle.is_in(key(t[:-1]), not_complete)))]

    def as_shown(ts: list[Tuple]) -> list[Tuple]:
        return ts if shown else [t[:-1] for t in ts]

    return Invariants(
        cpass=lambda ts, ps: as_shown(passed(ts, ps)),
        cprop=lambda u, ts, ps: begun(u[: len(universe[0])], ts, ps),
        ckeep=kept,
        relation=lambda ts: as_shown(first(ts[0])),
    )


def looking_back(
    key: Callable[[Tuple], Tuple],
    keys: Sequence[oracle.Key],
    answer: Callable[[list[Tuple], int], Tuple],
    back: int,
    universe: Sequence[Tuple],
    ahead: int = 0,
    sees: Callable[[Tuple, Tuple], bool] | None = None,
) -> Invariants:
    """A tuple is out once those of its group are covered that are sorted before it or beside it.

    And, where it looks ahead, once this is true of so many behind it, or of the whole group; so long no tuple that
    stands where it does is closed. `answer` is what stands behind a tuple at a place of its group, in order. Kept are
    the others, and of each group that is not closed so many of the last of which this is true; or, if `sees` is given,
    those that a tuple may see that can still come.
    """
    still_open = remembered(lambda ts, ps: [t for t in universe if not oracle.set_match(t, ps[0])])

    def begun(t: Tuple, ts: _Tuples, ps: _Punctuations) -> bool:
        left = still_open(ts, ps)
        return all(oracle.compare(keys, t, u) < 0 for u in left if oracle.same_tuple(key(t), key(u)))

    def groups(ts: Sequence[Tuple]) -> list[list[Tuple]]:
        each = oracle.distinct([key(t) for t in ts])
        return [oracle.sort(keys, [t for t in ts if oracle.same_tuple(key(t), k)]) for k in each]

    def answered(ts: list[Tuple]) -> list[Tuple]:
        return [(*t, *answer(ts, i)) for i, t in enumerate(ts)]

    def ordered(ts: _Tuples, ps: _Punctuations) -> list[list[Tuple]]:
        return groups([t for t in ts[0] if begun(t, ts, ps)])

    def waiting(group: list[Tuple], ts: _Tuples, ps: _Punctuations) -> int:
        is_over = not any(oracle.same_tuple(key(u), key(group[0])) for u in still_open(ts, ps))
        return 0 if is_over else min(ahead, len(group))

    def passed(ts: _Tuples, ps: _Punctuations) -> list[Tuple]:
        return [t for group in ordered(ts, ps) for t in answered(group)[: len(group) - waiting(group, ts, ps)]]

    def closed(u: Tuple, ts: _Tuples, ps: _Punctuations) -> bool:
        still = [t for group in ordered(ts, ps) for t in group[len(group) - waiting(group, ts, ps) :]]
        beside = any(oracle.same_tuple(key(t), key(u)) and oracle.compare(keys, t, u) == 0 for t in still)
        return begun(u, ts, ps) and not beside

    def kept(ts: _Tuples, ps: _Punctuations) -> list[Tuple]:
        waiting = [t for t in ts[0] if not begun(t, ts, ps)]
        if sees is not None:
            left = still_open(ts, ps)
            out = [t for t in ts[0] if begun(t, ts, ps)]
            return [*waiting, *(t for t in out if any(oracle.same_tuple(key(t), key(u)) and sees(u, t) for u in left))]
        not_closed = [key(u) for u in still_open(ts, ps)]
        last = groups([t for t in ts[0] if begun(t, ts, ps) and oracle.is_in(key(t), not_closed)])
        return [*waiting, *(t for group in last for t in group[-back:])]

    return Invariants(
        cpass=passed,
        cprop=lambda u, ts, ps: closed(u[: len(universe[0])], ts, ps),
        ckeep=kept,
        relation=lambda ts: [t for group in groups(ts[0]) for t in answered(group)],
    )


def arriving(
    key: Callable[[Tuple], Tuple],
    answer: Callable[[list[Tuple], int], Tuple],
    back: int,
    universe: Sequence[Tuple],
) -> Invariants:
    """The same in the order in which tuples come: each is out at once, and closed when it is itself."""

    def parted(ts: Sequence[Tuple]) -> list[list[Tuple]]:
        return [[t for t in ts if oracle.same_tuple(key(t), k)] for k in oracle.distinct([key(t) for t in ts])]

    def closed(t: Tuple, ps: Sequence[Punctuation]) -> bool:
        return all(oracle.set_match(u, ps) for u in universe if oracle.same_tuple(key(t), key(u)))

    def answered(ts: Sequence[Tuple]) -> list[Tuple]:
        return [(*t, *answer(group, i)) for group in parted(ts) for i, t in enumerate(group)]

    return Invariants(
        cpass=lambda ts, ps: answered(ts[0]),
        cprop=lambda u, ts, ps: oracle.set_match(u[: len(universe[0])], ps[0]),
        ckeep=lambda ts, ps: [t for group in parted(ts[0]) if not closed(group[0], ps[0]) for t in group[-back:]],
        relation=lambda ts: answered(ts[0]),
    )


def sorting(keys: Sequence[oracle.Key], universe: Sequence[Tuple]) -> Invariants:
    """A tuple is out once every possible tuple that is sorted before it, or beside it, is covered."""
    return Invariants(
        cpass=lambda ts, ps: oracle.sort(keys, list(filter(oracle.init(keys, universe, ps[0]), ts[0]))),
        cprop=lambda t, ts, ps: oracle.init(keys, universe, ps[0])(t),
        ckeep=lambda ts, ps: [t for t in ts[0] if not oracle.init(keys, universe, ps[0])(t)],
        relation=lambda ts: oracle.sort(keys, ts[0]),
    )


def windowing(windows: Callable[[Tuple], list[Tuple]], universe: Sequence[Tuple]) -> Invariants:
    """A window's tuple is closed when every possible tuple of which it would be made is; the moment stands last."""

    def found(ts: Sequence[Tuple]) -> list[Tuple]:
        return [(*t[:-1], *window) for t in ts for window in windows(t)]

    return Invariants(
        cpass=lambda ts, ps: found(ts[0]),
        cprop=lambda u, ts, ps: all(oracle.set_match(t, ps[0]) for t in universe if u in found([t])),
        ckeep=lambda ts, ps: [],
        relation=lambda ts: found(ts[0]),
    )


def sessions(ts: Sequence[Tuple], gap: timedelta) -> list[list[Tuple]]:
    """Tuples in sessions: each is no more than the gap behind the one before it, of its own values in front."""
    found: list[list[Tuple]] = []
    for t in sorted((t for t in ts if t[-1] is not None), key=lambda t: t[-1]):
        last = next((s for s in found[::-1] if oracle.same_tuple(s[-1][:-1], t[:-1])), None)
        if last is not None and t[-1] - last[-1][-1] <= gap:
            last.append(t)
        else:
            found.append([t])
    return found


def sessioning(gap: timedelta, universe: Sequence[Tuple]) -> Invariants:
    """A session is out once every possible tuple that could join it is covered."""

    def complete(key: Tuple, start: Any, end: Any, ps: Sequence[Punctuation]) -> bool:
        return all(
            oracle.set_match(t, ps)
            for t in universe
            if t[-1] is not None and oracle.same_tuple(t[:-1], key) and start - gap <= t[-1] <= end
        )

    def answered(s: list[Tuple]) -> Tuple:
        return (*s[0][:-1], s[0][-1], s[-1][-1] + gap, len(s))

    def is_out(s: list[Tuple], ps: Sequence[Punctuation]) -> bool:
        return complete(s[0][:-1], s[0][-1], s[-1][-1] + gap, ps)

    return Invariants(
        cpass=lambda ts, ps: [answered(s) for s in sessions(ts[0], gap) if is_out(s, ps[0])],
        cprop=lambda u, ts, ps: complete(u[:-3], u[-3], u[-2], ps[0]),
        ckeep=lambda ts, ps: [t for s in sessions(ts[0], gap) if not is_out(s, ps[0]) for t in s],
        relation=lambda ts: [answered(s) for s in sessions(ts[0], gap)],
    )


def expected(invariants: Invariants, slices: Sequence[Sequence[Slice]]) -> list[tuple[list[Tuple], list[Tuple]]]:
    """For each slice (of every input): all that is put out by then, and all that is kept after it."""
    width = len(slices[0]) if slices else 0
    ts: list[list[Tuple]] = [[] for _ in range(width)]
    ps: list[list[Punctuation]] = [[] for _ in range(width)]
    found = []
    for inputs in slices:
        for i, (tuples, punctuations) in enumerate(inputs):
            ts[i] += tuples
            ps[i] += punctuations
        so_far = [list(tuples) for tuples in ts], [list(punctuations) for punctuations in ps]
        found.append((invariants.cpass(*so_far), invariants.ckeep(*so_far)))
    return found
