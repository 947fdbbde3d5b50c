"""intersect: tuples that both inputs have, once each (SQL's INTERSECT; null equals null).

Meaning:    R ∩ S = {t | t ∈ R, t ∈ S}
Example:    Intersect(schema)
              over (a INT), (a INT) gives (a INT)
              in   (1) (2) <2> | (1)
              in   (1)         | (3) <2>
              out  (1)         | <2>
Step:       ((kept₁ ∪ new₁) ∩ (kept₂ ∪ new₂)) − emitted
Pass:       –
Keep:       pending tuples of each input: {t | no p of the other input matches t}; emitted tuples: {t | no p of either
            input matches t}.
Propagate:  the parts of either input's punctuations that no pending tuple of that input matches.
Safe when:  each input's schemes cover every tuple with finitely many punctuations.
Source:     Tucker et al. 2003, Tables 3 and 4. Differs: Table 4 assumes a distinct above; without one it could emit a
            tuple twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from operators.behaviour import Operator, Terms, by_position
from operators.closing_conditions import Either, Grouping, StateModel
from operators.required_punctuations import Held, Way, same, without
from operators.state.completion import forget_closed, without_null
from operators.state.operator_state import OperatorState
from operators.state.slice_tuples import Slice, Tuples, anti_join, bag_union, semi_join
from operators.state.split_blocked import emittable
from operators.state.state_schema import LogSchema, StateSchema
from operators.state.tuple_log import TupleLog
from punct_ns.punctuation import Punctuation
from punct_ns.recast import recast, recast_all, required_of
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme, strongest
from punct_ns.slices import not_matching


@dataclass(frozen=True, slots=True)
class Intersect(Operator):
    """The tuples of both inputs, which have the names and the types of `attributes`."""

    attributes: Schema

    def schema(self, *inputs: Schema) -> Schema:
        return self.attributes.never_null_of(*inputs)

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """The schemes of both inputs, if both have any: any scheme of an input purges the other's tuples.

        Differs: Tucker et al. 2003, Table 3, promises the meets, which these imply.
        """
        return strongest((*inputs[0], *inputs[1]), self.attributes) if all(inputs) else ()

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """Both inputs' own terms: a tuple that a predicate rejects equals none that it selects."""
        return by_position(self.attributes, *inputs)

    def ignores_duplicates(self, side: int, needed: AbstractSet[str], *inputs: Schema) -> bool:
        """δ(R) ∩ S = R ∩ S, and so for S."""
        return True

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        return [self._wanted_of(side, p, held, inputs) for side in range(2)]

    def _wanted_of(self, side: int, p: Punctuation, held: Held, inputs: Sequence[Schema]) -> Way:
        own, other = recast(p, self.attributes), inputs[1 - side]
        kept = held.rows(f"side-{side}", self.attributes.names, own, f"waiting-{side}")
        return without(
            (side, required_of(p, inputs[side]) or Punctuation.all(inputs[side])),
            kept,
            lambda row: (1 - side, same(row, self.attributes.names, self.attributes, other.names, other)),
            *inputs,
        )

    def state_schema(self, *inputs: Schema) -> StateSchema:
        first, second = (Grouping(side, inputs[side].names) for side in range(2))
        models = {
            "side-0": StateModel("tuples of the first input", 0, second, per=self.attributes),
            "side-1": StateModel("tuples of the second input", 1, first, per=self.attributes),
            "emitted": StateModel("emitted tuples", 0, Either((first, second)), per=self.attributes),
        }
        names = self.attributes.names
        logs = {log: LogSchema(self.attributes, (m,), names=names, blocks=False) for log, m in models.items()}
        sets = dict.fromkeys(["input-0", "input-1"], self.attributes) | {"sent": self.schema(*inputs)}
        return StateSchema(logs, sets, waiting=dict.fromkeys(["waiting-0", "waiting-1"], self.attributes))

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        scratch, names = state.scratch(_OfSlice), self.attributes.names
        kept = [self._kept(side, state) for side in range(2)]
        new = [self._once(side, tuples, state) for side, tuples in enumerate(state.arrived(inputs))]
        pairs = [(new[0], (kept[1], new[1])), (kept[0].whole(), (new[1],))]
        parts = [part for tuples, others in pairs if (part := self._within(tuples, others)) is not None]
        both = bag_union(parts)
        scratch.new, scratch.emitted = new, both and state.computed(both)
        if scratch.emitted is None:
            return None
        emitted = scratch.emitted
        for log in kept:
            log.remove(emitted, names)
        if emitted.at_most:
            scratch.new = [
                tuples
                and Tuples(anti_join(tuples.frame, emitted.frame, names, emitted.at_most), tuples.at_most, exact=False)
                for tuples in new
            ]
        return emitted

    def _once(self, side: int, new: Tuples | None, state: OperatorState) -> Tuples | None:
        """The new tuples of an input that are neither emitted nor kept, without duplicates, computed."""
        if new is None:
            return None
        once = new.frame.dropDuplicates()
        for log in (self._kept(side, state), state.log("emitted")):
            if (whole := log.whole()) is not None:
                once = anti_join(once, whole.frame, self.attributes.names, whole.at_most)
        fresh = state.computed(Tuples(once, new.at_most, exact=False))
        return fresh if fresh.at_most else None

    def _within(self, tuples: Tuples | None, others: Sequence[Tuples | TupleLog | None]) -> Tuples | None:
        there = [part.whole() if isinstance(part, TupleLog) else part for part in others]
        whole = bag_union([part for part in there if part is not None])
        if tuples is None or whole is None:
            return None
        frame = semi_join(tuples.frame, whole.frame, self.attributes.names, whole.at_most)
        return Tuples(frame, tuples.at_most, exact=False)

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        scratch, closed_sets = state.scratch(_OfSlice), [state.punctuations(f"input-{side}") for side in range(2)]
        scratch.closed = [
            held.absorb(recast_all(slice_.punctuations, self.attributes))
            for held, slice_ in zip(closed_sets, inputs, strict=True)
        ]
        first, second = (
            [*held.set, *without_null(self.attributes, schema)]
            for held, schema in zip(closed_sets, state.inputs, strict=True)
        )
        for log, newly, all_, new in (
            (self._kept(0, state), scratch.closed[1], second, scratch.new[0]),
            (self._kept(1, state), scratch.closed[0], first, scratch.new[1]),
            (state.log("emitted"), scratch.closed[0] + scratch.closed[1], first + second, scratch.emitted),
        ):
            log.purge(newly)
            if new is not None:
                log.append(Tuples(not_matching(new.frame, all_), new.at_most, exact=False))

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        found, output = list[Punctuation](), self.schema(*state.inputs)
        for side, newly in enumerate(state.scratch(_OfSlice).closed):
            found += emittable(f"waiting-{side}", newly, [self._kept(side, state)], state, self.attributes)
        sent = state.punctuations("sent")
        out = sent.absorb(recast(p, output) for p in found)
        closed = forget_closed(
            [state.punctuations(f"input-{side}") for side in range(2)], state.scratch(_OfSlice).closed
        )
        sent.forget(recast(p, output) for p in closed)
        return out

    def _kept(self, side: int, state: OperatorState) -> TupleLog:
        return state.log(f"side-{side}")


@dataclass(slots=True)
class _OfSlice:
    """Results of the behaviours for one slice.

    Attributes:
        new: For each input, the new tuples that are neither emitted nor kept, without duplicates.
        emitted: The output tuples.
        closed: The new punctuations of each input.
    """

    new: list[Tuples | None] = field(default_factory=list)
    emitted: Tuples | None = None
    closed: list[list[Punctuation]] = field(default_factory=list)
