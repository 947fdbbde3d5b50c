"""Source input: makes a slice of staged ranges, sets bad items aside, and checks every tuple against the grammar.

Within one range the task that parsed it has compared tuples and punctuations in their order. Here each range is
compared with the punctuations before it, of earlier slices and of earlier ranges of this one: by zone maps, the
statistics of its file, where they suffice, else column by column. Zone maps are sound, not complete: `may_match` errs
towards True. The check sees every attribute that a punctuation restricts, whatever columns the query reads. Where
lifespans end within a slice, and keys come again, the slice has parts, which follow one another as slices do; a range
is then cut into pieces. Items that are set aside go to the dead letters, a file for each slice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from operators.state.operator_state import OperatorState
from operators.state.slice_tuples import Slice, Tuples
from operators.state.state_schema import StateSchema
from operators.storage.durable import sync
from operators.storage.segments import parquet_files
from operators.storage.store import Place, store_at
from punct_ns.domain import NAN, Cut, Domain
from punct_ns.errors import MalformedInput, UngrammaticalStream, place
from punct_ns.grammar import MEND
from punct_ns.lifespan import Bound, Lifespan
from punct_ns.numeric_type import FloatType
from punct_ns.pattern import EMPTY, Constant, List, Pattern, Range, canonical, meet
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.schema import Schema
from punct_ns.slices import POSITION, quoted
from sources.xml.grammar.grammar_filter import RESTRICTED_FILE, also_restricted
from sources.xml.grammar.late_tuples import (
    LateTuple,
    closed_string_tuples,
    file_without,
    late_tuple_rows,
    late_tuples,
    missing_attributes,
)
from sources.xml.grammar.lifespans import (
    begun_punctuations,
    closed_below,
    counted_lifespans,
    has_closed,
    have_lifespans,
    judged,
    noticed_bounds,
    parted_file,
)
from sources.xml.grammar.punctuation_columns import counts_of_partitions, of_own_values
from sources.xml.parser.malformed import mend
from sources.xml.parser.source_findings import Findings
from sources.xml.spark.stage_writer import staged_again
from sources.xml.spark.staged_rows import StagedRange
from xmlstream.plan.nodes import Scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def write_letters(place: Place, name: str, slice_id: int, letters: Iterable[dict[str, Any]]) -> None:
    """Writes the dead letters of a slice of a source, or of an operator, durably."""
    lines = (json.dumps(row, default=str).encode() + b"\n" for row in letters)
    if (first := next(lines, None)) is not None:
        store, key = store_at(place), f"{name}-{slice_id:09d}.jsonl"
        store.write(key, chain([first], lines))
        sync(store.unsynced(key))


def forget_letters(place: Place, committed: int) -> None:
    """Removes the dead letters of slices that were not committed."""
    store = store_at(place)
    found = [(name, re.search(r"-(\d{9})\.jsonl$", name)) for name in store.names()]
    store.delete(*(name for name, number in found if number is not None and int(number[1]) > committed))


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


pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class RangePiece:
    """What is left of a range.

    Attributes:
        range: The range.
        path: The file of its tuples, None without any.
        tuples: How many there are.
        punctuations: Its punctuations, with their positions.
        bad: What could not be read, or comes too late.
        is_judged: Whether its tuples were held against what had been said for ever.
    """

    range: StagedRange
    path: Path | None
    tuples: int
    punctuations: pa.Table | None
    bad: list[dict[str, Any]]
    is_judged: bool = False

    @staticmethod
    def of(range_: StagedRange) -> RangePiece:
        """All of it."""
        bad = range_.malformed.to_pylist() if range_.malformed is not None else []
        path = None if range_.path is None else Path(range_.path)
        return RangePiece(range_, path, range_.tuples, range_.punctuations, bad)

    def parted(self, position: int) -> tuple[RangePiece, RangePiece]:
        """What stands before a position, and what stands from there on."""
        assert self.path is not None
        first, second = parted_file(self.path, position)
        before = 0 if first is None else pq.read_metadata(first).num_rows
        said: list[pa.Table | None] = [None, None]
        if self.punctuations is not None:
            behind = pc.greater_equal(self.punctuations[POSITION], position)
            said = [self.punctuations.filter(pc.invert(behind)), self.punctuations.filter(behind)]
        bad = [[row for row in self.bad if (row["_position"] >= position) == late] for late in (False, True)]
        return (
            replace(self, path=first, tuples=before, punctuations=said[0], bad=bad[0]),
            replace(self, path=second, tuples=self.tuples - before, punctuations=said[1], bad=bad[1]),
        )

    def without(self, late: Sequence[LateTuple]) -> RangePiece:
        """Without ungrammatical tuples, which are bad."""
        if not late:
            return self
        assert self.path is not None
        path = file_without(self.path, [one.position for one in late])
        bad = [*self.bad, *late_tuple_rows(late, self.range.part)]
        return replace(self, path=path, tuples=self.tuples - len(late), bad=bad)


@dataclass(frozen=True, slots=True)
class Shared:
    """What a partition has said in a slice of values that are its own: punctuations, and how many of which scheme."""

    punctuations: Sequence[Punctuation] = ()
    said: Mapping[str, int] = field(default_factory=dict)


class SourceInput:
    """One source of a running query.

    Of the last slice: `items` that came, the `punctuations` among them, the items that were `set_aside`, what was
    noticed (`findings`), and, if it is a partition, the punctuations that other partitions hear, too (`shared`).
    """

    def __init__(
        self,
        spark: SparkSession,
        scan: Scan,
        state: OperatorState,
        dead_letters: Place,
        called: str,
        documents: Place | None = None,
    ) -> None:
        """Take up what the state says.

        Args:
            spark: The session.
            scan: The source.
            state: What was kept of it.
            dead_letters: Where set-aside items go.
            called: Its name in the plan, after which the files of its dead letters are called.
            documents: Where the tasks find what its punctuations restrict.
        """
        self.items = self.punctuations = self.set_aside = 0
        self.findings = Findings()
        self.shared = Shared()
        self._spark, self._options, self._name = spark, scan.options, scan.name
        self._schema = scan.options.schema
        self._said, self._state = state.heard("said"), state
        self._pieces: list[RangePiece] = []
        self._letters: list[dict[str, Any]] = []
        self._of_partitions: Mapping[str, int] = {}
        self._dead_letters, self._called = dead_letters, called
        self._restricted, self._documents = frozenset[str](), None if documents is None else store_at(documents)
        said = {self._schema[i].name for p in self._said.set for i in p.restricted}
        self._note_restricted(said | {self._schema[i].name for i in self._said.on_disk})
        columns = [a for a in self._schema if a.name in scan.options.columns]
        self._ddl = ", ".join(f"{quoted(a.name)} {a.domain.type}" for a in columns) + f", {POSITION} BIGINT"

    @staticmethod
    def state_schema(scan: Scan) -> StateSchema:
        """What the source has said."""
        return StateSchema(heard={"said": scan.options.schema})

    @property
    def closed(self) -> bool:
        """The source has said that no tuple follows."""
        return self._said.lasting.is_all

    def slice(self, slice_id: int, ranges: Sequence[StagedRange]) -> Slice:
        """The slice of these ranges, or its first part: up to where a tuple opens the next life of a key.

        Raises:
            MalformedInput: an item cannot be read, and the source's mode is FAILFAST, or a document is not well-formed.
            UngrammaticalStream: a tuple that an earlier punctuation matches, and the source says `fail`.
        """
        self.set_aside = 0
        self.punctuations = sum(len(r.punctuations) for r in ranges if r.punctuations is not None)
        in_order = sorted(ranges, key=lambda r: -1 if r.first_position is None else r.first_position)
        self._slice, self._pieces = slice_id, [RangePiece.of(range_) for range_ in in_order]
        self._letters.clear()
        malformed = sum(len(r.malformed) for r in ranges if r.malformed is not None)
        self.items = sum(r.tuples for r in ranges) + self.punctuations + malformed
        self._unread = sum(
            row != "ungrammatical" for r in ranges if r.malformed for row in r.malformed["kind"].to_pylist()
        )
        self._noticed = sum((r.findings for r in ranges), Findings())
        self._of_partitions = counts_of_partitions(self._noticed.said, self._options.partitioned_by)
        return self.part()

    @property
    def has_more(self) -> bool:
        """Whether the slice in hand has another part."""
        return bool(self._pieces)

    def part(self) -> Slice:
        """The next part of the slice in hand; nothing where there is none. What is raised is as for `slice`."""
        paths: list[str] = []
        tuples = 0
        new: list[Punctuation] = []
        shared: list[Punctuation] = []
        while self._pieces:
            piece = self._pieces.pop(0)
            piece, rest = self._judged(piece if piece.is_judged else self._grammatical(piece))
            self._letters += self._told(sorted(piece.bad, key=itemgetter("_position")))
            if piece.path is not None:
                tuples += piece.tuples
                paths.append(str(piece.path))
            if piece.punctuations is not None:
                said = begun_punctuations(piece.punctuations, self._begun, self._options)
                if lifespans := counted_lifespans(piece.punctuations, self._options):
                    self._noticed += noticed_bounds(lifespans, self._said.lasting)
                new += self._said.absorb(said)
                self._note_restricted(also_restricted(piece.punctuations, self._restricted))
                if keys := self._options.partitioned_by:
                    own = of_own_values(piece.punctuations, keys)
                    shared += begun_punctuations(own, self._begun, self._options) if own.num_rows else ()
            if rest is not None:
                self._pieces.insert(0, rest)
                break
        if not self._pieces:
            write_letters(self._dead_letters, self._called, self._slice, self._letters)
        aside = {"malformed": self._unread, "ungrammatical": self.set_aside - self._unread}
        self.findings = self._noticed + Findings(aside=aside)
        self.shared, self._of_partitions = Shared(shared, self._of_partitions), {}
        if not paths:
            return Slice(None, tuple(new))
        # One scan over all that the tasks have written down; to read it twice computes nothing twice.
        return Slice(Tuples(self._read(paths), tuples, computed=True), tuple(new))

    def closed_below(self, attribute: str) -> Cut:
        """Up to where the source has closed all values of an attribute, for ever."""
        return closed_below(self._said.lasting, attribute)

    def hear(self, slice_: Slice, others: Sequence[SourceInput]) -> Slice:
        """The slice with what the other partitions have said in it of values that are theirs alone.

        A tuple of such a value that comes by this one from now on is ungrammatical.
        """
        shared = [p for other in others for p in other.shared.punctuations]
        if not shared:
            return slice_
        self._note_restricted({self._schema[i].name for p in shared for i in p.restricted})
        said = sum((Findings(said=other.shared.said) for other in others), Findings())
        self._noticed, self.findings = self._noticed + said, self.findings + said
        return Slice(slice_.tuples, (*slice_.punctuations, *self._said.absorb(shared)))

    def _read(self, paths: Sequence[str]) -> DataFrame:
        return parquet_files(self._spark, self._ddl, *paths)

    def _told(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """Counts what could not be read, or came too late (`MALFORMED`); what of it becomes dead letters."""
        for row in rows:
            is_late = row["kind"] == "ungrammatical"
            where = place(row["document"], row["line"], row["column"], row["_position"])
            if is_late and self._options.ungrammatical == "fail":
                raise UngrammaticalStream(row["reason"], where=f"source {self._name}, {where}", hint=self._mend)
            if not is_late and (row["kind"] == "document" or self._options.mode == "FAILFAST"):
                raise MalformedInput(
                    row["reason"],
                    document=row["document"],
                    line=row["line"],
                    column=row["column"],
                    position=row["_position"],
                    hint=mend(row["kind"]),
                )
            self.set_aside += 1
            if self._options.ungrammatical == "divert" if is_late else self._options.mode == "PERMISSIVE":
                yield {"source": self._name, **row}

    @property
    def _mend(self) -> str:
        if not (keys := self._options.partitioned_by):
            return MEND
        return f"by partitionedBy {', '.join(keys)} what one partition says of a value holds for all; or {MEND}"

    def _grammatical(self, piece: RangePiece) -> RangePiece:
        """The tuples without those that something said before matches, which are bad; of lifespans nothing is said yet.

        Where punctuations restrict what the range's task did not read, it is read now, as far as that can matter.
        """
        piece = replace(piece, is_judged=True)
        if piece.path is None:
            return piece
        path, said, on_disk = piece.path, list(self._said.set), self._said.on_disk
        if not may_match(path, said, self._schema):
            said = []
        there = pq.read_schema(path).names if on_disk else ()
        unread = frozenset(name for i in on_disk if (name := self._schema[i].name) not in there)
        if names := unread | missing_attributes(path, said, self._options):
            path = staged_again(piece.range, names)
        lasting = list(self._said.lasting) if said and self._said.passes else said
        late = late_tuples(path, lasting, self._options) if lasting else []
        if on_disk:
            others = closed_string_tuples(path, on_disk, self._said.closes, self._schema)
            late = sorted({one.position: one for one in (*others, *late)}.values(), key=attrgetter("position"))
            late = late[:1] if self._options.ungrammatical == "fail" else late
        return replace(piece, path=path).without(late)

    def _judged(self, piece: RangePiece) -> tuple[RangePiece, RangePiece | None]:
        """The tuples without those that a punctuation matches which holds; and the rest, from a key's next life on."""
        if piece.path is None or not (self._said.passes or have_lifespans(piece.punctuations)):
            return piece, None
        found = judged(
            piece.path,
            self._said.passing,
            piece.punctuations,
            self._said.lasting,
            self._begun,
            lambda lifespan, closed: lifespan.is_over(self._now, lambda bound: self._is_closed(bound, closed)),
            self._options,
        )
        rest = None
        if found.cut is not None:
            piece, rest = piece.parted(found.cut)
        return piece.without(found.late), rest

    @property
    def _now(self) -> datetime:
        """The slice's recorded time."""
        assert self._state.time is not None
        return self._state.time

    def _begun(self, lifespan: Lifespan) -> Lifespan:
        """The lifespan of what comes in this slice."""
        return lifespan.begun(self._now, self._called)

    def _is_closed(self, bound: Bound, closed: PunctuationSet) -> bool:
        return bound.stream == self._called and has_closed(closed, bound)

    def _note_restricted(self, names: Collection[str]) -> None:
        """The tasks of later slices will read these, which punctuations restrict, whatever the query reads."""
        known = self._restricted.union(names)
        if known != self._restricted and self._documents is not None:
            self._documents.replace(RESTRICTED_FILE, [json.dumps(sorted(known)).encode()])
        self._restricted = known
