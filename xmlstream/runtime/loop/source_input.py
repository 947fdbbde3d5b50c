"""Source input: makes a slice from staged ranges, sets bad items aside, and checks every tuple against the grammar.

The task that parsed a range has compared its tuples with its own punctuations, in their order. This module compares a
range with the punctuations before it: those of earlier slices, and of earlier ranges of this slice. It first tries zone
maps, the statistics of the range's file; if they do not suffice, it compares the columns. Zone maps are sound but not
complete: `may_match` errs towards True. The check covers every attribute that a punctuation restricts, even if the
query does not read its column.

If lifespans end within a slice and their keys come again, the slice has several parts, which are processed one after
another like slices; a range is then cut into pieces. Items that are set aside go to the dead letters, one file for each
slice.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from xmlstream.dataclasses import replace
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.operators.storage.records import DeadLetter
from xmlstream.operators.storage.segments import HELD
from xmlstream.operators.storage.shared_files import StagedTuples, columns_there, opened, rows_of, staged_like
from xmlstream.operators.storage.store import LocalPlace, Place, store_at
from xmlstream.plan.nodes import FAULTY, Scan
from xmlstream.punct_ns.domain import NAN, Cut, Domain
from xmlstream.punct_ns.errors import UngrammaticalStream, place
from xmlstream.punct_ns.grammar import MEND
from xmlstream.punct_ns.lifespan import Lifespan
from xmlstream.punct_ns.numeric_type import FloatType
from xmlstream.punct_ns.pattern import EMPTY, Constant, List, Pattern, Range, canonical, meet
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import POSITION, quoted
from xmlstream.runtime.checkpoint.checkpoint import write_letters
from xmlstream.runtime.checkpoint.commit_log import Declared
from xmlstream.runtime.checkpoint.declared import declared_of
from xmlstream.runtime.loop.in_step import end_of_first
from xmlstream.sources.xml.grammar.grammar_filter import RESTRICTED_FILE, also_restricted
from xmlstream.sources.xml.grammar.late_tuples import (
    LateTuple,
    closed_string_tuples,
    file_without,
    late_items,
    late_tuples,
    missing_attributes,
)
from xmlstream.sources.xml.grammar.lifespans import (
    begun_punctuations,
    closed_below,
    counted_lifespans,
    has_closed,
    have_lifespans,
    judged_pieces,
    noticed_bounds,
    parted_file,
)
from xmlstream.sources.xml.options.source import of_streams
from xmlstream.sources.xml.parser.findings_collector import Findings, few_names
from xmlstream.sources.xml.parser.malformed import error_of, with_cure
from xmlstream.sources.xml.slices.micro_batches import StagedRange
from xmlstream.sources.xml.slices.stage_writer import staged_again
from xmlstream.sources.xml.splits.byte_ranges import ByteRange

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Engine, Frame


MOST_PUNCTUATIONS = 256
"""The most punctuations that are compared with zone maps one by one."""


def may_match(staged: StagedTuples, punctuations: Sequence[Punctuation], schema: Schema) -> bool:
    """Whether staged tuples may have one that one of the punctuations matches; errs towards True."""
    if len(punctuations) > MOST_PUNCTUATIONS:
        return True
    described = sorted({i for p in punctuations for i in p.restricted})
    return any(
        all(_meets(p.patterns[i], zone.get(i, ()), schema[i].domain) for i in p.restricted)
        for zone in _zones(staged, described, schema)
        for p in punctuations
    )


Zone = Mapping[int, tuple[Pattern, ...]]
"""Patterns, by attribute, such that each value of some tuples matches one of them; no patterns if nothing is known."""


def _zones(staged: StagedTuples, described: Sequence[int], schema: Schema) -> Iterator[Zone]:
    """Yields the zones of a file's row groups, from its statistics; or that of a table, from its values."""
    if isinstance(staged, pa.Table):
        there = [i for i in described if schema[i].name in staged.column_names]
        yield {i: _zone_of(staged[schema[i].name], schema[i].domain) for i in there}
        return
    footer = pq.read_metadata(opened(staged))
    columns = {footer.schema.column(i).name: i for i in range(footer.num_columns)}
    for group in range(footer.num_row_groups):
        known = [(i, column) for i in described if (column := columns.get(schema[i].name)) is not None]
        yield {i: _zone(footer.row_group(group).column(column).statistics, schema[i].domain) for i, column in known}


def _meets(pattern: Pattern, zone: tuple[Pattern, ...], domain: Domain) -> bool:
    return not zone or any(meet(pattern, part, domain) != EMPTY for part in zone)


def _zone(statistics: pq.Statistics | None, domain: Domain) -> tuple[Pattern, ...]:
    if statistics is None or statistics.null_count is None:
        return ()
    ends = (statistics.min, statistics.max) if statistics.has_min_max else None
    return _between(ends, domain, nulls=statistics.null_count > 0, others=statistics.num_values > 0)


def _zone_of(column: Any, domain: Domain) -> tuple[Pattern, ...]:
    ends = None
    with suppress(pa.ArrowNotImplementedError):
        least, greatest = pc.min_max(column).as_py().values()
        ends = least, greatest
    return _between(ends, domain, nulls=column.null_count > 0, others=len(column) > column.null_count)


def _between(ends: tuple[Any, Any] | None, domain: Domain, *, nulls: bool, others: bool) -> tuple[Pattern, ...]:
    parts: list[Pattern] = [Constant(None)] if nulls else []
    if others:
        if ends is None:
            return ()
        try:
            low, high = map(domain.normal, ends)
        except ValueError:
            return ()
        parts.append(canonical(Range(low, high, True, True), domain))
    if isinstance(domain.sql, FloatType):
        parts.append(List((NAN,)))  # the ends do not cover NaN
        parts = [canonical(part, domain) for part in parts]
    return tuple(parts)


pc: Any = pyarrow.compute


def parted(range_: StagedRange, position: int) -> tuple[StagedRange, StagedRange]:
    """The pieces of a range before a position, and from that position on."""
    assert range_.path is not None
    first, second = parted_file(range_.path, position)
    before = 0 if first is None else rows_of(first, [POSITION]).num_rows
    punctuations: list[pa.Table | None] = [None, None]
    if range_.punctuations is not None:
        behind = pc.greater_equal(range_.punctuations[POSITION], position)
        punctuations = [range_.punctuations.filter(pc.invert(behind)), range_.punctuations.filter(behind)]
    bad = [tuple(one for one in range_.bad if (one.position >= position) == late) for late in (False, True)]
    return (
        replace(range_, path=first, tuples=before, punctuations=punctuations[0], bad=bad[0]),
        replace(range_, path=second, tuples=range_.tuples - before, punctuations=punctuations[1], bad=bad[1]),
    )


def _place(range_: ByteRange) -> int:
    return range_.base + range_.start


def without_documents(piece: StagedRange, faulty: dict[str, str]) -> StagedRange:
    """The ranges of a task without those that go on with a faulty document; their stream ends where they end it.

    A document that begins is another one: it is not faulty any more.
    """
    gone: list[ByteRange] = []
    for range_ in piece.part.ranges:
        if faulty.get(str(range_.stream)) == range_.document.where and range_.start:
            gone.append(range_)
        elif str(range_.stream) in faulty and range_.end:
            del faulty[str(range_.stream)]
    if not gone:
        return piece
    path, said, tuples, closing = piece.path, piece.punctuations, 0, list[int]()
    if path is not None:
        positions = rows_of(path, [POSITION])[POSITION].to_numpy()
        is_left = _outside(positions, gone)
        path, tuples = file_without(path, positions[~is_left].tolist()), int(is_left.sum())
    if said is not None:
        positions = said[POSITION].to_numpy()
        is_left = _outside(positions, gone)
        # The end of a stream stands last.
        ends = (~_outside(positions, [range_]) for range_ in gone if range_.close)
        closing = [int(np.flatnonzero(its)[-1]) for its in ends if its.any()]
        is_left[closing] = True
        said = said.filter(pa.array(is_left))
    bad = tuple(one for one in piece.bad if _outside(np.array([one.position]), gone).all())
    found = piece.findings if len(gone) < len(piece.part.ranges) else Findings(bytes=piece.findings.bytes)
    return replace(piece, path=path, tuples=tuples, punctuations=said, bad=bad, findings=found)


def _outside(positions: npt.NDArray[np.int64], ranges: Sequence[ByteRange]) -> npt.NDArray[np.bool_]:
    """Which positions are in none of some ranges."""
    outside = np.ones(len(positions), bool)
    for range_ in ranges:
        outside &= (positions < _place(range_)) | (positions > range_.base + range_.end)
    return outside


def without(range_: StagedRange, late: Sequence[LateTuple]) -> StagedRange:
    """The range without these ungrammatical tuples, which are added to its bad items."""
    if not late:
        return range_
    assert range_.path is not None
    path = file_without(range_.path, [one.position for one in late])
    bad = (*range_.bad, *late_items(late, range_.part))
    return replace(range_, path=path, tuples=range_.tuples - len(late), bad=bad)


class SourceInput:
    """One source of a running query.

    Attributes describe the last slice: the number of `items`, of `punctuations` among them, and of items that were
    `set_aside`; and the `findings`.
    """

    def __init__(
        self,
        engine: Engine,
        scan: Scan,
        state: OperatorState,
        dead_letters: LocalPlace,
        plan_name: str,
        documents: Place | None = None,
        declared: Sequence[Declared] = (),
    ) -> None:
        """Restore the source from its state.

        Args:
            engine: What computes tuples.
            scan: The source.
            state: The recorded state of the source.
            dead_letters: Directory for items that are set aside.
            plan_name: Name of the source in the plan; the files of its dead letters begin with it.
            documents: Directory in which tasks find the names of the restricted attributes.
            declared: The punctuations that were declared up to now, of all sources.
        """
        self.items = self.punctuations = self.set_aside = 0
        self.findings = Findings()
        self._engine, self._options, self._name = engine, of_streams(scan.options), scan.name
        self._schema = scan.schema
        self._closed, self._state = state.from_source("added"), state
        self._pieces: list[StagedRange] = []
        self._added: list[Punctuation] = []
        self._declared: Sequence[Declared] = declared
        self._letters: list[DeadLetter] = []
        self._dead_letters, self._plan_name = dead_letters, plan_name
        self._restricted = frozenset[str]()
        self._documents = None if documents is None else store_at(documents)
        restricted = {self._schema[i].name for p in self._closed.set for i in p.restricted}
        self._note_restricted(restricted | {self._schema[i].name for i in self._closed.on_disk})
        columns = [a for a in self._schema if a.name in self._options.columns]
        self._names = [*(a.name for a in columns), POSITION]
        self._ddl = ", ".join(f"{quoted(a.name)} {a.domain.type}" for a in columns) + f", {POSITION} BIGINT"

    @property
    def closed(self) -> bool:
        """Whether the source has closed all tuples."""
        return self._closed.lasting.is_all

    def slice(self, slice_id: int, ranges: Sequence[StagedRange], declared: Sequence[Declared] = ()) -> Slice:
        """The slice of these ranges; if a tuple begins the next life of a key, only the part before that tuple.

        Declared punctuations stand behind the ranges.

        Raises:
            MalformedInput: An item cannot be read and the source's mode is FAILFAST, or a document is not well-formed.
            UngrammaticalStream: An earlier punctuation matches a tuple, and the source has `ungrammatical 'fail'`.
        """
        self.set_aside = 0
        self.punctuations = sum(len(r.punctuations) for r in ranges if r.punctuations is not None)
        in_order = [
            *self._unskipped(sorted(ranges, key=lambda r: -1 if r.first_position is None else r.first_position))
        ]
        self._slice, self._pieces, self._is_judged = slice_id, in_order, False
        self._added, self._declared = declared_of(declared, self._plan_name, self._schema), [*self._declared, *declared]
        self._letters.clear()
        self.items = sum(r.tuples + len(r.bad) for r in in_order) + self.punctuations
        unread = [one for r in in_order for one in r.bad if one.kind not in ("ungrammatical", "document")]
        faulty = [one for r in in_order for one in r.bad if one.kind == "document"]
        self._unread, self._faulty = len(unread), len(faulty)
        short, names = frozenset(map(with_cure, unread[:1])), few_names(one.of_document for one in faulty)
        self._noticed = sum((r.findings for r in in_order), Findings(short=short, faulty=names))
        return self.part()

    @property
    def has_more(self) -> bool:
        """Whether the current slice has another part."""
        return bool(self._pieces)

    def part(self) -> Slice:
        """The next part of the current slice; an empty slice if there is none. Raises the same errors as `slice`."""
        paths: list[StagedTuples] = []
        tuples = 0
        new: list[Punctuation] = []
        while self._pieces:
            piece = self._pieces.pop(0)
            piece, rest = self._judged(piece if self._is_judged else self._grammatical(piece))
            self._is_judged = rest is not None
            self._letters += self._counted(sorted(piece.bad, key=attrgetter("position")))
            if piece.path is not None:
                tuples += piece.tuples
                paths.append(piece.path)
            if piece.punctuations is not None:
                begun = begun_punctuations(piece.punctuations, self._begun, self._options)
                if lifespans := counted_lifespans(piece.punctuations, self._options):
                    self._noticed += noticed_bounds(lifespans, self._closed.lasting)
                new += self._closed.absorb(begun)
                self._note_restricted(also_restricted(piece.punctuations, self._restricted))
            if rest is not None:
                self._pieces.insert(0, rest)
                break
        if not self._pieces:
            new += self._closed.absorb(self._added)
            self._note_restricted({self._schema[i].name for p in self._added for i in p.restricted})
            write_letters(self._dead_letters, self._plan_name, self._slice, self._letters, self._name)
        late = self.set_aside - self._unread - self._faulty
        aside = {"malformed": self._unread, "document": self._faulty, "ungrammatical": late}
        self.findings = self._noticed + Findings(aside=aside)
        if not paths:
            return Slice(None, tuple(new))
        # One scan over all staged files; reading it twice computes nothing twice.
        return Slice(Tuples(self._read(paths, tuples), tuples, computed=True), tuple(new))

    def _unskipped(self, in_order: Iterable[StagedRange]) -> Iterator[StagedRange]:
        """The ranges without what is behind the fault of a document that is skipped; notes these documents."""
        noted = dict(self.faulty)
        for piece in in_order:
            left = without_documents(piece, noted)
            for one in (one for one in left.bad if one.kind == "document" and self._options.bad_documents == "skip"):
                range_ = max((r for r in piece.part.ranges if r.base + r.start <= one.position), key=_place)
                noted[str(range_.stream)] = range_.document.where
            yield left
        self._state.notes[FAULTY] = noted
        if not noted:
            del self._state.notes[FAULTY]

    @property
    def faulty(self) -> Mapping[str, str]:
        """The documents that are skipped from a fault on, by the numbers of their streams; `None` of the only one."""
        found: Mapping[str, str] = self._state.notes.get(FAULTY, {})
        return found

    def closed_below(self, attribute: str) -> Cut:
        """The cut below which the source has closed all values of an attribute, for ever."""
        return closed_below(self._closed.lasting, attribute)

    def reached(self, attribute: str) -> Cut | None:
        """The end of the first values of an attribute that the source has closed for ever; None if there are none."""
        return end_of_first(self._closed.lasting, attribute)

    def _read(self, staged: Sequence[StagedTuples], tuples: int) -> Frame:
        tables = [each for each in staged if isinstance(each, pa.Table)]
        files = [each for each in staged if isinstance(each, str)]
        if tables and not files:
            return self._engine.rows(pa.concat_tables(table.select(self._names) for table in tables), self._ddl)
        files += [str(staged_like(table, files[0])) for table in tables]
        return self._engine.parquet(self._ddl, *files, few=tuples <= HELD)

    def _counted(self, bad: Sequence[DeadLetter]) -> Iterator[DeadLetter]:
        """Counts bad items as set aside; yields those that become dead letters, and raises where the source fails."""
        for one in bad:
            is_late = one.kind == "ungrammatical"
            where = place(one.document, one.line, one.column, one.position)
            if is_late and self._options.ungrammatical == "fail":
                raise UngrammaticalStream(one.reason, where=f"source {self._name}, {where}", hint=self._mend)
            skips = one.kind == "document" and self._options.bad_documents == "skip"
            if not (is_late or skips) and (one.kind == "document" or self._options.mode == "FAILFAST"):
                raise error_of(one)
            self.set_aside += 1
            diverts = self._options.ungrammatical == "divert" if is_late else self._options.mode == "PERMISSIVE"
            if diverts or skips:
                yield one

    @property
    def _mend(self) -> str:
        mine = [each for each in self._declared if each.source == self._plan_name]
        return MEND if not mine else f"{MEND}; not all that is closed was sent by it: {mine[-1]}"

    def _grammatical(self, piece: StagedRange) -> StagedRange:
        """The range without the tuples that a punctuation before the range matches; lifespans are left to `_judged`.

        If punctuations restrict attributes that the range's task did not read, and may match, they are read now.
        """
        if piece.path is None:
            return piece
        path, closed, on_disk = piece.path, list(self._closed.set), self._closed.on_disk
        if not may_match(path, closed, self._schema):
            closed = []
        there = columns_there(path) if on_disk else ()
        unread = frozenset(name for i in on_disk if (name := self._schema[i].name) not in there)
        if names := unread | missing_attributes(path, closed, self._options):
            path = staged_again(piece, names)
        lasting = list(self._closed.lasting) if closed and self._closed.passes else closed
        late = late_tuples(path, lasting, self._options) if lasting else []
        if on_disk:
            others = closed_string_tuples(path, on_disk, self._closed.closes, self._schema)
            late = sorted({one.position: one for one in (*others, *late)}.values(), key=attrgetter("position"))
            late = late[:1] if self._options.ungrammatical == "fail" else late
        return without(replace(piece, path=path), late)

    def _judged(self, piece: StagedRange) -> tuple[StagedRange, StagedRange | None]:
        """The piece without tuples that punctuations with lifespans match; and the rest, from a key's next life on."""
        if piece.path is None or not (self._closed.passes or have_lifespans(piece.punctuations)):
            return piece, None
        found = judged_pieces(
            piece.path,
            self._closed.passing,
            piece.punctuations,
            self._closed.lasting,
            self._begun,
            self._is_over,
            self._options,
        )
        rest = None
        if found.cut is not None:
            piece, rest = parted(piece, found.cut)
        return without(piece, found.late), rest

    @property
    def _now(self) -> datetime:
        """The recorded time of the slice."""
        assert self._state.time is not None
        return self._state.time

    def _begun(self, lifespan: Lifespan) -> Lifespan:
        """The lifespan of a punctuation that arrives in this slice."""
        return lifespan.begun(self._now, self._plan_name)

    def _is_over(self, lifespan: Lifespan, closed: PunctuationSet) -> bool:
        """Whether a lifespan has ended, by the source's own punctuations."""
        return lifespan.is_over(self._now, lambda bound: bound.stream == self._plan_name and has_closed(closed, bound))

    def _note_restricted(self, names: Collection[str]) -> None:
        """Has the tasks of later slices read these attributes, since punctuations restrict them."""
        known = self._restricted.union(names)
        if known != self._restricted and self._documents is not None:
            self._documents.replace(RESTRICTED_FILE, [json.dumps(sorted(known)).encode()])
        self._restricted = known
