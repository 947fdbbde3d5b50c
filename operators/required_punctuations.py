"""Required punctuations of an operator at run time: what its kept rows, and its output, wait for.

A tuple or a group that is kept waits for punctuations of the inputs; so does an operator above that waits for a
punctuation of the output. An operator declares which, in its own module beside `schemes`: a *want* is a punctuation
over an input, and is met once the input has covered it. Wants that are met together suffice; where there are several
ways each is given. By default an operator wants its inputs to be closed, which suffices for any.

Source: after Tucker et al. 2003, Tables 2 to 4, read backwards: from what passes, propagates and is purged to the
punctuations that it takes; the preimages of Tucker et al. 2007, Table 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from punct_ns.domain import Domain, Value
from punct_ns.pattern import Constant
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Attribute, Schema

if TYPE_CHECKING:
    from punct_ns.image import Function


Want: TypeAlias = tuple[int, Punctuation]
"""An input by its number, and a punctuation over its schema."""

Way: TypeAlias = tuple[Want, ...]
"""Wants that suffice together."""

Row: TypeAlias = Mapping[str, Value | None]
"""A kept row, by the names of its attributes."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A log of rows that wait.

    Attributes:
        log: Its name in the state schema.
        what: What its rows are, in a word or two: `groups`, `tuples of the left side`.
        names: The attributes that tell what a row waits for.
        blocks: Whether its rows go out once they are met; else they are only kept for others, and then forgotten.
        beside: Columns that rows are kept with, which tell it, too, and are no attributes.
    """

    log: str
    what: str
    names: tuple[str, ...]
    blocks: bool = True
    beside: tuple[Attribute, ...] = ()


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


class RequiredPunctuations(Protocol):
    """What an operator waits for; `inputs` are their schemas. By default, for the end of its inputs."""

    __slots__ = ()

    def waiting(self, *inputs: Schema) -> Sequence[Waiting]:
        """The logs whose rows wait."""
        return ()

    def wanted_for(self, log: str, row: Row, held: Held, *inputs: Schema) -> Sequence[Way]:
        """The ways in which a row of a log is met."""
        return [whole(*inputs)]

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        """The ways in which a punctuation of the output comes."""
        return [whole(*inputs)]


def whole(*inputs: Schema) -> Way:
    """That all inputs are closed."""
    return tuple((i, Punctuation.all(schema)) for i, schema in enumerate(inputs))


def constants(names: Sequence[str], row: Row, schema: Schema, called: Sequence[str] | None = None) -> Punctuation:
    """The group of a row: constants for these attributes of it, under other names where `called` says so."""
    return Punctuation.of(schema, {new: Constant(row[name]) for name, new in zip(names, called or names, strict=True)})


def on(names: Sequence[str], p: Punctuation, schema: Schema) -> Punctuation:
    """What a punctuation says of these attributes alone, over a schema that has them: more than it says."""
    return Punctuation.of(schema, {name: p.patterns[p.schema.index(name)] for name in names})


def without(first: Want, rows: Iterable[Row] | None, want: Callable[[Row], Want], *inputs: Schema) -> Way:
    """A want, and those of the kept rows that hold it back; the end of the inputs where they are too many."""
    if rows is None:
        return whole(*inputs)
    return tuple(dict.fromkeys((first, *map(want, rows))))
