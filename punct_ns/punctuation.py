"""Punctuations: what they match, where they meet, what they cover (Tucker et al. 2003, Table 1).

A punctuation has one pattern for each attribute; it promises that no later tuple matches all of them.
Tuples are sequences of canonical values, null as None.

*Isolated* punctuations consist of constants of attributes whose values have no neighbours; they never coalesce with
others. A thousand closed strings remain a thousand constants, where a thousand integers become one range. So a set of
punctuations grows with each closed string, unless its owner forgets those that have no further effect (Li et al.
2006, §5.1, punctuation purgeability). So it does with each closed integer where there are gaps between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns import pattern as p_
from xmlstream.punct_ns.domain import BLANKS, Value
from xmlstream.punct_ns.errors import NotationError
from xmlstream.punct_ns.lifespan import Lifespan, shortest, split_lifespan
from xmlstream.punct_ns.notation import format_pattern, parse_pattern, split_patterns
from xmlstream.punct_ns.pattern import EMPTY, WILDCARD, Constant, Empty, List, Pattern, Wildcard, canonical
from xmlstream.punct_ns.schema import Schema

if TYPE_CHECKING:
    from xmlstream.punct_ns.domain import Domain


Tuple = Sequence[Value | None]


@dataclass(frozen=True, slots=True)
class Punctuation:
    """One canonical pattern for each attribute of a schema (`of` and `parse` ensure that), and a lifespan.

    Without a lifespan it is permanent. The notation appends the lifespan to the patterns.

    >>> schema = Schema.parse("sid STRING, hour INT, min INT, currtmp DOUBLE")
    >>> p = Punctuation.parse("<*, [17,20), *, *>", schema)
    >>> str(p), p.matches(("S01", 17, 30, 77.0))
    ('<*, [17,19], *, *>', True)
    """

    schema: Schema
    patterns: tuple[Pattern, ...]
    lifespan: Lifespan | None = None

    def __post_init__(self) -> None:
        if len(self.patterns) != len(self.schema):
            raise ValueError(f"{len(self.patterns)} patterns for {len(self.schema)} attributes")

    def __hash__(self) -> int:
        # Punctuations in one set share their schema; hashing it would cost more than it distinguishes.
        return hash(self.patterns)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        pairs = zip(self.patterns, self.schema, strict=True)
        text = f"<{', '.join(format_pattern(p, attribute.domain) for p, attribute in pairs)}>"
        return text if self.lifespan is None else f"{text} {self.lifespan}"

    def lasting(self, lifespan: Lifespan | None) -> Punctuation:
        """Returns the same patterns with a lifespan; None makes it permanent.

        >>> from xmlstream.punct_ns.lifespan import Duration
        >>> str(Punctuation.of(Schema.of(hour="INT"), hour="5").lasting(Lifespan(Duration.parse("PT1H"))))
        '<5> for PT1H'
        """
        return self if self.lifespan == lifespan else Punctuation(self.schema, self.patterns, lifespan)

    @staticmethod
    def parse(text: str, schema: Schema) -> Punctuation:
        """Parses a punctuation, ignoring blanks; NotationError if the text is not one.

        >>> str(Punctuation.parse("<{2,1},*>", Schema.of(hour="INT", min="INT")))
        '<[1,2], *>'
        >>> str(Punctuation.parse("<5, *> while hour < 17", Schema.of(hour="INT", min="INT")))
        '<5, *> while hour < 17'
        """
        text, lifespan = split_lifespan(text.strip(BLANKS))
        # A punctuation without attributes has no text between its brackets, rather than one empty text.
        texts = [part for part in split_patterns(text) if part or len(schema)]
        if len(texts) != len(schema):
            raise NotationError(f"'{text}' has {len(texts)} patterns for {len(schema)} attributes")
        pairs = zip(texts, schema, strict=True)
        patterns = tuple(parse_pattern(part, attribute.domain) for part, attribute in pairs)
        return Punctuation(schema, patterns, Lifespan.parse(lifespan, schema) if lifespan else None)

    @staticmethod
    def of(
        schema: Schema, patterns: Mapping[str, str | Pattern] | None = None, /, **named: str | Pattern
    ) -> Punctuation:
        """Returns the punctuation with these patterns, in notation or as values, and wildcards elsewhere.

        Raises UsageError for an unknown attribute, NotationError or ValueError for an invalid pattern.

        >>> str(Punctuation.of(Schema.of(hour="INT", min="INT"), min="[0,30]"))
        '<*, [0,30]>'
        """
        spread: list[Pattern] = [WILDCARD] * len(schema)
        for name, pattern in {**(patterns or {}), **named}.items():
            index = schema.index(name)
            domain = schema[index].domain
            spread[index] = parse_pattern(pattern, domain) if isinstance(pattern, str) else canonical(pattern, domain)
        return Punctuation(schema, tuple(spread))

    @staticmethod
    def all(schema: Schema) -> Punctuation:
        """Returns the punctuation of wildcards: the end of the stream.

        >>> str(Punctuation.all(Schema.of(hour="INT", min="INT")))
        '<*, *>'
        """
        return Punctuation(schema, (WILDCARD,) * len(schema))

    @staticmethod
    def at(schema: Schema, patterns: Mapping[int, Pattern], lifespan: Lifespan | None = None) -> Punctuation:
        """Returns the punctuation with these canonical patterns by index, wildcards elsewhere, and a lifespan.

        >>> str(Punctuation.at(Schema.of(hour="INT", min="INT"), {0: p_.Constant(5)}))
        '<5, *>'
        """
        spread: list[Pattern] = [WILDCARD] * len(schema)
        for i, pattern in patterns.items():
            spread[i] = pattern
        return Punctuation(schema, tuple(spread), lifespan)

    @property
    def restricted(self) -> tuple[int, ...]:
        """The indexes of the attributes whose pattern is not the wildcard.

        >>> Punctuation.of(Schema.of(hour="INT", min="INT"), min="3").restricted
        (1,)
        """
        return tuple([i for i, pattern in enumerate(self.patterns) if type(pattern) is not Wildcard])

    @property
    def is_all(self) -> bool:
        """Whether it matches every tuple.

        >>> Punctuation.all(Schema.of(hour="INT")).is_all
        True
        """
        return not self.restricted

    @property
    def is_empty(self) -> bool:
        """Whether it matches no tuple.

        >>> Punctuation.of(Schema.of(hour="INT"), hour="(3,2)").is_empty
        True
        """
        return any(type(pattern) is Empty for pattern in self.patterns)

    def matches(self, values: Tuple) -> bool:
        """Whether a tuple matches all patterns, so that no such tuple may arrive any more.

        >>> Punctuation.of(Schema.of(hour="INT", min="INT"), hour="5").matches((5, None))
        True
        """
        return all(p_.matches(pattern, value) for pattern, value in zip(self.patterns, values, strict=True))

    def meet(self, other: Punctuation) -> Punctuation | None:
        """Returns the punctuation that matches what both match; None if that is nothing (the papers' combine, psi).

        It has the shorter lifespan of the two.

        >>> schema = Schema.of(hour="INT", min="INT")
        >>> str(Punctuation.of(schema, hour="5").meet(Punctuation.of(schema, min="[0,30]")))
        '<5, [0,30]>'
        """
        met: list[Pattern] = []
        for mine, theirs, attribute in zip(self.patterns, other.patterns, self.schema, strict=True):
            pattern = p_.meet(mine, theirs, attribute.domain)
            if pattern == EMPTY:
                return None
            met.append(pattern)
        return Punctuation(self.schema, tuple(met), shortest((self.lifespan, other.lifespan)))

    def covers(self, other: Punctuation) -> bool:
        """Whether it matches every tuple that the other matches, regardless of lifespans; exact.

        >>> schema = Schema.of(hour="INT", min="INT")
        >>> Punctuation.of(schema, hour="5").covers(Punctuation.of(schema, hour="5", min="3"))
        True
        """
        return other.is_empty or all(
            p_.covers(mine, theirs, attribute.domain)
            for mine, theirs, attribute in zip(self.patterns, other.patterns, self.schema, strict=True)
        )


def is_isolated(p: Punctuation) -> bool:
    """Whether it restricts attributes by constants and lists only, and one of the values has no neighbour.

    Null does not count as such a value: an attribute has only one null, which completes the domain.

    >>> from xmlstream.punct_ns.punctuation import Punctuation
    >>> from xmlstream.punct_ns.schema import Schema
    >>> session = Schema.parse("sid STRING, hour INT")
    >>> [is_isolated(Punctuation.parse(text, session)) for text in ("<u7, *>", "<u7, 3>", "<*, 3>", "<u7, (,3]>")]
    [True, True, False, False]
    """
    found = False
    for i, pattern in enumerate(p.patterns):
        if type(pattern) is Wildcard:
            continue
        if type(pattern) is not Constant and type(pattern) is not List:
            return False
        found = found or _is_dense(p.schema[i].domain, listed(pattern))
    return found


def isolated(ps: Iterable[Punctuation]) -> list[Punctuation]:
    """Returns the isolated ones of the punctuations, in order.

    >>> from xmlstream.punct_ns.punctuation import Punctuation
    >>> from xmlstream.punct_ns.schema import Schema
    >>> session = Schema.parse("sid STRING")
    >>> [str(p) for p in isolated(Punctuation.parse(text, session) for text in ("<u7>", "<(,u3]>"))]
    ['<u7>']
    """
    return [p for p in ps if is_isolated(p)]


def of_values(ps: Iterable[Punctuation]) -> list[Punctuation]:
    """Returns those with a constant or a list: a source sends these once, but a prefix again in a longer one.

    >>> schema = Schema.parse("id INT, t INT")
    >>> [str(p) for p in of_values(Punctuation.parse(text, schema) for text in ("<7, (,3]>", "<*, (,3]>"))]
    ['<7, (,3]>']
    """
    return [p for p in ps if any(map(listed, p.patterns))]


def listed(pattern: Pattern) -> tuple[Value | None, ...]:
    """Returns the values of a constant or a list; no values for other patterns.

    >>> listed(Constant("u7")), listed(List(("u7", None)))
    (('u7',), ('u7', None))
    """
    match pattern:
        case Constant(value=value):
            return (value,)
        case List(values=values):
            return values
    return ()


def _is_dense(domain: Domain, values: tuple[Value | None, ...]) -> bool:
    return not domain.discrete and any(value is not None for value in values)
