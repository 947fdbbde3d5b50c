"""Eliminates distincts if no operator above depends on duplicates; this saves their state.

Some operators have the same result for R and δ(R), since their meaning uses only t ∈ R; they declare this
(`ignores_duplicates`). Others pass duplicates on (`passes_duplicates`): then the operators above them decide. A
distinct with two readers stays unless neither depends on duplicates.

The emitted punctuations are the same. Distinct propagates all and adds none (Tucker et al. 2003, Table 3). Operators
above decide by their kept tuples what they propagate (Table 4), and those that ignore duplicates keep each tuple once
in any case, so they also keep no more than before. A join passes tuples on, too, but it keeps every duplicate, and
pairs each with each; so do sort and top_n. Below these, and below all operators that count, a distinct stays.

Values that compare as equal are one value for distinct, for example 0.0 and -0.0. So a distinct also stays below
operators that might distinguish them.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xmlstream.optimizer.rewrite import bottom_up, rebuilt, top_down
from xmlstream.plan.nodes import Node


@dataclass(frozen=True, slots=True)
class _Need:
    """The attributes that readers need of a node, and whether they depend on its duplicates."""

    needed: AbstractSet[str]
    counts: bool

    def __or__(self, other: _Need) -> _Need:
        return _Need(self.needed | other.needed, self.counts or other.counts)

    def superfluous(self, node: Node) -> bool:
        """Whether the node is a distinct, and no reader depends on duplicates."""
        return node.operator.eliminates_duplicates and not self.counts


def eliminate_distinct(root: Node) -> Node:
    """Removes the distincts that do not change the results.

    A count of duplicates that no operator needs may change; `prune_columns` removes it.
    """
    need = top_down(root, _Need(frozenset(root.schema.names), counts=True), _of_inputs, _Need.__or__)
    return bottom_up(root, lambda node, inputs: inputs[0] if need[node].superfluous(node) else rebuilt(node, inputs))


def _of_inputs(node: Node, need: _Need) -> list[_Need]:
    """The needs of a node at each of its inputs."""
    operator, needed, schemas = node.operator, need.needed, node.input_schemas
    if need.superfluous(node):
        return [_Need(needed, counts=False)]
    counted = [not operator.ignores_duplicates(side, needed, *schemas) for side in range(len(schemas))]
    counts_any = any(counted) and (need.counts or not operator.passes_duplicates(needed, *schemas))
    return [
        _Need(required, counts=counts_any and counts_side)
        for required, counts_side in zip(operator.required(needed, *schemas), counted, strict=True)
    ]
