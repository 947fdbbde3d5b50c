"""The domain that a predicate excludes, as punctuations: a select emits no tuple for which the predicate is not true.

Understood are comparisons of one attribute with constants (`=`, `<>`, `<`, `<=`, `>`, `>=`, `<=>`, IN, BETWEEN, IS
NULL, IS TRUE), and AND, OR and NOT over them, in SQL's three-valued logic: null is not true. From other conditions
nothing follows. So the punctuations may match fewer tuples than the predicate excludes, never more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable
from decimal import Decimal
from functools import lru_cache
from itertools import product
from typing import TypeAlias

from sqlglot import exp

from xmlstream.operators.expressions.dialect import attributes_in, parsed, position_of
from xmlstream.operators.expressions.type_rules import (
    DOUBLE,
    NumericLiteral,
    cast,
    compared_digits,
    fit_one_decimal,
    loses_nothing,
    numeric_literal,
)
from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.pattern import NULL, patterns
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.sql_type import FLOATING, BooleanType, StringType
from xmlstream.punct_ns.temporal_type import DateType
from xmlstream.punct_ns.value_set import ValueSet

Boxes: TypeAlias = list[dict[int, ValueSet]]
"""A set of tuples as a union of boxes; an attribute that a box does not name has any value, null included."""

Truth: TypeAlias = tuple[ValueSet, ValueSet]
"""The values of an attribute for which a condition is true, and those for which it is false; else it is null."""

MANY = 64
"""The number of boxes up to which a conjunction of alternatives is multiplied out."""

_ZONE = re.compile(r".*\d(Z|[+-]\d\d(:?\d\d)?)", re.DOTALL)


@lru_cache(maxsize=128)
def excluded(predicate: str, schema: Schema) -> tuple[Punctuation, ...]:
    """Punctuations, minimal, that match only tuples for which the predicate is not true.

    >>> schema = Schema.of(value="INT", flag="BOOLEAN")
    >>> [str(p) for p in excluded("value > 250", schema)]
    ['<(,250], *>', '<null, *>']
    >>> [str(p) for p in excluded("NOT value BETWEEN 5 AND 6 OR flag", schema)]
    ['<[5,6], {false,null}>', '<null, {false,null}>']
    """
    return _punctuations(predicate, schema, always=False)


def included(predicate: str, schema: Schema) -> tuple[Punctuation, ...]:
    """Punctuations, minimal, that match only tuples for which the predicate is true.

    >>> schema = Schema.of(value="INT", flag="BOOLEAN")
    >>> [str(p) for p in included("value > 250 AND flag", schema)]
    ['<[251,), true>']
    """
    return _punctuations(predicate, schema, always=True)


def _punctuations(predicate: str, schema: Schema, *, always: bool) -> tuple[Punctuation, ...]:
    tree = parsed(predicate)
    boxes = _boxes(True, tree, schema, always) if tree is not None else []
    each = ((box, chosen) for box in boxes for chosen in product(*map(patterns, box.values())))
    found = (Punctuation.at(schema, dict(zip(box, chosen, strict=True))) for box, chosen in each)
    return tuple(PunctuationSet(schema, found))


def is_implied(condition: str, others: Collection[str], schema: Schema) -> bool:
    """Whether all tuples that satisfy other conditions satisfy this one, a comparison of an attribute with constants.

    >>> is_implied("`hour` > 3", ["`hour` > 5"], Schema.of(hour="INT"))
    True
    >>> is_implied("`hour` > 3", ["`hour` > 2"], Schema.of(hour="INT"))
    False
    """
    if len(used := attributes_in(condition)) != 1:
        return False
    never, always = (excluded(text, schema) for text in (condition, f"NOT ({condition})"))
    attribute = schema.attribute(used[0])
    null = [Punctuation.at(schema, {schema.index(used[0]): NULL})] if attribute.domain.nullable else []
    known = PunctuationSet(schema, never)
    if not PunctuationSet(schema, (*never, *always)).is_all or not all(map(known.covers, null)):
        return False  # it is not known for which values the condition holds
    left_out = PunctuationSet(schema, (p for text in others for p in excluded(text, schema)))
    return all(map(left_out.covers, never))


def _boxes(truth: bool, tree: exp.Expr, schema: Schema, always: bool) -> Boxes:
    """The tuples for which the condition is known always, or else never, to have this truth value."""
    match tree.unnest():
        case exp.Not(this=condition):
            return _boxes(not truth, condition, schema, always)
        case (exp.And() | exp.Or()) as both:
            parts = (_boxes(truth, each, schema, always) for each in (both.this, both.expression))
            return (_both if isinstance(both, exp.And) == (truth == always) else _either)(*parts)
        case exp.Between(this=tested) as between:
            low, high = exp.GTE(this=tested, expression=between.args["low"]), between.args["high"]
            return _boxes(truth, exp.And(this=low, expression=exp.LTE(this=tested, expression=high)), schema, always)
        case exp.Null():
            return [] if always else [{}]
        case exp.Boolean(this=constant):
            return [{}] if (constant == truth) == always else []
        case condition:
            found = _atom(condition, schema)
            if found is None:
                return []
            at, truths = found
            chosen = truths[0 if truth else 1]
            chosen = chosen if always else chosen.complement()
            # For a type without an order, patterns can only match null or all values.
            is_expressible = not chosen.is_empty and (not chosen.domain.opaque or not chosen.cuts)
            return [{at: chosen}] if is_expressible else []


def _either(left: Boxes, right: Boxes) -> Boxes:
    """The union; boxes that restrict only the same attribute become one."""
    alone: dict[int, ValueSet] = {}
    others: Boxes = []
    for box in (*left, *right):
        if len(box) == 1:
            ((i, values),) = box.items()
            alone[i] = alone[i].union(values) if i in alone else values
        else:
            others.append(box)
    return [*({i: values} for i, values in alone.items()), *others]


def _both(left: Boxes, right: Boxes) -> Boxes:
    """The intersection; nothing if it would have too many boxes."""
    if len(left) * len(right) > MANY:
        return []
    met: Boxes = []
    for one, other in product(left, right):
        box = {**one, **{i: one[i].intersection(values) if i in one else values for i, values in other.items()}}
        if not any(values.is_empty for values in box.values()):
            met = _either(met, [box])
    return met


def _atom(tree: exp.Expr, schema: Schema) -> tuple[int, Truth] | None:
    """The attribute that a condition tests, and its truth; None if the condition is not understood."""
    tested = tree if isinstance(tree, exp.Column) else tree.this.unnest() if isinstance(tree.this, exp.Expr) else None
    at = position_of(tested, schema)
    if at is None:
        turned = _MIRRORED.get(type(tree))
        if turned is None or position_of(tree.expression.unnest(), schema) is None:
            return None
        return _atom(turned(this=tree.expression, expression=tree.this), schema)
    truths = _truths(tree, schema[at].domain)
    return (at, truths) if truths else None


def _truths(tree: exp.Expr, domain: Domain) -> Truth | None:
    nothing, null = ValueSet(domain), ValueSet(domain, (), domain.nullable)
    if isinstance(tree, exp.Column):
        return (_listed(domain, [True]), _listed(domain, [False])) if isinstance(domain.sql, BooleanType) else None
    if isinstance(tree, exp.In):
        return _in(tree, domain)
    other = tree.args.get("expression")
    if other is None or type(tree) not in _MIRRORED:
        return None
    if isinstance(other.unnest(), exp.Null):
        same = (null, null.complement()) if type(tree) in _NULL_SAFE else (nothing, nothing)
        return same[::-1] if isinstance(tree, exp.NullSafeNEQ) else same
    bound = _constant(other, domain)
    if bound is None:
        return None
    true = ValueSet.of_intervals(domain, [_interval(tree, domain, bound)])
    false = true.complement() if type(tree) in _NULL_SAFE else true.complement().without((), null=True)
    return (false, true) if isinstance(tree, exp.NEQ | exp.NullSafeNEQ) else (true, false)


def _interval(tree: exp.Expr, domain: Domain, bound: object) -> tuple[object, object]:
    """The cuts between which a comparison is true; for `<>`, between which it is false."""
    before, after = domain.cut(bound, after=False), domain.cut(bound, after=True)
    match tree:
        case exp.LT() | exp.LTE():
            return domain.bottom, before if isinstance(tree, exp.LT) else after
        case exp.GT() | exp.GTE():
            return (after if isinstance(tree, exp.GT) else before), domain.top
    return before, after


def _in(tree: exp.In, domain: Domain) -> Truth | None:
    given = [item.unnest() for item in tree.expressions]
    found = [_constant(item, domain) for item in given if not isinstance(item, exp.Null)]
    if not given or any(bound is None for bound in found) or not _alike(given, domain):
        return None
    pairs = [(domain.cut(bound, after=False), domain.cut(bound, after=True)) for bound in found]
    true = ValueSet.of_intervals(domain, [pair for pair in pairs if pair[0] < pair[1]])
    return true, ValueSet(domain) if len(found) < len(given) else true.complement().without((), null=True)


def _alike(given: Iterable[exp.Expr], domain: Domain) -> bool:
    """Whether the constants of a list compare unchanged, although Spark casts all to one type."""
    numbers = [of for of in map(numeric_literal, given) if of is not None]
    if domain.sql.kind in FLOATING or not numbers:
        return True
    if any(of.is_double for of in numbers):
        return all(of.is_double for of in numbers)
    # In a list the type of a number counts, even if it has fewer digits.
    digits = [compared_digits(type_) for type_ in (domain.sql, *(of.type for of in numbers))]
    return fit_one_decimal(of for of in digits if of is not None)


def _listed(domain: Domain, values: Iterable[Value]) -> ValueSet:
    return ValueSet.of(domain, [value for value in values if domain.contains(value)])


def _constant(tree: exp.Expr, domain: Domain) -> Value | Decimal | None:
    """The constant that Spark compares a value of the domain with, exactly; None if a conversion loses digits."""
    tree = tree.unnest()
    try:
        if (of := numeric_literal(tree)) is not None:
            return _comparable(of, domain)
        if isinstance(tree, exp.Boolean):
            return bool(tree.this) if isinstance(domain.sql, BooleanType) else None
        if isinstance(tree, exp.Literal):
            return domain.read(str(tree.this)) if isinstance(domain.sql, StringType | DateType) else None
        found = cast(tree)
        if found is None or found[1].type != domain.type or not isinstance(found[0], exp.Literal):
            return None
        text = str(found[0].this)
        # A moment written without a time zone is in the session's.
        return None if domain.sql.kind == "TIMESTAMP" and not _ZONE.fullmatch(text) else domain.read(text)
    except ValueError:
        return None


def _comparable(of: NumericLiteral, domain: Domain) -> Value | Decimal | None:
    """The number if Spark compares it unchanged; None if it, or the value compared with it, would be rounded."""
    if domain.sql.kind in FLOATING:
        value = float(of.value)
        return value if math.isnan(value) or domain.normal(value) == value else None
    digits = compared_digits(domain.sql)
    if digits is None:
        return None
    if of.digits is None:
        return of.value if loses_nothing(domain.sql, DOUBLE) else None
    return of.value if fit_one_decimal((digits, of.digits)) else None


_MIRRORED: dict[type[exp.Expr], Callable[..., exp.Expr]] = {
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.NullSafeEQ: exp.NullSafeEQ,
    exp.NullSafeNEQ: exp.NullSafeNEQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.Is: exp.Is,
}
"""The comparisons, each with its equivalent if its sides change places."""

_NULL_SAFE = (exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is)
