"""top_n: of each group the first n tuples in an order, as soon as the group is complete.

Meaning:    top_{A; K; n}(R) = {| t ∈ R | rank(t) ≤ n |}, rank(t) that of t among {| u ∈ R | u.A = t.A |} in the order
            of the keys K: its number; or one more than the number of tuples, or of values of K, before it (SQL's
            ROW_NUMBER, RANK and DENSE_RANK). Null is a group. Without A all tuples are one group.
Example:    TopN(2, (SortKey("price", descending=True),), ("auction",))
              over (auction INT, price INT) gives (auction INT, price INT)
              in   (1, 10) (1, 12) (2, 3) | (1, 11) (1, 9) <1, *>
              out                         | (1, 11) (1, 12) <1, *>
Step:       –
Pass:       {t ∈ kept ∪ new | t.A is complete, rank(t) ≤ n}: P covers every possible tuple of the group.
Keep:       {t ∈ kept ∪ new | t.A is not complete, rank(t) ≤ n}: a tuple behind n others stays behind them.
Propagate:  exactly the punctuations on A that cover complete groups, with wildcards for all other attributes.
Safe when:  the schemes cover every group with finitely many punctuations; n tuples of each open group are kept.
Source:     Tucker et al. 2003, Tables 2 to 4 (groupPs): as group_by, with several output tuples for each group.

SQL leaves the order of tuples with equal keys open. Here the remaining attributes decide, ascending, null first, as in
sort, so that the result does not depend on the order of arrival. RANK and DENSE_RANK keep all tied tuples: the state is
bounded by n and the ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Literal

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.behaviour import Operator, Terms, among
from xmlstream.operators.closing_conditions import Condition, Grouping, StateModel
from xmlstream.operators.required_punctuations import Held, Way, on
from xmlstream.operators.sort_order import SortKey, keys_line, once, partition, total
from xmlstream.operators.state import tuple_log
from xmlstream.operators.state.completion import completed, completion_sets, forget_completed
from xmlstream.operators.state.operator_state import NewPunctuations, OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.operators.state.state_schema import LogSchema, StateSchema
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import placed
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.punct_ns.slices import own, quoted

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame

Rank = Literal["row_number", "rank", "dense_rank"]
"""The rank of tuples: a number for each one, or the same for equal ones, with or without gaps behind them."""

_RANK = own("rank")


@dataclass(frozen=True, slots=True)
class TopN(Operator):
    """The tuples whose rank by `keys`, among those that agree on `groups`, is at most `n`.

    `number` is the attribute for the rank, behind the input's attributes; None if it is not needed.
    """

    n: int
    keys: tuple[SortKey, ...]
    groups: tuple[str, ...] = ()
    rank: Rank = "row_number"
    number: Attribute | None = None

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
        """The schemes on groups only, and those whose other terms tile their attributes."""
        groups = {name.lower(): name for name in self.groups}
        return tuple(on_groups for scheme in inputs[0] if (on_groups := scheme.renamed(groups)) is not None)

    def enabled_by(self, *inputs: Schema) -> Condition:
        return Grouping(0, self.groups, sole=True)

    def parameters(self, output: Schema) -> str:
        return f"({', '.join(self.groups)}) {self.rank} <= {self.n} by {keys_line(self.keys)}"

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        return [among((*needed, *self.groups, *(key.attribute for key in self.keys)), inputs[0])]

    def pruned(self, needed: AbstractSet[str]) -> TopN:
        return self if self.number is None or self.number.name in needed else replace(self, number=None)

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """The groups: a predicate over these selects whole groups."""
        return [{name.lower(): quoted(inputs[0].attribute(name).name) for name in self.groups}]

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        return [((0, on(self.groups, p, inputs[0])),)]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        groups = inputs[0].only(self.groups)
        first = StateModel("first tuples", 0, Grouping(0, self.groups))
        log = LogSchema(
            groups,
            (first,),
            undecided=True,
            combine=lambda frame, _ages: self._first(frame, inputs[0]),
            key=self.groups,
        )
        return StateSchema({"tuples": log}, completion_sets(inputs[0], groups))

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        if (new := inputs[0].tuples) is not None:
            frame, log = new.frame.select(*map(quoted, state.inputs[0].names)), state.log("tuples")
            # A small slice is always ranked together with the kept tuples.
            first = frame if log.at_most + new.at_most <= tuple_log.SMALL else self._first(frame, state.inputs[0])
            log.add(new.some(first))
        return None

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        complete = state.scratch(NewPunctuations).found = completed(inputs[0].punctuations, self.groups, state)
        taken = state.log("tuples").take(complete) if complete else None
        if taken is None or self.number is None:
            return taken
        ranked = self._ranked(taken.frame, state.inputs[0]).renamed(_RANK, self.number.name)
        return Tuples(ranked, taken.at_most, taken.exact)

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        state.log("tuples").settle()
        forget_completed(state.scratch(NewPunctuations).found, self.groups, state)

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        return placed(state.scratch(NewPunctuations).found, self.groups, self.schema(*state.inputs))

    def _first(self, tuples: Frame, schema: Schema) -> Frame:
        """The first tuples of each group. Applied to parts of the tuples, it keeps all first tuples of the whole."""
        return self._ranked(tuples, schema).where(f"{_RANK} <= {self.n}").drop(_RANK)

    def _ranked(self, tuples: Frame, schema: Schema) -> Frame:
        order = f"{partition(self.groups)} ORDER BY {', '.join(self._order(schema))}"
        return tuples.select("*", f"{self.rank}() OVER ({order}) AS {_RANK}")

    def _order(self, schema: Schema) -> list[str]:
        """The sort keys; for `row_number`, the attributes that order ties follow."""
        if self.rank == "row_number":
            return total(self.keys, schema, self.groups)
        return [key.item for key in self.keys]
