"""Pushes predicates down: what a select will not let through is not joined, merged or kept.

A predicate is taken apart at its ANDs. Each part goes below an operator if it selects there what it would select above;
an operator says in which terms its inputs can be asked (`predicate_terms`), and a join what of its own residual
condition they can be asked, too. A select goes wholly: all that it asks, its input is asked.

What can be an error goes no lower than where it is computed for those tuples for which it was computed before: through
selects, and through what hands on all tuples, as far as it looks at what passes through. Nothing goes below
`punctuate`, which judges the stream as it comes, and nothing in front of a source's grammar check, which is the
source's own. A node that two others use keeps its tuples for both, and nothing goes below it.

No punctuation is lost by that: a select hands on all of them, and the fewer tuples an operator keeps, the more it lets
out. A select that punctuates what it never selects stays where it was put.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import add

from sqlglot import exp

from operators.expressions.conjuncts import conjuncts
from operators.expressions.dialect import expression
from operators.select import Select
from xmlstream.optimizer.predicates import conjunction, divided
from xmlstream.optimizer.rewrite import bottom_up, over, readers, top_down
from xmlstream.plan.nodes import AnyOperator, Node


def push_predicates(root: Node) -> Node:
    """The plan with each part of each predicate as low as it can be; one select above another becomes one."""
    uses = readers(root)
    found: dict[Node, _Parted] = {}

    def asks(node: Node, asked: list[exp.Expr]) -> list[list[exp.Expr]]:
        parted = found[node] = _parted(node, asked)
        # A node of two uses is asked nothing.
        return [parts if uses[below] == 1 else [] for below, parts in zip(node.inputs, parted.below, strict=True)]

    def pushed(node: Node, inputs: tuple[Node, ...]) -> Node:
        parted = found[node]
        edges = zip(node.inputs, inputs, parted.below, strict=True)
        inputs = tuple(new if uses[below] == 1 else _selected(new, parts) for below, new, parts in edges)
        return inputs[0] if parted.operator is None else _selected(over(node, inputs, parted.operator), parted.above)

    nothing: list[exp.Expr] = []
    top_down(root, nothing, asks, add)
    return bottom_up(root, pushed)


@dataclass(frozen=True, slots=True)
class _Parted:
    """Where the parts of a predicate that is asked of a node's tuples are asked instead.

    Attributes:
        operator: The node's; None where nothing is left of it.
        below: The parts that go to each input.
        above: The parts that stay.
    """

    operator: AnyOperator | None
    below: Sequence[list[exp.Expr]]
    above: Sequence[exp.Expr] = ()


def _parted(node: Node, asked: list[exp.Expr]) -> _Parted:
    """What is asked of a node's tuples as what is asked of its inputs' tuples, as far as that comes to the same."""
    operator = node.operator
    if isinstance(operator, Select) and not operator.punctuates:
        return _Parted(None, [[*conjuncts(expression(operator.predicate)), *asked]])
    own = conjuncts(expression(operator.residual)) if operator.residual else []
    if not (own or asked):
        return _Parted(operator, [[] for _ in node.inputs])
    schemas = [below.schema for below in node.inputs]
    first, rest = divided(own, operator.residual_terms(*schemas), schemas)
    then, above = divided(asked, operator.predicate_terms(*schemas), schemas, operator.passes_through(*schemas))
    operator = operator.with_residual(conjunction(rest)) if len(rest) < len(own) else operator
    return _Parted(operator, list(map(add, first, then)), above)


def _selected(node: Node, parts: Sequence[exp.Expr]) -> Node:
    """The node's tuples for which all parts are true."""
    predicate = conjunction(parts)
    return node if predicate is None else Node(Select(predicate), (node,), "select")
