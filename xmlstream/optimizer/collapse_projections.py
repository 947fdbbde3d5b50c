"""Collapses projections: a projection over another becomes one, by substitution of the lower expressions."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from xmlstream.operators.expressions.dialect import expression, render
from xmlstream.operators.expressions.output_columns import Column
from xmlstream.operators.project import Project
from xmlstream.optimizer.rewrite import bottom_up, in_terms, rebuilt
from xmlstream.plan.nodes import Node
from xmlstream.punct_ns.schema import Schema


def collapse_projections(root: Node) -> Node:
    """Collapses adjacent projections, unless an expression would be computed twice."""

    def collapsed(node: Node, inputs: tuple[Node, ...]) -> Node:
        match rebuilt(node, inputs):
            case Node(Project(columns), (Node(Project(below), inputs, _),), label) if _substitutable(columns, below):
                return Node(Project(_substituted(columns, below, inputs[0].schema)), inputs, label)
            case same:
                return same

    return bottom_up(root, collapsed)


def _substitutable(columns: Iterable[Column], below: Iterable[Column]) -> bool:
    """Whether each attribute that the lower projection computes is used at most once."""
    computed = {column.attribute.name for column in below if column.copy_of is None}
    trees = [expression(column.expression) for column in columns]
    used = [column.name for tree in trees for column in tree.find_all(exp.Column) if column.name in computed]
    return len(used) == len(set(used))


def _substituted(columns: Iterable[Column], below: Iterable[Column], schema: Schema) -> tuple[Column, ...]:
    sources = {column.attribute.name: column for column in below}
    terms = {name.lower(): column.expression for name, column in sources.items()}
    result = []
    for column in columns:
        copy_of = sources[column.copy_of].copy_of if column.copy_of else None
        attribute, text = column.attribute, render(in_terms(expression(column.expression), terms))
        result.append(Column(attribute, text, copy_of) if copy_of else Column.computed(attribute, text, schema))
    return tuple(result)
