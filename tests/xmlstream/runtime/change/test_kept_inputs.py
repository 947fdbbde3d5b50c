"""How often tuples are there, found from how often joined tuples are kept: against bags that are drawn."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import product

import pytest

from tests.harness.nights import AT_NIGHT, SEED
from xmlstream.punct_ns.errors import StateError
from xmlstream.runtime.change.kept_inputs import Part, Product, factors

DRAWN = 20_000 if AT_NIGHT else 300


def drawn(random_: random.Random) -> tuple[dict[Part, int], list[Product]]:
    """The numbers of tuples of two or three inputs, and products of some of them that are kept."""
    inputs = [[(i, str(n)) for n in range(random_.randint(1, 4))] for i in range(random_.choice([2, 2, 3]))]
    numbers = {part: random_.choice([1, 1, 2, 2, 3, 4, 6, 12]) for parts in inputs for part in parts}
    some = random_.choice([inputs, *([inputs, inputs[:2]] if len(inputs) > 2 else [])])
    rows = [row for row in product(*some) if random_.random() < 0.6]
    if len(some) > 2:
        rows += [row for row in product(*some[1:]) if random_.random() < 0.5]
    return numbers, [Product(row, math.prod(numbers[part] for part in row)) for row in rows]


def test_products_are_as_before_and_known_numbers_stay() -> None:
    random_, seen = random.Random(SEED), Counter[str]()
    for _ in range(DRAWN):
        numbers, products = drawn(random_)
        known = {part: number for part, number in numbers.items() if random_.random() < 0.3}
        found = factors(products, known)
        assert not found.keys() & known.keys()
        assert found.keys() == {part for each in products for part in each.parts} - known.keys()
        both = known | found
        assert all(math.prod(both[part] for part in each.parts) == each.times for each in products)
        assert all(number > 0 for number in found.values())
        seen["as they were" if all(numbers[part] == n for part, n in found.items()) else "otherwise"] += 1
    print(dict(seen))
    assert len(seen) == 2


def test_what_is_no_product_is_refused() -> None:
    a, b, c, d = ((i, name) for i, name in zip((0, 0, 1, 1), "abcd", strict=True))
    wrong = [Product((a, c), 2), Product((a, d), 2), Product((b, c), 2), Product((b, d), 3)]
    with pytest.raises(StateError, match="no products of tuples"):
        factors(wrong, {})
    with pytest.raises(StateError, match="no products of tuples"):
        factors([Product((a, c), 3)], {a: 2})
