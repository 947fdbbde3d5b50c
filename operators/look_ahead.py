"""look_ahead: functions over the rows behind each tuple in the order of its group, once those rows are closed.

Meaning:    ω_{A; K; F}(R) = {| (t, f₁(w₁(t)), …) | t ∈ R |}, wᵢ(t) rows of t's group, by A, in the order of the keys K,
            up to a number of rows behind t: SQL's lead, and ROWS BETWEEN … AND n FOLLOWING; or up to the last one of
            the group: ntile, OVER (PARTITION BY A), UNBOUNDED FOLLOWING.
Example:    LookAhead((Over(next, "lead(v)", first=-1, last=-1),), (SortKey("ts"),))
              over (ts INT NOT NULL, v INT) gives (ts INT, v INT, next INT)
              in   (2, 20) (1, 10) <(,2], *> | <*, *>
              out  (1, 10, 20) <(,1], *, *>  | (2, 20, null) <*, *, *>
Step:       –
Pass:       {t ∈ kept ∪ new | init(A, K, P) matches t and the n tuples of its group behind t, or P covers the group}, n
            the furthest row behind t that a function looks at; where that is the last one, t waits until P covers the
            group.
Keep:       the tuples that have not gone out; and of each open group the last rows before them that the functions look
            back at. When P covers a group, its last tuples go out and nothing of it is kept.
Propagate:  the parts of init(A, K, P) that match no tuple that has yet to go out.
Safe when:  the schemes cover ever longer prefixes of the order in each group; the last n rows of a group wait for those
            behind them, or for the group's end, so that groups must close or be a list.
Source:     Tucker et al. 2003, §5.2 (init); SQL:2003, window functions.

Tuples with equal keys are ordered by their remaining attributes, ascending, null first, as in row_window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.closing_conditions import Condition, Every, Grouping, most_values
from xmlstream.operators.expressions.aggregates import NUMBER, TO_THE_END
from xmlstream.operators.frames.matching import matching, not_matching
from xmlstream.operators.ordered_rows import Begun, OrderedRows, besides
from xmlstream.operators.required_punctuations import Held, Way
from xmlstream.operators.sort_order import BEFORE, LATEST, NEW, SortKey, numbered, partition, total, with_latest
from xmlstream.operators.state.blocked_set import emittable
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples, semi_join
from xmlstream.operators.state.state_schema import StateSchema
from xmlstream.punct_ns.pattern import WILDCARD, patterns, values
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import placed
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame


_OF_PEERS = ("percent_rank", "cume_dist")
"""Functions whose value is the same for tuples with equal keys."""


@dataclass(frozen=True, slots=True)
class LookAhead(OrderedRows):
    """The tuples, each with these functions over rows of its group in the order of `keys`, some of them behind it."""

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """Those on groups only, whose last rows wait for their end; without groups, also those on the first key."""
        return self.promised(() if self.groups else self.own_keys[:1], *inputs)

    @property
    def is_of_all(self) -> bool:
        """Whether a function looks at all rows of the group, so that each tuple waits for the group's end."""
        return any(over.last == TO_THE_END for over in self.functions)

    @property
    def own_keys(self) -> tuple[SortKey, ...]:
        """The keys that close rows of a group; none where only the group's end does."""
        return () if self.is_of_all else besides(self.keys, self.groups)

    def enabled_by(self, *inputs: Schema) -> Condition:
        """The order closes; and groups do, which may never go on, unless they are finitely many."""
        order = OrderedRows.enabled_by(self, *inputs)
        if self.is_of_all or most_values(inputs[0].only(self.groups)) is not None:
            return order
        return Every((order, Grouping(0, self.groups)))

    @property
    def ahead(self) -> int:
        """The number of rows that must follow a tuple before it goes out."""
        return max((over.ahead for over in self.functions), default=0)

    @property
    def reach(self) -> int:
        """The number of rows that are kept of each group: those that wait, and earlier ones that these look back at."""
        return max(1, self.ahead + max([0, *(over.first for over in self.functions if over.first is not None)]))

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        """The end of the groups: only it closes the prefix and the rows that must follow, or that none follow."""
        return [self.prefixes_up_to(self.patterns_over(p), (), inputs[0])]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        given, reach = inputs[0], self.reach
        if self.is_of_all:
            return self.tuples_of(given)
        last = f"the last {reach} tuples" if reach > 1 else "the last tuple"
        rows = self.rows_of(given, last, self._last_rows, blocks=True)
        return self.tuples_of(given) | StateSchema({"rows": rows}, waiting={"held": given.only(self.over)})

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        begun = self.begin(inputs[0].punctuations, state)
        taken = state.log("tuples").take(begun.prefixes) if begun.prefixes else None
        if self.is_of_all:
            given = state.inputs[0]
            return taken and taken.some(self._with_functions(taken.frame, [], given).select(*self.schema(given).names))
        over = state.log("rows").take(begun.groups) if begun.groups else None
        # Rows of a group that is over are not needed any more.
        return None if taken is None and over is None else self._answered(taken, over, begun.groups, state)

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        state.log("tuples").settle()
        if not self.is_of_all:
            state.log("rows").settle()

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        if self.is_of_all:
            return OrderedRows.propagate(self, inputs, state)
        begun, given = state.scratch(Begun), state.inputs[0]
        if not begun.prefixes:
            return []
        last, over = state.log("rows").whole(), given.only(self.over)
        waiting = last and last.some(with_latest(last.frame, self.groups).where(f"{NUMBER} > {LATEST} - {self.ahead}"))
        # What was closed before has gone out, but for the parts that are held.
        new = [p for prefix in begun.prefixes for p in self._without_before(prefix, begun)]
        found = emittable("held", new, [waiting] if waiting else [], state, over, self.over, at_all=True)
        return placed(found, self.over, self.schema(given))

    def _without_before(self, prefix: Punctuation, begun: Begun) -> list[Punctuation]:
        """The part of a new prefix without the values of the first key that were closed before, in all groups."""
        place = len(self.groups)
        if begun.before is None or prefix.patterns[place] == WILDCARD:
            return [prefix]
        left = values(prefix.patterns[place], prefix.schema[place].domain).difference(begun.before)
        at = {i: prefix.patterns[i] for i in prefix.restricted}
        return [Punctuation.at(prefix.schema, {**at, place: part}, prefix.lifespan) for part in patterns(left)]

    def _answered(
        self, taken: Tuples | None, over: Tuples | None, complete: Sequence[Punctuation], state: OperatorState
    ) -> Tuples:
        """The rows with complete functions; rows that later ones look at become the last rows.

        Args:
            taken: The tuples up to which the order is closed.
            over: The last rows of groups that are over.
            complete: The punctuations on these groups.
            state: The state with the last rows of the other groups.
        """
        schema, log = state.inputs[0], state.log("rows")
        before = None if taken is None else log.whole()
        if taken is not None and before is not None and self.groups:
            before = semi_join(before, taken, self.groups)
        earlier = [part for part in (before, over) if part is not None]
        new = taken or Tuples(state.nothing(), 0)
        rows = self._with_functions(new.frame, [part.frame for part in earlier], schema)
        computed = state.computed(Tuples(rows, sum(part.at_most for part in (new, *earlier)), exact=False))
        going_on = not_matching(computed.frame, complete)
        kept = going_on.where(f"{NEW} AND {NUMBER} > {LATEST} - {self.reach}")
        log.add(computed.some(kept.select(*schema.names, NUMBER)))
        answered = going_on.where(f"{NUMBER} <= {LATEST} - {self.ahead}")
        if complete:
            answered = answered.union(matching(computed.frame, complete))
        # Without those that were complete before.
        answered = answered.where(f"{NUMBER} > {BEFORE} - {self.ahead}")
        shown = [*schema.names, *(function.attribute.name for function in self.functions)]
        return replace(computed.some(answered.select(*shown)), computed=True)

    def _last_rows(self, rows: Frame) -> Frame:
        """The rows of each group to keep. Applied to parts of the rows, it keeps all that are kept of the whole."""
        return with_latest(rows, self.groups).where(f"{NUMBER} > {LATEST} - {self.reach}").drop(LATEST)

    def _with_functions(self, new: Frame, earlier: Sequence[Frame], schema: Schema) -> Frame:
        """New rows and the last ones before them, with their functions and their numbers."""
        rows = numbered(new, earlier, self.groups, total(self.keys, schema, self.groups))
        peers = ", ".join(key.item.text for key in self.keys)
        answers = {}
        for over in self.functions:
            order = peers if over.function in _OF_PEERS else NUMBER
            spec = f"{partition(self.groups)} ORDER BY {order}{over.frame}"
            answers[over.attribute.name] = f"CAST({over.expression} OVER ({spec}) AS {over.attribute.domain.type})"
        return with_latest(rows, self.groups).with_columns(answers)
