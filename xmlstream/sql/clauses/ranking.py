"""ROW_NUMBER, RANK and DENSE_RANK as a plan: the first tuples of each group, up to the bound that a condition sets.

    SELECT … FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS r FROM bid) WHERE r <= 10

A query with a rank gives a relation with an open rank; the query around it, or QUALIFY, sets the bound. Further
conditions on the rank filter the remaining tuples. A rank without a bound numbers each tuple, as far as the order is
closed.

    SELECT … FROM bid QUALIFY ROW_NUMBER() OVER (PARTITION BY auction ORDER BY arrival) = 1

`arrival` is the order in which a source has its tuples, unless an attribute has this name. There the first tuples are
known as they come, and so they are where a source declares that it has its tuples in the order of the attribute, or
where the attribute is the time at which they come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

from sqlglot import exp

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.distinct_on import DistinctOn
from xmlstream.operators.expressions.aggregates import Over
from xmlstream.operators.expressions.dialect import conjoined, conjuncts, expression, named, render
from xmlstream.operators.expressions.type_rules import whole_number
from xmlstream.operators.punctuate import Punctuate
from xmlstream.operators.punctuators.order import ByOrder
from xmlstream.operators.row_window import RowWindow
from xmlstream.operators.sort_order import SortKey
from xmlstream.operators.stamp import Stamp
from xmlstream.operators.top_n import Rank, TopN
from xmlstream.plan.nodes import Node, out_of_order, unique
from xmlstream.punct_ns.numeric_type import FloatType
from xmlstream.punct_ns.schema import Attribute
from xmlstream.punct_ns.slices import quoted
from xmlstream.sql.clauses.grouping import SelectList
from xmlstream.sql.clauses.plan_builder import partitioned, select_items, where
from xmlstream.sql.clauses.relation import Item, OpenRank, Relation, resolve
from xmlstream.sql.clauses.row_windows import require_arrival, windowed
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.refused.refusals import A_BOUND, place_in_query
from xmlstream.sql.spark.analysis import Analyst
from xmlstream.sql.spark.functions import aggregates_in


def ranked(listed: SelectList, analyst: Analyst) -> Relation:
    """The relation of all tuples with their rank, which is open.

    Raises:
        QueryError: There are several ranks, or an aggregate beside a rank.
    """
    window = _only(listed, _ranks(listed))
    topped, selected = _prepared(listed, window, analyst)
    relation = selected(topped(1))
    at = listed.trees.index(window)
    all_of_them = [Item(field.attribute, item.tree) for field, item in zip(relation.fields, listed.items, strict=True)]
    rank = OpenRank(
        relation.fields[at].attribute,
        lambda n: selected(topped(n)).node,
        lambda: windowed(listed.relation, all_of_them, analyst, listed.text).node,
    )
    return replace(relation, rank=rank)


def qualified(listed: SelectList, select: exp.Select, analyst: Analyst) -> Relation:
    """The relation of the tuples that satisfy QUALIFY.

    Raises:
        QueryError: As for `ranked`; or QUALIFY sets no bound, or has a condition on another attribute than the rank.
    """
    condition = _resolved(select.args["qualify"].this, listed)
    found = {render(tree): tree for tree in (*_ranks(listed), *condition.find_all(exp.Window))}
    window = _only(listed, list(found.values())) if found else None
    bound, rest = _bounded(conjuncts(condition), lambda tree: render(tree) in found)
    if window is None or bound is None:
        what = "QUALIFY needs an upper limit of a rank, as in ROW_NUMBER() OVER (…) <= 3"
        raise listed.text.error(what, place_in_query("qualify", select, listed.text), A_BOUND)
    topped, selected = _prepared(listed, window, analyst)
    first = topped(_most(bound, listed.text))
    if (whole := conjoined(_of_rank(tree, first, listed.text) for tree in rest)) is not None:
        first = where(Relation.of(first), whole, analyst).node
    return selected(first)


def settled(
    sources: Sequence[Relation], joins: Sequence[exp.Join], condition: exp.Expr | None, text: QueryText
) -> tuple[list[Relation], exp.Expr | None]:
    """The relations of FROM with open ranks bounded by WHERE, and the remaining conditions of WHERE.

    Raises:
        QueryError: WHERE bounds an open rank in an outer join, where the bound would not mean the same.
    """
    rest = [] if condition is None else conjuncts(condition)
    found: list[Relation] = []
    for source in sources:
        if source.rank is None:
            found.append(source)
            continue
        bound, rest = _bounded(rest, _means_rank(source, sources))
        if bound is None:
            found.append(source.whole())
            continue
        if any(join.side or join.kind.upper() not in ("", "INNER", "CROSS") for join in joins):
            hint = "write the condition in a subquery, as in WHERE r <= 3, and join its result"
            raise text.error("a condition on a rank is supported only with inner joins", bound.condition, hint)
        found.append(Relation(source.rank.first(_most(bound, text)), source.fields))
    return found, conjoined(rest)


def _ranks(listed: SelectList) -> list[exp.Expr]:
    """The ranks among the items."""
    return [tree for tree in listed.trees if isinstance(tree, exp.Window)]


def _means_rank(source: Relation, sources: Sequence[Relation]) -> Callable[[exp.Expr], bool]:
    """Test whether a name in WHERE means the source's open rank, without ambiguity."""

    def means(tree: exp.Expr) -> bool:
        if not isinstance(tree, exp.Column) or source.rank is None:
            return False
        table = tree.table or None
        hits = [(other, field) for other in sources for field in other.find(tree.name, table)]
        return len(hits) == 1 and hits[0][0] is source and hits[0][1].attribute == source.rank.attribute

    return means


def _most(bound: _Bound, text: QueryText) -> int:
    if bound.most < 1:
        raise text.error("a rank is never below 1", bound.condition, "ranks count from 1")
    return bound.most


def _only(listed: SelectList, windows: Sequence[exp.Expr]) -> exp.Expr:
    """The rank of a query, which may have one only."""
    first, *others = windows
    if others:
        raise listed.text.error("a second OVER is not supported", others[0], "compute each rank in a separate query")
    for found in aggregates_in(first, *listed.trees):
        hint = "compute it in a subquery, and rank its result"
        raise listed.text.error("an aggregate beside OVER is not supported", found, hint)
    return first


def _prepared(
    listed: SelectList, window: exp.Expr, analyst: Analyst
) -> tuple[Callable[[int], Node], Callable[[Node], Relation]]:
    """Two functions: one makes the first n tuples of each group with their ranks, one selects the items of these."""
    node, names, groups, keys = partitioned(listed.relation.node, window, listed.items, analyst)
    ((by_itself, domain),) = analyst.columns(node.schema, [render(window)])
    number = Attribute(unique("rank", node.schema.names), domain)
    rank = cast(Rank, str(window.this.this).lower())
    names |= {render(window): number.name}

    if not keys:
        require_arrival(node, window, listed.text)

    def topped(n: int) -> Node:
        if keys and not (rank == "row_number" and _arrive_in(keys, groups, node)):
            return Node(TopN(n, keys, groups, rank, number), (node,), "top_n")
        if n == 1 and groups:
            first = Node(DistinctOn(groups), (node,), "distinct_on")
            items = [Item(name, named(name)) for name in node.schema.names]
            return select_items(first, [*items, Item(number.name, exp.Literal.number(1))], analyst).node
        counted = Node(RowWindow((Over(number, "row_number()"),), (), groups), (node,), "row_window")
        return where(Relation.of(counted), expression(f"{quoted(number.name)} <= {n}"), analyst).node

    def selected(first: Node) -> Relation:
        items = []
        for item in listed.items:
            attribute = names.get(render(item.tree.unnest()))
            name = item.name or (by_itself if attribute == number.name else attribute)
            items.append(item if attribute is None else Item(name, named(attribute)))
        return select_items(first, items, analyst)

    return topped, selected


def _arrive_in(keys: Sequence[SortKey], groups: Sequence[str], node: Node) -> bool:
    """Whether the tuples of each group come in the order of the only key: by a rule of the source, or by the clock."""
    (key, *others), per = keys, {name.lower() for name in groups}
    domain = node.schema.attribute(key.attribute).domain
    if others or key.descending or domain.nullable or isinstance(domain.sql, FloatType) or out_of_order(node):
        return False  # NaN is last in the order, and may come at any time
    name = key.attribute.lower()
    while node.inputs:
        operator, (node,) = node.operator, node.inputs
        if isinstance(operator, Stamp) and operator.attribute.name.lower() == name:
            return True
        if not isinstance(operator, Punctuate):
            (terms,) = operator.predicate_terms(node.schema)
            below = {quoted(each): each.lower() for each in node.schema.names}
            copied = {above: below[term] for above, term in terms.items() if term in below}
            if name not in copied:
                return False
            name, per = copied[name], {copied[each] for each in per if each in copied}
        elif isinstance(rule := operator.rule, ByOrder) and rule.slack is None and rule.attribute.lower() == name:
            return {each.lower() for each in rule.per} <= per
    return False


def _resolved(condition: exp.Expr, listed: SelectList) -> exp.Expr:
    """QUALIFY over the node's attributes, with an item's name replaced by its rank."""
    ranks = {(item.name or "").lower(): item.tree for item in listed.items if isinstance(item.tree, exp.Window)}

    def chosen(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        is_bare = len(node.parts) == 1 and not listed.relation.find(node.name)
        rank = ranks.get(node.name.lower()) if is_bare else None
        return resolve(node, listed.relation, listed.text) if rank is None else rank.copy()

    return condition.copy().transform(chosen, copy=False)


def _of_rank(condition: exp.Expr, first: Node, text: QueryText) -> exp.Expr:
    """A condition of QUALIFY besides the bound, over the rank's attribute."""
    number = first.schema.names[-1]
    whole = condition.transform(lambda node: named(number) if isinstance(node, exp.Window) else node)
    if (other := next((c for c in whole.find_all(exp.Column) if c.name != number), None)) is not None:
        what = "QUALIFY with a condition on another attribute than the rank is not supported"
        raise text.error(what, other, "write it in WHERE")
    return whole


@dataclass(frozen=True, slots=True)
class _Bound:
    """Upper bound `most` of a rank, set by `condition`; `plain` if the condition means no more than the bound."""

    most: int
    condition: exp.Expr
    plain: bool


def _bounded(
    conditions: Iterable[exp.Expr], is_rank: Callable[[exp.Expr], bool]
) -> tuple[_Bound | None, list[exp.Expr]]:
    """The least bound that the conditions set, and the conditions that it does not imply.

    >>> from xmlstream.operators.expressions.dialect import expression, render
    >>> bound, rest = _bounded([expression("r < 4"), expression("r = 2")], lambda tree: isinstance(tree, exp.Column))
    >>> bound.most, [render(condition) for condition in rest]
    (2, ['`r` = 2'])
    """
    rest: list[exp.Expr] = []
    least: _Bound | None = None
    for condition in conditions:
        bound = _bound(condition, is_rank)
        if bound is None or not bound.plain:
            rest.append(condition)
        if bound is not None and (least is None or bound.most < least.most):
            least = bound
    return least, rest


_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GTE: exp.LTE, exp.GT: exp.LT, exp.EQ: exp.EQ}


def _bound(condition: exp.Expr, is_rank: Callable[[exp.Expr], bool]) -> _Bound | None:
    """The bound that a condition sets; None if it sets none."""
    match condition:
        case exp.In() if is_rank(condition.this.unnest()) and condition.expressions:
            return _up_to(condition, condition.expressions)
        case exp.Between() if is_rank(condition.this.unnest()):
            low = whole_number(condition.args["low"].unnest())
            return _up_to(condition, [condition.args["high"]], plain=low is not None and low <= 1)
        case exp.Binary():
            kind: type[exp.Expr] | None = type(condition)
            left, right = condition.this.unnest(), condition.expression.unnest()
            if not is_rank(left):
                kind, left, right = _MIRRORED.get(type(condition)), right, left
            number = whole_number(right)
            if number is not None and is_rank(left) and kind in _MIRRORED.values():
                most = number - (kind is exp.LT)
                return _Bound(most, condition, plain=kind is not exp.EQ or most == 1)
    return None


def _up_to(condition: exp.Expr, ends: Sequence[exp.Expr], *, plain: bool = False) -> _Bound | None:
    numbers = [number for end in ends if (number := whole_number(end.unnest())) is not None]
    return _Bound(max(numbers), condition, plain) if len(numbers) == len(ends) else None
