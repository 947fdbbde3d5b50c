"""asof_join: each left tuple with the last right tuple of its key that is not later.

Meaning:    R ⋈ₐ S = {| (r, s) | r ∈ R, s ∈ S with the greatest s.at of those with r.A = s.B, s.at ≤ r.at |}; with
            `strict`, s.at < r.at; with a tolerance, s.at ≥ r.at - tolerance. Among equal ones, the first by the
            remaining attributes. Left: a left tuple without such a partner comes with nulls.
Example:    AsofJoin("inner", ("symbol",), ("of",), "at", "since", "INT")
              over (symbol STRING, at INT), (of STRING, since INT, price INT)
              gives (symbol STRING, at INT, of STRING, since INT, price INT)
              in   (a, 5) (a, 7) | <*, (,7]>
              in   (a, 1, 10)    | (a, 4, 11) <*, (,5], *>
              out                | (a, 5, a, 4, 11) <*, (,6], *, *, *>
Step:       –
Pass:       {r ∈ kept₁ ∪ new₁ | r.A or r.at null, or S covers all s with s.B = r.A, s.at ≤ r.at}, with its partner.
Keep:       of the left, the tuples that have not passed. Of the right {s ∈ kept₂ ∪ new₂ | an r with s.at ≤ r.at <
            next(s).at waits or may still come}, next(s) the next later tuple of the same key: for each key, the last
            tuple below the time that the left has closed, and all above it. With a tolerance, no s that lies before
            r.at - tolerance for every r that waits or may still come.
Propagate:  the parts of the left's punctuations that no kept left tuple matches.
Safe when:  the right's schemes describe the keys or prefixes of `at`, and the left's describe the keys; with a
            tolerance, the left's may describe prefixes of `at` instead.
Source:     the as-of join of time series (kdb+, pandas, Spark's ASOF JOIN), with punctuations in place of the order of
            arrival.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.behaviour import Operator, Terms, among, own_terms
from xmlstream.operators.closing_conditions import Condition, Grouping, StateModel
from xmlstream.operators.expressions.bounds import NO_BOUNDS, Bound, Bounds, bounds_between
from xmlstream.operators.expressions.dialect import attributes_in
from xmlstream.operators.frames.expression import Equal, Present, all_of
from xmlstream.operators.joins.equal_attributes import rewritten_schemes
from xmlstream.operators.joins.equi_join import BoundedKey, EquiJoin
from xmlstream.operators.joins.forgetting import forget_keys
from xmlstream.operators.required_punctuations import Held, Row, Way, on, without
from xmlstream.operators.state.blocked_set import emittable
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples, bag_union, theta_join
from xmlstream.operators.state.state_schema import StateSchema
from xmlstream.operators.taking_over import TakesOver
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import placed
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.punct_ns.slices import own, quoted

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame

AsofKind: TypeAlias = Literal["inner", "left"]


@dataclass(frozen=True, slots=True)
class AsofJoin(Operator):
    """The left tuples, each with its last partner that is not later, of two inputs with different attribute names.

    `left_on` and `right_on` are the keys, equal pairwise, of equal types. `left_at` and `right_at` are the compared
    attributes, both of type `type`. With `strict`, the partner is earlier. `tolerance` is Spark SQL over the attributes
    of both sides, which bounds the right's `at` from below by the left tuple; without it, a partner may be of any age.
    `bounds` are the bounds that follow for the tuples of each side (`bounded`).
    """

    kind: AsofKind
    left_on: tuple[str, ...]
    right_on: tuple[str, ...]
    left_at: str
    right_at: str
    type: str
    strict: bool = False
    tolerance: str | None = None
    bounds: Bounds = field(default=NO_BOUNDS, compare=False)
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_ATTRIBUTES

    def bounded(self, *inputs: Schema) -> AsofJoin:
        """The join with the bounds that follow from its tolerance."""
        return replace(self, bounds=bounds_between(self.tolerance, (self.left_on, self.right_on), inputs))

    def schema(self, *inputs: Schema) -> Schema:
        left, right = inputs
        if self.kind == "left":
            right = Schema(tuple(Attribute(a.name, replace(a.domain, nullable=True)) for a in right))
        return Schema((*left, *right))

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """The left's schemes, if the right's decide every left tuple."""
        decided = self._keys[0].is_described(inputs[1])
        return tuple(rewritten_schemes(inputs[0], {})) if decided else ()

    def enabled_by(self, *inputs: Schema) -> Condition:
        return self._keys[0].until()

    def parameters(self, output: Schema) -> str:
        keys = [f"{quoted(a)} = {quoted(b)}" for a, b in zip(self.left_on, self.right_on, strict=True)]
        last = f"last {quoted(self.right_at)} {'<' if self.strict else '<='} {quoted(self.left_at)}"
        within = f", {self.tolerance}" if self.tolerance is not None else ""
        return f"{self.kind}: {' AND '.join(keys)}, {last}{within}"

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        """The needed attributes of the left, and the keys; all of the right's, which order its equal tuples."""
        bounding = attributes_in(self.tolerance) if self.tolerance is not None else ()
        return [among((*needed, *self.left_on, self.left_at, *bounding), inputs[0]), frozenset(inputs[1].names)]

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """The left's own terms, and the right's keys: without one right tuple, another would be the partner."""
        pairs = zip(self.left_on, self.right_on, strict=True)
        return [own_terms(inputs[0]), {name.lower(): quoted(inputs[1].attribute(equal).name) for name, equal in pairs}]

    @property
    def _equi_join(self) -> EquiJoin:
        """The keys with bounds: a left tuple waits for right ones up to it, a right one until the next right one."""
        left_at, right_at = quoted(self.left_at), quoted(self.right_at)
        up_to = Bound(self.right_at, "<" if self.strict else "<=", left_at, (self.left_at,), self.type, self.left_at)
        begin = Bound(self.left_at, ">" if self.strict else ">=", right_at, (self.right_at,), self.type, self.right_at)
        following = f"lead({right_at}) OVER (PARTITION BY {', '.join(map(quoted, self.right_on))} ORDER BY {right_at})"
        end = Bound(self.left_at, "<=" if self.strict else "<", following, (), self.type)
        bounds = (up_to, *self.bounds[0]), (begin, end, *self.bounds[1])
        return EquiJoin(self.left_on, self.right_on, bounds=bounds)

    @property
    def _keys(self) -> tuple[BoundedKey, BoundedKey]:
        return self._equi_join.bounded_keys

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        left = self._keys[0]
        of_left = on(inputs[0].names, p, inputs[0])
        waiting = held.rows("undecided", left.determined_by, of_left, "waiting-0", left.beside)
        return [without((0, of_left), waiting, lambda row: left.awaited(row, inputs, held), *inputs)]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        left, right = self._keys
        kept = right.log("tuples of the right side", inputs)
        if self.tolerance is None:
            keys, closed = inputs[1].only(self.right_on), Grouping(0, self.left_on, null=False)
            models = (
                StateModel("tuples of the right side that later ones follow", 1, right.until()),
                StateModel("the last tuple of each key of the right side", 1, closed, per=keys),
            )
            kept = replace(kept, models=models)
        awaits = partial(self._awaited_by_right, inputs=inputs)
        kept = replace(kept, blocks=False, awaits=awaits, combine=lambda frame, _ages: self._followed(frame, inputs[1]))
        logs = {"undecided": left.log("undecided tuples of the left side", inputs), "right": kept}
        sets = {**self._equi_join.punctuation_sets(inputs), "sent": self.schema(*inputs)}
        return StateSchema(logs, sets, waiting={"waiting-0": inputs[0]})

    def _awaited_by_right(self, row: Row, held: Held, inputs: Sequence[Schema]) -> Sequence[Way]:
        """The wants of a right tuple: the end of the left tuples whose partner it is, whether they come or wait."""
        left, right = self._keys
        _, of_left = want = right.awaited(row, inputs, held)
        waiting = held.rows("undecided", left.determined_by, of_left, "waiting-0", left.beside)
        return [without(want, waiting, lambda row: left.awaited(row, inputs, held), *inputs)]

    def _followed(self, frame: Frame, right: Schema) -> Frame:
        """Right tuples, each with the time of the next one of its key; of equal tuples, the first."""
        same = [quoted(name) for name in (*self.right_on, self.right_at)]
        others = [quoted(a.name) for a in right if not a.domain.opaque]
        order = ", ".join(others) or same[0]
        place = f"row_number() OVER (PARTITION BY {', '.join(same)} ORDER BY {order})"
        alone = frame.drop(*self._keys[1].columns).with_column(own("place"), place).where(f"{own('place')} = 1")
        return self._keys[1].with_columns(alone.drop(own("place")))

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        scratch = state.scratch(_OfSlice)
        scratch.left, new = state.arrived(inputs)
        if new is not None:
            present = all_of(*map(Present, (*self.right_on, self.right_at)))
            scratch.right = replace(new, frame=new.frame.where(present), exact=False)
        return None

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        scratch, key = state.scratch(_OfSlice), self._keys[0]
        scratch.decided = newly = key.newly_covered(inputs[1].punctuations, state)
        leaving = []
        if scratch.left is not None:
            leaving.append(key.without_partners(scratch.left, state))
        if newly and (taken := state.log("undecided").take(newly)) is not None:
            leaving.append(key.without_columns(taken))
        left = bag_union(leaving)
        return left and self._with_partners(left, state)

    def _with_partners(self, left: Tuples, state: OperatorState) -> Tuples:
        kept, new = state.log("right").whole(), state.scratch(_OfSlice).right
        key, names = self._keys[1], state.inputs[1].names
        parts = [replace(p, frame=p.frame.select(*names)) for p in (kept, new) if p is not None]
        right = bag_union(parts) or Tuples(state.nothing(1), 0)
        followed = right.some(self._followed(right.frame, state.inputs[1]))
        following, *_ = key.columns
        before, until = ("<", "<=") if self.strict else ("<=", "<")
        same = map(Equal, self.left_on, self.right_on)
        last = f"{quoted(self.right_at)} {before} {quoted(self.left_at)}"
        none_between = f"{following} IS NULL OR {quoted(self.left_at)} {until} {following}"
        within = [self.tolerance] if self.tolerance is not None else []
        joined = theta_join(left, followed, all_of(*same, last, none_between, *within), self.kind)
        return left.some(joined.frame.drop(*key.columns))

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        scratch, left = state.scratch(_OfSlice), state.inputs[0]
        undecided, right = state.log("undecided"), state.log("right")
        if scratch.left is not None:
            undecided.append(self._keys[0].still_waiting(scratch.left, state))
        cut_at = (*self.left_on, self.left_at)
        scratch.free = emittable("waiting-0", inputs[0].punctuations, [undecided], state, left, cut_at)
        scratch.unasked = self._keys[1].newly_covered(scratch.free, state)
        if scratch.right is not None:
            right.add(replace(scratch.right, frame=self._keys[1].with_columns(scratch.right.frame)))
        if scratch.right is not None or scratch.free:
            right.take(self._keys[1].covered(state))

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        left, output, scratch = state.inputs[0], self.schema(*state.inputs), state.scratch(_OfSlice)
        out = state.punctuations("sent").absorb(placed(scratch.free, left.names, output))
        forget_keys(self._equi_join, [scratch.decided, scratch.unasked], out, state, output)
        return out


@dataclass(slots=True)
class _OfSlice:
    """Results of the behaviours for one slice.

    Attributes:
        left: The new left tuples.
        right: The new right tuples that can be partners.
        free: Parts of the left's punctuations that no waiting left tuple matches.
        decided: The new punctuations on left tuples whose partner is certain.
        unasked: The new punctuations on right tuples that no left tuple needs.
    """

    left: Tuples | None = None
    right: Tuples | None = None
    free: list[Punctuation] = field(default_factory=list)
    decided: list[Punctuation] = field(default_factory=list)
    unasked: list[Punctuation] = field(default_factory=list)
