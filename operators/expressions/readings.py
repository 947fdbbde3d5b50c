"""Texts that Spark and sqlglot read differently: operators side by side whose order the two take otherwise.

Such are `a || b + c`, `a = b < c` and `a | b & c`. In process sqlglot alone reads a text, so such texts
are refused: brackets make them clear.
"""

from __future__ import annotations

from sqlglot import exp

from xmlstream.operators.expressions.dialect import render
from xmlstream.punct_ns.errors import QueryError, left_to_spark

_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_TESTED = (*_COMPARED, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape, exp.SimilarTo)
_BITS = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift)
_LEVELS: tuple[tuple[tuple[type[exp.Expr], ...], int], ...] = (
    ((exp.Or,), 1),
    ((exp.And,), 2),
    ((exp.Not,), 3),
    (_TESTED, 4),
    (_BITS, 5),
    ((exp.DPipe,), 6),
    ((exp.Add, exp.Sub), 7),
    ((exp.Mul, exp.Div, exp.Mod, exp.IntDiv), 8),
    ((exp.Neg, exp.BitwiseNot), 9),
)
"""The forms of operators, from the loosest to the tightest, as both read them."""


def _level(tree: exp.Expr) -> int | None:
    return next((level for kinds, level in _LEVELS if isinstance(tree, kinds)), None)


def require_one_reading(tree: exp.Expr) -> None:
    """Checks that Spark reads the text of the tree as sqlglot did.

    Raises:
        QueryError: Operators stand beside each other without brackets that the two read in different orders.
    """
    if (found := misread(tree)) is not None:
        raise QueryError(misreading(found), hint=in_brackets())


def in_brackets() -> str:
    """The hint for a text that is read in two ways."""
    return f"write brackets around it; or {left_to_spark()}"


def misreading(node: exp.Expr) -> str:
    """What is wrong with a part that is read in two ways."""
    return f"{render(node)} stands without brackets in {render(node.parent) if node.parent else 'the text'}"


def misread(tree: exp.Expr) -> exp.Expr | None:
    """The first part of the tree that Spark may read otherwise, since no brackets are around it; None if there is none.

    >>> from xmlstream.operators.expressions.dialect import expression
    >>> [(found := misread(expression(text))) and found.sql() for text in ("a || b + c", "(a | b) & c", "a = (b < c)")]
    ['b + c', None, None]
    """
    for node in tree.walk():
        level = _level(node)
        if level is None:
            continue
        for child in node.iter_expressions():
            below = _level(child)
            if below is not None and _differs(node, level, child, below):
                return child
    return None


def _differs(node: exp.Expr, level: int, child: exp.Expr, below: int) -> bool:
    if _is_negated(node) and below == 4:
        return False
    if below < level or (level == below == 4):
        return True
    if 5 <= level <= 7 and 5 <= below <= 7:
        return type(node) is not type(child) and {level, below} != {7}
    return level == 9 and below == 9


def _is_negated(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Not) and isinstance(tree.this, _TESTED)
