"""The rules of the optimizer, in order: each is a function from plan to plan that makes it cheaper with equal results.

No rule loses a punctuation, though `punctuate_excluded` may delay some for others, and joins in another order speak of
other keys when they conclude from the tuples that they keep. The order matters: for example, removing a distinct lets
later rules push predicates down and prune columns.
"""

from __future__ import annotations

from collections.abc import Callable

from xmlstream.operators.expressions.depth import at_any_depth
from xmlstream.optimizer.choose_joins import Choice, choices_between, choose_joins, share_closings
from xmlstream.optimizer.insertions import aggregate_panes, insert_describe, punctuate_excluded
from xmlstream.optimizer.push_closed import push_closed
from xmlstream.optimizer.push_down import bound_joins, compute_keys, push_down_predicates
from xmlstream.optimizer.simplify import collapse_projections, eliminate_distinct, flatten_merges, prune_columns
from xmlstream.plan.nodes import Node

RULES: tuple[Callable[[Node], Node], ...] = (
    eliminate_distinct,
    prune_columns,
    push_down_predicates,
    collapse_projections,
    compute_keys,
    flatten_merges,
    bound_joins,
    choose_joins,
    prune_columns,
    share_closings,
    aggregate_panes,
    push_closed,
    punctuate_excluded,
    insert_describe,
)


@at_any_depth
def optimized(root: Node) -> Node:
    """Applies all rules to a plan, in order."""
    for rule in RULES:
        root = rule(root)
    return root


@at_any_depth
def join_choices(root: Node) -> list[Choice]:
    """The choices of `choose_joins` for a plan, after the rules before it."""
    for rule in RULES[: RULES.index(choose_joins)]:
        root = rule(root)
    return choices_between(root)
