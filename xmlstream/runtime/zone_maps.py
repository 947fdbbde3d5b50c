"""Zone maps: what a staged file's own statistics say about which punctuations can match its tuples.

Sound, not complete: `may_match` errs towards True, and then the tuples themselves are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from punct_ns.domain import NAN, Domain
from punct_ns.numeric_type import FloatType
from punct_ns.pattern import EMPTY, Constant, List, Pattern, Range, canonical, meet
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema

MOST_PUNCTUATIONS = 256
"""Punctuations beyond which they are not looked at one by one."""


def may_match(path: Path, punctuations: Sequence[Punctuation], schema: Schema) -> bool:
    """Whether the file may hold a tuple that one of the punctuations matches."""
    if len(punctuations) > MOST_PUNCTUATIONS:
        return True
    described = sorted({i for p in punctuations for i in p.restricted})
    footer = pq.read_metadata(path)
    columns = {footer.schema.column(i).name: i for i in range(footer.num_columns)}
    for group in range(footer.num_row_groups):
        zone: dict[int, tuple[Pattern, ...]] = {}
        for i in described:
            if (column := columns.get(schema[i].name)) is not None:
                zone[i] = _zone(footer.row_group(group).column(column).statistics, schema[i].domain)
        for p in punctuations:
            if all(_meets(p.patterns[i], zone.get(i, ()), schema[i].domain) for i in p.restricted):
                return True
    return False


def _meets(pattern: Pattern, zone: tuple[Pattern, ...], domain: Domain) -> bool:
    return not zone or any(meet(pattern, part, domain) != EMPTY for part in zone)


def _zone(statistics: pq.Statistics | None, domain: Domain) -> tuple[Pattern, ...]:
    """The patterns that the column's values match for certain; none where nothing is known."""
    if statistics is None or statistics.null_count is None:
        return ()
    parts: list[Pattern] = []
    if statistics.null_count:
        parts.append(Constant(None))
    if statistics.num_values:
        if not statistics.has_min_max:
            return ()
        try:
            low, high = domain.normal(statistics.min), domain.normal(statistics.max)
        except ValueError:
            return ()
        parts.append(canonical(Range(low, high, True, True), domain))
    if isinstance(domain.sql, FloatType):
        parts.append(List((NAN,)))  # statistics say nothing of NaN
        parts = [canonical(part, domain) for part in parts]
    return tuple(parts)
