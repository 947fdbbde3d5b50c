"""Files that rotate by rename: a renamed file is the same document, and each row is read once."""

from __future__ import annotations

import logging
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.harness.nights import AT_NIGHT, SEED
from xmlstream.punct_ns.errors import InputError
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import RangeParser
from xmlstream.sources.xml.splits.documents import Documents
from xmlstream.sources.xml.splits.slice_planner import Offset, Planner


class Rotating:
    """A program that writes rows to `log.xml`, which rotates, and a source that reads it, or its directory."""

    def __init__(self, home: Path, *, single: bool, on_replaced: str = "new", follow: bool = True) -> None:
        self.home, self.number, self.rows = home / "in", 0, list[int]()
        self.home.mkdir()
        path = self.home / "log.xml" if single else self.home
        given = {"path": str(path), "documentLog": str(home / "log"), "rowTag": "row", "schema": "h INT"}
        more = {"follow": str(follow).lower(), "keepOpen": str(not follow).lower(), "onReplaced": on_replaced}
        self.options = SourceOptions.parse({**given, **more})
        self.at = Offset()
        self.restart()
        self.begin()

    @property
    def file(self) -> Path:
        return self.home / "log.xml"

    def begin(self) -> None:
        self.file.write_text("<r>")

    def write(self, count: int, file: Path | None = None) -> None:
        with (file or self.file).open("a") as log:
            for _ in range(count):
                log.write(f"<row><h>{self.number}</h></row>")
                self.number += 1

    def end(self) -> None:
        with self.file.open("a") as log:
            log.write("</r>")

    def rotate(self, keep: int = 3) -> None:
        """Renames log.xml to log.xml.1, that to log.xml.2, and so on; the last one is removed."""
        names = [self.file, *(self.home / f"log.xml.{number}" for number in range(1, keep + 1))]
        names[-1].unlink(missing_ok=True)
        for old, new in reversed([*pairwise(names)]):
            if old.exists():
                old.rename(new)

    def restart(self) -> None:
        self.planner = Planner(self.options, Documents(self.options, log=True))

    def slice(self) -> list[int]:
        after, ranges = self.planner.advance(self.at, self.planner.sizes(self.at), None)
        self.at = Offset.from_json(after.json())
        parsed = (parsed for range_ in ranges for parsed in RangeParser(self.options).parse(range_))
        found: list[Any] = [value for one in parsed for value in one.tuples["h"].to_pylist()]
        self.rows += found
        return found


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("single", [False, True])
def test_rows_written_before_a_rename_are_read_and_none_twice(tmp_path: Path, single: bool, restarts: bool) -> None:
    log = Rotating(tmp_path, single=single)
    log.write(20)
    assert log.slice() == [*range(20)]
    log.write(20)
    log.rotate()
    log.begin()
    log.write(20)
    if restarts:
        log.restart()
    log.slice()
    log.slice()
    assert log.rows == [*range(60)]


def test_documents_of_a_directory_that_were_read_may_be_renamed(tmp_path: Path) -> None:
    """Whatever onReplaced says: a renamed document is the same."""
    log = Rotating(tmp_path, single=False, on_replaced="fail")
    for night in range(5):
        log.write(20)
        log.end()
        assert log.slice() == [*range(20 * night, 20 * night + 20)]
        log.rotate()
        assert log.slice() == []
        log.restart()
        log.begin()
    (log.home / "log.xml.1").rename(log.home / "old.xml")
    assert log.slice() == []


@pytest.mark.parametrize("single", [False, True])
def test_the_writer_may_go_on_with_the_renamed_file_until_the_new_one_has_text(tmp_path: Path, single: bool) -> None:
    log = Rotating(tmp_path, single=single)
    log.write(2)
    log.slice()
    log.rotate()
    log.slice()
    log.write(2, log.home / "log.xml.1")
    log.file.touch()  # as logrotate's `create`
    log.slice()
    log.write(2, log.home / "log.xml.1")
    log.begin()
    log.write(2)
    log.slice()
    log.slice()
    assert log.rows == [*range(8)]


def test_a_file_that_is_not_beside_its_successor_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = Rotating(tmp_path, single=True)
    log.write(2)
    log.slice()
    log.file.rename(tmp_path / "elsewhere")
    log.begin()
    log.write(3)
    with caplog.at_level(logging.WARNING):
        assert log.slice() == [2, 3, 4]
    assert "log.xml was replaced, and the file before is not beside it: what stands in that behind byte" in caplog.text


def test_a_single_file_that_was_renamed_stops_a_query_that_expects_no_other(tmp_path: Path) -> None:
    log = Rotating(tmp_path, single=True, on_replaced="fail")
    log.write(2)
    log.slice()
    log.rotate()
    log.begin()
    log.write(3)
    with pytest.raises(InputError, match="was replaced by another file"):
        log.slice()


def test_another_file_with_the_inode_of_one_that_was_read_is_another(tmp_path: Path) -> None:
    log = Rotating(tmp_path, single=False)
    log.write(3)
    log.end()
    log.slice()
    log.rotate()
    renamed = log.home / "log.xml.1"
    with renamed.open("r+") as file:  # in its place
        file.write("<r><row><h>7</h></row>")
    assert log.slice() == [7, 1, 2]


def test_a_second_name_of_a_document_is_read_as_before(tmp_path: Path) -> None:
    log = Rotating(tmp_path, single=False)
    log.write(2)
    log.end()
    log.slice()
    (log.home / "linked.xml").hardlink_to(log.file)
    assert log.slice() == [0, 1]


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("seed", range(SEED, SEED + (2000 if AT_NIGHT else 40)))
def test_each_row_of_a_log_is_read_once_however_it_rotates(tmp_path: Path, single: bool, seed: int) -> None:
    """Rows, rotations, restarts and slices in any order; a rotation only once the file before is being read."""
    drawn = random.Random(f"{single} {seed}")
    log = Rotating(tmp_path, single=single)
    is_read, ends = False, not single and drawn.random() < 0.5
    for _ in range(drawn.randint(5, 25)):
        match drawn.choice(["write", "write", "slice", "rotate", "restart"]):
            case "write":
                log.write(drawn.randint(1, 3))
            case "slice":
                log.slice()
                is_read = log.at.byte > 0 and bool(log.rows) and log.rows[-1] == log.number - 1
            case "restart":
                log.restart()
            case _ if is_read:
                log.write(drawn.randint(0, 2))
                if ends:
                    log.end()
                log.rotate()
                if drawn.random() < 0.5:
                    log.slice()
                if drawn.random() < 0.5:
                    log.write(0 if ends else 1, log.home / "log.xml.1")
                log.begin()
                log.write(1)
                is_read = False
    for _ in range(3):
        log.slice()
    assert log.rows == [*range(log.number)]
