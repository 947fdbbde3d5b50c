"""What can be said of an expression's parts without computing it: attributes, casts, constants."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypeAlias

from sqlglot import exp

from operators.expressions.dialect import StreamSql
from punct_ns.domain import Domain
from punct_ns.schema import Schema

Kind: TypeAlias = Literal["integer", "decimal", "double"]

_KINDS: dict[str, Kind] = {"TINYINT": "integer", "SMALLINT": "integer", "INT": "integer", "BIGINT": "integer"}


@dataclass(frozen=True, slots=True)
class Number:
    """A numeric constant: its value, and what Spark takes it for."""

    value: int | Decimal | float
    kind: Kind


def place(tree: exp.Expr | None, schema: Schema) -> int | None:
    """Where the attribute stands that the tree is; None where it is something else."""
    if not isinstance(tree, exp.Column) or len(tree.parts) != 1:
        return None
    folded = tree.name.lower()
    return next((i for i, name in enumerate(schema.names) if name.lower() == folded), None)


def conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    """What must all be true for the condition to be."""
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        return [*conjuncts(tree.this), *conjuncts(tree.expression)]
    return [tree]


def attributes_of(tree: exp.Expr) -> set[str]:
    """The attributes that a resolved expression looks at."""
    return {column.name for column in tree.find_all(exp.Column)}


def cast(tree: exp.Expr | None) -> tuple[exp.Expr, Domain] | None:
    """What a CAST casts, and the type to which; None for anything else, TRY_CAST among it."""
    if not isinstance(tree, exp.Cast) or tree.args.get("safe") or tree.args.get("format"):
        return None
    try:
        return tree.this.unnest(), Domain(tree.to.sql(dialect=StreamSql))
    except ValueError:
        return None


def kind(domain: Domain) -> Kind | None:
    """What arithmetic takes a type for; None for FLOAT, whose rules are its own, and for what is no number."""
    if domain.type.startswith("DECIMAL"):
        return "decimal"
    return "double" if domain.type == "DOUBLE" else _KINDS.get(domain.type)


def number(tree: exp.Expr | None) -> Number | None:
    """The number that a literal stands for, signed or cast without loss; None for anything else.

    >>> from operators.expressions.dialect import parsed
    >>> number(parsed("-2.50"))
    Number(value=Decimal('-2.50'), kind='decimal')
    >>> number(parsed("CAST('17' AS BIGINT)")), number(parsed("1 + 1"))
    (Number(value=17, kind='integer'), None)
    """
    tree = tree.unnest() if tree is not None else None
    if isinstance(tree, exp.Neg):
        positive = number(tree.this)
        return positive and Number(-positive.value, positive.kind)
    if isinstance(tree, exp.Literal) and not tree.is_string:
        return _literal(str(tree.this))
    found = cast(tree)
    of = kind(found[1]) if found else None
    if found is None or of is None:
        return None
    inner, domain = found
    text = str(inner.this) if isinstance(inner, exp.Literal) and inner.is_string else _text(number(inner))
    try:
        value = domain.read(text) if text is not None else None
    except ValueError:
        return None
    return Number(value, of) if isinstance(value, int | Decimal | float) else None


def _literal(text: str) -> Number | None:
    if re.fullmatch(r"\d+", text):
        return Number(int(text), "integer" if int(text) < 1 << 63 else "decimal")
    if re.fullmatch(r"\d*\.\d*", text) and text != ".":
        return Number(Decimal(text), "decimal")
    return Number(float(text), "double") if re.fullmatch(r"(\d+\.?\d*|\.\d+)[eE][+-]?\d+", text) else None


def _text(of: Number | None) -> str | None:
    return None if of is None else format(of.value, "f") if isinstance(of.value, Decimal) else str(of.value)
