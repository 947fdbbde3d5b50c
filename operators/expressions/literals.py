"""Numeric literals: which number a constant of SQL is, and of which type."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from operators.expressions.types import Kind, cast, kind


@dataclass(frozen=True, slots=True)
class NumericLiteral:
    """A numeric constant: its value, and what Spark takes it for."""

    value: int | Decimal | float
    kind: Kind


def numeric_literal(tree: exp.Expr | None) -> NumericLiteral | None:
    """The number that a literal stands for, signed or cast without loss; None for anything else.

    >>> from operators.expressions.dialect import parsed
    >>> numeric_literal(parsed("-2.50"))
    NumericLiteral(value=Decimal('-2.50'), kind='decimal')
    >>> numeric_literal(parsed("CAST('17' AS BIGINT)")), numeric_literal(parsed("1 + 1"))
    (NumericLiteral(value=17, kind='integer'), None)
    """
    tree = tree.unnest() if tree is not None else None
    if isinstance(tree, exp.Neg):
        positive = numeric_literal(tree.this)
        return positive and NumericLiteral(-positive.value, positive.kind)
    if isinstance(tree, exp.Literal) and not tree.is_string:
        return _literal(str(tree.this))
    found = cast(tree)
    of = kind(found[1]) if found else None
    if found is None or of is None:
        return None
    inner, domain = found
    text = str(inner.this) if isinstance(inner, exp.Literal) and inner.is_string else _text(numeric_literal(inner))
    try:
        value = domain.read(text) if text is not None else None
    except ValueError:
        return None
    return NumericLiteral(value, of) if isinstance(value, int | Decimal | float) else None


def whole_number(tree: exp.Expr) -> int | None:
    """The whole number that is written out, without a sign; None for anything else."""
    is_whole = isinstance(tree, exp.Literal) and not tree.is_string and str(tree.this).isdigit()
    return int(tree.this) if is_whole else None


def _literal(text: str) -> NumericLiteral | None:
    if re.fullmatch(r"\d+", text):
        return NumericLiteral(int(text), "integer" if int(text) < 1 << 63 else "decimal")
    if re.fullmatch(r"\d*\.\d*", text) and text != ".":
        return NumericLiteral(Decimal(text), "decimal")
    return NumericLiteral(float(text), "double") if re.fullmatch(r"(\d+\.?\d*|\.\d+)[eE][+-]?\d+", text) else None


def _text(of: NumericLiteral | None) -> str | None:
    return None if of is None else format(of.value, "f") if isinstance(of.value, Decimal) else str(of.value)
