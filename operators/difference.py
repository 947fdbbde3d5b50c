"""difference: tuples of the first input that the second does not have, once each (SQL's EXCEPT; null equals null).

Meaning:    R − S = {t | t ∈ R, t ∉ S}
Example:    Difference(schema)
              over (a INT), (a INT) gives (a INT)
              in   (1) (2) (3) | <1>
              in   (1)         | <2>
              out              | (2) <1>
Step:       –
Pass:       {t ∈ undecided | S covers t} − emitted
Keep:       undecided: {t ∈ R | t ∉ S, no p of S matches t}; of the second input, and of the emitted tuples:
            {t | no p of R matches t}.
Propagate:  the parts of the first input's punctuations that no undecided tuple matches.
Safe when:  each input's schemes cover every tuple with finitely many punctuations.
Source:     Tucker et al. 2003, §4.2, §5.6, Tables 2 to 4. Differs: Table 4 assumes a distinct above; Tucker 2005 prints
            t ∈ Ts2 where t ∉ Ts2 is meant.
"""

from __future__ import annotations

from collections.abc import Sequence

from xmlstream.dataclasses import dataclass
from xmlstream.operators.closing_conditions import Condition, StateModel
from xmlstream.operators.frames.matching import matching, not_matching
from xmlstream.operators.required_punctuations import Held, Way
from xmlstream.operators.set_operation import SetOperation, SetSlice, groupings
from xmlstream.operators.state.blocked_set import emittable
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples, bag_union
from xmlstream.operators.state.state_schema import LogSchema, StateSchema
from xmlstream.punct_ns.punctuation import Punctuation, of_values
from xmlstream.punct_ns.recast import recast
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme


@dataclass(frozen=True, slots=True)
class Difference(SetOperation):
    """The tuples of the first input without the second's."""

    def schema(self, *inputs: Schema) -> Schema:
        return self.attributes.never_null_of(*inputs[:1])

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """The first input's schemes, if the second has any: any of its schemes decides each tuple in the end."""
        return inputs[0] if inputs[1] else ()

    def enabled_by(self, *inputs: Schema) -> Condition:
        return groupings(inputs)[1]

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        return [self.way_of(0, "undecided", p, held, inputs)]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        first, second = groupings(inputs)
        models = {
            "undecided": StateModel("undecided tuples", 0, second, per=self.attributes),
            "second": StateModel("tuples of the second input", 1, first, per=self.attributes),
            "emitted": StateModel("emitted tuples", 0, first, per=self.attributes),
        }
        names = self.attributes.names
        logs = {
            log: LogSchema(self.attributes, (model,), names=names, blocks=log == "undecided", undecided=True)
            for log, model in models.items()
        }
        return StateSchema(logs, self.punctuation_sets(inputs), waiting={"waiting-0": self.attributes})

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        new, others = state.arrived(inputs)
        undecided, second, emitted = state.log("undecided"), state.log("second"), state.log("emitted")
        if others is not None:
            undecided.remove(others, self.attributes.names)
        fresh = new and state.computed(self.unseen(new, (undecided, second, emitted), others))
        state.scratch(SetSlice).new = [fresh, others and self.unseen(others, (second,))]
        return None

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        self.close(inputs, state)
        scratch = state.scratch(SetSlice)
        leaving = []
        if scratch.closed[1]:
            leaving.append(state.log("undecided").take(scratch.closed[1]))
        if (new := scratch.new[0]) is not None and (covering := self.closed_tuples(1, state)):
            leaving.append(new.some(matching(new.frame, covering)))
        passed = bag_union(leaving)
        scratch.emitted = passed and state.computed(passed)
        return scratch.emitted

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        scratch = state.scratch(SetSlice)
        first, second = (self.closed_tuples(side, state) for side in range(2))
        undecided, of_second = scratch.new
        if undecided is not None:
            state.log("undecided").append(undecided.some(not_matching(undecided.frame, second)))
        for log, new in ((state.log("second"), of_second), (state.log("emitted"), scratch.emitted)):
            log.purge(scratch.closed[0])
            if new is not None:
                log.append(new.some(not_matching(new.frame, first)))

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        closed, sent = state.scratch(SetSlice).closed, state.punctuations("sent")
        free = emittable("waiting-0", closed[0], [state.log("undecided")], state, self.attributes)
        output = self.schema(*state.inputs)
        out = sent.absorb(recast(p, output) for p in free)
        self.forget(state)
        sent.forget(of_values(out))  # only the first input can send them again, and does not
        return out
