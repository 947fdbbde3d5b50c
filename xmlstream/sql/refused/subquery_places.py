"""Rules where a subquery may stand in an expression, as part of the allow-list of SQL.

A subquery may stand in WHERE and in an item of SELECT. As a value it has one attribute.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from xmlstream.sql.refused.refusals import AS_A_COLUMN, AS_A_MARK, BELOW
from xmlstream.sql.spark.functions import aggregates_in, is_aggregate

Place = tuple[type[exp.Expr], Callable[[exp.Expr], bool], str, str | None]
"""A rule: kind of node, test for a wrong place, message and hint."""


READS = (type(None), exp.From, exp.Join, exp.SetOperation, exp.Subquery, exp.CTE)
"""Kinds of nodes above a table or a query that is not in an expression."""


def is_before_in(node: exp.Expr) -> bool:
    """Whether the node is compared with the rows of a subquery by IN."""
    return isinstance(node.parent, exp.In) and node.parent.args.get("query") is not None and node.arg_key == "this"


def _is_value(node: exp.Expr) -> bool:
    """Whether the node is a query whose result is a value in an expression."""
    return not isinstance(node.parent, (*READS, exp.Exists)) and node.arg_key != "query"


def _top(node: exp.Expr, passes: Callable[[exp.Expr], bool] = lambda _: True) -> exp.Expr:
    """The clause or the item of a query that contains the node; or the first part on the way that does not pass."""
    above = node.parent
    while above is not None and not isinstance(above, exp.Query):
        node, above = above, above.parent
        if not passes(node):
            break
    return node


def _is_in_aggregate(node: exp.Expr) -> bool:
    """Whether the node is in an aggregate or its FILTER, whose condition is not a WHERE of the query."""
    top = _top(node, lambda part: not (_is_of_groups(part) or isinstance(part, exp.Filter)))
    return _is_of_groups(top) or isinstance(top, exp.Filter)


def _is_test(node: exp.Expr) -> bool:
    """Whether the node is EXISTS, or IN with a subquery."""
    return isinstance(node, exp.Exists) or node.args.get("query") is not None


def _is_of_groups(part: exp.Expr) -> bool:
    return is_aggregate(part) or isinstance(part, exp.Window)


def _is_item(top: exp.Expr) -> bool:
    return isinstance(top.parent, exp.Select) and top.arg_key == "expressions"


def _is_misplaced(node: exp.Expr) -> bool:
    """Whether a value is not computed for each tuple, in WHERE or in an item."""
    top = _top(node, lambda part: not _is_of_groups(part))
    return _is_of_groups(top) or not (isinstance(top, exp.Where) or _is_item(top))


def _is_no_value(query: exp.Expr) -> bool:
    """Whether a query has several items, or functions with OVER."""
    select = query
    while isinstance(select, exp.SetOperation | exp.Subquery):
        select = select.this
    if not isinstance(select, exp.Select) or len(select.expressions) != 1:
        return True
    return select is query and query.expressions[0].find(exp.Window) is not None


def _is_beside_groups(item: exp.Expr) -> bool:
    select = item.parent
    return isinstance(select, exp.Select) and (
        bool(select.args.get("group") or select.args.get("having")) or bool(aggregates_in(*select.expressions))
    )


_WITHIN = "a subquery within an aggregate or OVER is not supported"


def _is_asked(node: exp.Expr) -> bool:
    """Whether the node is EXISTS, IN with a subquery, or a query whose result is a value."""
    return _is_value(node) if isinstance(node, exp.Query) else _is_test(node)


def _asked_and(is_wrong: Callable[[exp.Expr], bool]) -> Callable[[exp.Expr], bool]:
    return lambda node: _is_asked(node) and is_wrong(node)


def _is_unnamed(node: exp.Expr) -> bool:
    """Whether the node is part of an item without a name; Spark names one that is no more than a subquery."""
    top = _top(node)
    return _is_item(top) and not isinstance(top, exp.Alias) and (top is not node or isinstance(node, exp.In))


SUBQUERY_PLACES: tuple[Place, ...] = (
    *(
        (kind, lambda node: _is_asked(node) and _is_in_aggregate(node), _WITHIN, BELOW)
        for kind in (exp.Exists, exp.In, exp.Query)
    ),
    *(
        (
            kind,
            lambda node: _is_asked(node) and _is_misplaced(node),
            f"{name} is supported only in WHERE and in items of SELECT",
            AS_A_MARK,
        )
        for kind, name in ((exp.Exists, "EXISTS"), (exp.In, "IN with a subquery"))
    ),
    (
        exp.In,
        lambda node: (
            isinstance(node.args.get("query"), exp.Subquery) and isinstance(node.args["query"].this, exp.Subquery)
        ),
        "IN ((SELECT …)) compares with a single value",
        "leave out one pair of brackets, or write = in place of IN",
    ),
    (
        exp.Query,
        lambda node: isinstance(node.parent, exp.Any),
        "SOME is not supported",
        "for < SOME (SELECT …) write < (SELECT max(…) …), for > SOME > (SELECT min(…) …)",
    ),
    (
        exp.Query,
        lambda node: _is_value(node) and (_is_misplaced(node) or not isinstance(node, exp.Subquery)),
        "a subquery is not supported here",
        AS_A_COLUMN,
    ),
    (
        exp.Query,
        lambda node: _is_value(node) and _is_no_value(node.unnest()),
        "a subquery of several attributes, or with OVER, is not supported as a value",
        "select one attribute or aggregate: (SELECT max(a) FROM u WHERE u.id = s.id)",
    ),
    *(
        (kind, _asked_and(is_wrong), what, hint)
        for kind in (exp.Exists, exp.In, exp.Query)
        for is_wrong, what, hint in (
            (_is_unnamed, "an item of SELECT with a subquery in it, without a name, is not supported", "write … AS m"),
            (
                lambda node: _is_item(_top(node)) and _is_beside_groups(_top(node)),
                "a subquery beside aggregates or GROUP BY is not supported",
                AS_A_COLUMN,
            ),
        )
    ),
)
