"""Aggregation by panes: aggregates each tuple once, into its pane, and assigns panes to overlapping windows.

With windows of ten seconds that slide by one second, every tuple is in ten windows. Panes have the greatest common
divisor of size and slide as their length, so that each window consists of whole panes (Li et al. 2005, "No pane, no
gain"). If the operator above a window merges partial aggregates, the tuples of each pane are pre-aggregated in each
slice, and the window copies the partial aggregates instead of the tuples. State and results do not change, nor when
results go out: a pane closes when its timestamps close.
"""

from __future__ import annotations

from xmlstream.operators.behaviour import CutsPanes, MergesPartials
from xmlstream.operators.expressions.aggregates import attributes_of
from xmlstream.operators.pre_aggregate import PreAggregate
from xmlstream.optimizer.rewrite import bottom_up, rebuilt
from xmlstream.plan.nodes import Node


def aggregate_panes(root: Node) -> Node:
    """Puts each operator that merges partial aggregates over windows of panes instead of overlapping windows."""
    return bottom_up(root, lambda node, inputs: rebuilt(node, [_of_panes(node, new) for new in inputs]))


def _of_panes(above: Node, window: Node) -> Node:
    """A window node as windows of panes for the operator above; the node itself if results would differ."""
    if not (isinstance(above.operator, MergesPartials) and isinstance(window.operator, CutsPanes)):
        return window
    if (merged := above.operator.merged) is None:
        return window
    (keys, aggregates), below = merged, window.inputs[0]
    in_panes = window.operator.in_panes(keys, attributes_of(aggregates), *window.input_schemas)
    if in_panes is None:
        return window
    cut, of_panes, pane = in_panes
    panes = Node(cut, (below,), "panes")
    groups = (*(key for key in keys if key.lower() in map(str.lower, panes.schema.names)), pane)
    return Node(of_panes, (Node(PreAggregate(groups, aggregates), (panes,), "pre_aggregate"),), window.label)
