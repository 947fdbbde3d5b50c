from __future__ import annotations

import random
import time
from itertools import product

import pytest

from tests.harness.nights import AT_NIGHT
from xmlstream.punct_ns.cover import Box, Budget, TooHardError, covered_regions, is_box_covered
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.value_set import ValueSet

SMALL = Domain("INT", nullable=False, low=0, high=9)
WIDE = Domain("INT", nullable=False, low=0, high=1000)


def between(domain: Domain, low: int, high: int) -> ValueSet:
    return ValueSet.of_intervals(domain, [(low, high + 1)])


def boxes(domain: Domain, rng: random.Random, many: int, attributes: int) -> list[Box]:
    """Boxes that reach from one side or the other, so that together they leave few gaps."""
    size = domain.size or 0
    found = []
    for _ in range(many):
        box: Box = {}
        for i in range(attributes):
            end = rng.randrange(size)
            box[i] = between(domain, 0, end) if rng.random() < 0.5 else between(domain, end, size - 1)
        found.append(box)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_boxes_cover_what_brute_force_says(seed: int) -> None:
    rng = random.Random(seed)
    given = boxes(SMALL, rng, 12, 3)
    if seed % 2:  # some restrict one attribute or two, and leave the others open
        given = [{i: part for i, part in box.items() if rng.random() < 0.6} or box for box in given]
    target = {i: ValueSet.of(SMALL, rng.sample(range(10), 4)) for i in range(3)}
    points = list(product(*(target[i].each() for i in range(3))))
    covered = {point: any(all(box[i].contains(point[i]) for i in box) for box in given) for point in points}
    assert is_box_covered(target, given, Budget()) == all(covered.values())
    regions = list(covered_regions(target, given, frozenset([0, 1]), Budget()))
    for a, b in product(target[0].each(), target[1].each()):
        holding = [region for region in regions if region[0].contains(a) and region[1].contains(b)]
        assert len(holding) == all(covered[a, b, c] for c in target[2].each())


def test_nothing_covers_nothing_but_a_box_without_restrictions() -> None:
    target = {0: ValueSet.everything(SMALL)}
    assert not is_box_covered(target, [], Budget())
    assert is_box_covered(target, [{}], Budget())
    assert list(covered_regions(target, [], frozenset([0]), Budget())) == []
    assert list(covered_regions(target, [{}], frozenset([0]), Budget())) == [target]


def test_boxes_that_leave_values_open_are_looked_at_once() -> None:
    """Of ten thousand that each hold one value of an attribute, none helps to cover all of its values."""
    one = [{0: between(WIDE, 5, 5), 1: between(WIDE, n % 1000, n % 1000), 2: between(WIDE, n // 10, n // 10)}
           for n in range(10_000)]  # fmt: skip
    target = {0: between(WIDE, 5, 5), 1: ValueSet.everything(WIDE), 2: ValueSet.everything(WIDE)}
    assert not is_box_covered(target, one, Budget(2 * len(one)))
    everywhere: Box = {2: ValueSet.everything(WIDE)}
    assert is_box_covered(target, [*one, everywhere], Budget(2 * len(one)))
    regions = covered_regions(target, one, frozenset([0]), Budget(3 * len(one)))
    assert list(regions) == []


def test_a_budget_ends_the_search() -> None:
    target = {i: ValueSet.everything(WIDE) for i in range(4)}
    with pytest.raises(TooHardError):
        is_box_covered(target, boxes(WIDE, random.Random(2), 64, 4), Budget(100))


def test_sixty_four_punctuations_of_four_attributes_are_quick() -> None:
    target = {i: ValueSet.everything(WIDE) for i in range(4)}
    for seed in range(5 if AT_NIGHT else 2):
        given = boxes(WIDE, random.Random(seed), 64, 4)
        started = time.process_time()
        is_box_covered(target, given, Budget())
        list(covered_regions(target, given, frozenset([0, 1]), Budget()))
        seconds = time.process_time() - started
        print(f"64 boxes of 4 attributes: {seconds:.3f} s")
        assert seconds < 60
