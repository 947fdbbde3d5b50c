"""Joins made of conditions: which are equalities between the sides, and what else a pair must satisfy.

Attributes of the same name are told apart by renaming, below the join; an equality of expressions is one of attributes
that are computed below it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from operators.expressions.conjuncts import conjoined, conjuncts
from operators.expressions.dialect import cast_to, offset, render
from operators.expressions.references import attributes_in, named
from operators.join import Join
from operators.joins.join_sides import JoinKind
from operators.joins.punctuation_graph import Equality
from operators.semi_join import SemiJoin
from punct_ns.schema import Schema
from xmlstream.plan.nodes import Node
from xmlstream.sql.analysis import Analyst
from xmlstream.sql.plan_builder import Item, copied, project, unique
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.relation import Relation

How = JoinKind | Literal["semi", "anti"]

NO_EQUALITY = (
    "write an equality between the two sides, such as a.id = b.id; to pair all with all, give both a constant:"
    " (SELECT *, 1 AS k FROM a) AS a JOIN (SELECT *, 1 AS k FROM b) AS b ON a.k = b.k"
)


@dataclass(frozen=True, slots=True)
class Condition:
    """What a pair of tuples must satisfy: sides that are equal, and all else; over attributes of both inputs."""

    equal: tuple[tuple[exp.Expr, exp.Expr], ...]
    residual: tuple[exp.Expr, ...] = ()


def with_unique_names(relation: Relation, taken: Collection[str], analyst: Analyst) -> Relation:
    """The relation with names for its attributes that are not taken; its fields are called as before."""
    names = list(relation.node.schema.names)
    fresh: list[str] = []
    for name in names:
        fresh.append(unique(name, [*taken, *fresh, *(other for other in names if other != name)]))
    if fresh == names:
        return relation
    made = project(relation.node, [Item(new, named(old)) for old, new in zip(names, fresh, strict=True)], analyst)
    called = dict(zip(names, made.node.schema.names, strict=True))
    return Relation(made.node, tuple(replace(f, attribute=called[f.attribute]) for f in relation.fields))


def split_condition(conditions: Sequence[exp.Expr], left: Collection[str], right: Collection[str]) -> Condition:
    """The conditions as equalities between the two sides, left first, and the rest."""
    equal: list[tuple[exp.Expr, exp.Expr]] = []
    rest: list[exp.Expr] = []
    for condition in conditions:
        sides = (condition.this, condition.expression) if isinstance(condition, exp.EQ) else None
        used = [{*attributes_in(side)} for side in sides or ()]
        if sides and all(used) and used[0] <= {*left} and used[1] <= {*right}:
            equal.append(sides)
        elif sides and all(used) and used[0] <= {*right} and used[1] <= {*left}:
            equal.append((sides[1], sides[0]))
        else:
            rest.append(condition)
    return Condition(tuple(equal), tuple(rest))


def equalities_between(condition: exp.Expr, inputs: Sequence[Schema]) -> tuple[tuple[Equality, ...], str | None]:
    """The condition as equalities of attributes of two inputs, and the rest of it, Spark SQL; None without one."""
    places = {name: i for i, schema in enumerate(inputs) for name in schema.names}
    equal: list[Equality] = []
    rest: list[exp.Expr] = []
    for part in conjuncts(condition):
        sides = [part.this.unnest(), part.expression.unnest()] if isinstance(part, exp.EQ) else []
        names = [side.name for side in sides if isinstance(side, exp.Column)]
        if len(names) == 2 and places[names[0]] != places[names[1]]:
            equal.append(((places[names[0]], names[0]), (places[names[1]], names[1])))
        else:
            rest.append(part)
    whole = conjoined(rest)
    return tuple(equal), None if whole is None else render(whole)


def joined(
    left: Relation, right: Relation, how: How, condition: Condition, analyst: Analyst, text: QueryText, at: int | None
) -> Relation:
    """The join of two relations whose attributes have different names.

    Raises:
        QueryError: There is no equality between the sides, or its sides are of different types that no cast unites.
    """
    if not condition.equal:
        raise text.error("a join without an equality between its sides", at, NO_EQUALITY)
    nodes, keys, again = keyed((left.node, right.node), condition.equal, analyst, text)
    whole = conjoined([*condition.residual, *again])
    residual = None if whole is None else render(whole)
    if residual is not None:
        analyst.require_condition(Join("inner", *keys).schema(*(n.schema for n in nodes)), residual)
    on, schemas = keys, [node.schema for node in nodes]
    if how == "semi" or how == "anti":  # noqa: PLR1714  so that mypy knows what is left
        semi = SemiJoin(*on, how == "anti", residual).bounded(*schemas)
        return Relation(Node(semi, (nodes[0], nodes[1]), f"{how}_join"), left.fields)
    join = Join(how, *on, residual).bounded(*schemas)
    return Relation(Node(join, (nodes[0], nodes[1]), "join"), (*left.fields, *right.fields))


def keyed(
    nodes: tuple[Node, Node], equal: Sequence[tuple[exp.Expr, exp.Expr]], analyst: Analyst, text: QueryText
) -> tuple[tuple[Node, Node], tuple[tuple[str, ...], tuple[str, ...]], list[exp.Expr]]:
    """The nodes with attributes that are the sides of equalities, of one type; their names; what of one stands twice.

    Raises:
        QueryError: The sides of one are of different types that no cast unites.
    """
    again: list[exp.Expr] = []
    keys: tuple[list[str], list[str]] = ([], [])
    for sides in equal:
        type_ = _common(nodes, sides, analyst, text)
        taken = [name for node in nodes for name in node.schema.names]
        keyed_ = [unique("join_key", taken), unique("other_join_key", taken)]
        left, right = (_key(nodes[i], sides[i], type_, keyed_[i], analyst) for i in range(2))
        if left[1] in keys[0] or right[1] in keys[1]:
            again.append(exp.EQ(this=sides[0].copy(), expression=sides[1].copy()))
            continue
        nodes = left[0], right[0]
        for side, name in zip(keys, (left[1], right[1]), strict=True):
            side.append(name)
    return nodes, (tuple(keys[0]), tuple(keys[1])), again


def _common(nodes: Sequence[Node], sides: Sequence[exp.Expr], analyst: Analyst, text: QueryText) -> str:
    """The type in which both sides of an equality are compared."""
    types = [_type(node, side, analyst) for node, side in zip(nodes, sides, strict=True)]
    if (common := analyst.common(*types)) is not None:
        return common
    what = f"an equality of {types[0]} with {types[1]}"
    raise text.error(what, offset(sides[0]), "cast one side, so that it is clear how they are compared")


def _type(node: Node, side: exp.Expr, analyst: Analyst) -> str:
    copy = copied(side, node.schema)
    return copy[1].type if copy is not None else analyst.columns(node.schema, [render(side)])[0][1].type


def _key(node: Node, side: exp.Expr, type_: str, name: str, analyst: Analyst) -> tuple[Node, str]:
    """The node with an attribute that is this side of an equality, computed under a name if need be, and its name."""
    if _type(node, side, analyst) != type_:
        side = cast_to(side, type_)
    elif isinstance(side.unnest(), exp.Column):
        return node, node.schema.attribute(side.unnest().name).name
    items = [Item(other, named(other)) for other in node.schema.names]
    return project(node, [*items, Item(name, side)], analyst).node, name
