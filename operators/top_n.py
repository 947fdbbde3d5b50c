"""top_n: of each group the first n tuples in an order, as soon as the order is closed up to them.

Meaning:    top_{A; K; n}(R) = {| t ∈ R | rank(t) ≤ n |}, rank(t) that of t among {| u ∈ R | u.A = t.A |} in the order
            of the keys K: its number; or one more than the number of tuples, or of values of K, before it (SQL's
            ROW_NUMBER, RANK and DENSE_RANK). Null is a group. Without A all tuples are one group.
Example:    TopN(2, (SortKey("ts"),), ("sid",))
              over (sid INT, ts INT NOT NULL) gives (sid INT, ts INT)
              in   (1, 4) (1, 2) (2, 9) <*, (,3]> | (1, 7) (1, 5) <2, *> <*, (,6]>
              out  (1, 2) <*, (,3]>               | (2, 9) (1, 4) <2, *> <*, (,6]>
Step:       –
Pass:       {t ∈ kept ∪ new | init(A, K, P) matches t, rank(t) ≤ n}; init(A, K, P) is, in each group, the largest prefix
            of the order of K that P covers: all of a group that is complete. No later tuple comes before these.
Keep:       {t ∈ kept ∪ new | t.A is not complete, rank(t) ≤ n}, those that have passed among them, by which the ranks
            of later ones are known: a tuple behind n others stays behind them. After n have passed of the one group
            without A, nothing.
Propagate:  the new part of init(A, K, P); without A, everything once n have passed.
Safe when:  the schemes cover ever longer prefixes of the order in each group; of each group n tuples are kept that have
            passed, so that groups must close or be a list.
Source:     Tucker et al. 2003, §5.1 (safe and complete), §5.2 (init).

SQL leaves the order of tuples with equal keys open. Here the remaining attributes decide, ascending, null first, as in
sort, so that the result does not depend on the order of arrival. RANK and DENSE_RANK keep all tied tuples: the state is
bounded by n and the ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, ClassVar, Literal

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.behaviour import Terms, among
from xmlstream.operators.closing_conditions import Condition, Grouping, Prefix, StateModel
from xmlstream.operators.frames.expression import Column, Copy, Order
from xmlstream.operators.frames.matching import not_matching
from xmlstream.operators.ordered_rows import Begun, InOrder
from xmlstream.operators.sort_order import NEW, SortKey, keys_line, once, partition, total
from xmlstream.operators.state import tuple_log
from xmlstream.operators.state.completion import forget_completed
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples, semi_join
from xmlstream.operators.state.state_schema import LogSchema, StateSchema
from xmlstream.operators.taking_over import TakesOver
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.punct_ns.slices import own, quoted

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame

Rank = Literal["row_number", "rank", "dense_rank"]
"""The rank of tuples: a number for each one, or the same for equal ones, with or without gaps behind them."""

_RANK = own("rank")


@dataclass(frozen=True, slots=True)
class TopN(InOrder):
    """The tuples whose rank by `keys`, among those that agree on `groups`, is at most `n`.

    `number` is the attribute for the rank, behind the input's attributes; None if it is not needed.
    """

    n: int
    keys: tuple[SortKey, ...]
    groups: tuple[str, ...] = ()
    rank: Rank = "row_number"
    number: Attribute | None = None
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_ATTRIBUTES

    def __post_init__(self) -> None:
        if self.n < 1:
            raise UsageError(f"a top {self.n} has no tuples", hint="use 1 or more")
        if not self.keys:
            raise UsageError("top_n without an order", hint="name an attribute to order by")
        object.__setattr__(self, "keys", once(self.keys))

    def schema(self, *inputs: Schema) -> Schema:
        """The input's attributes, and the rank.

        Raises:
            QueryError: the input lacks an attribute that a key or a group names.
        """
        for name in (*self.groups, *(key.attribute for key in self.keys)):
            inputs[0].attribute(name)
        return inputs[0] if self.number is None else Schema((*inputs[0].attributes, self.number))

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """Those on groups, perhaps with ranges of the first key from its beginning, or its tiles."""
        return self.promised(self.own_keys[:1], *inputs)

    def enabled_by(self, *inputs: Schema) -> Condition:
        first = self.keys[0]
        if first.descending and inputs[0].attribute(first.attribute).domain.high is None:
            return Grouping(0, self.groups, sole=True)  # no prefix of the order closes
        until = InOrder.enabled_by(self, *inputs)
        return replace(until, first=Grouping(0, self.groups)) if isinstance(until, Prefix) and self.groups else until

    def parameters(self, output: Schema) -> str:
        return f"({', '.join(self.groups)}) {self.rank} <= {self.n} by {keys_line(self.keys)}"

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        return [among((*needed, *self.groups, *(key.attribute for key in self.keys)), inputs[0])]

    def pruned(self, needed: AbstractSet[str]) -> TopN:
        return self if self.number is None or self.number.name in needed else replace(self, number=None)

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """The groups: a predicate over these selects whole groups."""
        return [{name.lower(): quoted(inputs[0].attribute(name).name) for name in self.groups}]

    @property
    def takes_first(self) -> bool:
        return self.n == 1 and bool(self.groups)

    def state_schema(self, *inputs: Schema) -> StateSchema:
        given, groups, waiting = inputs[0], inputs[0].only(self.groups), self.tuples_of(inputs[0])
        what = f"the first {self.n} tuples" if self.n > 1 else "the first tuple"
        first = StateModel(what, 0, Grouping(0, self.groups), per=groups, is_fixed=True)
        tied = StateModel("first tuples with equal ranks", 0, self.enabled_by(given))
        models = (first,) if self.rank == "row_number" else (first, tied)
        tuples = replace(
            waiting.logs["tuples"],
            models=models,
            what="first tuples",
            undecided=True,
            combine=lambda frame, _ages: self._first(frame, given),
            key=self.groups,
        )
        # By those that have gone out, the ranks of later ones are known.
        passed = LogSchema(groups, models, "first tuples", self.groups, blocks=False)
        return replace(waiting, logs={"tuples": tuples, "passed": passed})

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        if (new := inputs[0].tuples) is not None and not state.punctuations("begun").set.is_all:
            frame, log = new.frame.select(*state.inputs[0].names), state.log("tuples")
            # A small slice is always ranked together with the kept tuples.
            first = frame if log.at_most + new.at_most <= tuple_log.SMALL else self._first(frame, state.inputs[0])
            log.add(new.some(first))
        return None

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        begun, passed = self.begin(inputs[0].punctuations, state), state.log("passed")
        taken = state.log("tuples").take(begun.prefixes) if begun.prefixes else None
        if taken is None:
            return None
        before = passed.whole()
        if before is not None and self.groups:
            before = semi_join(before, taken, self.groups)
        given, shown = state.inputs[0], state.inputs[0].names
        if before is None:
            found = taken if self.number is None else taken.some(self._ranked(taken.frame, given))
        else:
            both = taken.frame.with_column(NEW, "true").union_by_name(before.frame.with_column(NEW, "false"))
            found = taken.some(self._ranked(both, given).where(f"{NEW} AND {_RANK} <= {self.n}"))
        if any(i >= len(self.groups) for p in begun.prefixes for i in p.restricted):
            # Groups go on behind the closed prefix of their order.
            found = state.computed(found)
            passed.add(found.some(not_matching(found.frame, begun.groups).select(*shown)))
        number = [] if self.number is None else [Column(self.number.name, Copy(_RANK))]
        return replace(found, frame=found.frame.select(*shown, *number))

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        begun, tuples, passed = state.scratch(Begun), state.log("tuples"), state.log("passed")
        tuples.settle()
        passed.settle()
        if not self.groups and self.rank == "row_number" and passed.rows >= self.n:
            # All of the one group is decided.
            over = [Punctuation.all(state.inputs[0].only(self.over))]
            begun.prefixes = state.punctuations("begun").absorb(over)
            begun.groups = [Punctuation.all(state.inputs[0].only(()))]
            tuples.purge(over)
            forget_completed(over, self.over, state)
        passed.purge(begun.groups)

    def _first(self, tuples: Frame, schema: Schema) -> Frame:
        """The first tuples of each group. Applied to parts of the tuples, it keeps all first tuples of the whole."""
        return self._ranked(tuples, schema).where(f"{_RANK} <= {self.n}").drop(_RANK)

    def _ranked(self, tuples: Frame, schema: Schema) -> Frame:
        order = f"{partition(self.groups)} ORDER BY {', '.join(key.text for key in self._order(schema))}"
        return tuples.with_column(_RANK, f"{self.rank}() OVER ({order})")

    def _order(self, schema: Schema) -> list[Order]:
        """The sort keys; for `row_number`, the attributes that order ties follow."""
        if self.rank == "row_number":
            return total(self.keys, schema, self.groups)
        return [key.item for key in self.keys]
