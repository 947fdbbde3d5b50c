"""Predicates as conjuncts, each rewritten over the attributes of the input whose tuples it is asked of instead."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from sqlglot import exp

from operators.expressions.conjuncts import conjoined
from operators.expressions.dialect import expression, render
from operators.expressions.references import attributes_in
from operators.expressions.throwable import throwable
from operators.logical_properties import Terms
from punct_ns.schema import Schema


def divided(
    parts: Sequence[exp.Expr],
    terms: Sequence[Terms],
    schemas: Sequence[Schema],
    passed: AbstractSet[str] = frozenset(),
) -> tuple[list[list[exp.Expr]], list[exp.Expr]]:
    """The parts for each input that has terms for them, and those that stay.

    What may be an error stays, unless it looks at nothing but what is `passed` through and nothing else stays, on which
    it may rely.
    """
    below: list[list[exp.Expr]] = [[] for _ in terms]
    above: list[exp.Expr] = []
    found = [[in_terms(part, of) for of in terms] for part in parts]
    sure = [_is_sure(translated, schemas) for translated in found]
    all_go = all(is_sure or _is_within(part, passed) for part, is_sure in zip(parts, sure, strict=True))
    for part, translated, is_sure in zip(parts, found, sure, strict=True):
        if not (is_sure or all_go):
            above.append(part)
            continue
        for i, one in enumerate(translated):
            below[i] += [] if one is None else [one]
    return below, above


def _is_sure(translated: Sequence[exp.Expr | None], schemas: Sequence[Schema]) -> bool:
    """Whether an input can be asked, and it is never an error."""
    there = [not throwable(one, schema) for one, schema in zip(translated, schemas, strict=True) if one is not None]
    return bool(there) and all(there)


def _is_within(part: exp.Expr, names: AbstractSet[str]) -> bool:
    """Whether the part looks at attributes, and at none but these."""
    return bool(looked_at := _looks_at(part)) and looked_at <= names


def in_terms(part: exp.Expr, terms: Terms) -> exp.Expr | None:
    """The part in other terms; None where it looks at something that has none, or at nothing at all."""
    names = _looks_at(part)
    if not names or not names <= terms.keys():
        return None

    def translated(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        term = expression(terms[node.name.lower()])
        return term if isinstance(term, exp.Column) or node.parent is None else exp.paren(term, copy=False)

    return part.copy().transform(translated, copy=False)


def _looks_at(part: exp.Expr) -> set[str]:
    """The names of the attributes that it looks at, in lower case."""
    return {name.lower() for name in attributes_in(part)}


def conjunction(parts: Sequence[exp.Expr]) -> str | None:
    """All of the parts as one condition, Spark SQL; those that say the same are one. None for none."""
    once = {render(part.unnest()): part.unnest() for part in parts}
    whole = conjoined(once.values())
    return None if whole is None else render(whole)
