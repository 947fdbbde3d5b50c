"""OVER as a plan: functions over the last rows of each group, in an order that punctuations close step by step.

    SELECT sid, ts, v - lag(v) OVER (PARTITION BY sid ORDER BY ts) AS change,
           avg(v) OVER (PARTITION BY sid ORDER BY ts ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS smooth FROM s

One operator for each PARTITION BY and ORDER BY. What would need more than the last rows is refused: rows that follow,
and functions of all rows so far that do not grow row by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from operators.expressions.dialect import offset, render
from operators.expressions.literals import whole_number
from operators.expressions.over import Over
from operators.expressions.references import named
from operators.row_window import RowWindow
from operators.state.sort_key import SortKey
from punct_ns.schema import Attribute
from xmlstream.plan.nodes import Node
from xmlstream.sql.analysis import Analyst
from xmlstream.sql.grouping import aggregates_in
from xmlstream.sql.plan_builder import Item, keyed, project, unique
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.refusals import LAST_ROWS
from xmlstream.sql.relation import Relation
from xmlstream.sql.row_functions import function_of

_GROWING = "count, sum, min, max and avg grow row by row; of others say how many rows, as in ROWS 9 PRECEDING"


def windowed(relation: Relation, items: Sequence[Item], analyst: Analyst, text: QueryText) -> Relation:
    """The relation of the items of each tuple, which may be functions over rows, or computed from them.

    Raises:
        QueryError: A function needs other rows than the last ones; or an aggregate of a group is beside one.
    """
    windows = {render(window): window for item in items for window in item.tree.find_all(exp.Window)}
    node, names = relation.node, dict[str, str]()
    for those in _by_order(windows).values():
        node = _node(node, those, items, analyst, text, names)
    replaced = [
        Item(item.name, item.tree.copy().transform(lambda tree: _answer(tree, names), copy=False)) for item in items
    ]
    for item in replaced:
        if (found := next(aggregates_in(item.tree), None)) is not None:
            hint = "compute it in a subquery, and look back at what that gives"
            raise text.error("an aggregate beside OVER", offset(found), hint)
    return project(node, replaced, analyst)


def _answer(tree: exp.Expr, names: dict[str, str]) -> exp.Expr:
    return named(names[render(tree)]) if isinstance(tree, exp.Window) else tree


def _by_order(windows: Mapping[str, exp.Expr]) -> dict[str, list[exp.Expr]]:
    """The functions by their PARTITION BY and ORDER BY."""
    found: dict[str, list[exp.Expr]] = {}
    for window in windows.values():
        by = [render(key) for key in (*(window.args.get("partition_by") or ()), *window.args["order"].expressions)]
        found.setdefault(f"{len(window.args.get('partition_by') or ())} {', '.join(by)}", []).append(window)
    return found


def _node(
    node: Node, windows: list[exp.Expr], items: Sequence[Item], analyst: Analyst, text: QueryText, names: dict[str, str]
) -> Node:
    """The node with the functions of one order as attributes, whose names it notes."""
    by, order = windows[0].args.get("partition_by") or [], windows[0].args["order"].expressions
    node, keys = keyed(node, [*by, *(key.this for key in order)], items, analyst)
    answers = analyst.columns(node.schema, [render(window) for window in windows])
    functions: list[Over] = []
    taken = list(node.schema.names)
    for window, (_, domain) in zip(windows, answers, strict=True):
        taken.append(unique(function_of(window), taken))
        names[render(window)] = taken[-1]
        functions.append(_over(window, Attribute(taken[-1], domain), text))
    groups = tuple(dict.fromkeys(keys[render(tree.unnest())] for tree in by))
    sort_keys = tuple(
        SortKey(keys[render(key.this.unnest())], bool(key.args.get("desc")), bool(key.args.get("nulls_first")))
        for key in order
    )
    return Node(RowWindow(tuple(functions), sort_keys, groups), (node,), "row_window")


def _over(window: exp.Expr, attribute: Attribute, text: QueryText) -> Over:
    """What the function computes of which rows."""
    name, spec, expression = function_of(window), window.args.get("spec"), render(window.this)
    if name in ("row_number", "rank", "lag") and spec is not None:
        raise text.error(f"{name} with ROWS or RANGE", offset(window), "leave it out: it needs none")
    if name in ("row_number", "rank"):
        return Over(attribute, expression)
    if name == "dense_rank":
        raise text.error("DENSE_RANK beside other functions", offset(window), "rank in a query of its own")
    if name == "lag":
        arguments = window.this.expressions
        back = whole_number(arguments[1].unnest()) if len(arguments) > 1 else 1
        if back is None or back < 0:
            raise text.error("lag by other than a number", offset(window), "write lag(v, 2)")
        return Over(attribute, expression, back, back)
    first, last, peers = _frame(window, text)
    over = Over(attribute, expression, first, last, peers)
    if first is None and (last or not over.grows):
        what = f"{name} of all rows so far" if not last else "all rows up to some before"
        raise text.error(f"{what} would keep them all", offset(window), _GROWING)
    return over


def _frame(window: exp.Expr, text: QueryText) -> tuple[int | None, int, bool]:
    """At which rows before the tuple it begins and ends, None for the group's first; and whether peers belong to it."""
    spec = window.args.get("spec")
    if spec is None:
        return None, 0, True
    part = {name: spec.args.get(name) for name in ("kind", "start", "start_side", "end", "end_side")}
    first = _rows_before(part["start"], part["start_side"])
    last = 0 if part["end"] is None else _rows_before(part["end"], part["end_side"])
    if part["kind"] == "RANGE":
        if part["start"] == "UNBOUNDED" and part["end"] in (None, "CURRENT ROW"):
            return None, 0, True
        hint = f"{LAST_ROWS}; time is cut by GROUP BY into windows"
        raise text.error("RANGE of some distance is not supported", offset(window), hint)
    if part["end_side"] == "FOLLOWING" or part["start_side"] == "FOLLOWING":
        hint = "look back instead: lag(v) OVER … tells the tuple of the row before it"
        raise text.error("rows that FOLLOW are not supported", offset(window), hint)
    if last is None or (first is None and part["start"] != "UNBOUNDED"):
        raise text.error("ROWS of other than a number is not supported", offset(window), LAST_ROWS)
    if first is not None and first < last:
        raise text.error("there are no rows between these", offset(window), "the one further back stands first")
    return first, last, False


def _rows_before(end: exp.Expr | str | None, side: str | None) -> int | None:
    if end == "CURRENT ROW":
        return 0
    return whole_number(end) if isinstance(end, exp.Expr) and side == "PRECEDING" else None
