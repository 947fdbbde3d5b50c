"""Elimination of distincts whose duplicates nothing above can tell: with them go their state, and what only it needed.

Some operators answer the same of R and of δ(R), since their meaning speaks of t ∈ R alone; they say so themselves
(`ignores_duplicates`). Others hand on the tuples of δ(R), only some of them more often (`passes_duplicates`): what is
below them is for those above them to tell. A distinct that two operators read stays unless neither can tell.

The punctuations that come out are the same: distinct propagates all and adds none (Tucker et al. 2003, Table 3), those
above it judge what they may propagate by the tuples that they keep (Table 4), and all that ignore duplicates keep each
tuple once whatever comes. Nor do they keep more than before. A join hands tuples on, too, but it keeps every duplicate,
and pairs each with each; so do sort and top_n. Below those a distinct stays, as below all that counts.

Values that compare as equal are one to distinct, 0.0 and -0.0 among them. It stays below what might tell them apart.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xmlstream.optimizer.rewrite import bottom_up, over, top_down
from xmlstream.plan.nodes import Node


@dataclass(frozen=True, slots=True)
class _Asked:
    """The attributes that are needed of a node, and whether its duplicates are told apart."""

    needed: AbstractSet[str]
    told: bool

    def __or__(self, other: _Asked) -> _Asked:
        return _Asked(self.needed | other.needed, self.told or other.told)

    def superfluous(self, node: Node) -> bool:
        """Whether the node is a distinct whose duplicates no reader of it can tell."""
        return node.operator.eliminates_duplicates and not self.told


def eliminate_distinct(root: Node) -> Node:
    """The plan without the distincts that change nothing of its results.

    What counts duplicates, but is itself not asked for, may count others then; `prune_columns` takes it out.
    """
    asked = top_down(root, _Asked(frozenset(root.schema.names), told=True), _asks, _Asked.__or__)
    return bottom_up(root, lambda node, inputs: inputs[0] if asked[node].superfluous(node) else over(node, inputs))


def _asks(node: Node, asked: _Asked) -> list[_Asked]:
    """What a node asks of each input."""
    operator, needed = node.operator, asked.needed
    if asked.superfluous(node):
        return [_Asked(needed, told=False)]
    schemas = [below.schema for below in node.inputs]
    tells = [not operator.ignores_duplicates(side, needed, *schemas) for side in range(len(schemas))]
    tells_any = any(tells) and (asked.told or not operator.passes_duplicates(needed, *schemas))
    return [
        _Asked(required, told=tells_any and tells_side)
        for required, tells_side in zip(operator.required(needed, *schemas), tells, strict=True)
    ]
