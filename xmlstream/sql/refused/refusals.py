"""Refusals of parts of SQL: what is not supported, or stands in the wrong place, and what to write instead.

`_NAMES` has a name and a hint for each part that is not supported; `_PLACES` has, for each part that depends on its
place, the test of the place, the error and the hint. `place_of` finds where a refused part stands in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import get_args

from sqlglot import exp

from operators.expressions.dialect import offset
from operators.expressions.type_rules import whole_number
from operators.joins.purge_strategy import PurgeStrategy, asked
from operators.top_n import Rank
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.spark.functions import (
    AGGREGATES,
    OF_ALL,
    ONE_FOR_ONE,
    function_of,
    is_collected_in_order,
    looks_around,
)

A_BOUND = "write SELECT … FROM (SELECT …, ROW_NUMBER() OVER (PARTITION BY … ORDER BY …) AS r FROM …) WHERE r <= 3"
"""How a query asks for the first tuples of each group."""

LAST_ROWS = (
    "write avg(v) OVER (PARTITION BY sid ORDER BY ts ROWS BETWEEN 9 PRECEDING AND CURRENT ROW), or lag(v) OVER …"
)
"""How a query looks back at the last rows of each group."""

IN_A_SUBQUERY = (
    "compute it in a subquery: … FROM (SELECT *, lag(v) OVER (PARTITION BY … ORDER BY …) AS w FROM s) WHERE w > 3"
)
"""How a query uses what it found when it looked back."""

AS_A_JOIN = (
    "write it as a join: … FROM s LEFT SEMI JOIN (SELECT id FROM u) AS q ON s.id = q.id; for NOT EXISTS, and for NOT IN"
    " where nothing is null, LEFT ANTI JOIN"
)
"""How a query asks whether there is a tuple of another relation."""

AS_A_VALUE = (
    "join it by a constant: … FROM (SELECT *, 1 AS k FROM s) AS l JOIN (SELECT max(a) AS m, 1 AS k FROM u) AS r"
    " ON l.k = r.k, and use r.m"
)
"""How a query uses the one tuple of another query."""

STATIC = (
    "a table that does not change is declared with a format of Spark's, CREATE TABLE u (…) USING csv"
    " OPTIONS (path '…'), and joined as it is; of one that does, compare its times in the join's condition"
)
"""What stands in place of a table as of some time."""

_OVER = (
    "ROW_NUMBER(), RANK() and DENSE_RANK() with PARTITION BY and ORDER BY are, to select the first of each group; and"
    " aggregates and lag with ORDER BY, of the last rows"
)

_NAMES = {
    "limit": ("LIMIT", "which tuples of a stream come first is not determined: write ORDER BY … LIMIT"),
    "fetch": ("FETCH", "write ORDER BY … LIMIT"),
    "offset": ("OFFSET", "ask for the first tuples with ORDER BY … LIMIT"),
    "order": ("ORDER BY", "only the whole result is put in order, at its end; ORDER BY … LIMIT chooses anywhere"),
    "sort": ("SORT BY", "results come out as soon as they are complete, in no order"),
    "cluster": ("CLUSTER BY", "leave it out: tuples are distributed as the operators need it"),
    "distribute": ("DISTRIBUTE BY", "leave it out: tuples are distributed as the operators need it"),
    "method": ("NATURAL JOIN", "name the attributes with USING"),
    "pivots": ("PIVOT", "write an aggregate with FILTER (WHERE …) for each column"),
    "on": (
        "DISTINCT ON",
        "write SELECT … FROM s QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts) = 1, with the attributes that"
        " are to differ",
    ),
    "array": ("[…]", "write a name in backquotes, as `hour`; an array is array(1, 2)"),
    "hint": ("a hint in /*+ … */ other than of a purge", "leave it out, or write /*+ LAZY_PURGE(10) */"),
    "windows": ("WINDOW", "write it out behind OVER"),
    "window": ("OVER", _OVER),
    "sample": ("TABLESAMPLE", "take part of the stream with WHERE, for instance by pmod(hash(…), 100) < 10"),
    "tablesample": ("TABLESAMPLE", "take part of the stream with WHERE, for instance by pmod(hash(…), 100) < 10"),
    "by_name": ("UNION BY NAME", "list the columns of both sides in one order"),
    "rollup": ("GROUP BY with ROLLUP", "write the levels as queries of their own"),
    "cube": ("GROUP BY with CUBE", "write the levels as queries of their own"),
    "grouping_sets": ("GROUPING SETS", "write the levels as queries of their own"),
    "groupingsets": ("GROUPING SETS", "write the levels as queries of their own"),
    "all": ("GROUP BY ALL", "list what to group by"),
    "recursive": ("WITH RECURSIVE", None),
    "exists": ("EXISTS", AS_A_JOIN),
    "query": ("IN with a subquery", AS_A_JOIN),
    "within_group": ("WITHIN GROUP", "percentile(x, 0.5) computes one without"),
    "withingroup": ("WITHIN GROUP", "percentile(x, 0.5) computes one without"),
    "ignorenulls": ("IGNORE NULLS", None),
    "respectnulls": ("RESPECT NULLS", None),
    "lambda": ("a function of functions", None),
    "collate": ("COLLATE", "strings are compared by code point"),
    "jsonextract": ("the operator ->", "use get_json_object(…)"),
    "values": ("VALUES", "a query reads streams"),
    "lateral": ("LATERAL", ONE_FOR_ONE),
    "unnest": ("UNNEST", None),
    "attimezone": ("AT TIME ZONE", "use from_utc_timestamp(…)"),
    "aliases": ("AS with several names", None),
    "lock": ("FOR UPDATE", "leave it out"),
    "locks": ("FOR UPDATE", "leave it out"),
    "db": ("a table name with a database", "name a table that the query declares"),
    "version": ("a table's version", STATIC),
    "when": ("a table's version", STATIC),
    "placeholder": ("a parameter", "variables are written ${NAME}"),
    "parameter": ("a parameter", "variables are written ${NAME}"),
}


def called(part: exp.Expr | str) -> tuple[str, str | None]:
    """What is said of a part that is not supported, and a hint; a part is a node, or the name of a node's argument.

    >>> called("limit")[0]
    'LIMIT is not supported'
    """
    key = part if isinstance(part, str) else part.key
    name, hint = _NAMES.get(key.lower(), (key.replace("_", " ").strip().upper(), None))
    return f"{name} is not supported", hint


def place_of(part: exp.Expr | str, node: exp.Expr, text: QueryText) -> int:
    """Where a refused part stands: at its keyword, if that is found near its first leaf."""
    if isinstance(part, exp.Window):
        return offset(part) or 0  # its keyword stands behind the function
    inner = node.args.get(part) if isinstance(part, str) else part
    inner = inner[0] if isinstance(inner, list) and inner else inner
    name = called(part)[0].split(" is not")[0]
    keyword = re.compile(rf"\b{re.escape(name.split()[0])}\b", re.IGNORECASE) if name[:1].isupper() else None
    if isinstance(part, exp.SetOperation) or (isinstance(node, exp.SetOperation) and part == "by_name"):
        # The keyword stands between the sides.
        return _after(node.this, keyword, text)
    if isinstance(part, exp.Hint) and node.parent is not None:
        inner = node.parent.expressions[0]  # a hint is parsed by itself, and its places are within it
    at = offset(inner) if isinstance(inner, exp.Expr) else offset(node)
    if at is not None:
        before = list(keyword.finditer(text.text[: at + 1])) if keyword else []
        return before[-1].start() if before else at
    around: exp.Expr | None = node
    while around is not None and offset(around) is None:
        around = around.parent
    return len(text.text) if around is None else _after(around, keyword, text)


def _after(tree: exp.Expr, keyword: re.Pattern[str] | None, text: QueryText) -> int:
    """Where the keyword stands first within a tree or behind it; its beginning where there is none."""
    begin = offset(tree) or 0
    starts = [node.meta["start"] for node in tree.walk() if "start" in node.meta]
    found = None
    if keyword is not None:
        found = keyword.search(text.text, max(starts)) or keyword.search(text.text, begin)
    return found.start() if found else begin


def purge_strategy_of(hint: exp.Expr) -> PurgeStrategy | None:
    """How a hint of a SELECT makes a join purge; None for any other hint."""
    if len(hint.expressions) != 1:
        return None
    match hint.expressions[0]:
        case exp.Var(this=str(name)):
            every = None
        case exp.Anonymous(this=str(name), expressions=[number]) if every := whole_number(number):
            pass
        case _:
            return None
    match name.upper():
        case "LAZY_PURGE":
            return asked("lazy", every)
        case "EAGER_PURGE" if every is None:
            return asked("eager")
    return None


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
    (
        exp.Table,
        lambda node, parent: _is_expression(parent),
        "TABLE is not supported here",
        "a table stands behind FROM or JOIN",
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
    (exp.Hint, lambda node, parent: purge_strategy_of(node) is None, *called("hint")),
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
