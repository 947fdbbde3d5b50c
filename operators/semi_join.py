"""semi_join: left tuples that have a partner, once each; as an anti join, those that have none.

Meaning:    R ⋉_θ S = {| r ∈ R | ∃ s ∈ S: r.A = s.B, θ(r, s) |}; R ▷_θ S = R − (R ⋉_θ S). Null keys have no partner.
Example:    SemiJoin(("id",), ("seller",), anti=True)
              over (id INT, city STRING), (seller INT) gives (id INT, city STRING)
              in   (1, a) (2, b) <{1,2}, *> |
              in   (2)                      | <1>
              out  <2, *>                   | (1, a) <1, *>
Step:       semi: {r ∈ new₁ | partner in kept₂ ∪ new₂} ∪ {r ∈ kept₁ | partner in new₂}. Anti: –
Pass:       semi: –. Anti: {r ∈ kept₁ ∪ new₁ | no partner, r.A null or covered by S}
Keep:       the left tuples that have no partner yet, until S covers their key; right keys, once each, until R covers
            them (right tuples, where θ looks at them). Where θ bounds an attribute of the other side, until everything
            within the bounds is covered, as in a join.
Propagate:  the parts of the left's punctuations that no undecided left tuple matches. Semi: also those of the right's
            punctuations, described on the join attributes, that no kept right tuple matches, moved to the left's. With
            θ also the keys whose left tuples can find no partner any more, whatever values their domains allow.
Safe when:  each side's schemes describe the join attributes, and attributes that are bounded from above by a prefix.
Source:     after Tucker et al. 2003, Tables 3 and 4 for join and difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.behaviour import Operator, Terms, among
from xmlstream.operators.closing_conditions import ALWAYS, Condition, StateModel
from xmlstream.operators.expressions.bounds import NO_BOUNDS, Bounds, bounds_between
from xmlstream.operators.expressions.throwable import takes_equals_alike
from xmlstream.operators.frames.expression import spark_sql
from xmlstream.operators.joins.equal_attributes import equal_terms_of_two, rewritten_schemes
from xmlstream.operators.joins.equi_join import EquiJoin
from xmlstream.operators.joins.forgetting import forget_keys
from xmlstream.operators.required_punctuations import Held, Way, on, without
from xmlstream.operators.state.blocked_set import emittable
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples, anti_join, bag_union
from xmlstream.operators.state.state_schema import StateSchema
from xmlstream.operators.taking_over import TakesOver
from xmlstream.punct_ns.pattern import EMPTY, NOT_NULL, matches, meet
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import recast_all, required_of
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme


@dataclass(frozen=True, slots=True)
class SemiJoin(Operator):
    """The left tuples with a partner, or with `anti` those without; as `Join`, but with the left's attributes only."""

    left_on: tuple[str, ...]
    right_on: tuple[str, ...]
    anti: bool = False
    residual: str | None = None
    bounds: Bounds = field(default=NO_BOUNDS, compare=False)
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_TUPLES
    looked_up: ClassVar[Sequence[int]] = (1,)

    def bounded(self, *inputs: Schema) -> SemiJoin:
        """The join with the bounds that follow from its residual condition."""
        return replace(self, bounds=bounds_between(self.residual, (self.left_on, self.right_on), inputs))

    def schema(self, *inputs: Schema) -> Schema:
        return inputs[0]

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """The left's schemes, if the right's decide every left tuple; and the right's on the join attributes, moved."""
        if not self.equi_join.bounded_keys[0].is_described(inputs[1]):
            return ()
        moved = [
            scheme.renamed({name: new for name, (new,) in self.equi_join.equivalents(1).items()})
            for scheme in inputs[1]
        ]
        described = [scheme for scheme in moved if scheme is not None] if self._purges_right(inputs) else []
        return tuple(dict.fromkeys([*rewritten_schemes(inputs[0], {}), *described]))

    def enabled_by(self, *inputs: Schema) -> Condition:
        return self.equi_join.bounded_keys[0].until() if self.anti else ALWAYS

    def _purges_right(self, inputs: Sequence[tuple[Scheme, ...]]) -> bool:
        return not self.anti and self.equi_join.bounded_keys[1].is_described(inputs[0])

    def parameters(self, output: Schema) -> str:
        return f"{'anti' if self.anti else 'semi'}: {spark_sql(self.equi_join.condition)}"

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        used = self.equi_join.references
        return [among((*needed, *used), inputs[0]), among(used, inputs[1])]

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """Both inputs' terms through equal attributes: a predicate on a left key applies to all its partners' keys."""
        return equal_terms_of_two(inputs, self.equi_join.on)

    def residual_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """Both inputs' terms; for an anti join, whose condition decides who has no partner, the right input's only."""
        left, right = equal_terms_of_two(inputs, self.equi_join.on)
        return [{} if self.anti else left, right]

    def with_residual(self, residual: str | None) -> SemiJoin:
        return replace(self, residual=residual)

    def ignores_duplicates(self, side: int, needed: AbstractSet[str], *inputs: Schema) -> bool:
        """For the right, R ⋉ δ(S) = R ⋉ S: only the existence of a partner counts."""
        both = Schema(tuple(attribute for schema in inputs for attribute in schema))
        return side == 1 and takes_equals_alike([self.residual] if self.residual else [], both)

    @property
    def equi_join(self) -> EquiJoin:
        """The condition under which two tuples are partners."""
        return EquiJoin(self.left_on, self.right_on, self.residual, self.bounds)

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        """The left's way, with wants of undecided tuples; for a semi join, also the right's, with those of its own."""
        equi_join, (left, right) = self.equi_join, self.equi_join.bounded_keys
        undecided = held.rows("undecided", left.determined_by, p, "waiting-0", left.beside)
        ways = [without((0, p), undecided, lambda row: left.awaited(row, inputs, held), *inputs)]
        keys = on(self.left_on, p, equi_join.keys(0, inputs))
        if not self.anti and not any(matches(pattern, None) for pattern in keys.patterns):
            of_right = required_of(keys, theirs := equi_join.keys(1, inputs))
            if of_right is not None:
                kept = held.rows(
                    "right", right.determined_by, Punctuation(theirs, keys.patterns), "waiting-1", right.beside
                )
                first = 1, on(self.right_on, of_right, inputs[1])
                ways.append(without(first, kept, lambda row: right.awaited(row, inputs, held), *inputs))
        return ways

    def state_schema(self, *inputs: Schema) -> StateSchema:
        """Left tuples without a partner so far; right keys, or right tuples if the residual condition needs them.

        Also the closed keys, the emitted punctuations, and the blocked ones. An anti join emits the undecided tuples in
        the end.
        """
        left, right = self.equi_join.bounded_keys
        undecided = replace(left.log("undecided tuples of the left side", inputs), blocks=self.anti, undecided=True)
        deciding = StateModel(
            "keys of the right side", 1, right.until(), per=None if self.residual else self.equi_join.keys(1, inputs)
        )
        kept = replace(right.log(deciding.what, inputs), models=(deciding,), blocks=False)
        logs = {"undecided": undecided, "right": kept}
        sets = {**self.equi_join.punctuation_sets(inputs), "sent": inputs[0]}
        waiting = {"waiting-0": inputs[0]}
        if not self.anti:
            waiting["waiting-1"] = self.equi_join.keys(1, inputs)
        return StateSchema(logs, sets, waiting=waiting)

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        scratch, equi_join, undecided = state.scratch(_OfSlice), self.equi_join, state.log("undecided")
        new, right = state.arrived(inputs)
        scratch.right = right and self._deciding(right, state)
        partners = [self._kept_right(new, state), scratch.right]
        decided = []
        waiting = equi_join.near(scratch.right, 0, undecided)
        if waiting is not None and (found := equi_join.with_partner(waiting, partners[1:])) is not None:
            undecided.remove(left := state.computed(found), state.inputs[0].names)
            decided.append(equi_join.bounded_keys[0].without_columns(left))
        if new is not None:
            if (found := equi_join.with_partner(new, partners)) is not None:
                decided.append(found)
            new = equi_join.without_partner(new, partners)
        scratch.undecided = new
        return None if self.anti else bag_union(decided)

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        scratch = state.scratch(_OfSlice)
        scratch.covered, key = self.equi_join.covered_keys(inputs, state), self.equi_join.bounded_keys[0]
        if not self.anti:
            return None
        leaving = []
        if (new := scratch.undecided) is not None:
            scratch.undecided = new = state.computed(new)
            leaving.append(key.without_partners(new, state))
        if scratch.covered[0] and (taken := state.log("undecided").take(scratch.covered[0])) is not None:
            leaving.append(key.without_columns(taken))
        return bag_union(leaving)

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        scratch, undecided, right = state.scratch(_OfSlice), state.log("undecided"), state.log("right")
        of_left, of_right = self.equi_join.bounded_keys
        if not self.anti:
            undecided.purge(scratch.covered[0])
        right.purge(scratch.covered[1])
        if (new := scratch.undecided) is not None:
            undecided.append(of_left.still_waiting(new, state))
        if (new := scratch.right) is not None:
            fresh, there = right.near(new.some(new.frame.distinct()), new.frame.columns)
            right.append(of_right.still_waiting(anti_join(fresh, there, new.frame.columns), state))

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        left = state.inputs[0]
        undecided = state.log("undecided")
        found = emittable("waiting-0", inputs[0].punctuations, [undecided], state, left, self.left_on)
        if not self.anti:
            mine, theirs = (self.equi_join.keys(side, state.inputs) for side in range(2))
            newly = state.scratch(_OfSlice).covered[0]
            on_keys = [p for p in newly if all(i < len(mine) for i in p.restricted)]
            over_keys = (Punctuation(mine, p.patterns[: len(mine)], p.lifespan) for p in on_keys)
            covered = [*recast_all(over_keys, theirs)]
            free = emittable("waiting-1", covered, [state.log("right")], state, theirs, self.right_on, at_all=True)
            for p in recast_all(free, mine):
                found += self._moved(p, left)
        out = state.punctuations("sent").absorb(found)
        forget_keys(self.equi_join, state.scratch(_OfSlice).covered, out, state, left)
        return out

    def _moved(self, p: Punctuation, left: Schema) -> list[Punctuation]:
        """The closed keys over the left's schema; a null key never has a partner."""
        present = {
            left.index(a.name): meet(pattern, NOT_NULL, a.domain)
            for a, pattern in zip(p.schema, p.patterns, strict=True)
        }
        return [] if EMPTY in present.values() else [Punctuation.at(left, present, p.lifespan)]

    def _kept_right(self, left: Tuples | None, state: OperatorState) -> Tuples | None:
        kept = self.equi_join.near(left, 1, state.log("right"))
        return kept and self.equi_join.bounded_keys[1].without_columns(kept)

    def _deciding(self, right: Tuples, state: OperatorState) -> Tuples:
        """The part of right tuples that decides left ones: their keys, or all attributes if there is a residual."""
        names = state.inputs[1].names if self.residual else self.right_on
        return Tuples(right.frame.select(*names), right.at_most, computed=True)


@dataclass(slots=True)
class _OfSlice:
    """Results of the behaviours for one slice.

    Attributes:
        undecided: New left tuples without a partner so far.
        right: The part of new right tuples that decides left ones.
        covered: For each side, the new punctuations on keys that can have no more partners.
    """

    undecided: Tuples | None = None
    right: Tuples | None = None
    covered: list[list[Punctuation]] = field(default_factory=list)
