"""Regions of inner joins: joins of joins, as the inputs that they combine and what must be equal of them.

What lies between two joins ends a region, as does a join that two others read: it is an input. What may be an error is
not computed for other combinations than those for which it was asked, so that joins with such conditions are none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from operators.expressions.conjuncts import conjuncts
from operators.expressions.dialect import expression, render
from operators.expressions.throwable import throwable
from operators.joins.punctuation_graph import PunctuationGraph
from punct_ns.errors import QueryError
from punct_ns.schema import Schema
from xmlstream.plan.nodes import Node

InputAttribute = tuple[int, str]


@dataclass(frozen=True, slots=True)
class JoinRegion:
    """Joins as one.

    Attributes:
        root: The topmost of them.
        inputs: What they combine, from left to right.
        equalities: Which of their attributes are equal, by the numbers of the inputs.
        residual: All other conditions on combinations, Spark SQL, taken apart at their ANDs.
    """

    root: Node
    inputs: tuple[Node, ...]
    equalities: tuple[tuple[InputAttribute, InputAttribute], ...]
    residual: tuple[str, ...]

    @property
    def classes(self) -> tuple[Mapping[int, str], ...] | None:
        """What is equal, each class by the attribute that an input has in it; None where one input has two in one."""
        try:
            return PunctuationGraph(len(self.inputs), self.equalities).classes
        except QueryError:
            return None


def is_join(node: Node) -> bool:
    """Whether a node can be one of a region."""
    operator = node.operator
    if operator.combines is None:
        return False
    both = Schema(tuple(attribute for below in node.inputs for attribute in below.schema))
    return operator.residual is None or not throwable(expression(operator.residual), both)


def region(root: Node, inner: Collection[Node]) -> JoinRegion:
    """The region under its topmost join; `inner` are the joins that can be one with the one above them."""
    inputs: list[Node] = []
    equalities: list[tuple[InputAttribute, InputAttribute]] = []
    residual: list[str] = []

    def of_input(node: Node) -> dict[str, InputAttribute]:
        """Where the attributes of a join's input are those of the region's inputs."""
        if node in inner:
            return of_join(node)
        inputs.append(node)
        return {name: (len(inputs) - 1, name) for name in node.schema.names}

    def of_join(node: Node) -> dict[str, InputAttribute]:
        places = [of_input(below) for below in node.inputs]
        for one, other in node.operator.combines or ():
            ends = (places[side][node.inputs[side].schema.attribute(name).name] for side, name in (one, other))
            equalities.append((next(ends), next(ends)))
        if node.operator.residual:
            residual.extend(render(part) for part in conjuncts(expression(node.operator.residual)))
        return {name: place for known in places for name, place in known.items()}

    of_join(root)
    return JoinRegion(root, tuple(inputs), tuple(equalities), tuple(residual))
