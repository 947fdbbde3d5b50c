"""Documents that were read are forgotten: each is read once, whatever comes, goes, returns and restarts."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xmlstream as xs
from tests.harness.file_damage import DAMAGES
from tests.harness.nights import AT_NIGHT
from xmlstream.punct_ns.errors import StateError
from xmlstream.runtime.checkpoint.checkpoint import Checkpoint
from xmlstream.runtime.checkpoint.commit_log import Commit
from xmlstream.runtime.checkpoint.remote_checkpoint import RemoteCheckpoint
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import RangeParser
from xmlstream.sources.xml.slices.sources_reader import SourcesReader
from xmlstream.sources.xml.splits import documents as documents_module
from xmlstream.sources.xml.splits import read_documents
from xmlstream.sources.xml.splits.documents import Documents

PLACES = "xmlstream.sources.places"


class Feed:
    """A directory, what was ever written to it, and a query's reader with its checkpoint."""

    def __init__(self, home: Path, *, url: str | None = None, glob: str = "", **options: str) -> None:
        self.home, self.url, self.glob = home, url, glob
        self.place = home / "in"
        self.place.mkdir()
        if glob:
            (self.place / "note").write_text("no document")
        self.options = options
        self.written = 0
        self.taken: set[int] = set()
        self.read: list[int] = []
        self.apart: dict[str, Path] = {}
        self.starts = 0
        self.restart()

    def restart(self) -> None:
        """A process that knows only the checkpoint; of one in a store, its working copy is new."""
        self.starts += 1
        self.state = self.home / ("state" if self.url is None else f"copy{self.starts}")
        if self.url is not None:
            mirror = RemoteCheckpoint(self.url, self.state)
            mirror.begin()
            self.checkpoint = Checkpoint(mirror)
        else:
            self.checkpoint = Checkpoint(self.state)
        self.log = self.state / "documents" / "s"
        given_ = {
            "path": str(self.place / self.glob),
            "rowTag": "row",
            "schema": "h INT",
            "onReplaced": "new",
            "follow": "true",
        }
        self.source = SourceOptions.parse({**given_, "documentLog": str(self.log), **self.options})
        self.reader = SourcesReader([Reading.of(self.source, name="s")])
        last = self.checkpoint.latest
        self.number, self.at = (0, self.reader.initial()) if last is None else (last.slice + 1, last.end)

    def write(self, name: str) -> None:
        """A document under a name, new or in the place of another."""
        self.written += 1
        path = self.place / name
        path.write_text(f"<r><row><h>{self.written}</h></row></r>")
        os.utime(path, ns=(0, self.written * 10**9))

    def remove(self, name: str) -> None:
        """Takes a document away."""
        if (self.place / name).exists():
            self.apart[name] = (self.place / name).rename(self.home / f"{name}-{self.written}")

    def put_back(self, name: str) -> None:
        """Puts a document back that was taken away, if its name is free."""
        if name in self.apart and not (self.place / name).exists():
            self.apart.pop(name).rename(self.place / name)

    def slice(self, *, dies: bool = False) -> list[int]:
        """A slice of all there is; it may die before its commit."""
        present = {
            int(path.read_text().split("<h>")[1].split("<")[0]) for path in self.place.iterdir() if path.name != "note"
        }
        end = self.reader.end(self.at, whole=True)
        if end == self.at:
            return []
        if self.number > 0:
            self.reader.commit(self.at)
        parsed = [
            each
            for task in self.reader.tasks(self.at, end)
            for each in RangeParser(self.source).parse_many(task.ranges)
        ]
        values = [value for (each,) in parsed for value in each.tuples["h"].to_pylist() if value is not None]
        if dies:
            self.restart()
            return []
        self.checkpoint.commit(Commit(self.number, end, whole=self.number % 3 == 0), [])
        self.number, self.at = self.number + 1, end
        self.taken |= present
        self.read += values
        return values

    @property
    def known(self) -> Documents:
        """The documents as the driver knows them."""
        (slicing,) = self.reader._slicings
        return slicing.documents


@contextmanager
def small(compacted: int = 2, recent: int = 2, many: int = 1 << 30) -> Iterator[None]:
    """With few documents all happens that happens with many."""
    with (
        mock.patch.object(read_documents, "COMPACTED", compacted),
        mock.patch.object(documents_module, "COMPACTED", compacted),
        mock.patch.object(read_documents, "_RECENT", recent),
        mock.patch(f"{PLACES}._MANY", many),
    ):
        yield


NAMES = st.sampled_from("abcdefgh")
STEPS = st.one_of(
    st.tuples(st.sampled_from(["write", "write", "remove", "put back"]), NAMES),
    st.tuples(st.sampled_from(["slice", "slice", "die", "restart"]), st.just("")),
)


@settings(max_examples=1_000 if AT_NIGHT else 25)
@given(st.lists(STEPS, max_size=60), st.booleans(), st.booleans(), st.booleans(), st.sampled_from(["", "[a-h]"]))
def test_each_document_is_read_once_whatever_comes_goes_and_restarts(
    steps: Sequence[tuple[str, str]], cleans: bool, many: bool, remote: bool, glob: str
) -> None:
    with tempfile.TemporaryDirectory() as home, small(many=1 if many else 1 << 30):
        url = f"memory://tests/{uuid.uuid4().hex}" if remote else None
        feed = Feed(Path(home), url=url, glob=glob, **({"cleanSource": "delete"} if cleans else {}))
        names, replaces = set[str](), False
        for what, name in [*steps, ("slice", ""), ("restart", ""), ("slice", "")]:
            match what:
                case "write":
                    replaces |= name in names
                    names.add(name)
                    feed.write(name)
                case "remove":
                    feed.remove(name)
                case "put back" if not cleans:
                    feed.put_back(name)
                case "slice" | "die":
                    if replaces:
                        vars(feed.known._place)["_next"] = 0.0  # in a large directory it is noticed a little later
                    feed.slice(dies=what == "die")
                case "restart":
                    feed.restart()
        assert sorted(feed.read) == sorted(set(feed.read)), "none is read twice"
        assert set(feed.read) == feed.taken, "none is left out"


@pytest.mark.parametrize("cleans", [False, True])
def test_of_documents_that_were_read_little_is_left_and_of_removed_ones_nothing(tmp_path: Path, cleans: bool) -> None:
    feed = Feed(tmp_path, **({"cleanSource": "delete"} if cleans else {}))
    with small(compacted=8, recent=4):
        for number in range(100):
            feed.write(f"{number:03}.xml")
            feed.slice()
        for path in [] if cleans else sorted(feed.place.iterdir())[:50]:
            path.unlink()
        with mock.patch.object(read_documents, "MISSING_SECONDS", -2):
            for number in range(100, 140):
                feed.write(f"{number:03}.xml")
                feed.slice()
    assert feed.read == list(range(1, 141))
    lying = len(list(feed.place.iterdir()))
    assert lying == (1 if cleans else 90)
    assert len(feed.known.known) == 140, "numbers go on"
    assert len(list(feed.known.known)) <= 2
    read = feed.known._read
    assert len(read._names) + len(read._recent) <= lying + 8
    assert read_documents.ROW.itemsize <= 40
    logs = sorted(path.stem.partition("-")[0] for path in feed.log.iterdir() if path.suffix == ".jsonl")
    assert logs == ["documents", "read"], "the files before are removed"
    assert sum(path.stat().st_size for path in feed.log.glob("*.jsonl")) < 80 * lying + 2_000
    feed.restart()
    assert feed.slice() == []


def test_a_document_that_was_missing_for_long_is_a_new_one_when_it_returns(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    with small(recent=1):
        feed.write("a")
        assert feed.slice() == [1]
        feed.remove("a")
        feed.write("b")
        assert feed.slice() == [2]
        feed.put_back("a")
        assert feed.slice() == [], "it was missing for a short time"
        feed.remove("a")
        feed.write("c")
        assert feed.slice() == [3]
        with mock.patch.object(read_documents, "MISSING_SECONDS", -2):
            feed.write("d")
            assert feed.slice() == [4]
        feed.put_back("a")
        assert feed.slice() == [1]


def test_compacted_logs_are_sealed_and_each_damage_of_one_is_found(tmp_path: Path) -> None:
    (tmp_path / "sound").mkdir()
    feed = Feed(tmp_path / "sound", cleanSource="delete")
    with small():
        for number in range(12):
            feed.write(f"{number:02}")
            feed.slice()
    feed.checkpoint.end()
    files = sorted(path for path in feed.log.iterdir() if path.suffix == ".jsonl")
    assert all("-" in path.name for path in files)
    for path in files:
        for damage in DAMAGES:
            copy = tmp_path / "copy"
            shutil.copytree(feed.state, copy)
            damage(copy / path.relative_to(feed.state))
            with pytest.raises(StateError):
                Checkpoint(copy)
            shutil.rmtree(copy)


def test_a_kill_between_a_compaction_and_its_commit_leaves_the_log_before(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    with small():
        for number in range(40):
            feed.write(f"{number:02}")
            feed.slice(dies=number % 2 == 0)
            feed.slice()
    assert feed.read == list(range(1, 41))


def test_a_name_that_the_query_has_freed_is_free_after_a_restart(tmp_path: Path) -> None:
    """The producer reuses the name of a document that the query has removed itself."""
    (tmp_path / "in").mkdir()
    options = {"rowTag": "r", "cleanSource": "delete", "maxFilesPerSlice": "1"}
    query = xs.read(xs.open_session(engine="duckdb"), tmp_path / "in", "k INT", **options)
    for run in range(4):
        names = ("a.xml", "b.xml") if run == 0 else ("a.xml",)
        for name in names:
            (tmp_path / "in" / name).write_text(f"<x><r><k>{run}</k></r></x>")
        done = query.run(tmp_path / "out", tmp_path / "state", keep_open=True)
        assert done.tuples_out == len(names)
    texts = [path.read_text() for path in (tmp_path / "out").glob("*.xml")]
    assert sorted(k for text in texts for k in re.findall("<k>(.)</k>", text)) == ["0", "0", "1", "2", "3"]
