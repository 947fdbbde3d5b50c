"""Regions of inner joins: joins of joins, as the inputs that they combine and what must be equal of them.

Between two joins of a region attributes may be renamed, or left out. Anything else ends it, and so does a join that two
others read: it is an input. What may be an error is not computed for other combinations than those for which it was
asked, so that joins with such conditions are none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlglot import exp

from operators.expressions.conjuncts import conjuncts
from operators.expressions.dialect import expression, render
from operators.expressions.references import named
from operators.expressions.throwable import throwable
from operators.join import Join
from operators.joins.punctuation_graph import PunctuationGraph
from operators.joins.purge_strategy import EAGER, PurgeStrategy
from operators.multiway_join import MultiwayJoin
from punct_ns.errors import QueryError
from punct_ns.schema import Schema
from xmlstream.plan.nodes import Node
from xmlstream.plan.projection import renamed

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
    if operator.combines is None:
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
        for (i, one), (j, other) in node.operator.combines or ():
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
        if node.operator.combines is not None:
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
