"""Plans of a region of inner joins: all inputs at once, one after the other, or some at once, and their state.

A region is a tree of inner joins, as the inputs that it combines and the equalities between them. Between two joins of
a region attributes may be renamed, or left out. Anything else ends the region, and so does a join with two readers: it
is an input. An expression that can raise an error must not be computed for other combinations than those that the query
names, so a join with such a condition belongs to no region.

Only safe plans are made, bottom-up: one join of inputs whose punctuation graph is strongly connected, where each input
is a source or such a join itself. The cost of a plan is the state that it keeps: for each input of each join its rate,
times the number of punctuations that a tuple waits for one after the other. The rate of a join's result is the greatest
rate of its inputs, as if each tuple found one partner.

Source: Li et al. 2006, §5.2. Theorems 2 and 4: if any plan is safe, so is the one join of all inputs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

from sqlglot import exp

from operators.behaviour import Combines
from operators.expressions.dialect import attributes_in, conjoined, conjuncts, expression, named, render
from operators.expressions.throwable import throwable
from operators.join import Join
from operators.joins.punctuation_graph import Equality, PunctuationGraph, promised
from operators.joins.purge_strategy import EAGER, PurgeStrategy
from operators.multiway_join import MultiwayJoin
from punct_ns.errors import QueryError
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme
from xmlstream.plan.nodes import Node, Scan, renamed

InputAttribute = tuple[int, str]


@dataclass(frozen=True, slots=True)
class JoinRegion:
    """Joins as one.

    Attributes:
        root: The topmost of them.
        written: What they combine, from left to right.
        inputs: The same, with attributes of different names.
        equalities: Which of their attributes are equal, by the numbers of the inputs.
        residual: All other conditions on combinations, Spark SQL, taken apart at their ANDs.
        output: For each attribute of the root that of an input.
        purge: How one of the joins is asked to purge, the topmost first.
    """

    root: Node
    written: tuple[Node, ...]
    inputs: tuple[Node, ...]
    equalities: tuple[tuple[InputAttribute, InputAttribute], ...]
    residual: tuple[str, ...]
    output: Mapping[str, str]
    purge: PurgeStrategy = EAGER

    @property
    def classes(self) -> tuple[Mapping[int, str], ...] | None:
        """What is equal, each class by the attribute that an input has in it; None where one input has two in one."""
        try:
            return PunctuationGraph(len(self.inputs), self.equalities).classes
        except QueryError:
            return None

    def instead(self, node: Node) -> Node:
        """Another plan for the inputs, with the attributes of the root."""
        return renamed(node, self.output)


def is_join(node: Node) -> bool:
    """Whether a node can be one of a region."""
    operator = node.operator
    if not isinstance(operator, Combines) or operator.equal is None:
        return False
    both = Schema(tuple(attribute for below in node.inputs for attribute in below.schema))
    return operator.residual is None or not throwable(expression(operator.residual), both)


def hands_on(node: Node) -> bool:
    """Whether a node may stand between two joins of a region."""
    return len(node.inputs) == 1 and node.operator.renames(node.inputs[0].schema) is not None


def region(root: Node, inner: Collection[Node]) -> JoinRegion:
    """The region under its topmost join; `inner` are the nodes that can be one with the one above them."""
    walk = _Walk(inner)
    output = walk.of_join(root)
    return JoinRegion(
        root,
        tuple(walk.written),
        tuple(walk.inputs),
        tuple(walk.equalities),
        tuple(walk.residual),
        {name: output[name][1] for name in root.schema.names},
        walk.purge,
    )


class _Walk:
    """What is found on the way down from the topmost join."""

    def __init__(self, inner: Collection[Node]) -> None:
        self._inner = inner
        self._taken: set[str] = set()
        self.written: list[Node] = []
        self.inputs: list[Node] = []
        self.equalities: list[tuple[InputAttribute, InputAttribute]] = []
        self.residual: list[str] = []
        self.purge = EAGER

    def of_join(self, node: Node) -> dict[str, InputAttribute]:
        """Where the attributes of a join are those of the region's inputs."""
        if not self.purge.asked and isinstance(node.operator, Join | MultiwayJoin):
            self.purge = node.operator.purge
        places = [self._of_input(below) for below in node.inputs]
        assert isinstance(node.operator, Combines)
        for (i, one), (j, other) in node.operator.equal or ():
            mine, theirs = (node.inputs[k].schema.attribute(name).name for k, name in ((i, one), (j, other)))
            self.equalities.append((places[i][mine], places[j][theirs]))
        whole = {name: place for known in places for name, place in known.items()}
        if node.operator.residual:
            folded = {name.lower(): place for name, (_, place) in whole.items()}

            def translated(part: exp.Expr) -> exp.Expr:
                return named(folded[part.name.lower()]) if isinstance(part, exp.Column) else part

            parts = conjuncts(expression(node.operator.residual))
            self.residual += [render(part.copy().transform(translated, copy=False)) for part in parts]
        return whole

    def _of_input(self, node: Node) -> dict[str, InputAttribute]:
        if node not in self._inner:
            return self._of_leaf(node)
        if isinstance(node.operator, Combines):
            return self.of_join(node)
        below = self._of_input(node.inputs[0])
        names = node.operator.renames(node.inputs[0].schema) or {}
        return {name: below[source] for name, source in names.items()}

    def _of_leaf(self, node: Node) -> dict[str, InputAttribute]:
        """The node under names that no input before it has."""
        free: dict[str, str] = {}
        for name in node.schema.names:
            number, new = 1, name
            while new.lower() in self._taken:
                number += 1
                new = f"{name}_{number}"
            self._taken.add(new.lower())
            free[new] = name
        self.written.append(node)
        self.inputs.append(renamed(node, free))
        return {name: (len(self.inputs) - 1, new) for new, name in free.items()}


MOST = 6
"""Inputs of a region for which all safe plans are looked at; of more, the join of all at once alone."""

_END = Scheme(())


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """A plan for some inputs of a region.

    Attributes:
        inputs: Which, by their numbers.
        node: The plan.
        text: What it joins, in a line.
        rate: How many tuples it puts out, relative to others.
        kept: What it keeps: infinitely much if it is not safe.
    """

    inputs: frozenset[int]
    node: Node
    text: str
    rate: float = 1.0
    kept: float = 0.0

    @property
    def is_safe(self) -> bool:
        """Whether all that it keeps is purged, or of inputs that end."""
        return self.kept < math.inf


def written(region: JoinRegion) -> JoinPlan:
    """The region as it is."""
    leaves = {id(node): replace(leaf, node=node) for node, leaf in zip(region.written, _leaves(region), strict=True)}

    def plan(node: Node) -> JoinPlan:
        if (leaf := leaves.get(id(node))) is not None:
            return leaf
        if not isinstance(node.operator, Combines):  # it renames what is below
            return replace(plan(node.inputs[0]), node=node)
        return _judged(node, [plan(below) for below in node.inputs], node.operator.equal or ())

    return plan(region.root)


def safe_plans(region: JoinRegion) -> list[JoinPlan]:
    """The safe plans for a region, the cheapest first; of each part of it the cheapest one alone is looked at."""
    leaves = _leaves(region)
    if region.classes is None:
        return []
    everything = frozenset(range(len(leaves)))
    best = {leaf.inputs: leaf for leaf in leaves}
    if len(leaves) > MOST:
        return [plan for plan in (_joined(region, leaves),) if plan is not None and plan.is_safe]
    for size in range(2, len(leaves)):
        for some in map(frozenset, combinations(everything, size)):
            if found := _over(region, some, best):
                best[some] = found[0]
    return _over(region, everything, best)


def at_once(region: JoinRegion) -> JoinPlan | None:
    """The one join of all inputs, whether it is safe or not; None where none can be made."""
    return None if region.classes is None else _joined(region, _leaves(region))


def _leaves(region: JoinRegion) -> list[JoinPlan]:
    found = []
    for i, node in enumerate(region.inputs):
        sources = sorted(_sources(node))
        text = sources[0] if len(sources) == 1 else node.label
        found.append(JoinPlan(frozenset([i]), node, text, _rate(node)))
    return found


def _rate(node: Node) -> float:
    """That of a source; of what is made of several the greatest, of a table none."""
    if isinstance(node.operator, Scan):
        return node.operator.options.rate
    return max(map(_rate, node.inputs), default=0.0)


def _sources(node: Node) -> set[str]:
    return {name for below in node.inputs for name in _sources(below)} if node.inputs else {node.label}


def _over(region: JoinRegion, some: AbstractSet[int], best: Mapping[frozenset[int], JoinPlan]) -> list[JoinPlan]:
    """The safe joins of some of the inputs, the cheapest first; of those that cost the same, the one of fewer joins."""
    found = []
    for parts in _partitions(sorted(some)):
        blocks = [best[part] for part in parts if part in best]
        if 1 < len(blocks) == len(parts) and (plan := _joined(region, blocks)) is not None and plan.is_safe:
            found.append(plan)
    return sorted(found, key=lambda plan: (plan.kept, plan.text.count("("), plan.text))


def _partitions(items: Sequence[int]) -> Iterator[list[frozenset[int]]]:
    """All ways to divide items, each part and all parts in the order of their first ones."""
    if not items:
        yield []
        return
    first, *others = items
    for size in range(len(others) + 1):
        for beside in combinations(others, size):
            rest = [item for item in others if item not in beside]
            for parts in _partitions(rest):
                yield [frozenset([first, *beside]), *parts]


def _joined(region: JoinRegion, blocks: Sequence[JoinPlan]) -> JoinPlan | None:
    """One join of blocks; None where nothing connects them, or nothing that a join can be made of."""
    equalities = tuple(_between(region, blocks))
    names = [set(block.node.schema.names) for block in blocks]
    here = frozenset[str]().union(*names)
    conditions = [
        part
        for part in region.residual
        if (used := {*attributes_in(part)}) <= here and not any(used <= known for known in names)
    ]
    whole = conjoined(map(expression, conditions))
    residual = None if whole is None else render(whole)
    nodes = tuple(block.node for block in blocks)
    schemas = [node.schema for node in nodes]
    try:
        PunctuationGraph(len(blocks), equalities)
        if len(blocks) == 2:
            on = tuple(name for (_, name), _ in equalities), tuple(name for _, (_, name) in equalities)
            node = Node(Join("inner", *on, residual).bounded(*schemas), nodes, "join")
        else:
            join = MultiwayJoin(len(blocks), equalities, residual, region.purge).bounded(*schemas)
            node = Node(join, nodes, "multiway_join")
    except QueryError:
        return None
    return _judged(node, blocks, equalities)


def _between(region: JoinRegion, blocks: Sequence[JoinPlan]) -> Iterator[Equality]:
    """What is equal between blocks; what is equal within one it sees to itself."""
    block_of = {i: number for number, block in enumerate(blocks) for i in block.inputs}
    for places in region.classes or ():
        one_each: dict[int, InputAttribute] = {}
        for i, name in sorted(places.items()):
            if i in block_of:
                one_each.setdefault(block_of[i], (block_of[i], name))
        met = [one_each[number] for number in sorted(one_each)]
        yield from pairwise(met)


def _judged(node: Node, blocks: Sequence[JoinPlan], equalities: Sequence[Equality]) -> JoinPlan:
    """The join of blocks with what it keeps."""
    promises = [(block.node.schema, block.node.schemes) for block in blocks]
    kept = sum(block.kept for block in blocks)
    purged = {model.input for model in node.state_schema.models if model.until.holds(promises)}
    graph = node.operator.graph if isinstance(node.operator, MultiwayJoin) else None
    graph = graph or PunctuationGraph(len(blocks), tuple(equalities))
    reachability = promised(graph, [schemes for _, schemes in promises])
    for i, block in enumerate(blocks):
        if i in purged:
            kept += block.rate * (reachability.rounds(i) if reachability.reaches_all(i) else 1)
        elif _END not in block.node.schemes:
            kept = math.inf
    text = f"{node.label}({', '.join(block.text for block in blocks)})"
    inputs = frozenset[int]().union(*(block.inputs for block in blocks))
    return JoinPlan(inputs, node, text, max(block.rate for block in blocks), kept)
