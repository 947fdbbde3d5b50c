"""Column references: which attributes an expression refers to, and the reference to one."""

from __future__ import annotations

from sqlglot import exp

from operators.expressions.dialect import expression
from punct_ns.schema import Schema


def named(name: str) -> exp.Column:
    """The reference to an attribute."""
    return exp.column(exp.to_identifier(name, quoted=True))


def attributes_in(tree: exp.Expr | str) -> list[str]:
    """The attributes that an expression refers to, each once without regard to case, in order.

    >>> attributes_in("date_add(DAY, n, `at`) + max(point.x + N)")
    ['n', 'at', 'point']
    """
    names: dict[str, str] = {}
    for column in (expression(tree) if isinstance(tree, str) else tree).find_all(exp.Column, bfs=False):
        names.setdefault(column.name.lower(), column.name)
    return list(names.values())


def position_of(tree: exp.Expr | None, schema: Schema) -> int | None:
    """The position of the attribute that the tree refers to; None where it is no reference to one of the schema."""
    if not isinstance(tree, exp.Column) or len(tree.parts) != 1:
        return None
    folded = tree.name.lower()
    return next((i for i, name in enumerate(schema.names) if name.lower() == folded), None)
