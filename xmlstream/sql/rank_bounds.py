"""How many tuples of each group a condition on their rank leaves: `r <= 10`, `r < 11`, `11 > r`, `r = 1` and such."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp


@dataclass(frozen=True, slots=True)
class Bound:
    """Ranks up to `most`; `condition` is what set the bound, and says no more than the bound does if it is `plain`."""

    most: int
    condition: exp.Expr
    plain: bool


def bounded(conditions: Iterable[exp.Expr], is_rank: Callable[[exp.Expr], bool]) -> tuple[Bound | None, list[exp.Expr]]:
    """The least bound that must hold, and the conditions that it does not say.

    >>> from operators.expressions.dialect import expression
    >>> bound, rest = bounded([expression("r < 4"), expression("r = 2")], lambda tree: isinstance(tree, exp.Column))
    >>> bound.most, [condition.sql() for condition in rest]
    (2, ['r = 2'])
    """
    rest: list[exp.Expr] = []
    least: Bound | None = None
    for condition in conditions:
        bound = _bound(condition, is_rank)
        if bound is None or not bound.plain:
            rest.append(condition)
        if bound is not None and (least is None or bound.most < least.most):
            least = bound
    return least, rest


_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GTE: exp.LTE, exp.GT: exp.LT, exp.EQ: exp.EQ}


def _bound(condition: exp.Expr, is_rank: Callable[[exp.Expr], bool]) -> Bound | None:
    """The bound that one condition sets."""
    match condition:
        case exp.In() if is_rank(condition.this.unnest()) and condition.expressions:
            return _up_to(condition, condition.expressions)
        case exp.Between() if is_rank(condition.this.unnest()):
            low = _number(condition.args["low"])
            return _up_to(condition, [condition.args["high"]], plain=low is not None and low <= 1)
        case exp.Binary():
            kind: type[exp.Expr] | None = type(condition)
            left, right = condition.this.unnest(), condition.expression.unnest()
            if not is_rank(left):
                kind, left, right = _MIRRORED.get(type(condition)), right, left
            number = _number(right)
            if number is not None and is_rank(left) and kind in _MIRRORED.values():
                most = number - (kind is exp.LT)
                return Bound(most, condition, plain=kind is not exp.EQ or most == 1)
    return None


def _up_to(condition: exp.Expr, ends: Sequence[exp.Expr], *, plain: bool = False) -> Bound | None:
    numbers = [number for end in ends if (number := _number(end)) is not None]
    return Bound(max(numbers), condition, plain) if len(numbers) == len(ends) else None


def _number(tree: exp.Expr) -> int | None:
    """A whole number that is written out."""
    tree = tree.unnest()
    is_whole = isinstance(tree, exp.Literal) and not tree.is_string and str(tree.this).isdigit()
    return int(tree.this) if is_whole else None
