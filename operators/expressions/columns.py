"""Columns: the attributes of an output, each an expression over an input; what schemes and punctuations say of them.

An attribute of the input may be several columns: copied, or computed with by functions that are monotone. A *choice*
has one column for each; what is said of the input is said of the output once for each choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product

from operators.expressions.coalesced import coalesced, instead
from operators.expressions.dependence import Monotone
from operators.expressions.monotone import monotone
from punct_ns.punctuation import Punctuation
from punct_ns.recast import recast_patterns
from punct_ns.schema import Attribute, Schema
from punct_ns.scheme import Term
from punct_ns.slices import quoted

CHOICES = 16
"""Ways to write a punctuation where attributes are both copied and computed with, beyond which the rest is left out."""


@dataclass(frozen=True, slots=True)
class Column:
    """One attribute of the output: Spark SQL over the input's attributes.

    `copy_of` names the input attribute that it is, unchanged or widened without loss; None where it is computed.
    `monotone` is how it is computed from one attribute; None where that does not matter, or is not known. `either` are
    what it is where the first of several attributes that is not null is this one or that; none where it is anything
    else.
    """

    attribute: Attribute
    expression: str
    copy_of: str | None = None
    monotone: Monotone | None = None
    either: tuple[Column, ...] = ()

    @staticmethod
    def computed(attribute: Attribute, expression: str, schema: Schema) -> Column:
        """What is computed from attributes of the schema, with what is known of how."""
        copies = coalesced(expression, schema, attribute.domain)
        either = [
            Column(attribute, text, name) if name in copies else Column(attribute, text, None, monotone(text, schema))
            for name, text in instead(expression, schema, attribute.domain).items()
        ]
        known = tuple(either) if all(column.source for column in either) else ()
        return Column(attribute, expression, None, monotone(expression, schema), known)

    @property
    def source(self) -> str | None:
        """The one input attribute whose punctuations speak of this one."""
        return self.copy_of or (self.monotone.of if self.monotone else None)


def choices(columns: Sequence[Column]) -> Iterator[dict[str, Column]]:
    """For each input attribute, by its name in lower case, a column that speaks of it; copies are all alike."""
    options: dict[str, list[Column]] = {}
    for column in sorted(columns, key=lambda column: column.monotone is not None):
        if column.source is not None:
            known = options.setdefault(column.source.lower(), [])
            if column.monotone is not None or not known:
                known.append(column)
    for chosen in islice(product(*options.values()), CHOICES):
        yield dict(zip(options, chosen, strict=True))


def carried(term: Term, choice: Mapping[str, Column], columns: Sequence[Column]) -> list[str]:
    """The names under which the promise of a term goes on: of each copy, or of what is computed; none where it ends."""
    column = choice.get(term.attribute.lower())
    if column is None:
        return []
    how = column.monotone
    if how is None:
        return [each.attribute.name for each in columns if (each.copy_of or "").lower() == term.attribute.lower()]
    values_close = how.injective or (how.narrow and term.fills(counted=how.counted))
    kept = values_close if term.kind == "each" else term.kind == "prefix" and not how.falling
    return [column.attribute.name] if kept else []


def computed(term: Term, choice: Mapping[str, Column]) -> Term:
    """The promise of a term with what it means to the column that speaks of its attribute.

    Constants that close stretches of an attribute close stretches of what is computed from it; those of moments close
    none, though what is computed from them be a whole number. A wider type has values between those of a copy.
    """
    column = choice.get(term.attribute.lower())
    if column is None or term.kind != "each":
        return term
    if column.monotone is not None:
        fills = term.fills(counted=column.monotone.counted)
        return replace(term, counted=None if fills == column.attribute.domain.counted else fills)
    return term if column.copy_of and column.expression == quoted(column.copy_of) else replace(term, counted=None)


def images(
    names: Sequence[str], choice: Mapping[str, Column], schema: Schema
) -> Iterator[tuple[int, Column, str, Schema]]:
    """Where f(x) takes the place of x, one attribute after the other, in punctuations over a schema.

    Of each its place, the column, the name of the set of what is said by then, and what that is over.
    """
    passed = ""
    for i, name in enumerate(names):
        if (column := choice[name.lower()]).monotone is not None:
            attribute = Attribute(name, column.attribute.domain)
            schema = Schema(tuple(attribute if at == i else other for at, other in enumerate(schema)))
            passed = f"{passed} through {column.attribute.name}".strip()
            yield i, column, passed, schema


def written(
    p: Punctuation, columns: Sequence[Column], computed: Mapping[str, Column], output: Schema
) -> list[Punctuation]:
    """The punctuation over the output; several where an attribute is copied to several places: each says it all.

    Args:
        p: Over the input, with the values of columns in place of those that are `computed` with.
        columns: All of the output.
        computed: The columns whose values it has, by the names of the input's attributes.
        output: The output's schema.
    """
    places = [
        [
            i
            for i, c in enumerate(columns)
            if (c is computed[a.name] if a.name in computed else (c.copy_of or "").lower() == a.name.lower())
        ]
        for a in p.schema
    ]
    result = []
    for chosen in product(*(places[i] for i in p.restricted)):
        pairs = zip(p.restricted, chosen, strict=True)
        each = (recast_patterns(p.patterns[i], p.schema[i].domain, output[place].domain) for i, place in pairs)
        said = (dict(zip(chosen, patterns, strict=True)) for patterns in product(*each))
        result += [Punctuation.at(output, patterns, p.lifespan) for patterns in said]
    return result
