"""row_window and look_ahead with what the papers' invariants say: in the order of attributes, and of arrival."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

from tests.oracles import invariants, oracle
from tests.oracles.oracle import Tuple
from tests.properties.case import Case, one
from tests.samples.strategies import SmallSchema
from xmlstream.operators.expressions.aggregates import TO_THE_END, Over
from xmlstream.operators.look_ahead import LookAhead
from xmlstream.operators.row_window import RowWindow
from xmlstream.operators.sort_order import SortKey
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.schema import Attribute


def _named(name: str, type_: str) -> Attribute:
    return Attribute(name, Domain(type_))


def _least(values: list[Any]) -> Any:
    present = [value for value in values if value is not None]
    return next((v for v in present if not any(oracle.before(other, v) for other in present)), None)


def _looking(space: SmallSchema) -> tuple[tuple[Over, ...], Callable[[list[Tuple], int], Tuple]]:
    """How many of the last three have a first value, the least so far, that of the one two before, the number."""
    first = space.schema[0]
    functions = (
        Over(_named("some", "BIGINT"), f"count(`{first.name}`)", 2),
        Over(_named("least", first.domain.type), f"min(`{first.name}`)"),
        Over(_named("earlier", first.domain.type), f"lag(`{first.name}`, 2)", 2, 2),
        Over(_named("number", "INT"), "row_number()"),
    )

    def answer(ts: list[Tuple], i: int) -> Tuple:
        some = sum(t[0] is not None for t in ts[max(0, i - 2) : i + 1])
        return some, _least([t[0] for t in ts[: i + 1]]), ts[i - 2][0] if i > 1 else None, i + 1

    return functions, answer


def rolling(space: SmallSchema) -> Case:
    """Over the rows of a stream's groups by all but the last attribute, in the order of that."""
    functions, answer = _looking(space)
    *others, last = space.schema.names
    operator = RowWindow(functions, (SortKey(last),), ("stream", *others))
    place = len(others)
    specified = invariants.looking_back(lambda t: t[:place], [oracle.Key(place)], answer, 2, space.surroundings)
    return Case(operator, one(space), specified, [(*t, 0, None, None, 1) for t in space.universe])


def rolling_down(space: SmallSchema) -> Case:
    """Over all rows of a stream, in the descending order of its last attribute, and what its peers come to."""
    first, last = space.schema[0], space.schema.names[-1]
    place = len(space.schema) - 1
    functions = (
        Over(_named("before", "BIGINT"), f"count(`{first.name}`)", 2, 1),
        Over(_named("some", "BIGINT"), f"count(`{first.name}`)", peers=True),
        Over(_named("rank", "INT"), "rank()"),
    )

    def answer(ts: list[Tuple], i: int) -> Tuple:
        peers = [j for j, t in enumerate(ts) if oracle.same(t[place], ts[i][place])]
        before = sum(t[0] is not None for t in ts[max(0, i - 2) : i])
        return before, sum(t[0] is not None for t in ts[: peers[-1] + 1]), peers[0] + 1

    operator = RowWindow(functions, (SortKey(last, descending=True, nulls_first=False),), ("stream",))
    key = oracle.Key(place, descending=True, nulls_first=False)
    specified = invariants.looking_back(lambda t: (), [key], answer, 2, space.surroundings)
    return Case(operator, one(space), specified, [(*t, 0, 0, 1) for t in space.universe])


def counting(space: SmallSchema) -> Case:
    """In the order of arrival, by a stream's last attribute."""
    functions, answer = _looking(space)
    place = len(space.schema) - 1
    operator = RowWindow(functions, (), ("stream", space.schema.names[-1]))
    specified = invariants.arriving(lambda t: (t[place],), answer, 2, space.universe)
    return Case(operator, one(space), specified, [(*t, 0, None, None, 1) for t in space.universe], positions=True)


def _leading(space: SmallSchema) -> tuple[tuple[Over, ...], Callable[[list[Tuple], int], Tuple]]:
    """The first value two behind, and how many from the one before up to the one behind have one."""
    first = space.schema[0]
    functions = (
        Over(_named("later", first.domain.type), f"lead(`{first.name}`, 2)", -2, -2),
        Over(_named("around", "BIGINT"), f"count(`{first.name}`)", 1, -1),
    )

    def answer(ts: list[Tuple], i: int) -> Tuple:
        around = sum(t[0] is not None for t in ts[max(0, i - 1) : i + 2])
        return ts[i + 2][0] if i + 2 < len(ts) else None, around

    return functions, answer


def looking_ahead(space: SmallSchema) -> Case:
    """Over the rows of a stream, in the order of its last attribute."""
    functions, answer = _leading(space)
    place = len(space.schema) - 1
    operator = LookAhead(functions, (SortKey(space.schema.names[-1]),), ("stream",))
    key = oracle.Key(place)
    specified = invariants.looking_back(lambda t: (), [key], answer, 3, space.surroundings, 2)
    return Case(operator, one(space), specified, [(*t, None, 0) for t in space.universe], cuts=True)


def looking_ahead_in_groups(space: SmallSchema) -> Case:
    """Over the rows of a stream's groups by all but its first attribute, in the descending order of that."""
    functions, answer = _leading(space)
    first, *others = space.schema.names
    operator = LookAhead(functions, (SortKey(first, descending=True),), ("stream", *others))
    specified = invariants.looking_back(
        lambda t: t[1:], [oracle.Key(0, descending=True, nulls_first=False)], answer, 3, space.surroundings, 2
    )
    return Case(operator, one(space), specified, [(*t, None, 0) for t in space.universe], cuts=True)


def looking_at_all(space: SmallSchema) -> Case:
    """Over all rows of a stream's groups by all but its first attribute: how many there are, and have a first value."""
    first, *others = space.schema.names
    functions = (
        Over(_named("all", "BIGINT"), "count(*)", last=TO_THE_END),
        Over(_named("some", "BIGINT"), f"count(`{first}`)", last=TO_THE_END),
    )

    def answer(ts: list[Tuple], i: int) -> Tuple:
        return len(ts), sum(t[0] is not None for t in ts)

    operator = LookAhead(functions, (), ("stream", *others))
    specified = invariants.looking_back(lambda t: t[1:], [], answer, 0, space.surroundings)
    return Case(operator, one(space), specified, [(*t, 1, 0) for t in space.universe], cuts=True)


DISTANCES: dict[str, tuple[str, Any]] = {
    "INT": ("1", 1),
    "BIGINT": ("2", 2),
    "DECIMAL(2,1)": ("0.1", Decimal("0.1")),
    "DOUBLE": ("0.9", 0.9),
    "DATE": ("INTERVAL '1' DAY", timedelta(days=1)),
    "TIMESTAMP": ("INTERVAL '1' MICROSECOND", timedelta(microseconds=1)),
}
"""The distance of a frame, by the type of its key, in Spark SQL and in Python."""


def within(space: SmallSchema) -> Case:
    """How many have a first value, of the rows of a group by all but the last attribute, a distance back by that."""
    first, *_ = space.schema.names
    last, place = space.schema.names[-1], len(space.schema) - 1
    text, distance = DISTANCES[space.schema[-1].domain.type]
    functions = (
        Over(_named("some", "BIGINT"), f"count(`{first}`)", distance=text),
        Over(_named("all", "BIGINT"), "count(*)", distance=text),
    )

    def sees(t: Tuple, u: Tuple) -> bool:
        at, other = t[place], u[place]
        if at is None or other is None:
            return at is other
        return bool(at - distance <= other <= at)

    def answer(ts: list[Tuple], i: int) -> Tuple:
        seen = [u for u in ts if sees(ts[i], u)]
        return sum(u[0] is not None for u in seen), len(seen)

    operator = RowWindow(functions, (SortKey(last),), ("stream", *space.schema.names[:-1]))
    key = oracle.Key(place)
    specified = invariants.looking_back(lambda t: t[:place], [key], answer, 0, space.surroundings, sees=sees)
    return Case(operator, one(space), specified, [(*t, 0, 0) for t in space.universe])


ROWS: dict[str, Callable[[SmallSchema], Case]] = {
    "row_window": rolling,
    "row_window, descending": rolling_down,
    "row_window, by arrival": counting,
    "look_ahead": looking_ahead,
    "look_ahead, in groups": looking_ahead_in_groups,
    "look_ahead, at whole groups": looking_at_all,
}
