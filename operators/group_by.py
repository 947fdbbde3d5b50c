"""group_by: one tuple for each group, as soon as the group is complete.

Meaning:    γ_{A; f}(R) = {(a, f({| t ∈ R | t.A = a |})) | a ∈ π_A(R)}; null is a group.
            Without A there is always exactly one group.
Example:    GroupBy(("hour",), (Aggregate(n, "count(*)"),))
              over (hour INT, min INT) gives (hour INT, n BIGINT)
              in   (1, 0) (1, 9) (2, 5) | (1, 30) <1, *>
              out                       | (1, 3) <1, *>
Step:       –
Pass:       {(a, f(kept and new tuples of a)) | a is complete}: P covers every possible tuple of the group.
Keep:       the other groups: their partial aggregates if all aggregates have some, else their tuples.
Propagate:  exactly the punctuations on A that cover complete groups, with wildcards for the aggregates.
Safe when:  the schemes cover every group with finitely many punctuations.
Source:     Tucker et al. 2003, Tables 2 to 4 (groupPs); Tucker et al. 2007, §3.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.aggregation import Aggregation
from xmlstream.operators.behaviour import Operator, Terms, among
from xmlstream.operators.closing_conditions import Condition, Grouping, StateModel
from xmlstream.operators.expressions.aggregates import Aggregate, attributes_of, ignores_duplicates, operands
from xmlstream.operators.expressions.dialect import brief, expression, in_terms, render
from xmlstream.operators.expressions.throwable import takes_equals_alike
from xmlstream.operators.required_punctuations import Held, Way, on
from xmlstream.operators.state.completion import closed_so_far, completed, completion_sets, forget_completed
from xmlstream.operators.state.operator_state import NewPunctuations, OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.operators.state.state_schema import LogSchema, StateSchema
from xmlstream.operators.taking_over import Differs, Names, TakenOver, TakesOver, in_old_terms
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import placed
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.punct_ns.slices import own, quoted


@dataclass(frozen=True, slots=True)
class GroupBy(Operator):
    """The groups of the input by `keys`, which may be none, with their aggregates."""

    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    exact_inputs: ClassVar[bool] = False
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_TUPLES
    holds_back: ClassVar[bool] = False

    def schema(self, *inputs: Schema) -> Schema:
        return Schema((*(inputs[0].attribute(key) for key in self.keys), *(a.attribute for a in self.aggregates)))

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """The schemes on keys only, and those whose other terms tile their attributes."""
        keys = {key.lower(): key for key in self.keys}
        return tuple(on_keys for scheme in inputs[0] if (on_keys := scheme.renamed(keys)) is not None)

    def enabled_by(self, *inputs: Schema) -> Condition:
        return Grouping(0, self.keys, sole=True)

    def parameters(self, output: Schema) -> str:
        answers = (f"{a.expression} AS `{a.attribute.name}`" for a in self.aggregates)
        return f"({', '.join(self.keys)}) {', '.join(answers)}"

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        return [among((*self.keys, *attributes_of(self.pruned(needed).aggregates)), inputs[0])]

    def pruned(self, needed: AbstractSet[str]) -> GroupBy:
        """The needed aggregates; the one group without keys is made by one of them, if by none that is needed."""
        aggregates = tuple(a for a in self.aggregates if a.attribute.name in needed)
        return GroupBy(self.keys, aggregates or (() if self.keys else self.aggregates[:1]))

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """The keys: a predicate over these selects whole groups."""
        return [{key.lower(): quoted(inputs[0].attribute(key).name) for key in self.keys}]

    def ignores_duplicates(self, side: int, needed: AbstractSet[str], *inputs: Schema) -> bool:
        """Whether each needed aggregate, if any, is one like MIN, or over DISTINCT values."""
        aggregates = self.pruned(needed).aggregates
        return all(ignores_duplicates(a) and takes_equals_alike(operands(a), inputs[0]) for a in aggregates)

    def by_more(self, *keys: str) -> GroupBy:
        return replace(self, keys=(*self.keys, *keys))

    @property
    def merged(self) -> tuple[tuple[str, ...], tuple[Aggregate, ...]] | None:
        return (self.keys, self.aggregates) if self._aggregation.merges is not None else None

    def taken_over(self, before: GroupBy, called: Names) -> TakenOver:
        """The groups by the same keys, with aggregates that were kept, or follow from the tuples that were."""
        keys = {key.lower(): called.get(key.lower()) for key in self.keys}
        if sorted(str(key).lower() for key in keys.values()) != sorted(key.lower() for key in before.keys):
            by, grouped = (", ".join(each.keys) or "nothing" for each in (self, before))
            raise Differs(f"it groups by {by}, and grouped by {grouped}")
        now, then = self._aggregation, before._aggregation
        if now.merges is None and then.merges is not None:
            raise Differs("of its groups, aggregates were kept and no tuples")
        if then.merges is None:
            _require_kept(now, then, called)
        same = dict(_same_aggregates(now, then, called))
        names = {
            self.aggregates[i].attribute.name.lower(): before.aggregates[at].attribute.name for i, at in same.items()
        }
        columns = {own(f"{column}{i}"): own(f"{column}{at}") for i, at in same.items() for column in "an"}
        output = {name: str(old) for name, old in keys.items()} | names
        if then.merges is None:
            return TakenOver(output, {}, None if now.merges is None else now.kept_form)
        return TakenOver(output, columns)

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        return [((0, on(self.keys, p, inputs[0])),)]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        """The open groups, with one row each or the tuples that the aggregates need, and the closed parts of groups."""
        kept, keys = self._aggregation, inputs[0].only(self.keys)
        merges = kept.merges is not None
        what, per = ("groups", keys) if merges else ("tuples of groups", None)
        groups = StateModel(what, 0, Grouping(0, self.keys), per=per)
        combine = kept.combined if merges or kept.ignores_duplicates else None
        log = LogSchema(keys, (groups,), combine=combine, key=self.keys if combine else (), shown=kept.shown)
        return StateSchema({"groups": log}, completion_sets(inputs[0], keys))

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """Takes the new tuples, but not once the one group without keys is complete: even no tuples would begin it."""
        new = inputs[0].tuples
        if new is not None and (self.keys or not closed_so_far(state).set):
            known = self._aggregation.partials(new.frame)
            kept = self._aggregation.kept_form(new.frame) if known is None else known
            state.log("groups").add(new.some(kept), partial=known is not None)
        return None

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """The groups that became complete; for an empty stream, the one group without keys."""
        complete = state.scratch(NewPunctuations).found = completed(inputs[0].punctuations, self.keys, state)
        if not complete:
            return None
        if (taken := state.log("groups").take(complete)) is not None:
            at_most = taken.at_most if self.keys else 1
            return Tuples(self._aggregation.answers(taken.frame), at_most, exact=self._aggregation.merges is not None)
        return None if self.keys else Tuples(self._aggregation.answers(self._aggregation.kept_form(state.nothing())), 1)

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        state.log("groups").settle()
        forget_completed(state.scratch(NewPunctuations).found, self.keys, state)

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        return placed(state.scratch(NewPunctuations).found, self.keys, self.schema(*state.inputs))

    @property
    def _aggregation(self) -> Aggregation:
        return Aggregation(self.keys, self.aggregates)


def _same_aggregates(now: Aggregation, before: Aggregation, called: Names) -> Iterator[tuple[int, int]]:
    """The places of aggregates that were there before, now and then.

    Raises:
        Differs: An aggregate is new and tuples were not kept, or has another type than it had.
    """
    texts = [render(expression(a.expression)) for a in before.aggregates]
    for i, aggregate in enumerate(now.aggregates):
        text = render(in_terms(expression(aggregate.expression), in_old_terms(called, aggregate.expression)))
        if text not in texts:
            if before.merges is None:
                continue
            raise Differs(f"its groups were kept without {brief(aggregate.expression)}")
        at = texts.index(text)
        if before.aggregates[at].attribute.domain.type != aggregate.attribute.domain.type:
            raise Differs(f"{brief(text)} has another type")
        yield i, at


def _require_kept(now: Aggregation, before: Aggregation, called: Names) -> None:
    """Requires that the tuples of groups were kept with what other aggregates need of them.

    Raises:
        Differs: They were not.
    """
    kept = {name.lower() for name in (*before.keys, *attributes_of(before.aggregates))}
    for name in attributes_of(now.aggregates):
        if called.get(name.lower(), "").lower() not in kept:
            raise Differs(f"its kept tuples lack {name}")
    if before.ignores_duplicates and not now.ignores_duplicates:
        raise Differs("of equal tuples in its groups, one was kept")
