"""Expressions that answer alike for values that compare as equal: 1 / x does not for 0.0 and -0.0, which are equal."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from operators.expressions.dialect import expression
from operators.expressions.references import attributes_in
from operators.expressions.throwable import throwable
from punct_ns.numeric_type import FloatType
from punct_ns.schema import Schema


def takes_equals_alike(expressions: Iterable[exp.Expr | str], schema: Schema) -> bool:
    """Whether the expressions have equal values for values that compare as equal; False where that is not known.

    >>> schema = Schema.of(n="INT", x="DOUBLE")
    >>> [takes_equals_alike([text], schema) for text in ("f(n)", "x < 1.5D", "1 / x > 0")]
    [True, True, False]
    """
    trees = (expression(text) if isinstance(text, str) else text for text in expressions)
    return not any(_is_floating(tree, schema) and throwable(tree, schema) for tree in trees)


def _is_floating(tree: exp.Expr, schema: Schema) -> bool:
    """Whether it refers to an attribute of which two values that differ may compare as equal."""
    return any(isinstance(schema.attribute(name).domain.sql, FloatType) for name in attributes_in(tree))
