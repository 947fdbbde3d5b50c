"""The types of SQL expressions: what arithmetic takes a type for, and what a cast casts."""

from __future__ import annotations

from typing import Literal, TypeAlias

from sqlglot import exp

from operators.expressions.dialect import type_text
from punct_ns.domain import Domain

Kind: TypeAlias = Literal["integer", "decimal", "double"]

_KINDS: dict[str, Kind] = {"TINYINT": "integer", "SMALLINT": "integer", "INT": "integer", "BIGINT": "integer"}


def cast(tree: exp.Expr | None) -> tuple[exp.Expr, Domain] | None:
    """What a CAST casts, and the type to which; None for anything else, TRY_CAST among it."""
    if not isinstance(tree, exp.Cast) or tree.args.get("safe") or tree.args.get("format"):
        return None
    try:
        return tree.this.unnest(), Domain(type_text(tree.to))
    except ValueError:
        return None


def kind(domain: Domain) -> Kind | None:
    """What arithmetic takes a type for; None for FLOAT, whose rules are its own, and for what is no number."""
    if domain.type.startswith("DECIMAL"):
        return "decimal"
    return "double" if domain.type == "DOUBLE" else _KINDS.get(domain.type)
