"""As-of joins of small integers: the first attribute is what is compared, the last one the key."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.oracles import oracle
from tests.oracles.invariants import Invariants, remembered
from tests.oracles.oracle import Tuple
from tests.oracles.pair_invariants import Punctuations, Tuples, lets_out
from tests.properties.case import Case
from tests.properties.pair_cases import sides
from tests.samples.strategies import SmallSchema
from xmlstream.operators.asof_join import AsofJoin, AsofKind
from xmlstream.punct_ns.punctuation import Punctuation


def last_before(kind: AsofKind, universe: Sequence[Tuple], *, strict: bool, tolerance: int | None = None) -> Invariants:
    """What it may put out and must keep, over all tuples and punctuations of both inputs so far."""
    width = len(universe[0])
    nobody = (None,) * (width + 1)

    def in_time(r: Tuple, s: Tuple) -> bool:
        return _is_near(r, s, strict, tolerance)

    def partner(r: Tuple, rights: Sequence[Tuple]) -> Tuple | None:
        found: Tuple | None = None
        order = [oracle.Key(i) for i in range(width)]
        for s in rights:
            if in_time(r, s):
                is_later = found is None or oracle.before(found[0], s[0])
                is_first = found is not None and oracle.same(found[0], s[0]) and oracle.compare(order, s, found) < 0
                found = s if is_later or is_first else found
        return found

    def certain(r: Tuple, others: Sequence[Punctuation]) -> bool:
        return all(oracle.set_match(s, others) for s in universe if in_time(r, s))

    def cpass(ts: Tuples, ps: Punctuations) -> list[Tuple]:
        pairs = [(r, partner(r, ts[1])) for r in ts[0] if certain(r, ps[1])]
        found = [(0, *r, 0, *s) for r, s in pairs if s is not None]
        return [*found, *((0, *r, *nobody) for r, s in pairs if s is None and kind == "left")]

    @remembered
    def undecided(ts: Tuples, ps: Punctuations) -> list[Tuple]:
        return [r for r in ts[0] if not certain(r, ps[1])]

    def rights(ts: Tuples, ps: Punctuations) -> list[Tuple]:
        waiting = undecided(ts, ps)
        may_ask = [r for r in universe if not lets_out(r, ps[0], waiting)]
        places = oracle.distinct([(s[0], s[-1]) for s in ts[1] if s[0] is not None and s[-1] is not None])

        def is_last(place: Tuple, r: Tuple) -> bool:
            between = [other for other in places if in_time(r, other) and oracle.before(place[0], other[0])]
            return in_time(r, place) and not between

        return [place for place in places if any(is_last(place, r) for r in may_ask)]

    def relation(ts: Sequence[Sequence[Tuple]]) -> list[Tuple]:
        pairs = [(r, partner(r, ts[1])) for r in ts[0]]
        found = [(*r, *s) for r, s in pairs if s is not None]
        return [*found, *((*r, *nobody[1:]) for r, s in pairs if s is None and kind == "left")]

    return Invariants(
        cpass,
        cprop=lambda u, ts, ps: lets_out(u[1 : width + 1], ps[0], undecided(ts, ps)),
        ckeep=lambda ts, ps: [*undecided(ts, ps), *rights(ts, ps)],
        relation=relation,
    )


def _is_near(r: Tuple, s: Tuple, strict: bool, tolerance: int | None) -> bool:
    """Whether a right tuple may be the partner of a left one, if none is nearer."""
    if None in (r[0], r[-1], s[0], s[-1]) or not oracle.same(r[-1], s[-1]):
        return False
    if tolerance is not None and s[0] < r[0] - tolerance:
        return False
    return oracle.before(s[0], r[0]) or (not strict and oracle.same(s[0], r[0]))


def joining_asof(kind: AsofKind, *, strict: bool, tolerance: int | None = None) -> Callable[[SmallSchema], Case]:
    """The case of that kind, where a partner may be so much older."""

    def build(space: SmallSchema) -> Case:
        left, right = sides(space)
        type_ = space.schema[0].domain.type
        on = ("stream", left.names[-1]), ("stream_2", right.names[-1])
        within = None if tolerance is None else f"{right.names[1]} >= {left.names[1]} - {tolerance}"
        operator = AsofJoin(kind, *on, left.names[1], right.names[1], type_, strict, within).bounded(left, right)
        universe, width = space.universe, len(space.schema) + 1
        outputs = [(0, *a, 0, *b) for a in universe for b in universe if a[-1] is not None and a[-1] == b[-1]]
        outputs += [(0, *a, *(None,) * width) for a in universe if kind == "left"]
        return Case(
            operator,
            (left, right),
            last_before(kind, universe, strict=strict, tolerance=tolerance),
            outputs,
            number=lambda t: int(t[0]),
            bare=lambda t: _marked(t, 0, width),
            whole=lambda n, u: _marked(u, n, width),
            cuts=True,
        )

    return build


def _marked(t: Tuple, mark: int, width: int) -> Tuple:
    """A pair with another number of its stream."""
    return tuple(mark if i in (0, width) and v is not None else v for i, v in enumerate(t))
