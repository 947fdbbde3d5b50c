"""Row windows as nodes of a plan: functions with OVER, and windows of a fixed number of tuples.

    SELECT sid, ts, v - lag(v) OVER (PARTITION BY sid ORDER BY ts) AS change,
           avg(v) OVER (PARTITION BY sid ORDER BY ts ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS smooth,
           lead(ts) OVER (PARTITION BY sid ORDER BY ts) AS until FROM s

OVER: punctuations close the order step by step. For each PARTITION BY and ORDER BY, one operator looks back and one
looks ahead. Functions that need all rows of a group are refused: functions of all rows so far that do not grow row by
row, and frames that follow without end.

Windows of tuples aggregate so many tuples of each group, in the order in which they arrive. A window is complete with
its last tuple, so it needs no punctuation; the window in which the stream ends is not emitted. The order of arrival is
known only where a node hands on the order of its source (`require_positions`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from operators.expressions.aggregates import Over
from operators.expressions.dialect import expression, named, render
from operators.expressions.type_rules import whole_number
from operators.look_ahead import LookAhead
from operators.row_window import RowWindow
from operators.sort_order import SortKey
from punct_ns.domain import Domain
from punct_ns.errors import QueryError, UsageError
from punct_ns.schema import Attribute
from punct_ns.slices import quoted
from xmlstream.plan.nodes import Node, Scan
from xmlstream.sql.clauses.plan_builder import keyed, project, unique, where
from xmlstream.sql.clauses.relation import Item, Relation
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.refused.refusals import LAST_ROWS
from xmlstream.sql.spark.analysis import Analyst
from xmlstream.sql.spark.functions import BY_PLACE, RANKS, aggregates_in, function_of


def require_positions(node: Node, what: str) -> None:
    """Makes sure that the order in which tuples come is known: a source's, through what hands it on.

    Raises:
        QueryError: Something below the node has no order of tuples, such as a merge or a join.
    """
    below = node
    while not isinstance(below.operator, Scan):
        if not below.operator.keeps_order:
            raise QueryError(
                f"{what} above {below.label}, where the order of tuples is lost",
                hint="ask for it directly on a source, or through select, where and tumbling windows",
            )
        (below,) = below.inputs


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
    for found in aggregates_in(*(item.tree for item in replaced)):
        hint = "compute it in a subquery, and look back at what that gives"
        raise text.error("an aggregate beside OVER", found, hint)
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
    ahead = tuple(over for over in functions if over.ahead)
    if back := tuple(over for over in functions if not over.ahead):
        node = Node(RowWindow(back, sort_keys, groups), (node,), "row_window")
    return Node(LookAhead(ahead, sort_keys, groups), (node,), "look_ahead") if ahead else node


def _over(window: exp.Expr, attribute: Attribute, text: QueryText) -> Over:
    """What the function computes of which rows."""
    name, expression = function_of(window), render(window.this)
    if name in (*RANKS, "lag", "lead"):
        if window.args.get("spec") is not None:
            raise text.error(f"{name} with ROWS or RANGE", window, "leave it out: it needs none")
        if name in RANKS:
            return Over(attribute, expression)
        back = _offset(window, text) * (1 if name == "lag" else -1)
        return Over(attribute, expression, back, back)
    over = _frame(window, Over(attribute, expression), text)
    if not over.is_rolling and (over.last or not over.grows):
        what = f"{name} of all rows so far" if not over.last else "all rows up to some before"
        raise text.error(f"{what} would keep them all", window, _GROWING)
    return over


def _offset(window: exp.Expr, text: QueryText) -> int:
    """How many rows lag looks back, or lead ahead: one, if nothing says."""
    name, arguments = function_of(window), window.this.expressions
    if len(arguments) < 2:
        return 1
    if (found := whole_number(arguments[1].unnest())) is None:
        raise text.error(f"{name} by other than a number", window, f"write {name}(v, 2)")
    return found


def _frame(window: exp.Expr, over: Over, text: QueryText) -> Over:
    """The function with the rows that it sees."""
    spec = window.args.get("spec")
    if spec is None:
        return replace(over, peers=True)
    part = {name: spec.args.get(name) for name in ("kind", "start", "start_side", "end", "end_side")}
    if part["kind"] == "RANGE":
        if part["start"] == "UNBOUNDED" and part["end"] in (None, "CURRENT ROW"):
            return replace(over, peers=True)
        return replace(over, distance=_distance(window, part, text))
    first = _rows_before(part["start"], part["start_side"])
    last = 0 if part["end"] is None else _rows_before(part["end"], part["end_side"])
    if part["end"] == "UNBOUNDED":
        hint = (
            "say how many rows follow, as in ROWS BETWEEN CURRENT ROW AND 5 FOLLOWING; of whole groups write GROUP BY"
        )
        raise text.error("all rows that FOLLOW would wait for the end of their group", window, hint)
    if last is None or (first is None and part["start"] != "UNBOUNDED"):
        raise text.error("ROWS of other than a number is not supported", window, LAST_ROWS)
    if first is not None and first < last:
        raise text.error("there are no rows between these", window, "the one further back stands first")
    return replace(over, first=first, last=last)


def _distance(window: exp.Expr, part: Mapping[str, Any], text: QueryText) -> str:
    """How far before the tuple the rows begin that it sees, which end with it."""
    hint = "write RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW, behind ORDER BY ts"
    order = window.args["order"].expressions
    if len(order) != 1 or order[0].args.get("desc"):
        raise text.error("RANGE of some distance in other than one ascending order", window, hint)
    start, is_back = part["start"], part["start_side"] == "PRECEDING"
    if not isinstance(start, exp.Expr) or not is_back or part["end"] not in (None, "CURRENT ROW"):
        raise text.error("RANGE of other than a distance up to the CURRENT ROW is not supported", window, hint)
    if function_of(window) in BY_PLACE:
        what = (
            f"{function_of(window)} of a RANGE, which of equal times is the first or last nobody says, is not supported"
        )
        raise text.error(what, window, LAST_ROWS)
    return render(start)


def _rows_before(end: exp.Expr | str | None, side: str | None) -> int | None:
    if end == "CURRENT ROW":
        return 0
    number = whole_number(end) if isinstance(end, exp.Expr) else None
    return number if number is None or side == "PRECEDING" else -number


@dataclass(frozen=True, slots=True)
class TupleWindow:
    """Windows of `size` tuples of each group by `per`; every `slide` tuples one is complete.

    Raises:
        UsageError: Size or slide is not positive.
    """

    size: int
    slide: int
    per: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.size < 1 or self.slide < 1:
            raise UsageError(f"windows of {self.size} tuples, {self.slide} apart", hint="from 1 on")


def over_tuples(node: Node, window: TupleWindow, items: Sequence[Item], analyst: Analyst, text: QueryText) -> Relation:
    """The relation of the windows that are complete: the groups, then the items, over aggregates of their tuples.

    Raises:
        QueryError: The tuples have no order; or an item looks at an attribute beside its aggregates.
    """
    require_positions(node, "windows over tuples")
    number = Attribute(unique("number", node.schema.names), Domain("BIGINT", nullable=False))
    taken, names = [*node.schema.names, number.name], dict[str, str]()
    functions = [Over(number, "row_number()")]
    for tree in aggregates_in(*(item.tree for item in items)):
        if render(tree) not in names:
            ((by_itself, domain),) = analyst.columns(node.schema, [render(tree)])
            taken.append(unique(by_itself, taken))
            names[render(tree)] = taken[-1]
            functions.append(Over(Attribute(taken[-1], domain), render(tree), window.size - 1))
    groups = tuple(node.schema.attribute(name).name for name in window.per)
    rolled = Node(RowWindow(tuple(functions), (), groups), (node,), "row_window")
    behind = f"({quoted(number.name)} - {window.size})"
    complete = expression(f"{behind} >= 0 AND {behind} % {window.slide} = 0")
    relation = where(Relation.of(rolled), complete, analyst)
    replaced = [
        Item(item.name or names.get(render(item.tree)), _above(item.tree, names, groups, text)) for item in items
    ]
    return project(relation.node, [*(Item(name, named(name)) for name in groups), *replaced], analyst)


def _above(tree: exp.Expr, names: dict[str, str], groups: Sequence[str], text: QueryText) -> exp.Expr:
    """The item over the aggregates' attributes."""
    known = {*names.values(), *groups}

    def over(node: exp.Expr) -> exp.Expr:
        return named(names[render(node)]) if render(node) in names else node

    replaced = tree.copy().transform(over, copy=False)
    for column in replaced.find_all(exp.Column):
        if column.name not in known:
            what = f"{column.name} is neither what windows are counted per nor aggregated"
            raise text.error(what, column, "aggregate it, as in max(v)")
    return replaced
