"""difference: tuples of the first input that the second does not have, once each (SQL's EXCEPT; null equals null).

Meaning:    R − S = {t | t ∈ R, t ∉ S}
Step:       –
Pass:       {t ∈ undecided | S covers t} − emitted
Propagate:  the parts of the first input's punctuations that no undecided tuple matches.
Keep:       undecided: {t ∈ R | t ∉ S, no p of S matches t}; of the second input, and of what is emitted: {t | no p of
            R matches t}.
Safe when:  each input's schemes cover every tuple with finitely many punctuations.
Source:     Tucker et al. 2003, §4.2, §5.6, Tables 2 to 4. Differs: Table 4 assumes a distinct behind it; Tucker 2005's
            page writes t ∈ Ts2 for ∉.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from operators.logical_properties import Terms, by_position
from operators.state.behaviour import Operator, Slice, Tuples, bag_union
from operators.state.deferred_punctuations import emittable
from operators.state.operator_state import HeldPunctuations, OperatorState
from operators.state.row_joins import anti_join
from operators.state.tuple_log import TupleLog
from punct_ns.punctuation import Punctuation
from punct_ns.recast import recast
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme
from punct_ns.slices import matching, not_matching


@dataclass(frozen=True, slots=True)
class Difference(Operator):
    """The tuples of the first input without the second's; both have the names and the types of `attributes`."""

    attributes: Schema

    def schema(self, *inputs: Schema) -> Schema:
        """The declared one."""
        return self.attributes

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """The first input's, if the second has any: whatever it says in the end, decides each tuple."""
        return inputs[0] if inputs[1] else ()

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """Both inputs' own: a tuple that is not selected equals none that is."""
        return by_position(self.attributes, *inputs)

    def ignores_duplicates(self, side: int, needed: AbstractSet[str], *inputs: Schema) -> bool:
        """Yes: δ(R) − S = R − S, and so for S."""
        return True

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """Nothing goes out; a new tuple of the second input decides an undecided one."""
        state.arrive(inputs)
        names = self.attributes.names
        undecided, second, emitted = self._undecided(state), self._second(state), self._emitted(state)
        new, others = state.new[0], state.new[1]
        if others is not None:
            undecided.remove(others, names)
        if new is not None:
            once = new.frame.dropDuplicates()
            for log in (undecided, second, emitted):
                if (whole := log.whole()) is not None:
                    once = anti_join(once, whole.frame, names, whole.at_most)
            if others is not None:
                once = anti_join(once, others.frame, names, others.at_most)
            state.new[0] = state.computed(Tuples(once, new.at_most, exact=False))
        if others is not None:
            once = others.frame.dropDuplicates()
            if (whole := second.whole()) is not None:
                once = anti_join(once, whole.frame, names, whole.at_most)
            state.new[1] = Tuples(once, others.at_most, exact=False)
        return None

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """The undecided tuples that the second input covers."""
        for side, slice_ in enumerate(inputs):
            said = [recast(p, self.attributes) for p in slice_.punctuations]
            state.closing[side] = self._said(side, state).absorb(said)
        leaving = []
        if state.closing[1] and (taken := self._undecided(state).take(state.closing[1])) is not None:
            leaving.append(taken)
        if (new := state.new[0]) is not None and (covering := list(self._said(1, state).set)):
            leaving.append(Tuples(matching(new.frame, covering), new.at_most, exact=False))
        passed = bag_union(leaving)
        state.new[2] = passed = passed and state.computed(passed)
        return passed

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        """The undecided, and what the first input may send again."""
        first, second = (list(self._said(side, state).set) for side in range(2))
        if (new := state.new[0]) is not None:
            self._undecided(state).append(Tuples(not_matching(new.frame, second), new.at_most, exact=False))
        for log, new in ((self._second(state), state.new[1]), (self._emitted(state), state.new[2])):
            log.purge(state.closing[0])
            if new is not None:
                log.append(Tuples(not_matching(new.frame, first), new.at_most, exact=False))

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        """What no undecided tuple matches."""
        found = emittable("waiting", state.closing[0], [self._undecided(state)], state, self.attributes)
        return state.punctuations("sent", self.attributes).absorb(found)

    def _said(self, side: int, state: OperatorState) -> HeldPunctuations:
        return state.punctuations(f"input-{side}", self.attributes)

    def _undecided(self, state: OperatorState) -> TupleLog:
        return state.kept("undecided", self.attributes)

    def _second(self, state: OperatorState) -> TupleLog:
        return state.kept("second", self.attributes)

    def _emitted(self, state: OperatorState) -> TupleLog:
        return state.kept("emitted", self.attributes)
