"""The punctuations of a staged range, few where many say one thing after the other.

A stream that closes a million auctions one by one says a million constants, which soon are a few ranges; of the
heartbeats of ordered data, only the last counts in the end; of the minutes of an hour that is over, none. What
restricts several attributes is united where it differs in one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from punct_ns.growing_set import GrowingSet
from punct_ns.pattern import canonical
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from sources.xml.grammar.punctuation_columns import Boxes, Longs, apart, one_by_one


def punctuations(said: pa.Table, schema: Schema) -> list[Punctuation]:
    """What the pattern texts of a staged range close: the same tuples, by few punctuations, in no order.

    The arguments, and what is raised, are those of `apart`.
    """
    found = apart(said, schema)
    few: list[Punctuation] = []
    for i, constants in found.constants.items():
        patterns = (canonical(pattern, schema[i].domain) for pattern in constants.patterns())
        few += [Punctuation.at(schema, {i: pattern}) for pattern in patterns]
    farthest = np.array([each.rows[np.argmax(each.ends)] for each in found.prefixes.values()], np.int64)
    few += [p for _, p in one_by_one(said, farthest, schema)]
    few += [p for boxes in found.boxes if len(boxes.patterns) <= 1 for _, p in boxes.one_by_one(schema)]
    if several := [boxes for boxes in found.boxes if len(boxes.patterns) > 1]:
        closed: dict[int, GrowingSet] = {}
        for p in few:
            for i in p.restricted:
                closed.setdefault(i, GrowingSet(schema[i].domain)).add(p.patterns[i])
        few += [p for boxes in several for p in _united(boxes, closed, schema)]
    return few


def _united(boxes: Boxes, closed: Mapping[int, GrowingSet], schema: Schema) -> Iterator[Punctuation]:
    """What restricts several attributes, without what is closed by one of them alone, united along one of them."""
    left = np.ones(len(boxes.rows), np.bool_)
    for column, (i, patterns) in enumerate(boxes.patterns.items()):
        if i in closed:
            open_ = np.array([not closed[i].covers_pattern(pattern) for pattern in patterns])
            left &= open_[boxes.codes[:, column]]
    if not left.any():
        return
    codes = np.unique(boxes.codes[left], axis=0)
    places = list(boxes.patterns)
    along, group = min(
        ((c, _groups(np.delete(codes, c, axis=1))) for c in range(len(places))), key=lambda g: g[1].max()
    )
    order = np.argsort(group, kind="stable")
    for members in np.split(codes[order], np.flatnonzero(np.diff(group[order])) + 1):
        fixed = {i: boxes.patterns[i][code] for i, code in zip(places, members[0].tolist(), strict=True)}
        i = places[along]
        if len(members) == 1:
            yield Punctuation.at(schema, fixed)
            continue
        united = GrowingSet(schema[i].domain)
        for code in members[:, along].tolist():
            united.add(boxes.patterns[i][code])
        for pattern in united.patterns():
            yield Punctuation.at(schema, {**fixed, i: pattern})


def _groups(codes: Longs) -> Longs:
    """For each row a number, the same for equal rows, from 0 on without a gap."""
    group: Longs = np.unique(codes, axis=0, return_inverse=True)[1].ravel()
    return group
