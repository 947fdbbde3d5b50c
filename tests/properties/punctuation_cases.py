"""Cases of what speaks of punctuations: describe, monotone functions, and what a predicate excludes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from itertools import product
from typing import Any

from tests.oracles import invariants, oracle
from tests.oracles.invariants import Invariants
from tests.oracles.oracle import Tuple
from tests.properties.case import STREAM, Case, numbered, one
from tests.samples.strategies import SmallSchema
from xmlstream.operators.describe import Describe
from xmlstream.operators.expressions.dialect import literal
from xmlstream.operators.expressions.output_columns import Column
from xmlstream.operators.hand_over import HandOver
from xmlstream.operators.project import Project
from xmlstream.operators.select import Select
from xmlstream.punct_ns.domain import NAN, Domain
from xmlstream.punct_ns.pattern import Range, canonical
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute


def describing(space: SmallSchema) -> Case:
    """The first attribute, watching the others."""
    first, *watched = space.schema.names

    def closed(u: Tuple, ts: Any, ps: Any) -> bool:
        return all(oracle.set_match(t, ps[0]) for t in space.universe if oracle.same(t[0], u[0]))

    all_flow = invariants.selecting(lambda t: True)
    specified = replace(all_flow, cprop=closed)
    return Case(Describe(("stream", first), tuple(watched)), one(space), specified, space.universe)


_FUNCTIONS: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "INT": ("`a` div 2", "BIGINT", lambda a: int(a / 2)),
    "BIGINT": ("3 - `a` div 2", "BIGINT", lambda a: 3 - int(a / 2)),
    "DECIMAL(2,1)": ("floor(`a` * 5)", "DECIMAL(4,0)", lambda a: Decimal(math.floor(a * 5))),
    "DOUBLE": ("-`a`", "DOUBLE", lambda a: NAN if oracle.is_nan(a) else 0.0 - a),
}


def computing(space: SmallSchema) -> Case:
    """A monotone function of the first attribute, where its type has one, instead of it; the others as they are."""
    domain = space.schema[0].domain
    text, type_, f = _FUNCTIONS.get(domain.type, ("`a`", domain.type, lambda a: a))
    image = Attribute("y", Domain(type_, domain.nullable))
    given = numbered(space.schema)
    copies = [Column(a, f"`{a.name}`", a.name) for a in (STREAM, *space.schema.attributes[1:])]
    if type_ == domain.type and text == "`a`":
        y = Column(Attribute("y", domain), text, "a")
    else:
        y = Column.computed(image, text, given)

    def project(t: Tuple) -> Tuple:
        return (*t[1:], None if t[0] is None else f(t[0]))

    images = oracle.distinct([(None if a is None else f(a),) for a in space.smalls[0].universe])
    outputs = [(*t, *u) for t, u in product(product(*(s.universe for s in space.smalls[1:])), images)]
    specified = invariants.projecting(project, space.universe)
    # What it says of an unbounded y may be new of values that no x of the small universe is mapped to.
    return Case(Project((*copies, y)), one(space), specified, outputs, cuts=True)


def excluding(space: SmallSchema) -> Case:
    """The tuples whose first value comes before the middle one; that others never do is punctuated."""
    first = space.smalls[0]
    middle = first.universe[len(first.universe) // 3]
    assert middle is not None

    def predicate(t: Tuple) -> bool | None:
        return None if t[0] is None else not oracle.before(middle, t[0])

    def closed(t: Tuple, ts: Any, ps: Any) -> bool:
        return predicate(t) is not True or oracle.set_match(t, ps[0])

    selecting = invariants.selecting(predicate)
    specified = Invariants(selecting.cpass, closed, selecting.ckeep, selecting.relation)
    operator = Select(f"`a` <= {literal(middle, first.domain)}", punctuates=True)
    return Case(operator, one(space), specified, space.universe)


def handing_over(space: SmallSchema) -> Case:
    """The tuples whose first value is null, or comes after the middle one; the others are closed from the beginning."""
    first = space.smalls[0]
    middle = first.universe[len(first.universe) // 3]
    assert middle is not None

    def predicate(t: Tuple) -> bool | None:
        return t[0] is None or oracle.before(middle, t[0])

    def closed(t: Tuple, ts: Any, ps: Any) -> bool:
        return predicate(t) is not True or oracle.set_match(t, ps[0])

    selecting = invariants.selecting(predicate)
    specified = Invariants(selecting.cpass, closed, selecting.ckeep, selecting.relation)
    before = canonical(Range(None, middle, low_closed=False, high_closed=True), first.domain)
    texts = (str(Punctuation.at(numbered(space.schema), {1: before})),)
    return Case(HandOver(texts, punctuates=True), one(space), specified, space.universe)


PUNCTUATIONS: dict[str, Callable[[SmallSchema], Case]] = {
    "describe": describing,
    "project, monotone": computing,
    "select, punctuating": excluding,
    "hand_over": handing_over,
}
