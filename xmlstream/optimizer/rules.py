"""What makes a plan cheaper without changing what it means: one rule, one function, from plan to plan.

No rule loses a punctuation. In this order a rule finds what those before it made of the plan: removing a distinct first
lets predicates pass and columns be pruned.
"""

from __future__ import annotations

from collections.abc import Callable

from xmlstream.optimizer.aggregate_panes import aggregate_panes
from xmlstream.optimizer.choose_joins import Choice, choices, choose_joins
from xmlstream.optimizer.choose_purges import PurgeChoice, choose_purges, purge_choices
from xmlstream.optimizer.collapse_projections import collapse_projections
from xmlstream.optimizer.eliminate_distinct import eliminate_distinct
from xmlstream.optimizer.flatten_merges import flatten_merges
from xmlstream.optimizer.insert_describe import insert_describe
from xmlstream.optimizer.prune_columns import prune_columns
from xmlstream.optimizer.punctuate_excluded import punctuate_excluded
from xmlstream.optimizer.push_down_predicates import push_down_predicates
from xmlstream.plan.loads import Loads
from xmlstream.plan.nodes import Node

RULES: tuple[Callable[[Node], Node], ...] = (
    eliminate_distinct,
    push_down_predicates,
    collapse_projections,
    flatten_merges,
    choose_joins,
    prune_columns,
    aggregate_panes,
    punctuate_excluded,
    insert_describe,
)


def optimized(root: Node, measured: Callable[[], Loads] = dict) -> Node:
    """The plan after all rules; joins of many purge as costs least, by what a former run of it has measured."""
    for rule in RULES:
        root = rule(root)
    return choose_purges(root, measured)


def join_choices(root: Node) -> list[Choice]:
    """What there is to choose from for the joins of a plan, when it comes to that."""
    for rule in RULES[: RULES.index(choose_joins)]:
        root = rule(root)
    return list(choices(root))


def purges(root: Node, loads: Loads) -> list[PurgeChoice]:
    """How the joins of many of a plan purge, after all rules."""
    return list(purge_choices(optimized(root), loads))
