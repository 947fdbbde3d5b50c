"""Predicates on a join's output in terms of its inputs, where equal attributes stand for each other.

With x.id = y.auction what asks x.id > 5 asks y.auction > 5, too: a tuple that no pair is wanted of need not wait for a
partner. Equal attributes have one type, to which both sides were cast if need be, and are never null where tuples are
partners; so a part that is never an error says of one what it says of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from operators.logical_properties import Terms, own_terms
from punct_ns.schema import Schema
from punct_ns.slices import quoted


def equal_terms(schemas: Sequence[Schema], classes: Iterable[Mapping[int, str]]) -> list[Terms]:
    """For each input its own attributes, and those of others that must be equal to one of them, as that one.

    A class names equal attributes, at most one of an input, by the inputs' numbers.
    """
    found: list[dict[str, str]] = [{} for _ in schemas]
    for names in classes:
        domains = {i: schemas[i].attribute(name).domain for i, name in names.items()}
        for i, own in names.items():
            for j, name in names.items():
                if domains[j].type == domains[i].type:
                    found[i][name.lower()] = quoted(schemas[i].attribute(own).name)
    return [{**terms, **own_terms(schema)} for terms, schema in zip(found, schemas, strict=True)]


def equal_terms_of_two(schemas: Sequence[Schema], on: Sequence[Sequence[str]]) -> list[Terms]:
    """The same for two inputs with pairwise equal attributes.

    >>> equal_terms_of_two([Schema.of(a="INT", b="INT"), Schema.of(c="INT")], [["a"], ["c"]])
    [{'a': '`a`', 'c': '`a`', 'b': '`b`'}, {'a': '`c`', 'c': '`c`'}]
    """
    return equal_terms(schemas, [dict(enumerate(pair)) for pair in zip(*on, strict=True)])
