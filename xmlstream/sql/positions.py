"""Positions of tuples in a source: whether a node's tuples come with theirs, which operators of their order need."""

from __future__ import annotations

from operators.project import Project
from operators.punctuate import Punctuate
from operators.row_window import RowWindow
from operators.select import Select
from operators.window import Window
from punct_ns.errors import QueryError
from xmlstream.plan.nodes import Node, Scan


def require_positions(node: Node, what: str) -> None:
    """Makes sure that the order in which tuples come is known: a source's, through what hands it on.

    Raises:
        QueryError: Something below the node has no order of tuples, such as a merge or a join.
    """
    below = node
    while not isinstance(below.operator, Scan):
        operator = below.operator
        is_by_arrival = isinstance(operator, RowWindow) and not operator.keys
        is_tumbling = isinstance(operator, Window) and operator.overlapping == 1
        if not (is_by_arrival or is_tumbling or isinstance(operator, Select | Project | Punctuate)):
            raise QueryError(
                f"{what} above {below.label}, where the order of tuples is lost",
                hint="ask for it directly on a source, or through select, where and tumbling windows",
            )
        (below,) = below.inputs
