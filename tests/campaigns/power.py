"""The campaign of lost power: the file operations of a run are recorded, and the disk is cut off behind each of them.

    .ci/java .venv/bin/python -m tests.campaigns.power [--seed N] [--states 200]

A run over documents that it removes or archives is recorded by strace: what it writes, names, removes and syncs. From
the record states of the disk are derived. Input and checkpoint count as two file systems, each of which has, of what
was not synced, nothing; all names, without the data or with zeros in their place; or everything. In each state the
query is run again. Its rows must be there once, and each document in the input or whole in the archive.

Where strace is missing, or may not trace, the campaign says so and is passed over.
"""

from __future__ import annotations

import argparse
import errno
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import count, product
from pathlib import Path
from typing import Literal
from unittest import mock

import xmlstream as xs
from xmlstream.dataclasses import dataclass, field
from xmlstream.punct_ns.errors import XmlStreamError
from xmlstream.punct_ns.xml_form import PUNCT_NS

Left = Literal["synced", "names", "zeros", "all"]
"""What a file system has of what was not synced."""

LEFT: tuple[Left, ...] = ("synced", "names", "zeros", "all")

DOCUMENTS, ROWS = 4, 3

_CALLS = "openat,write,pwrite64,writev,lseek,ftruncate,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,"
TRACED = f"{_CALLS}link,linkat,fsync,fdatasync,copy_file_range,sendfile"
"""The system calls that change files, their names, or what is durable of them."""


@dataclass(frozen=True, slots=True)
class Call:
    """A system call that has succeeded: its name, the paths and data in it, other arguments, and its result."""

    name: str
    texts: tuple[bytes, ...]
    paths: tuple[str, ...]
    arguments: str
    result: int


_LINE = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+)")
_PATH, _TEXT = re.compile(r"<((?:\\x[0-9a-f]{2})*)(?:\(deleted\))?>"), re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


def calls(record: Path) -> Iterator[Call]:
    """The calls of a record of strace, in the order in which they returned."""
    begun: dict[str, str] = {}
    for line in record.read_text(errors="replace").splitlines():
        process = line.split(" ", 1)[0]
        if line.endswith("<unfinished ...>"):
            begun[process] = line.removesuffix("<unfinished ...>").rstrip()
            continue
        if found := re.match(r"^\d+ +<\.\.\. \w+ resumed>(.*)", line):
            line = begun.pop(process, "") + found[1]  # noqa: PLW2901 - the line as a whole
        if (found := _LINE.match(line)) and int(found[3]) >= 0:
            paths = tuple(_bytes(text).decode() for text in _PATH.findall(line))
            texts = tuple(map(_bytes, _TEXT.findall(found[2])))
            yield Call(found[1], texts, paths, _TEXT.sub("", found[2]), int(found[3]))


def _bytes(escaped: str) -> bytes:
    return bytes.fromhex(escaped.replace("\\x", ""))


@dataclass(slots=True)
class File:
    """A file: its content, what of it is durable, and when it was written, by which no two are equal."""

    content: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    time: int = field(default_factory=count(10**18, 10**9).__next__)

    def left(self, how: Left) -> bytes:
        """Its content after the power was lost."""
        if how == "all":
            return bytes(self.content)
        missing = len(self.content) - len(self.durable)
        return self.durable + (b"\0" * missing if how == "zeros" else b"")


@dataclass(slots=True)
class Disk:
    """The files and directories below some roots, and which of their names are durable."""

    roots: Sequence[str]
    now: dict[str, File | None] = field(default_factory=dict)
    durable: dict[str, File | None] = field(default_factory=dict)
    _at: dict[tuple[str, str], int] = field(default_factory=dict)

    def has(self, path: str) -> bool:
        """Whether a path is below one of the roots."""
        return any(path == root or path.startswith(f"{root}/") for root in self.roots)

    def load(self) -> None:
        """Takes up what is there, as durable."""
        for root in self.roots:
            for path in (Path(root), *Path(root).rglob("*")):
                content = None if path.is_dir() else path.read_bytes()
                self.now[str(path)] = None if content is None else File(bytearray(content), content)
        self.durable = dict(self.now)

    def follow(self, call: Call) -> bool:
        """Does what a call has done; whether it has changed names, or what is durable."""
        texts = [text.decode("utf-8", "replace") for text in call.texts] if "write" not in call.name else []
        if not any(map(self.has, (*texts, *call.paths))):
            return False
        if call.name in ("fsync", "fdatasync"):
            self._sync(call.paths[0])
        elif texts:
            return self._name(call, texts)
        else:
            self._write(call)
            return call.name == "ftruncate"
        return True

    def _name(self, call: Call, texts: Sequence[str]) -> bool:
        """Opens, names, or removes a file or a directory; whether names have changed."""
        path = texts[0] if texts[0].startswith("/") else f"{call.paths[0]}/{texts[0]}"
        match call.name:
            case "openat":
                if "O_CREAT" in call.arguments:
                    self.now.setdefault(path, File())
                if isinstance(file := self.now.get(path), File):
                    if "O_TRUNC" in call.arguments:  # which may be on the disk at once
                        file.content, file.durable = bytearray(), b""
                    self._at[self._open(call, path)] = len(file.content) if "O_APPEND" in call.arguments else 0
                return "O_CREAT" in call.arguments
            case "rename" | "renameat" | "renameat2":
                for each in [each for each in self.now if each == path or each.startswith(f"{path}/")]:
                    self.now[texts[1] + each[len(path) :]] = self.now.pop(each)
            case "link" | "linkat":
                self.now[texts[1]] = self.now[path]
            case "mkdir" | "mkdirat":
                self.now[path] = None
            case _:
                self.now.pop(path, None)
        return True

    def _write(self, call: Call) -> None:
        """Writes to an open file, cuts it, or moves in it."""
        path, last = call.paths[0], call.arguments.rpartition(", ")[2]
        key, file = self._open(call, path), self.now.get(path)
        match call.name:
            case "lseek":
                self._at[key] = call.result
            case "write" | "pwrite64" | "writev" if isinstance(file, File):
                at = int(last) if call.name == "pwrite64" else self._at.get(key, 0)
                data = b"".join(call.texts)[: call.result]
                file.content[at : at + len(data)] = data
                self._at[key] = at + len(data)
            case "ftruncate" if isinstance(file, File):
                file.content = file.content[: int(last)].ljust(int(last), b"\0")
                file.durable = file.durable[: int(last)]
            case "sendfile" if isinstance(file, File):
                begin, source = int(re.findall(r"\[(\d+)\]", call.arguments)[0]), self.now[call.paths[1]]
                assert isinstance(source, File)
                at, data = self._at.get(key, 0), bytes(source.content[begin:][: call.result])
                file.time = source.time  # as of a copy that keeps it
                file.content[at : at + len(data)] = data
                self._at[key] = at + len(data)
            case "copy_file_range":
                raise NotImplementedError(f"{call.name} to {path}")

    def _open(self, call: Call, path: str) -> tuple[str, str]:
        """An open file: its number, and its path."""
        number = str(call.result) if call.name == "openat" else call.arguments.partition("<")[0]
        return number, path

    def _sync(self, path: str) -> None:
        if isinstance(file := self.now.get(path), File):
            file.durable = bytes(file.content)
            return
        for each in [each for each in {*self.now, *self.durable} if each.rpartition("/")[0] == path]:
            if each in self.now:
                self.durable[each] = self.now[each]
            else:
                del self.durable[each]

    def left(self, root: str, how: Left) -> dict[str, bytes | None]:
        """What a root has after the power was lost: the contents by paths, None for directories."""
        names = self.durable if how == "synced" else self.now
        below = {path: file for path, file in names.items() if path == root or path.startswith(f"{root}/")}
        return {
            path: None if file is None else file.left("names" if how == "synced" else how)
            for path, file in sorted(below.items())
            if path == root or _has_parents(path, root, below)
        }


def _has_parents(path: str, root: str, names: dict[str, File | None]) -> bool:
    above = [str(parent) for parent in Path(path).parents if str(parent) != root and str(parent).startswith(f"{root}/")]
    return all(parent in names for parent in above)


class Story:
    """A query over a directory of documents, which it removes or archives, perhaps on the other file system."""

    def __init__(self, home: Path, clean: str) -> None:
        self.home, self.clean = home, clean
        self.roots = [str(home / "input"), str(home / "query")]

    def begin(self) -> None:
        """Makes the documents."""
        shutil.rmtree(self.home, ignore_errors=True)
        for root in self.roots:
            Path(root).mkdir(parents=True)
        (self.home / "input" / "in").mkdir()
        for number in range(DOCUMENTS):
            rows = "".join(f"<r><id>{number * ROWS + each}</id></r>" for each in range(ROWS))
            text = f"<s xmlns:p='{PUNCT_NS}'>{rows}</s>"
            (self.home / "input" / "in" / f"{number}.xml").write_text(text)

    def run(self) -> None:
        """Runs the query over what is there."""
        more = "" if self.clean == "delete" else f", sourceArchiveDir '{self.archive}'"
        text = f"""CREATE TABLE s (id INT NOT NULL) USING punctuated_xml OPTIONS (path '{self.home}/input/in',
            rowTag 'r', maxFilesPerSlice 1, cleanSource '{self.clean.partition(" ")[0]}'{more}); SELECT id FROM s"""
        place = self.home / "query"
        query = xs.from_sql(xs.open_session(engine="duckdb"), text)
        with mock.patch.object(Path, "rename", lambda path, to: self._renamed(path, Path(to))):
            query.run(output=place / "out", checkpoint=place / "state", keep_open=True)

    @property
    def archive(self) -> Path:
        """Where documents are archived: on the file system of the input, or on the other one."""
        return self.home / ("query" if self.clean == "archive elsewhere" else "input") / "old"

    def _renamed(self, path: Path, to: Path) -> Path:
        if any(path.is_relative_to(root) != to.is_relative_to(root) for root in self.roots):
            raise OSError(errno.EXDEV, "another file system")
        path.replace(to)
        return to

    def recorded(self, record: Path) -> bool:
        """Runs the query in a process that is traced; whether that could be."""
        run = [sys.executable, "-m", "tests.campaigns.power", "--run", str(self.home), self.clean]
        trace = ["strace", "-f", "-qq", "-y", "-xx", "-s", "1000000", "-e", f"trace={TRACED}", "-o", str(record)]
        return subprocess.run([*trace, *run], check=False).returncode == 0 and record.exists()

    def restore(self, disk: Disk, left: Sequence[Left]) -> None:
        """Makes the directories as they are after a loss of power."""
        written = {path: file.time for path, file in {**disk.now, **disk.durable}.items() if file is not None}
        for root, how in zip(self.roots, left, strict=True):
            shutil.rmtree(root, ignore_errors=True)
            Path(root).mkdir(parents=True)
            for path, content in disk.left(root, how).items():
                if content is None:
                    Path(path).mkdir(exist_ok=True)
                else:
                    Path(path).write_bytes(content)
                    os.utime(path, ns=(0, written[path]))

    def fault(self) -> str:
        """What is wrong once the query has run again; empty if nothing is."""
        try:
            self.run()
            self.run()  # what a start removes, the next one does not miss
        except XmlStreamError as error:
            return f"refused: {error}"
        out = sorted((self.home / "query" / "out").glob("slice-*.xml"))
        ids = sorted(int(id_) for path in out for id_ in re.findall(r"<id>(\d+)</id>", path.read_text()))
        if ids != [*range(DOCUMENTS * ROWS)]:
            return f"rows {ids}"
        if self.clean != "delete":
            kept = [*self.archive.glob("*.xml"), *(self.home / "input" / "in").glob("*.xml")]
            whole = sorted(path.name for path in kept if path.read_text().endswith("</s>"))
            if whole != [f"{number}.xml" for number in range(DOCUMENTS)]:
                return f"documents {whole} of {sorted(path.name for path in kept)}"
        return ""


def search(home: Path, clean: str, states: int, seed: int) -> tuple[int, list[str]]:
    """Restarts a story in some of its states; how many, and the faults."""
    story, record = Story(home / "story", clean), home / f"{clean}.strace"
    story.begin()
    disk = Disk(story.roots)
    disk.load()
    if not story.recorded(record):
        return 0, []
    done = list(calls(record))
    points = [number for number, call in enumerate(done) if disk.follow(call)]
    drawn = random.Random(f"{clean} {seed}")
    # The last one is behind the last call: nothing is missing that was synced.
    every = [*product([*points, len(done) - 1], LEFT, LEFT)]
    chosen = sorted(drawn.sample(every, min(states, len(every))), key=lambda one: one[0])
    story.begin()
    disk = Disk(story.roots)
    disk.load()
    faults, at = [], 0
    for point, *left in chosen:
        while at <= point:
            disk.follow(done[at])
            at += 1
        story.restore(disk, left)
        if fault := story.fault():
            faults.append(f"{clean}, behind call {point} {done[point].name} {done[point].paths}, {left}: {fault}")
            print(f"power: {faults[-1]}", flush=True)
    return len(chosen), faults


def main() -> int:
    """Runs it; whether there was a fault."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--states", type=int, default=200)
    arguments.add_argument("--run", nargs=2)
    given = arguments.parse_args()
    if given.run:
        Story(Path(given.run[0]), given.run[1]).run()
        return 0
    if shutil.which("strace") is None:
        print("power: passed over, since strace is not installed")
        return 0
    total, faults = 0, list[str]()
    with tempfile.TemporaryDirectory() as home:
        for clean in ("delete", "archive", "archive elsewhere"):
            states, found = search(Path(home), clean, given.states, given.seed)
            if not states:
                print("power: passed over, since strace may not trace here")
                return 0
            total, faults = total + states, [*faults, *found]
    print(f"power: {total} restarts after a loss of power, {len(faults)} of them wrong")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
