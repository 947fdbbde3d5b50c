"""Makes selects and outer joins punctuate the tuples that they never emit, if this closes groups above them.

`WHERE hour < 5 GROUP BY sid`: once the hours up to 4 are closed, every group is closed, since later hours are not
selected. For that the select itself must emit a punctuation for hours from 5 on (Tucker et al. 2003, §6.2). The rule
applies if the predicate restricts an attribute that groups above the select (of a group_by, a distinct, or the keys of
a join) do not have, or if an order above it begins with what is excluded: `WHERE value > 250 ORDER BY value`. It does
not matter what sources promise, since they may also send other punctuations.

What is excluded and what is closed may together be all. Of a closed stream an operator cuts the values of kept tuples
out at its keys only (`xmlstream.operators.state.blocked_set`), so other attributes may then close later than without
the rule.

`r LEFT JOIN s … GROUP BY s.v`: punctuations of s on its key do not close groups of v, because the join also emits nulls
for v, in tuples without a partner. Only a null key comes with these nulls; the join emits a punctuation that states
this, if groups above it have other attributes of s than the key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from xmlstream.operators.closing_conditions import Prefix
from xmlstream.optimizer.rewrite import bottom_up, readers, rebuilt, top_down
from xmlstream.plan.nodes import Node

Groups: TypeAlias = tuple[tuple[str, ...], ...]
"""Groupings that operators above a node wait for, in terms of its attributes."""


def punctuate_excluded(root: Node) -> Node:
    """Makes each select and outer join punctuate what it excludes, if groups above it close sooner by that."""
    uses = readers(root)
    nothing: Groups = ()
    awaited = top_down(
        root, nothing, lambda node, groups: _of_inputs(node, groups, uses), lambda one, other: (*one, *other)
    )

    def punctuating(node: Node, inputs: tuple[Node, ...]) -> Node:
        closes_more = uses[node] == 1 and _closes_more(node, awaited[node])
        return rebuilt(node, inputs, node.operator.punctuating() if closes_more else None)

    return bottom_up(root, punctuating)


def _of_inputs(node: Node, groups: Groups, uses: Counter[Node]) -> Sequence[Groups]:
    """The groupings awaited from each input: those of the node, and those above it in terms of the input."""
    own = list(_waited_for(node))
    lines = [node.operator.lineage(names, *node.input_schemas) for names in groups] if uses[node] <= 1 else []
    return [
        (
            *(names for i, names in own if i == at),
            *(tuple(line[at]) for line in lines if line is not None),
        )
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
