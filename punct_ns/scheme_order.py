"""The order of schemes: which promises imply which, their meets, and which groupings they cover.

A set of tuples is *compact* relative to a scheme if finitely many punctuations of it cover the set. A scheme implies
another one if every punctuation of the other is compact relative to it: whoever waits for the second is served by the
first. In that order all tilings of an attribute are equal, since finitely many tiles are the wildcard.

Constants imply the tiles of whole numbers and days, and of what is computed from them: between two of them there are
few, and each is closed in the end. To the paper moments are finitely many in a window, too; but no source says the
600,000,000 microseconds of ten minutes one by one, so that here constants of moments, as of texts and fractions, close
nothing but themselves.

Source: Tucker et al. 2007, §3.2 and §3.3. Every scheme that can be written is *complete* (§3.2): its terms say every
value in the end.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import combinations, product

from punct_ns.domain import Domain
from punct_ns.numeric_type import FloatType, number
from punct_ns.pattern import values
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme, Term, is_finite
from punct_ns.value_set import ValueSet


def is_covered(term: Term, domain: Domain) -> bool:
    """Whether finitely many patterns of the term cover the domain, null included."""
    return (term.finite or is_finite(term.kind, domain)) and (term.null or not domain.nullable)


def is_compact(grouping: Collection[str], scheme: Scheme, schema: Schema, *, null: bool = True) -> bool:
    """Whether each group of the grouping on these attributes is covered by finitely many punctuations of the scheme.

    Without `null` those groups do not matter in which an attribute is null.

    That of Fig. 3: bids of one bidder in one hour are closed, which closes hours if there are finitely many bidders.

    >>> bids = Schema.parse("bidderid INT, hour INT")
    >>> few = Schema.parse("bidderid INT, hour INT", domains="bidderid 1..500")
    >>> scheme = Scheme((Term("bidderid"), Term("hour")))
    >>> is_compact(["hour"], scheme, bids), is_compact(["hour"], scheme, few), is_compact(["bidderid"], scheme, few)
    (False, True, False)
    """
    return implies(scheme, Scheme(tuple(Term(name, null=null) for name in grouping)), schema)


def implies(mine: Scheme, other: Scheme, schema: Schema) -> bool:
    """Whether each punctuation of the other scheme is covered by finitely many of mine.

    >>> schema = Schema.parse("hour INT NOT NULL")
    >>> prefix, each = Scheme((Term("hour", "prefix"),)), Scheme((Term("hour"),))
    >>> implies(prefix, each, schema), implies(each, prefix, schema)
    (True, False)
    """
    asked = {schema.index(term.attribute): term for term in other.terms}
    places = [schema.index(term.attribute) for term in mine.terms]
    return all(_serves(term, asked.get(i), schema[i].domain) for i, term in zip(places, mine.terms, strict=True))


def _serves(mine: Term, asked: Term | None, domain: Domain) -> bool:
    """Whether finitely many patterns of my term cover each pattern of the one that is asked; None is the wildcard."""
    if is_covered(mine, domain):
        return True
    if not mine.null and domain.nullable and (asked is None or asked.null):
        return False
    if asked is None:
        return False
    match mine.kind, asked.kind:
        case _, "each":
            return not asked.counted or mine.fills(counted=domain.counted)
        case "prefix", _:
            return True
        case _, "prefix":
            return domain.low is not None and mine.fills(counted=domain.counted)
        case _:
            return mine.fills(counted=domain.counted)


def meet(mine: Scheme, other: Scheme, schema: Schema) -> Scheme:
    """The promise of a stream whose punctuations are the meets of those of two others, as those of a merge are.

    >>> schema = Schema.parse("sid STRING, hour INT NOT NULL")
    >>> str(meet(Scheme((Term("hour", "prefix"),)), Scheme((Term("hour"), Term("sid"))), schema))
    'hour, sid'
    """
    terms = {schema.index(term.attribute): term for term in mine.terms}
    for term in other.terms:
        i = schema.index(term.attribute)
        terms[i] = _met(terms[i], term, schema[i].domain) if i in terms else term
    return Scheme(tuple(term.renamed(schema[i].name) for i, term in terms.items()))


_FINEST = ("each", "tiles", "prefix")


def _met(mine: Term, other: Term, domain: Domain) -> Term:
    """The term whose patterns are the meets of theirs: the finer one. Of two tilings, the one of smaller tiles.

    Finitely many meets cover the domain if as many of both do. Tiles that meet patterns without number are constants,
    one by one, as far as that is known.
    """
    finer = min(mine, other, key=lambda term: (_FINEST.index(term.kind), number(str(term.step or 0))))
    null, finite = mine.null and other.null, mine.finite and other.finite
    fills = all(term.fills(counted=domain.counted) for term in (mine, other))
    counted = None if fills == domain.counted else fills
    if finer.kind == "tiles" and not finite:
        return Term(finer.attribute, null=null, counted=counted)
    return replace(finer, null=null, finite=finite, counted=counted)


def meets(inputs: Sequence[Iterable[Scheme]], schema: Schema) -> tuple[Scheme, ...]:
    """The schemes of the meets of several streams' punctuations, one of each; those that others imply are left out.

    >>> schema = Schema.parse("sid STRING, hour INT NOT NULL")
    >>> prefix, each = Scheme((Term("hour", "prefix"),)), Scheme((Term("hour"),))
    >>> [str(scheme) for scheme in meets([[prefix, Scheme((Term("sid"),))], [each]], schema)]
    ['hour']
    """
    first, *others = inputs
    found = list(dict.fromkeys(first))
    for schemes in others:
        found = list(dict.fromkeys(meet(a, b, schema) for a, b in product(found, schemes)))
    return strongest(found, schema)


def strongest(schemes: Iterable[Scheme], schema: Schema) -> tuple[Scheme, ...]:
    """The schemes without those that another one implies; of equal ones the first.

    >>> schema = Schema.parse("hour INT NOT NULL, sid STRING")
    >>> said = [Scheme((Term("hour"), Term("sid"))), Scheme((Term("hour"),)), Scheme((Term("hour", "prefix"),))]
    >>> [str(scheme) for scheme in strongest(said, schema)]
    ['hour prefix']
    """
    left: list[Scheme] = []
    index = _Implying(schema)
    for scheme in schemes:
        if not index.implies(scheme):
            left.append(scheme)
            index.add(scheme)
    return tuple(scheme for scheme in left if not index.implies(scheme))


class _Implying:
    """Schemes by the attributes that another one must restrict, too, to be implied: by those that are not covered."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._by_needed: dict[frozenset[int], list[Scheme]] = {}

    def add(self, scheme: Scheme) -> None:
        places = ((self._schema.index(term.attribute), term) for term in scheme.terms)
        needed = frozenset(i for i, term in places if not is_covered(term, self._schema[i].domain))
        self._by_needed.setdefault(needed, []).append(scheme)

    def implies(self, scheme: Scheme) -> bool:
        """Whether another one that was added implies the scheme."""
        given = frozenset(map(self._schema.index, scheme.attributes))
        few = len(given) <= _FEW
        parts = (frozenset(c) for size in range(len(given) + 1) for c in combinations(given, size))
        for needed in parts if few else [n for n in self._by_needed if n <= given]:
            for other in self._by_needed.get(needed, ()):
                if other is not scheme and implies(other, scheme, self._schema):
                    return True
        return False


_FEW = 4
"""Attributes of a scheme whose parts are fewer than the schemes that there may be."""


def completed_by(schemes: Iterable[Scheme], said: Iterable[Punctuation], schema: Schema) -> tuple[Scheme, ...]:
    """The schemes of a stream that says some punctuations besides, from the beginning on.

    A term of an attribute is finite if finitely many of its patterns cover the values that are left.

    >>> schema = Schema.parse("hour INT NOT NULL, sid STRING")
    >>> prefix = Scheme((Term("hour", "prefix"),))
    >>> (before_five,) = completed_by([prefix], [Punctuation.parse("<[5,), *>", schema)], schema)
    >>> is_compact(["sid"], prefix, schema), is_compact(["sid"], before_five, schema)
    (False, True)
    """
    closed: dict[int, ValueSet] = {}
    ended = (Scheme(()),)
    for p in said:
        if p.is_all:
            return ended
        if len(p.restricted) == 1:
            (i,) = p.restricted
            domain = schema[i].domain
            closed[i] = values(p.patterns[i], domain).union(closed.get(i, ValueSet(domain)))
    left = {i: found.complement() for i, found in closed.items()}
    if any(rest.is_empty for rest in left.values()):
        return ended

    def completed(term: Term) -> Term:
        rest = left.get(schema.index(term.attribute))
        if rest is None:
            return term
        finite = term.finite or _is_exhausted(term, rest)
        return replace(term, finite=finite, null=term.null or not rest.null)

    return tuple(Scheme(tuple(map(completed, scheme.terms))) for scheme in schemes)


def _is_exhausted(term: Term, left: ValueSet) -> bool:
    """Whether finitely many patterns of the term cover the values that are left; null aside."""
    domain, cuts = left.domain, left.cuts
    is_below = len(cuts) % 2 == 0
    match term.kind:
        case "tiles":
            return True
        case "prefix":
            endless = (math.inf, 0) if isinstance(domain.sql, FloatType) else domain.top
            return is_finite("prefix", domain) or (is_below and (not cuts or cuts[-1] < endless))
        case "each" if term.fills(counted=domain.counted):
            is_above = not cuts or cuts[0] > domain.bottom
            return (is_above or domain.low is not None) and (is_below or domain.high is not None)
        case "each":
            return left.all_single
