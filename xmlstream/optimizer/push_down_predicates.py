"""Pushes predicates down: tuples that a select will not let through are not joined, merged or kept.

A predicate is split at its ANDs. A part goes below an operator if it selects there what it would select above. An
operator gives the terms of its attributes in its inputs (`predicate_terms`), and each part is rewritten in these terms;
a join also gives the parts of its own residual condition that concern one input. A select goes down whole.

A part that can raise an error goes no lower than where it is computed for the same tuples as before: through selects,
and through operators that hand on all tuples, as far as it uses attributes that pass through. Nothing goes below
`punctuate`, which judges the stream as it arrives, and nothing below a source's grammar check, which belongs to the
source. A node that two others use keeps its tuples for both, and nothing goes below it.

No punctuation is lost: a select hands on all of them, and the fewer tuples an operator keeps, the more punctuations it
lets out. A select that punctuates what it never selects stays where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from operator import add

from sqlglot import exp

from operators.behaviour import HasResidual, Terms
from operators.expressions.dialect import attributes_in, conjoined, conjuncts, expression, render
from operators.expressions.throwable import throwable
from operators.select import Select
from punct_ns.schema import Schema
from xmlstream.optimizer.rewrite import bottom_up, over, readers, top_down
from xmlstream.plan.nodes import AnyOperator, Node


def divided(
    parts: Sequence[exp.Expr],
    terms: Sequence[Terms],
    schemas: Sequence[Schema],
    passed: AbstractSet[str] = frozenset(),
) -> tuple[list[list[exp.Expr]], list[exp.Expr]]:
    """The parts for each input that has terms for them, and those that stay.

    What may be an error stays, unless it looks at nothing but what is `passed` through and nothing else stays, on which
    it may rely.
    """
    below: list[list[exp.Expr]] = [[] for _ in terms]
    above: list[exp.Expr] = []
    found = [[in_terms(part, of) for of in terms] for part in parts]
    sure = [_is_sure(translated, schemas) for translated in found]
    all_go = all(is_sure or _is_within(part, passed) for part, is_sure in zip(parts, sure, strict=True))
    for part, translated, is_sure in zip(parts, found, sure, strict=True):
        if not (is_sure or all_go):
            above.append(part)
            continue
        for i, one in enumerate(translated):
            below[i] += [] if one is None else [one]
    return below, above


def _is_sure(translated: Sequence[exp.Expr | None], schemas: Sequence[Schema]) -> bool:
    """Whether an input can be asked, and it is never an error."""
    there = [not throwable(one, schema) for one, schema in zip(translated, schemas, strict=True) if one is not None]
    return bool(there) and all(there)


def _is_within(part: exp.Expr, names: AbstractSet[str]) -> bool:
    """Whether the part looks at attributes, and at none but these."""
    return bool(looked_at := _looks_at(part)) and looked_at <= names


def in_terms(part: exp.Expr, terms: Terms) -> exp.Expr | None:
    """The part in other terms; None where it looks at something that has none, or at nothing at all."""
    names = _looks_at(part)
    if not names or not names <= terms.keys():
        return None

    def translated(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        term = expression(terms[node.name.lower()])
        return term if isinstance(term, exp.Column) or node.parent is None else exp.paren(term, copy=False)

    return part.copy().transform(translated, copy=False)


def _looks_at(part: exp.Expr) -> set[str]:
    """The names of the attributes that it looks at, in lower case."""
    return {name.lower() for name in attributes_in(part)}


def conjunction(parts: Sequence[exp.Expr]) -> str | None:
    """All of the parts as one condition, Spark SQL; those that say the same are one. None for none."""
    once = {render(part.unnest()): part.unnest() for part in parts}
    whole = conjoined(once.values())
    return None if whole is None else render(whole)


def push_down_predicates(root: Node) -> Node:
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
    schemas = [below.schema for below in node.inputs]
    first: Sequence[list[exp.Expr]] = [[] for _ in schemas]
    if isinstance(operator, HasResidual) and operator.residual:
        own = conjuncts(expression(operator.residual))
        first, rest = divided(own, operator.residual_terms(*schemas), schemas)
        operator = operator.with_residual(conjunction(rest)) if len(rest) < len(own) else operator
    if not asked:
        return _Parted(operator, first)
    then, above = divided(asked, operator.predicate_terms(*schemas), schemas, operator.passes_through(*schemas))
    return _Parted(operator, list(map(add, first, then)), above)


def _selected(node: Node, parts: Sequence[exp.Expr]) -> Node:
    """The node's tuples for which all parts are true."""
    predicate = conjunction(parts)
    return node if predicate is None else Node(Select(predicate), (node,), "select")
