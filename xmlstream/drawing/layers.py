"""A layout in layers: boxes in columns from left to right, ordered so that few arrows cross, and near their neighbours.

An arrow that passes a column has a place of its own there, between the boxes. The order of a column is improved by
barycentres: boxes are sorted by the means of their neighbours' places. Then each box gets the mean height of its
neighbours, moved as little as possible so that boxes do not overlap (an isotonic regression).

Source: K. Sugiyama, S. Tagawa, M. Toda: Methods for Visual Understanding of Hierarchical System Structures, 1981.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from xmlstream.dataclasses import dataclass
from xmlstream.drawing.canvas import Area, Point

Arrow = tuple[int, int]

_ACROSS, _BETWEEN = 46.0, 20.0
"""Distance of columns, and smallest distance of boxes in a column."""

_SWEEPS = 12
"""Sweeps to improve the orders; heights take three times as many."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The place of each box, and the points of each arrow."""

    boxes: tuple[Area, ...]
    arrows: tuple[tuple[Point, ...], ...]


@dataclass(slots=True)
class _Graph:
    """Boxes and passing arrows in columns, with their neighbours in the columns before and after."""

    columns: list[list[int]]
    heights: list[float]
    before: list[list[int]]
    after: list[list[int]]


def layered(sizes: Sequence[tuple[float, float]], arrows: Sequence[Arrow]) -> Layout:
    """Lays out boxes so that all arrows lead to the right.

    Args:
        sizes: Width and height of each box; all boxes of a column get the width of the widest.
        arrows: Pairs of numbers of boxes, without cycles.
    """
    graph, chains = _graph(sizes, arrows)
    _order(graph)
    middles = _middles(graph)
    widths = [max((sizes[v][0] for v in column if v < len(sizes)), default=0) for column in graph.columns]
    lefts = [sum(widths[:i]) + _ACROSS * i for i in range(len(widths))]
    rank = {v: i for i, column in enumerate(graph.columns) for v in column}
    top = min(middles[v] - graph.heights[v] / 2 for v in range(len(sizes)))
    if len(graph.columns[0]) > 1:
        # The drawing begins at the top left; a chain stays on one level.
        first = min(middles[v] - graph.heights[v] / 2 for v in graph.columns[0])
        for v in graph.columns[0]:
            middles[v] -= first - top
    boxes = tuple(
        Area(lefts[rank[v]], round(middles[v] - height / 2 - top, 1), widths[rank[v]], height)
        for v, (_, height) in enumerate(sizes)
    )
    arriving: list[list[int]] = [[] for _ in sizes]
    for number, chain in enumerate(chains):
        arriving[chain[-1]].append(number)
    routes: list[tuple[Point, ...]] = []
    for number, chain in enumerate(chains):
        target = boxes[chain[-1]]
        others = sorted(arriving[chain[-1]], key=lambda other: (middles[chains[other][-2]], other))
        apart = min(18.0, (target.height - 20) / len(others))
        port = target.middle + (others.index(number) - (len(others) - 1) / 2) * apart
        points: list[Point] = [(boxes[chain[0]].right, boxes[chain[0]].middle)]
        for v in chain[1:-1]:
            y = round(middles[v] - top, 1)
            points += [(lefts[rank[v]], y), (lefts[rank[v]] + widths[rank[v]], y)]
        routes.append((*points, (target.x, round(port, 1))))
    return Layout(boxes, tuple(routes))


def _graph(sizes: Sequence[tuple[float, float]], arrows: Sequence[Arrow]) -> tuple[_Graph, list[list[int]]]:
    """The columns, with each box as far right as possible; and each arrow as a chain of one place per column."""
    after: list[list[int]] = [[] for _ in sizes]
    for source, target in arrows:
        after[source].append(target)
    depth: dict[int, int] = {}

    def deep(v: int) -> int:
        if v not in depth:
            depth[v] = 1 + max(map(deep, after[v]), default=-1)
        return depth[v]

    last = max(map(deep, range(len(sizes))))
    columns: list[list[int]] = [[] for _ in range(last + 1)]
    for v in range(len(sizes)):
        columns[last - depth[v]].append(v)
    heights = [height for _, height in sizes]
    chains = []
    for source, target in arrows:
        passing = range(last - depth[source] + 1, last - depth[target])
        chain = [source, *range(len(heights), len(heights) + len(passing)), target]
        for column, v in zip(passing, chain[1:-1], strict=True):
            columns[column].append(v)
            heights.append(0.0)
        chains.append(chain)
    graph = _Graph(columns, heights, [[] for _ in heights], [[] for _ in heights])
    for chain in chains:
        for v, w in pairwise(chain):
            graph.after[v].append(w)
            graph.before[w].append(v)
    return graph, chains


def _order(graph: _Graph) -> None:
    """Sorts each column by the means of its neighbours' places, back and forth; keeps the best order."""
    best, fewest = [list(column) for column in graph.columns], _crossings(graph)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        neighbours = graph.after if sweep % 2 else graph.before
        for column in graph.columns[::-1] if sweep % 2 else graph.columns:
            place = {v: i for each in graph.columns for i, v in enumerate(each)}
            column.sort(key=lambda v, place=place: _mean([place[w] for w in neighbours[v]], place[v]))  # type: ignore[misc]
        if (crossings := _crossings(graph)) < fewest:
            best, fewest = [list(column) for column in graph.columns], crossings
    graph.columns[:] = best


def _crossings(graph: _Graph) -> int:
    place = {v: i for column in graph.columns for i, v in enumerate(column)}
    found = 0
    for column in graph.columns:
        lines = sorted((place[v], place[w]) for v in column for w in graph.after[v])
        found += sum(b[1] < a[1] for i, a in enumerate(lines) for b in lines[i + 1 :] if b[0] > a[0])
    return found


def _middles(graph: _Graph) -> list[float]:
    """The y of the middle of each box and passing arrow."""
    middles = [0.0] * len(graph.heights)
    for sweep in range(3 * _SWEEPS + 1):
        for column in graph.columns[::-1] if sweep % 2 else graph.columns:
            # In the first sweep only the column to the left has heights.
            beside = [graph.before[v] + (graph.after[v] if sweep else []) for v in column]
            wanted = [_mean([middles[w] for w in near], middles[v]) for v, near in zip(column, beside, strict=True)]
            for v, y in zip(column, _apart(wanted, [graph.heights[v] for v in column]), strict=True):
                middles[v] = y
    return middles


def _apart(wanted: Sequence[float], heights: Sequence[float]) -> list[float]:
    """The middles nearest to the wanted ones, in the same order and without overlap (pool adjacent violators)."""
    offsets = [0.0]
    for above, below in pairwise(heights):
        offsets.append(offsets[-1] + (above + below) / 2 + _BETWEEN)
    pools: list[list[float]] = []
    for want, offset in zip(wanted, offsets, strict=True):
        pools.append([want - offset])
        while len(pools) > 1 and _mean(pools[-2], 0) > _mean(pools[-1], 0):
            pools[-2:] = [pools[-2] + pools[-1]]
    level = [_mean(pool, 0) for pool in pools for _ in pool]
    return [y + offset for y, offset in zip(level, offsets, strict=True)]


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
