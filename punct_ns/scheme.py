"""Schemes: the punctuations that a source promises (Tucker et al. 2007, §3.2; Li et al. 2006, §2.3), and their order.

Notation: `;` separates schemes, `,` separates terms; an attribute without a term is a wildcard. A term is
`hour` (constants or lists: every value is closed eventually), `min 0..59 by 10` (ranges that tile a finite domain), or
`ts prefix` (ever longer ranges from the start: ordered data, watermarks, heartbeats).

A set of tuples is *compact* relative to a scheme if finitely many punctuations of the scheme cover the set. A scheme
implies another one if every punctuation of the other is compact relative to it: an operator that needs the second is
satisfied by the first. In that order all tilings of an attribute are equal, since finitely many tiles cover everything.

Constants imply tiles for integers and dates, and for values computed from them: an interval has few of these values,
and each is closed eventually. For the paper a window also has finitely many moments; but no source closes the
600,000,000 microseconds of ten minutes one by one, so here a constant of a timestamp, a text or a fraction only closes
itself.

Source: Tucker et al. 2007, §3.2 and §3.3. Every scheme in this notation is *complete* (§3.2): each value of its
terms is closed eventually.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import combinations, product
from typing import Literal, TypeAlias

from xmlstream.dataclasses import dataclass, replace
from xmlstream.punct_ns.domain import BLANKS, NAN, Domain, Value
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.numeric_type import DecimalType, FloatType, IntegerType, exact_number
from xmlstream.punct_ns.pattern import values
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema, parsed_bounds, split_name, written_name
from xmlstream.punct_ns.sql_type import BooleanType, DiscreteType
from xmlstream.punct_ns.temporal_type import DateType
from xmlstream.punct_ns.type_names import split_outside
from xmlstream.punct_ns.value_set import ValueSet

Kind: TypeAlias = Literal["each", "tiles", "prefix"]
"""The patterns that a term promises."""

_HINT = "a term is `hour`, `min 0..59 by 10` or `ts prefix`"


@dataclass(frozen=True, slots=True)
class Term:
    """The promise for one attribute.

    `each`: constants or lists, for every value; `tiles`: the ranges of `step` from `low` to `high`, both inclusive, the
    last one perhaps shorter; `prefix`: ranges without a lower end. The step counts integers, decimals, or days.

    `finite`: finitely many of its patterns cover the domain, as tiles do, or constants of a domain that is declared to
    be finite. `null`: null, if the attribute is nullable, is one of the values; false for an attribute to which an
    outer join adds nulls. `counted`: constants close every interval between two values one by one, as those of
    integers do, or those of moments computed from integers; None where the attribute's type decides.
    """

    attribute: str
    kind: Kind = "each"
    low: Value | None = None
    high: Value | None = None
    step: Value | None = None
    finite: bool = False
    null: bool = True
    counted: bool | None = None

    def __post_init__(self) -> None:
        if self.kind == "tiles":
            object.__setattr__(self, "finite", True)

    def renamed(self, attribute: str) -> Term:
        """Returns the same term for another attribute name."""
        return replace(self, attribute=attribute)

    def fills(self, *, counted: bool) -> bool:
        """Whether finitely many of its patterns cover each bounded interval of values.

        Args:
            counted: Whether the attribute's type is counted (`Domain.counted`).

        >>> Term("ts", "prefix").fills(counted=False), Term("ts").fills(counted=False), Term("n").fills(counted=True)
        (True, False, True)
        """
        return self.kind != "each" or (counted if self.counted is None else self.counted)

    def __str__(self) -> str:
        name = written_name(self.attribute)
        match self.kind:
            case "each":
                return name
            case "prefix":
                return f"{name} prefix"
            case "tiles":
                return f"{name} {self.low}..{self.high} by {self.step}"


@dataclass(frozen=True, slots=True)
class Scheme:
    """A promise: punctuations that restrict exactly these attributes, each by a pattern of its term.

    Without terms it promises the end of the stream.

    >>> str(Scheme((Term("hour"), Term("min", "tiles", 0, 59, 10))))
    'hour, min 0..59 by 10'
    """

    terms: tuple[Term, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.terms))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the restricted attributes.

        >>> Scheme((Term("auctionid"), Term("bidderid"))).attributes
        ('auctionid', 'bidderid')
        """
        return tuple(term.attribute for term in self.terms)

    def has_exact_text(self, schema: Schema) -> bool:
        """Whether the text of the scheme, parsed again, promises no more than the scheme.

        A text promises null for nullable attributes, and constants that close intervals of integers one by one.

        >>> schema = Schema.parse("a INT, b INT NOT NULL")
        >>> [Scheme((Term(name, null=False),)).has_exact_text(schema) for name in schema.names]
        [False, True]
        """
        pairs = [(term, schema.attribute(term.attribute).domain) for term in self.terms]
        return all((t.null or not d.nullable) and (t.fills(counted=d.counted) or not d.counted) for t, d in pairs)

    def renamed(self, names: Mapping[str, str]) -> Scheme | None:
        """Returns the scheme with new names, a mapping from old names in lower case; None if the promise is lost.

        An attribute without a new name is projected away. If finitely many patterns of its term, null included, cover
        its domain, they complete it eventually; otherwise the promise is lost. If this completes all terms, a scheme
        without terms remains: the stream ends eventually.

        >>> str(Scheme((Term("hour"), Term("min", "tiles", 0, 59, 10))).renamed({"hour": "h"}))
        'h'
        >>> Scheme((Term("hour"), Term("sid"))).renamed({"hour": "h"}) is None
        True
        >>> Scheme((Term("min", "tiles", 0, 59, 10),)).renamed({}) == Scheme(())
        True
        """
        left: list[Term] = []
        for term in self.terms:
            name = names.get(term.attribute.lower())
            if name is not None:
                left.append(term.renamed(name))
            elif not (term.finite and term.null):
                return None
        return Scheme(tuple(left))


def parse_schemes(text: str, schema: Schema) -> tuple[Scheme, ...]:
    """Parses the schemes declared for a schema; UsageError if unreadable or not meaningful for a type.

    >>> schema = Schema.parse("auctionid INT, bidderid INT, ts TIMESTAMP")
    >>> [str(scheme) for scheme in parse_schemes("auctionid,bidderid; ts prefix", schema)]
    ['auctionid, bidderid', 'ts prefix']
    """
    schemes: list[Scheme] = []
    for part in split_outside(text, ";"):
        if part.strip(BLANKS):
            terms = tuple(_term(term, schema) for term in split_outside(part, ","))
            names = [term.attribute for term in terms]
            if len(set(names)) < len(names):
                raise UsageError(f"the scheme '{part.strip(BLANKS)}' names an attribute twice")
            schemes.append(Scheme(terms))
    return tuple(dict.fromkeys(schemes))


def format_schemes(schemes: Iterable[Scheme]) -> str:
    """Writes schemes as text, without those that have the same text; `parse_schemes` is the inverse.

    >>> format_schemes([Scheme((Term("hour"),)), Scheme((Term("ts", "prefix"),))])
    'hour; ts prefix'
    """
    return "; ".join(dict.fromkeys(map(str, schemes)))


def implied(schema: Schema, schemes: Iterable[Scheme]) -> Schema:
    """Returns the schema with what its schemes imply: tiles and prefixes imply NOT NULL and no NaN, tiles their bounds.

    Raises UsageError if tiles are outside the declared domain.

    >>> schema = Schema.parse("hour INT, min INT")
    >>> implied(schema, parse_schemes("hour, min 0..59 by 10", schema))["min"].domain
    Domain(type='INT', nullable=False, low=0, high=59, listed=None)
    """
    attributes = list(schema.attributes)
    for scheme in schemes:
        for term in scheme.terms:
            index = schema.index(term.attribute)
            attributes[index] = Attribute(attributes[index].name, _implied(attributes[index].domain, term))
    return Schema(tuple(attributes))


def _implied(domain: Domain, term: Term) -> Domain:
    match term.kind:
        case "each":
            return domain
        case "prefix":
            high = math.inf if isinstance(domain.sql, FloatType) and domain.high is None else domain.high
            listed = domain.listed and tuple(value for value in domain.listed if value != NAN)
            return Domain(domain.type, nullable=False, low=domain.low, high=high, listed=listed)
        case "tiles":
            low = _innermost(max, (domain.low, term.low), domain)
            high = _innermost(min, (domain.high, term.high), domain)
            try:
                tiled = Domain(domain.type, nullable=False, low=low, high=high)
                return replace(tiled, listed=domain.listed and tuple(filter(tiled.contains, domain.listed)))
            except ValueError as reason:
                raise UsageError(f"'{term}' lies outside the declared domain: {reason}") from None


def _innermost(which: Callable[..., Value], bounds: Sequence[Value | None], domain: Domain) -> Value | None:
    """The greatest or the least (`which`) of the bounds that are not None; None if all are."""
    known = [bound for bound in bounds if bound is not None]
    return which(known, key=lambda bound: domain.cut(bound, after=False)) if known else None


def is_finite(kind: Kind, domain: Domain) -> bool:
    """Whether finitely many patterns of that kind cover the domain; constants do if the domain is declared finite.

    >>> is_finite("each", Domain("INT")), is_finite("each", Domain("INT", low=0, high=23))
    (False, True)
    """
    match kind:
        case "tiles":
            return True
        case "prefix":
            return domain.high is not None and domain.high != math.inf
        case "each":
            return isinstance(domain.sql, BooleanType) or (domain.counted and None not in (domain.low, domain.high))


def _term(text: str, schema: Schema) -> Term:
    if not text.strip(BLANKS):
        raise UsageError("a scheme with an empty term", hint=_HINT)
    name, rest = split_name(text)
    attribute = schema.attribute(name)
    if attribute.domain.opaque:
        raise UsageError(f"no scheme can describe {attribute.name}: {attribute.domain.type} admits only * and null")
    if not rest:
        return Term(attribute.name, finite=is_finite("each", attribute.domain))
    if rest.lower() == "prefix":
        return Term(attribute.name, "prefix", finite=is_finite("prefix", attribute.domain))
    bounds, by, step = re.sub(r"(?i)\s+by\s+", " by ", rest).partition(" by ")
    low, high = parsed_bounds(bounds, attribute) if ".." in bounds else (None, None)
    if not by or low is None or high is None:
        raise UsageError(f"'{text.strip(BLANKS)}' is not a valid term of a scheme", hint=_HINT)
    return Term(attribute.name, "tiles", low, high, _step(step, attribute))


def _step(text: str, attribute: Attribute) -> Value:
    try:
        match attribute.domain.sql:
            case IntegerType() | DateType():
                step: Value = int(IntegerType("INT", 32).read(text))
            case DecimalType() as decimal:
                step = decimal.read(text)
            case DiscreteType() | _:
                raise ValueError(f"{attribute.domain.type} is not tiled")
    except ValueError as reason:
        raise UsageError(f"'{text}' is not a valid step of {attribute.name}: {reason}") from None
    if exact_number(str(step)) <= 0:
        raise UsageError(f"the step of {attribute.name} is {text}; it must be above zero")
    return step


def is_covered(term: Term, domain: Domain) -> bool:
    """Whether finitely many patterns of the term cover the domain, null included."""
    return (term.finite or is_finite(term.kind, domain)) and (term.null or not domain.nullable)


def is_compact(grouping: Collection[str], scheme: Scheme, schema: Schema, *, null: bool = True) -> bool:
    """Whether finitely many punctuations of the scheme cover each group of the grouping on these attributes.

    Without `null`, groups in which an attribute is null are ignored.

    The case of Fig. 3: closing bids of one bidder in one hour closes an hour if there are finitely many bidders.

    >>> bids = Schema.parse("bidderid INT, hour INT")
    >>> few = Schema.parse("bidderid INT, hour INT", domains="bidderid 1..500")
    >>> scheme = Scheme((Term("bidderid"), Term("hour")))
    >>> is_compact(["hour"], scheme, bids), is_compact(["hour"], scheme, few), is_compact(["bidderid"], scheme, few)
    (False, True, False)
    """
    return implies(scheme, Scheme(tuple(Term(name, null=null) for name in grouping)), schema)


def implies(mine: Scheme, other: Scheme, schema: Schema) -> bool:
    """Whether finitely many punctuations of `mine` cover each punctuation of `other`.

    >>> schema = Schema.parse("hour INT NOT NULL")
    >>> prefix, each = Scheme((Term("hour", "prefix"),)), Scheme((Term("hour"),))
    >>> implies(prefix, each, schema), implies(each, prefix, schema)
    (True, False)
    """
    required = {schema.index(term.attribute): term for term in other.terms}
    places = [schema.index(term.attribute) for term in mine.terms]
    return all(_serves(term, required.get(i), schema[i].domain) for i, term in zip(places, mine.terms, strict=True))


def _serves(mine: Term, required: Term | None, domain: Domain) -> bool:
    """Whether finitely many patterns of `mine` cover each pattern of the required term; None is the wildcard."""
    if is_covered(mine, domain):
        return True
    if not mine.null and domain.nullable and (required is None or required.null):
        return False
    if required is None:
        return False
    match mine.kind, required.kind:
        case _, "each":
            return not required.counted or mine.fills(counted=domain.counted)
        case "prefix", _:
            return True
        case _, "prefix":
            return domain.low is not None and mine.fills(counted=domain.counted)
        case _:
            return mine.fills(counted=domain.counted)


def meet_of(mine: Scheme, other: Scheme, schema: Schema) -> Scheme:
    """Returns the scheme of a stream whose punctuations are the meets of those of two others, as a merge's are.

    >>> schema = Schema.parse("sid STRING, hour INT NOT NULL")
    >>> str(meet_of(Scheme((Term("hour", "prefix"),)), Scheme((Term("hour"), Term("sid"))), schema))
    'hour, sid'
    """
    terms = {schema.index(term.attribute): term for term in mine.terms}
    for term in other.terms:
        i = schema.index(term.attribute)
        terms[i] = _met(terms[i], term, schema[i].domain) if i in terms else term
    return Scheme(tuple(term.renamed(schema[i].name) for i, term in terms.items()))


_FINEST = ("each", "tiles", "prefix")


def _met(mine: Term, other: Term, domain: Domain) -> Term:
    """Returns the term whose patterns are the meets of theirs: the finer one; of two tilings the one of smaller tiles.

    Finitely many meets cover the domain if finitely many patterns of both do. Meets of tiles with an infinite number of
    patterns are constants, counted as far as that is known.
    """
    finer = min(mine, other, key=lambda term: (_FINEST.index(term.kind), exact_number(str(term.step or 0))))
    null, finite = mine.null and other.null, mine.finite and other.finite
    fills = all(term.fills(counted=domain.counted) for term in (mine, other))
    counted = None if fills == domain.counted else fills
    if finer.kind == "tiles" and not finite:
        return Term(finer.attribute, null=null, counted=counted)
    return replace(finer, null=null, finite=finite, counted=counted)


def meets(inputs: Sequence[Iterable[Scheme]], schema: Schema) -> tuple[Scheme, ...]:
    """Returns the schemes of the meets of several streams' punctuations, without those that others imply.

    >>> schema = Schema.parse("sid STRING, hour INT NOT NULL")
    >>> prefix, each = Scheme((Term("hour", "prefix"),)), Scheme((Term("hour"),))
    >>> [str(scheme) for scheme in meets([[prefix, Scheme((Term("sid"),))], [each]], schema)]
    ['hour']
    """
    times, different = Counter[tuple[Scheme, ...]](), list[tuple[Scheme, ...]]()
    for promised in map(tuple, inputs):
        times[promised] += 1
        if times[promised] <= 2:  # the same once more adds nothing
            different.append(promised)
    first, *others = different
    found = list(dict.fromkeys(first))
    for schemes in others:
        found = list(dict.fromkeys(meet_of(a, b, schema) for a, b in product(found, schemes)))
    return strongest(found, schema)


def strongest(schemes: Iterable[Scheme], schema: Schema) -> tuple[Scheme, ...]:
    """Returns the schemes that no other scheme implies; of equal schemes the first.

    >>> schema = Schema.parse("hour INT NOT NULL, sid STRING")
    >>> schemes = [Scheme((Term("hour"), Term("sid"))), Scheme((Term("hour"),)), Scheme((Term("hour", "prefix"),))]
    >>> [str(scheme) for scheme in strongest(schemes, schema)]
    ['hour prefix']
    >>> few = Scheme((Term("hour", finite=True),))  # which the end of the stream follows from
    >>> strongest([Scheme((Term("hour"),)), few], schema) == (few,)
    True
    """
    left: list[Scheme] = []
    index = _Implying(schema)
    for scheme in schemes:
        if not index.implies(scheme):
            left.append(scheme)
            index.add(scheme)
    return tuple(scheme for scheme in left if not index.implies(scheme))


class _Implying:
    """Schemes, indexed by the attributes that a scheme they imply must also leave open: those they do not cover."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._by_needed: dict[frozenset[int], list[Scheme]] = {}

    def add(self, scheme: Scheme) -> None:
        self._by_needed.setdefault(self._uncovered(scheme), []).append(scheme)

    def implies(self, scheme: Scheme) -> bool:
        """Whether another scheme, added before, implies this one, and all that follows from it.

        Terms that cover their attributes can be left out of a scheme; so another scheme must not need them.
        """
        given = self._uncovered(scheme)
        few = len(given) <= _FEW
        parts = (frozenset(c) for size in range(len(given) + 1) for c in combinations(given, size))
        for needed in parts if few else [n for n in self._by_needed if n <= given]:
            for other in self._by_needed.get(needed, ()):
                if other is not scheme and implies(other, scheme, self._schema):
                    return True
        return False

    def _uncovered(self, scheme: Scheme) -> frozenset[int]:
        places = ((self._schema.index(term.attribute), term) for term in scheme.terms)
        return frozenset(i for i, term in places if not is_covered(term, self._schema[i].domain))


_FEW = 4
"""The number of attributes up to which trying all subsets is cheaper than trying all schemes."""


def completed_by(schemes: Iterable[Scheme], punctuations: Iterable[Punctuation], schema: Schema) -> tuple[Scheme, ...]:
    """Returns the schemes of a stream for which some punctuations hold in addition, from its beginning.

    A term of an attribute is finite if finitely many of its patterns cover the values that remain open.

    >>> schema = Schema.parse("hour INT NOT NULL, sid STRING")
    >>> prefix = Scheme((Term("hour", "prefix"),))
    >>> (before_five,) = completed_by([prefix], [Punctuation.parse("<[5,), *>", schema)], schema)
    >>> is_compact(["sid"], prefix, schema), is_compact(["sid"], before_five, schema)
    (False, True)
    """
    closed: dict[int, ValueSet] = {}
    ended = (Scheme(()),)
    for p in punctuations:
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
    """Whether finitely many patterns of the term cover the values that remain; null is ignored."""
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
