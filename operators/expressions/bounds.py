"""Bounds: comparisons in a join's residual condition that bound which tuples of the other side a tuple waits for.

`bid.dateTime <= auction.expires` bounds the bids that an auction waits for, from above, and the auctions that a bid
waits for, from below. The tuple's own side of a comparison is a value computed from the tuple; the other side is an
attribute, or a function that rises or falls with one. Added constants move to the tuple's own side: `a.t + 5 >= b.t` is
`a.t >= b.t - 5`. All other comparisons bound nothing; the join only evaluates them for pairs.

Source: what watermarks do for interval joins, done by punctuations; for the equality of keys Tucker et al. 2003,
Table 4 (joinPs).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from sqlglot import exp

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.expressions.dialect import (
    attributes_in,
    cast_to,
    conjuncts,
    expression,
    named,
    position_of,
    render,
)
from xmlstream.operators.expressions.monotone import Monotone, monotone
from xmlstream.operators.expressions.throwable import bound_type, unfailing
from xmlstream.operators.expressions.type_rules import loses_nothing, numeric_literal
from xmlstream.punct_ns.closed_intervals import Relation
from xmlstream.punct_ns.domain import NAN
from xmlstream.punct_ns.numeric_type import FloatType, IntegerType
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Term
from xmlstream.punct_ns.sql_type import SqlType, StringType


@dataclass(frozen=True, slots=True)
class Bound:
    """A value of a tuple, and the relation to it that an attribute of the other side has in a partner.

    Attributes:
        attribute: The attribute of the other side.
        relation: The relation of the attribute, or of its image, to the value.
        value: The tuple's value, as Spark SQL that never fails: null for null, and where it would fail.
        needs: The tuple's attributes without which, if they are null, it has no partner.
        type: The type of the value.
        plain: The tuple's attribute that is the value; None if the value is computed.
        image: The compared function of the other side's attribute, as Spark SQL; None for the attribute itself.
        how: How the image depends on the attribute.
        widened: Whether the image is just the attribute in a wider type.
        both: Whether the attribute is also bounded from below, by another bound or by its domain.
        counted: Whether the attribute's type is counted (`Domain.counted`).
    """

    attribute: str
    relation: Relation
    value: str
    needs: tuple[str, ...]
    type: str
    plain: str | None = None
    image: str | None = None
    how: Monotone | None = None
    widened: bool = False
    both: bool = False
    counted: bool = False

    @property
    def upper(self) -> bool:
        """Whether it bounds the attribute of the other side from above."""
        return (self.relation in ("<", "<=")) != (self.how is not None and self.how.falling)

    def is_closed_by(self, term: Term) -> bool:
        """Whether finitely many patterns of a term cover the values within this bound, which is one from above."""
        return term.finite or term.kind == "prefix" or (self.both and term.fills(counted=self.counted))


Bounds: TypeAlias = tuple[tuple[Bound, ...], tuple[Bound, ...]]
"""The bounds of the left side's tuples, and of the right side's."""

NO_BOUNDS: Bounds = ((), ())

_RELATIONS: Mapping[type[exp.Expr], tuple[Relation, ...]] = {
    exp.LT: ("<",),
    exp.LTE: ("<=",),
    exp.GT: (">",),
    exp.GTE: (">=",),
    exp.EQ: ("<=", ">="),
}
_MIRRORED: Mapping[Relation, Relation] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_INVERSE: Mapping[type[exp.Expr], type[exp.Binary]] = {exp.Add: exp.Sub, exp.Sub: exp.Add}


def bounds_between(
    residual: str | None,
    on: Sequence[Sequence[str]],
    schemas: Sequence[Schema],
    equal: Sequence[Mapping[str, str]] | None = None,
) -> Bounds:
    """The bounds in a condition on pairs of tuples of two sides that are equal in the attributes `on`.

    A join attribute counts for both sides, under whichever of its names the condition has it: `equal` has the name on
    each side by the other names in lower case; without it the attributes `on` are equal one by one.

    >>> auction, bid = Schema.of(id="INT", opens="INT", closes="INT"), Schema.of(auction="INT", t="INT")
    >>> found = bounds_between("t BETWEEN opens AND closes + 5", (["id"], ["auction"]), (auction, bid))
    >>> [(bound.attribute, bound.relation, bound.value) for bound in found[0]]
    [('t', '>=', '`opens`'), ('t', '<=', 'try_add(`closes`, 5)')]
    >>> [(bound.attribute, bound.relation, bound.value) for bound in found[1]]
    [('opens', '<=', '`t`'), ('closes', '>=', 'try_subtract(`t`, 5)')]
    """
    if not residual:
        return NO_BOUNDS
    if equal is None:
        equal = [dict(zip(map(str.lower, others), names, strict=True)) for names, others in (on, on[::-1])]
    named_on = ([name.lower() for name in names] for names in on)
    sides = [_Side(*each) for each in zip(schemas, named_on, equal, strict=True)]
    found: tuple[list[Bound], list[Bound]] = ([], [])
    for part in conjuncts(expression(residual)):
        for left, relation, right in _comparisons(part):
            for own, compared, other in ((left, _MIRRORED[relation], right), (right, relation, left)):
                for side, (mine, theirs) in enumerate((sides, sides[::-1])):
                    value, bounded = mine.over(own), theirs.over(other)
                    if value is not None and bounded is not None:
                        found[side].extend(_bound(mine, value, compared, theirs, bounded))
    of_left, of_right = (_with_domains(bounds, schemas[1 - side]) for side, bounds in enumerate(found))
    return of_left, of_right


def _comparisons(part: exp.Expr) -> Iterator[tuple[exp.Expr, Relation, exp.Expr]]:
    if isinstance(part, exp.Between) and not part.args.get("symmetric"):
        yield part.this, ">=", part.args["low"]
        yield part.this, "<=", part.args["high"]
    for relation in _RELATIONS.get(type(part), ()):
        yield part.this, relation, part.expression


@dataclass(frozen=True, slots=True)
class _Side:
    """A side's schema, its join attributes in lower case, and by the names of others the attribute that equals them."""

    schema: Schema
    on: Collection[str]
    equal: Mapping[str, str]

    def over(self, tree: exp.Expr) -> exp.Expr | None:
        """The expression over this side's attributes; None if it has others, or none."""
        own = {name.lower() for name in self.schema.names}
        names = {name.lower() for name in attributes_in(tree)}
        if not names or not names <= own | self.equal.keys():
            return None
        return tree.copy().transform(
            lambda node: (
                named(self.equal[node.name.lower()])
                if isinstance(node, exp.Column) and node.name.lower() not in own
                else node
            )
        )


def _bound(mine: _Side, own: exp.Expr, relation: Relation, theirs: _Side, other: exp.Expr) -> Iterator[Bound]:
    """The bound that `other relation own` is for a tuple of the side of `own`; nothing if that is not known."""
    own, other = _shifted(mine, own, theirs, other)
    of, compared = bound_type(own, mine.schema), bound_type(other, theirs.schema)
    how = monotone(render(other), theirs.schema)
    if of is None or compared is None or how is None or how.declared:
        return  # What a user declares is checked where it is computed, and not here.
    at = theirs.schema.attribute(how.of)
    if at.name.lower() in theirs.on or at.domain.opaque:
        return  # A bound of a join attribute bounds only the own side.
    if not loses_nothing(compared, of):
        if not loses_nothing(of, compared):
            return
        own, of = cast_to(own, compared.name), compared
    itself = position_of(other.unnest(), theirs.schema) is not None
    if not itself and isinstance(at.domain.sql, FloatType) and at.domain.contains(NAN):
        return
    if not itself and isinstance(compared, StringType):
        return  # A year may be written out of order.
    position = position_of(own.unnest(), mine.schema)
    value = unfailing(own, mine.schema)
    if value is None:
        return
    image = None if itself and compared == of else render(cast_to(other, of.name) if compared != of else other)
    yield Bound(
        at.name,
        relation,
        value,
        tuple(mine.schema.attribute(name).name for name in attributes_in(own)),
        of.name,
        None if position is None else mine.schema[position].name,
        image,
        None if image is None else how,
        widened=itself,
    )


def _shifted(mine: _Side, own: exp.Expr, theirs: _Side, other: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Both sides of a comparison, after subtracting from both what is added to the other side's attribute."""
    other = other.unnest()
    while isinstance(other, exp.Add | exp.Sub):
        left, right = other.this.unnest(), other.expression.unnest()
        if isinstance(other, exp.Add) and not _is_shift(right, left, theirs.schema, other):
            left, right = right, left
        if not _is_shift(right, left, theirs.schema, other):
            break
        if isinstance(bound_type(own, mine.schema), IntegerType) != isinstance(
            bound_type(left, theirs.schema), IntegerType
        ):
            break
        own = _INVERSE[type(other)](this=exp.paren(own.copy()), expression=right.copy())
        other = left
    return own, other


def _is_shift(shift: exp.Expr, of: exp.Expr, schema: Schema, whole: exp.Expr) -> bool:
    """Whether `shift` is a whole number added to another, or a length of time, free of calendars, added to a moment."""
    if isinstance(shift, exp.Interval):
        return monotone(render(whole), schema) is not None
    number: SqlType | None = literal.type if (literal := numeric_literal(shift)) is not None else None
    return isinstance(number, IntegerType) and isinstance(bound_type(of, schema), IntegerType)


def _with_domains(bounds: Sequence[Bound], other: Schema) -> tuple[Bound, ...]:
    """The bounds, each once, completed by the types and domains of the attributes that they bound."""
    below = {bound.attribute for bound in bounds if not bound.upper}

    def known(bound: Bound) -> Bound:
        domain = other.attribute(bound.attribute).domain
        return replace(bound, both=bound.attribute in below or domain.low is not None, counted=domain.counted)

    return tuple(dict.fromkeys(map(known, bounds)))
