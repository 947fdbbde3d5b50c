"""A query driven by the loop, whose slices only list what they were given; it may kill itself within one of them.

Called by test_slice_loop.py: DIRECTORY POINT SLICE, where POINT is `begun`, `computed` or `never`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from xmlstream.operators.storage.shared_files import rows_of
from xmlstream.runtime.checkpoint.checkpoint import Checkpoint
from xmlstream.runtime.checkpoint.commit_log import Commit, Declared
from xmlstream.runtime.loop.slice_loop import Pace, SliceLoop
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.slices.micro_batches import StagedRange
from xmlstream.sources.xml.slices.sources_reader import Json, SourcesReader
from xmlstream.sources.xml.slices.staging import LocalStager

Staged = Callable[[], Sequence[StagedRange]]

ROOT = "<r xmlns:p='http://www.cse.ogi.edu/dot/niagara/punct'>"


def rows(first: int, last: int) -> str:
    return "".join(f"<row><h>{number}</h></row>\n" for number in range(first, last))


class Listed:
    """A run over some documents in a directory, in slices of some kilobytes; `slices` has the values of each."""

    def __init__(self, home: Path, *names: str, pace: Pace | None = None, cores: int = 1, **options: str) -> None:
        self.home, self.slices = home, dict[int, list[int]]()
        self.checkpoint = Checkpoint(home / "checkpoint")
        pace = pace or Pace()
        flags = {"follow": str(pace.follows).lower(), "close": str(not pace.follows).lower()}
        given = {"rowTag": "row", "schema": "h INT", "maxBytesPerSlice": "4k", "maxBytesPerPartition": "1500"}
        sources = [
            Reading.of(
                SourceOptions.parse({**given, **flags, "path": str(home / name), **options}),
                stage=str(self.checkpoint.stage),
                name=name.partition(".")[0],
                document_log=str(home / "checkpoint" / "documents" / name.partition(".")[0]),
            )
            for name in names
        ]
        self.reader = SourcesReader(sources)
        self.stager = LocalStager(sources, cores, worth=0.0)
        self.loop = SliceLoop(self.reader, self.stager, self.checkpoint, self.process, pace)

    def process(self, number: int, end: Json, staged: Staged, declared: Sequence[Declared]) -> None:
        """What an execution does, as far as it matters here: reads, commits, clears the stage."""
        self.slices[number] = [
            row["h"] for each in staged() if each.path is not None for row in rows_of(each.path).to_pylist()
        ]
        whole = self.checkpoint.commits.is_whole(number)
        self.checkpoint.commit(Commit(number, end, whole=whole, outputs=(None,)), [])
        self.checkpoint.clear_stage()

    def run(self) -> list[int]:
        self.loop.run()
        return [value for values in self.slices.values() for value in values]


def main(home: str, point: str, slice_: str) -> None:
    run = Listed(Path(home), "a.xml", "b.xml")
    process = run.process

    def dying(number: int, end: Json, staged: Staged, declared: Sequence[Declared]) -> None:
        if point == "begun" and number == int(slice_):
            os.kill(os.getpid(), signal.SIGKILL)
        process(number, end, staged, declared)
        if point == "computed" and number == int(slice_):
            os.kill(os.getpid(), signal.SIGKILL)

    run.loop._process = dying
    try:
        run.run()
    finally:
        print(json.dumps(run.slices))


if __name__ == "__main__":
    main(*sys.argv[1:])
