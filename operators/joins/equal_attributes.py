"""Equal attributes of a join: what punctuations, promises and predicates mean for an attribute, and for its equal.

A pattern on one join attribute also holds for its equal: a join on `id = auctionid` that is punctuated on `id` will put
out no more tuples of that id, nor any of that `auctionid`. The pattern stands at one of them alone, with a wildcard at
the other, since at both it would describe neither.

Predicates pass to both inputs: with x.id = y.auction, x.id > 5 means y.auction > 5, too, and a tuple that no pair is
wanted of need not wait for a partner. Equal attributes have one type, to which both sides were cast if need be, and are
never null where tuples are partners; so a part that is never an error holds of one what it holds of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from xmlstream.operators.behaviour import Terms, own_terms
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.pattern import EMPTY, NOT_NULL, WILDCARD, Pattern, matches, meet
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import recast_patterns, required_pattern
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme, Term
from xmlstream.punct_ns.slices import quoted

ALL_CHOICES = 8
"""The number of placements of a punctuation's patterns up to which all are taken; beyond it, each moves by itself."""


def rewritten(p: Punctuation, output: Schema, places: Sequence[Sequence[int]]) -> Iterator[Punctuation]:
    """The punctuation over the output, once for each way to place its patterns.

    Args:
        p: A punctuation over an input.
        output: The output's schema.
        places: For each attribute of the input, its places in the output: first its own, then those of the attributes
            that equal it whenever it is not null.
    """
    restricted = p.restricted
    if len(restricted) == 1 and len(places[restricted[0]]) == 1:
        (i,), (place,) = restricted, places[restricted[0]]
        if p.schema[i].domain == output[place].domain and p.patterns[i] != EMPTY:
            yield Punctuation.at(output, {place: p.patterns[i]}, p.lifespan)
            return
    options: list[list[tuple[int, Pattern]]] = []
    for i in restricted:
        old, pattern = p.schema[i].domain, p.patterns[i]
        own, *others = places[i]
        found = [(own, part) for part in recast_patterns(pattern, old, output[own].domain)]
        for other in others:
            domain = output[other].domain
            parts = recast_patterns(pattern, old, domain)
            moved = (meet(part, NOT_NULL, domain) if domain.nullable else part for part in parts)
            found += [(other, part) for part in moved if part != EMPTY]
        options.append(found)
    for choice in _choices(options):
        patterns: dict[int, Pattern] = {}
        for place, pattern in choice:
            patterns[place] = meet(pattern, patterns.get(place, WILDCARD), output[place].domain)
        if EMPTY not in patterns.values():
            yield Punctuation.at(output, patterns, p.lifespan)


def narrower(own: Pattern, other: Pattern, domain: Domain, others: Domain) -> Pattern:
    """The narrower of an attribute's pattern and that of an equal attribute; the attribute's own if neither is.

    Moved to the other place, it does not match null.
    """
    if matches(other, None):
        return own
    moved = required_pattern(other, others, domain)
    return moved if moved is not None and meet(own, moved, domain) == moved else own


def _choices(options: list[list[tuple[int, Pattern]]]) -> Iterator[tuple[tuple[int, Pattern], ...]]:
    size = 1
    for found in options:
        size *= len(found)
    own = tuple(found[0] for found in options)
    if size <= ALL_CHOICES:
        yield from product(*options)
    else:
        yield own
        yield from ((*own[:i], other, *own[i + 1 :]) for i, found in enumerate(options) for other in found[1:])


def rewritten_schemes(schemes: Sequence[Scheme], equal: Mapping[str, Sequence[str]]) -> list[Scheme]:
    """The schemes, and those with terms moved to equal attributes; `equal` lists these by names in lower case.

    >>> scheme = Scheme((Term("a"), Term("b", "prefix")))
    >>> [str(moved) for moved in rewritten_schemes([scheme], {"a": ["b"], "b": ["a"]})]
    ['a, b prefix', 'a', 'b', 'b, a prefix']
    """
    found: list[Scheme] = []
    for scheme in schemes:
        options = [
            [term, *(term.renamed(name) for name in equal.get(term.attribute.lower(), ()))] for term in scheme.terms
        ]
        found += filter(None, map(_of_terms, product(*options)))
    return list(dict.fromkeys(found))


def _of_terms(terms: Sequence[Term]) -> Scheme | None:
    """The scheme of these terms, some perhaps on one attribute; None if it is not known what two promise together.

    A value together with a prefix closes the value once the prefix reaches it.
    """
    found: dict[str, Term] = {}
    for term in terms:
        known = found.setdefault(term.attribute, term)
        each = [one for one in (known, term) if one.kind == "each"]
        if (known.kind != term.kind and not each) or (known.kind == "tiles" and known != term):
            return None
        found[term.attribute] = each[0] if each else term
    return Scheme(tuple(found.values()))


def equal_terms(schemas: Sequence[Schema], classes: Iterable[Mapping[int, str]]) -> list[Terms]:
    """For each input the terms of its own attributes, and of other inputs' attributes that equal one of them.

    A class names equal attributes by their inputs' numbers, at most one of each input.
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
    """For two inputs with pairwise equal attributes, the terms of each.

    >>> equal_terms_of_two([Schema.of(a="INT", b="INT"), Schema.of(c="INT")], [["a"], ["c"]])
    [{'a': '`a`', 'c': '`a`', 'b': '`b`'}, {'a': '`c`', 'c': '`c`'}]
    """
    return equal_terms(schemas, [dict(enumerate(pair)) for pair in zip(*on, strict=True)])
