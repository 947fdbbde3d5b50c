"""Paths on the local file system as users write them, what a glob in them matches, and what is there."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from glob import escape, has_magic
from itertools import pairwise
from pathlib import Path

import numpy as np

from xmlstream.operators.storage.object_urls import require_known_scheme

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")


def local_path(path: str) -> str:
    """Returns the path on the file system that driver and executors share; UsageError if it is on another one.

    >>> local_path("file:///data/bids.xml")
    '/data/bids.xml'
    """
    require_known_scheme(path)
    if not _names_file_system(path):
        return str(Path(path))
    return "/" + path.partition(":/")[2].lstrip("/")


def absolute(path: str) -> str:
    """Returns the absolute path, independent of the working directory; one on another file system is unchanged.

    >>> absolute("/data/in/../bids.xml"), absolute("hdfs://there/bids.xml")
    ('/data/in/../bids.xml', 'hdfs://there/bids.xml')
    """
    return path if _names_file_system(path) else str(Path(path).absolute())


def split_glob(path: str) -> tuple[Path, tuple[str, ...]]:
    """Splits a path into an existing place and the parts of a glob below it; no parts if it is not a glob.

    A file or a directory may have `[`, `]`, `*` or `?` in its name: as far as the path leads to something that exists,
    its characters stand for themselves. So a glob below a directory `in[1]` searches there, and not in `in1`.

    >>> split_glob("in/bid.xml"), split_glob("nowhere/bid-*.xml")
    ((PosixPath('in/bid.xml'), ()), (PosixPath('nowhere'), ('bid-*.xml',)))
    """
    if not has_magic(path) or _exists(path):
        return Path(path), ()
    parts = Path(path).parts
    known = 0
    while not has_magic(parts[known]) or _exists(str(Path(*parts[: known + 1]))):
        known += 1
    return Path(*parts[:known]), parts[known:]


def glob_of(path: str) -> str | None:
    """Returns a path as a glob, for `glob.glob`; None if it is the path of one file or directory.

    >>> glob_of("in/bid.xml"), glob_of("nowhere/bid-*.xml")
    (None, 'nowhere/bid-*.xml')
    """
    known, parts = split_glob(path)
    return str(Path(escape(str(known)), *parts)) if parts else None


def common_glob(paths: Sequence[str]) -> str:
    """The narrowest path with asterisks that leads to each of several files.

    >>> common_glob(["in/s1.xml", "in/s23.xml"]), common_glob(["a/x.xml", "b/c/x.xml"]), common_glob(["a.xml", "a.xml"])
    ('in/s*.xml', '**/x.xml', 'a.xml')
    """
    all_parts = [Path(path).parts for path in paths]
    if len({len(parts) for parts in all_parts}) == 1:
        return str(Path(*map(_common_name, zip(*all_parts, strict=True))))
    known = _alike([parts[:-1] for parts in all_parts])
    return str(Path(*all_parts[0][:known], "**", _common_name([parts[-1] for parts in all_parts])))


def _common_name(names: Sequence[str]) -> str:
    """The name with an asterisk for what differs."""
    first = names[0]
    if all(name == first for name in names):
        return first
    before = _alike(names)
    behind = _alike([name[before:][::-1] for name in names])
    found = first[:before], first[len(first) - behind :]
    return "*".join(found) if not has_magic("".join(found)) else "*"


def _alike(rows: Sequence[Sequence[str]]) -> int:
    """The number of parts with which all of them begin."""
    differ = (at for at, each in enumerate(zip(*rows, strict=False)) if len({*each}) > 1)
    return next(differ, min(map(len, rows)))


def matches(pattern: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a glob matches a path; both are given as lists of names."""
    if not pattern or not names:
        return not names and all(part == "**" for part in pattern)
    is_hidden = names[0].startswith(".")
    if pattern[0] == "**":
        return matches(pattern[1:], names) or (not is_hidden and matches(pattern, names[1:]))
    if is_hidden and not pattern[0].startswith("."):
        return False
    return fnmatchcase(names[0], pattern[0]) and matches(pattern[1:], names[1:])


def status_of(path: str) -> os.stat_result | None:
    """Returns the status of a path; None if it does not exist, or no longer."""
    try:
        return os.stat(path)  # noqa: PTH116 - faster than a Path, for each document
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return None
        raise


def files_in_partitions(
    directory: Path, partition: Callable[[Sequence[str]], bool], names: tuple[str, ...] = ()
) -> Iterator[Path]:
    """Yields the documents in the partitions of a directory, at any depth."""
    for entry in directory.iterdir():
        below = (*names, entry.name)
        if partition(below) and entry.is_dir():
            yield from (inner for inner in entry.iterdir() if not inner.is_dir())
            yield from files_in_partitions(entry, partition, below)


def _names_file_system(path: str) -> bool:
    scheme, separator, _ = path.partition(":/")
    return bool(separator) and _SCHEME.fullmatch(scheme) is not None and not _exists(path)


def _exists(path: str) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - Path.exists raises for a name that is too long


class KnownNames:
    """The known names in the last listing of a directory, by a hash: a look at each takes ten times as long."""

    def __init__(self) -> None:
        self._hashes = np.array([_NONE])

    def others(self, names: Sequence[str], new: Callable[[Sequence[str]], Sequence[str]]) -> list[str]:
        """The names of a listing that are not known.

        Args:
            names: All names of the listing; other names are forgotten.
            new: Returns the unknown ones among some names; it is not called again with a known name.
        """
        hashes = np.fromiter(map(hash, names), np.int64, len(names))
        at = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        is_known = self._hashes[at] == hashes
        unseen = np.flatnonzero(~is_known)
        found = list(new([names[at] for at in unseen.tolist()]))
        fresh = set(found)
        is_known[unseen] = [names[at] not in fresh for at in unseen.tolist()]
        self._hashes = np.sort(np.append(hashes[is_known], _NONE))
        return found


_NONE = np.iinfo(np.int64).min
"""In place of a hash, so that there is always one."""


def numbered_wrong(names: Sequence[str]) -> tuple[str, str] | None:
    """The first two names, one behind the other, whose numbers say the reverse; None if there are none.

    >>> numbered_wrong(["log.1", "log.10", "log.8", "log.9"])
    ('log.10', 'log.8')
    """
    return next((pair for pair in pairwise(names) if _numbers(pair[0]) > _numbers(pair[1]) and _are_alike(*pair)), None)


def in_equal_lengths(name: str, other: str) -> str:
    """The name with its numbers as long as those of the other, which has the same text between them.

    >>> in_equal_lengths("in/log.8", "in/log.10")
    'log.08'
    """
    lengths = iter([len(number) for number in re.findall(r"\d+", other)])
    return re.sub(r"\d+", lambda number: number[0].zfill(next(lengths, 0)), name).rpartition("/")[2]


def _numbers(name: str) -> list[int]:
    return list(map(int, re.findall(r"\d+", name)))


def _are_alike(name: str, other: str) -> bool:
    """Whether two names have the same text between their numbers."""
    return re.split(r"\d+", name) == re.split(r"\d+", other)
