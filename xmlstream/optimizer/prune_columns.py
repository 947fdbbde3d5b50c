"""Column pruning: reads, passes and keeps only attributes that an operator above requires.

Attributes in a source's schemes are always read, since the grammar check needs the attributes that punctuations
restrict. If punctuations restrict further ones, these are read for that check only
(`xmlstream.sources.xml.grammar.grammar_filter`).
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from operator import or_

from xmlstream.operators.behaviour import is_identity
from xmlstream.optimizer.rewrite import bottom_up, rebuilt, top_down
from xmlstream.plan.nodes import Node, narrowed


def prune_columns(root: Node) -> Node:
    """Removes the attributes that no operator above needs; a source may keep some more."""
    whole: AbstractSet[str] = frozenset(root.schema.names)
    needed = top_down(root, whole, _required, or_)

    def pruned(node: Node, inputs: tuple[Node, ...]) -> Node:
        operator = node.operator.pruned(_at_least_one(node, needed[node]))
        if operator.exact_inputs:
            # An operator that keeps whole tuples must not keep attributes that only the source's check needs.
            edges = zip(inputs, node.inputs, _required(node, needed[node]), strict=True)
            inputs = tuple(narrowed(new, [n for n in below.schema.names if n in names]) for new, below, names in edges)
        if inputs and is_identity(operator, *(below.schema for below in inputs)):
            return inputs[0]
        return rebuilt(node, inputs, operator)

    return bottom_up(root, pruned)


def _required(node: Node, needed: AbstractSet[str]) -> Sequence[AbstractSet[str]]:
    """The attributes that a node needs of each input to compute those that are needed of it."""
    return node.operator.required(_at_least_one(node, needed), *node.input_schemas)


def _at_least_one(node: Node, needed: AbstractSet[str]) -> AbstractSet[str]:
    """The needed attributes; if there are none, one attribute, preferably one that the node itself uses.

    Tuples without attributes could not be counted apart, or closed by a punctuation. A source ensures this itself.
    """
    if needed or not node.inputs or not node.schema.names:
        return needed
    used = () if node.operator.exact_inputs else node.operator.required(frozenset(), *node.input_schemas)
    own = node.schema.names
    return frozenset([next((name for name in own if any(name in names for names in used)), own[0])])
