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
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from operators.behaviour import Operator, Terms, by_position
from operators.closing_conditions import Condition, Grouping, StateModel
from operators.required_punctuations import Held, Way, same, without
from operators.state.closed_set import ClosedSet
from operators.state.completion import forget_closed, without_null
from operators.state.operator_state import OperatorState
from operators.state.slice_tuples import Slice, Tuples, anti_join, bag_union
from operators.state.split_blocked import emittable
from operators.state.state_schema import LogSchema, StateSchema
from punct_ns.punctuation import Punctuation
from punct_ns.recast import recast, recast_all, required_of
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme
from punct_ns.slices import matching, not_matching


@dataclass(frozen=True, slots=True)
class Difference(Operator):
    """The tuples of the first input without the second's; both have the names and the types of `attributes`."""

    attributes: Schema

    def schema(self, *inputs: Schema) -> Schema:
        return self.attributes.never_null_of(*inputs[:1])

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """The first input's schemes, if the second has any: any of its schemes decides each tuple in the end."""
        return inputs[0] if inputs[1] else ()

    def enabled_by(self, *inputs: Schema) -> Condition:
        return Grouping(1, inputs[1].names)

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """Both inputs' own terms: a tuple that a predicate rejects equals none that it selects."""
        return by_position(self.attributes, *inputs)

    def ignores_duplicates(self, side: int, needed: AbstractSet[str], *inputs: Schema) -> bool:
        """δ(R) − S = R − S, and so for S."""
        return True

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        names, second = self.attributes.names, inputs[1]
        undecided = held.rows("undecided", names, recast(p, self.attributes), "waiting")
        return [
            without(
                (0, required_of(p, inputs[0]) or Punctuation.all(inputs[0])),
                undecided,
                lambda row: (1, same(row, names, self.attributes, second.names, second)),
                *inputs,
            )
        ]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        first, second = (Grouping(side, inputs[side].names) for side in range(2))
        models = {
            "undecided": StateModel("undecided tuples", 0, second, per=self.attributes),
            "second": StateModel("tuples of the second input", 1, first, per=self.attributes),
            "emitted": StateModel("emitted tuples", 0, first, per=self.attributes),
        }
        names = self.attributes.names
        logs = {
            log: LogSchema(self.attributes, (model,), names=names, blocks=log == "undecided")
            for log, model in models.items()
        }
        sets = dict.fromkeys(["input-0", "input-1"], self.attributes) | {"sent": self.schema(*inputs)}
        return StateSchema(logs, sets, waiting={"waiting": self.attributes})

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        scratch, names = state.scratch(_OfSlice), self.attributes.names
        new, others = state.arrived(inputs)
        undecided, second, emitted = state.log("undecided"), state.log("second"), state.log("emitted")
        if others is not None:
            undecided.remove(others, names)
        if new is not None:
            once = new.frame.dropDuplicates()
            for log in (undecided, second, emitted):
                if (whole := log.whole()) is not None:
                    once = anti_join(once, whole.frame, names, whole.at_most)
            if others is not None:
                once = anti_join(once, others.frame, names, others.at_most)
            new = state.computed(Tuples(once, new.at_most, exact=False))
        if others is not None:
            once = others.frame.dropDuplicates()
            if (whole := second.whole()) is not None:
                once = anti_join(once, whole.frame, names, whole.at_most)
            others = Tuples(once, others.at_most, exact=False)
        scratch.undecided, scratch.second = new, others
        return None

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        scratch = state.scratch(_OfSlice)
        scratch.closed = [
            self._closed_by(side, state).absorb(recast_all(slice_.punctuations, self.attributes))
            for side, slice_ in enumerate(inputs)
        ]
        leaving = []
        if scratch.closed[1] and (taken := state.log("undecided").take(scratch.closed[1])) is not None:
            leaving.append(taken)
        if (new := scratch.undecided) is not None and (covering := self._covering(1, state)):
            leaving.append(Tuples(matching(new.frame, covering), new.at_most, exact=False))
        passed = bag_union(leaving)
        scratch.emitted = passed and state.computed(passed)
        return scratch.emitted

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        scratch = state.scratch(_OfSlice)
        first, second = (self._covering(side, state) for side in range(2))
        if (new := scratch.undecided) is not None:
            state.log("undecided").append(Tuples(not_matching(new.frame, second), new.at_most, exact=False))
        for log, new in ((state.log("second"), scratch.second), (state.log("emitted"), scratch.emitted)):
            log.purge(scratch.closed[0])
            if new is not None:
                log.append(Tuples(not_matching(new.frame, first), new.at_most, exact=False))

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        closed, logs, sent = state.scratch(_OfSlice).closed, [state.log("undecided")], state.punctuations("sent")
        free, output = emittable("waiting", closed[0], logs, state, self.attributes), self.schema(*state.inputs)
        out = sent.absorb(recast(p, output) for p in free)
        forget_closed([self._closed_by(side, state) for side in range(2)], closed)
        sent.forget(out)  # only the first input can send them again, and does not
        return out

    def _covering(self, side: int, state: OperatorState) -> list[Punctuation]:
        """Punctuations on tuples that an input has closed, or cannot have."""
        return [*self._closed_by(side, state).set, *without_null(self.attributes, state.inputs[side])]

    def _closed_by(self, side: int, state: OperatorState) -> ClosedSet:
        return state.punctuations(f"input-{side}")


@dataclass(slots=True)
class _OfSlice:
    """Results of the behaviours for one slice.

    Attributes:
        undecided: New tuples of the first input that no kept or new tuple decides, without duplicates.
        second: New tuples of the second input that are not kept, without duplicates.
        emitted: The output tuples.
        closed: The new punctuations of each input.
    """

    undecided: Tuples | None = None
    second: Tuples | None = None
    emitted: Tuples | None = None
    closed: list[list[Punctuation]] = field(default_factory=list)
