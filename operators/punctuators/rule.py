"""Rules of punctuate, each a kind of knowledge: which tuples break what was said, and what may be said now.

A rule marks the tuples of a slice in the order of their positions, so that within a slice, too, a tuple is held against
what those before it have closed. Rules that look back past the slice add rows of their own, without a position.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from operators.state.closed_set import ClosedSet
from operators.state.operator_state import OperatorState
from operators.state.state_schema import StateSchema
from punct_ns.errors import QueryError
from punct_ns.pattern import Pattern, Range, canonical
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Attribute, Schema
from punct_ns.scheme import Scheme, Term
from punct_ns.slices import own

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ASIDE = own("aside")
"""STRING: why a tuple is set aside; null for one that goes on."""

UNGRAMMATICAL = "ungrammatical"
"""Set aside because an earlier punctuation matches the tuple."""

AHEAD = "ahead"
"""Set aside because the tuple is too far ahead of its fellows to be believed."""

Facts = Mapping[str, Any]


class Rule(Protocol):
    """One kind of knowledge; `name` is what it is called in messages."""

    @property
    def name(self) -> str:
        """By what is punctuated."""

    def require(self, schema: Schema) -> None:
        """Makes sure that it makes sense for the input; QueryError or UsageError where it does not."""

    def promises(self) -> tuple[Scheme, ...]:
        """The schemes of the punctuations that it adds."""

    def state_schema(self, schema: Schema) -> StateSchema:
        """What the rule keeps of an input of this schema, beside what it has said."""

    def flagged(self, tuples: DataFrame, state: OperatorState) -> DataFrame:
        """The tuples with `ASIDE`; rows without a position are the rule's own."""

    def aggregates(self, schema: Schema) -> dict[str, str]:
        """Aggregates of the flagged rows, Spark SQL by name; `new_punctuations` gets their values."""

    def new_punctuations(self, flagged: DataFrame | None, facts: Facts, state: OperatorState) -> list[Punctuation]:
        """What holds after the slice, of which `flagged` are the rows, computed; None if no tuple came."""

    def broken(self, values: Facts, flagged: DataFrame, schema: Schema) -> tuple[Punctuation, str]:
        """What the first late tuple breaks that was said within its own slice, or the part of it that matters here.

        `flagged` are the rows of the slice, computed. With it goes what is to be said besides, such as by how much.
        """


def said(state: OperatorState) -> ClosedSet:
    """What punctuate itself has said, and answers for."""
    return state.punctuations("said")


def ordered_attribute(schema: Schema, name: str) -> Attribute:
    """The attribute of that name; QueryError if its values have no order."""
    attribute = schema.attribute(name)
    if attribute.domain.opaque:
        raise QueryError(f"nothing ascends by {attribute.name}: {attribute.domain.type} is not ordered here")
    return attribute


def prefix_of(name: str) -> tuple[Scheme, ...]:
    """The promise of ranges from the start."""
    return (Scheme((Term(name, "prefix"),)),)


def up_to(value: Any, attribute: Attribute, schema: Schema) -> Punctuation:
    """Says that a value, and what is before it, has passed."""
    domain = attribute.domain
    pattern: Pattern = canonical(Range(None, domain.normal(value), high_closed=True), domain)
    return Punctuation.of(schema, {attribute.name: pattern})
