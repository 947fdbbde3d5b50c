"""A checkpoint in an object store: the commits count there, and the run works on a *working copy* in a directory.

    commits/000000007.json    the log: a record for each slice (see `commit_log`), and the barriers
    objects/RUN/…             files of the working copy, as a run has put them: segments, closed strings, drafts
    logs/…/BEGIN-END-RUN      parts of the working copy's append-only files
    staged/RUN/…              tuples of the current slice, where executors share nothing but the store with the driver
    runs/RUN.json             `query.json` and `plan.json` of a run; `runs/RUN.ended.json`: how it has ended
    _dead_letters/            dead letters, if no output is a directory

All objects have names of their own and are never replaced. A commit puts what the slice has written, then creates the
next record of the log, by one request: from then on the slice counts. The record is the sealed record of the slice, and
names besides all objects that count (`remote`). What the newest record does not name may be removed: another run never
names it again, since it contains the id of the run that has put it.

**Barriers.** The log is numbered without gaps. A run begins by creating a barrier, a record with its id, under the next
number, and reads the records before it. From then on all its numbers follow the barrier. An older run would create its
next record under the number that the barrier has taken: the store refuses, and the older run stops. So no two runs
commit to one log; neither lock, lease nor clock is needed. Commits before a whole record are removed, barriers are kept
for `BARRIER_SECONDS`: a run that has slept for less always meets the barrier that was put before its next number.

**Clusters.** Where the executors do not see the working copy (`is_shared`), they write and read objects: the stage, and
large segments in parts, `objects/RUN/state/NAME/SEGMENT/PART`. Parts are not brought into the working copy.

A request that is repeated after a lost response meets the record of its own run, which has the same bytes
(`ObjectStore.create`).
"""

from __future__ import annotations

import contextlib
import logging
import tempfile
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.storage.durable import checksum_text, make_directory, sync
from xmlstream.operators.storage.locks import DirectoryLocks
from xmlstream.operators.storage.object_files import CHUNK
from xmlstream.operators.storage.object_urls import is_object_url, joined, require_known_scheme, shown
from xmlstream.operators.storage.objects import START_PATIENCE, ObjectStore
from xmlstream.operators.storage.store import Folder, folder_at, sealed, unsealed
from xmlstream.plan.written_plan import PLAN_FILE
from xmlstream.punct_ns.errors import StateError, XmlStreamError
from xmlstream.runtime.checkpoint.checkpoint import COUNTS, LETTERS, OF_CHANGES, Mirror
from xmlstream.runtime.checkpoint.commit_log import Commit, LogPart, Remote, numbers_in, object_keys, record_key

LITTER_SECONDS = 24 * 3600
"""The age at which a start removes objects that no commit names."""

BARRIER_SECONDS = 30 * 24 * 3600
"""The age at which a start removes barriers that precede a whole record."""

NOTES = ("query.json", PLAN_FILE)
"""The files of the working copy that a run puts once, before its first commit."""

_LOG = logging.getLogger("xmlstream.checkpoint")

_ENDED = "ended.json"
_TRIES = 8
_AHEAD = 4
"""The records that are read at once where the last commit is looked for: mostly it comes before one barrier."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class RemoteCheckpoint(Mirror):
    """A checkpoint in an object store, and its working copy.

    Attributes:
        run: The id of this run.
        store: The objects of the checkpoint.
        is_shared: Whether executors share nothing with this process but the store.
        staged: The store of what is staged for this run, if it is shared.
    """

    def __init__(self, url: str, directory: Path, *, is_shared: bool = False) -> None:
        super().__init__(Folder(directory, shown(url)))
        self.run = uuid.uuid4().hex[:16]
        self.is_shared = is_shared
        self.staged = ObjectStore(url).below(f"staged/{self.run}")
        self.store = ObjectStore(url)
        # What nothing relies on does not keep a process from its end.
        self._hasty = ObjectStore(url, START_PATIENCE)
        self._local = self.folder
        self._next = 0
        self._log: tuple[int, ...] = ()
        self._objects: dict[str, tuple[str, str]] = {}
        self._parts: Mapping[str, tuple[LogPart, ...]] = {}
        self._runs: list[str] = []
        self._letters: set[str] = set()
        self._behind: list[Future[None]] = []
        self._threads = ThreadPoolExecutor(ObjectStore.AT_ONCE, thread_name_prefix="checkpoint")

    @property
    def apart(self) -> ObjectStore | None:  # type: ignore[override]
        """See `Mirror`."""
        return self.staged if self.is_shared else None

    def look(self) -> bool:
        """Restores `query.json` only, before the barrier; returns whether a slice is committed."""
        last = self._last(numbers_in(self.store.below("commits")))
        self._restore_notes(last[2] if last else None)
        return last is not None

    def begin(self) -> None:
        """Takes the checkpoint over from earlier runs by a barrier, and restores the working copy.

        Raises:
            StateError: The checkpoint is damaged, or the store does not answer.
        """
        barrier = sealed({"barrier": self.run, "time": time.time()})
        while True:
            numbers = numbers_in(self.store.below("commits"))
            number = numbers[-1] + 1 if numbers else 0
            try:
                self.store.create(_key(number), barrier)
            except FileExistsError:
                continue  # another run was faster
            break
        self._next = number + 1
        last = self._restore(numbers)
        self._warn(last)
        self._behind.append(self._threads.submit(self._remove_litter, number, numbers, last))

    def _warn(self, last: Commit | None) -> None:
        """Logs from which run the checkpoint is taken over, unless that run has noted its end."""
        if self._runs and self.store.size(f"runs/{(run := self._runs[0])}.{_ENDED}") is None:
            when = f"the last commit is of {last.time.isoformat()}" if last is not None else "nothing is committed yet"
            text = "taking the checkpoint %s over from run %s, which has left no note of its end; %s: if it still runs,"
            _LOG.warning(f"{text} it stops at its next commit", self.store.where(), run, when)

    def restore(self) -> None:
        """Restores the working copy, to be read, unless it is as of the last commit; takes nothing over.

        Raises:
            StateError: The checkpoint is damaged.
        """
        for left in range(_TRIES, -1, -1):
            numbers = numbers_in(self.store.below("commits"))
            try:
                if numbers[-1:] != [self._next - 1]:
                    self._restore(numbers)
                    self._next = numbers[-1] + 1 if numbers else 0
            except StateError:
                # A run has gone on, and removed what it no longer needs.
                if not left:
                    raise
            else:
                break
        with contextlib.suppress(FileNotFoundError):
            for run in self._runs[:1]:
                self._local.replace(_ENDED, [self.store.read(f"runs/{run}.{_ENDED}")], durable=False)

    def note(self) -> None:
        """Puts what this run has written about its query and plan."""
        notes = {name: self._local.read(name).decode() for name in NOTES}
        self.store.create(f"runs/{self.run}.json", sealed(notes))

    def keep(self, name: str) -> None:
        """Keeps a copy of the working copy in the store; parts that only executors see are not in it."""
        if self.store.size(f"{name}/query.json") is None:
            for key in sorted(self.kept_files(), key="query.json".__eq__):  # which comes last
                self.store.write_file(f"{name}/{key}", self._local.path(key))

    def segments(self, folder: str) -> SharedSegments | None:
        """The segments in a folder, for executors that do not see the working copy; None if they see it."""
        return SharedSegments(self, folder) if self.is_shared else None

    def place(self, key: str) -> str:
        """The key in the store of a file of the working copy that this run puts."""
        return f"objects/{self.run}/{key}"

    def places(self, key: str) -> list[str]:
        """The keys in the store of a file of the working copy, or of the files of a folder; in order of their names."""
        if key in self._objects:
            return [self._objects[key][0]]
        return [self._objects[each][0] for each in sorted(self._objects) if each.startswith(f"{key}/")]

    def note_put(self, key: str, checksum: str) -> None:
        """Notes that an object was put at its `place`."""
        self._objects[key] = self.place(key), checksum

    def clear_stage(self) -> None:
        """Removes what was staged for slices that are committed; folders stay."""
        if self.is_shared:
            self._delete([f"staged/{self.run}/{name}" for name in self.staged.names() if not name.endswith("/")])

    def secure(self, record: Commit, logs: Mapping[str, str], kept: Set[str], paths: Iterable[Path]) -> Commit:
        """Puts the files of a slice, and syncs those outside of the working copy; see `Mirror.secure`.

        Raises:
            StateError: The store does not answer.
        """
        parts = self._put(logs, paths)
        objects = {key: there for key, there in self._objects.items() if self._counts(key, kept)}
        log = (*(() if record.whole else self._log), self._next)
        return replace(record, remote=Remote(self.run, log, objects, parts))

    def create(self, record: Commit) -> None:
        """Creates a record in the store, and its copy; removes in the background what it no longer names.

        Raises:
            StateError: Another run has taken over, or the store does not answer.
        """
        try:
            self.store.create(_key(self._next), sealed(record.json()))
        except FileExistsError:
            raise self.taken_over() from None
        remote = record.there
        gone = object_keys(self._objects, self._parts) - object_keys(remote.objects, remote.logs)
        old = [_key(each) for each in self._log if each not in remote.log]
        self._next += 1
        self._log, self._objects, self._parts = remote.log, dict(remote.objects), remote.logs
        self._delete([*gone, *old])
        self.log.create(record)

    def restart(self, record: Commit, logs: Mapping[str, str], kept: Set[str], paths: Iterable[Path]) -> None:
        """Creates a record in place of the last one, with the query and plan of the working copy; see `Mirror`."""
        self._objects, self._parts = {}, {}
        made = self.secure(record, logs, kept, paths)
        notes = {name: self._local.read(name).decode() for name in NOTES}
        self._local.delete(_key(record.slice))
        self.create(replace(made, remote=replace(made.there, notes=notes)))

    def cause(self, failure: BaseException) -> BaseException:
        """See `Mirror.cause`: tasks may miss objects that a run which took over has removed."""
        with contextlib.suppress(XmlStreamError, OSError):
            if self.is_shared and self._hasty.size(_key(self._next)) is not None:
                return self.taken_over()
        return failure

    def _put(self, logs: Mapping[str, str], paths: Iterable[Path]) -> dict[str, tuple[LogPart, ...]]:
        """Puts the files of a slice, what was appended to logs, and dead letters; returns the parts of the logs."""
        root = self._local.root
        paths = list(paths)
        files = [path for path in paths if path.is_relative_to(root) and path.is_file()]
        named = dict.fromkeys(str(path.relative_to(root)) for path in files)
        keys = [key for key in named if key not in self._objects and key not in logs]
        letters = [name for name in self._local.names(LETTERS) if name not in self._letters]

        def put(key: str) -> tuple[str, str]:
            there = self.place(key)
            return there, self.store.write_file(there, self._local.path(key))

        def send(name: str) -> None:
            self.store.write_file(f"{LETTERS}/{_of_run(name, self.run)}", self._local.path(f"{LETTERS}/{name}"))

        sent = self._threads.map(send, letters)
        objects = self._threads.map(put, keys)
        parts = self._threads.map(self._appended, logs.items())
        sync(path for path in paths if not path.is_relative_to(root))
        self._letters.update(name for name, _ in zip(letters, sent, strict=True))
        self._objects.update(zip(keys, objects, strict=True))
        return dict(zip(logs, parts, strict=True))

    def _counts(self, key: str, kept: Set[str]) -> bool:
        """Whether a file counts with a commit: a segment that it names, or a draft that is not loaded yet."""
        if key.startswith("state/"):
            return "/".join(key.split("/")[:3]) in kept  # the segment may be a folder
        return self._local.size(key) is not None

    def end(self) -> None:
        """Puts the note of the run's end, if there is one, and waits for removals; a store that is away gets seconds.

        Nothing relies on this.
        """
        with contextlib.suppress(XmlStreamError, OSError):
            if self._local.size(_ENDED) is not None:
                self._hasty.write(f"runs/{self.run}.{_ENDED}", [self._local.read(_ENDED)])
                if self.is_shared:
                    self._hasty.delete(f"staged/{self.run}/")
                self.settle()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def settle(self) -> None:
        """Waits for the removals in the background."""
        for each in self._behind:
            with contextlib.suppress(XmlStreamError, OSError):
                each.result()
        self._behind = []

    def _delete(self, keys: Sequence[str]) -> None:
        self._behind = [each for each in self._behind if not each.done()]
        if keys:
            self._behind.append(self._threads.submit(self._hasty.delete, *keys))

    def _all(self, action: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        return list(self._threads.map(action, items))

    def _read(self, key: str) -> tuple[bytes, Mapping[str, Any]]:
        """A sealed object: its bytes and its value."""
        try:
            content = self.store.read(key)
        except FileNotFoundError:
            raise self.store.damaged(key) from None
        if (value := unsealed(content)) is None:
            raise self.store.damaged(key)
        return content, value

    def _last(self, numbers: Sequence[int]) -> tuple[int, bytes, Commit] | None:
        """The number, bytes and value of the last commit; notes the runs of its record and of the barriers after it."""
        self._runs = []
        for end in range(len(numbers), 0, -_AHEAD):
            some = numbers[max(end - _AHEAD, 0) : end][::-1]
            for number, (content, value) in zip(some, self._all(self._read, map(_key, some)), strict=True):
                if "barrier" in value:
                    self._runs.append(value["barrier"])
                    continue
                commit = Commit.from_json(value)
                self._runs.append(commit.there.run)
                return number, content, commit
        return None

    def _restore(self, numbers: Sequence[int]) -> Commit | None:
        """Brings the working copy into the state of the last commit; returns its record."""
        found = self._last(numbers)
        root = self._local.root
        files = [path for name in ("state", "drafts") for path in (root / name).rglob("*") if path.is_file()]
        self._local.delete(
            "commits/", "documents/", "published.jsonl", "planned.json", "clock", _ENDED, *OF_CHANGES, *NOTES
        )
        self._log, self._objects, self._parts = (), {}, {}
        if found is not None:
            number, content, last = found
            remote = last.there
            self._log, self._objects, self._parts = remote.log, dict(remote.objects), remote.logs
            earlier = [each for each in self._log if each != number]
            for text, value in [*self._all(self._read, map(_key, earlier)), (content, {"slice": last.slice})]:
                self._local.replace(f"commits/{value['slice']:09d}.json", [text], durable=False)
            self._all(self._fetch, (item for item in self._objects.items() if not self._is_apart(item[0])))
            self._all(self._fetch_log, self._parts.items())
        self._local.delete(*{str(path.relative_to(root)) for path in files}.difference(self._objects))
        self._restore_notes(found[2] if found else None)
        return found[2] if found else None

    def _is_apart(self, key: str) -> bool:
        """Whether an object is a part of a segment that only executors need."""
        return self.is_shared and key.startswith("state/") and key.count("/") > 2

    def _fetch(self, of: tuple[str, tuple[str, str]]) -> None:
        """Brings a file into the working copy, unless it is there."""
        key, (there, sum_) = of
        if self._local.size(key) is None or self._local.checksum(key) != sum_:
            self._local.write(key, self._pieces(there, sum_))

    def _fetch_log(self, of: tuple[str, Sequence[LogPart]]) -> None:
        key, parts = of
        self._local.write(key, (piece for _, _, there, sum_ in parts for piece in self._pieces(there, sum_)))

    def _pieces(self, there: str, sum_: str) -> Iterator[bytes]:
        """The content of an object, in pieces if it is large.

        Raises:
            StateError: The object is gone, or has another checksum.
        """
        size = int(sum_.partition("-")[0])
        length = crc = 0
        try:
            for begin in range(0, max(size, 1), CHUNK):
                # The last one is read to the end of the object, which may be too long.
                piece = self.store.read(there, begin, begin + CHUNK if begin + CHUNK < size else None)
                length, crc = length + len(piece), zlib.crc32(piece, crc)
                yield piece
        except FileNotFoundError:
            raise self.store.damaged(there) from None
        if checksum_text(length, crc) != sum_:
            raise self.store.damaged(there)

    def _restore_notes(self, last: Commit | None) -> None:
        """Restores `query.json` and the plan of the last run that has noted them, or of the last commit."""
        keys = (key for run in self._runs if self.store.size(key := f"runs/{run}.json") is not None)
        noted = next((self._read(key)[1] for key in keys), last.there.notes if last else {})
        for name, text in noted.items():
            self._local.replace(name, [text.encode()], durable=False)

    def _appended(self, of: tuple[str, str]) -> tuple[LogPart, ...]:
        """Puts the lines that were appended to a file since the last commit; returns its parts, in order.

        A part is put together with those before it that are not larger: each byte is put O(log n) times, and n commits
        leave O(log n) parts.
        """
        key, seal = of
        parts = self._parts.get(key, ())
        end = int(seal.partition("-")[0])
        begin = parts[-1][1] if parts else 0
        if end == begin:
            return parts
        while parts and parts[-1][1] - parts[-1][0] <= end - begin:
            begin, parts = parts[-1][0], parts[:-1]
        there = f"logs/{key}/{begin}-{end}-{self.run}"
        return (*parts, (begin, end, there, self.store.write(there, [self._local.read(key, begin, end)])))

    def _remove_litter(self, barrier: int, numbers: Sequence[int], last: Commit | None) -> None:
        """Removes old objects that no commit names, and dead letters before the barrier of slices not committed."""
        names = last.there if last is not None else Remote(self.run, tuple(numbers[-1:] or [0]), {}, {})
        needed, first = object_keys(names.objects, names.logs), min(names.log)
        committed = last.slice if last is not None else -1
        now, listed = time.time(), list(self._hasty.listed())
        begun = next((now - one.written for one in listed if one.key == _key(barrier)), now)

        def is_litter(key: str, age: float) -> bool:
            folder, _, name = key.partition("/")
            match folder:
                case "commits":
                    return age > BARRIER_SECONDS and int(name.partition(".")[0]) < first
                case "staged":
                    return age > LITTER_SECONDS and self.run not in key
                case "objects" | "logs":
                    return age > LITTER_SECONDS and key not in needed and self.run not in key
                case "runs":
                    return age > LITTER_SECONDS and name.partition(".")[0] not in {self.run, *self._runs}
                case "_dead_letters":
                    return age >= begun and f"-{self.run}." not in name and _slice_of_letters(name) > committed
            return folder.startswith(".probe-") and age > LITTER_SECONDS

        found = [one.key for one in listed if is_litter(one.key, now - one.written)]
        self._hasty.delete(*found)


@dataclass(frozen=True, slots=True)
class SharedSegments:
    """The segments of a folder of the working copy, as objects that executors read and write; a `SharedFolder`."""

    checkpoint: RemoteCheckpoint
    folder: str

    def url(self, name: str) -> str:
        """The URL of a new object of this run."""
        return joined(self.checkpoint.store.url, self.checkpoint.place(f"{self.folder}/{name}"))

    def urls(self, name: str) -> list[str]:
        """The URLs of an object that exists, or of its parts."""
        return [joined(self.checkpoint.store.url, key) for key in self.checkpoint.places(f"{self.folder}/{name}")]

    def note(self, name: str, checksum: str) -> None:
        """Notes that an object was put at its URL."""
        self.checkpoint.note_put(f"{self.folder}/{name}", checksum)


def _key(number: int) -> str:
    return f"commits/{record_key(number)}"


def _of_run(name: str, run: str) -> str:
    """The name of a file of dead letters in the store.

    >>> _of_run("bids-000000003.jsonl", "4e1f")
    'bids-000000003-4e1f.jsonl'
    """
    stem, dot, suffix = name.rpartition(".")
    return f"{stem}-{run}{dot}{suffix}"


def _slice_of_letters(name: str) -> int:
    number = name.rsplit("-", 2)[-2:][0]
    return int(number) if number.isdecimal() else -1


def mirror_at(checkpoint: str | None, directory: Path, *, is_shared: bool = False) -> Mirror:
    """The mirror of a checkpoint that has its files in a directory: of one in an object store, its working copy."""
    if checkpoint is not None and is_object_url(checkpoint):
        return RemoteCheckpoint(checkpoint, directory, is_shared=is_shared)
    return Mirror(Folder(directory))


@contextlib.contextmanager
def readable(
    checkpoint: str, *, whole: bool = True, changing: bool = False
) -> Iterator[tuple[Folder, Callable[[], None]]]:
    """The directory of a checkpoint, to be read, and what brings it up to date; it writes nothing elsewhere.

    Of a checkpoint in an object store this is a copy, until the end of the `with` body; only of `query.json` if it is
    not `whole`. It is locked, as the directory of a run is: from the store, a run that waits looks like one that was
    killed. While its files are being replaced by those of another query, it is read only if it may be `changing`.

    Raises:
        UsageError: It is neither a directory nor in an object store.
        StateError: The checkpoint is damaged or half changed, or the store does not answer, or denies access.
    """
    require_known_scheme(checkpoint)
    if not is_object_url(checkpoint):
        if not changing and folder_at(checkpoint).size(COUNTS) is not None:
            what = f"the checkpoint {checkpoint} is half changed to another query or plan, and nothing is lost"
            raise StateError(what, hint="the run that changes it finishes that, or the next one if it was killed")
        yield folder_at(checkpoint), lambda: None
        return
    home = Path(tempfile.mkdtemp(prefix="xmlstream-"))
    directory, locks = home / (shown(checkpoint).rstrip("/").rpartition("/")[2] or "state"), DirectoryLocks()
    make_directory(directory)
    remote = RemoteCheckpoint(checkpoint, directory)
    remote.store = replace(remote.store, patience=START_PATIENCE)
    try:
        locks.take(directory)
        remote.restore() if whole else remote.look()
        yield remote.folder, remote.restore
    finally:
        locks.release()
        folder_at(home.parent).delete(f"{home.name}/")
