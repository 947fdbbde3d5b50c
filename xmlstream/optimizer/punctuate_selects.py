"""Selects that punctuate what their predicates exclude, where groups above are closed by it.

`WHERE hour < 5 GROUP BY sid`: once the hours up to 4 are closed, so is every group, since later hours are not selected.
That needs a punctuation on hours from 5 on, which the select says of itself (Tucker et al. 2003, §6.2). It is asked for
where a scheme promises punctuations on an attribute that the predicate restricts, and that is not grouped by.
"""

from __future__ import annotations

from xmlstream.optimizer.grouping_lineage import NamesAsked, asked_below
from xmlstream.optimizer.rewrite import bottom_up, over, readers
from xmlstream.plan.nodes import Node


def punctuate_selects(root: Node) -> Node:
    """Each select beneath a group_by or a top_n that is closed sooner by what the select excludes punctuates it."""
    uses = readers(root)
    asked = asked_below(root, uses)

    def punctuating(node: Node, inputs: tuple[Node, ...]) -> Node:
        closes_more = uses[node] == 1 and _closes_more(node, asked[node])
        return over(node, inputs, node.operator.punctuating() if closes_more else None)

    return bottom_up(root, punctuating)


def _closes_more(node: Node, names: NamesAsked) -> bool:
    """Whether what a node excludes restricts an attribute that a scheme speaks of, and that is not asked for."""
    if names is None:
        return False
    excluded = node.operator.excludes(*(below.schema for below in node.inputs))
    restricted = {node.schema.names[i].lower() for p in excluded for i in p.restricted}
    promised = {name.lower() for scheme in node.schemes for name in scheme.attributes}
    return bool(restricted & promised - {name.lower() for name in names})
