"""Joins whose condition bounds what tuples wait for: of three small integers, the last one the key, the others within.

Each is written twice: as Spark SQL over `a`, `b` and `c` of one side and `a_2`, `b_2` and `c_2` of the other, and as a
function of both tuples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from operators.join import Join
from operators.joins.join_sides import JoinKind
from operators.semi_join import SemiJoin
from punct_ns.domain import Domain
from punct_ns.schema import Attribute, Schema
from tests.oracles import pair_invariants
from tests.oracles.oracle import Tuple
from tests.properties.case import Case
from tests.properties.pair_cases import marked_pairs, sides
from tests.samples.strategies import Small, SmallSchema

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

    def key(t: Tuple) -> Tuple:
        return t[-1:]

    def build(space: SmallSchema) -> Case:
        left, right = sides(space)
        on = ("stream", left.names[-1]), ("stream_2", right.names[-1])
        if kind == "semi" or kind == "anti":  # noqa: PLR1714  so that mypy knows what is left
            semi = SemiJoin(*on, kind == "anti", residual).bounded(left, right)
            computed = any(bound.plain is None for bound in semi.bounds[0])
            lefts = [*space.universe, *(_FAR if computed else ())]
            mays = {right for right in space.universe if any(condition(left, right) for left in lefts)}
            specified = pair_invariants.semi_joining(
                key, condition, space.universe, anti=semi.anti, may=mays.__contains__
            )
            return Case(semi, (left, right), specified, space.universe, cuts=True)
        join = Join(kind, *on, residual).bounded(left, right)
        return marked_pairs(join, space, pair_invariants.joining(kind, key, condition, space.universe))

    return build


def _words(text: str) -> str:
    """The text with a blank around each word."""
    return "".join(c if c.isalnum() or c == "_" else " " for c in f" {text} ")
