"""Required punctuations of an operator at run time: what its kept rows, and its output, wait for.

A kept row waits for punctuations of the inputs; so does an operator above that waits for a punctuation of the output. A
*want* is a punctuation over an input, and is met once the input has covered it. A *way* is wants that suffice together;
where there are several ways, one of them suffices. What a row waits for follows from the declaration of its log
(`xmlstream.operators.state.state_schema`); what a punctuation of the output waits for, the operator declares as
`wanted`.

Source: after Tucker et al. 2003, Tables 2 to 4, read backwards: from what passes, propagates and is purged to the
punctuations that it takes; the preimages of Tucker et al. 2007, Table 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.pattern import Constant, Pattern
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import required_pattern
from xmlstream.punct_ns.schema import Attribute, Schema

if TYPE_CHECKING:
    from xmlstream.punct_ns.image import Function


Want: TypeAlias = tuple[int, Punctuation]
"""The number of an input, and a punctuation over its schema."""

Way: TypeAlias = tuple[Want, ...]
"""Wants that together suffice."""

Row: TypeAlias = Mapping[str, Value | None]
"""A kept row, by the names of its attributes."""


class Held(Protocol):
    """The state of the operator whose wants are sought, and the meaning of its expressions."""

    def rows(
        self,
        log: str,
        names: Sequence[str],
        like: Punctuation,
        waiting: str | None = None,
        beside: Sequence[Attribute] = (),
    ) -> Iterable[Row] | None:
        """The distinct rows of a log over these attributes that block a punctuation; None if they are too many.

        A row blocks it if the punctuation matches the row, or if an overlapping one of the blocked set `waiting` does.
        `beside` are extra stored columns, which are no attributes.
        """

    def function(self, expression: str, x: Attribute, y: Domain, *, local: bool) -> Function | None:
        """An expression over one attribute as a function; None if it cannot be computed."""


def whole(*inputs: Schema) -> Way:
    """The end of all inputs."""
    return tuple((i, Punctuation.all(schema)) for i, schema in enumerate(inputs))


def same(row: Row, names: Sequence[str], over: Schema, others: Sequence[str], theirs: Schema) -> Punctuation:
    """The punctuation on the tuples of an input whose values of `others` equal the row's values of `names`.

    Args:
        row: A row.
        names: Attributes of the row.
        over: The schema of these attributes.
        others: The input's attributes that equal them, one by one.
        theirs: The input's schema.

    Returns:
        The punctuation; that of all tuples if no smaller one exists, for example for null in an attribute without null.
    """
    patterns: dict[str, Pattern] = {}
    for name, other in zip(names, others, strict=True):
        wide, own = over.attribute(name).domain, theirs.attribute(other).domain
        value = Constant(row[name])
        pattern = value if wide == own else required_pattern(value, wide, own)
        if pattern is None:
            return Punctuation.all(theirs)
        patterns[other] = pattern
    return Punctuation.of(theirs, patterns)


def on(names: Sequence[str], p: Punctuation, schema: Schema) -> Punctuation:
    """The punctuation with its patterns of these attributes only, over a schema that has them: it matches more."""
    return Punctuation.of(schema, {name: p.patterns[p.schema.index(name)] for name in names})


def without(first: Want, rows: Iterable[Row] | None, want: Callable[[Row], Want], *inputs: Schema) -> Way:
    """A want, and the wants of the kept rows that block it; the end of the inputs if these rows are too many."""
    if rows is None:
        return whole(*inputs)
    return tuple(dict.fromkeys((first, *map(want, rows))))
