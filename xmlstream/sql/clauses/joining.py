"""Joins as nodes of a plan: inner, outer, semi and anti joins, ASOF JOIN, and hints how a join purges its state.

A condition is split into equalities between the sides, and the rest, which each pair must satisfy. Attributes with the
same name are renamed below the join. An equality of expressions becomes an equality of attributes, computed below it.

ASOF JOIN (in Spark since 4.3) joins each tuple with the last tuple of the other side that MATCH_CONDITION allows.

Without an equality, but with some in each alternative of OR, inner joins are the union of a join for each alternative,
without the pairs of those before it; semi and anti joins go through the alternatives one after the other.

    SELECT /*+ LAZY_PURGE(10) */ … FROM a JOIN b ON … JOIN c ON …

`LAZY_PURGE(n)` searches in every n-th slice for tuples to purge, `LAZY_PURGE` in every tenth slice, `EAGER_PURGE` in
each. A hint needs inner joins of three streams or more: they run as one join of all inputs, because only that join can
purge lazily. The hint stands where Spark has hints; Spark ignores hints that it does not know.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from sqlglot import exp

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.asof_join import AsofJoin, AsofKind
from xmlstream.operators.expressions.bounds import bounds_between
from xmlstream.operators.expressions.dialect import (
    as_read,
    attributes_in,
    cast_to,
    conjoined,
    expression,
    named,
    render,
)
from xmlstream.operators.expressions.equalities import plain_conjuncts
from xmlstream.operators.join import Join
from xmlstream.operators.joins.join_sides import JoinKind
from xmlstream.operators.joins.punctuation_graph import Equality
from xmlstream.operators.semi_join import SemiJoin
from xmlstream.plan.nodes import Names, Node, narrowed
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import is_compact
from xmlstream.sql.clauses.plan_builder import combined_relation, copied, select_items
from xmlstream.sql.clauses.relation import Field, Item, Relation
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.refused.refusals import purge_strategy_of
from xmlstream.sql.spark.analysis import Analyst

How = JoinKind | Literal["semi", "anti"]

_NO_EQUALITY = (
    "write an equality between the two sides, such as a.id = b.id; to pair all tuples of inputs that end, give both"
    " sides a constant: (SELECT *, 1 AS k FROM a) AS a JOIN (SELECT *, 1 AS k FROM b) AS b ON a.k = b.k"
)
_NULL_SAFE = (
    "of nulls, <=> is no equality: declare the columns NOT NULL, or write a value in place of null that does not occur,"
    " as in coalesce(a.s, '~') = coalesce(b.s, '~')"
)
_OUTER = (
    "write the pairs, and what has none, as two queries: SELECT … JOIN … ON {on} UNION ALL"
    " SELECT …, NULL … WHERE NOT EXISTS (SELECT 1 … WHERE {on})"
)


@dataclass(frozen=True, slots=True)
class JoinCondition:
    """Join condition over attributes of both inputs: equalities between the sides, and the residual conditions."""

    equal: tuple[tuple[exp.Expr, exp.Expr], ...]
    residual: tuple[exp.Expr, ...] = ()


def with_unique_names(relation: Relation, taken: Iterable[str] | Names, analyst: Analyst) -> Relation:
    """The relation with attributes renamed so that none is in `taken`; its fields keep their names.

    Takes the names, if `taken` are `Names`.
    """
    names = list(relation.node.schema.names)
    known, own = taken if isinstance(taken, Names) else Names(taken), {name.lower() for name in names}
    fresh = [known.take(name, own) for name in names]
    if fresh == names:
        return relation
    made = select_items(relation.node, [Item(new, named(old)) for old, new in zip(names, fresh, strict=True)], analyst)
    called = dict(zip(names, made.node.schema.names, strict=True))
    return Relation(made.node, tuple(replace(f, attribute=called[f.attribute]) for f in relation.fields))


def split_condition(conditions: Sequence[exp.Expr], left: Schema, right: Schema) -> JoinCondition:
    """The conditions as equalities between the two sides, left first, and the rest."""
    equal: list[tuple[exp.Expr, exp.Expr]] = []
    rest: list[exp.Expr] = []
    for condition in plain_conjuncts(conditions, Schema((*left, *right))):
        sides = (condition.this, condition.expression) if isinstance(condition, exp.EQ) else None
        used = [{*attributes_in(side)} for side in sides or ()]
        if sides and all(used) and used[0] <= {*left.names} and used[1] <= {*right.names}:
            equal.append(sides)
        elif sides and all(used) and used[0] <= {*right.names} and used[1] <= {*left.names}:
            equal.append((sides[1], sides[0]))
        else:
            rest.append(condition)
    return JoinCondition(tuple(equal), tuple(rest))


def no_equality(kind: str, at: exp.Expr, text: QueryText, hint: str = _NO_EQUALITY) -> QueryError:
    """The error for a join of this kind, none of whose conditions is an equality between its sides."""
    return text.error(f"{kind} without an equality between its sides is not supported", at, hint)


def equalities_between(condition: exp.Expr, inputs: Sequence[Schema]) -> tuple[tuple[Equality, ...], str | None]:
    """The condition as equalities of attributes of two inputs, and the rest of it, Spark SQL; None without one."""
    places = {name: i for i, schema in enumerate(inputs) for name in schema.names}
    equal: list[Equality] = []
    rest: list[exp.Expr] = []
    for part in plain_conjuncts([condition], Schema(tuple(each for schema in inputs for each in schema))):
        sides = [part.this.unnest(), part.expression.unnest()] if isinstance(part, exp.EQ) else []
        names = [side.name for side in sides if isinstance(side, exp.Column)]
        if len(names) == 2 and places[names[0]] != places[names[1]]:
            equal.append(((places[names[0]], names[0]), (places[names[1]], names[1])))
        else:
            rest.append(part)
    whole = conjoined(rest)
    return tuple(equal), None if whole is None else render(whole)


def joined(
    left: Relation, right: Relation, how: How, condition: JoinCondition, analyst: Analyst, text: QueryText, at: exp.Expr
) -> Relation:
    """The join of two relations whose attributes have different names.

    Raises:
        QueryError: There is no equality between the sides, or the types of its sides have no common type.
    """
    if not condition.equal:
        found = alternatives(condition.residual, left.node.schema, right.node.schema)
        if found is not None and how in ("inner", "semi", "anti"):
            return _joined_either(left, right, how, found, analyst, text, at)
        is_left = found is not None and how == "left" and at.args.get("on") is not None
        if any(isinstance(part.unnest(), exp.NullSafeEQ) for part in condition.residual):
            raise no_equality("a join", at, text, _NULL_SAFE)
        raise no_equality("a join", at, text, _OUTER.format(on=as_read(at.args["on"])) if is_left else _NO_EQUALITY)
    if how == "inner" and (found := _closed_by_each(condition, left.node, right.node)) is not None:
        return _joined_either(left, right, how, found, analyst, text, at)
    nodes, keys, again = with_keys_of_both((left.node, right.node), condition.equal, analyst, text)
    on, schemas = keys, [node.schema for node in nodes]
    residual = _required([*condition.residual, *again], on, schemas, analyst)
    if how == "semi" or how == "anti":  # noqa: PLR1714  so that mypy knows what is left
        semi = SemiJoin(*on, how == "anti", residual).bounded(*schemas)
        return Relation(Node(semi, (nodes[0], nodes[1]), f"{how}_join"), left.fields)
    join = Join(how, *on, residual).bounded(*schemas)
    return Relation(Node(join, (nodes[0], nodes[1]), "join"), (*left.fields, *right.fields))


def alternatives(conditions: Sequence[exp.Expr], left: Schema, right: Schema) -> list[list[exp.Expr]] | None:
    """The conditions as alternatives, each with an equality between the sides; None if one would have none.

    Of several alternatives each has a condition more, that none before it is true: a pair satisfies one at most.

    >>> from xmlstream.operators.expressions.dialect import conjuncts
    >>> sides = Schema.of(a="INT", b="INT"), Schema.of(c="INT", d="INT")
    >>> def parted(text: str) -> list[str]:
    ...     found = alternatives(conjuncts(expression(text)), *sides)
    ...     return [" AND ".join(map(render, one)) for one in found or ()]
    >>> parted("(a = c OR b = d) AND a < d")
    ['`a` = `c` AND `a` < `d`', '`b` = `d` AND `a` < `d` AND NOT (`a` = `c`) IS TRUE']
    >>> parted("a IN (c, d)"), parted("a = c OR b > d")
    (['`a` = `c`', '`a` = `d` AND NOT (`a` = `c`) IS TRUE'], [])
    """
    found = split_condition(conditions, left, right)
    if found.equal:
        return [list(conditions)]
    for either in found.residual:
        parts = [other for other in found.residual if other is not either]
        whole: list[list[exp.Expr]] = []
        before: list[exp.Expr] = []
        for one in _either(either):
            branches = alternatives([one], left, right)
            if branches is None:
                break
            whole += [[*branch, *parts, *before] for branch in branches]
            before.append(expression(f"({render(one)}) IS NOT TRUE"))
        else:
            if before:
                return whole
    return None


def _closed_by_each(condition: JoinCondition, left: Node, right: Node) -> list[list[exp.Expr]] | None:
    """The alternatives, if the keys of each close on both sides, and those that all have in common do not.

    `(a = c AND b = d) OR (a = c AND e = f)` needs none on `a` alone, if punctuations close `a` with `b`, and with `e`.
    """
    if _close(condition, left, right):
        return None
    common: list[exp.Expr] = [exp.EQ(this=one.copy(), expression=other.copy()) for one, other in condition.equal]
    for either in condition.residual:
        parts = [*common, *(other for other in condition.residual if other is not either)]
        found = [[*parts, *branch] for branch in alternatives([either], left.schema, right.schema) or ()]
        if found and all(_close(split_condition(each, left.schema, right.schema), left, right) for each in found):
            return found
    return None


def _close(condition: JoinCondition, left: Node, right: Node) -> bool:
    """Whether punctuations of both sides close the attributes that are equal."""
    sides = [[pair[i].unnest() for pair in condition.equal] for i in range(2)]
    keys = [[side.name for side in some if isinstance(side, exp.Column)] for some in sides]
    return all(
        any(is_compact(names, scheme, node.schema, null=False) for scheme in node.schemes)
        for names, node in zip(keys, (left, right), strict=True)
    )


def _either(condition: exp.Expr) -> list[exp.Expr]:
    """The alternatives of a condition that is an OR, or an IN of several expressions; none of any other."""
    match condition.unnest():
        case exp.Or() as either:
            return [one.unnest() for one in either.flatten()]
        case exp.In(this=one, expressions=[_, _, *_] as others) if any(attributes_in(other) for other in others):
            return [exp.EQ(this=one.copy(), expression=other.copy()) for other in others]
    return []


def _joined_either(
    left: Relation,
    right: Relation,
    how: How,
    branches: Sequence[Sequence[exp.Expr]],
    analyst: Analyst,
    text: QueryText,
    at: exp.Expr,
) -> Relation:
    """The join of two relations on alternatives, each with an equality between the sides.

    Inner: the union of the joins on each, without the pairs of those before it. Anti: what is left of each after the
    other. Semi: what has a partner by one, and by the next of what has none by those before it.

    Source: Li et al. 2006, §2.2 and §7, which leave disjunctions open: a union is safe if each of its joins is.
    """

    def of(node: Relation, how: How, branch: Sequence[exp.Expr]) -> Relation:
        condition = split_condition(branch, node.node.schema, right.node.schema)
        whole = joined(node, right, how, condition, analyst, text, at)
        sides = (left, right) if how == "inner" else (left,)
        names = [name for side in sides for name in side.node.schema.names]
        return Relation(narrowed(whole.node, names), tuple(Field(name, name) for name in names))

    parts, rest = list[Relation](), left
    for number, branch in enumerate(branches):
        if how != "anti":
            parts.append(of(rest, how, branch))
        if how == "anti" or (how == "semi" and number + 1 < len(branches)):
            rest = of(rest, "anti", branch)
    whole = rest if how == "anti" else combined_relation("union", parts, analyst)
    return Relation(whole.node, (*left.fields, *right.fields) if how == "inner" else left.fields)


def _required(
    parts: Iterable[exp.Expr], on: tuple[tuple[str, ...], tuple[str, ...]], schemas: Sequence[Schema], analyst: Analyst
) -> str | None:
    """The conjunction of conditions on pairs of a join, as Spark SQL; None for no conditions."""
    whole = conjoined(parts)
    if whole is None:
        return None
    analyst.require_condition(Join("inner", *on).schema(*schemas), render(whole))
    return render(whole)


def with_keys_of_both(
    nodes: tuple[Node, Node], equal: Sequence[tuple[exp.Expr, exp.Expr]], analyst: Analyst, text: QueryText
) -> tuple[tuple[Node, Node], tuple[tuple[str, ...], tuple[str, ...]], list[exp.Expr]]:
    """Adds computed join keys to both inputs; returns the inputs, key names, and equalities of a key in use.

    Raises:
        QueryError: The types of the sides of an equality have no common type.
    """
    again: list[exp.Expr] = []
    keys: tuple[list[str], list[str]] = ([], [])
    taken = Names(name for node in nodes for name in node.schema.names)
    for sides in equal:
        types = [type_of(node, side, analyst) for node, side in zip(nodes, sides, strict=True)]
        if (common := analyst.common(*types)) is None:
            what = f"an equality of {types[0]} with {types[1]}"
            raise text.error(what, sides[0], "cast one side to the type of the other")
        (left, key), (right, other) = (
            as_attribute(node, side if type_ == common else cast_to(side, common), name, taken, analyst)
            for node, side, type_, name in zip(nodes, sides, types, ("join_key", "other_join_key"), strict=True)
        )
        if key in keys[0] or other in keys[1]:
            again.append(exp.EQ(this=sides[0].copy(), expression=sides[1].copy()))
            continue
        nodes = left, right
        keys[0].append(key)
        keys[1].append(other)
    return nodes, (tuple(keys[0]), tuple(keys[1])), again


def type_of(node: Node, side: exp.Expr, analyst: Analyst) -> str:
    """The type of an expression over a node's attributes."""
    copy = copied(side, node.schema)
    return copy[1].type if copy is not None else analyst.columns(node.schema, [render(side)])[0][1].type


def as_attribute(node: Node, side: exp.Expr, name: str, taken: Names, analyst: Analyst) -> tuple[Node, str]:
    """The node with an expression as an attribute, computed under a free name if it is none yet; and its own name."""
    if isinstance(side.unnest(), exp.Column):
        return node, node.schema.attribute(side.unnest().name).name
    items, free = [Item(other, named(other)) for other in node.schema.names], taken.take(name)
    return select_items(node, [*items, Item(free, side)], analyst).node, free


_MATCH_HINT = "for example MATCH_CONDITION (bid.dateTime >= rate.since)"
_OLDEST = (
    "write equalities between both sides, and a limit on the age of the matching tuple, as in"
    " AND rate.since >= bid.dateTime - INTERVAL 1 HOUR; put a condition on one side into a subquery"
)


def is_asof(join: exp.Join) -> bool:
    """Whether it is an ASOF JOIN, or joins a table FOR SYSTEM_TIME AS OF a time."""
    return bool(join.kind.upper() == "ASOF" or join.this.args.get("version"))


def joined_asof(
    left: Relation,
    right: Relation,
    kind: AsofKind,
    condition: JoinCondition,
    match: exp.Expr | None,
    analyst: Analyst,
    text: QueryText,
    at: exp.Expr,
) -> Relation:
    """The as-of join of two relations whose attributes have different names; `match` is over those of both.

    Raises:
        QueryError: There is no equality between the sides; MATCH_CONDITION is missing, or does not compare the left
            side with the right by >= or >; a further condition is not a lower bound of the right side's attribute in
            MATCH_CONDITION.
    """
    if match is None:
        raise text.error("an ASOF JOIN without MATCH_CONDITION is not supported", at, _MATCH_HINT)
    if not condition.equal:
        raise no_equality("an ASOF JOIN", at, text)
    sides, strict = _order(match.unnest(), left, right, text)
    nodes, keys, again = with_keys_of_both((left.node, right.node), [*condition.equal, sides], analyst, text)
    if again:
        raise text.error("an ASOF JOIN that repeats a comparison is not supported", match, "leave one out")
    later = nodes[0].schema.attribute(keys[0][-1])
    if later.domain.opaque:
        raise text.error(f"{later.name} has type {later.domain.type}, by which tuples cannot be ordered", match)
    on, schemas = (keys[0][:-1], keys[1][:-1]), [node.schema for node in nodes]
    for part in condition.residual:
        found = bounds_between(render(part), on, schemas)[0]
        if not found or any(bound.upper or bound.attribute != keys[1][-1] for bound in found):
            what = "this condition is not supported in the ON of an ASOF JOIN"
            raise text.error(what, part, _OLDEST)
    tolerance = _required(condition.residual, on, schemas, analyst)
    operator = AsofJoin(kind, *on, keys[0][-1], keys[1][-1], later.domain.type, strict, tolerance).bounded(*schemas)
    return Relation(Node(operator, nodes, "asof_join"), (*left.fields, *right.fields))


def _order(match: exp.Expr, left: Relation, right: Relation, text: QueryText) -> tuple[tuple[exp.Expr, exp.Expr], bool]:
    """The compared expressions of the left and the right side, and whether the left one must be strictly later."""
    names = [set(side.node.schema.names) for side in (left, right)]
    if isinstance(match, exp.GTE | exp.GT | exp.LTE | exp.LT):
        is_later = isinstance(match, exp.GTE | exp.GT)
        one, other = match.this, match.expression
        used = [set(attributes_in(side)) for side in (one, other)]
        if used[0] and used[0] <= names[1]:
            (one, other), used, is_later = (other, one), used[::-1], not is_later
        if used[0] and used[1] and used[0] <= names[0] and used[1] <= names[1]:
            if is_later:
                return (one, other), isinstance(match, exp.GT | exp.LT)
            what = "an ASOF JOIN finds the latest tuple before, not the next one after"
            raise text.error(what, match, _MATCH_HINT)
    raise text.error("MATCH_CONDITION must compare the left side with the right one by >= or >", match, _MATCH_HINT)


def hinted(relation: Relation, tree: exp.Select, sources: Collection[Relation], text: QueryText) -> Relation:
    """The relation of FROM whose inner joins purge as the hint of the SELECT requests.

    Raises:
        QueryError: FROM does not join three streams or more by inner joins.
    """
    hint = tree.args["hint"]
    if (strategy := purge_strategy_of(hint)) is None:
        return relation
    ends = {id(source.node) for source in sources}
    found = 0

    def purging(node: Node) -> Node:
        nonlocal found
        if id(node) in ends:
            return node
        inputs, operator = tuple(map(purging, node.inputs)), node.operator
        if isinstance(operator, Join) and operator.kind == "inner":
            found += 1
            operator = replace(operator, purge=strategy)
        return Node(operator, inputs, node.label)

    node = purging(relation.node)
    if found < 2:
        what = f"{hint.expressions[0].name.upper()} of a query that does not join three streams or more by inner joins"
        raise text.error(what, tree.expressions[0], "leave it out: a join of two inputs only checks new arrivals")
    return Relation(node, relation.fields)
