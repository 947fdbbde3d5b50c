"""Windows over tuples as a plan: aggregates over so many tuples of each group, in the order in which they come.

A window is complete with its last tuple, so nothing waits for punctuations; one that the stream ends in is not put out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from operators.expressions.dialect import expression, offset, render
from operators.expressions.over import Over
from operators.expressions.references import named
from operators.row_window import RowWindow
from punct_ns.domain import Domain
from punct_ns.errors import UsageError
from punct_ns.schema import Attribute
from punct_ns.slices import quoted
from xmlstream.plan.nodes import Node
from xmlstream.sql.analysis import Analyst
from xmlstream.sql.grouping import aggregates_in
from xmlstream.sql.plan_builder import Item, project, unique, where
from xmlstream.sql.positions import require_positions
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.relation import Relation


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
    for tree in (found for item in items for found in aggregates_in(item.tree)):
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
        Item(item.name or names.get(render(item.tree)), _over(item.tree, names, groups, text)) for item in items
    ]
    return project(relation.node, [*(Item(name, named(name)) for name in groups), *replaced], analyst)


def _over(tree: exp.Expr, names: dict[str, str], groups: Sequence[str], text: QueryText) -> exp.Expr:
    """The item over the aggregates' attributes."""
    known = {*names.values(), *groups}

    def over(node: exp.Expr) -> exp.Expr:
        return named(names[render(node)]) if render(node) in names else node

    replaced = tree.copy().transform(over, copy=False)
    for column in replaced.find_all(exp.Column):
        if column.name not in known:
            what = f"{column.name} is neither what windows are counted per nor aggregated"
            raise text.error(what, offset(column), "aggregate it, as in max(v)")
    return replaced
