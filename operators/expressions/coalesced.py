"""Coalesced attributes: what is the first of several attributes that is not null, or is computed from that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from sqlglot import exp

from operators.expressions.dialect import parsed, render
from operators.expressions.lossless_casts import loses_nothing
from operators.expressions.references import position_of
from operators.expressions.types import cast
from punct_ns.domain import Domain, Value
from punct_ns.schema import Schema
from punct_ns.slices import quoted
from punct_ns.sql_type import SqlType

_NAMES = frozenset(("coalesce", "ifnull", "nvl"))


def coalesced(expression: str, schema: Schema, domain: Domain) -> Mapping[str, str]:
    """The attributes of which the expression is the first that is not null, in order; none where it is anything else.

    Each as it is with the expression's type, in Spark SQL: itself, or widened without loss. Behind one that is never
    null none is looked at.

    >>> schema = Schema.parse("x INT, y INT, z INT NOT NULL, w BIGINT")
    >>> list(coalesced("coalesce(x, nvl(y, z), w)", schema, Domain("INT")))
    ['x', 'y', 'z']
    >>> coalesced("coalesce(w, x)", schema, Domain("BIGINT"))
    {'w': '`w`', 'x': 'CAST(`x` AS BIGINT)'}
    >>> coalesced("coalesce(x, 0)", schema, Domain("INT")), coalesced("coalesce(x, w)", schema, Domain("INT"))
    ({}, {})
    """
    tree = parsed(expression)
    found: dict[str, str] = {}
    for at, through in _attributes(tree, schema) if tree is not None else ():
        name, own = schema[at].name, schema[at].domain
        steps = [own.sql, *through, domain.sql]
        if own.opaque or not all(loses_nothing(one, next_) for one, next_ in pairwise(steps)):
            return {}
        found[name] = quoted(name) if own.sql == domain.sql else f"CAST({quoted(name)} AS {domain.type})"
        if not own.nullable:
            break
    return found


def instead(expression: str, schema: Schema, domain: Domain) -> Mapping[str, str]:
    """What an expression is where the first of several attributes that is not null in it is this one or that.

    Each in Spark SQL, by the attribute, in order; none where there is no such call in it.

    >>> schema = Schema.parse("x INT, y INT, w BIGINT")
    >>> instead("coalesce(x, y) DIV 24", schema, Domain("BIGINT"))
    {'x': '`x` DIV 24', 'y': '`y` DIV 24'}
    >>> instead("nvl(x, y)", schema, Domain("INT")), instead("x + y", schema, Domain("INT"))
    ({'x': '`x`', 'y': '`y`'}, {})
    """
    tree = parsed(expression) if any(name in expression.lower() for name in _NAMES) else None
    call = tree and next(filter(_is_call, tree.find_all(exp.Expr)), None)
    if tree is None or call is None:
        return {}
    if call is tree.unnest():
        return coalesced(expression, schema, domain)
    own = coalesced_domain(render(call), schema)
    found = coalesced(render(call), schema, own) if own is not None else {}
    return {name: _without(tree, call, text) for name, text in found.items()}


def _without(tree: exp.Expr, call: exp.Expr, text: str) -> str:
    """The tree with something else in the place of a call in it."""
    part = parsed(text)
    assert part is not None
    return render(tree.transform(lambda node: part if node == call else node))


def coalesced_domain(expression: str, schema: Schema) -> Domain | None:
    """The domain of the first of several attributes that is not null; None where the expression is anything else.

    Its type is the widest of theirs; it has bounds where all have.

    >>> schema = Schema.parse("x INT, y SMALLINT NOT NULL, w STRING", "x 0..23, y 1..24")
    >>> coalesced_domain("coalesce(x, y)", schema)
    Domain(type='INT', nullable=False, low=0, high=24)
    >>> coalesced_domain("coalesce(x, w)", schema)
    """
    tree = parsed(expression)
    own = [schema[at].domain for at, _ in _attributes(tree, schema)] if tree is not None else []
    for widest in (Domain(each.type) for each in own):
        if names := coalesced(expression, schema, widest):
            looked_at = [schema.attribute(name).domain for name in names]
            nullable = all(each.nullable for each in looked_at)
            low = _outermost(min, [each.low for each in looked_at], widest)
            high = _outermost(max, [each.high for each in looked_at], widest)
            return Domain(widest.type, nullable, low, high)
    return None


def _outermost(which: Callable[..., Value], bounds: Sequence[Value | None], widest: Domain) -> Value | None:
    """The bound of all that have one; None where one has none."""
    known = [widest.normal(bound) for bound in bounds if bound is not None]
    return which(known, key=lambda bound: widest.cut(bound, after=False)) if len(known) == len(bounds) else None


def _attributes(tree: exp.Expr, schema: Schema) -> list[tuple[int, list[SqlType]]]:
    """The places of the attributes that it is the first of, and what each is cast to; none where it is anything else.

    Those of calls among them in their place.
    """
    tree = tree.unnest()
    if not _is_call(tree):
        return []
    found: list[tuple[int, list[SqlType]]] = []
    for part in _parts(tree):
        inner, to = cast(part) or (part, None)
        at = position_of(inner, schema)
        if at is None:
            return []
        found.append((at, [to.sql] if to else []))
    return found


def _parts(tree: exp.Expr) -> Iterator[exp.Expr]:
    tree = tree.unnest()
    if _is_call(tree):
        for argument in tree.expressions:
            yield from _parts(argument)
    else:
        yield tree


def _is_call(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Anonymous) and str(tree.this).lower() in _NAMES
