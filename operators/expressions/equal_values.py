"""Expressions that answer alike for values that compare as equal: 0.0 and -0.0 are one to distinct, and yet two."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from operators.expressions.dialect import expression
from operators.expressions.references import attributes_in
from operators.expressions.throwable import throwable
from punct_ns.schema import Schema

_FLOATING = frozenset(("FLOAT", "DOUBLE"))
"""Types of which two values that differ compare as equal."""


def takes_equals_alike(expressions: Iterable[exp.Expr | str], schema: Schema) -> bool:
    """Whether the expressions have equal values for values that compare as equal; False where that is not known.

    >>> schema = Schema.of(n="INT", x="DOUBLE")
    >>> [takes_equals_alike([text], schema) for text in ("f(n)", "x < 1.5D", "1 / x > 0")]
    [True, True, False]
    """
    trees = (expression(text) if isinstance(text, str) else text for text in expressions)
    return all(_FLOATING.isdisjoint(_types(tree, schema)) or not throwable(tree, schema) for tree in trees)


def _types(tree: exp.Expr, schema: Schema) -> set[str]:
    return {schema.attribute(name).domain.type for name in attributes_in(tree)}
