"""join: pairs of tuples that agree on the join attributes; symmetric, so that neither input waits for the other.

Meaning:    R ⋈_θ S = {| (r, s) | r ∈ R, s ∈ S, r.A = s.B, θ(r, s) |}; null keys never match. Left, right and full
            outer: a tuple of a preserved side that has no partner comes once, with nulls for the other side.
Example:    Join("left", ("id",), ("auction",))
              over (id INT, item STRING), (auction INT, bid INT) gives (id INT, item STRING, auction INT, bid INT)
              in   (1, a) (2, b) <1, *> |
              in   (1, 15)              | (1, 16) <{1,2}, *>
              out  (1, a, 1, 15)        | (1, a, 1, 16) (2, b, null, null) <*, *, [1,2], *> <1, *, *, *>
Step:       (new₁ ⋈ (kept₂ ∪ new₂)) ∪ (kept₁ ⋈ new₂)
Pass:       inner: –. Outer: {(r, nulls) | r of a preserved side, without partner, r.A null or covered by S}.
Keep:       of each side {t ∈ kept ∪ new | no p of the other side, described on the join attributes, matches t's key};
            of a preserved side also whether a partner came. Tuples with a null key are never kept. Where θ bounds an
            attribute of the other side by a value of t, p may also be described on that attribute: t is purged once
            everything within its bounds is closed.
Propagate:  the parts of a side's punctuations that no kept tuple of that side matches, also moved to the equal
            attributes of the other side.
            Outer: the preserved side's as in an inner join, but moved without null. Those of the null-supplying side
            are never moved, and restrict its key to values that are not null; several that close a key together go out
            for that key, too, since nulls of its other attributes come with a null key alone. Full outer: null keys of
            both sides together, once both sides have closed null keys. With `punctuates` also, once, that a null key of
            the null-supplying side stands beside no value of that side. So what a side closes by its key is also closed
            for operators that look at its other attributes.
Safe when:  each side's schemes describe the join attributes, and attributes that are bounded from above by a prefix.
Source:     Tucker et al. 2003, Tables 3 and 4 (joinPs, modPs), §7.2. Differs: Table 3 is applied to the kept tuples,
            after keep; punctuations go out in parts, and moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.behaviour import Operator, Terms, among, own_terms
from xmlstream.operators.closing_conditions import Condition, Every
from xmlstream.operators.expressions.bounds import NO_BOUNDS, Bounds, bounds_between
from xmlstream.operators.frames.expression import Column, as_columns, spark_sql
from xmlstream.operators.joins.equal_attributes import equal_terms_of_two
from xmlstream.operators.joins.equi_join import EquiJoin
from xmlstream.operators.joins.forgetting import forget_keys
from xmlstream.operators.joins.join_sides import JoinKind, JoinSides
from xmlstream.operators.joins.punctuation_graph import Equality
from xmlstream.operators.joins.purge_strategy import EAGER, PurgeStrategy
from xmlstream.operators.required_punctuations import Held, Row, Way, whole, without
from xmlstream.operators.state.blocked_set import emittable
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples, anti_join, bag_union
from xmlstream.operators.state.state_schema import LogSchema, StateSchema
from xmlstream.operators.state.tuple_log import TupleLog
from xmlstream.operators.taking_over import TakesOver
from xmlstream.punct_ns.lifespan import shortest
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import placed, project
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme


@dataclass(frozen=True, slots=True)
class Join(Operator):
    """The pairs of tuples of two inputs, whose attributes have different names, that agree on the join attributes.

    `left_on` and `right_on` are equal pairwise, of equal types. `residual` is Spark SQL over the attributes of both
    sides, a further condition on pairs. `bounds` are the bounds that follow from it for the tuples of each side
    (`bounded`). `purge` is the purge strategy for the join of many inputs that this join may become part of; a join of
    two purges eagerly. With `punctuates`, an outer join emits punctuations on tuples that never go out: a null key of a
    padded side beside values of that side.
    """

    kind: JoinKind
    left_on: tuple[str, ...]
    right_on: tuple[str, ...]
    residual: str | None = None
    bounds: Bounds = field(default=NO_BOUNDS, compare=False)
    purge: PurgeStrategy = field(default=EAGER, compare=False)
    punctuates: bool = False
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_TUPLES

    def bounded(self, *inputs: Schema) -> Join:
        """The join with the bounds that follow from its residual condition."""
        return replace(self, bounds=bounds_between(self.residual, (self.left_on, self.right_on), inputs))

    def schema(self, *inputs: Schema) -> Schema:
        return self.sides.schema(inputs)

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """The schemes of each side whose tuples the other side's schemes purge, and their forms on equal attributes."""
        return self.sides.schemes(inputs)

    def enabled_by(self, *inputs: Schema) -> Condition:
        return Every(tuple(self.equi_join.bounded_keys[side].until() for side in self.sides.preserved))

    def parameters(self, output: Schema) -> str:
        purge = "" if not self.purge.chosen or self.purge.is_eager else "; purge eager, since it is a join of two"
        return f"{self.kind}: {spark_sql(self.equi_join.condition)}{purge}"

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        return [among((*needed, *self.equi_join.references), schema) for schema in inputs]

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """For an inner join, the terms of each input; for an outer join, those of the only preserved side."""
        if self.kind == "inner":
            return equal_terms_of_two(inputs, self.equi_join.on)
        return [own_terms(side) if self.sides.preserved == (i,) else {} for i, side in enumerate(inputs)]

    def residual_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """For an inner join, the terms of each input; for an outer join none: it needs the whole condition."""
        return equal_terms_of_two(inputs, self.equi_join.on) if self.kind == "inner" else [{}, {}]

    def with_residual(self, residual: str | None) -> Join:
        return replace(self, residual=residual)

    def excludes(self, *inputs: Schema) -> Sequence[Punctuation]:
        """Punctuations on nulls in place of a tuple, beside values of that tuple."""
        return self.sides.never_out(inputs)

    def initial(self, *inputs: Schema) -> Sequence[Punctuation]:
        return self.excludes(*inputs) if self.punctuates else ()

    def punctuating(self) -> Join:
        return replace(self, punctuates=True) if self.kind != "inner" else self

    @property
    def looked_up(self) -> Sequence[int]:
        return {"inner": (0, 1), "left": (1,)}.get(self.kind, ())

    @property
    def equal(self) -> Sequence[tuple[tuple[int, str], tuple[int, str]]] | None:
        pairs = zip(self.left_on, self.right_on, strict=True)
        return [((0, mine), (1, theirs)) for mine, theirs in pairs] if self.kind == "inner" else None

    def with_conditions(self, more: Sequence[Equality], residual: str | None, *inputs: Schema) -> Join:
        pairs = [[name for _, name in sorted(equality)] for equality in more]
        mine, theirs = ((*on, *(pair[side] for pair in pairs)) for side, on in enumerate(self.equi_join.on))
        return replace(self, left_on=mine, right_on=theirs, residual=residual).bounded(*inputs)

    @property
    def equi_join(self) -> EquiJoin:
        """The condition under which two tuples are partners."""
        return EquiJoin(self.left_on, self.right_on, self.residual, self.bounds)

    @property
    def sides(self) -> JoinSides:
        """The form of both sides in the output."""
        return JoinSides(self.kind, self.equi_join)

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        ways = [self._wanted_of(side, p, held, inputs) for side in range(2)]
        found = [way for way in ways if way is not None]
        if not found and self.kind == "full" and (both := self.sides.way_to_null_keys(p, inputs)):
            return [both]
        return found or [whole(*inputs)]

    def _wanted_of(self, side: int, p: Punctuation, held: Held, inputs: Sequence[Schema]) -> Way | None:
        """How one side's punctuation leads to the output's; None if it cannot."""
        of_side = self.sides.of_side(p, side, inputs, punctuates=self.punctuates)
        if of_side is None:
            return None
        rows: list[Row] = []
        key = self.equi_join.bounded_keys[side]
        for log in _log_names(side):
            if (some := held.rows(log, key.determined_by, of_side, f"waiting-{side}", key.beside)) is None:
                return whole(*inputs)
            rows += some
        return without((side, of_side), rows, lambda row: key.awaited(row, inputs, held), *inputs)

    def state_schema(self, *inputs: Schema) -> StateSchema:
        """Two logs of tuples of each side, the closed keys, the emitted punctuations, and the blocked ones.

        Tuples of a preserved side without a partner so far go out in the end.
        """
        logs: dict[str, LogSchema] = {}
        for key, name in zip(self.equi_join.bounded_keys, ("left", "right"), strict=True):
            alone, partnered = _log_names(key.side)
            log = key.log(f"tuples of the {name} side", inputs)
            logs[alone] = replace(log, blocks=key.side in self.sides.preserved, undecided=True)
            logs[partnered] = replace(log, blocks=False, what=f"{log.what} with a partner")
        sets = {**self.equi_join.punctuation_sets(inputs), "sent": self.schema(*inputs)}
        return StateSchema(logs, sets, waiting={f"waiting-{side}": schema for side, schema in enumerate(inputs)})

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        new = state.scratch(_OfSlice).new = state.arrived(inputs)
        return self.equi_join.pairs(new, [self._partners_of(new[1 - side], side, state) for side in range(2)])

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        scratch = state.scratch(_OfSlice)
        scratch.covered = self.equi_join.covered_keys(inputs, state)
        sides = self.sides.preserved
        others = {
            side: (self._partners_of(scratch.new[side], 1 - side, state), scratch.new[1 - side]) for side in sides
        }
        return bag_union(part for side in sides for part in self._alone(side, others[side], state))

    def _alone(self, side: int, others: tuple[Tuples | None, Tuples | None], state: OperatorState) -> Iterator[Tuples]:
        """The tuples of a preserved side that will have no partner; those with a partner move to the other log."""
        scratch, equi_join, names = state.scratch(_OfSlice), self.equi_join, state.inputs[side].names
        key = equi_join.bounded_keys[side]
        alone, partnered = self._logs(side, state)
        waiting = equi_join.near(others[1], side, alone)
        some = None if waiting is None else equi_join.with_partner(waiting, others[1:])
        if some is not None and (found := state.computed(some)).at_most:
            alone.remove(found, names)
            partnered.append(found)
        if (new := scratch.new[side]) is not None:
            some = equi_join.with_partner(new, others)
            if some is not None and (found := state.computed(some)).at_most:
                partnered.append(key.still_waiting(found, state))
                new = anti_join(new, found, names)
            scratch.new[side] = new = state.computed(new)
            yield self._extended(key.without_partners(new, state), side, state)
        if scratch.covered[side] and (taken := alone.take(scratch.covered[side])) is not None:
            yield self._extended(taken, side, state)

    def _extended(self, tuples: Tuples, side: int, state: OperatorState) -> Tuples:
        """Extends tuples without a partner by nulls for the other side."""
        own: Sequence[str | Column] = state.inputs[side].names
        nulls: Sequence[str | Column] = as_columns(
            {a.name: f"CAST(NULL AS {a.domain.type})" for a in state.inputs[1 - side]}
        )
        return replace(tuples, frame=tuples.frame.select(*(*own, *nulls) if side == 0 else (*nulls, *own)))

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        scratch = state.scratch(_OfSlice)
        for side, covered in enumerate(scratch.covered):
            alone, partnered = self._logs(side, state)
            partnered.purge(covered)
            if side not in self.sides.preserved:
                alone.purge(covered)
            if (new := scratch.new[side]) is not None:
                alone.append(self.equi_join.bounded_keys[side].still_waiting(new, state))

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        output, sides = self.schema(*state.inputs), self.sides
        found: list[Punctuation] = []
        for side, slice_ in enumerate(inputs):
            new, kept = slice_.punctuations, self._logs(side, state)
            new = (*new, *self._on_keys(side, new, state))
            out = emittable(f"waiting-{side}", new, kept, state, state.inputs[side], self.equi_join.on[side])
            found += sides.of_output(out, side, output, state.inputs)
        if self.kind == "full":
            # These follow from neither side alone: a side's punctuations do not cover nulls in its place.
            found += (*sides.never_keys(output, state.inputs), *sides.null_keys(output, state))
            if self._is_over(state):
                ends = (state.punctuations(f"input-{i}").lifespan(Punctuation.all(state.inputs[i])) for i in range(2))
                found = [Punctuation.all(output).lasting(shortest(ends))]
        sent, excluded = state.punctuations("sent"), self.initial(*state.inputs)
        out = sent.absorb((*excluded, *found))
        forget_keys(self.equi_join, state.scratch(_OfSlice).covered, out, state, output)
        sent.absorb(excluded)  # offered in each slice, they go out once
        return out

    def _on_keys(self, side: int, new: Sequence[Punctuation], state: OperatorState) -> Sequence[Punctuation]:
        """The keys of a padded side that several of its punctuations close, where other attributes are never null.

        These are nullable in the output, where the several do not cover null, though no tuple with a key has it there.
        """
        names, own = self.equi_join.on[side], state.inputs[side]
        keys = own.only(names)
        lasting = [p for p in new if p.lifespan is None]
        if not lasting or not self.sides.is_padded(side) or all(a.domain.nullable for a in own if a not in keys):
            return ()
        return placed(project(state.punctuations(f"input-{side}").lasting, names, keys, new=lasting), names, own)

    def _is_over(self, state: OperatorState) -> bool:
        """Whether both sides are closed, and no tuple waits for a partner."""
        closed = (state.punctuations(f"input-{side}").set.is_all for side in range(2))
        return all(closed) and all(log.is_empty for side in range(2) for log in self._logs(side, state))

    def _logs(self, side: int, state: OperatorState) -> tuple[TupleLog, TupleLog]:
        """The kept tuples of a side: those without a partner so far (all, if not preserved), and those with one."""
        alone, partnered = map(state.log, _log_names(side))
        return alone, partnered

    def _partners_of(self, tuples: Tuples | None, side: int, state: OperatorState) -> Tuples | None:
        """The kept tuples of a side that may be partners of the other side's tuples."""
        kept = bag_union(self.equi_join.near(tuples, side, log) for log in self._logs(side, state))
        return kept and self.equi_join.bounded_keys[side].without_columns(kept)


def _log_names(side: int) -> tuple[str, str]:
    return f"side-{side}", f"side-{side}-partnered"


@dataclass(slots=True)
class _OfSlice:
    """Results of the behaviours for one slice.

    Attributes:
        new: The new tuples of each side; of a preserved side, after `pass_`, those without a partner.
        covered: For each side, the new punctuations on keys that can have no more partners.
    """

    new: list[Tuples | None] = field(default_factory=lambda: [None, None])
    covered: list[list[Punctuation]] = field(default_factory=list)
