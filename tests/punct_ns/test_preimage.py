from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.image import preimage
from xmlstream.punct_ns.value_set import ValueSet

BOUNDS = st.sampled_from([(None, None), (-50, None), (None, 70), (-50, 70)])


@given(st.integers(1, 9), st.integers(-30, 30), st.booleans(), BOUNDS, st.data())
def test_a_value_is_in_the_preimage_where_its_image_is_asked_for(
    n: int, offset: int, falling: bool, bounds: tuple[int | None, int | None], data: st.DataObject
) -> None:
    x, y = Domain("INT", True, *bounds), Domain("INT")

    def of(value: int) -> int:
        return (value + offset) // n * (-1 if falling else 1)

    def f(asked: Sequence[Value]) -> dict[Value, Value]:
        return {value: of(value) for value in asked if isinstance(value, int) and abs(value) < 10**9}

    pairs = data.draw(st.lists(st.tuples(st.integers(-60, 60), st.integers(1, 4)), max_size=3))
    asked = ValueSet.of_intervals(y, [(low, low + size) for low, size in pairs], null=data.draw(st.booleans()))
    found = preimage(asked, x, f, falling=falling)
    assert found is not None
    assert found.null == asked.null
    low, high = (end if end is not None else default for end, default in zip(bounds, (-700, 700), strict=True))
    for value in range(low, high + 1):
        assert found.contains(value) == asked.contains(of(value))


def test_what_is_dense_or_cannot_be_computed_has_none_that_is_known() -> None:
    hours = ValueSet.of(Domain("INT"), [5])
    assert preimage(hours, Domain("DOUBLE"), lambda asked: {}) is None
    assert preimage(hours, Domain("INT"), lambda asked: {}) is None
