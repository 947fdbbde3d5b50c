"""row_window: functions over the rows around each tuple in the order of its group, once that order is closed up to it.

Meaning:    ω_{A; K; F}(R) = {| (t, f₁(w₁(t)), …) | t ∈ R |}, wᵢ(t) the rows of t's group, by A, from so many before t
            in the order of the keys K up to t, or to so many before it: SQL's OVER (PARTITION BY A ORDER BY K ROWS …).
            From the group's first row on, where fᵢ merges. Without keys the order is that of arrival.
Step:       without keys, the new tuples; else –
Pass:       {t ∈ kept ∪ new | init(A, K, P) matches t}; init(A, K, P) is, in each group, the largest covered prefix of
            the order of K. So `(sid, ts prefix)` closes the rows of each sid by themselves.
Propagate:  init(A, K, P), as far as it newly holds; without keys, all.
Keep:       the tuples that are not out; and of each group that is not closed the last rows that functions look back at.
Safe when:  the schemes cover ever longer prefixes of the order in each group; n rows are kept of each open group.
Source:     Tucker et al. 2003, §5.2 (init); SQL:2003, window functions.

To SQL the order of tuples with equal keys is anyone's choice. Here the remaining attributes decide, ascending, null
first, as in sort, so that the answer does not depend on how tuples come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from operators.expressions.over import NUMBER
from operators.groupings import ALWAYS, Condition, Grouping, StateModel
from operators.state.behaviour import Slice, Tuples
from operators.state.completion import completed, completion_sets
from operators.state.operator_state import OperatorState
from operators.state.state_schema import StateSchema
from operators.wants import Held, Waiting, Way, on
from operators.windows.numbered_rows import NEW
from operators.windows.ordered_rows import Begun, OrderedRows
from operators.windows.row_functions import RowFunctions
from punct_ns.errors import QueryError, UsageError
from punct_ns.pattern import WILDCARD
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme
from punct_ns.slices import POSITION, quoted


@dataclass(frozen=True, slots=True)
class RowWindow(OrderedRows):
    """The tuples, each with these functions over rows of its group, in the order of `keys` or, without, of arrival."""

    def __post_init__(self) -> None:
        OrderedRows.__post_init__(self)
        for over in self.functions:
            if not over.is_rolling and not over.grows:
                raise UsageError(
                    f"{over.function} of all rows so far would keep all rows",
                    hint="count, sum, min, max and avg of all but decimals grow with the group; of others say how many"
                    " rows, as in ROWS 9 PRECEDING",
                )

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """Those on groups, perhaps with ranges of the first key from its beginning, or its tiles; all without keys."""
        return self.promised(self.own_keys[:1], *inputs) if self.keys else inputs[0]

    def enabled_by(self, *inputs: Schema) -> Condition:
        """Ever longer prefixes of the order in each group; nothing without keys."""
        return OrderedRows.enabled_by(self, *inputs) if self.keys else ALWAYS

    def state_models(self, *inputs: Schema) -> Sequence[StateModel]:
        """The tuples that are not out, and the last rows of each group: so many, however long the stream."""
        waiting = [StateModel("tuples", 0, self.enabled_by(*inputs))] if self.keys else []
        number = self.rows.looks_back
        what = "the last tuple" if number == 1 else f"the last {number} tuples"
        if distances := self.rows.distances:
            what = " and ".join(f"the tuples of the last {distance}" for distance in distances)
        return [*waiting, StateModel(what, 0, Grouping(0, self.groups), self.groups, inputs[0], is_fixed=True)]

    @property
    def rows(self) -> RowFunctions:
        """The rows that its functions look at."""
        return RowFunctions(self.functions, self.keys, self.groups)

    def waiting(self, *inputs: Schema) -> Sequence[Waiting]:
        """The tuples that are not out, and the rows that are looked back at."""
        waiting = [Waiting("tuples", "tuples", self.over)] if self.keys else []
        return [*waiting, Waiting("rows", "last tuples", self.groups, blocks=False)]

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        """What it says of the input, in the order of arrival; else the prefixes of groups that end with it."""
        if not self.keys:
            return [((0, on(inputs[0].names, p, inputs[0])),)]
        return [self.prefixes_up_to(self.said_of(p), self.own_keys[:1], inputs[0])]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        """The tuples that are not out, the last rows of each group, what is said of both, and the prefixes."""
        last = self.rows.last
        if self.keys:
            return self.states_of(inputs[0], last)
        groups = Schema(tuple(map(inputs[0].attribute, self.groups)))
        return StateSchema({"rows": self.rows_of(inputs[0], last)}, completion_sets(inputs[0], groups))

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """In the order of arrival the new tuples, with their functions; else they are kept."""
        new = inputs[0].tuples
        if self.keys or new is None:
            self.keep_new(new, state)
            return None
        if POSITION not in new.frame.columns:
            raise QueryError(
                "rows in the order of arrival need the order of a source, which is not there",
                hint="count rows directly on a source, through select and project, before merge, join or group by",
            )
        names = [quoted(name) for name in state.inputs[0].names]
        return self._answered(state.computed(replace(new, frame=new.frame.select(*names, POSITION))), state)

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """The kept tuples of what newly is in a prefix, with their functions."""
        if not self.keys:
            state.scratch(Begun).groups = completed(inputs[0].punctuations, self.groups, state)
            return None
        begun = self.begin(inputs[0].punctuations, state).prefixes
        taken = state.log("tuples").take(begun) if begun else None
        return None if taken is None else self._answered(taken, state)

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        """What left did so with `pass_`; of closed groups nothing is looked back at."""
        if self.keys:
            state.log("tuples").settle()
        state.log("rows").settle()
        state.log("rows").purge(state.scratch(Begun).groups)

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        """What newly is in a prefix; in the order of arrival all that is said."""
        if self.keys:
            return self.handed_on(state.scratch(Begun).prefixes, state.inputs[0])
        output, beside = self.schema(*state.inputs), [WILDCARD for _ in self.functions]
        return [Punctuation(output, (*p.patterns, *beside), p.lifespan) for p in inputs[0].punctuations]

    def _answered(self, ready: Tuples, state: OperatorState) -> Tuples:
        """Tuples with their functions; they become the last rows of their groups."""
        schema, rows, functions = state.inputs[0], state.log("rows"), self.rows
        told = functions.told(functions.numbered(ready, rows.whole(), schema)).where(NEW)
        shown = [*schema.names, *(over.attribute.name for over in self.functions)]
        position = [POSITION] if POSITION in told.columns else []
        known = [*map(quoted, schema.names), NUMBER, *functions.so_far]
        # Read twice: it goes out, and is looked back at.
        found = told.select(*dict.fromkeys((*known, *map(quoted, shown), *position)))
        computed = state.computed(Tuples(found, ready.at_most, ready.exact))
        rows.add(replace(computed, frame=computed.frame.select(*known)))
        return replace(computed, frame=computed.frame.select(*map(quoted, shown), *position))
