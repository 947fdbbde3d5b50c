"""Pushes predicates and keys of joins down, so that no operator keeps what a select rejects, or joins without a key.

**Predicates** are split at their ANDs. A part is pushed below an operator if it selects the same tuples there. An
operator gives the terms of its attributes in its inputs (`predicate_terms`), and each part is rewritten in these terms.
A join also pushes down the parts of its own residual condition that concern one input. What cannot go below an inner
join belongs into it, as in SQL ON and WHERE mean the same: an equality of two inputs as a pair of join attributes, all
else as part of the residual condition. So the state of a join does not depend on where its conditions are written.

A part that can raise an error must be computed for the same tuples as before. So it is pushed only through selects, and
through operators that pass all tuples, if it uses only attributes that they pass. Nothing is pushed below `punctuate`,
which checks the stream as it arrives, or below the grammar check of a source. Nothing is pushed below a node with two
readers, which needs its tuples for both.

No punctuation is lost: a select passes all of them, and an operator that keeps fewer tuples emits more punctuations. A
select that punctuates the tuples that it rejects stays where it is.

**Keys** are computed below all joins, so that an equality is a key however the query is written.
`x JOIN y ON x.k = y.k WHERE CAST(x.a AS BIGINT) = y.b` compares an expression with an attribute, above the join or
in its residual condition, and `… JOIN z ON y.t + 1 = z.t` computes a key between two joins. Here both become attributes
that an input of the joins computes, and the joins one region. An expression that may be an error stays where it is.

Two sides of different numeric types are compared in the one that has all values of the other, as in Spark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from operator import add, or_
from typing import cast

from sqlglot import exp

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.behaviour import Combines, HasResidual, Terms
from xmlstream.operators.expressions.dialect import (
    attributes_in,
    cast_to,
    conjoined,
    conjuncts,
    expression,
    in_terms,
    named,
    render,
)
from xmlstream.operators.expressions.equalities import equated, plain_conjuncts, widened
from xmlstream.operators.expressions.output_columns import Column
from xmlstream.operators.expressions.throwable import throwable
from xmlstream.operators.expressions.type_rules import lossless_common_type, never_null, value_type
from xmlstream.operators.project import Project
from xmlstream.operators.select import Select
from xmlstream.optimizer.rewrite import bottom_up, readers, rebuilt, top_down
from xmlstream.optimizer.simplify import collapse_projections
from xmlstream.plan.nodes import AnyOperator, Names, Node, narrowed, unique
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.slices import quoted


def _divided(
    parts: Sequence[exp.Expr], terms: Sequence[Terms], schemas: Sequence[Schema], passed: AbstractSet[str] = frozenset()
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
        return _Parted(None, [plain_conjuncts([expression(operator.predicate), *from_above], node.schema)])
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
    both = Schema(tuple(attribute for schema in schemas for attribute in schema))
    parts = plain_conjuncts([*([expression(join.residual)] if join.residual else ()), *from_above], both)
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


def compute_keys(root: Node) -> Node:
    """Computes the keys of inner joins as far down as possible."""
    uses, keys = readers(root), compared_above(root)

    def keyed(node: Node, inputs: tuple[Node, ...]) -> Node:
        if not isinstance(node.operator, Combines) or node.operator.equal is None:
            return rebuilt(node, inputs)
        below = [_lowered(new, old, keys[old], uses) for new, old in zip(inputs, node.inputs, strict=True)]
        return _with_keys(rebuilt(node, below))

    return collapse_projections(push_down_predicates(bottom_up(root, keyed)))


def compared_above(root: Node) -> dict[Node, frozenset[str]]:
    """The attributes of each node that inner joins above it compare."""
    return top_down(root, frozenset[str](), _keys_below, frozenset.union)


def bound_joins(root: Node) -> Node:
    """Has each inner join check what its inputs select, where that bounds which tuples of an input another awaits.

    In `b.k = a.k AND b.k >= a.t AND b.k <= a.t + 2` the first bound is about tuples of `a` alone, since the keys are
    equal, and is pushed down to them. Beside the second it bounds which of them a tuple of `b` waits for.
    """
    uses = readers(root)

    def bounded(node: Node, inputs: tuple[Node, ...]) -> Node:
        new = rebuilt(node, inputs)
        join = new.operator
        if not isinstance(join, Combines) or join.equal is None:
            return new
        keys = {name.lower() for pair in join.equal for _, name in pair}
        own = conjuncts(expression(join.residual)) if join.residual else []
        taken, below, more = [name for each in inputs for name in each.schema.names], list(inputs), list[exp.Expr]()
        for i, (old, each) in enumerate(zip(node.inputs, inputs, strict=True)):
            exposed = _exposing(each, taken) if uses[old] == 1 else each
            if found := [part for part in selected_within(exposed) if is_bound(part, keys) and part not in own]:
                below[i] = exposed
                more += found
                taken += exposed.schema.names
        if not more:
            return new
        join = join.with_conditions((), conjunction([*own, *more]), *(each.schema for each in below))
        return narrowed(rebuilt(new, below, cast("AnyOperator", join)), new.schema.names)

    return bottom_up(root, bounded)


def selected_within(node: Node) -> list[exp.Expr]:
    """The conditions that selects below a node check, over its attributes, as far as it has these."""
    operator = node.operator
    if isinstance(operator, Select):
        return [*conjuncts(expression(operator.predicate)), *selected_within(node.inputs[0])]
    if not isinstance(operator, Project):
        return []
    terms = _passed(node)
    return [in_terms(part, terms) for part in selected_within(node.inputs[0]) if _used_by(part) <= terms.keys()]


def _passed(project: Node) -> dict[str, str]:
    """The names of the attributes that a projection copies, as Spark SQL, by those below in lower case."""
    assert isinstance(project.operator, Project)
    (schema,) = project.input_schemas
    copies = [(c.attribute, schema.attribute(c.copy_of)) for c in project.operator.columns if c.copy_of is not None]
    return {of.name.lower(): quoted(attribute.name) for attribute, of in copies if attribute.domain == of.domain}


def _exposing(node: Node, taken: Sequence[str]) -> Node:
    """The node with the attributes that selects below it use, under names that are not taken."""
    operator = node.operator
    if isinstance(operator, Select):
        return rebuilt(node, [_exposing(node.inputs[0], taken)])
    if not isinstance(operator, Project):
        return node
    below, passed = _exposing(node.inputs[0], taken), _passed(node)
    columns = list(operator.columns)
    known = Names([*taken, *(column.attribute.name for column in columns)])
    for name in dict.fromkeys(name for part in selected_within(below) for name in attributes_in(part)):
        if name.lower() not in passed:
            of = below.schema.attribute(name)
            columns.append(Column(Attribute(known.take(of.name), of.domain), quoted(of.name), of.name))
    if len(columns) > len(operator.columns):  # in the order of the input, as if the query read it whole
        columns.sort(key=lambda c: len(below.schema) if c.copy_of is None else below.schema.index(c.copy_of))
    return rebuilt(node, [below], Project(tuple(columns)))


def is_bound(part: exp.Expr, keys: AbstractSet[str]) -> bool:
    """Whether a condition compares one of the keys, in lower case, with another attribute."""
    used = _used_by(part)
    return isinstance(part, exp.LT | exp.LTE | exp.GT | exp.GTE | exp.Between) and bool(used & keys and used - keys)


def _keys_below(node: Node, above: frozenset[str]) -> list[frozenset[str]]:
    """The attributes of each input that an inner join compares, here or further up; `above` are those of the output."""
    match node.operator:
        case Combines(equal=[*equal]):
            own = [{name for pair in equal for i, name in pair if i == number} for number in range(len(node.inputs))]
            return [
                above.intersection(below.schema.names) | names for below, names in zip(node.inputs, own, strict=True)
            ]
        case Select():
            return [above]
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
    return rebuilt(node, (below,), Project(tuple(columns)))


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
        return rebuilt(node, (below,), Project((*operator.columns, copy))), name
    if not isinstance(operator, Combines) or operator.equal is None:
        return None
    for i, below in enumerate(node.inputs):
        if used <= {name.lower() for name in below.schema.names} and not throwable(tree, below.schema):
            further = _computed(below, old.inputs[i], column, uses)
            made, name = further or (with_computed(below, name, column.attribute.domain, column.expression), name)
            return rebuilt(node, (*node.inputs[:i], made, *node.inputs[i + 1 :])), name
    return None


def with_computed(node: Node, name: str, domain: Domain, text: str) -> Node:
    """The node with one more attribute, which is computed."""
    same = [Column(attribute, quoted(attribute.name), attribute.name) for attribute in node.schema]
    column = Column.computed(Attribute(name, domain), text, node.schema)
    if (at := widened(expression(text), node.schema)) is not None:
        column = Column(column.attribute, text, node.schema[at].name)
    return Node(Project((*same, column)), (node,), "project")


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
                inputs[i] = with_computed(inputs[i], name, domain, render(side))
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
    wider = lossless_common_type(one, other)
    if i == j or wider is None:
        return []
    name = wider.name
    return [(of, side if type_ == wider else cast_to(side, name), name) for of, side, type_ in found]
