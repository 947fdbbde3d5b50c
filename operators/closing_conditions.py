"""Closing conditions and state models: which promises of its inputs an operator waits for.

An operator answers for a group, or forgets it, when punctuations cover the group. Whether they ever do follows from the
schemes of its inputs, before any tuple comes: the group must be *compact* relative to a scheme
(`xmlstream.punct_ns.scheme`). An operator declares these groupings of interest as conditions, in its own module beside
`schema` and `schemes`. Conditions are positive: a promise more never makes one false.

Source: Tucker et al. 2007, §3.1, Table 2 (preimages) and Table 3 (state models), Theorems 2 and 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeAlias

from xmlstream.dataclasses import dataclass, replace
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme, Term, implies, is_compact, is_covered
from xmlstream.punct_ns.sql_type import BooleanType

Promises: TypeAlias = Sequence[tuple[Schema, tuple[Scheme, ...]]]
"""For each input its schema and its schemes."""


class Condition(Protocol):
    """A condition on the schemes that an operator's inputs promise."""

    def holds(self, promises: Promises) -> bool:
        """Whether the promised schemes meet it."""

    def groupings(self, promises: Promises) -> Iterator[Grouping]:
        """The groupings on which it depends: those that meet it; if none do, those that are missing."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """Each group of an input by these attributes is closed in the end, by finitely many punctuations.

    `null` states that null is a group; it is none for attributes that are joined. `sole` states that the operator and
    those above it use no other punctuations of the input. `intervals` are bounds within which a group must be closed:
    each attribute that is bounded from above, and whether it is bounded from below too. For example bids of one auction
    until it expires, and bids of one auction while it is open. Null is not within bounds.

    >>> bids = Schema.parse("auction INT, hour INT NOT NULL")
    >>> Grouping(0, ("hour",)).holds([(bids, (Scheme(()),))]), Grouping(0, ("hour",)).holds([(bids, ())])
    (True, False)
    >>> until_it_expires = Grouping(0, ("auction",), null=False, intervals=(("hour", False),))
    >>> until_it_expires.holds([(bids, (Scheme((Term("hour", "prefix"),)),))])
    True
    """

    input: int
    attributes: tuple[str, ...]
    null: bool = True
    sole: bool = False
    intervals: tuple[tuple[str, bool], ...] = ()

    def holds(self, promises: Promises) -> bool:
        """Whether one scheme of the input closes all these groups; if none does, several together do not either."""
        schema, schemes = promises[self.input]
        terms = [Term(name, null=self.null) for name in self.attributes]
        terms += [Term(name, "tiles" if both else "prefix", null=False) for name, both in self.intervals]
        return any(implies(scheme, Scheme(tuple(terms)), schema) for scheme in schemes)

    def groupings(self, promises: Promises) -> Iterator[Grouping]:
        bounded = (name for name, _ in self.intervals)
        yield replace(self, attributes=(*self.attributes, *bounded), intervals=())


@dataclass(frozen=True, slots=True)
class Prefix:
    """Ever longer prefixes of an input's order by this attribute are closed, each by finitely many punctuations.

    With `groups`, prefixes of the order within each group by these attributes. Constants close prefixes where the
    domain has a first value in the order, and only few values before each other one. `first` is named as missing where
    nothing closes them; by default, groups and attribute together. With `nulls_first` each prefix begins with null.
    """

    input: int
    attribute: str
    descending: bool
    groups: tuple[str, ...] = ()
    first: Grouping | None = None
    nulls_first: bool = False

    def begins_with_null(self, schema: Schema) -> bool:
        """Whether nothing is closed before null is, for a schema of the input."""
        return self.nulls_first and schema.attribute(self.attribute).domain.nullable

    def holds(self, promises: Promises) -> bool:
        """Whether a scheme describes the attribute, by patterns that cover, a few at a time, a prefix of the order.

        Its other terms must be on groups, and finitely many of their patterns must cover each group.
        """
        schema, schemes = promises[self.input]
        name = schema.attribute(self.attribute).name
        domain = schema.attribute(name).domain
        names = {each.lower(): each for each in (name, *(schema.attribute(group).name for group in self.groups))}
        alone = [renamed for scheme in schemes if (renamed := scheme.renamed(names)) is not None]
        return any(
            all(is_covered(t, domain) or self._is_along(t, domain) for t in scheme.terms if t.attribute == name)
            and is_compact(self.groups, Scheme(tuple(t for t in scheme.terms if t.attribute != name)), schema)
            for scheme in alone
        )

    def _is_along(self, term: Term, domain: Domain) -> bool:
        """Whether finitely many of the term's patterns cover each prefix of the order, with null before or after."""
        if not term.null and domain.nullable:
            return False
        first = domain.high if self.descending else domain.low
        if first is not None and term.fills(counted=domain.counted):
            return True
        return term.kind == "prefix" and not self.descending

    def as_prefixes(self, schema: Schema, schemes: Sequence[Scheme]) -> tuple[Scheme, ...]:
        """The schemes, and those with prefixes of the attribute in place of constants that close them."""
        name, domain = schema.attribute(self.attribute).name, schema.attribute(self.attribute).domain
        if self.descending:
            return tuple(schemes)

        def along(term: Term) -> Term:
            closes = term.attribute == name and term.kind == "each" and self._is_along(term, domain)
            return replace(term, kind="prefix") if closes else term

        return tuple(dict.fromkeys((*schemes, *(Scheme(tuple(map(along, scheme.terms))) for scheme in schemes))))

    def groupings(self, promises: Promises) -> Iterator[Grouping]:
        whole = Grouping(self.input, (*self.groups, self.attribute))
        yield whole if self.first is None or self.holds(promises) else self.first


@dataclass(frozen=True, slots=True)
class Every:
    """All of the conditions; an empty one always holds."""

    conditions: tuple[Condition, ...]

    def holds(self, promises: Promises) -> bool:
        return all(condition.holds(promises) for condition in self.conditions)

    def groupings(self, promises: Promises) -> Iterator[Grouping]:
        """The groupings of each condition that decides the result."""
        held = self.holds(promises)
        for condition in self.conditions:
            if held or not condition.holds(promises):
                yield from condition.groupings(promises)


@dataclass(frozen=True, slots=True)
class Either:
    """At least one of the conditions."""

    conditions: tuple[Condition, ...]

    def holds(self, promises: Promises) -> bool:
        return any(condition.holds(promises) for condition in self.conditions)

    def groupings(self, promises: Promises) -> Iterator[Grouping]:
        """The groupings of the first condition that holds; if none does, those of all."""
        first = next((condition for condition in self.conditions if condition.holds(promises)), None)
        for condition in self.conditions if first is None else [first]:
            yield from condition.groupings(promises)


ALWAYS = Every(())
"""The condition that always holds."""


@dataclass(frozen=True, slots=True)
class StateModel:
    """Kept rows of one kind: what they are, and when the operator forgets them.

    Attributes:
        what: The kind of rows, in a few words: `groups`, `tuples of the left side`.
        input: The input whose tuples they are, or are made from.
        until: The condition under which the operator forgets a row.
        per: The attributes for each of whose values there is at most one row; None for any number of rows.
        is_fixed: Whether the number of rows for each value of `per` has a limit however long the stream is.
    """

    what: str
    input: int
    until: Condition
    per: Schema | None = None
    is_fixed: bool = False

    @property
    def most(self) -> int | None:
        """The largest possible number of values of `per`; None if that is unknown."""
        return None if self.per is None else most_values(self.per)


def most_values(attributes: Schema) -> int | None:
    """The largest possible number of rows that differ in these attributes; None if it has no limit, or is unknown.

    >>> most_values(Schema.parse("sid INT, up BOOLEAN NOT NULL", domains="sid 1..9"))
    20
    """
    most = 1
    for domain in (attribute.domain for attribute in attributes):
        bounded = isinstance(domain.sql, BooleanType) or None not in (domain.low, domain.high)
        if not bounded or (size := domain.size) is None:
            return None
        most *= size + domain.nullable
    return most
