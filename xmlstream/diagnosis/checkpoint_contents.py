"""Contents of a checkpoint, and whether they are as they were written; reads and never writes.

A run of another process may go on meanwhile: what has gone with a slice is read again with the next one.
"""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from xmlstream.dataclasses import dataclass, field
from xmlstream.diagnosis.inspection import plan_of
from xmlstream.operators.expressions.dialect import brief
from xmlstream.operators.storage.durable import checksum_text, damaged
from xmlstream.operators.storage.locks import is_locked
from xmlstream.operators.storage.records import Record
from xmlstream.operators.storage.store import Folder, hidden, unseal, unsealed
from xmlstream.plan.written_plan import PLAN_FILE
from xmlstream.punct_ns.errors import StateError
from xmlstream.runtime.checkpoint.checkpoint import DOCUMENTS, ENDED, PUBLISHED, Document, listings
from xmlstream.runtime.checkpoint.commit_log import Commit, CommitLog, PlannedSlice, made_whole
from xmlstream.runtime.checkpoint.migrations import Formats
from xmlstream.runtime.checkpoint.same_query import QUERY, NodeRecord, QueryRecord
from xmlstream.sink.document_names import slice_of
from xmlstream.sink.output import Output
from xmlstream.sink.target import SINKS

_TRIES = 8

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class OperatorContents(Record):
    """What a source or an operator has in a checkpoint.

    Attributes:
        name: Its name.
        what: Its parameters, in words.
        rows: The number of rows that it keeps.
        bytes: The size of their files.
        punctuations: The number of punctuations in its sets.
        document: Of a source of documents, the number of those that are read.
    """

    sparse = ("document",)

    name: str
    what: str
    rows: int = 0
    bytes: int = 0
    punctuations: int = 0
    document: int | None = None


@dataclass(frozen=True, slots=True)
class ResultContents(Record):
    """A result: where it goes, in which form, and the number of published documents; None for a table."""

    output: str
    form: str
    documents: int | None = None


@dataclass(frozen=True, slots=True)
class CheckpointContents(Record):
    """What is in a checkpoint.

    Attributes:
        checkpoint: The place.
        format: The format of what the next commit writes after; `earlier` has those of earlier slices.
        version: The version of xmlstream that has run the query last; None if it did not note that.
        query: The identifier of the query.
        state: `running`, `stopped`, `killed`, `failed`, `closed` or `nothing committed`.
        slice: The number of the last slice; None before the first.
        time: The time of the last commit, in ISO 8601.
        operators: The sources and operators, in the order of the plan.
        results: The results.
        streams: The streams of Spark's, with the size of what was not read yet.
        bytes: The size of all files, by their folder; "" for those in none.
    """

    sparse = ("version", "earlier", "slice", "time", "streams")

    checkpoint: str
    format: int
    query: str
    state: str
    version: str | None = None
    earlier: Mapping[str, int] = field(default_factory=dict)
    slice: int | None = None
    time: str | None = None
    operators: tuple[OperatorContents, ...] = ()
    results: tuple[ResultContents, ...] = ()
    streams: Mapping[str, int] = field(default_factory=dict)
    bytes: Mapping[str, int] = field(default_factory=dict)


def contents_of(checkpoint: Folder) -> CheckpointContents:
    """What is in a checkpoint.

    Raises:
        StateError: There is no checkpoint, it has a format that this version does not know, or it is damaged.
    """
    plan_of(checkpoint)  # which refuses what is none
    return _settled(checkpoint, _contents)


def _settled(checkpoint: Folder, read: Callable[[Folder], _Read]) -> _Read:
    """What is read of a checkpoint, again if a run has gone on meanwhile and something was missing."""
    for left in range(_TRIES, -1, -1):
        before = checkpoint.names("commits")
        try:
            return read(checkpoint)
        except (StateError, OSError):
            if not left or checkpoint.names("commits") == before:
                raise
    raise AssertionError


def _contents(checkpoint: Folder) -> CheckpointContents:
    query, records = QueryRecord.of(checkpoint), CommitLog(checkpoint.below("commits")).records()
    last = made_whole(records) or Commit(-1)
    sizes: dict[str, int] = {}
    for key, size in checkpoint.sizes(lambda _: True):
        folder = key.partition("/")[0] if "/" in key else ""
        sizes[folder] = sizes.get(folder, 0) + size
    counts = [0] * len(query.outputs)
    for document in _documents(checkpoint, records):
        counts[document.result] += 1
    results = [
        ResultContents(each.output, each.form, None if _is_table(each.form) else count)
        for each, count in zip(query.outputs, counts, strict=True)
    ]
    is_begun = last.slice >= 0
    return CheckpointContents(
        checkpoint.where(),
        query.format,
        query.id,
        _state(checkpoint, last),
        version=unseal(checkpoint, PLAN_FILE).get("version"),
        earlier=query.earlier,
        slice=last.slice if is_begun else None,
        time=last.time.isoformat() if is_begun else None,
        operators=tuple(_operator(last, node) for node in query.plan if node.operator.get("") != "Results"),
        results=tuple(results),
        streams=dict(_sizes_below(checkpoint, "streams")),
        bytes=sizes,
    )


def _sizes_below(checkpoint: Folder, folder: str) -> Iterator[tuple[str, int]]:
    for name in checkpoint.names(folder):
        sizes = (size for _, size in checkpoint.below(f"{folder}/{name}").sizes(lambda _: True))
        yield name.removesuffix("/"), sum(sizes)


def _is_table(form: str) -> bool:
    return form not in SINKS or SINKS[form].loader is not None


def _operator(last: Commit, node: NodeRecord) -> OperatorContents:
    state, end = last.state(node.name), last.end.get(node.name)
    return OperatorContents(
        node.name,
        brief(node.says),
        rows=sum(log.rows for log in state.kept.values()),
        bytes=sum(int(each.partition("-")[0]) for each in state.checksums.values()),
        punctuations=sum(each.punctuations_held for each in last.report.operators if each.name == node.name),
        document=end.get("document") if isinstance(end, dict) else None,
    )


def _state(checkpoint: Folder, last: Commit) -> str:
    with contextlib.suppress(StateError):  # there is no note, or it is being written
        return str(unseal(checkpoint, ENDED).get("how"))
    if is_locked(checkpoint.root):
        return "running"
    if last.slice < 0:
        return "nothing committed"
    return "closed" if last.report.closed else "killed"


def _documents(checkpoint: Folder, records: list[Commit]) -> list[Document]:
    """The published documents of all commits."""
    if not records:
        return []
    length = int(records[-1].published.partition("-")[0])
    lines = checkpoint.read(PUBLISHED, 0, length).splitlines() if length else []
    listed = [Document(*json.loads(line)) for line in lines]
    return listed + [listing for record in records for listing in listings(record.outputs)]


def damages(checkpoint: Folder) -> list[StateError]:
    """What is not as it was written in a checkpoint and its outputs: seals and checksums, as a start compares them.

    Raises:
        StateError: There is no checkpoint.
    """
    found: list[StateError] = []
    for _ in range(_TRIES):
        before = checkpoint.names("commits")
        found = list(_damages(checkpoint))
        if not found or checkpoint.names("commits") == before:
            break
    return found


def _damages(checkpoint: Folder) -> Iterator[StateError]:
    for key in (QUERY, PLAN_FILE):
        if checkpoint.size(key) is None or unsealed(checkpoint.read(key)) is None:
            yield checkpoint.damaged(key)
            if key == QUERY:
                return
    try:
        Formats.of(checkpoint).require_known()
        records = CommitLog(checkpoint.below("commits")).records()
        last = made_whole(records)
        PlannedSlice(checkpoint).require(last.slice if last is not None else None)
    except StateError as error:
        yield error
        return
    if last is None:
        return
    segments = {
        f"state/{name}/{segment}": checksum
        for name, state in last.operators.items()
        for segment, checksum in state.checksums.items()
    }
    for key, checksum in segments.items():
        try:
            is_sound = checkpoint.checksum(key) == checksum
        except OSError:
            is_sound = False
        if not is_sound:
            yield checkpoint.damaged(key)
    logs = {PUBLISHED: last.published, **{f"{DOCUMENTS}/{name}": seal for name, seal in last.documents.items()}}
    unsound = [key for key, seal in logs.items() if not _holds(checkpoint, key, seal)]
    yield from map(checkpoint.damaged, unsound)
    if PUBLISHED not in unsound:
        yield from _damaged_documents(checkpoint, records)


def _holds(checkpoint: Folder, key: str, seal: str) -> bool:
    """Whether the beginning of a log is as it was sealed; lines behind it do not count."""
    length = int(seal.partition("-")[0])
    if not length:
        return True
    try:
        text = checkpoint.read(key, 0, length)
    except OSError:
        return False
    return checksum_text(len(text), zlib.crc32(text)) == seal


def _damaged_documents(checkpoint: Folder, records: list[Commit]) -> Iterator[StateError]:
    query = QueryRecord.of(checkpoint)
    outputs: dict[int, Output] = {}
    for result, each in enumerate(query.outputs):
        if not _is_table(each.form) and each.output != "-":
            outputs[result] = Output(each.output, checkpoint.path(f"drafts/{result}"))
    for document in _documents(checkpoint, records):
        output, since = outputs.get(document.result), query.outputs[document.result].since
        if output is None or (slice_of(document.name) or 0) < since:
            continue
        sums = []
        for name in (document.name, hidden(document.name)):
            with contextlib.suppress(OSError):
                sums.append(output.checksum(name))
        if document.checksum not in sums[:1]:
            yield damaged(f"{output.where}/{document.name}", is_there=bool(sums))
