"""Choice of purges: whether a join of many inputs looks for what it can purge in each slice, or now and then.

What a purge costs is counted in tuples, as what a plan keeps is. Each tuple that is kept is handled once a slice, since
what comes is joined with it, and once more when it is looked at. With k tuples kept by an eager purge, and a that come
in a slice, a lazy purge in every n-th slice handles

    (k + a·(n − 1)) / n     by looking, and
    k + a·(n − 1) / 2       by keeping,

of which the one falls with n, and the other rises. How many slices a tuple is kept for, k / a, decides: where it is
few, what is purged late is much of what is kept; where it is many, each look goes through much that stays.

What the join says comes up to n − 1 slices later where it purges lazily. So it does not where an operator above waits
for it, and would answer later, or keep more.

Source: Li et al. 2006, §5.2 (Plan Parameter II), which leaves the cost open. The sum is that of economic orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from operators.closing_conditions import ALWAYS
from operators.joins.purge_strategy import EVERY, PurgeStrategy, ordinal
from operators.multiway_join import MultiwayJoin
from xmlstream.optimizer.rewrite import bottom_up
from xmlstream.plan.loads import Load, Loads
from xmlstream.plan.nodes import Node, Results, Scan, Static, names, topological


def handled(every: int, load: Load) -> float:
    """How many tuples a purge in every so-manieth slice handles in a slice, those that are only kept included.

    >>> round(handled(1, Load(kept=1000, came=100))), round(handled(4, Load(kept=1000, came=100)))
    (2000, 1475)
    """
    more = load.came * (every - 1)
    return (load.kept + more) / every + load.kept + more / 2


def cheapest(load: Load) -> int:
    """In every how many slices a purge handles least, up to `EVERY`; of equal costs the more eager one.

    >>> [cheapest(Load(kept=kept, came=100)) for kept in (100, 200, 1000, 100_000)]
    [1, 1, 4, 10]
    """
    return min(range(1, EVERY + 1), key=lambda every: (handled(every, load), every))


@dataclass(frozen=True, slots=True)
class PurgeChoice:
    """How one join of many purges: its name in the plan, what was chosen and why, and what was measured of it."""

    name: str
    strategy: PurgeStrategy
    load: Load | None

    def __str__(self) -> str:
        """In a sentence, and in another one what either way costs, where that is known."""
        way = "eagerly" if self.strategy.is_eager else f"lazily, in every {ordinal(self.strategy.every)} slice"
        said = ", ".join(filter(None, (f"{self.name} purges {way}", self.strategy.why)))
        if self.load is None:
            return f"{said}."
        other = max(2, cheapest(self.load)) if self.strategy.is_eager else self.strategy.every
        eager, lazy = (f"{handled(every, self.load):,.0f}" for every in (1, other))
        return f"{said}. An eager purge handles {eager} tuples a slice, one in every {ordinal(other)} slice {lazy}."

    def as_json(self) -> dict[str, Any]:
        """The same for programs; costs in tuples that are handled in a slice, null where nothing was measured."""
        return {
            "join": self.name,
            "purge": "eager" if self.strategy.is_eager else "lazy",
            "every": self.strategy.every,
            "why": self.strategy.why,
            "handles": None if self.load is None else [handled(every, self.load) for every in range(1, EVERY + 1)],
        }


def purge_choices(root: Node, loads: Loads) -> Iterator[PurgeChoice]:
    """How each join of many of a plan purges, those of inputs first."""
    awaited = _awaited(root)
    for node, name in names(root).items():
        if isinstance(node.operator, MultiwayJoin):
            load = loads.get(name)
            load = load if load is not None and load.came else None
            yield PurgeChoice(name, _strategy(node.operator.purge, awaited.get(node), load), load)


def choose_purges(root: Node, measured: Callable[[], Loads]) -> Node:
    """The plan in which each join of many purges as it was asked, or else as costs least; else nothing is measured."""
    if not any(isinstance(node.operator, MultiwayJoin) for node in topological(root)):
        return root
    called, chosen = names(root), {choice.name: choice.strategy for choice in purge_choices(root, measured())}

    def purging(node: Node, inputs: tuple[Node, ...]) -> Node:
        operator = node.operator
        if isinstance(operator, MultiwayJoin):
            operator = replace(operator, purge=chosen[called[node]])
        # Joins that purge otherwise are equal, and so is what reads them: it is made anew all the same.
        return Node(operator, inputs, node.label)

    return bottom_up(root, purging)


def chosen_lazily(root: Node) -> Iterator[str]:
    """In a line each, the joins of many that purge lazily without being asked to: who runs them may be surprised."""
    for node, name in names(root).items():
        if isinstance(node.operator, MultiwayJoin) and not (node.operator.purge.is_eager or node.operator.purge.asked):
            yield str(PurgeChoice(name, node.operator.purge, None))


def _strategy(given: PurgeStrategy, above: str | None, load: Load | None) -> PurgeStrategy:
    if given.asked:
        return given
    if above is not None:
        return PurgeStrategy(1, f"since {above} waits for what it says")
    if load is None:
        return PurgeStrategy(1, "since it is not measured yet how long tuples are kept")
    return PurgeStrategy(cheapest(load), f"since a tuple is kept for {load.slices:.1f} slices")


def _awaited(root: Node) -> dict[Node, str]:
    """Nodes above which an operator waits for what they say, to answer or to forget, with the nearest one's name."""
    called = names(root)
    found: dict[Node, str] = {}
    for node in reversed(topological(root)):
        waits = called[node] if _waits(node) else found.get(node)
        if waits is not None:
            for below in node.inputs:
                found.setdefault(below, waits)
    return found


def _waits(node: Node) -> bool:
    operator = node.operator
    if isinstance(operator, Scan | Static | Results):
        return False
    schemas = [below.schema for below in node.inputs]
    return operator.enabled_by(*schemas) != ALWAYS or bool(operator.state_models(*schemas))
