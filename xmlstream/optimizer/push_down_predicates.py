"""Pushes predicates down: tuples that a select rejects are not joined, merged or kept before.

A predicate is split at its ANDs. A part is pushed below an operator if it selects the same tuples there. An operator
gives the terms of its attributes in its inputs (`predicate_terms`), and each part is rewritten in these terms. A join
also pushes down the parts of its own residual condition that concern one input. What cannot go below an inner join
belongs into it, as in SQL ON and WHERE mean the same: an equality of two inputs as a pair of join attributes, all else
as part of the residual condition. So the state of a join does not depend on where its conditions are written.

A part that can raise an error must be computed for the same tuples as before. So it is pushed only through selects, and
through operators that pass all tuples, if it uses only attributes that they pass. Nothing is pushed below `punctuate`,
which checks the stream as it arrives, or below the grammar check of a source. Nothing is pushed below a node with two
readers, which needs its tuples for both.

No punctuation is lost: a select passes all of them, and an operator that keeps fewer tuples emits more punctuations. A
select that punctuates the tuples that it rejects stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from operator import add, or_
from typing import cast

from sqlglot import exp

from xmlstream.operators.behaviour import Combines, HasResidual, Terms
from xmlstream.operators.expressions.dialect import attributes_in, conjoined, conjuncts, expression, render
from xmlstream.operators.expressions.throwable import throwable
from xmlstream.operators.expressions.type_rules import equated
from xmlstream.operators.select import Select
from xmlstream.optimizer.rewrite import bottom_up, in_terms, readers, rebuilt, top_down
from xmlstream.plan.nodes import AnyOperator, Node
from xmlstream.punct_ns.schema import Schema


def _divided(
    parts: Sequence[exp.Expr],
    terms: Sequence[Terms],
    schemas: Sequence[Schema],
    passed: AbstractSet[str] = frozenset(),
) -> tuple[list[list[exp.Expr]], list[exp.Expr]]:
    """Divides the parts of a predicate into those for each input, and those that stay.

    A part that can raise an error stays, unless it uses only attributes that are `passed`, and no other part stays that
    might protect it from the error.
    """
    below: list[list[exp.Expr]] = [[] for _ in terms]
    above: list[exp.Expr] = []
    found = [
        [in_terms(part, of) if (used := _used_by(part)) and used <= of.keys() else None for of in terms]
        for part in parts
    ]
    sure = [_is_sure(translated, schemas) for translated in found]
    passing = [bool(used := _used_by(part)) and used <= passed for part in parts]
    all_go = all(map(or_, sure, passing))
    for part, translated, is_sure in zip(parts, found, sure, strict=True):
        if not (is_sure or all_go):
            above.append(part)
            continue
        for i, one in enumerate(translated):
            below[i] += [] if one is None else [one]
    return below, above


def _is_sure(translated: Sequence[exp.Expr | None], schemas: Sequence[Schema]) -> bool:
    """Whether a part has terms in an input, and never raises an error there."""
    there = [not throwable(one, schema) for one, schema in zip(translated, schemas, strict=True) if one is not None]
    return bool(there) and all(there)


def _used_by(part: exp.Expr) -> set[str]:
    """The names of the attributes that the part uses, in lower case."""
    return {name.lower() for name in attributes_in(part)}


def conjunction(parts: Iterable[exp.Expr]) -> str | None:
    """The conjunction of the parts as Spark SQL, without duplicates; None for no parts."""
    once = {render(part.unnest()): part.unnest() for part in parts}
    whole = conjoined(once.values())
    return None if whole is None else render(whole)


def push_down_predicates(root: Node) -> Node:
    """Pushes each part of each predicate down as far as possible; adjacent selects become one."""
    uses = readers(root)
    found: dict[Node, _Parted] = {}

    def of_inputs(node: Node, pushed_parts: list[exp.Expr]) -> list[list[exp.Expr]]:
        parted = found[node] = _parted(node, pushed_parts)
        # Nothing is pushed into a node with two readers.
        return [parts if uses[below] == 1 else [] for below, parts in zip(node.inputs, parted.below, strict=True)]

    def pushed(node: Node, inputs: tuple[Node, ...]) -> Node:
        parted = found[node]
        edges = zip(node.inputs, inputs, parted.below, strict=True)
        inputs = tuple(new if uses[below] == 1 else selected(new, parts) for below, new, parts in edges)
        return inputs[0] if parted.operator is None else selected(rebuilt(node, inputs, parted.operator), parted.above)

    nothing: list[exp.Expr] = []
    top_down(root, nothing, of_inputs, add)
    return bottom_up(root, pushed)


@dataclass(frozen=True, slots=True)
class _Parted:
    """The parts of a predicate above a node, divided.

    Attributes:
        operator: The new operator of the node; None for a select, all of whose predicate is pushed down.
        below: The parts that are pushed down to each input.
        above: The parts that stay above the node.
    """

    operator: AnyOperator | None
    below: Sequence[list[exp.Expr]]
    above: Sequence[exp.Expr] = ()


def _parted(node: Node, from_above: list[exp.Expr]) -> _Parted:
    """Divides the predicate above a node, and the node's own, into parts for its inputs and parts that stay."""
    operator = node.operator
    if isinstance(operator, Select) and not operator.punctuates:
        return _Parted(None, [[*conjuncts(expression(operator.predicate)), *from_above]])
    schemas = node.input_schemas
    if isinstance(operator, Combines) and operator.equal is not None:
        return _into_join(operator, from_above, schemas)
    first: Sequence[list[exp.Expr]] = [[] for _ in schemas]
    if isinstance(operator, HasResidual) and operator.residual:
        own = conjuncts(expression(operator.residual))
        first, rest = _divided(own, operator.residual_terms(*schemas), schemas)
        operator = operator.with_residual(conjunction(rest)) if len(rest) < len(own) else operator
    if not from_above:
        return _Parted(operator, first)
    then, above = _divided(from_above, operator.predicate_terms(*schemas), schemas, operator.passes_through(*schemas))
    return _Parted(operator, list(map(add, first, then)), above)


def _into_join(join: Combines, from_above: list[exp.Expr], schemas: Sequence[Schema]) -> _Parted:
    """Divides the predicate above an inner join, and its residual condition; the join takes what stays."""
    parts = [*(conjuncts(expression(join.residual)) if join.residual else ()), *from_above]
    both = Schema(tuple(attribute for schema in schemas for attribute in schema))
    place = {name: i for i, schema in enumerate(schemas) for name in schema.names}
    rest: list[exp.Expr] = []
    for part in parts:
        pair = equated(part, both)
        one, other = pair or ("", "")
        terms = [of for of in join.residual_terms(*schemas) if {one.lower(), other.lower()} <= of.keys()]
        if pair and not terms:
            join = join.with_conditions([((place[one], one), (place[other], other))], None, *schemas)
        elif not any(of[one.lower()] == of[other.lower()] for of in terms):  # else the join compares them already
            rest.append(part)
    below, above = _divided(rest, join.residual_terms(*schemas), schemas)
    return _Parted(cast("AnyOperator", join.with_conditions((), conjunction(above), *schemas)), below)


def selected(node: Node, parts: Sequence[exp.Expr]) -> Node:
    """A select of the conjunction over the node; the node itself for no parts."""
    predicate = conjunction(parts)
    return node if predicate is None else Node(Select(predicate).equated(node.schema), (node,), "select")
