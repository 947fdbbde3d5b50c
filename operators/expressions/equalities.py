"""Equalities in a condition, however it is written: what each tuple that satisfies the condition must satisfy.

A condition is true, false or unknown, and selects the tuples for which it is true. So `a <=> b` is `a = b` if one of
both is never null, and `NOT (a <> b)`, `a IN (b)`, `a BETWEEN b AND b` and `a <= b AND a >= b` are `a = b`. What all
alternatives of OR have stands beside it: `a = b AND c OR a = b AND d` is `a = b AND (c OR d)`, for unknown values, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from xmlstream.operators.expressions.dialect import conjuncts, position_of, render
from xmlstream.operators.expressions.type_rules import cast, loses_nothing, never_null, value_type
from xmlstream.punct_ns.numeric_type import NumericType
from xmlstream.punct_ns.schema import Schema

_NEGATED: Mapping[type[exp.Expr], type[exp.Binary]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
    exp.NullSafeEQ: exp.NullSafeNEQ,
    exp.NullSafeNEQ: exp.NullSafeEQ,
}
"""The comparison that is true where another one is false, and unknown where it is unknown."""


def plain_conjuncts(conditions: Iterable[exp.Expr], schema: Schema) -> list[exp.Expr]:
    """The conditions that must all be true, with each equality as one; `schema` is that of their attributes.

    >>> from xmlstream.operators.expressions.dialect import expression
    >>> schema = Schema.parse("a INT NOT NULL, b INT, c INT, s STRING")
    >>> def plain(text: str) -> list[str]:
    ...     return [render(part) for part in plain_conjuncts([expression(text)], schema)]
    >>> plain("a <=> b AND NOT (b <> c) AND a IN (c)")
    ['`a` = `b`', '`b` = `c`', '`a` = `c`']
    >>> plain("NOT (a < b OR b < a)"), plain("a BETWEEN b AND b"), plain("NOT (NOT (a = b))")
    (['`b` = `a`'], ['`a` = `b`'], ['`a` = `b`'])
    >>> plain("b <=> c"), plain("s IN (a)"), plain("NOT (a = b)")
    (['`b` IS NOT DISTINCT FROM `c`'], ['`s` IN (`a`)'], ['`a` <> `b`'])
    >>> plain("(a = b AND c > 1) OR (s = 'x' AND NOT (b <> a))"), plain("a = b OR (a = b AND c > 1)")
    (['`a` = `b`', "`c` > 1 OR `s` = 'x'"], ['`a` = `b`'])
    """
    parts = [plain for condition in conditions for plain in _plain(condition, schema)]
    bounds = {sides for part in parts if (sides := _ascending(part)) is not None}
    found: list[exp.Expr] = []
    for part in parts:
        sides = _ascending(part)
        if sides is None or sides[::-1] not in bounds:
            found.append(part)
        elif sides[0] <= sides[1]:  # the other one of both says the same
            found.append(_equality(part.this, part.expression))
    return found


def _plain(part: exp.Expr, schema: Schema) -> list[exp.Expr]:
    """A condition as conditions that are no negated comparison, and no equality in another form than `=`."""
    match part.unnest():
        case exp.And() as both:
            return [plain for each in conjuncts(both) for plain in _plain(each, schema)]
        case exp.Or() as either:
            return _factored(either, schema)
        case exp.Not(this=of):
            return _negated(of.unnest(), part, schema)
        case exp.NullSafeEQ(this=one, expression=other) if never_null(one, schema) or never_null(other, schema):
            return [_equality(one, other)]
        case exp.In(this=one, expressions=[other]) as of if _compares_alike(one, other, schema):
            return [_equality(one, other)]
        case exp.Between(this=one) as of if not of.args.get("symmetric") and of.args["low"] == of.args["high"]:
            return [_equality(one, of.args["low"])]
        case plain:
            return [plain]


def _factored(either: exp.Or, schema: Schema) -> list[exp.Expr]:
    """What all alternatives have, and the rest of them; the whole if they have nothing in common."""
    alternatives = [each.unnest() for each in either.flatten()]
    first, common = _plain(alternatives[0], schema), set[str]()
    parted = [first]
    for number, each in enumerate(alternatives[1:]):
        parted.append(_plain(each, schema))
        here = set(map(_either_way, parted[-1]))
        common = here & common if number else here & set(map(_either_way, first))
        if not common:
            return [either]
    left = [[part for part in parts if _either_way(part) not in common] for parts in parted]
    shared = {written: part for part in first if (written := _either_way(part)) in common}
    if not all(left):
        return [*shared.values()]
    return [*shared.values(), exp.or_(*(exp.and_(*parts) for parts in left)).unnest()]


def _either_way(part: exp.Expr) -> str:
    """A condition as Spark SQL, an equality with its sides in one order."""
    if isinstance(part, exp.EQ):
        return " = ".join(sorted((render(part.this.unnest()), render(part.expression.unnest()))))
    return render(part)


def _negated(of: exp.Expr, whole: exp.Expr, schema: Schema) -> list[exp.Expr]:
    """The negation of a condition; `whole` if it has no other form."""
    if isinstance(of, exp.Not):
        return _plain(of.this, schema)
    if isinstance(of, exp.Or):
        return [plain for side in (of.this, of.expression) for plain in _negated(side.unnest(), exp.not_(side), schema)]
    opposite = _NEGATED.get(type(of))
    return [whole.unnest()] if opposite is None else _plain(opposite(this=of.this, expression=of.expression), schema)


def _equality(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return exp.EQ(this=one.copy(), expression=other.copy())


def _compares_alike(one: exp.Expr, other: exp.Expr, schema: Schema) -> bool:
    """Whether IN compares two values as `=` does: those of one type, or numbers."""
    types = [value_type(side.unnest(), schema) for side in (one, other)]
    return None not in types and (types[0] == types[1] or all(isinstance(type_, NumericType) for type_ in types))


def _ascending(part: exp.Expr) -> tuple[str, str] | None:
    """The sides of `<=`, the lower first, as Spark SQL; None for any other condition."""
    if not isinstance(part, exp.LTE | exp.GTE):
        return None
    lower, upper = (render(side.unnest()) for side in (part.this, part.expression))
    return (lower, upper) if isinstance(part, exp.LTE) else (upper, lower)


def equated(condition: exp.Expr, schema: Schema) -> tuple[str, str] | None:
    """The two attributes of one type that a condition states to be equal; None for any other condition.

    >>> from xmlstream.operators.expressions.dialect import expression
    >>> schema = Schema.of(a="INT", b="INT", c="BIGINT")
    >>> texts = ("(b = A)", "a = c", "a = 1", "CAST(a AS BIGINT) = b")
    >>> [equated(expression(text), schema) for text in texts]
    [('b', 'a'), None, None, ('a', 'b')]
    """
    condition = condition.unnest()
    if not isinstance(condition, exp.EQ):
        return None
    places = [widened(side.unnest(), schema) for side in (condition.this, condition.expression)]
    known = [schema[i] for i in places if i is not None]
    if len(known) < 2 or places[0] == places[1] or known[0].domain.type != known[1].domain.type:
        return None
    return known[0].name, known[1].name


def widened(tree: exp.Expr, schema: Schema) -> int | None:
    """The position of the attribute that the tree refers to, unchanged or cast without loss; None if there is none."""
    if (found := cast(tree)) is None:
        return position_of(tree, schema)
    at = position_of(found[0], schema)
    return at if at is not None and loses_nothing(schema[at].domain.sql, found[1].sql) else None
