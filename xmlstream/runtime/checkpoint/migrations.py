"""Migrations: a query goes on from a checkpoint that an earlier version of xmlstream has written, in another format.

There is one number, `CHECKPOINT_FORMAT`, for all that a checkpoint has. The version that changes what is recorded, in
more than a field that may be absent, raises it, and adds to `MIGRATIONS` what makes of each part of the format before
the part of the next one: of `query.json`, of the record of a slice, of the logs of a source. The manual's page
`xmlstream/manual/checkpoints.md` has all parts.

A migration writes nothing over. Records are migrated whenever they are read. A start keeps a copy of the checkpoint,
of format 4 in `before-4/`, then notes in `query.json` the format of today, which earlier versions refuse, and up to
which slice records have the format before (`Formats`); it writes migrated logs under further names. The next commit has
the format of today and names these: with it the migration counts, and the logs before are removed. A kill at any point
leaves a checkpoint that a start of this version goes on from, by the same steps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from xmlstream.dataclasses import dataclass, field
from xmlstream.operators.storage.records import CHECKPOINT_FORMAT
from xmlstream.operators.storage.store import Folder, unsealed
from xmlstream.punct_ns.errors import StateError

Json: TypeAlias = Mapping[str, Any]

Lines: TypeAlias = Sequence[Json]
"""The lines of a log."""


def _as_it_is(part: Json) -> Json:
    return part


def _no_logs(logs: Mapping[str, Lines]) -> Mapping[str, Lines]:
    return {}


@dataclass(frozen=True, slots=True)
class Migration:
    """What changes from one format to the next.

    Attributes:
        query: Makes the content of `query.json` of the one before, but for its number.
        record: Makes the record of a slice, but for the numbers of its operators.
        logs: Makes the logs of a source that change, from all of its logs by name.
    """

    query: Callable[[Json], Json] = _as_it_is
    record: Callable[[Json], Json] = _as_it_is
    logs: Callable[[Mapping[str, Lines]], Mapping[str, Lines]] = _no_logs


MIGRATIONS: Mapping[int, Migration] = {}
"""What leads from each earlier format to the next one; none before the first release. A query goes on from all."""


@dataclass(frozen=True, slots=True)
class Formats:
    """The format of each part of a checkpoint.

    Attributes:
        number: The format of `query.json`.
        earlier: The formats of earlier slices: for each, the last slice that was recorded in it.
        where: The checkpoint, as errors name it.
    """

    number: int = CHECKPOINT_FORMAT
    earlier: Mapping[str, int] = field(default_factory=dict)
    where: str = ""

    @staticmethod
    def of(checkpoint: Folder) -> Formats:
        """The formats of a checkpoint; those of today as long as it has no readable `query.json`."""
        with suppress(OSError):
            if (query := unsealed(checkpoint.read("query.json"))) is not None:
                return Formats(query.get("format", CHECKPOINT_FORMAT), query.get("earlier", {}), checkpoint.where())
        return Formats()

    def require_known(self) -> None:
        """Makes sure that this version knows the format of the checkpoint; raises StateError."""
        _steps(self.number, self.where)

    def require_today(self, last: int) -> None:
        """Makes sure that the last slice was recorded in the format of today; raises StateError."""
        if (number := self.of_slice(last)) != CHECKPOINT_FORMAT:
            hint = "run the query as it was with this version, until it has committed a slice; then change it"
            raise StateError(f"the last slice of {self.where} has the earlier format {number}", hint=hint)

    def of_slice(self, number: int) -> int:
        """The format in which a slice was recorded."""
        return min([self.number, *(int(earlier) for earlier, last in self.earlier.items() if number <= last)])

    def record(self, record: Json) -> Json:
        """The record of a slice as it is today."""
        steps = _steps(self.of_slice(record.get("slice", 0)), self.where)
        for step in steps:
            record = step.record(record)
        if not steps:
            return record
        states = {name: {**state, "format": CHECKPOINT_FORMAT} for name, state in record.get("operators", {}).items()}
        return {**record, "operators": states}

    def logs(self, last: int, logs: Mapping[str, bytes]) -> Mapping[str, Sequence[str]]:
        """The lines of a source's logs that are to be written anew, given all its logs as of a slice."""
        lines = {name: [json.loads(line) for line in content.splitlines()] for name, content in logs.items()}
        changed: dict[str, Lines] = {}
        for step in _steps(self.of_slice(last), self.where):
            changed |= step.logs({**lines, **changed})
        return {name: list(map(json.dumps, new)) for name, new in changed.items()}


def query_of_today(query: Json, where: str) -> Json:
    """The content of a `query.json` as it is today; it keeps its number.

    Raises:
        StateError: It has a format that this version does not know.
    """
    for step in _steps(query.get("format"), where):
        query = step.query(query)
    return query


def _steps(number: Any, where: str) -> list[Migration]:
    """The migrations from a format to that of today; raises StateError for one that this version does not know."""
    if number == CHECKPOINT_FORMAT or number in MIGRATIONS:
        return [MIGRATIONS[each] for each in range(number, CHECKPOINT_FORMAT)]
    known = f"formats {min(MIGRATIONS)} to {CHECKPOINT_FORMAT}" if MIGRATIONS else f"format {CHECKPOINT_FORMAT}"
    hint = "finish the query with the version that wrote it, or begin anew with another checkpoint and output"
    if isinstance(number, int) and number > CHECKPOINT_FORMAT:
        hint = "a later version of xmlstream has gone on from it: use that one, or a copy from before"
    what = f"the checkpoint {where} has format {number}, and this version of xmlstream reads {known}"
    raise StateError(what, hint=hint)
