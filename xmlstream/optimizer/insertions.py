"""Inserts operators that save work: aggregation of panes below windows, and describes and punctuations below groups.

**Panes.** With windows of ten seconds that slide by one second, every tuple is in ten windows. Panes have the greatest
common divisor of size and slide as their length, so that each window consists of whole panes (Li et al. 2005, "No pane,
no gain"). If the operator above a window merges partial aggregates, the tuples of each pane are pre-aggregated in each
slice, and the window copies the partial aggregates instead of the tuples. State and results do not change, nor when
results go out: a pane closes when its timestamps close.

**Describe.** An operator with a grouping of interest needs only punctuations that describe the grouping (Tucker et al.
2007, §3.1, §7). So a describe below it changes no result. This describe can be pushed down through operators that give
the lineage of their attributes: it is equivalent to a describe of the corresponding attributes on each input, because
"for all values of the other attributes" distributes over a statement about all inputs. So the rule carries groupings of
interest down the plan, in terms of each node. The describe watches every attribute outside the grouping, so that no
punctuations are lost that describe the keys only together.

**Excluded tuples.** Selects and outer joins punctuate what they never emit, if this closes groups above them.
`WHERE hour < 5 GROUP BY sid`: once the hours up to 4 are closed, every group is closed, since later hours are not
selected. For that the select itself must emit a punctuation for hours from 5 on (Tucker et al. 2003, §6.2). The rule
applies if the predicate restricts an attribute that groups above the select (of a group_by, a distinct, or the keys of
a join) do not have, or if an order above it begins with what is excluded: `WHERE value > 250 ORDER BY value`. It does
not matter what sources promise, since they may also send other punctuations. With `punctuations 'all'` so do those
of a result (`punctuate_results`).

What is excluded and what is closed may together be all. Of a closed stream an operator cuts the values of kept tuples
out at its keys only (`xmlstream.operators.state.blocked_set`), so other attributes may then close later than without
the rule.

`r LEFT JOIN s … GROUP BY s.v`: punctuations of s on its key do not close groups of v, because the join also emits nulls
for v, in tuples without a partner. Only a null key comes with these nulls; the join emits a punctuation that states
this, if groups above it have other attributes of s than the key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TypeAlias

from xmlstream.operators.behaviour import CutsPanes, MergesPartials
from xmlstream.operators.closing_conditions import Prefix
from xmlstream.operators.describe import Describe
from xmlstream.operators.expressions.aggregates import attributes_of
from xmlstream.operators.pre_aggregate import PreAggregate
from xmlstream.optimizer.rewrite import bottom_up, readers, rebuilt, top_down
from xmlstream.plan.nodes import Node, results


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


Names: TypeAlias = Sequence[str] | None
"""The attributes that punctuations must describe to help; None if others help, too, or there are several readers."""


def _names_of_inputs(node: Node, names: Names, uses: Counter[Node]) -> Sequence[Names]:
    """The names for the inputs of a node: its groupings, or `names` in terms of each input; `uses` counts readers."""
    if found := _sole_groupings(node):
        return [found.get(i) for i in range(len(node.inputs))]
    return _lineage_of(node, names, uses) or [None for _ in node.inputs]


def _lineage_of(node: Node, names: Names, uses: Counter[Node]) -> Sequence[Sequence[str]] | None:
    """The attributes `names` in terms of each input; None if describe does not commute with the node."""
    if names is None or uses[node] > 1 or _sole_groupings(node):
        return None
    return node.operator.lineage(names, *node.input_schemas)


def _sole_groupings(node: Node) -> dict[int, Sequence[str]]:
    """For each input, the grouping if only punctuations that describe it help the node."""
    promises = [(schema, ()) for schema in node.input_schemas]
    waited_for = node.operator.enabled_by(*node.input_schemas).groupings(promises)
    return {grouping.input: grouping.attributes for grouping in waited_for if grouping.sole}


def insert_describe(root: Node) -> Node:
    """Inserts a describe of the keys below each group_by and top_n, as near to the sources as possible.

    It is inserted only if a scheme promises punctuations that restrict other attributes; else it would remove nothing.
    """
    uses = readers(root)
    nothing: Names = None
    needed = top_down(root, nothing, lambda node, names: _names_of_inputs(node, names, uses), lambda one, _: one)

    def described(node: Node, inputs: tuple[Node, ...]) -> Node:
        edges = zip(node.inputs, inputs, _names_of_inputs(node, needed[node], uses), strict=True)
        return rebuilt(
            node, [new if _lineage_of(n, names, uses) else _described(n, new, names) for n, new, names in edges]
        )

    return bottom_up(root, described)


def _described(node: Node, new: Node, names: Names) -> Node:
    """The rewritten node below a describe of the names; without it if no scheme restricts other attributes."""
    folded = {name.lower() for name in names or ()}
    if names is None or all(folded.issuperset(map(str.lower, scheme.attributes)) for scheme in node.schemes):
        return new
    described = tuple(name for name in node.schema.names if name.lower() in folded)
    watched = tuple(name for name in node.schema.names if name.lower() not in folded)
    return Node(Describe(described, watched), (new,), "describe")


Groups: TypeAlias = tuple[tuple[str, ...], ...]
"""Groupings that operators above a node wait for, in terms of its attributes."""


def punctuate_excluded(root: Node) -> Node:
    """Makes each select and outer join punctuate what it excludes, if groups above it close sooner by that."""
    uses = readers(root)
    nothing: Groups = ()
    awaited = top_down(
        root, nothing, lambda node, groups: _groups_of_inputs(node, groups, uses), lambda one, other: (*one, *other)
    )

    def punctuating(node: Node, inputs: tuple[Node, ...]) -> Node:
        closes_more = uses[node] == 1 and _closes_more(node, awaited[node])
        return rebuilt(node, inputs, node.operator.punctuating() if closes_more else None)

    return bottom_up(root, punctuating)


def punctuate_results(root: Node, chosen: Collection[int]) -> Node:
    """Has some results, by their numbers, also say what the selects below them leave out (Tucker et al. 2003, §6.2).

    Those count that are reached through operators that keep no tuples.
    """
    reached: set[Node] = set()

    def reach(node: Node) -> None:
        if node not in reached and node.inputs and not node.state_schema.logs:
            reached.add(node)
            for below in node.inputs:
                reach(below)

    for number, result in enumerate(results(root)):
        if number in chosen:
            reach(result)

    def punctuating(node: Node, inputs: tuple[Node, ...]) -> Node:
        says_more = node in reached and bool(node.operator.excludes(*node.input_schemas))
        return rebuilt(node, inputs, node.operator.punctuating() if says_more else None)

    return bottom_up(root, punctuating) if reached else root


def _groups_of_inputs(node: Node, groups: Groups, uses: Counter[Node]) -> Sequence[Groups]:
    """The groupings that are awaited from each input: the node's, and those above it that have terms in the input."""
    own = list(_waited_for(node))
    lines = [node.operator.lineage(names, *node.input_schemas) for names in groups] if uses[node] <= 1 else []
    return [
        (*(names for i, names in own if i == at), *(tuple(line[at]) for line in lines if line is not None))
        for at in range(len(node.inputs))
    ]


def _waited_for(node: Node) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The groupings whose closing lets a node emit or purge, each with the number of its input."""
    nothing = [(schema, ()) for schema in node.input_schemas]
    conditions = [model.until for model in node.state_schema.models]
    for condition in (node.operator.enabled_by(*node.input_schemas), *conditions):
        if isinstance(condition, Prefix):  # what is excluded of the ordered attribute closes the prefix, too
            yield condition.input, condition.groups
            continue
        for grouping in condition.groupings(nothing):
            yield grouping.input, tuple(grouping.attributes)


def _closes_more(node: Node, groups: Groups) -> bool:
    """Whether excluded tuples help to close a group: by an attribute outside it."""
    if not groups:
        return False
    excluded = node.operator.excludes(*node.input_schemas)
    restricted = [{node.schema.names[i].lower() for i in p.restricted} for p in excluded]
    grouped = [{name.lower() for name in names} for names in groups]
    return any(at - by for at in restricted for by in grouped)
