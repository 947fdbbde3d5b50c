"""The residue of a scanned window: the gaps between the items that matched templates, and how all are numbered."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from lxml import etree

from sources.xml.options.arrow_text import Mask
from sources.xml.parser.templates.window import Matches, Window
from sources.xml.splits.split_points import Offsets


@dataclass(frozen=True, slots=True)
class NumberedMatches:
    """Items of one template, with their numbers.

    Attributes:
        matches: The items.
        ordinal: Their numbers among all the items of the window, from 0.
    """

    matches: Matches
    ordinal: Offsets


def matches_and_residue(window: Window, matches: list[Matches]) -> tuple[list[NumberedMatches], list[tuple[int, int]]]:
    """The items numbered in their order, and the gaps between them that are not blank."""
    matches = [items for items in matches if len(items)]
    if len(matches) == 1:
        start, end = matches[0].start, matches[0].end
        groups = [NumberedMatches(matches[0], np.arange(len(start)))]
    else:
        start, end, groups = _merged(matches)
    gap_start = np.concatenate([np.zeros(1, np.int64), end])
    gap_end = np.concatenate([start, np.full(1, len(window.text), np.int64)])
    filled = np.flatnonzero(_not_blank(window, gap_start, gap_end))
    return groups, list(zip(gap_start[filled].tolist(), gap_end[filled].tolist(), strict=True))


def _merged(matches: list[Matches]) -> tuple[Offsets, Offsets, list[NumberedMatches]]:
    """Where the items of several templates begin and end, in order, and the groups of them."""
    if not matches:
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, []
    start = np.concatenate([items.start for items in matches])
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.concatenate([items.end for items in matches])[order]
    # Two templates may fit one item; the first counts.
    first = np.concatenate([[True], start[1:] != start[:-1]])
    number = np.empty(len(order), np.int64)
    number[order] = np.where(first, np.cumsum(first) - 1, -1)
    groups = []
    for items in matches:
        ordinal, number = number[: len(items)], number[len(items) :]
        taken = ordinal >= 0
        groups.append(
            NumberedMatches(items, ordinal) if taken.all() else NumberedMatches(items.those(taken), ordinal[taken])
        )
    return start[first], end[first], groups


_IS_BLANK = np.zeros(256, np.bool_)
_IS_BLANK[list(b" \t\r\n")] = True


def _not_blank(window: Window, start: Offsets, end: Offsets) -> Mask:
    """Which of the gaps hold more than blanks."""
    length = end - start
    result = np.zeros(len(length), np.bool_)
    single = np.flatnonzero(length == 1)
    result[single] = ~_IS_BLANK[window.byte[start[single]]]
    longer = np.flatnonzero(length > 1)
    if len(longer):
        size = length[longer]
        before = np.cumsum(size) - size
        at = np.repeat(start[longer] - before, size) + np.arange(size.sum())
        result[longer] = np.logical_or.reduceat(~_IS_BLANK[window.byte[at]], before)
    return result


def number_with_residue(
    groups: list[NumberedMatches], gaps: list[tuple[int, int]], rest: list[list[etree._Element]]
) -> tuple[list[NumberedMatches], list[tuple[int, etree._Element]]]:
    """The items with those of the residue counted in, and these with their numbers."""
    starts = np.sort(np.concatenate([group.matches.start for group in groups]))
    gap_starts = np.array([start for start, _ in gaps])
    regular_before = np.searchsorted(starts, gap_starts)
    counts = np.array([len(items) for items in rest])
    irregular_before = np.cumsum(counts) - counts
    upto = np.concatenate([[0], np.cumsum(counts)])
    counted_in = [
        replace(group, ordinal=group.ordinal + upto[np.searchsorted(gap_starts, group.matches.start)])
        for group in groups
    ]
    irregular = [
        (int(regular_before[gap] + irregular_before[gap]) + number, element)
        for gap, items in enumerate(rest)
        for number, element in enumerate(items)
    ]
    return counted_in, irregular
