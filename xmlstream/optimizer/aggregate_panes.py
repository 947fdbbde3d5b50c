"""Aggregation by panes: of windows that overlap, each tuple is aggregated once, to its pane, and panes are multiplied.

A window of ten seconds that slides by one holds every tuple ten times. Cut into panes, as long as size and slide have
in common, windows consist of whole panes (Li et al. 2005, "No pane, no gain"). So where what is above a window merges
partial aggregates, these are made of the tuples of each pane first, slice by slice, and the window multiplies them.
What is kept, and what goes out when, is as before: a pane is closed when its moments are.
"""

from __future__ import annotations

from operators.behaviour import CutsPanes, MergesPartials
from operators.expressions.aggregates import attributes_of
from operators.pre_aggregate import PreAggregate
from xmlstream.optimizer.rewrite import bottom_up, over
from xmlstream.plan.nodes import Node


def aggregate_panes(root: Node) -> Node:
    """Each operator that merges partial aggregates, over windows of panes where it was over windows that overlap."""
    return bottom_up(root, lambda node, inputs: over(node, [_of_panes(node, new) for new in inputs]))


def _of_panes(above: Node, window: Node) -> Node:
    """The windows of a node as windows of panes, for what is above to merge; the node where that is not the same."""
    if not (isinstance(above.operator, MergesPartials) and isinstance(window.operator, CutsPanes)):
        return window
    if (merged := above.operator.merged) is None:
        return window
    (keys, aggregates), below = merged, window.inputs[0]
    in_panes = window.operator.in_panes(keys, attributes_of(aggregates), *(node.schema for node in window.inputs))
    if in_panes is None:
        return window
    cut, of_panes, pane = in_panes
    panes = Node(cut, (below,), "panes")
    groups = (*(key for key in keys if key.lower() in map(str.lower, panes.schema.names)), pane)
    return Node(of_panes, (Node(PreAggregate(groups, aggregates), (panes,), "pre_aggregate"),), window.label)
