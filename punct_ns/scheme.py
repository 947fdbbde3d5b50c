"""Schemes: which punctuations a source promises (Tucker et al. 2007, §3.2; Li et al. 2006, §2.3), and their order.

Notation: schemes are separated by `;`, their terms by `,`; an attribute that is not named is a wildcard. A term is
`hour` (a constant or a list, for every value in the end), `min 0..59 by 10` (ranges that tile a finite domain), or
`ts prefix` (ranges from the start, ever longer: ordered data, watermarks, heartbeats).

A set of tuples is *compact* relative to a scheme if finitely many punctuations of it cover the set. A scheme implies
another one if every punctuation of the other is compact relative to it: whoever waits for the second is served by the
first. In that order all tilings of an attribute are equal, since finitely many tiles are the wildcard.

Constants imply the tiles of whole numbers and days, and of what is computed from them: between two of them there are
few, and each is closed in the end. To the paper moments are finitely many in a window, too; but no source closes the
600,000,000 microseconds of ten minutes one by one, so that here constants of moments, as of texts and fractions, close
nothing but themselves.

Source: Tucker et al. 2007, §3.2 and §3.3. Every scheme that can be written is *complete* (§3.2): each value of its
terms is closed in the end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import Literal, TypeAlias

from punct_ns.domain import BLANKS, Domain, Value
from punct_ns.errors import UsageError
from punct_ns.numeric_type import DecimalType, FloatType, IntegerType, number
from punct_ns.pattern import values
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Attribute, Schema, bounds_between, split_name
from punct_ns.sql_type import BooleanType, DiscreteType, split_outside
from punct_ns.temporal_type import DateType
from punct_ns.value_set import ValueSet

Kind: TypeAlias = Literal["each", "tiles", "prefix"]
"""Which patterns a term promises."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HINT = "a term is `hour`, `min 0..59 by 10` or `ts prefix`"


@dataclass(frozen=True, slots=True)
class Term:
    """What is promised of one attribute.

    `each`: constants or lists, for every value; `tiles`: the ranges of `step` from `low` to `high`, both inclusive, the
    last one perhaps shorter; `prefix`: ranges without a lower end. The step counts integers, decimals, or days.

    `finite` says that finitely many of its patterns cover the domain, as tiles do; constants of a domain that is
    declared to be finite do, too. `null` says that null, where it may be, is among the values: of an attribute for
    which an outer join puts nulls it is not. `counted` says whether constants close the stretch between two values, as
    those of whole numbers do, one by one, and of moments computed from them; None where the attribute's type says it.
    """

    attribute: str
    kind: Kind = "each"
    low: Value | None = None
    high: Value | None = None
    step: Value | None = None
    finite: bool = field(default=False, compare=False)
    null: bool = True
    counted: bool | None = None

    def __post_init__(self) -> None:
        if self.kind == "tiles":
            object.__setattr__(self, "finite", True)

    def renamed(self, attribute: str) -> Term:
        """The same promise of an attribute of another name."""
        return replace(self, attribute=attribute)

    def fills(self, *, counted: bool) -> bool:
        """Whether finitely many of its patterns cover each stretch of values that ends on both sides.

        Args:
            counted: Whether the attribute's type is (`Domain.counted`).

        >>> Term("ts", "prefix").fills(counted=False), Term("ts").fills(counted=False), Term("n").fills(counted=True)
        (True, False, True)
        """
        return self.kind != "each" or (counted if self.counted is None else self.counted)

    def __str__(self) -> str:
        name = self.attribute if _PLAIN.fullmatch(self.attribute) else f"`{self.attribute.replace('`', '``')}`"
        match self.kind:
            case "each":
                return name
            case "prefix":
                return f"{name} prefix"
            case "tiles":
                return f"{name} {self.low}..{self.high} by {self.step}"


@dataclass(frozen=True, slots=True)
class Scheme:
    """A promise: the punctuations that restrict these attributes, each as its term says, and no other.

    Without terms it promises the end of the stream.

    >>> str(Scheme((Term("hour"), Term("min", "tiles", 0, 59, 10))))
    'hour, min 0..59 by 10'
    """

    terms: tuple[Term, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.terms))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that it names.

        >>> Scheme((Term("auctionid"), Term("bidderid"))).attributes
        ('auctionid', 'bidderid')
        """
        return tuple(term.attribute for term in self.terms)

    def is_told_by_text(self, schema: Schema) -> bool:
        """Whether its text promises no more than it does.

        A text promises null where it may be, and of whole numbers that constants close the stretch between two values.

        >>> schema = Schema.parse("a INT, b INT NOT NULL")
        >>> [Scheme((Term(name, null=False),)).is_told_by_text(schema) for name in schema.names]
        [False, True]
        """
        pairs = [(term, schema.attribute(term.attribute).domain) for term in self.terms]
        return all((t.null or not d.nullable) and (t.fills(counted=d.counted) or not d.counted) for t, d in pairs)

    def renamed(self, names: Mapping[str, str]) -> Scheme | None:
        """The promise in new names, given by the old names in lower case; None if it is lost.

        An attribute without a new name is projected away. Finitely many patterns complete it, in the end, where its
        term has that many, null included; else the promise is lost. A scheme without terms is left where all are
        completed: in the end nothing comes any more.

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
    """The schemes that a text declares over a schema; UsageError if unreadable or without meaning for a type.

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
    """The text of schemes, without those that differ in what no text says; `parse_schemes` gives them back.

    >>> format_schemes([Scheme((Term("hour"),)), Scheme((Term("ts", "prefix"),))])
    'hour; ts prefix'
    """
    return "; ".join(dict.fromkeys(map(str, schemes)))


def implied(schema: Schema, schemes: Iterable[Scheme]) -> Schema:
    """The schema as its schemes make it: tiles and prefixes imply NOT NULL and no NaN, tiles their bounds too.

    Raises UsageError where tiles lie outside the declared domain.

    >>> schema = Schema.parse("hour INT, min INT")
    >>> implied(schema, parse_schemes("hour, min 0..59 by 10", schema))["min"].domain
    Domain(type='INT', nullable=False, low=0, high=59)
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
            return Domain(domain.type, nullable=False, low=domain.low, high=high)
        case "tiles":
            low, high = _later(domain.low, term.low, domain), _sooner(domain.high, term.high, domain)
            try:
                return Domain(domain.type, nullable=False, low=low, high=high)
            except ValueError as reason:
                raise UsageError(f"'{term}' lies outside the declared domain: {reason}") from None


def _later(a: Value | None, b: Value | None, domain: Domain) -> Value | None:
    if a is None or b is None:
        return b if a is None else a
    return a if domain.cut(a, after=False) > domain.cut(b, after=False) else b


def _sooner(a: Value | None, b: Value | None, domain: Domain) -> Value | None:
    if a is None or b is None:
        return b if a is None else a
    return a if domain.cut(a, after=False) < domain.cut(b, after=False) else b


def is_finite(kind: Kind, domain: Domain) -> bool:
    """Whether finitely many patterns of that kind cover the domain: of constants, where it is declared to be finite.

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
    low, high = bounds_between(bounds, attribute)
    if not by or low is None or high is None:
        raise UsageError(f"'{text.strip(BLANKS)}' is no term of a scheme", hint=_HINT)
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
        raise UsageError(f"'{text}' is no step of {attribute.name}: {reason}") from None
    if number(str(step)) <= 0:
        raise UsageError(f"the step of {attribute.name} is {text}; it must be above zero")
    return step


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
