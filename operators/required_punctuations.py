"""Required punctuations of an operator at run time: what its kept rows, and its output, wait for.

A kept row waits for punctuations of the inputs; so does an operator above that waits for a punctuation of the output. A
*want* is a punctuation over an input, and is met once the input has covered it. A *way* is wants that suffice together;
where there are several ways, one of them suffices. What a row waits for follows from the declaration of its log
(`operators.state.state_schema`); what a punctuation of the output waits for, the operator declares as `wanted`.

Source: after Tucker et al. 2003, Tables 2 to 4, read backwards: from what passes, propagates and is purged to the
punctuations that it takes; the preimages of Tucker et al. 2007, Table 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from punct_ns.domain import Domain, Value
from punct_ns.pattern import Constant, Pattern
from punct_ns.punctuation import Punctuation
from punct_ns.recast import asked_pattern
from punct_ns.schema import Attribute, Schema

if TYPE_CHECKING:
    from punct_ns.image import Function


Want: TypeAlias = tuple[int, Punctuation]
"""An input by its number, and a punctuation over its schema."""

Way: TypeAlias = tuple[Want, ...]
"""Wants that suffice together."""

Row: TypeAlias = Mapping[str, Value | None]
"""A kept row, by the names of its attributes."""


class Held(Protocol):
    """What is kept by the operator that is asked, and what its expressions mean."""

    def rows(
        self,
        log: str,
        names: Sequence[str],
        like: Punctuation,
        waiting: str | None = None,
        beside: Sequence[Attribute] = (),
    ) -> Iterable[Row] | None:
        """The different rows of a log over these attributes that hold a punctuation back; None where they are too many.

        They match it; or, of the declared set of those that were said and wait for kept rows, one that speaks of the
        same. `beside` are columns that they are kept with, which are no attributes.
        """

    def function(self, expression: str, x: Attribute, y: Domain, *, local: bool) -> Function | None:
        """An expression over one attribute as a function; None where nobody computes it."""


def whole(*inputs: Schema) -> Way:
    """That all inputs are closed."""
    return tuple((i, Punctuation.all(schema)) for i, schema in enumerate(inputs))


def constants(names: Sequence[str], row: Row, schema: Schema, called: Sequence[str] | None = None) -> Punctuation:
    """The group of a row: constants for these attributes of it, under other names where `called` says so."""
    return Punctuation.of(schema, {new: Constant(row[name]) for name, new in zip(names, called or names, strict=True)})


def same(row: Row, names: Sequence[str], over: Schema, others: Sequence[str], theirs: Schema) -> Punctuation:
    """The tuples of an input that agree with a row: on `others`, with its values of `names`.

    Args:
        row: A row.
        names: Attributes of the row.
        over: The schema that has these attributes.
        others: The attributes of the input that are equal to them, one by one.
        theirs: The input's schema.

    Returns:
        The punctuation; that of all tuples where none says less, such as of null, which the input does not have.
    """
    found: dict[str, Pattern] = {}
    for name, other in zip(names, others, strict=True):
        wide, own = over.attribute(name).domain, theirs.attribute(other).domain
        value = Constant(row[name])
        pattern = value if wide == own else asked_pattern(value, wide, own)
        if pattern is None:
            return Punctuation.all(theirs)
        found[other] = pattern
    return Punctuation.of(theirs, found)


def on(names: Sequence[str], p: Punctuation, schema: Schema) -> Punctuation:
    """What a punctuation says of these attributes alone, over a schema that has them: more than it says."""
    return Punctuation.of(schema, {name: p.patterns[p.schema.index(name)] for name in names})


def without(first: Want, rows: Iterable[Row] | None, want: Callable[[Row], Want], *inputs: Schema) -> Way:
    """A want, and those of the kept rows that hold it back; the end of the inputs where they are too many."""
    if rows is None:
        return whole(*inputs)
    return tuple(dict.fromkeys((first, *map(want, rows))))
