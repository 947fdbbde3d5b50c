"""Chooses how several streams are joined: all in one join, one after the other, or in groups.

One join of all inputs can be safe although no tree of binary joins is (Li et al. 2006, Fig. 5 and 7). If several plans
are safe, one may keep fewer tuples; of equal ones it is always the same, however the query is written. The plan as
written stays if none is safe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.behaviour import Combines
from xmlstream.operators.expressions.dialect import expression
from xmlstream.operators.joins.punctuation_graph import equal_groups
from xmlstream.optimizer.join_plans import (
    JoinPlan,
    JoinRegion,
    at_once,
    equal_within,
    hands_on,
    is_join,
    region,
    safe_plans,
    written,
)
from xmlstream.optimizer.push_down import compared_above, selected
from xmlstream.optimizer.rewrite import bottom_up, readers, rebuilt
from xmlstream.plan.nodes import Node, Scan, names, topological
from xmlstream.punct_ns.slices import quoted


@dataclass(frozen=True, slots=True)
class Choice:
    """The plans for a region of joins.

    Attributes:
        region: The region.
        written: The plan as written.
        safe: All safe plans, the cheapest first.
        requested: The one join of all inputs, if the query sets its purge interval; else None.
    """

    region: JoinRegion
    written: JoinPlan
    safe: tuple[JoinPlan, ...]
    requested: JoinPlan | None = None

    @property
    def chosen(self) -> JoinPlan:
        """The plan that runs: the one join of all inputs if the query sets its purge interval, else the cheapest."""
        if self.requested is not None:
            return self.requested
        if not self.safe or (self.written.text, self.written.kept) == (self.safe[0].text, self.safe[0].kept):
            return self.written
        return self.safe[0]

    @property
    def instead(self) -> Node | None:
        """The chosen plan, with the attributes of the region; None for the plan as written."""
        return None if self.chosen is self.written else self.region.instead(self.chosen.node)

    def __str__(self) -> str:
        """One line for each plan, with the tuples that it keeps if each source sends one while a value is open."""
        lines = []
        for plan in self.all:
            known = {"as written": plan is self.written, "chosen": plan.text == self.chosen.text}
            marks = ", ".join(mark for mark, holds in known.items() if holds)
            keeps = f"keeps {plan.kept:g}" if plan.is_safe else "keeps tuples for ever"
            lines.append(f"{plan.text}: {keeps}" + (f" ({marks})" if marks else ""))
        return "\n".join(lines)

    @property
    def all(self) -> list[JoinPlan]:
        """The plan as written and the safe plans, the cheapest first."""
        known = {plan.text: plan for plan in (self.written, *filter(None, [self.requested]), *self.safe)}
        return sorted({**known, self.written.text: self.written}.values(), key=lambda plan: plan.kept)

    def as_json(self) -> list[dict[str, object]]:
        """The plans as JSON; `keeps` is null for a plan that keeps tuples for ever."""
        return [
            {
                "plan": plan.text,
                "keeps": plan.kept if plan.is_safe else None,
                "written": plan is self.written,
                "chosen": plan.text == self.chosen.text,
            }
            for plan in self.all
        ]


def with_rates(root: Node, rates: Mapping[str, float], *, over_declared: bool = False) -> Node:
    """Sets the measured rates of sources, by their names in the plan; those that are declared stay, or not."""
    called = names(root)

    def rated(node: Node, inputs: tuple[Node, ...]) -> Node:
        scan, rate = node.operator, rates.get(called[node])
        if not isinstance(scan, Scan) or rate is None or (scan.declares_rate and not over_declared):
            return rebuilt(node, inputs)
        return rebuilt(node, inputs, replace(scan, measured=rate))

    return bottom_up(root, rated)


def choose_joins(root: Node) -> Node:
    """Joins each region of at least three inputs in the way that keeps the fewest tuples."""
    return _rewritten(root, _chosen)


def choices_between(root: Node) -> list[Choice]:
    """The choice for each region of joins, inputs first."""
    found: list[Choice] = []

    def noted(region: JoinRegion) -> Node | None:
        found.append(choice_of(region))
        return found[-1].instead

    _rewritten(root, noted)
    return found


def regions_of(root: Node) -> list[JoinRegion]:
    """The regions of at least three inputs, whose joins are chosen, as they are joined now; inputs first."""
    found: list[JoinRegion] = []
    if sum(len(node.inputs) - 1 for node in topological(root) if is_join(node)) > 1:
        _rewritten(root, found.append)
    return found


def joined_at_once(root: Node) -> Node:
    """Joins each region of at least three inputs at once; the plan is safe if any other plan for its regions is.

    So it tells which promises would make a query safe, once its joins are chosen again (Li et al. 2006, Theorem 2).
    """

    def at_once_(region: JoinRegion) -> Node | None:
        plan = at_once(region)
        return None if plan is None else region.instead(plan.node)

    return _rewritten(root, at_once_)


def share_closings(root: Node) -> Node:
    """Has what an inner join closes of a key close the attributes, too, that equal this key within an input.

    A select of what is equal anyway moves it. Else it would depend on which of them the query compares. Keys on which
    the join promises nothing need none.
    """

    def shared(node: Node, inputs: tuple[Node, ...]) -> Node:
        new = rebuilt(node, inputs)
        if not isinstance(new.operator, Combines) or new.operator.equal is None:
            return new
        promised = {name.lower() for scheme in new.schemes for name in scheme.attributes}
        keys = {name for pair in new.operator.equal for _, name in pair if name.lower() in promised}
        tests = []
        for below in inputs:
            for group in equal_groups(((0, a), (0, b)) for a, b in equal_within(below)):
                key = next((name for _, name in group if name in keys), None)
                if key is not None:
                    type_ = below.schema.attribute(key).domain.type
                    others = [n for _, n in group if n != key and below.schema.attribute(n).domain.type == type_]
                    tests += [expression(f"{quoted(key)} = {quoted(name)}") for name in others]
        return selected(new, tests)

    return bottom_up(root, shared)


def choice_of(region: JoinRegion) -> Choice:
    """The plans for a region."""
    return Choice(region, written(region), tuple(safe_plans(region)), at_once(region) if region.purge.chosen else None)


def _chosen(region: JoinRegion) -> Node | None:
    return choice_of(region).instead


def _rewritten(root: Node, instead: Callable[[JoinRegion], Node | None]) -> Node:
    """The plan with another node for the joins of each region of at least three inputs; None leaves them."""
    uses, compared = readers(root), compared_above(root)
    joins = {node for node in topological(root) if is_join(node)}
    inner: set[Node] = set()
    for node in reversed(topological(root)):
        if node in joins or (node in inner and hands_on(node, compared[node])):
            ends = (below for below in node.inputs if uses[below] == 1 and _ends_in(joins, below, uses, compared))
            inner.update(ends)
    now: set[Node] = set()

    def chosen(node: Node, inputs: tuple[Node, ...]) -> Node:
        new = rebuilt(node, inputs)
        if node in inner:
            now.add(new)
        if node in inner or node not in joins or len((of := region(new, now)).inputs) < 3:
            return new
        return instead(of) or new

    return bottom_up(root, chosen)


def _ends_in(
    joins: AbstractSet[Node], node: Node, uses: Counter[Node], compared: Mapping[Node, AbstractSet[str]]
) -> bool:
    """Whether a node is a join that has no other reader, or hands on the tuples of one."""
    while node not in joins and hands_on(node, compared[node]) and uses[node.inputs[0]] == 1:
        (node,) = node.inputs
    return node in joins
