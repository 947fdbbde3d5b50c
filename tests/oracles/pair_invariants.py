"""What operators of two inputs may put out, and must keep: joins of every kind, intersect, difference.

As `invariants`, over all tuples and punctuations of both inputs so far. A pair is `(0, *left, 0, *right)`,
and `None` instead of 0 with nulls behind it where an outer join has no partner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.oracles import oracle
from tests.oracles.invariants import Invariants, remembered
from tests.oracles.oracle import Tuple
from xmlstream.punct_ns.pattern import Wildcard
from xmlstream.punct_ns.punctuation import Punctuation

Tuples = Sequence[Sequence[Tuple]]
Punctuations = Sequence[Sequence[Punctuation]]
Key = Callable[[Tuple], Tuple]


def closes_key(key: Key, k: Tuple, ps: Sequence[Punctuation], universe: Sequence[Tuple]) -> bool:
    """Whether every possible tuple with this key is covered; a key that no tuple can have is."""
    return all(oracle.set_match(t, ps) for t in universe if oracle.same_tuple(key(t), k))


def waits_in_vain(
    t: Tuple,
    side: int,
    partners: Callable[[Tuple, Tuple], bool],
    others: Sequence[Punctuation],
    universe: Sequence[Tuple],
) -> bool:
    """Whether every possible partner of a tuple of that side is covered; so it is where no tuple can be one."""
    return all(
        oracle.set_match(other, others)
        for other in universe
        if (partners(t, other) if side == 0 else partners(other, t))
    )


def lets_out(t: Tuple, ps: Sequence[Punctuation], kept: Sequence[Tuple]) -> bool:
    """Whether a punctuation matches t that no kept tuple matches, or none that is like t where it says something."""

    def holds_back(k: Tuple, p: Punctuation) -> bool:
        spoken = [i for i, pattern in enumerate(p.patterns) if not isinstance(pattern, Wildcard)]
        return oracle.match(k, p) and all(oracle.same(k[i], t[i]) for i in spoken)

    return any(oracle.match(t, p) and not any(holds_back(k, p) for k in kept) for p in ps)


def joining(kind: str, key: Key, condition: Callable[[Tuple, Tuple], bool], universe: Sequence[Tuple]) -> Invariants:
    """An inner, left, right or full join on one key of both sides, and a further condition."""
    width = len(universe[0])
    nobody = (None,) * (width + 1)

    def partners(left: Tuple, right: Tuple) -> bool:
        return _equal(key(left), key(right)) and condition(left, right)

    def done(t: Tuple, side: int, others: Sequence[Punctuation]) -> bool:
        return waits_in_vain(t, side, partners, others, universe)

    def cpass(ts: Tuples, ps: Punctuations) -> list[Tuple]:
        found = [(0, *a, 0, *b) for a in ts[0] for b in ts[1] if partners(a, b)]
        if kind in ("left", "full"):
            alone = [a for a in ts[0] if not any(partners(a, b) for b in ts[1])]
            found += [(0, *a, *nobody) for a in alone if done(a, 0, ps[1])]
        if kind in ("right", "full"):
            alone = [b for b in ts[1] if not any(partners(a, b) for a in ts[0])]
            found += [(*nobody, 0, *b) for b in alone if done(b, 1, ps[0])]
        return found

    @remembered
    def kept(ts: Tuples, ps: Punctuations) -> list[list[Tuple]]:
        return [[t for t in ts[side] if not done(t, side, ps[1 - side])] for side in range(2)]

    def cprop(u: Tuple, ts: Tuples, ps: Punctuations) -> bool:
        held = kept(ts, ps)
        return any(lets_out(t, ps[i], held[i]) for i, t in sides_of(u))

    def may_close(u: Tuple, ts: Tuples, ps: Punctuations) -> bool:
        """Several punctuations may close a key of a padded side together, of which no tuple is held."""
        held = kept(ts, ps)
        padded = {"left": (1,), "right": (0,), "full": (0, 1)}.get(kind, ())
        return any(
            i in padded
            and closes_key(key, key(t), ps[i], universe)
            and not any(_equal(key(k), key(t)) for k in held[i])
            for i, t in sides_of(u)
        )

    def sides_of(u: Tuple) -> list[tuple[int, Tuple]]:
        """The sides of a pair that are no nulls in the place of a partner."""
        sides = (u[: width + 1], u[width + 1 :])
        return [(i, side[1:]) for i, side in enumerate(sides) if side[0] == 0]

    return Invariants(
        cpass,
        cprop,
        ckeep=lambda ts, ps: [t for held in kept(ts, ps) for t in held],
        relation=lambda ts: oracle.join(kind, partners, *ts),
        may_close=may_close,
    )


def semi_joining(
    key: Key,
    condition: Callable[[Tuple, Tuple], bool] | None,
    universe: Sequence[Tuple],
    *,
    anti: bool,
    may: Callable[[Tuple], bool] = lambda right: True,
) -> Invariants:
    """Left tuples with a partner, or without; `may` is whether a right tuple can be the partner of any."""

    def partners(t: Tuple, other: Tuple) -> bool:
        return _equal(key(t), key(other)) and (condition is None or condition(t, other))

    def has_partner(t: Tuple, others: Sequence[Tuple]) -> bool:
        return any(partners(t, other) for other in others)

    @remembered
    def undecided(ts: Tuples, ps: Punctuations) -> list[Tuple]:
        alone = [t for t in ts[0] if not has_partner(t, ts[1])]
        return [t for t in alone if not waits_in_vain(t, 0, partners, ps[1], universe)]

    @remembered
    def right(ts: Tuples, ps: Punctuations) -> list[Tuple]:
        waiting = [t for t in ts[1] if not waits_in_vain(t, 1, partners, ps[0], universe)]
        return oracle.distinct(waiting if condition else [key(t) for t in waiting])

    def cpass(ts: Tuples, ps: Punctuations) -> list[Tuple]:
        if not anti:
            return [t for t in ts[0] if has_partner(t, ts[1])]
        alone = [t for t in ts[0] if not has_partner(t, ts[1])]
        return [t for t in alone if waits_in_vain(t, 0, partners, ps[1], universe)]

    def cprop(u: Tuple, ts: Tuples, ps: Punctuations) -> bool:
        if lets_out(u, ps[0], undecided(ts, ps)):
            return True
        there = [key(t) if condition else t for t in right(ts, ps)]
        known = None not in key(u) and closes_key(key, key(u), ps[1], list(filter(may, universe)))
        return not anti and known and not oracle.is_in(key(u), there)

    return Invariants(
        cpass,
        cprop,
        ckeep=lambda ts, ps: [*undecided(ts, ps), *right(ts, ps)],
        relation=lambda ts: (oracle.anti_join if anti else oracle.semi_join)(partners, *ts),
    )


def intersecting() -> Invariants:
    @remembered
    def waiting(ts: Tuples, ps: Punctuations) -> list[list[Tuple]]:
        alone = [[t for t in oracle.distinct(ts[i]) if not oracle.is_in(t, ts[1 - i])] for i in range(2)]
        return [[t for t in alone[i] if not oracle.set_match(t, ps[1 - i])] for i in range(2)]

    def both(ts: Tuples) -> list[Tuple]:
        return [t for t in oracle.distinct(ts[0]) if oracle.is_in(t, ts[1])]

    def ckeep(ts: Tuples, ps: Punctuations) -> list[Tuple]:
        emitted = [t for t in both(ts) if not oracle.set_match(t, [*ps[0], *ps[1]])]
        return [t for side in waiting(ts, ps) for t in side] + emitted

    return Invariants(
        cpass=lambda ts, ps: both(ts),
        cprop=lambda u, ts, ps: any(lets_out(u, ps[side], waiting(ts, ps)[side]) for side in range(2)),
        ckeep=ckeep,
        relation=lambda ts: oracle.intersect(*ts),
    )


def subtracting() -> Invariants:
    def only(ts: Tuples) -> list[Tuple]:
        return [t for t in oracle.distinct(ts[0]) if not oracle.is_in(t, ts[1])]

    def passed(ts: Tuples, ps: Punctuations) -> list[Tuple]:
        return [t for t in only(ts) if oracle.set_match(t, ps[1])]

    @remembered
    def undecided(ts: Tuples, ps: Punctuations) -> list[Tuple]:
        return [t for t in only(ts) if not oracle.set_match(t, ps[1])]

    def ckeep(ts: Tuples, ps: Punctuations) -> list[Tuple]:
        remembered = [*oracle.distinct(ts[1]), *passed(ts, ps)]
        return [*undecided(ts, ps), *(t for t in remembered if not oracle.set_match(t, ps[0]))]

    return Invariants(
        passed,
        cprop=lambda u, ts, ps: lets_out(u, ps[0], undecided(ts, ps)),
        ckeep=ckeep,
        relation=lambda ts: oracle.difference(*ts),
    )


def _equal(a: Tuple, b: Tuple) -> bool:
    """Equality of keys: a null key equals none."""
    return None not in a and None not in b and oracle.same_tuple(a, b)
