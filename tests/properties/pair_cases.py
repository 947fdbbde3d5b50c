"""The operators of two inputs in the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import get_args

from tests.oracles import oracle, pair_invariants
from tests.oracles.invariants import Invariants
from tests.oracles.oracle import Tuple
from tests.properties.case import Case, numbered
from tests.samples.strategies import SmallSchema
from xmlstream.operators.difference import Difference
from xmlstream.operators.intersect import Intersect
from xmlstream.operators.join import Join
from xmlstream.operators.joins.join_sides import JoinKind
from xmlstream.operators.semi_join import SemiJoin
from xmlstream.punct_ns.schema import Attribute, Schema


def sides(space: SmallSchema) -> tuple[Schema, Schema]:
    """The two inputs of a join, whose attributes have different names."""
    left = numbered(space.schema)
    return left, Schema(tuple(Attribute(f"{a.name}_2", a.domain) for a in left))


def _last(t: Tuple) -> Tuple:
    return t[-1:]


def _not_below(left: Tuple, right: Tuple) -> bool:
    """The left's first value is not above the right's; null is neither."""
    return left[0] is not None and right[0] is not None and not oracle.before(right[0], left[0])


def _joining(kind: JoinKind, *, residual: bool) -> Callable[[SmallSchema], Case]:
    def build(space: SmallSchema) -> Case:
        left, right = sides(space)
        condition = _not_below if residual else lambda left, right: True
        operator = Join(
            kind,
            ("stream", left.names[-1]),
            ("stream_2", right.names[-1]),
            f"`{left.names[1]}` <= `{right.names[1]}`" if residual else None,
        ).bounded(left, right)
        return marked_pairs(operator, space, pair_invariants.joining(kind, _last, condition, space.universe))

    return build


def marked_pairs(operator: Join, space: SmallSchema, specified: Invariants) -> Case:
    """The case of a join on the last attribute, whose pairs are told from tuples without a partner by the numbers."""
    universe, width = space.universe, len(space.schema) + 1
    nobody = (None,) * width
    outputs = [(0, *a, 0, *b) for a, b in product(universe, universe) if a[-1] is not None and a[-1] == b[-1]]
    outputs += [(0, *a, *nobody) for a in universe] if operator.kind in ("left", "full") else []
    outputs += [(*nobody, 0, *b) for b in universe] if operator.kind in ("right", "full") else []

    def number(t: Tuple) -> int:
        return int(t[width] if t[0] is None else t[0])

    def marked(t: Tuple, mark: int) -> Tuple:
        return tuple(mark if i in (0, width) and v is not None else v for i, v in enumerate(t))

    return Case(
        operator,
        sides(space),
        specified,
        outputs,
        number=number,
        bare=lambda t: marked(t, 0),
        whole=lambda n, u: marked(u, n),
        cuts=True,
    )


def _semi_joining(*, anti: bool, residual: bool = False) -> Callable[[SmallSchema], Case]:
    def build(space: SmallSchema) -> Case:
        left, right = sides(space)
        operator = SemiJoin(
            ("stream", left.names[-1]),
            ("stream_2", right.names[-1]),
            anti,
            f"`{left.names[1]}` <= `{right.names[1]}`" if residual else None,
        ).bounded(left, right)
        condition = _not_below if residual else None
        specified = pair_invariants.semi_joining(
            _last, condition, space.universe, anti=anti, may=lambda right: not residual or right[0] is not None
        )
        return Case(operator, (left, right), specified, space.universe, cuts=True)

    return build


def intersecting(space: SmallSchema) -> Case:
    schema = numbered(space.schema)
    return Case(Intersect(schema), (schema, schema), pair_invariants.intersecting(), space.universe, cuts=True)


def subtracting(space: SmallSchema) -> Case:
    schema = numbered(space.schema)
    return Case(Difference(schema), (schema, schema), pair_invariants.subtracting(), space.universe, cuts=True)


PAIRS: dict[str, Callable[[SmallSchema], Case]] = {
    **{f"join, {kind}": _joining(kind, residual=False) for kind in get_args(JoinKind)},
    **{f"join, {kind}, with a condition": _joining(kind, residual=True) for kind in get_args(JoinKind)},
    "semi join": _semi_joining(anti=False),
    "semi join, with a condition": _semi_joining(anti=False, residual=True),
    "anti join": _semi_joining(anti=True),
    "anti join, with a condition": _semi_joining(anti=True, residual=True),
    "intersect": intersecting,
    "difference": subtracting,
}
