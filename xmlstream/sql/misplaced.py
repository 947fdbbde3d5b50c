"""Misplaced parts of SQL: those that a query may use, but not where they stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

from sqlglot import exp

from operators.expressions.literals import whole_number
from operators.top_n import Rank
from xmlstream.sql.functions import AGGREGATES
from xmlstream.sql.ordered_collections import is_collected_in_order
from xmlstream.sql.purge_hints import is_purge_hint
from xmlstream.sql.refusals import A_BOUND, AS_A_VALUE, IN_A_SUBQUERY, LAST_ROWS, called
from xmlstream.sql.row_functions import OF_ALL, function_of, looks_around


def misplaced(node: exp.Expr) -> list[tuple[str, str | None]]:
    """What is wrong with the place of a node, and hints."""
    return [
        (what, hint)
        for kind, is_misplaced, what, hint in _PLACES
        if isinstance(node, kind) and is_misplaced(node, node.parent)
    ]


def _is_expression(parent: exp.Expr | None) -> bool:
    return parent is not None and not isinstance(
        parent, exp.From | exp.Join | exp.SetOperation | exp.Subquery | exp.CTE
    )


def _counts_all(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == "count" and len(node.expressions) == 1


def _is_aggregate_call(node: exp.Expr | None) -> bool:
    is_known = isinstance(node, exp.Anonymous) and str(node.this).lower() in AGGREGATES
    return is_known or is_collected_in_order(node)


def _chooses(query: exp.Expr) -> bool:
    """Whether an order decides there what there is, not only in which order."""
    return isinstance(query, exp.Window) or bool(query.args.get("limit"))


def _explodes(call: exp.Expr) -> bool:
    """Whether it makes tuples of the elements of one array."""
    is_known = isinstance(call, exp.Anonymous) and str(call.this).lower() in ("explode", "explode_outer")
    return is_known and len(call.expressions) == 1


def _is_bare(join: exp.Expr) -> bool:
    """Whether nothing beside it says what it joins on."""
    return not (join.args.get("on") or join.args.get("using"))


def _is_rank(window: exp.Expr) -> bool:
    """Whether it is one of SQL's ranks, in an order, as they are by themselves."""
    call = window.this
    of = isinstance(call, exp.Anonymous) and not call.expressions and str(call.this).lower() in get_args(Rank)
    return of and bool(window.args.get("order")) and not any(window.args.get(p) for p in ("alias", "spec", "first"))


def _is_selected(window: exp.Expr) -> bool:
    """Whether it is an item of a SELECT, perhaps with a name."""
    item = window.parent if isinstance(window.parent, exp.Alias) else window
    return isinstance(item.parent, exp.Select)


def _is_in_items(window: exp.Expr) -> bool:
    """Whether it is part of an item of a SELECT, and of no other function over rows."""
    below, above = window, window.parent
    while above is not None and not isinstance(above, exp.Query | exp.Window):
        below, above = above, above.parent
    return isinstance(above, exp.Select) and below.arg_key == "expressions"


def _is_beside(window: exp.Expr) -> bool:
    """Whether it stands beside functions over rows, where a rank is one of them."""
    select = window.find_ancestor(exp.Select)
    others = [] if select is None else [found for item in select.expressions for found in item.find_all(exp.Window)]
    return _is_in_items(window) and any(map(looks_around, others))


def _cuts_below(call: exp.Expr) -> bool:
    """Whether it is a window in time elsewhere than in what is selected, grouped by, or asked of groups."""
    if not (isinstance(call, exp.Anonymous) and str(call.this).lower() in ("window", "session_window")):
        return False
    clause = call.find_ancestor(exp.Where, exp.Join, exp.Order, exp.Window, exp.Lateral, exp.Qualify, exp.Select)
    return not isinstance(clause, exp.Select)


def _counts_from_1970(call: exp.Expr) -> bool:
    """Whether it is Flink's moment of a number: TO_TIMESTAMP_LTZ(n, 3)."""
    is_known = isinstance(call, exp.Anonymous) and str(call.this).lower() == "to_timestamp_ltz"
    return is_known and len(call.expressions) == 2 and not getattr(call.expressions[1], "is_string", True)


def _qualifies(window: exp.Expr) -> bool:
    return isinstance(window.find_ancestor(exp.Qualify, exp.Query), exp.Qualify)


def _means_today(node: exp.Expr, parent: exp.Expr | None) -> bool:
    """Whether it may be a text that Spark reads as the time at which it computes it."""
    if not (node.is_string and isinstance(parent, exp.Cast | exp.TryCast | exp.Anonymous)):
        return False
    return str(node.this).strip().lower() in ("now", "today", "yesterday", "tomorrow")


def _compares_with_null(comparison: exp.Expr) -> bool:
    return any(isinstance(side.unnest(), exp.Null) for side in (comparison.this, comparison.expression))


_STAR = ("* is not supported here", "* stands alone in SELECT, or in count(*)")
_NO_ALL = "a tuple that comes twice counts once: leave ALL out"
_PLACES: tuple[tuple[type[exp.Expr], Callable[[exp.Expr, exp.Expr | None], bool], str, str | None], ...] = (
    (
        exp.Query,
        lambda node, parent: _is_expression(parent),
        "a subquery in an expression is not supported",
        AS_A_VALUE,
    ),
    (exp.Intersect, lambda node, parent: not node.args.get("distinct"), "INTERSECT ALL is not supported", _NO_ALL),
    (exp.Except, lambda node, parent: not node.args.get("distinct"), "EXCEPT ALL is not supported", _NO_ALL),
    (
        exp.Order,
        lambda node, parent: not (parent is None or parent.parent is None or _chooses(parent)),
        "ORDER BY is not supported here",
        called("order")[1],
    ),
    (exp.Limit, lambda node, parent: parent is None or not parent.args.get("order"), *called("limit")),
    (
        exp.Limit,
        lambda node, parent: not whole_number(node.expression),
        "LIMIT of other than a number above 0 is not supported",
        "write LIMIT 10",
    ),
    (exp.Lateral, lambda node, parent: not node.args.get("view"), *called("lateral")),
    (
        exp.Lateral,
        lambda node, parent: bool(node.args.get("view")) and not _explodes(node.this),
        "LATERAL VIEW of other than explode(…) is not supported",
        called("lateral")[1],
    ),
    (
        exp.Lateral,
        lambda node, parent: bool(parent and any(map(_is_bare, parent.args.get("joins") or ()))),
        "LATERAL VIEW behind a comma is not supported",
        "write JOIN … ON",
    ),
    (
        exp.Window,
        lambda node, parent: function_of(node) in OF_ALL,
        "OVER is not supported with functions of all rows of a group",
        LAST_ROWS,
    ),
    (
        exp.Window,
        lambda node, parent: function_of(node) in AGGREGATES | {"lag", "lead"} and not node.args.get("order"),
        "OVER is not supported without ORDER BY",
        f"to compare with a whole group, join it: … FROM s JOIN (SELECT sid, max(v) AS m FROM s GROUP BY sid) AS g"
        f" USING (sid); of the last rows {LAST_ROWS}",
    ),
    (exp.Window, lambda node, parent: not (_is_rank(node) or looks_around(node)), *called("window")),
    (
        exp.Window,
        lambda node, parent: _is_rank(node) and not (_is_selected(node) or _qualifies(node) or _is_beside(node)),
        "OVER is not supported here",
        A_BOUND,
    ),
    (
        exp.Window,
        lambda node, parent: looks_around(node) and not _is_in_items(node),
        "OVER is not supported here",
        IN_A_SUBQUERY,
    ),
    (
        exp.Anonymous,
        lambda node, parent: _cuts_below(node),
        "a window in time is not supported here",
        "SELECT window(…) AS w in a subquery, and use w.start and w.end",
    ),
    (
        exp.Anonymous,
        lambda node, parent: _counts_from_1970(node),
        "TO_TIMESTAMP_LTZ of a number is not supported",
        "write timestamp_millis(n) where its precision is 3, timestamp_seconds(n) where it is 0",
    ),
    (exp.Hint, lambda node, parent: not is_purge_hint(node), *called("hint")),
    (exp.Select, lambda node, parent: bool(node.args.get("kind")), "SELECT AS is not supported", None),
    (exp.Select, lambda node, parent: not node.expressions, "SELECT without anything to select", None),
    (
        exp.Select,
        lambda node, parent: node.args.get("from_") is None,
        "SELECT without FROM is not supported",
        "a query reads streams",
    ),
    (
        exp.Star,
        lambda node, parent: not (isinstance(parent, exp.Select | exp.Column) or _counts_all(parent)),
        *_STAR,
    ),
    (
        exp.Column,
        lambda node, parent: isinstance(node.this, exp.Star) and not isinstance(parent, exp.Select),
        *_STAR,
    ),
    (
        exp.Distinct,
        lambda node, parent: not (isinstance(parent, exp.Select) or _is_aggregate_call(parent)),
        "DISTINCT is not supported here",
        None,
    ),
    (
        exp.Filter,
        lambda node, parent: not _is_aggregate_call(node.this),
        "FILTER belongs to an aggregate",
        None,
    ),
    (
        exp.Alias,
        lambda node, parent: not isinstance(parent, exp.Select),
        "AS is not supported inside an expression",
        None,
    ),
    (
        exp.ColumnDef,
        lambda node, parent: not isinstance(parent, exp.DataType),
        "a column's definition is not supported here",
        None,
    ),
    (
        exp.Tuple,
        lambda node, parent: not isinstance(parent, exp.Any | exp.All),
        "a list in brackets is not supported here",
        "named_struct('a', …) makes a structure",
    ),
    (
        exp.Any,
        lambda node, parent: not isinstance(parent, exp.Like | exp.ILike),
        "ANY is not supported",
        "use bool_or(…)",
    ),
    (exp.All, lambda node, parent: not isinstance(parent, exp.Like | exp.ILike), "ALL is not supported", None),
    *(
        (
            kind,
            lambda node, parent: _compares_with_null(node),
            f"{sign} NULL is true of nothing",
            f"write IS {negation}NULL",
        )
        for kind, sign, negation in (
            *((exp.EQ, "=", ""), (exp.NEQ, "<>", "NOT ")),
            *((exp.LT, "<", ""), (exp.LTE, "<=", ""), (exp.GT, ">", ""), (exp.GTE, ">=", "")),
        )
    ),
    (exp.Literal, _means_today, "a text that means the present is not supported", "write current_timestamp()"),
)
