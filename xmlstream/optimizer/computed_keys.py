"""Computes join keys below all joins, so that an equality is a key however the query is written.

`x JOIN y ON x.k = y.k WHERE CAST(x.a AS BIGINT) = y.b` compares an expression with an attribute, above the join or
in its residual condition, and `… JOIN z ON y.t + 1 = z.t` computes a key between two joins. Here both become attributes
that an input of the joins computes, and the joins one region. An expression that may be an error stays where it is.

Two sides of different numeric types are compared in the one that has all values of the other, as in Spark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import cast

from sqlglot import exp

from xmlstream.operators.behaviour import Combines
from xmlstream.operators.expressions.dialect import attributes_in, cast_to, conjuncts, expression, named, render
from xmlstream.operators.expressions.output_columns import Column
from xmlstream.operators.expressions.throwable import throwable
from xmlstream.operators.expressions.type_rules import loses_nothing, never_null, type_name, value_type
from xmlstream.operators.project import Project
from xmlstream.optimizer.push_down_predicates import conjunction, push_down_predicates
from xmlstream.optimizer.rewrite import bottom_up, in_terms, over, readers, top_down
from xmlstream.optimizer.simplify import collapse_projections
from xmlstream.plan.nodes import AnyOperator, Node, narrowed, unique
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.slices import quoted


def compute_keys(root: Node) -> Node:
    """Computes the keys of inner joins as far down as possible."""
    uses, keys = readers(root), top_down(root, frozenset[str](), _keys_below, frozenset.union)

    def keyed(node: Node, inputs: tuple[Node, ...]) -> Node:
        if not isinstance(node.operator, Combines) or node.operator.equal is None:
            return over(node, inputs)
        below = [_lowered(new, old, keys[old], uses) for new, old in zip(inputs, node.inputs, strict=True)]
        return _with_keys(over(node, below))

    return collapse_projections(push_down_predicates(bottom_up(root, keyed)))


def _keys_below(node: Node, above: frozenset[str]) -> list[frozenset[str]]:
    """The attributes of each input that an inner join compares, here or further up; `above` are those of the output."""
    match node.operator:
        case Combines(equal=[*equal]):
            own = [{name for pair in equal for i, name in pair if i == number} for number in range(len(node.inputs))]
            return [
                above.intersection(below.schema.names) | names for below, names in zip(node.inputs, own, strict=True)
            ]
        case Project(columns):
            return [frozenset(c.copy_of for c in columns if c.copy_of and c.attribute.name in above)]
    return [frozenset() for _ in node.inputs]


def _lowered(node: Node, old: Node, keys: AbstractSet[str], uses: Counter[Node]) -> Node:
    """A projection that computes keys over a join, with these computed in the join's inputs; any other node as it is.

    `old` is the node in the plan whose readers are counted: what has two readers stays one node.
    """
    if not isinstance(node.operator, Project) or uses[old] > 1 or len(old.inputs) != 1:
        return node
    below, columns = node.inputs[0], list(node.operator.columns)
    for i, column in enumerate(columns):
        if column.attribute.name in keys and not isinstance(expression(column.expression), exp.Column):
            made = _computed(below, old.inputs[0], column, uses)
            if made is not None:
                below, name = made
                columns[i] = Column(column.attribute, quoted(name), name)
    return over(node, (below,), Project(tuple(columns)))


def _computed(node: Node, old: Node, column: Column, uses: Counter[Node]) -> tuple[Node, str] | None:
    """A node over inner joins with the column computed in the input that has its attributes, and its name there."""
    operator, tree = node.operator, expression(column.expression)
    used = {name.lower() for name in attributes_in(tree)}
    name = unique(column.attribute.name, node.schema.names)
    if (known := _known(node, tree)) is not None:
        return node, known
    if not used or uses[old] > 1 or len(old.inputs) != len(node.inputs):
        return None
    if isinstance(operator, Project):
        terms = operator.predicate_terms(*node.input_schemas)[0]
        if not used <= terms.keys():
            return None
        found = _computed(
            node.inputs[0], old.inputs[0], replace(column, expression=render(in_terms(tree, terms))), uses
        )
        if found is None:
            return None
        below, source = found
        copy = Column(Attribute(name, column.attribute.domain), quoted(source), source)
        return over(node, (below,), Project((*operator.columns, copy))), name
    if not isinstance(operator, Combines) or operator.equal is None:
        return None
    for i, below in enumerate(node.inputs):
        if used <= {name.lower() for name in below.schema.names} and not throwable(tree, below.schema):
            further = _computed(below, old.inputs[i], column, uses)
            made, name = further or (_with_column(below, name, column.attribute.domain, column.expression), name)
            return over(node, (*node.inputs[:i], made, *node.inputs[i + 1 :])), name
    return None


def _with_column(node: Node, name: str, domain: Domain, text: str) -> Node:
    """The node with one more attribute, which is computed."""
    same = [Column(attribute, quoted(attribute.name), attribute.name) for attribute in node.schema]
    return Node(Project((*same, Column.computed(Attribute(name, domain), text, node.schema))), (node,), "project")


def _known(node: Node, side: exp.Expr) -> str | None:
    """The attribute in which a projection has computed an expression of attributes that it passes under their names."""
    columns = node.operator.columns if isinstance(node.operator, Project) else ()
    passed = {column.attribute.name for column in columns if column.copy_of == column.attribute.name}
    text = render(side) if passed.issuperset(attributes_in(side)) else None
    return next((column.attribute.name for column in columns if column.expression == text), None)


def _with_keys(node: Node) -> Node:
    """An inner join whose residual condition compares attributes of two inputs, where these compute expressions."""
    join = node.operator
    assert isinstance(join, Combines)
    parts = conjuncts(expression(join.residual)) if join.residual else []
    inputs, conditions, names = list(node.inputs), list[exp.Expr](), node.schema.names
    for part in parts:
        compared = []
        for i, side, type_ in _comparable(part, [below.schema for below in node.inputs]):
            name = side.name if isinstance(side, exp.Column) else _known(inputs[i], side)
            if name is None:
                name = unique("join_key", [name for below in inputs for name in below.schema.names])
                domain = Domain(type_, nullable=not never_null(side, node.inputs[i].schema))
                inputs[i] = _with_column(inputs[i], name, domain, render(side))
            compared.append(named(name))
        conditions.append(exp.EQ(this=compared[0], expression=compared[1]) if compared else part)
    whole = conjunction(conditions)
    if whole == join.residual:
        return node
    join = join.with_conditions((), whole, *(below.schema for below in inputs))
    return narrowed(Node(cast("AnyOperator", join), tuple(inputs), node.label), names)


def _comparable(part: exp.Expr, schemas: Sequence[Schema]) -> list[tuple[int, exp.Expr, str]]:
    """The sides of an equality of two inputs: the input of each, the side in their common type, and that type.

    Empty for any other condition, and for one that may be an error.
    """
    part = part.unnest()
    if not isinstance(part, exp.EQ):
        return []
    found = []
    for side in (part.this.unnest(), part.expression.unnest()):
        used = {name.lower() for name in attributes_in(side)}
        of = [i for i, schema in enumerate(schemas) if used and used <= {name.lower() for name in schema.names}]
        type_ = value_type(side, schemas[of[0]]) if of else None
        if type_ is None or throwable(side, schemas[of[0]]):
            return []
        found.append((of[0], side, type_))
    (i, _, one), (j, _, other) = found
    wider = other if loses_nothing(one, other) else one if loses_nothing(other, one) else None
    if i == j or wider is None:
        return []
    name = type_name(wider)
    return [(of, side if type_ == wider else cast_to(side, name), name) for of, side, type_ in found]
