"""The checkpoint: the directory in which a query's state lives, and what of it counts.

    query.json        which query it is, and where its results go (`xmlstream.runtime.same_query`)
    plan.json         the plan that runs, for who looks at it (`xmlstream.plan.plan_json`)
    commits/          a record for each of the last slices (`xmlstream.runtime.commit_log`)
    state/            the kept tuples of the operators (`operators.state.segments`); strings that sources have closed
                      (`operators.state.constant_runs`)
    published.jsonl   the documents that went out, those in the last records excepted
    documents/        of each source, the order of its documents, and the like (`sources.xml.splits.documents`)
    spark/            Spark's own log (`xmlstream.runtime.spark_log`)
    staged/           tuples of the slice in hand
    clock             how often clocks are to tick, while anything waits for them (`xmlstream.runtime.clocks`)

The last record counts, and of all else what it names, by checksum. A start compares, says what is damaged, and removes
what is not named: the leavings of a slice that was not committed.

`query.json` says in which format all of it is written; what a record says of an operator's state has a number of its
own beside the names that the operator declares (`operators.state.state_schema`). Another one is refused.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operators.state.durable import make_directory, sync
from punct_ns.errors import StateError
from xmlstream.runtime.append_only_file import EMPTY_SEAL, AppendOnlyFile
from xmlstream.runtime.commit_log import CommitLog, made_whole
from xmlstream.runtime.spark_log import SparkLog
from xmlstream.sink.sink import Draft


@dataclass(frozen=True, slots=True)
class Document:
    """A document that went out: of which result, in the order of the plan, its name, and its checksum."""

    result: int
    draft: Draft


class Checkpoint:
    """A query's checkpoint, taken up by the run that goes on from it.

    `latest` is the record of the last commit, None before the first; `documents` are those of all commits.
    """

    def __init__(self, directory: Path) -> None:
        """Take it up.

        Raises:
            StateError: It is damaged, or has lost commits.
        """
        self._has_ended = False
        self._committing = threading.Lock()
        self.directory = directory
        self.stage = directory / "staged"
        self._commits = CommitLog(directory / "commits")
        self._published = AppendOnlyFile(directory / "published.jsonl")
        self._logs: dict[str, AppendOnlyFile] = {}
        self._spark = SparkLog(directory / "spark")
        records = self._commits.records()
        self.latest = made_whole(records)
        last = self.latest or {"slice": None, "published": EMPTY_SEAL, "documents": {}}
        self._spark.agree(last["slice"], [record["offset"] for record in records])
        listed = [json.loads(line) for line in self._published.restore(last["published"])]
        self._unlisted = [listing for record in records for listing in _listings(record["outputs"])]
        self.documents = tuple(Document(result, Draft(*draft)) for result, *draft in [*listed, *self._unlisted])
        self._restore_logs(last["documents"])
        shutil.rmtree(self.stage, ignore_errors=True)
        make_directory(self.stage)

    @staticmethod
    def has_commits(directory: Path) -> bool:
        """Whether a slice was committed there, as far as anything tells; before that, it belongs to no query."""
        is_done = SparkLog(directory / "spark").last_done is not None
        return is_done or any((directory / "commits").glob("*.json"))

    def commit(self, record: dict[str, Any], unsynced: Iterable[Path]) -> None:
        """From here on the slice counts; first what it wrote is synced.

        Raises:
            OSError: The disk is full, or gone.
            StateError: The run has let go of the checkpoint.
        """
        with self._committing:
            if self._has_ended:
                raise StateError(f"the run of the checkpoint {self.directory} has ended")
            self._commit(record, unsynced)

    def end(self) -> None:
        """No slice is committed from here on: the checkpoint may be another run's."""
        with self._committing:
            self._has_ended = True

    def _commit(self, record: dict[str, Any], unsynced: Iterable[Path]) -> None:
        number = record["slice"]
        whole = self.is_whole(number)
        paths = list(unsynced)
        for log in sorted((self.directory / "documents").glob("*/*.jsonl")):
            if (name := f"{log.parent.name}/{log.name}") not in self._logs:
                self._logs[name] = AppendOnlyFile(log)
                paths += [log, log.parent, log.parent.parent, self.directory]
        sync(paths)
        listings = self._unlisted if whole else []
        made = {
            **record,
            "offset": self.offset(number),
            "published": self._published.append([json.dumps(listing) for listing in listings]),
            "documents": {name: log.seal() for name, log in self._logs.items()},
        }
        self._commits.commit(number, made)
        self._unlisted = [*([] if whole else self._unlisted), *_listings(record["outputs"])]

    def offset(self, number: int) -> str:
        """What Spark has logged of a slice: how far it reads."""
        return self._spark.offset(number)

    def is_whole(self, number: int) -> bool:
        """Whether that slice's record must hold everything."""
        return self._commits.is_whole(number)

    def clear_stage(self) -> None:
        """The slice in hand is done with."""
        for staged in self.stage.iterdir():
            staged.unlink(missing_ok=True)

    def _restore_logs(self, seals: dict[str, str]) -> None:
        """What was found for a slice that was not committed will be found again."""
        directory = self.directory / "documents"
        for name, seal in seals.items():
            self._logs[name] = AppendOnlyFile(directory / name)
            self._logs[name].restore(seal)
        for log in directory.glob("*/*"):
            if f"{log.parent.name}/{log.name}" not in seals:
                log.unlink()


def _listings(outputs: Sequence[dict[str, Any] | None]) -> list[list[Any]]:
    made = [(result, each) for result, each in enumerate(outputs) if each is not None]
    return [
        [result, *named]
        for result, each in made
        for named in (*each.get("parts", ()), (each["name"], each["checksum"]))
    ]
