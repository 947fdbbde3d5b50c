"""Lifespans in the check of a source's grammar: a tuple that a punctuation matches after its end starts a new life.

The task that parses a range knows neither the time nor the punctuations of earlier ranges. So punctuations with a
lifespan are compared with a range's tuples later, when both are known. If a tuple matches only punctuations that have
ended before it, because of what the source has closed by then, the slice is split before it: from there the key is new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from xmlstream.dataclasses import dataclass
from xmlstream.operators.storage.shared_files import StagedTuples, rows_of, staged_like
from xmlstream.punct_ns.domain import Cut, Domain
from xmlstream.punct_ns.lifespan import Bound, Lifespan
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.slices import LIFESPAN, POSITION
from xmlstream.sources.xml.grammar.late_tuples import BEFORE_ALL, LateTuple, late_rows
from xmlstream.sources.xml.grammar.punctuation_columns import coalesced_punctuations, punctuations_at
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.findings_collector import Findings

pc: Any = pyarrow.compute

_MANY = 64
"""The number of punctuations with one lifespan from which coalescing them columnwise pays."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of comparing a file's tuples with punctuations that have lifespans.

    Attributes:
        late: The tuples that a punctuation matches which has not ended.
        cut: The position of the first tuple after all of these that only ended punctuations match.
    """

    late: list[LateTuple]
    cut: int | None = None


def have_lifespans(punctuations: pa.Table | pa.RecordBatch | None) -> bool:
    """Whether any of the punctuations of a piece has a lifespan."""
    return (
        punctuations is not None
        and LIFESPAN in punctuations.schema.names
        and punctuations[LIFESPAN].null_count < punctuations.num_rows
    )


def without_lifespans(punctuations: Any) -> Any:
    """Returns the permanent punctuations of a piece."""
    if punctuations is None or LIFESPAN not in punctuations.schema.names:
        return punctuations
    return punctuations.filter(pc.is_null(punctuations[LIFESPAN])).drop_columns([LIFESPAN])


def begun_punctuations(
    punctuations: pa.Table, begun: Callable[[Lifespan], Lifespan], options: SourceOptions
) -> list[Punctuation]:
    """Coalesces the punctuations of a piece; each lifespan is replaced by what `begun` returns for it."""
    found = coalesced_punctuations(without_lifespans(punctuations), options.schema)
    if have_lifespans(punctuations):
        texts = pc.cast(punctuations[LIFESPAN], pa.string()).to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(pc.is_valid(punctuations[LIFESPAN]).to_numpy())
        different, which, times = np.unique(texts[rows].astype(str), return_inverse=True, return_counts=True)
        lifespans = [begun(Lifespan.read(text, options.schema)) for text in different.tolist()]
        for number in np.flatnonzero(times >= _MANY).tolist():
            alike = punctuations.take(pa.array(rows[which == number]))
            found += (p.lasting(lifespans[number]) for p in coalesced_punctuations(alike, options.schema))
        few = times[which] < _MANY
        each_one = punctuations_at(punctuations, rows[few], options.schema)
        found += (p.lasting(lifespans[n]) for n, (_, p) in zip(which[few].tolist(), each_one, strict=True))
    return found


def closed_below(closed: PunctuationSet, attribute: str) -> Cut:
    """Returns the cut up to which all values of an attribute are closed; its first cut if none is closed.

    It is a cut of the attribute's type, also where the domain lists values.
    """
    i = closed.schema.index(attribute)
    domain = closed.schema[i].domain
    first = next(closed.singles[i].value_set().intervals(), None) if i in closed.singles else None
    cut = first[1] if first is not None and first[0] <= domain.bottom else domain.bottom
    cut = domain.top if closed.is_all else cut
    if domain.listed is None:
        return cut
    type_ = Domain(domain.type)
    return type_.top if cut == domain.top else type_.cut(domain.bound(cut, above=True)[0], after=False)


def has_closed(closed: PunctuationSet, bound: Bound) -> bool:
    """Whether all values below a bound of an attribute are closed."""
    return bool(bound.cut <= closed_below(closed, bound.attribute))


def noticed_bounds(lifespans: Iterable[tuple[Lifespan, int]], closed: PunctuationSet) -> Findings:
    """Counts the punctuations that hold until a bound is closed, by attribute, and those that had ended on arrival.

    Args:
        lifespans: The lifespans of punctuations, each with the number of punctuations.
        closed: The earlier permanent punctuations of the stream.
    """
    bounds, ended = Counter[str](), Counter[str]()
    for lifespan, count in lifespans:
        for bound in {bound.attribute: bound for bound in lifespan.bounds}.values():
            bounds[bound.attribute] += count
            if has_closed(closed, bound):
                ended[bound.attribute] += count
    return Findings(bounds=bounds, ended=ended)


def counted_lifespans(punctuations: pa.Table, options: SourceOptions) -> list[tuple[Lifespan, int]]:
    """Returns the lifespans of a piece's punctuations, each with the number of punctuations."""
    if not have_lifespans(punctuations):
        return []
    counts = pc.value_counts(pc.drop_null(pc.cast(punctuations[LIFESPAN], pa.string()))).to_pylist()
    return [(Lifespan.read(each["values"], options.schema), each["counts"]) for each in counts]


def judged_pieces(
    path: StagedTuples,
    before: Sequence[Punctuation],
    punctuations: pa.Table | None,
    closed: PunctuationSet,
    begun: Callable[[Lifespan], Lifespan],
    is_over: Callable[[Lifespan, PunctuationSet], bool],
    options: SourceOptions,
) -> Judged:
    """Compares a file's tuples with punctuations that have lifespans.

    Args:
        path: The staged tuples, with the attributes that they restrict.
        before: The earlier punctuations with lifespans.
        punctuations: The punctuations between its tuples.
        closed: All earlier permanent punctuations; not modified.
        begun: Maps a lifespan to its form when it begins.
        is_over: Whether a lifespan has ended, given what the source has closed.
        options: The options of the source.
    """
    schema = options.schema
    positioned = [(BEFORE_ALL, p) for p in before]
    if punctuations is not None and have_lifespans(punctuations):
        rows = np.flatnonzero(pc.is_valid(punctuations[LIFESPAN]).to_numpy())
        at, texts = punctuations[POSITION].to_numpy(), punctuations[LIFESPAN].to_pylist()
        for row, p in punctuations_at(punctuations, rows, schema):
            positioned.append((int(at[row]), p.lasting(begun(Lifespan.read(str(texts[row]), schema)))))
    late: list[LateTuple] = []
    closing = _closing(punctuations, options)
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


def _closing(punctuations: pa.Table | None, options: SourceOptions) -> Iterator[tuple[int, Punctuation]]:
    """Yields the punctuations of a piece that never expire, in order, with their positions."""
    if (punctuations := without_lifespans(punctuations)) is None:
        return
    at = punctuations[POSITION].to_numpy()
    for row, p in punctuations_at(punctuations, np.arange(punctuations.num_rows), options.schema):
        yield int(at[row]), p


def parted_file(path: StagedTuples, position: int) -> tuple[StagedTuples | None, StagedTuples]:
    """Stages the tuples before a position, and the others; None in place of the first if there are none."""
    table = rows_of(path)
    behind = table[POSITION].to_numpy() >= position
    first, second = (table.filter(pa.array(mask)) for mask in (~behind, behind))
    return staged_like(first, path) if len(first) else None, staged_like(second, path)
