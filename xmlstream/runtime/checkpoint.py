"""The checkpoint: the directory in which a query keeps its state, with the log of its commits.

    query.json        which query it is, and where its results go (`xmlstream.runtime.same_query`)
    plan.json         the plan that runs, for programs that show it (`xmlstream.plan.written_plan`)
    commits/          a record for each of the last slices: the commit log
    state/            the kept tuples of the operators (`operators.storage.segments`); strings that sources have closed
                      (`operators.storage.constant_runs`)
    published.jsonl   the published documents, except those in the last records
    documents/        of each source, the order of its documents, and the like (`sources.xml.splits.documents`)
    spark/            Spark's own log: how far each slice reads, and which slices Spark has finished
    staged/           tuples of the current slice
    clock             how often clocks tick, while anything waits for them (`xmlstream.runtime.query_clocks`)

A slice counts, with all that it wrote, from the moment its record is in the commit log, and not before. A record is one
sealed JSON file, put in place by an atomic rename. It names all files that count, with their checksums. Sets of
punctuations and published documents are recorded as what the slice added; at intervals a record holds everything
(`whole`), and those before it are removed. A start compares, reports what is damaged, and removes what is not named:
the remains of a slice that was not committed.

Spark's log does not decide what counts. Each commit keeps a copy of what Spark logged of its slice, and whenever a
query starts, Spark's log is written anew from it. So a slice that was never committed is planned anew by the run that
makes it, from the documents and with the options that it finds; and damage to Spark's log, which nothing syncs, is
repaired.

`query.json` states the format of the whole checkpoint; the record of an operator's state has a format number of its own
beside the names that the operator declares (`operators.state.state_schema`). Another number is refused.
"""

from __future__ import annotations

import json
import shutil
import threading
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operators.storage.durable import RESTORE, damaged, make_directory, sync
from punct_ns.errors import StateError
from xmlstream.runtime.sealed_files import EMPTY_SEAL, AppendOnlyFile, seal, unseal
from xmlstream.sink.sink import Draft

_DONE = 'v1\n{"nextBatchWatermarkMs":0}'
"""What Spark logs of a slice that it has done with."""


class SparkLog:
    """The directory that Spark takes for its checkpoint."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def last_done(self) -> int | None:
        """The last slice that Spark has done with."""
        return _last(self.directory / "commits")

    def offset(self, number: int) -> str:
        """What Spark has logged of a slice: how far it reads."""
        return (self.directory / "offsets" / str(number)).read_text(encoding="utf-8")

    def agree(self, committed: int | None, offsets: Sequence[str]) -> None:
        """Makes it say that all is done up to the committed slice, and nothing more; `offsets` are of the last slices.

        Raises:
            StateError: It knows of later slices: commits of ours are lost.
        """
        known = -1 if committed is None else committed
        done, begun = self.last_done, _last(self.directory / "offsets")
        if (done is not None and done > known) or (begun is not None and begun > known + 1):
            later = max(number for number in (done, begun) if number is not None)
            what = "no slice is committed" if committed is None else f"the last commit is that of slice {committed}"
            raise StateError(
                f"the checkpoint {self.directory.parent} has lost commits: {what}, and Spark has come to slice {later}",
                hint=RESTORE,
            )
        name = self._name()
        shutil.rmtree(self.directory, ignore_errors=True)
        if committed is None:
            return
        for log in ("offsets", "commits"):
            (self.directory / log).mkdir(parents=True)
        (self.directory / "metadata").write_text(json.dumps({"id": name}), encoding="utf-8")
        # Spark looks at the slice before the last, too; how far that read is of no consequence where the last is done.
        for number in range(max(committed - 1, 0), committed + 1):
            text = offsets[max(number - committed - 1, -len(offsets))]
            (self.directory / "offsets" / str(number)).write_text(text, encoding="utf-8")
        (self.directory / "commits" / str(committed)).write_text(_DONE, encoding="utf-8")

    def _name(self) -> str:
        """What Spark calls the query, or a new name."""
        try:
            return str(uuid.UUID(json.loads((self.directory / "metadata").read_text(encoding="utf-8"))["id"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return str(uuid.uuid4())


def _last(directory: Path) -> int | None:
    """The highest number that is the name of a file."""
    if not directory.is_dir():
        return None
    return max((int(path.name) for path in directory.iterdir() if path.name.isdecimal()), default=None)


WHOLE_EVERY = 50
"""Slices from one whole record to the next."""


class CommitLog:
    """The records of one query's slices, in a directory of its checkpoint."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        make_directory(directory)

    def _numbers(self) -> list[int]:
        return sorted(int(path.stem) for path in self._directory.glob("*.json") if path.stem.isdecimal())

    def records(self) -> list[dict[str, Any]]:
        """The records from the last whole one on, as they were written.

        Raises:
            StateError: One of them is gone or damaged.
        """
        records: list[dict[str, Any]] = []
        numbers = self._numbers()
        for number in range(numbers[-1], -1, -1) if numbers else ():
            records.append(unseal(self._path(number)))
            if records[-1]["slice"] != number:
                raise damaged(self._path(number))
            if records[-1]["whole"]:
                break
        return records[::-1]

    def latest(self) -> dict[str, Any] | None:
        """The last slice's record, its sets made whole from the records before; None before the first commit.

        Raises:
            StateError: A record is gone or damaged.
        """
        return made_whole(self.records())

    def is_whole(self, number: int) -> bool:
        """Whether that slice's record must hold everything."""
        return number % WHOLE_EVERY == 0 or not self._numbers()

    def commit(self, number: int, record: dict[str, Any]) -> None:
        """Puts the record in place, durably: from here on the slice counts."""
        seal(self._path(number), record)
        if record["whole"]:
            for earlier in self._numbers():
                if earlier < number:
                    self._path(earlier).unlink()

    def _path(self, number: int) -> Path:
        return self._directory / f"{number:09d}.json"


def made_whole(records: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The last of these records, from a whole one on, with the sets of all."""
    if not records:
        return None
    last = records[-1]
    whole = {name: dict(state) for name, state in last["operators"].items()}
    for name, state in whole.items():
        sets: dict[str, list[Any]] = {}
        for record in records:
            for set_name, added in record["operators"].get(name, {"sets": {}})["sets"].items():
                sets.setdefault(set_name, []).extend(added)
        state["sets"] = sets
    return {**last, "operators": whole}


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
        for name, sealed in seals.items():
            self._logs[name] = AppendOnlyFile(directory / name)
            self._logs[name].restore(sealed)
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
