"""Column pruning: no attribute is read, handed on or kept that no operator above requires.

No attribute that a scheme names is left out: what punctuations promise to speak of, the check of the grammar needs.
What else they turn out to restrict is read for that check alone (`sources.xml.grammar.grammar_filter`).
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from operator import or_

from operators.behaviour import is_identity
from xmlstream.optimizer.rewrite import bottom_up, over, top_down
from xmlstream.plan.nodes import Node, narrowed


def prune_columns(root: Node) -> Node:
    """The plan in which each node has the attributes that are needed of it, and perhaps more of a source."""
    whole: AbstractSet[str] = frozenset(root.schema.names)
    needed = top_down(root, whole, _required, or_)

    def pruned(node: Node, inputs: tuple[Node, ...]) -> Node:
        operator = node.operator.pruned(_at_least_one(node, needed[node]))
        if operator.exact_inputs:
            # What keeps whole tuples must not keep a source's attributes that nobody reads.
            required = _required(node, needed[node])
            inputs = tuple(map(_narrowed, inputs, node.inputs, required))
        if inputs and is_identity(operator, *(below.schema for below in inputs)):
            return inputs[0]
        return over(node, inputs, operator)

    return bottom_up(root, pruned)


def _required(node: Node, needed: AbstractSet[str]) -> Sequence[AbstractSet[str]]:
    """The attributes of each input that a node needs for what is needed of it."""
    return node.operator.required(_at_least_one(node, needed), *(below.schema for below in node.inputs))


def _at_least_one(node: Node, needed: AbstractSet[str]) -> AbstractSet[str]:
    """What is needed; of a node of which nothing is, one attribute, if it can be one that it looks at itself.

    A tuple without attributes could not be told from another, nor closed by a punctuation. A source takes care of that
    itself.
    """
    if needed or not node.inputs or not node.schema.names:
        return needed
    schemas = [below.schema for below in node.inputs]
    used = () if node.operator.exact_inputs else node.operator.required(frozenset(), *schemas)
    own = node.schema.names
    return frozenset([next((name for name in own if any(name in names for names in used)), own[0])])


def _narrowed(new: Node, below: Node, required: AbstractSet[str]) -> Node:
    return narrowed(new, [name for name in below.schema.names if name in required])
