"""Row windows as nodes of a plan: functions with OVER, and windows of a fixed number of tuples.

    SELECT sid, ts, v - lag(v) OVER (PARTITION BY sid ORDER BY ts) AS change,
           avg(v) OVER (PARTITION BY sid ORDER BY ts ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS smooth,
           lead(ts) OVER (PARTITION BY sid ORDER BY ts) AS until FROM s

OVER: punctuations close the order step by step. For each PARTITION BY and ORDER BY, one operator looks back and one
looks ahead. Functions of all rows of a group wait for its end: those without ORDER BY, ntile and its like, frames up to
UNBOUNDED FOLLOWING. Functions of all rows so far that cannot be updated row by row are refused.

Windows of tuples aggregate a fixed number of tuples of each group, in order of arrival. A window is complete with its
last tuple, so it needs no punctuation; an incomplete window at the end of the stream is not emitted. The order of
arrival is known only if every node below keeps the order of its source (`require_arrival_order`).
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.expressions.aggregates import TO_THE_END, Over
from xmlstream.operators.expressions.dialect import expression, named, render
from xmlstream.operators.expressions.type_rules import whole_number
from xmlstream.operators.look_ahead import LookAhead
from xmlstream.operators.row_window import RowWindow
from xmlstream.plan.nodes import Names, Node, out_of_order, unique
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import QueryError, UsageError
from xmlstream.punct_ns.schema import Attribute
from xmlstream.punct_ns.slices import quoted
from xmlstream.sql.clauses.grouping import over_groups
from xmlstream.sql.clauses.plan_builder import partitioned, select_items, where
from xmlstream.sql.clauses.relation import Item, Relation
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.refused.refusals import LAST_ROWS
from xmlstream.sql.spark.analysis import Analyst
from xmlstream.sql.spark.functions import BY_PLACE, OF_ALL, RANKS, aggregates_in, function_of


def require_arrival_order(node: Node, what: str) -> None:
    """Checks that the order of arrival is known: a source's order that all nodes above it keep.

    Raises:
        QueryError: A node does not keep the order of tuples, such as a merge or a join.
    """
    if (lost := out_of_order(node)) is not None:
        raise QueryError(
            f"{what} above {lost.label}, where the order of tuples is lost",
            hint="apply it to a source directly, or after select, where and tumbling windows only",
        )


def require_arrival(node: Node, window: exp.Expr, text: QueryText) -> None:
    """Checks that the tuples come in the order of a source, for ORDER BY arrival.

    Raises:
        QueryError: They do not; the error points at the function.
    """
    if (lost := out_of_order(node)) is not None:
        what = f"{lost.label} has no order of arrival: only the tuples of one source have one"
        hint = (
            "apply it to one source, without documents 'files' and before UNION, JOIN and GROUP BY; or ORDER BY an"
            " attribute"
        )
        raise text.error(what, window, hint)


_NOT_GROWING = (
    "give a number of rows, as in ROWS 9 PRECEDING; count, sum, min, max, bool_and, bit_or and their like, and avg of"
    " types other than DECIMAL need none"
)
_NOT_SO_FAR = "give a number of rows, as in ROWS BETWEEN 9 PRECEDING AND 1 PRECEDING"


def windowed(relation: Relation, items: Sequence[Item], analyst: Analyst, text: QueryText) -> Relation:
    """The relation of the items of each tuple; items may contain functions over rows.

    Raises:
        QueryError: A function needs rows that are not supported, or there is an aggregate beside one.
    """
    windows = {render(window): window for item in items for window in item.tree.find_all(exp.Window)}
    by_order: dict[str, list[exp.Expr]] = {}
    for window in windows.values():
        by = window.args.get("partition_by") or []
        order = ", ".join(render(key) for key in (*by, *order_of(window)))
        by_order.setdefault(f"{len(by)} {order}", []).append(window)
    node, names = relation.node, dict[str, str]()
    for those in by_order.values():
        node = _node(node, those, items, analyst, text, names)

    def answer(tree: exp.Expr) -> exp.Expr:
        return named(names[render(tree)]) if isinstance(tree, exp.Window) else tree

    replaced = [Item(item.name, item.tree.copy().transform(answer, copy=False)) for item in items]
    for found in aggregates_in(*(item.tree for item in replaced)):
        hint = "compute it in a subquery, and apply OVER to its result"
        raise text.error("an aggregate beside OVER is not supported", found, hint)
    return select_items(node, replaced, analyst)


def _node(
    node: Node, windows: list[exp.Expr], items: Sequence[Item], analyst: Analyst, text: QueryText, names: dict[str, str]
) -> Node:
    """The node with the functions of one order as attributes; adds their names to `names`."""
    node, _, groups, sort_keys = partitioned(node, windows[0], items, analyst)
    if not sort_keys and order_of(windows[0]):
        require_arrival(node, windows[0], text)
    answers = analyst.columns(node.schema, [render(window) for window in windows])
    functions: list[Over] = []
    taken = Names(node.schema.names)
    for window, (_, domain) in zip(windows, answers, strict=True):
        names[render(window)] = name = taken.take(function_of(window))
        functions.append(_over(window, Attribute(name, domain), text))
    # Without ORDER BY, a group has no row that is the last so far.
    ahead = tuple(over for over in functions if over.ahead)
    if back := tuple(over for over in functions if not over.ahead):
        node = Node(RowWindow(back, sort_keys, groups), (node,), "row_window")
    return Node(LookAhead(ahead, sort_keys, groups), (node,), "look_ahead") if ahead else node


def _over(window: exp.Expr, attribute: Attribute, text: QueryText) -> Over:
    """The function with the rows of its frame."""
    name, expression = function_of(window), render(window.this)
    if name in (*RANKS, "lag", "lead"):
        if window.args.get("spec") is not None:
            raise text.error(f"{name} with ROWS or RANGE is not supported", window, "leave ROWS or RANGE out")
        if name in RANKS:
            return Over(attribute, expression)
        back = _offset(window, text) * (1 if name == "lag" else -1)
        return Over(attribute, expression, back, back)
    if name in OF_ALL or (window.args.get("spec") is None and not order_of(window)):
        if window.args.get("spec") is not None:
            raise text.error(f"{name} with ROWS or RANGE is not supported", window, "leave ROWS or RANGE out")
        return Over(attribute, expression, last=TO_THE_END)
    over = _frame(window, Over(attribute, expression), text)
    if over.last == TO_THE_END:
        return over
    if not over.is_rolling and (over.last or not over.grows):
        if over.last:
            what = "a frame from UNBOUNDED PRECEDING is supported only up to the CURRENT ROW"
            raise text.error(what, window, _NOT_SO_FAR)
        raise text.error(f"{name} of all rows so far would have to keep all rows", window, _NOT_GROWING)
    return over


def order_of(window: exp.Expr) -> list[exp.Expr]:
    """The entries of the ORDER BY of OVER; none without one."""
    return [] if window.args.get("order") is None else list(window.args["order"].expressions)


def _offset(window: exp.Expr, text: QueryText) -> int:
    """Number of rows that lag looks back, or lead ahead; 1 by default."""
    name, arguments = function_of(window), window.this.expressions
    if len(arguments) < 2:
        return 1
    if (found := whole_number(arguments[1].unnest())) is None:
        raise text.error(f"{name} needs a constant number of rows", window, f"write {name}(v, 2)")
    return found


_A_RANGE = "write ORDER BY ts RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW"


def _frame(window: exp.Expr, over: Over, text: QueryText) -> Over:
    """The function with the rows of its frame, or with peers by default."""
    if (spec := window.args.get("spec")) is None:
        return replace(over, peers=True)
    parts = (spec.args.get(part) for part in ("kind", "start", "start_side", "end", "end_side"))
    kind, start, start_side, end, end_side = (part.upper() if isinstance(part, str) else part for part in parts)
    if not order_of(window) and not start == end == "UNBOUNDED":
        raise text.error(f"{kind} without ORDER BY is not supported", window, LAST_ROWS)
    if kind == "ROWS":
        first = _rows_before(start, start_side)
        last = 0 if end is None else TO_THE_END if end == "UNBOUNDED" else _rows_before(end, end_side)
        if last is None or (first is None and start != "UNBOUNDED"):
            raise text.error("ROWS is supported only with constant numbers", window, LAST_ROWS)
        if first is not None and first < last:
            hint = "exchange its ends: BETWEEN the earlier one AND the later one"
            raise text.error("this frame is always empty", window, hint)
        return replace(over, first=first, last=last)
    if kind != "RANGE":
        raise text.error(f"{kind} is not supported", window, LAST_ROWS)
    ends_here, order = end in (None, "CURRENT ROW"), order_of(window)
    if start == end == "UNBOUNDED":
        return replace(over, last=TO_THE_END)
    if start == "UNBOUNDED" and ends_here:
        return replace(over, peers=True)
    if len(order) > 1 or order[0].args.get("desc"):
        raise text.error("RANGE with a distance needs one ascending ORDER BY", window, _A_RANGE)
    if not (isinstance(start, exp.Expr) and start_side == "PRECEDING" and ends_here):
        raise text.error("RANGE is supported only from a distance before to the CURRENT ROW", window, _A_RANGE)
    if (name := function_of(window)) in BY_PLACE:
        raise text.error(f"{name} with RANGE is not supported: equal times have no order", window, LAST_ROWS)
    return replace(over, distance=render(start))


def _rows_before(end: exp.Expr | str, side: str | None) -> int | None:
    """Distance in rows from an end of a frame to the tuple, positive for rows before it; None if unknown."""
    if end == "CURRENT ROW":
        return 0
    number = whole_number(end) if isinstance(end, exp.Expr) else None
    return number if number is None or side == "PRECEDING" else -number


@dataclass(frozen=True, slots=True)
class TupleWindow:
    """Windows of `size` tuples of each group by `per`; one is complete after every `slide` tuples.

    Raises:
        UsageError: Size or slide is not positive.
    """

    size: int
    slide: int
    per: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.size < 1 or self.slide < 1:
            what = f"windows of {self.size} tuples with a slide of {self.slide}"
            raise UsageError(what, hint="size and slide are at least 1")


def over_tuples(node: Node, window: TupleWindow, items: Sequence[Item], analyst: Analyst, text: QueryText) -> Relation:
    """The relation of the complete windows: the groups, then the items, over aggregates of the windows' tuples.

    Raises:
        QueryError: The tuples have no order, or an item uses an attribute outside of aggregates.
    """
    require_arrival_order(node, "windows over tuples")
    number = Attribute(unique("number", node.schema.names), Domain("BIGINT", nullable=False))
    taken, names = Names([*node.schema.names, number.name]), dict[str, str]()
    functions = [Over(number, "row_number()")]
    for tree in aggregates_in(*(item.tree for item in items)):
        if render(tree) not in names:
            ((by_itself, domain),) = analyst.columns(node.schema, [render(tree)])
            names[render(tree)] = name = taken.take(by_itself)
            functions.append(Over(Attribute(name, domain), render(tree), window.size - 1))
    groups = tuple(node.schema.attribute(name).name for name in window.per)
    rolled = Node(RowWindow(tuple(functions), (), groups), (node,), "row_window")
    behind = f"({quoted(number.name)} - {window.size})"
    complete = expression(f"{behind} >= 0 AND {behind} % {window.slide} = 0")
    relation = where(Relation.of(rolled), complete, analyst)
    known = names | {render(named(group)): group for group in groups}
    of = "a group of the windows", "aggregate it, as in max(v)"
    replaced = [
        Item(item.name or names.get(render(item.tree)), over_groups(item.tree, known, text, of)) for item in items
    ]
    return select_items(relation.node, [*(Item(name, named(name)) for name in groups), *replaced], analyst)
