"""An index of punctuations that restrict several attributes: finds them by their constants and by their neighbours.

Entries that restrict the same attributes are on one shelf. For each attribute, a shelf indexes constants and short
lists by their values, so that a hundred thousand entries with a constant somewhere are not scanned; and it indexes the
ranges and long lists by the interval from their least to their greatest value, so that distant ones are not compared.
A search follows the indexes of all attributes at once, until one of them has no more candidates. So a punctuation costs
about the same however many there are, unless it meets most of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from itertools import chain, product
from operator import itemgetter
from typing import TYPE_CHECKING

from xmlstream.punct_ns.cover import without_box
from xmlstream.punct_ns.domain import Cut
from xmlstream.punct_ns.pattern import (
    NOT_NULL,
    NULL,
    Constant,
    List,
    Pattern,
    Range,
    join_if_exact,
    matches,
    patterns,
    values,
)
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from xmlstream.punct_ns.domain import Value
    from xmlstream.punct_ns.value_set import ValueSet

Edge = tuple[int, Cut, tuple[Pattern, ...]]
"""The end of an entry on one attribute, with its patterns on the others."""

Span = tuple[Cut, Cut]
"""The first and the last cut of a range or a list; null precedes the least value."""

_BLOCK = 64  # spans in one block, and blocks in one row, which a search skips as a whole
_FEW = 16  # candidates up to which the first way that finds them is taken
_SHORT = 16  # values up to which a list is found by each of them, and not by its span

_OPPOSITE: dict[Pattern, Pattern] = {NULL: NOT_NULL, NOT_NULL: NULL}


class IndexedEntry:
    """One punctuation that restricts several attributes, with cached values.

    >>> schema = Schema.parse("hour INT, min INT")
    >>> five = IndexedEntry(Punctuation.of(schema, hour="5", min="[0,9]"), (0, 1))
    >>> five.box[1].cuts, five.only_difference(IndexedEntry(Punctuation.of(schema, hour="6", min="[0,9]"), (0, 1)))
    ((0, 10), 0)
    """

    __slots__ = ("_box", "patterns", "punctuation", "restricted")

    def __init__(self, punctuation: Punctuation, restricted: tuple[int, ...]) -> None:
        self.punctuation = punctuation
        self.restricted = restricted
        self.patterns = tuple([punctuation.patterns[i] for i in restricted])
        self._box: dict[int, ValueSet] | None = None

    @property
    def given(self) -> dict[int, Pattern]:
        """The patterns of the restricted attributes, by index."""
        return dict(zip(self.restricted, self.patterns, strict=True))

    @property
    def box(self) -> Mapping[int, ValueSet]:
        """The value set of each restricted attribute, by index."""
        if self._box is None:
            schema = self.punctuation.schema
            pairs = zip(self.restricted, self.patterns, strict=True)
            self._box = {i: values(pattern, schema[i].domain) for i, pattern in pairs}
        return self._box

    def meets(self, given: Mapping[int, Pattern], box: Mapping[int, ValueSet]) -> bool:
        """Whether it meets these patterns; the box has their values, but for constants."""
        for i, pattern in zip(self.restricted, self.patterns, strict=True):
            other = given.get(i)
            if other is None:
                continue
            if type(pattern) is Constant:
                found = matches(other, pattern.value)
            elif type(other) is Constant:
                found = matches(pattern, other.value)
            else:
                found = self.box[i].overlaps(box[i])
            if not found:
                return False
        return True

    def covers(self, given: Mapping[int, Pattern], box: Mapping[int, ValueSet]) -> bool:
        """Whether it covers these patterns; the box has their values, but for constants."""
        for i, pattern in zip(self.restricted, self.patterns, strict=True):
            other = given.get(i)
            if other is None:
                return False
            if type(other) is Constant:
                found = matches(pattern, other.value)
            else:
                found = type(pattern) is not Constant and self.box[i].covers(box[i])
            if not found:
                return False
        return True

    def only_difference(self, other: IndexedEntry) -> int | None:
        """Returns the only attribute on which two entries of one shelf differ; None if there are more, or none."""
        differing = [i for i, p, q in zip(self.restricted, self.patterns, other.patterns, strict=True) if p != q]
        return differing[0] if len(differing) == 1 else None


def box_of(given: Mapping[int, Pattern], schema: Schema) -> dict[int, ValueSet]:
    """The values of these patterns, but for constants."""
    return {i: values(each, schema[i].domain) for i, each in given.items() if type(each) is not Constant}


class Spans:
    """Entries by their spans on one attribute: blocks of spans, in order, and rows of blocks, each with its last end.

    >>> schema, spans = Schema.parse("hour INT, min INT"), Spans()
    >>> for hour in ("[1,5]", "[4,9]", "[20,29]"):
    ...     entry = IndexedEntry(Punctuation.of(schema, hour=hour, min="5"), (0, 1))
    ...     spans.add(_span(entry.box[0]), entry)
    >>> [str(entry.punctuation) for group in spans.meeting((7, 8)) for entry in group]
    ['<[4,9], 5>']
    """

    __slots__ = ("_at", "_blocks", "_reach", "_rows")

    def __init__(self) -> None:
        self._at: dict[Span, dict[IndexedEntry, None]] = {}
        self._blocks: list[list[Span]] = []
        self._reach: list[Cut] = []
        self._rows: list[Cut] = []

    def __len__(self) -> int:
        return len(self._at)

    def add(self, span: Span, entry: IndexedEntry) -> None:
        """Adds an entry under its span."""
        if span not in self._at:
            self._at[span] = {}
            if not self._blocks:
                self._replace(0, [[span]])
            elif len(block := self._blocks[place := self._place(span)]) < _BLOCK:
                insort(block, span)
                self._extend(place, span[1])
            else:
                insort(block, span)
                half = len(block) // 2
                self._replace(place, [block[:half], block[half:]])
        self._at[span][entry] = None

    def remove(self, span: Span, entry: IndexedEntry) -> None:
        """Removes an entry."""
        del self._at[span][entry]
        if not self._at[span]:
            del self._at[span]
            place = self._place(span)
            block = self._blocks[place]
            del block[bisect_left(block, span)]
            self._replace(place, [block] if block else [])

    def meeting(self, span: Span) -> Iterator[Mapping[IndexedEntry, None]]:
        """Yields the entries whose spans overlap or touch this one, grouped by equal spans."""
        low, high = span
        for row, farthest in enumerate(self._rows):
            at = row * _BLOCK
            if self._blocks[at][0][0] > high:
                return
            if farthest >= low:
                for block, reach in zip(self._blocks[at : at + _BLOCK], self._reach[at : at + _BLOCK], strict=True):
                    if reach >= low:
                        for other in block:
                            if other[0] <= high and other[1] >= low:
                                yield self._at[other]

    def _place(self, span: Span) -> int:
        return max(bisect_right(self._blocks, span, key=itemgetter(0)) - 1, 0)

    def _extend(self, place: int, end: Cut) -> None:
        self._reach[place] = max(self._reach[place], end)
        self._rows[place // _BLOCK] = max(self._rows[place // _BLOCK], end)

    def _replace(self, place: int, blocks: list[list[Span]]) -> None:
        """Puts other blocks in the place of one; if their number differs, all later rows consist of other blocks."""
        self._blocks[place : place + 1] = blocks
        self._reach[place : place + 1] = [max(high for _, high in block) for block in blocks]
        first = place // _BLOCK
        rows = (len(self._blocks) + _BLOCK - 1) // _BLOCK if len(blocks) != 1 or not self._rows else first + 1
        changed = [max(self._reach[row * _BLOCK : (row + 1) * _BLOCK]) for row in range(first, rows)]
        self._rows[first : len(self._rows) if len(blocks) != 1 else first + 1] = changed


def _span(held: ValueSet) -> Span:
    bottom, top = held.domain.bottom, held.domain.top
    cuts = held.cuts if len(held.cuts) % 2 == 0 else (*held.cuts, top)
    return bottom if held.null else cuts[0], cuts[-1] if cuts else bottom


def _keys(pattern: Pattern) -> tuple[Value | None, ...] | None:
    """Returns the values by which an entry is found; None if it is found by its span."""
    if type(pattern) is Constant:
        return (pattern.value,)
    return pattern.values if type(pattern) is List and len(pattern.values) <= _SHORT else None


class Shelf:
    """The entries that restrict the same attributes; see the example of `EntryIndex`."""

    __slots__ = ("_by_constant", "_edges", "_listed", "_loose", "_ordered", "_schema", "entries", "restricted")

    def __init__(self, schema: Schema, restricted: tuple[int, ...]) -> None:
        self._schema = schema
        self.restricted = restricted
        self.entries: dict[tuple[Pattern, ...], IndexedEntry] = {}
        self._by_constant: dict[int, dict[Value | None, dict[IndexedEntry, None]]] = {i: {} for i in restricted}
        self._loose: dict[int, Spans] = {i: Spans() for i in restricted}
        self._ordered: dict[int, Spans] = {}  # constants, where a range was looked up among them
        self._listed = 0
        self._edges: dict[tuple[bool, Edge], IndexedEntry] = {}

    def add(self, entry: IndexedEntry) -> None:
        """Adds an entry."""
        self.entries[entry.patterns] = entry
        for i, pattern in zip(self.restricted, entry.patterns, strict=True):
            if (keys := _keys(pattern)) is None:
                self._loose[i].add(_span(entry.box[i]), entry)
                continue
            self._listed += len(keys) > 1
            for key in keys:
                self._by_constant[i].setdefault(key, {})[entry] = None
                if i in self._ordered:
                    self._ordered[i].add(self._span_at(i, key), entry)
        for begins, edge in self._ends(entry):
            self._edges[begins, edge] = entry

    def remove(self, entry: IndexedEntry) -> None:
        """Removes an entry."""
        del self.entries[entry.patterns]
        for i, pattern in zip(self.restricted, entry.patterns, strict=True):
            if (keys := _keys(pattern)) is None:
                self._loose[i].remove(_span(entry.box[i]), entry)
                continue
            self._listed -= len(keys) > 1
            for key in keys:
                same = self._by_constant[i][key]
                del same[entry]
                if not same:
                    del self._by_constant[i][key]
                if i in self._ordered:
                    self._ordered[i].remove(self._span_at(i, key), entry)
        for end in self._ends(entry):
            if self._edges.get(end) is entry:
                del self._edges[end]

    def meeting(self, given: Mapping[int, Pattern]) -> Iterable[IndexedEntry]:
        """Returns a superset of the entries that meet these patterns, found by the most selective attribute."""
        ways = [self._groups(i, given[i]) for i in self.restricted if i in given]
        if (
            len(ways) == len(self.restricted)
            and not self._listed
            and all(type(given[i]) is Constant for i in self.restricted)
        ):
            ways.insert(0, self._of_constants(given))
        return _fewest(ways) if ways else list(self.entries.values())

    def bordering(self, entry: IndexedEntry) -> Iterator[tuple[int, IndexedEntry]]:
        """Yields the entries that touch this one on one attribute and have equal patterns on all others."""
        for begins, edge in self._ends(entry):
            neighbour = self._edges.get((not begins, edge))
            if neighbour is not None:
                yield edge[0], neighbour
        for place, i in enumerate(self.restricted):
            opposite = _OPPOSITE.get(entry.patterns[place])
            if opposite is not None:
                other = (*entry.patterns[:place], opposite, *entry.patterns[place + 1 :])
                if other in self.entries:
                    yield i, self.entries[other]

    def _groups(self, i: int, given: Pattern) -> Iterator[Collection[IndexedEntry]]:
        """Yields the entries that may meet a pattern of one attribute."""
        by_constant = self._by_constant[i]
        keys = self._constants(given, len(by_constant))
        for key in keys or ():
            if key in by_constant:
                yield by_constant[key]
        if not self._loose[i] and (keys is not None or not by_constant):
            return
        held = values(given, self._schema[i].domain)
        if not held.is_empty:
            yield from self._loose[i].meeting(_span(held))
            if keys is None and by_constant:
                yield from self._constants_in_order(i).meeting(_span(held))

    def _of_constants(self, given: Mapping[int, Pattern]) -> Iterator[Collection[IndexedEntry]]:
        """Yields the entries that may meet constants of all attributes."""
        same = self.entries.get(tuple([given[i] for i in self.restricted]))
        if same is not None:
            yield (same,)
        for i, loose in self._loose.items():
            if loose:
                yield from loose.meeting(_span(values(given[i], self._schema[i].domain)))

    @staticmethod
    def _constants(given: Pattern, most: int) -> Sequence[Value | None] | None:
        """Returns the constants that entries may have that meet a pattern; None if these are too many to look up."""
        if type(given) is Constant:
            return (given.value,)
        return given.values if type(given) is List and len(given.values) <= most else None

    def _span_at(self, i: int, key: Value | None) -> Span:
        return _span(values(Constant(key), self._schema[i].domain))

    def _constants_in_order(self, i: int) -> Spans:
        if i not in self._ordered:
            self._ordered[i] = Spans()
            for key, entries in self._by_constant[i].items():
                for entry in entries:
                    self._ordered[i].add(self._span_at(i, key), entry)
        return self._ordered[i]

    def _ends(self, entry: IndexedEntry) -> Iterator[tuple[bool, Edge]]:
        """Yields where the entry begins (True) and ends (False), for each attribute on which it is one interval."""
        for place, (i, pattern) in enumerate(zip(self.restricted, entry.patterns, strict=True)):
            if isinstance(pattern, Range) or (isinstance(pattern, Constant) and pattern.value is not None):
                ((low, high),) = entry.box[i].intervals()
                others = entry.patterns[:place] + entry.patterns[place + 1 :]
                yield True, (i, low, others)
                yield False, (i, high, others)


def _fewest(ways: Sequence[Iterator[Collection[IndexedEntry]]]) -> list[IndexedEntry]:
    """Returns what the way with the fewest entries yields, or one with at most twice as many; follows none farther."""
    found: list[list[Collection[IndexedEntry]]] = [[] for _ in ways]
    counts = [0] * len(ways)
    reach = _FEW
    while True:
        for number, way in enumerate(ways):
            while counts[number] < reach:
                group = next(way, None)
                if group is None:
                    return list(dict.fromkeys(chain.from_iterable(found[number])))
                found[number].append(group)
                counts[number] += len(group)
        reach *= 2


class EntryIndex:
    """All entries, by shelf.

    >>> schema = Schema.parse("hour INT, min INT")
    >>> index = EntryIndex(schema)
    >>> for hour in ("5", "6"):
    ...     index.add(IndexedEntry(Punctuation.of(schema, hour=hour, min="[0,9]"), (0, 1)))
    >>> six = IndexedEntry(Punctuation.of(schema, hour="6", min="[10,19]"), (0, 1))
    >>> [str(entry.punctuation) for entry in index.meeting({0: six.given[0]})]
    ['<6, [0,9]>']
    >>> str(index.joined(six, [])), len(index)
    ('<6, [0,19]>', 1)
    """

    __slots__ = ("_schema", "shelves")

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.shelves: dict[tuple[int, ...], Shelf] = {}

    def __iter__(self) -> Iterator[IndexedEntry]:
        for shelf in self.shelves.values():
            yield from shelf.entries.values()

    def __len__(self) -> int:
        return sum(len(shelf.entries) for shelf in self.shelves.values())

    def add(self, entry: IndexedEntry) -> None:
        """Adds an entry."""
        if entry.restricted not in self.shelves:
            self.shelves[entry.restricted] = Shelf(self._schema, entry.restricted)
        self.shelves[entry.restricted].add(entry)

    def remove(self, entry: IndexedEntry) -> None:
        """Removes an entry."""
        shelf = self.shelves[entry.restricted]
        shelf.remove(entry)
        if not shelf.entries:
            del self.shelves[entry.restricted]

    def meeting(self, given: Mapping[int, Pattern], *, few: int | None = None) -> list[IndexedEntry]:
        """Returns the entries that meet these patterns.

        With `few`, a shelf that restricts none of their attributes is skipped if it has more entries than that.
        """
        found: list[IndexedEntry] = []
        box = box_of(given, self._schema) if self.shelves else {}
        for shelf in self.shelves.values():
            if few is not None and len(shelf.entries) > few and not any(i in given for i in shelf.restricted):
                continue
            found += [entry for entry in shelf.meeting(given) if entry.meets(given, box)]
        return found

    def forget(self, p: Punctuation) -> None:
        """Removes what a punctuation matches, as far as it is separable, from the entries that restrict the same."""
        given = {i: p.patterns[i] for i in p.restricted}
        shelves = [shelf for shelf in self.shelves.values() if given.keys() <= set(shelf.restricted)]
        box = box_of(given, self._schema)
        for entry in [entry for shelf in shelves for entry in shelf.meeting(given) if entry.meets(given, box)]:
            hole = {i: entry.box[i].separable(values(given[i], self._schema[i].domain)) for i in given}
            left = list(without_box(dict(entry.box), hole, self._schema))
            if left != [entry.box]:
                self.remove(entry)
            for box in left if left != [entry.box] else ():
                for chosen in product(*map(patterns, box.values())):
                    part = Punctuation.at(self._schema, dict(zip(box, chosen, strict=True)))
                    self.add(IndexedEntry(part, entry.restricted))

    def bordering(self, entry: IndexedEntry) -> list[tuple[int, IndexedEntry]]:
        """Returns the entries that coalesce with this one along an attribute, with that attribute."""
        shelf = self.shelves.get(entry.restricted)
        return list(shelf.bordering(entry)) if shelf else []

    def joined(self, entry: IndexedEntry, near: Iterable[IndexedEntry]) -> Punctuation | None:
        """Coalesces the entry with one that differs on one attribute, and removes that one; None if there is none."""
        candidates = [(entry.only_difference(other), other) for other in near if other.restricted == entry.restricted]
        for i, other in candidates + self.bordering(entry):
            if i is not None:
                pair = entry.punctuation.patterns[i], other.punctuation.patterns[i]
                union = join_if_exact(*pair, self._schema[i].domain)
                if union is not None:
                    self.remove(other)
                    return Punctuation.at(self._schema, {**entry.given, i: union})
        return None
