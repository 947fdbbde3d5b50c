"""Functions before OVER by their names: those that look at the rows around, and ranks."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from xmlstream.sql.functions import AGGREGATES

RANKS = frozenset({"row_number", "rank", "dense_rank"})
"""Functions that select the first tuples of each group, where that is all that is asked."""

BY_PLACE = frozenset({"first", "first_value", "last", "last_value"})
"""Functions that the order of rows decides, as it does not for groups."""


OF_ALL = frozenset({"ntile", "percent_rank", "cume_dist"})
"""Functions that need all of a group."""

_OTHERS = frozenset({"lag", "lead", "nth_value"})


def function_of(window: exp.Expr) -> str:
    """The name of the function before OVER, in lower case."""
    return str(window.this.this).lower() if isinstance(window.this, exp.Anonymous) else ""


def looks_around(window: exp.Expr) -> bool:
    """Whether it is a function over rows that can be answered from those around, as far as its name and order tell."""
    known = function_of(window) in AGGREGATES | BY_PLACE | _OTHERS
    return known and bool(window.args.get("order")) and not any(window.args.get(part) for part in ("alias", "first"))


def over_rows(trees: Iterable[exp.Expr]) -> bool:
    """Whether any of the trees has such a function, beside which ranks are no more than numbers of rows."""
    return any(function_of(window) not in RANKS for tree in trees for window in tree.find_all(exp.Window))
