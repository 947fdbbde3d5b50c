"""Whether several boxes together cover another one.

A box is what a punctuation describes: one value set for each attribute that it restricts. The attributes are
taken in turn; the values of one are parted into cells by which of the boxes hold them, and below each cell only
those boxes count. Exact; `Budget` ends a search that would take too long.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

from punct_ns.pattern import WILDCARD, values
from punct_ns.value_set import ValueSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from punct_ns.domain import Cut
    from punct_ns.pattern import Pattern
    from punct_ns.schema import Schema

EXACT_ATTRIBUTES = 4
EXACT_PUNCTUATIONS = 64
"""Up to so many restricted attributes and punctuations every answer is exact; beyond, as long as the budget lasts."""

Cell = frozenset[int]
"""The boxes, by number, that hold all values of a cell."""


class TooHardError(Exception):
    """The budget is used up: not known to be covered."""


@dataclass(slots=True)
class Budget:
    """How many boxes may be looked at, counted once for each cell."""

    left: float = 200_000

    def spend(self, amount: int) -> None:
        """Raises TooHardError when nothing is left."""
        self.left -= amount
        if self.left < 0:
            raise TooHardError


class Cover:
    """Boxes, by number, and how they cover what some patterns leave open.

    `given` holds the patterns to be covered, for attributes by their places (for others: everything); `closed` says
    whether a set of values of an attribute is closed whatever the other attributes are.
    """

    def __init__(
        self,
        schema: Schema,
        boxes: Sequence[Mapping[int, ValueSet]],
        given: Mapping[int, Pattern],
        closed: Callable[[int, ValueSet], bool],
        budget: Budget | None = None,
    ) -> None:
        self.boxes = boxes
        self.attributes = frozenset(given).union(*boxes)
        self.everything: Cell = frozenset(range(len(boxes)))
        self._schema, self._given, self._closed = schema, given, closed
        self.exact = len(boxes) <= EXACT_PUNCTUATIONS and len(self.attributes) <= EXACT_ATTRIBUTES
        self._budget = Budget(float("inf")) if self.exact else budget or Budget()
        self._known: dict[tuple[Cell, frozenset[int]], bool] = {}

    def target(self, attribute: int) -> ValueSet:
        """What is to be covered of an attribute."""
        return values(self._given.get(attribute, WILDCARD), self._schema[attribute].domain)

    def whole(self, active: Cell, attributes: frozenset[int]) -> bool:
        """Whether the active boxes cover the targets of these attributes, each attribute being open by itself."""
        key = active, attributes
        if key not in self._known:
            self._known[key] = self._whole(active, attributes)
        return self._known[key]

    def _whole(self, active: Cell, attributes: frozenset[int]) -> bool:
        if not active:
            return False
        if any(attributes.isdisjoint(self.boxes[number]) for number in active):
            return True
        attribute = self.busiest(active, attributes)
        rest = attributes - {attribute}
        # A cell with fewer boxes is harder to cover, so it is asked first.
        return all(self.whole(cell, rest) for cell, _ in sorted(self.cells(active, attribute), key=_by_boxes))

    def cells(self, active: Cell, attribute: int) -> Iterator[tuple[Cell, ValueSet]]:
        """The attribute's target, parted by which active boxes hold the values; closed parts are left out."""
        self._budget.spend(len(active))
        sets = {n: self.boxes[n][attribute] for n in active if attribute in self.boxes[n]}
        everywhere = active.difference(sets)
        for cell, part in parted(self.target(attribute), sets, self._budget):
            if not self._closed(attribute, part):
                yield cell | everywhere, part

    def busiest(self, active: Cell, attributes: Iterable[int]) -> int:
        """The attribute that most of the active boxes restrict: it parts them best."""
        counts = Counter(attribute for number in active for attribute in self.boxes[number])
        return max(sorted(attributes), key=lambda attribute: counts[attribute])


def parted(
    target: ValueSet, sets: Mapping[int, ValueSet], budget: Budget | None = None
) -> Iterator[tuple[Cell, ValueSet]]:
    """The target, parted by which of the sets hold the values.

    >>> from punct_ns.domain import Domain
    >>> low, high = (ValueSet.of(Domain("INT"), values) for values in ([1, 2, 3], [3, 4]))
    >>> [(sorted(cell), part.cuts) for cell, part in parted(low.union(high), {0: low, 1: high})]
    [([0], (1, 3)), ([0, 1], (3, 4)), ([1], (4, 5))]
    """
    events: list[tuple[Cut, int]] = [(cut, -1) for cut in target.cuts]
    events += [(cut, number) for number, held in sets.items() for cut in held.cuts]
    events.sort(key=itemgetter(0))
    parts: dict[Cell, list[Cut]] = {}
    holding: set[int] = set()
    inside = False
    begin: Cut = None
    for cut, number in events:
        if inside and begin < cut:
            _extend(parts, holding, begin, cut, budget)
        begin = cut
        if number < 0:
            inside = not inside
        else:
            holding.symmetric_difference_update((number,))
    if inside:
        _extend(parts, holding, begin, target.domain.top, budget)
    nulls = frozenset(number for number, held in sets.items() if held.null) if target.null else None
    if nulls is not None:
        parts.setdefault(nulls, [])
    for cell, cuts in parts.items():
        reaching = bool(cuts) and cuts[-1] == target.domain.top
        yield cell, ValueSet(target.domain, tuple(cuts[:-1] if reaching else cuts), cell == nulls)


def _extend(parts: dict[Cell, list[Cut]], holding: set[int], low: Cut, high: Cut, budget: Budget | None) -> None:
    if budget is not None:
        budget.spend(1 + len(holding))
    cuts = parts.setdefault(frozenset(holding), [])
    if cuts and cuts[-1] == low:
        cuts[-1] = high
    else:
        cuts += (low, high)


def _by_boxes(cell: tuple[Cell, ValueSet]) -> int:
    return len(cell[0])
