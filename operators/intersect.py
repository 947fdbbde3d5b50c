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

from collections.abc import Iterable, Sequence

from xmlstream.dataclasses import dataclass
from xmlstream.operators.closing_conditions import Either, StateModel
from xmlstream.operators.frames.matching import not_matching
from xmlstream.operators.required_punctuations import Held, Way
from xmlstream.operators.set_operation import SetOperation, SetSlice, groupings
from xmlstream.operators.state.blocked_set import emittable
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples, anti_join, bag_union, semi_join
from xmlstream.operators.state.state_schema import LogSchema, StateSchema
from xmlstream.operators.state.tuple_log import TupleLog
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import recast
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme, strongest


@dataclass(frozen=True, slots=True)
class Intersect(SetOperation):
    """The tuples that both inputs have."""

    def schema(self, *inputs: Schema) -> Schema:
        return self.attributes.never_null_of(*inputs)

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """The schemes of both inputs, if both have any: any scheme of an input purges the other's tuples.

        Differs: Tucker et al. 2003, Table 3, promises the meets, which these imply.
        """
        return strongest((*inputs[0], *inputs[1]), self.attributes) if all(inputs) else ()

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        return [self.way_of(side, f"side-{side}", p, held, inputs) for side in range(2)]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        first, second = groupings(inputs)
        models = {
            "side-0": StateModel("tuples of the first input", 0, second, per=self.attributes),
            "side-1": StateModel("tuples of the second input", 1, first, per=self.attributes),
            "emitted": StateModel("emitted tuples", 0, Either((first, second)), per=self.attributes),
        }
        names = self.attributes.names
        logs = {log: LogSchema(self.attributes, (m,), names=names, blocks=False) for log, m in models.items()}
        waiting = dict.fromkeys(["waiting-0", "waiting-1"], self.attributes)
        return StateSchema(logs, self.punctuation_sets(inputs), waiting=waiting)

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        scratch, names = state.scratch(SetSlice), self.attributes.names
        kept, emitted = [self._kept(side, state) for side in range(2)], state.log("emitted")
        for log, tuples in zip(kept, state.arrived(inputs), strict=True):
            fresh = tuples and state.computed(self.unseen(tuples, (log, emitted)))
            scratch.new.append(fresh if fresh and fresh.at_most else None)
        of_first, of_second = scratch.new
        parts = [
            self._within(of_first, (of_first and kept[1].near(of_first, names)[1], of_second)),
            self._within(of_second and kept[0].near(of_second, names)[1], (of_second,)),
        ]
        both = bag_union(parts)
        scratch.emitted = out = both and state.computed(both)
        if out is None:
            return None
        for log in kept:
            log.remove(out, names)
        if out.at_most:
            scratch.new = [tuples and anti_join(tuples, out, names) for tuples in scratch.new]
        return out

    def _within(self, tuples: Tuples | None, others: Iterable[Tuples | None]) -> Tuples | None:
        """The tuples that one of the others equals."""
        whole = bag_union(others)
        return None if tuples is None or whole is None else semi_join(tuples, whole, self.attributes.names)

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        self.close(inputs, state)
        scratch = state.scratch(SetSlice)
        first, second = (self.closed_tuples(side, state) for side in range(2))
        for log, newly, all_, new in (
            (self._kept(0, state), scratch.closed[1], second, scratch.new[0]),
            (self._kept(1, state), scratch.closed[0], first, scratch.new[1]),
            (state.log("emitted"), scratch.closed[0] + scratch.closed[1], first + second, scratch.emitted),
        ):
            log.purge(newly)
            if new is not None:
                log.append(new.some(not_matching(new.frame, all_)))

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        found, output, closed = list[Punctuation](), self.schema(*state.inputs), state.scratch(SetSlice).closed
        for side, newly in enumerate(closed):
            found += emittable(f"waiting-{side}", newly, [self._kept(side, state)], state, self.attributes)
        sent = state.punctuations("sent")
        out = sent.absorb(recast(p, output) for p in found)
        sent.forget(recast(p, output) for p in self.forget(state))
        return out

    def _kept(self, side: int, state: OperatorState) -> TupleLog:
        return state.log(f"side-{side}")
