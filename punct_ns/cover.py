"""Covers: whether a union of boxes covers another box, and for which values of some attributes it does.

A box is the set of tuples that a punctuation matches: a value set for each attribute that it restricts. Both searches
simplify and cut, after T. M. Chan, "Klee's measure problem made easy" (FOCS 2013): they remove from the target what
boxes with a single restricted attribute cover, cut the rest in two at a median end of the boxes, and search each half
with the boxes that still restrict something there. Exact; a `Budget` stops a search that would take long.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.value_set import ValueSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from xmlstream.punct_ns.domain import Cut

Box = dict[int, ValueSet]
"""Value sets by attribute index."""

EXACT_ATTRIBUTES = 4
EXACT_PUNCTUATIONS = 64
"""Up to these numbers of restricted attributes and punctuations every answer is exact; beyond, within the budget."""


ENOUGH = 200_000
"""The budget, in boxes examined, of a search that need not be exact: about a second."""


class TooHardError(Exception):
    """The budget is used up, so that the search has no answer."""


class Budget:
    """The number of boxes that a search may examine, counted once for each part of the target; unlimited by default.

    >>> budget = Budget(10)
    >>> budget.spend(7)
    >>> budget.spend(7)
    Traceback (most recent call last):
    ...
    xmlstream.punct_ns.cover.TooHardError
    """

    __slots__ = ("_left",)

    def __init__(self, left: float = float("inf")) -> None:
        self._left = left

    def spend(self, amount: int) -> None:
        """Subtracts an amount; raises TooHardError when nothing is left."""
        self._left -= amount
        if self._left < 0:
            raise TooHardError


def is_exact(boxes: Sequence[Mapping[int, ValueSet]]) -> bool:
    """Whether the answer must be exact, so that a search has no budget.

    >>> is_exact([])
    True
    """
    return len(boxes) <= EXACT_PUNCTUATIONS and len(frozenset[int]().union(*boxes)) <= EXACT_ATTRIBUTES


def is_box_covered(target: Box, boxes: Sequence[Mapping[int, ValueSet]], budget: Budget) -> bool:
    """Whether every point of the target (a set for each attribute) is in some box.

    >>> from xmlstream.punct_ns.domain import Domain
    >>> low, high = (ValueSet.of_intervals(Domain("INT"), [pair]) for pair in ((0, 5), (5, 9)))
    >>> is_box_covered({0: low, 1: low.union(high)}, [{0: low, 1: low}, {1: high}], Budget())
    True
    """
    while True:
        budget.spend(1 + len(boxes))
        left = _clipped(target, boxes)
        if left is None:
            return True
        left = _needed(target, left, target)
        boxes = [box for box in left if len(box) > 1]
        target = dict(target)
        for i, held in _slabs(left):
            target[i] = target[i].difference(held)
            if target[i].is_empty:
                return True
        if len(boxes) == len(left):
            break
    if not boxes:
        return False
    i = _busiest(boxes, target)
    return all(is_box_covered({**target, i: half}, boxes, budget) for half in _halves(i, target[i], boxes))


def covered_regions(
    target: Box, boxes: Sequence[Mapping[int, ValueSet]], staying: frozenset[int], budget: Budget
) -> Iterator[Box]:
    """Yields the regions of the staying attributes where the boxes cover the target of all the other attributes.

    The regions do not overlap, and none is missing.

    >>> from xmlstream.punct_ns.domain import Domain
    >>> low, high = (ValueSet.of_intervals(Domain("INT"), [pair]) for pair in ((0, 5), (5, 9)))
    >>> boxes = [{0: low, 1: low}, {1: high}]
    >>> [{i: part.cuts for i, part in region.items()}
    ...  for region in covered_regions({0: low.union(high), 1: low.union(high)}, boxes, frozenset([0]), Budget())]
    [{0: (0, 5)}]
    """
    while True:
        budget.spend(1 + len(boxes))
        region = {i: part for i, part in target.items() if i in staying}
        left = _clipped(target, boxes)
        if left is None:
            yield region
            return
        left = _needed(target, left, target.keys() - staying)
        boxes = [box for box in left if len(box) > 1]
        target = dict(target)
        for i, held in _slabs(left):
            closed = target[i].intersection(held)
            target[i] = target[i].difference(held)
            if i in staying:
                if not closed.is_empty:
                    yield {**region, i: closed}
                region[i] = target[i]
            elif target[i].is_empty:
                yield region
                return
            if target[i].is_empty:
                return
        if len(boxes) == len(left):
            break
    yield from _regions_of_several(target, boxes, staying, budget)


def _regions_of_several(
    target: Box, boxes: Sequence[Mapping[int, ValueSet]], staying: frozenset[int], budget: Budget
) -> Iterator[Box]:
    """Yields the covered regions where no box covers any by itself, or leaves out all values of one attribute."""
    region = {i: part for i, part in target.items() if i in staying}
    removed = {i: part for i, part in target.items() if i not in staying}
    dividing = [{i: part for i, part in box.items() if i in staying} for box in boxes]
    elsewhere = [{i: part for i, part in box.items() if i in removed} for box in boxes]
    if not is_box_covered(removed, elsewhere, budget):
        return  # not even if all boxes held everywhere
    everywhere = [rest for there, rest in zip(dividing, elsewhere, strict=True) if not there]
    if everywhere and is_box_covered(removed, everywhere, budget):
        yield region
        return
    i = _busiest(dividing, region)
    for half in _halves(i, target[i], dividing):
        yield from covered_regions({**target, i: half}, boxes, staying, budget)


def without_box(part: Box, hole: Mapping[int, ValueSet], schema: Schema) -> Iterator[Box]:
    """Subtracts one box from another; yields boxes that do not overlap.

    >>> from xmlstream.punct_ns.domain import Domain
    >>> low, high = (ValueSet.of_intervals(Domain("INT"), [pair]) for pair in ((0, 5), (5, 9)))
    >>> [piece[0].cuts for piece in without_box({0: low.union(high)}, {0: low}, Schema.of(hour="INT"))]
    [(5, 9)]
    """
    rest = dict(part)
    for i, held in hole.items():
        if rest.get(i, ValueSet.everything(schema[i].domain)).intersection(held).is_empty:
            yield part
            return
    for i, held in hole.items():
        here = rest.get(i, ValueSet.everything(schema[i].domain))
        if not (beside := here.difference(held)).is_empty:
            yield {**rest, i: beside}
        rest[i] = here.intersection(held)


def _clipped(target: Mapping[int, ValueSet], boxes: Iterable[Mapping[int, ValueSet]]) -> list[Box] | None:
    """Clips the boxes to the target, with the attributes they still restrict; None if one box covers the target."""
    left = []
    for box in boxes:
        reaching: Box = {}
        for i, held in box.items():
            part = held.intersection(target[i])
            if part.is_empty:
                break
            if part != target[i]:
                reaching[i] = part
        else:
            if not reaching:
                return None
            left.append(reaching)
    return left


def _needed(target: Mapping[int, ValueSet], boxes: list[Box], removed: Iterable[int]) -> list[Box]:
    """Drops boxes that cannot help to cover the target for all values of the attributes to be removed.

    If the boxes leave out a value of such an attribute, boxes that restrict it do not help: the other boxes have to
    cover that value, and then they cover every value.
    """
    needed = list(removed)
    while boxes:
        useless = {i for i, held in _held(boxes).items() if i in needed and not target[i].difference(held).is_empty}
        if not useless:
            break
        boxes = [box for box in boxes if useless.isdisjoint(box)]
    return boxes


def _slabs(boxes: Iterable[Box]) -> Iterator[tuple[int, ValueSet]]:
    """Yields, for each attribute, the union of the boxes that restrict it alone."""
    yield from _held(box for box in boxes if len(box) == 1).items()


def _held(boxes: Iterable[Box]) -> dict[int, ValueSet]:
    """Returns, for each attribute, the union of the boxes that restrict it."""
    parts: dict[int, list[ValueSet]] = {}
    for box in boxes:
        for i, part in box.items():
            parts.setdefault(i, []).append(part)
    return {i: _union(found) for i, found in parts.items()}


def _union(parts: Sequence[ValueSet]) -> ValueSet:
    """Returns the union of sets over one domain."""
    pairs = (pair for part in parts for pair in part.intervals())
    return ValueSet.of_intervals(parts[0].domain, pairs, null=any(part.null for part in parts))


def _busiest(boxes: Iterable[Mapping[int, ValueSet]], target: Mapping[int, ValueSet]) -> int:
    """Returns the attribute on which most boxes end inside the target."""
    ends = dict.fromkeys(target, 0)
    for box in boxes:
        for i, part in box.items():
            ends[i] += 1 + len(part.cuts)
    return max(ends, key=lambda i: ends[i])


def _halves(i: int, target: ValueSet, boxes: Iterable[Mapping[int, ValueSet]]) -> tuple[ValueSet, ValueSet]:
    """Cuts the target's values of an attribute in two at the median of the boxes' ends; null is cut off last."""
    parts = [box[i].cuts for box in boxes if i in box]
    own = set(target.cuts)
    ends: list[Cut] = sorted(cut for cuts in parts for cut in cuts if cut not in own)
    if not ends:
        # Each interval of the target lies inside or outside a box: cut where that changes.
        neighbours = list(zip(target.cuts[::2], target.cuts[2::2], strict=False))
        for held in map(set, parts):
            ends += [cut for before, cut in neighbours if (before in held) != (cut in held)]
        ends.sort()
    if not ends:
        return ValueSet(target.domain, target.cuts), ValueSet(target.domain, (), target.null)
    cut = ends[len(ends) // 2]
    at = bisect_left(target.cuts, cut)
    inside = (cut,) if at % 2 else ()
    low = ValueSet(target.domain, (*target.cuts[:at], *inside), target.null)
    return low, ValueSet(target.domain, (*inside, *target.cuts[at:]))
