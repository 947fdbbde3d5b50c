"""Sets of punctuations, kept small and indexed; their meets, and the remainder of a punctuation.

The set absorbs a punctuation that another one covers; and one that restricts several attributes and that the union of
others covers, as long as few are near. It merges patterns that coalesce, so that closing auctions 1, 2, 3, … leaves one
range. Punctuations that restrict one attribute (most do) are stored as one growing value set per attribute, the
others in an index. The set matches exactly the tuples that the added punctuations match.

The *meets* of two sets (setCombine of Tucker et al. 2003, Table 1) are found without comparing all pairs:
punctuations that restrict one attribute meet as value sets; the others are looked up by their constants. The
*remainder* of a punctuation consists of the parts that a set does not cover: what an operator that waits for the
punctuation still waits for.

The papers leave purging punctuations to future work (Tucker et al. 2007, §5.2; Li et al. 2006, §5.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING

from xmlstream.punct_ns.cover import (
    ENOUGH,
    EXACT_PUNCTUATIONS,
    Box,
    Budget,
    TooHardError,
    is_box_covered,
    is_exact,
    without_box,
)
from xmlstream.punct_ns.entry_index import EntryIndex, IndexedEntry, box_of
from xmlstream.punct_ns.growing_set import GrowingSet
from xmlstream.punct_ns.pattern import WILDCARD, Constant, Empty, Pattern, Wildcard, patterns, union_of, values
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.value_set import ValueSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xmlstream.punct_ns.punctuation import Tuple


def _combined(left: PunctuationSet, right: PunctuationSet) -> Iterator[Punctuation]:
    """Yields punctuations whose union is the intersection of both sets; not minimal."""
    if left.is_all or right.is_all:
        yield from right if left.is_all else left
        return
    for i, closed in left.singles.items():
        if i in right.singles:
            both = closed.value_set().intersection(right.singles[i].value_set())
            yield from (Punctuation.at(left.schema, {i: pattern}) for pattern in patterns(both))
    for p in right:
        yield from _meets(p, left)


def _meets(p: Punctuation, with_: PunctuationSet) -> Iterator[Punctuation]:
    """Yields the meets of a punctuation with a set, except those where both restrict only the same attribute."""
    given = {i: p.patterns[i] for i in p.restricted}
    for i, closed in with_.singles.items():
        if i not in given:
            parts = closed.patterns()
        elif len(given) > 1:
            parts = patterns(closed.value_set().intersection(values(given[i], with_.schema[i].domain)))
        else:
            continue
        for part in parts:
            yield Punctuation.at(with_.schema, {**given, i: part})
    for entry in with_.several(given):
        both = entry.punctuation.meet(p)
        if both is not None:
            yield both


_FEW = 16  # the number of entries near a new one up to which each is checked for a cover by the others


class PunctuationSet:
    """The union of the punctuations added so far, minimal.

    `singles` are the values closed by punctuations that restrict one attribute, by its index; read-only.

    >>> schema = Schema.parse("auction INT, bidder INT")
    >>> closed = PunctuationSet(schema, (Punctuation.of(schema, auction=str(n)) for n in (3, 1, 2, 7)))
    >>> [str(p) for p in closed]
    ['<[1,3], *>', '<7, *>']
    """

    __slots__ = ("_all", "_entries", "schema", "singles")

    def __init__(self, schema: Schema, punctuations: Iterable[Punctuation] = ()) -> None:
        self.schema = schema
        self._all = False
        self.singles: dict[int, GrowingSet] = {}
        self._entries = EntryIndex(schema)
        self.add_all(punctuations)

    def add(self, p: Punctuation) -> bool:
        """Adds a punctuation; False if the set covered it already.

        >>> closed = PunctuationSet(Schema.of(hour="INT"))
        >>> p = Punctuation.of(closed.schema, hour="5")
        >>> closed.add(p), closed.add(p)
        (True, False)
        """
        restricted = p.restricted
        if len(restricted) == 1 and not self._all and not self._entries.shelves:
            return self._close(restricted[0], p.patterns[restricted[0]])
        if self.covers(p):
            return False
        self._insert(p)
        return True

    def add_all(self, ps: Iterable[Punctuation]) -> list[Punctuation]:
        """Adds many punctuations; returns those not covered before, coalesced with each other.

        >>> closed = PunctuationSet(Schema.of(hour="INT"))
        >>> [str(p) for p in closed.add_all(Punctuation.of(closed.schema, hour=h) for h in ("5", "6", "6"))]
        ['<[5,6]>']
        """
        knows = bool(self)
        new = [p for p in ps if not (self.covers(p) if knows else p.is_empty)]
        if not new:
            return []
        if not knows:
            self._take(new)
            return list(self)
        added = PunctuationSet(self.schema)
        added._take(new)
        # A rewritten list may split into a part that was covered before and one that was not.
        found = [p for p in added if not self.covers(p)]
        self._unite(added)
        return found

    def forget(self, ps: Iterable[Punctuation]) -> None:
        """Removes what these punctuations match, except null, and but for ranges to an end of a vast domain.

        The set no longer covers what is removed: the caller must not need it.

        >>> closed = PunctuationSet(Schema.of(id="INT"), [])
        >>> ids = [Punctuation.of(closed.schema, id=text) for text in ("(,5]", "[10,12]", "17")]
        >>> _, _ = closed.add_all(ids), closed.forget(Punctuation.of(closed.schema, id=text) for text in ("4", "11"))
        >>> [str(p) for p in closed]
        ['<(,5]>', '<{10,12,17}>']
        """
        if self._all:
            return
        gone = PunctuationSet(self.schema, ps)
        for i in self.singles.keys() & gone.singles.keys():
            self.singles[i].forget(gone.singles[i].value_set())
        for p in gone if self._entries.shelves else ():
            self._entries.forget(p)

    def covers(self, p: Punctuation) -> bool:
        """Whether the set matches every tuple that p matches, by one punctuation or by a union of several.

        Exact up to 4 restricted attributes and 64 punctuations that meet p; beyond, it may miss a cover but never
        reports one that does not exist.

        >>> schema = Schema.of(hour="INT", min="INT").bounded("min 0..59")
        >>> parts = [Punctuation.of(schema, hour="5", min=part) for part in ("[0,29]", "[30,59]", "null")]
        >>> PunctuationSet(schema, parts).covers(Punctuation.of(schema, hour="5"))
        True
        """
        if self._all:
            return True
        given: dict[int, Pattern] = {}
        for i, pattern in enumerate(p.patterns):
            if type(pattern) is Wildcard:
                continue
            if type(pattern) is Empty or (i in self.singles and self.singles[i].covers_pattern(pattern)):
                return True
            given[i] = pattern
        if not self._entries.shelves:
            return False
        near = self._entries.meeting(given, few=EXACT_PUNCTUATIONS)
        if not near:
            return False
        box = box_of(given, self.schema)
        if any(entry.covers(given, box) for entry in near):
            return True
        boxes = [entry.box for entry in near]
        target = {i: self.open_part(i, given.get(i, WILDCARD)) for i in frozenset(given).union(*boxes)}
        try:
            return is_box_covered(target, boxes, Budget() if is_exact(boxes) else Budget(ENOUGH))
        except TooHardError:
            return False

    def matches(self, values: Tuple) -> bool:
        """Whether any punctuation matches a tuple.

        >>> schema = Schema.of(hour="INT", min="INT")
        >>> PunctuationSet(schema, [Punctuation.of(schema, hour="5")]).matches((5, None))
        True
        """
        if self._all or any(single.contains(values[i]) for i, single in self.singles.items()):
            return True
        if not self._entries.shelves:
            return False
        given = {i: Constant(value) for i, value in enumerate(values)}
        return any(entry.punctuation.matches(values) for entry in self._entries.meeting(given))

    def meets(self, ps: Iterable[Punctuation]) -> list[Punctuation]:
        """Returns the non-empty meets of other punctuations with these, minimal (setCombine, Tucker et al. 2003).

        >>> schema = Schema.of(hour="INT")
        >>> left = PunctuationSet(schema, [Punctuation.of(schema, hour="1")])
        >>> [str(p) for p in left.meets([Punctuation.of(schema, hour="{1,2}")])]
        ['<1>']
        """
        others = ps if isinstance(ps, PunctuationSet) else PunctuationSet(self.schema, ps)
        return list(PunctuationSet(self.schema, _combined(self, others)))

    def values(self, name: str) -> ValueSet:
        """Returns the values of one attribute that punctuations on it alone close, for all values of the others.

        >>> schema = Schema.of(hour="INT", min="INT")
        >>> PunctuationSet(schema, [Punctuation.of(schema, hour="[5,7]")]).values("hour").cuts
        (5, 8)
        """
        index = self.schema.index(name)
        if self._all:
            return ValueSet.everything(self.schema[index].domain)
        single = self.singles.get(index)
        return single.value_set() if single is not None else ValueSet(self.schema[index].domain)

    @property
    def is_all(self) -> bool:
        """Whether every tuple is matched: the stream is closed.

        >>> schema = Schema.of(flag="BOOLEAN")
        >>> PunctuationSet(schema, [Punctuation.of(schema, flag=f) for f in ("true", "false", "null")]).is_all
        True
        """
        if not self._all and self.covers(Punctuation.all(self.schema)):
            self._become_all()
        return self._all

    def copy(self) -> PunctuationSet:
        """Returns an independent copy.

        >>> closed = PunctuationSet(Schema.of(hour="INT"))
        >>> closed.copy().add(Punctuation.all(closed.schema)), closed.is_all
        (True, False)
        """
        twin = PunctuationSet(self.schema)
        twin._all = self._all
        twin.singles = {i: single.copy() for i, single in self.singles.items()}
        for entry in self._entries:
            twin._entries.add(entry)
        return twin

    def open_part(self, i: int, pattern: Pattern) -> ValueSet:
        """Returns the values of an attribute that a pattern matches and that `values` does not include.

        >>> schema = Schema.of(hour="INT")
        >>> closed = PunctuationSet(schema, [Punctuation.of(schema, hour="[5,7]")])
        >>> closed.open_part(0, Punctuation.of(schema, hour="[6,9]").patterns[0]).cuts
        (8, 10)
        """
        matched = values(pattern, self.schema[i].domain)
        return self.singles[i].rest_of(matched) if i in self.singles else matched

    @property
    def entries(self) -> int:
        """The number of punctuations in the set that restrict several attributes.

        >>> schema = Schema.of(hour="INT", min="INT")
        >>> PunctuationSet(schema, [Punctuation.of(schema, hour="5", min="3")]).entries
        1
        """
        return len(self._entries)

    def several(self, given: Mapping[int, Pattern] | None = None) -> list[IndexedEntry]:
        """Returns the punctuations that restrict several attributes, or only those that meet the given patterns.

        >>> schema = Schema.of(hour="INT", min="INT")
        >>> [str(e.punctuation) for e in PunctuationSet(schema, [Punctuation.of(schema, hour="5", min="3")]).several()]
        ['<5, 3>']
        """
        return list(self._entries) if given is None else self._entries.meeting(given)

    def __iter__(self) -> Iterator[Punctuation]:
        if self._all:
            yield Punctuation.all(self.schema)
            return
        for i in sorted(self.singles):
            for pattern in self.singles[i].patterns():
                yield Punctuation.at(self.schema, {i: pattern})
        for entry in self._entries:
            yield entry.punctuation

    def __len__(self) -> int:
        if self._all:
            return 1
        return sum(len(single.patterns()) for single in self.singles.values()) + len(self._entries)

    @property
    def extent(self) -> int:
        """The number of ranges, single values, and punctuations that restrict several attributes.

        >>> schema = Schema.of(seller="STRING")
        >>> closed = PunctuationSet(schema, [Punctuation.of(schema, seller=name) for name in ("ann", "bob", "eve")])
        >>> len(closed), closed.extent
        (1, 3)
        """
        if self._all:
            return 1
        sets = [single.value_set() for single in self.singles.values()]
        return sum(-(-len(closed.cuts) // 2) + closed.null for closed in sets) + len(self._entries)

    def __bool__(self) -> bool:
        return self._all or bool(self._entries.shelves) or any(not s.is_empty for s in self.singles.values())

    def _insert(self, p: Punctuation) -> None:
        """Adds an uncovered punctuation: absorbs what it covers, and coalesces it with what it touches."""
        restricted = p.restricted
        if not restricted:
            self._become_all()
        elif len(restricted) == 1:
            self._close(restricted[0], p.patterns[restricted[0]])
        else:
            entry = IndexedEntry(p, restricted)
            near = []
            for other in self._entries.meeting(entry.given):
                if entry.covers(other.given, other.box):
                    self._entries.remove(other)
                else:
                    near.append(other)
            joined = self._entries.joined(entry, near)
            if joined is not None:
                self._insert(joined)
            else:
                self._entries.add(entry)
                self._drop_covered(near)

    def _close(self, i: int, pattern: Pattern) -> bool:
        """Closes values of one attribute; False if they were closed already."""
        if not self._grow(i).add(pattern):
            return False
        self._settle(i, (pattern,))
        return True

    def _close_all(self, i: int, closed: ValueSet) -> None:
        if not closed.is_empty:
            self._grow(i).take(closed)
            self._settle(i, patterns(closed) if self._entries.shelves else ())

    def _grow(self, i: int) -> GrowingSet:
        if i not in self.singles:
            self.singles[i] = GrowingSet(self.schema[i].domain)
        return self.singles[i]

    def _settle(self, i: int, closed: Iterable[Pattern]) -> None:
        """Absorbs the entries that these newly closed values of an attribute cover."""
        if self.singles[i].is_all:
            self._become_all()
        elif self._entries.shelves:
            for pattern in closed:
                self._drop_covered(self._entries.meeting({i: pattern}, few=EXACT_PUNCTUATIONS))

    def _take(self, ps: Iterable[Punctuation]) -> None:
        """Adds many: first all that restrict one attribute, in one step, since they may cover many of the others."""
        singles: dict[int, list[Pattern]] = {}
        others: list[Punctuation] = []
        for p in ps:
            restricted = p.restricted
            if len(restricted) == 1:
                singles.setdefault(restricted[0], []).append(p.patterns[restricted[0]])
            else:
                others.append(p)
        for i, each in singles.items():
            if not self._all:
                self._close_all(i, union_of(each, self.schema[i].domain))
        for p in others:
            self.add(p)

    def _unite(self, other: PunctuationSet) -> None:
        """Adds another set, in the order of `_take`."""
        if other._all:
            self._become_all()
        for i, single in other.singles.items():
            if not self._all:
                self._close_all(i, single.value_set())
        for entry in other._entries:
            self.add(entry.punctuation)

    def _become_all(self) -> None:
        self._all = True
        self.singles = {}
        self._entries = EntryIndex(self.schema)

    def _drop_covered(self, near: Sequence[IndexedEntry]) -> None:
        """Removes the entries that the others cover; if there are many, only those that a single attribute covers."""
        for entry in near:
            closed = any(i in self.singles and self.singles[i].covers(part) for i, part in entry.box.items())
            if closed or len(near) <= _FEW:
                self._entries.remove(entry)
                if not closed and not self.covers(entry.punctuation):
                    self._entries.add(entry)


MOST_PARTS = 256
"""The number of parts of a punctuation beyond which its remainder is no longer narrowed."""


def remainder(p: Punctuation, closed_set: PunctuationSet) -> list[Punctuation]:
    """Returns the parts of a punctuation that a set does not cover; empty if the set covers it.

    With more than `MOST_PARTS` parts, punctuations on several attributes are not subtracted: the result may then
    contain more than the remainder, never less.

    >>> from xmlstream.punct_ns.schema import Schema
    >>> schema = Schema.of(hour="INT", min="INT").bounded("min 0..59")
    >>> closed_set = PunctuationSet(schema, [Punctuation.parse(text, schema) for text in ("<5, [0,29]>", "<[7,9], *>")])
    >>> [str(left) for left in remainder(Punctuation.of(schema, hour="[5,9]"), closed_set)]
    ['<6, *>', '<5, [30,)>', '<5, null>']
    """
    if closed_set.covers(p):
        return []
    box = {i: values(pattern, p.schema[i].domain) for i, pattern in enumerate(p.patterns) if pattern != WILDCARD}
    for i, single in closed_set.singles.items():
        box[i] = single.rest_of(box.get(i, ValueSet.everything(p.schema[i].domain)))
    parts = [box]
    given: dict[int, Pattern] = {i: p.patterns[i] for i in p.restricted}
    for entry in closed_set.several(given):
        parts = [piece for part in parts for piece in without_box(part, entry.box, p.schema)]
        if len(parts) > MOST_PARTS:
            return _as_punctuation([box], p)
    return _as_punctuation(parts, p)


def _as_punctuation(parts: Iterable[Box], p: Punctuation) -> list[Punctuation]:
    boxes = [(part, product(*(patterns(held) for held in part.values()))) for part in parts]
    each = (dict(zip(part, chosen, strict=True)) for part, choices in boxes for chosen in choices)
    return list(PunctuationSet(p.schema, (Punctuation.at(p.schema, patterns_) for patterns_ in each)))
