"""Choice of joins: whether several streams are joined at once, one after the other, or some at once.

A query can be safe as one join of all inputs, and as no tree of binary joins (Li et al. 2006, Fig. 5 and 7); or both
may be, and one keeps fewer tuples. What was written stays unless another plan keeps less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

from xmlstream.optimizer.join_plans import JoinPlan, JoinRegion, at_once, hands_on, is_join, region, safe_plans, written
from xmlstream.optimizer.rewrite import bottom_up, over, readers
from xmlstream.plan.nodes import Node, Scan, topological


@dataclass(frozen=True, slots=True)
class Choice:
    """The plans for a region of joins: what was written, and all safe ones, the cheapest first.

    `asked` is the one join of all, where the query asks how that purges.
    """

    region: JoinRegion
    written: JoinPlan
    safe: tuple[JoinPlan, ...]
    asked: JoinPlan | None = None

    @property
    def chosen(self) -> JoinPlan:
        """What runs: all at once, where the query asks how that purges; else what keeps least."""
        if self.asked is not None:
            return self.asked
        return self.safe[0] if self.safe and self.safe[0].kept < self.written.kept else self.written

    def __str__(self) -> str:
        """All of them, one a line: what each keeps, in tuples for one that each source sends while a value is open."""
        return "\n".join(map(self._line, self.all))

    @property
    def all(self) -> list[JoinPlan]:
        """All of them, what was written and those that are safe, the cheapest first."""
        known = {plan.text: plan for plan in (self.written, *filter(None, [self.asked]), *self.safe)}
        return sorted({**known, self.written.text: self.written}.values(), key=lambda plan: plan.kept)

    def as_json(self) -> list[dict[str, Any]]:
        """All of them as JSON has it; what keeps tuples for ever keeps null."""
        return [
            {
                "plan": plan.text,
                "keeps": plan.kept if plan.is_safe else None,
                "written": plan is self.written,
                "chosen": plan.text == self.chosen.text,
            }
            for plan in self.all
        ]

    def _line(self, plan: JoinPlan) -> str:
        known = {"as written": plan is self.written, "chosen": plan.text == self.chosen.text}
        marks = ", ".join(mark for mark, holds in known.items() if holds)
        keeps = f"keeps {plan.kept:g}" if plan.is_safe else "keeps tuples for ever"
        return f"{plan.text}: {keeps}" + (f" ({marks})" if marks else "")


def with_rates(root: Node, rates: Mapping[str, float]) -> Node:
    """The plan with measured rates of sources, by their names, that do not declare their own."""

    def rated(node: Node, inputs: tuple[Node, ...]) -> Node:
        scan = node.operator
        if not isinstance(scan, Scan) or "rate" in dict(scan.options.given) or not rates.get(scan.name):
            return over(node, inputs)
        return over(node, inputs, replace(scan, options=scan.options.replace(rate=f"{rates[scan.name]:f}")))

    return bottom_up(root, rated)


def choose_joins(root: Node) -> Node:
    """The plan with each region of three inputs or more joined so that it keeps least."""
    return _rewritten(root, [])


def choices(root: Node) -> Iterator[Choice]:
    """What there is to choose from, region by region, those of inputs before those that read them."""
    found: list[Choice] = []
    _rewritten(root, found)
    yield from found


def _rewritten(root: Node, found: list[Choice]) -> Node:
    uses = readers(root)
    joins = {node for node in topological(root) if is_join(node)}
    inner: set[Node] = set()
    for node in reversed(topological(root)):
        if node in joins or (node in inner and hands_on(node)):
            inner.update(below for below in node.inputs if uses[below] == 1 and _ends_in(joins, below, uses))
    now: set[Node] = set()

    def chosen(node: Node, inputs: tuple[Node, ...]) -> Node:
        new = over(node, inputs)
        if node in inner:
            now.add(new)
        if node in inner or node not in joins or len((of := region(new, now)).inputs) < 3:
            return new
        choice = Choice(of, written(of), tuple(safe_plans(of)), at_once(of) if of.purge.asked else None)
        found.append(choice)
        return new if choice.chosen is choice.written else of.instead(choice.chosen.node)

    return bottom_up(root, chosen)


def _ends_in(joins: AbstractSet[Node], node: Node, uses: Counter[Node]) -> bool:
    """Whether a node is a join, or stands on one that nobody else reads, with nothing between but what hands it on."""
    while node not in joins and hands_on(node) and uses[node.inputs[0]] == 1:
        (node,) = node.inputs
    return node in joins
