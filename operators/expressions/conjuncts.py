"""Conjuncts: a condition as the parts that must all be true, and parts as one condition."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp


def conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND joins, with no brackets around them.

    >>> from operators.expressions.dialect import expression, render
    >>> [render(part) for part in conjuncts(expression("(a > 1 AND (b OR c)) AND d"))]
    ['`a` > 1', '`b` OR `c`', '`d`']
    """
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        return [*conjuncts(tree.this), *conjuncts(tree.expression)]
    return [tree]


def conjoined(conditions: Iterable[exp.Expr]) -> exp.Expr | None:
    """The condition that all of these are true, as a tree of its own; None for none of them."""
    parts = list(conditions)
    return exp.and_(*parts).unnest() if parts else None
