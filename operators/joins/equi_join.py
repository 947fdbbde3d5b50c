"""The equi-join of two inputs: which tuples have partners, and which can get no more of them.

A tuple's key is its values of the join attributes, and those that its bounds stand at (`bounded_key`). What one side's
punctuations, described on its join attributes and on what the other side's tuples bound of it, say of keys is said in
the terms of that side, whose tuples they purge (joinPs of Tucker et al. 2003, Table 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from operators.expressions.bounds import NO_BOUNDS, Bounds
from operators.expressions.references import attributes_in
from operators.groupings import Condition
from operators.joins.bounded_key import BoundedKey
from operators.state.behaviour import Slice, Tuples, bag_union
from operators.state.operator_state import OperatorState
from operators.state.row_joins import theta_join
from operators.state.state_schema import LogSchema
from punct_ns.errors import QueryError
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme
from punct_ns.slices import quoted


@dataclass(frozen=True)
class EquiJoin:
    """The join attributes of a left and a right input, equal pairwise, and a further condition on pairs.

    `bounds` is what follows from the condition for the tuples of each side.

    Raises:
        QueryError: There are none, or not as many on both sides, or one twice.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    residual: str | None = None
    bounds: Bounds = NO_BOUNDS

    def __post_init__(self) -> None:
        if not self.left or len(self.left) != len(self.right):
            raise QueryError("a join needs as many attributes of one side as of the other, at least one")
        if any(len({name.lower() for name in side}) < len(side) for side in self.on):
            raise QueryError("a join attribute stands twice", hint="put the second equality into a condition beside")

    @cached_property
    def on(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The join attributes of both sides."""
        return self.left, self.right

    @cached_property
    def condition(self) -> str:
        """When two tuples are partners, as Spark SQL; a null key has none."""
        tests = [f"{quoted(mine)} = {quoted(theirs)}" for mine, theirs in zip(*self.on, strict=True)]
        return " AND ".join([*tests, *([f"({self.residual})"] if self.residual else [])])

    @cached_property
    def references(self) -> tuple[str, ...]:
        """The attributes that tell partners, of both sides."""
        bounds = [name for side in self.bounds for bound in side for name in (*bound.needs, bound.attribute)]
        return (*self.left, *self.right, *(attributes_in(self.residual) if self.residual else ()), *bounds)

    @cached_property
    def bounded_keys(self) -> tuple[BoundedKey, BoundedKey]:
        """What the tuples of each side wait for."""
        left, right = (BoundedKey(side, self.on[side], self.on[1 - side], self.bounds[side]) for side in range(2))
        return left, right

    def keys(self, side: int, inputs: Sequence[Schema]) -> Schema:
        """The join attributes of a side."""
        return Schema(tuple(map(inputs[side].attribute, self.on[side])))

    def places(self, side: int, inputs: Sequence[Schema]) -> list[tuple[int, int]]:
        """Where the join attributes stand in that side's schema, and where those equal to them in the other's."""
        return [
            (inputs[side].index(mine), inputs[1 - side].index(theirs))
            for mine, theirs in zip(self.on[side], self.on[1 - side], strict=True)
        ]

    def equivalents(self, side: int) -> dict[str, tuple[str]]:
        """For a side's join attributes, in lower case, those equal to them."""
        return {mine.lower(): (theirs,) for mine, theirs in zip(self.on[side], self.on[1 - side], strict=True)}

    def until(self, side: int) -> Condition:
        """What says that a tuple of a side will have no partner any more; null keys have none, ever."""
        return self.bounded_keys[side].until()

    def is_described(self, side: int, schemes: Sequence[Scheme]) -> bool:
        """Whether some scheme of a side closes what the other side's tuples wait for, by finitely many punctuations."""
        return self.bounded_keys[1 - side].is_described(schemes)

    def log(self, side: int, inputs: Sequence[Schema]) -> LogSchema:
        """A log of kept tuples of a side, for the operator to declare."""
        key = self.bounded_keys[side]
        shown = (lambda frame: frame.drop(*key.columns)) if key.columns else None
        return LogSchema(key.schema(inputs), of=side, shown=shown)

    def punctuation_sets(self, inputs: Sequence[Schema]) -> dict[str, Schema]:
        """What is kept of each side's punctuations, for the operator to declare: those on keys in the other's terms."""
        first, second = (key.punctuation_sets(inputs) for key in reversed(self.bounded_keys))
        return {**first, **second}

    def covered_keys(self, inputs: Sequence[Slice], state: OperatorState) -> list[list[Punctuation]]:
        """For each side, what the other side's punctuations newly cover of its tuples."""
        return [self.bounded_keys[side].newly_covered(inputs[1 - side].punctuations, state) for side in range(2)]

    def still_open(self, tuples: Tuples, side: int, state: OperatorState) -> Tuples:
        """The tuples of a side to which partners may yet come, as they are kept."""
        return self.bounded_keys[side].still_waiting(tuples, state)

    def covered(self, tuples: Tuples, side: int, state: OperatorState) -> Tuples:
        """The tuples of a side to which none can: those the other side covers, or that can have no partner."""
        return self.bounded_keys[side].without_partners(tuples, state)

    def without_columns(self, tuples: Tuples, side: int) -> Tuples:
        """Kept tuples without the columns that they are kept with."""
        columns = self.bounded_keys[side].columns
        return replace(tuples, frame=tuples.frame.drop(*columns)) if columns else tuples

    def pairs(self, new: Sequence[Tuples | None], kept: Sequence[Tuples | None]) -> Tuples | None:
        """The pairs of new tuples with kept ones and with each other, each pair once."""
        found = []
        later = [part for part in (kept[1], new[1]) if part is not None]
        if new[0] is not None and later:
            found.append(theta_join(new[0], _whole(later), self.condition))
        if kept[0] is not None and new[1] is not None:
            found.append(theta_join(kept[0], new[1], self.condition))
        return bag_union(found)

    def with_partner(self, tuples: Tuples, others: Sequence[Tuples | None]) -> Tuples | None:
        """The tuples that have a partner among the others, each as often as it is there."""
        there = [part for part in others if part is not None]
        return theta_join(tuples, _whole(there), self.condition, "left_semi") if there else None

    def without_partner(self, tuples: Tuples, others: Sequence[Tuples | None]) -> Tuples:
        """The tuples that have none."""
        there = [part for part in others if part is not None]
        return theta_join(tuples, _whole(there), self.condition, "left_anti") if there else tuples


def _whole(parts: Sequence[Tuples]) -> Tuples:
    whole = bag_union(parts)
    assert whole is not None
    return whole
