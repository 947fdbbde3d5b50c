"""Lifespans in the check of a source's grammar: tuples that come after a punctuation has ended open a key's next life.

The task that parses a range does not know when it is, or what earlier ranges have said. So punctuations with a lifespan
are held against a range's tuples where that is known. Where a tuple matches only punctuations that have ended before
it, by what the source has closed up to there, the slice is parted in front of it: in what follows the key is new.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from operators.storage.store import store_at
from punct_ns.domain import Cut
from punct_ns.lifespan import Bound, Lifespan
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.slices import LIFESPAN, POSITION
from sources.xml.grammar.late_tuples import BEFORE_ALL, LateTuple, late_rows
from sources.xml.grammar.punctuation_columns import coalesced_punctuations, punctuations_at
from sources.xml.options.source import SourceOptions
from sources.xml.parser.source_findings import Findings

pc: Any = pyarrow.compute

_MANY = 64
"""Punctuations of one lifespan from which on it is worth while to coalesce them columnwise."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found of a file's tuples.

    Attributes:
        late: Those that a punctuation matches which has not ended.
        cut: The position of the first one, behind all of these, that only punctuations match which have ended.
    """

    late: list[LateTuple]
    cut: int | None = None


def have_lifespans(said: pa.Table | pa.RecordBatch | None) -> bool:
    """Whether any of the punctuations of a piece has one."""
    return said is not None and LIFESPAN in said.schema.names and said[LIFESPAN].null_count < said.num_rows


def without_lifespans(said: Any) -> Any:
    """The punctuations of a piece that hold for ever."""
    if said is None or LIFESPAN not in said.schema.names:
        return said
    return said.filter(pc.is_null(said[LIFESPAN])).drop_columns([LIFESPAN])


def begun_punctuations(
    said: pa.Table, begun: Callable[[Lifespan], Lifespan], options: SourceOptions
) -> list[Punctuation]:
    """What the punctuations of a piece close, by few of them, each with what its lifespan becomes as it begins."""
    found = coalesced_punctuations(without_lifespans(said), options.schema)
    if have_lifespans(said):
        texts = pc.cast(said[LIFESPAN], pa.string()).to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(pc.is_valid(said[LIFESPAN]).to_numpy())
        different, which, times = np.unique(texts[rows].astype(str), return_inverse=True, return_counts=True)
        lifespans = [begun(Lifespan.read(text, options.schema)) for text in different.tolist()]
        for number in np.flatnonzero(times >= _MANY).tolist():
            alike = said.take(pa.array(rows[which == number]))
            found += (p.lasting(lifespans[number]) for p in coalesced_punctuations(alike, options.schema))
        few = times[which] < _MANY
        each_one = punctuations_at(said, rows[few], options.schema)
        found += (p.lasting(lifespans[n]) for n, (_, p) in zip(which[few].tolist(), each_one, strict=True))
    return found


def closed_below(said: PunctuationSet, attribute: str) -> Cut:
    """Up to where all values of an attribute are closed, whatever the others are; its first value where none is."""
    i = said.schema.index(attribute)
    domain = said.schema[i].domain
    if said.is_all:
        return domain.top
    first = next(said.singles[i].value_set().intervals(), None) if i in said.singles else None
    return first[1] if first is not None and first[0] <= domain.bottom else domain.bottom


def has_closed(said: PunctuationSet, bound: Bound) -> bool:
    """Whether all is closed that is below a bound of an attribute."""
    return bool(bound.cut <= closed_below(said, bound.attribute))


def noticed_bounds(lifespans: Iterable[tuple[Lifespan, int]], closed: PunctuationSet) -> Findings:
    """How many punctuations hold until a bound is closed, of which attribute, and how many of them had ended before.

    Args:
        lifespans: Those of punctuations, with how many have them.
        closed: What the stream had said before, for ever.
    """
    bounds, ended = Counter[str](), Counter[str]()
    for lifespan, count in lifespans:
        for bound in {bound.attribute: bound for bound in lifespan.bounds}.values():
            bounds[bound.attribute] += count
            if has_closed(closed, bound):
                ended[bound.attribute] += count
    return Findings(bounds=bounds, ended=ended)


def counted_lifespans(said: pa.Table, options: SourceOptions) -> list[tuple[Lifespan, int]]:
    """The lifespans of a piece's punctuations, with how many have them."""
    if not have_lifespans(said):
        return []
    counts = pc.value_counts(pc.drop_null(pc.cast(said[LIFESPAN], pa.string()))).to_pylist()
    return [(Lifespan.read(each["values"], options.schema), each["counts"]) for each in counts]


def judged(
    path: Path,
    before: Sequence[Punctuation],
    said: pa.Table | None,
    closed: PunctuationSet,
    begun: Callable[[Lifespan], Lifespan],
    is_over: Callable[[Lifespan, PunctuationSet], bool],
    options: SourceOptions,
) -> Judged:
    """Holds a file's tuples against punctuations with lifespans.

    Args:
        path: A staged Parquet file, with the attributes that they restrict.
        before: Those said before it.
        said: The punctuations among its tuples.
        closed: All that was said before it, for ever; it grows apart.
        begun: What a lifespan becomes as it begins.
        is_over: Whether a lifespan has ended, for a source that has closed so much.
        options: Of the source.
    """
    schema = options.schema
    positioned = [(BEFORE_ALL, p) for p in before]
    if said is not None and have_lifespans(said):
        rows = np.flatnonzero(pc.is_valid(said[LIFESPAN]).to_numpy())
        at, texts = said[POSITION].to_numpy(), said[LIFESPAN].to_pylist()
        for row, p in punctuations_at(said, rows, schema):
            positioned.append((int(at[row]), p.lasting(begun(Lifespan.read(str(texts[row]), schema)))))
    late: list[LateTuple] = []
    closing = _closing(said, options)
    upcoming = next(closing, None)
    closed = closed.copy()
    for position, values in late_rows(path, positioned, options):
        while upcoming is not None and upcoming[0] < position:
            closed.add(upcoming[1])
            upcoming = next(closing, None)
        earlier = [p for at_, p in positioned if at_ < position]
        holding = [p for p in earlier if p.lifespan is not None and not is_over(p.lifespan, closed)]
        found = LateTuple.found(position, values, holding, schema)
        if found is None:
            return Judged(late, position)
        late.append(found)
        if options.ungrammatical == "fail":
            break
    return Judged(late)


def _closing(said: pa.Table | None, options: SourceOptions) -> Iterator[tuple[int, Punctuation]]:
    """The punctuations of a piece that hold for ever, in their order, with their positions."""
    if (said := without_lifespans(said)) is None:
        return
    at = said[POSITION].to_numpy()
    for row, p in punctuations_at(said, np.arange(said.num_rows), options.schema):
        yield int(at[row]), p


def parted_file(path: Path, position: int) -> tuple[Path | None, Path]:
    """The file's tuples before a position, None without any, and those from there on; two other files."""
    table = pq.read_table(path, partitioning=None)
    behind = table[POSITION].to_numpy() >= position
    made, stage = [], store_at(path.parent)
    for mask in (~behind, behind):
        part = table.filter(pa.array(mask))
        made.append(stage.path_to_write(f"tuples-{uuid.uuid4().hex}.parquet") if len(part) else None)
        if made[-1] is not None:
            pq.write_table(part, made[-1], compression="none", store_schema=False)
    first, second = made
    assert second is not None
    return first, second
