"""Pieces of a staged range: what is left of it once tuples are bad, or belong to the next life of a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from punct_ns.slices import POSITION
from sources.xml.grammar.lifespans import parted_file
from sources.xml.grammar.violations import LateTuple, file_without, late_tuple_rows
from sources.xml.spark.staged_rows import StagedRange

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
