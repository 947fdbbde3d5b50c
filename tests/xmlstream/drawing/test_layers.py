"""Boxes in layers: none over another, arrows from left to right and past what they do not meet."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from tests.harness.boxes import overlap
from xmlstream.drawing.canvas import Area
from xmlstream.drawing.layers import layered

SIZES = st.tuples(st.integers(40, 300), st.integers(30, 200)).map(lambda size: (float(size[0]), float(size[1])))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[float, float]], list[tuple[int, int]]]:
    """Boxes, and arrows from earlier to later ones; some twice, as a stream is joined with itself."""
    sizes = draw(st.lists(SIZES, min_size=1, max_size=14))
    arrows = [
        (draw(st.integers(0, target - 1)), target)
        for target in range(1, len(sizes))
        for _ in range(draw(st.integers(0, 3)))
    ]
    return sizes, arrows


@given(graphs())
@example(([(100.0, 40.0)] * 4, [(0, 3), (1, 2), (2, 3), (0, 3)]))
def test_no_box_lies_over_another_and_every_arrow_leads_to_the_right(
    graph: tuple[list[tuple[float, float]], list[tuple[int, int]]],
) -> None:
    sizes, arrows = graph
    layout = layered(sizes, arrows)
    assert [box.height for box in layout.boxes] == [height for _, height in sizes]
    assert all(box.width >= width for box, (width, _) in zip(layout.boxes, sizes, strict=True))
    assert not any(overlap(one, other) for one, other in combinations(layout.boxes, 2))
    for (source, target), points in zip(arrows, layout.arrows, strict=True):
        assert (points[0][0], points[-1][0]) == (layout.boxes[source].right, layout.boxes[target].x)
        assert layout.boxes[target].y < points[-1][1] < layout.boxes[target].bottom
        assert all(a[0] < b[0] for a, b in pairwise(points))


@given(graphs())
def test_an_arrow_passes_the_columns_between_its_ends_beside_their_boxes(
    graph: tuple[list[tuple[float, float]], list[tuple[int, int]]],
) -> None:
    layout = layered(*graph)
    for points in layout.arrows:
        # Between two points of one level it crosses a column; else the space between columns.
        for (x, y), (to_x, _) in zip(points[1:-1:2], points[2:-1:2], strict=True):
            way = Area(x, y - 0.2, to_x - x, 0.4)
            assert not any(overlap(way, box) for box in layout.boxes)


def test_orders_are_chosen_so_that_arrows_do_not_cross() -> None:
    # Written in the order a, b, then what b and a lead to: straight on, they would cross.
    layout = layered([(50.0, 30.0)] * 4, [(0, 3), (1, 2)])
    assert (layout.boxes[0].y < layout.boxes[1].y) == (layout.boxes[3].y < layout.boxes[2].y)


def test_a_chain_lies_on_one_level() -> None:
    layout = layered([(50.0, 30.0), (50.0, 90.0), (50.0, 10.0)], [(0, 1), (1, 2)])
    assert len({box.middle for box in layout.boxes}) == 1


def test_two_hundred_boxes_into_one_are_laid_out_at_once() -> None:
    layout = layered([(50.0, 30.0)] * 201, [(i, 200) for i in range(200)])
    assert layout.boxes[200].middle == (layout.boxes[0].y + layout.boxes[199].bottom) / 2
