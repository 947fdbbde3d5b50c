"""The rules of the optimizer, in order: each is a function from plan to plan that makes it cheaper with equal results.

No rule loses a punctuation, though `punctuate_excluded` may delay some for others. The order matters: for example,
removing a distinct lets later rules push predicates down and prune columns.
"""

from __future__ import annotations

from collections.abc import Callable

from xmlstream.optimizer.aggregate_panes import aggregate_panes
from xmlstream.optimizer.choose_joins import Choice, choices_between, choose_joins
from xmlstream.optimizer.collapse_projections import collapse_projections
from xmlstream.optimizer.computed_keys import compute_keys
from xmlstream.optimizer.eliminate_distinct import eliminate_distinct
from xmlstream.optimizer.flatten_merges import flatten_merges
from xmlstream.optimizer.insert_describe import insert_describe
from xmlstream.optimizer.prune_columns import prune_columns
from xmlstream.optimizer.punctuate_excluded import punctuate_excluded
from xmlstream.optimizer.push_down_predicates import push_down_predicates
from xmlstream.plan.nodes import Node

RULES: tuple[Callable[[Node], Node], ...] = (
    eliminate_distinct,
    push_down_predicates,
    collapse_projections,
    compute_keys,
    flatten_merges,
    choose_joins,
    prune_columns,
    aggregate_panes,
    punctuate_excluded,
    insert_describe,
)


def optimized(root: Node) -> Node:
    """Applies all rules to a plan, in order."""
    for rule in RULES:
        root = rule(root)
    return root


def join_choices(root: Node) -> list[Choice]:
    """The choices of `choose_joins` for a plan, after the rules before it."""
    for rule in RULES[: RULES.index(choose_joins)]:
        root = rule(root)
    return choices_between(root)
