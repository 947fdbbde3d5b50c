"""Predicates as parts that must all be true, each in the terms of the node whose tuples it is asked of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from operators.expressions.dialect import StreamSql, named, render
from operators.select import Select
from xmlstream.plan.nodes import Node, Operator, Results, Scan, Static

Terms = Mapping[str, exp.Expr]
"""What attributes of a node are to one of its inputs, by their names in lower case."""


@dataclass(frozen=True, slots=True)
class Parted:
    """Where the parts of a predicate that is asked of a node's tuples are asked instead.

    Attributes:
        operator: The node's; None where nothing is left of it.
        below: The parts that go to each input.
        above: The parts that stay.
    """

    operator: Operator | Scan | Static | Results | None
    below: Sequence[Sequence[exp.Expr]]
    above: Sequence[exp.Expr] = ()


def divided(
    parts: Sequence[exp.Expr], terms: Sequence[Terms], goes: Callable[[exp.Expr], bool]
) -> tuple[list[list[exp.Expr]], list[exp.Expr]]:
    """The parts for each input that has terms for them, and those that no input has, or that do not go."""
    below: list[list[exp.Expr]] = [[] for _ in terms]
    above: list[exp.Expr] = []
    for part in parts:
        found = [in_terms(part, of) if goes(part) else None for of in terms]
        if all(translated is None for translated in found):
            above.append(part)
        for i, translated in enumerate(found):
            below[i] += [] if translated is None else [translated]
    return below, above


def by_position(node: Node) -> list[Terms]:
    """The node's attributes as each input calls them, which has as many."""
    return [
        {own.lower(): named(name) for own, name in zip(node.schema.names, below.schema.names, strict=True)}
        for below in node.inputs
    ]


def looks_at(part: exp.Expr) -> set[str]:
    """The names of the attributes that it looks at, in lower case."""
    return {column.name.lower() for column in part.find_all(exp.Column)}


def in_terms(part: exp.Expr, terms: Terms) -> exp.Expr | None:
    """The part in other terms; None where it looks at something that has none, or at nothing at all."""
    names = looks_at(part)
    if not names or not names <= terms.keys():
        return None

    def translated(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        term = terms[node.name.lower()].copy()
        return term if isinstance(term, exp.Column) or node.parent is None else exp.paren(term, copy=False)

    return part.copy().transform(translated, copy=False)


def selected(node: Node, parts: Sequence[exp.Expr]) -> Node:
    """The node's tuples for which all parts are true."""
    text = conjunction(parts)
    return node if text is None else Node(Select(text), (node,), "select")


def conjunction(parts: Sequence[exp.Expr]) -> str | None:
    """All of the parts as one condition, Spark SQL; those that say the same are one. None for none."""
    once = {render(part.unnest()): part.unnest() for part in parts}
    return render(exp.and_(*once.values(), dialect=StreamSql).unnest()) if once else None
