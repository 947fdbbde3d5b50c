"""Joins whose condition bounds what tuples wait for: of three small integers, the last one the key, the others within.

Each is written twice: as Spark SQL over `a`, `b` and `c` of one side and `a_2`, `b_2` and `c_2` of the other, and as a
function of both tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Literal, TypeAlias

from tests.oracles import oracle, pair_invariants
from tests.oracles.oracle import Tuple
from tests.properties.case import Case
from tests.properties.pair_cases import marked_pairs, sides
from tests.samples.strategies import SMALL, Small, SmallSchema
from xmlstream.operators.join import Join
from xmlstream.operators.joins.join_sides import JoinKind
from xmlstream.operators.semi_join import SemiJoin
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.schema import Attribute, Schema

Kind: TypeAlias = JoinKind | Literal["semi", "anti"]
Condition: TypeAlias = Callable[[Any, Any, Any, Any], bool]
"""Of a, b, a_2 and b_2, none of which is null."""

RANGES: dict[str, Condition] = {
    "a_2 BETWEEN a AND b": lambda a, b, x, y: a <= x <= b,
    "a_2 > a AND a_2 < b": lambda a, b, x, y: a < x < b,
    "a_2 >= a AND a_2 > b AND b_2 <= b": lambda a, b, x, y: x >= a and x > b and y <= b,
    "a_2 BETWEEN a - 1 AND a + 1": lambda a, b, x, y: a - 1 <= x <= a + 1,
    "a_2 = b": lambda a, b, x, y: x == b,
    "a_2 div 2 <= a AND b_2 > -a": lambda a, b, x, y: x // 2 <= a and y > -a,
    "a_2 < b AND b <= b_2": lambda a, b, x, y: x < b <= y,
    "CAST(a_2 AS BIGINT) * 2 >= a + 1": lambda a, b, x, y: x * 2 >= a + 1,
}

_FEW = Small(Domain("INT", nullable=False, low=0, high=2), (0, 1, 2), (0, 1, 2))
_SOME = Small(Domain("INT", low=0, high=2), (0, 1, 2), (0, 1, 2, None))
_TWO = Small(Domain("INT", nullable=False, low=0, high=1), (0, 1), (0, 1))
SPACES = [
    SmallSchema(Schema(tuple(Attribute(name, small.domain) for name, small in zip("abc", smalls, strict=True))), smalls)
    for smalls in ((_FEW, _FEW, _TWO), (_SOME, _FEW, _TWO))
]

_FAR: list[Tuple] = [(a, b, 0) for a in (-9, 9) for b in (-9, 9)]
"""Left tuples outside of the domains, whose values may come as far as is known of values that are computed."""


def ranging(kind: Kind, residual: str) -> Callable[[SmallSchema], Case]:
    """The case of a join of that kind on the last attribute, with that condition."""
    holds = RANGES[residual]

    looked_at = [f" {name} " in _words(residual) for name in ("a", "b", "a_2", "b_2")]

    def condition(left: Tuple, right: Tuple) -> bool:
        values = (*left[:2], *right[:2])
        known = all(v is not None for v, looked in zip(values, looked_at, strict=True) if looked)
        return known and holds(*(0 if v is None else v for v in values))

    def build(space: SmallSchema) -> Case:
        return _joining(kind, residual, condition, space, space.universe)

    return build


def _joining(
    kind: Kind, residual: str, condition: Callable[[Tuple, Tuple], bool], space: SmallSchema, universe: Sequence[Tuple]
) -> Case:
    """The case of a join on the last attribute, with that condition, told from all tuples of that universe."""

    def key(t: Tuple) -> Tuple:
        return t[-1:]

    left, right = sides(space)
    on = ("stream", left.names[-1]), ("stream_2", right.names[-1])
    if kind == "semi" or kind == "anti":  # noqa: PLR1714  so that mypy knows what is left
        semi = SemiJoin(*on, kind == "anti", residual).bounded(left, right)
        computed = any(bound.plain is None for bound in semi.bounds[0])
        lefts = [*universe, *(_FAR if computed else ())]
        mays = {right for right in universe if any(condition(left, right) for left in lefts)}
        specified = pair_invariants.semi_joining(key, condition, universe, anti=semi.anti, may=mays.__contains__)
        return Case(semi, (left, right), specified, space.universe, cuts=True)
    join = Join(kind, *on, residual).bounded(left, right)
    return marked_pairs(join, space, pair_invariants.joining(kind, key, condition, universe))


def _words(text: str) -> str:
    """The text with a blank around each word."""
    return "".join(c if c.isalnum() or c == "_" else " " for c in f" {text} ")


def _before(a: Any, b: Any) -> bool:
    """The order of values of one type, or of two types of numbers; none is null."""
    return oracle.before(*(map(float, (a, b)) if isinstance(a, float) or isinstance(b, float) else (a, b)))


RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": _before,
    "<=": lambda a, b: not _before(b, a),
    ">": lambda a, b: _before(b, a),
    ">=": lambda a, b: not _before(a, b),
}
"""Comparisons of two values, in the order of their types; neither of them is null."""

OF_TYPES = [
    SmallSchema(Schema((Attribute("a", one.domain), Attribute("b", other.domain), Attribute("c", _TWO.domain))), smalls)
    for one, other in product([small for small in SMALL if small.domain.type != "BOOLEAN"], repeat=2)
    if one.domain.type == other.domain.type or {one.domain.type, other.domain.type} == {"INT", "BIGINT"}
    for smalls in [(one, other, _TWO)]
]
"""Spaces with each type for what one side compares, and for what it is compared with.

Of other pairs of types no universe has a value between all the ends of both.
"""


def comparing(kind: Kind, relation: str) -> Callable[[SmallSchema], Case]:
    """The case of a join of that kind on the last attribute, and a comparison of the left's first with `b_2`."""

    def build(space: SmallSchema) -> Case:
        def condition(left: Tuple, right: Tuple) -> bool:
            return left[0] is not None and right[1] is not None and RELATIONS[relation](left[0], right[1])

        case = _joining(kind, f"a {relation} b_2", condition, space, space.surroundings)
        return replace(case, outputs=case.outputs[:: 1 + len(case.outputs) // 97])

    return build
