"""Collections of all values of a group in an order of their own: `sort_array(collect_list(v))` as one aggregate.

What `collect_list` gives depends on the order in which tuples come, and is refused by itself; sorted by its values it
does not. So a join can nest: `sort_array(collect_list(named_struct('at', b.ts, 'price', b.price))) AS bid`.
"""

from __future__ import annotations

from sqlglot import exp

COLLECTIONS = frozenset({"array_agg", "collect_list", "collect_set"})

_MOST_ARGUMENTS = {"sort_array": 2, "array_sort": 1}
"""What sorts an array by its values, and how many arguments it may have: a second one of `array_sort` is a function."""


def is_ordered_collection(node: exp.Expr | None) -> bool:
    """Whether it sorts all values of a group, which may be filtered or distinct."""
    if not isinstance(node, exp.Anonymous) or not node.expressions:
        return False
    is_sorted = len(node.expressions) <= _MOST_ARGUMENTS.get(str(node.this).lower(), 0)
    return is_sorted and _is_collection(node.expressions[0])


def is_collected_in_order(node: exp.Expr | None) -> bool:
    """Whether it collects all values of a group for what sorts them."""
    if node is None or not _is_collection(node):
        return False
    parent = node.parent
    return is_ordered_collection(parent.parent if isinstance(parent, exp.Filter) else parent)


def _is_collection(node: exp.Expr) -> bool:
    call = node.this if isinstance(node, exp.Filter) else node
    is_known = isinstance(call, exp.Anonymous) and str(call.this).lower() in COLLECTIONS
    return is_known and len(call.expressions) == 1
