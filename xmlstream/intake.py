"""From the staged ranges of a source to its slice: bad items set aside, and every tuple held against the grammar.

Within one range the task that parsed it has compared tuples and punctuations in their order. Here each range is held
against what was said before it, by earlier slices and by earlier ranges of this one: by the statistics of its file
where they suffice, else column by column.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from operators.behaviour import Slice, Tuples, together
from operators.durable import make_directory, sync
from operators.parquet_files import parquet_files
from operators.state import OperatorState
from punct_ns.errors import MalformedInput, UngrammaticalStream
from punct_ns.punctuation import Punctuation
from punct_ns.slices import POSITION, not_matching, quoted
from sources.coalesced import punctuations
from sources.findings import Findings
from sources.late_tuples import late_tuples
from sources.staging import StagedRange
from xmlstream.plan import Scan
from xmlstream.zones import may_match

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MEND = "mend the source, or let it drop or divert such tuples with the option ungrammatical"


class Intake:
    """One source of a running query.

    Of the last slice: `items` that came, the `punctuations` among them, the items that were `set_aside`, and
    what was noticed (`findings`).
    """

    def __init__(self, spark: SparkSession, scan: Scan, state: OperatorState, dead_letters: Path, called: str) -> None:
        """`called` is its name in the plan, after which the files of its dead letters are called."""
        self.items = self.punctuations = self.set_aside = 0
        self.findings = Findings()
        self._spark, self._options, self._name = spark, scan.options, scan.name
        self._schema = scan.options.schema
        self._said = state.punctuations("said", self._schema)
        self._dead_letters, self._called = dead_letters, called
        self._read_places = {self._schema.index(name) for name in scan.options.columns}
        columns = [a for a in self._schema if a.name in scan.options.columns]
        self._ddl = ", ".join(f"{quoted(a.name)} {a.domain.type}" for a in columns) + f", {POSITION} BIGINT"

    @property
    def closed(self) -> bool:
        """The source has said that no tuple follows."""
        return self._said.set.is_all

    def slice(self, slice_id: int, ranges: Sequence[StagedRange]) -> Slice:
        """The slice of these ranges.

        Raises:
            MalformedInput: an item cannot be read, and the source's mode is FAILFAST, or a document is not well-formed.
            UngrammaticalStream: a tuple that an earlier punctuation matches, and the source says `fail`.
        """
        self.set_aside = 0
        self.punctuations = sum(len(r.punctuations) for r in ranges if r.punctuations is not None)
        letters: list[dict[str, Any]] = []
        whole: list[StagedRange] = []
        parts: list[Tuples] = []
        new: list[Punctuation] = []
        for range_ in sorted(ranges, key=lambda r: -1 if r.first_position is None else r.first_position):
            letters += self._malformed(range_)
            if range_.path is not None:
                if (offending := self._offending(range_)) is None:
                    whole.append(range_)
                else:
                    left, set_aside = offending
                    parts.append(left)
                    letters += set_aside
            if range_.punctuations is not None:
                new += self._said.absorb(punctuations(range_.punctuations, self._options.schema))
        write_letters(self._dead_letters, self._called, slice_id, letters)
        malformed = sum(len(r.malformed) for r in ranges if r.malformed is not None)
        self.items = sum(r.tuples for r in ranges) + self.punctuations + malformed
        unread = sum(row != "ungrammatical" for r in ranges if r.malformed for row in r.malformed["kind"].to_pylist())
        aside = {"malformed": unread, "ungrammatical": self.set_aside - unread}
        self.findings = sum((r.findings for r in ranges), Findings(aside=aside))
        if whole:
            # One scan over all that the tasks have written down; to read it twice computes nothing twice.
            paths = [str(range_.path) for range_ in whole]
            parts.append(Tuples(self._read(paths), sum(range_.tuples for range_ in whole), computed=True))
        return Slice(together(parts), tuple(new))

    def _read(self, paths: Sequence[str]) -> DataFrame:
        return parquet_files(self._spark, self._ddl, *paths)

    def _malformed(self, range_: StagedRange) -> Iterator[dict[str, Any]]:
        if range_.malformed is None:
            return
        for row in range_.malformed.to_pylist():
            if row["kind"] == "ungrammatical":
                if self._options.ungrammatical == "fail":
                    where = f"source {self._name}, {row['document']}, item at position {row['_position']}"
                    raise UngrammaticalStream(row["reason"], where=where, hint=_MEND)
            elif row["kind"] == "document" or self._options.mode == "FAILFAST":
                raise MalformedInput(
                    row["reason"],
                    document=row["document"],
                    line=row["line"],
                    column=row["column"],
                    position=row["_position"],
                )
            self.set_aside += 1
            ungrammatical = row["kind"] == "ungrammatical"
            if self._options.ungrammatical == "divert" if ungrammatical else self._options.mode == "PERMISSIVE":
                yield {"source": self._name, **row}

    def _offending(self, range_: StagedRange) -> tuple[Tuples, list[dict[str, Any]]] | None:
        """The range's tuples without those that something said before matches, and these for the dead letters.

        None if there are none of these.
        """
        assert range_.path is not None
        said = [p for p in self._said.set if self._read_places.issuperset(p.restricted)]
        if not said or not may_match(Path(range_.path), said, self._schema):
            return None
        found = late_tuples(Path(range_.path), said, self._options)
        if not found:
            return None
        if self._options.ungrammatical == "fail":
            raise self._offence(found[0], said, range_)
        self.set_aside += len(found)
        letters: list[dict[str, Any]] = []
        if self._options.ungrammatical == "divert":
            letters = [
                {"source": self._name, "kind": "ungrammatical", "_position": row[POSITION], "raw": row} for row in found
            ]
        left = Tuples(not_matching(self._read([range_.path]), said), range_.tuples - len(found), exact=False)
        return left, letters

    def _offence(self, row: dict[str, Any], said: Sequence[Punctuation], range_: StagedRange) -> UngrammaticalStream:
        position = row[POSITION]
        values = tuple(row.get(name) for name in self._schema.names)
        document = [path for path, base in range_.documents if base <= position][-1:]
        broken = [p for p in said if p.matches(self._normal(values))]
        return UngrammaticalStream(
            f"the tuple {values} comes after the punctuation {''.join(map(str, broken[:1]))} that matches it",
            where=f"source {self._name}, {''.join(document)}, position {position}",
            hint=_MEND,
        )

    def _normal(self, values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(None if v is None else a.domain.normal(v) for v, a in zip(values, self._schema, strict=True))


def write_letters(directory: Path, name: str, slice_id: int, letters: Sequence[dict[str, Any]]) -> None:
    """Writes the dead letters of a slice of a source, or of an operator, to stay."""
    path = directory / f"{name}-{slice_id:09d}.jsonl"
    if letters:
        make_directory(path.parent)
        path.write_text("".join(json.dumps(row, default=str) + "\n" for row in letters), encoding="utf-8")
        sync([path, path.parent])


def forget_letters(directory: Path, committed: int) -> None:
    """Removes the dead letters of slices that were not committed."""
    for path in directory.glob("*-" + "[0-9]" * 9 + ".jsonl"):
        if int(path.stem[-9:]) > committed:
            path.unlink()
