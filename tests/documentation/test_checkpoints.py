"""The page of the checkpoint's format has each file, each record and each field that is written."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import pytest

from tests.harness.pages import ROOT, text
from xmlstream.operators.storage.records import CHECKPOINT_FORMAT, Record
from xmlstream.runtime.checkpoint.commit_log import PLANNED, Commit
from xmlstream.runtime.checkpoint.migrations import MIGRATIONS
from xmlstream.runtime.checkpoint.same_query import QueryRecord
from xmlstream.sources.xml.spark.spool import Batch
from xmlstream.sources.xml.splits.slice_planner import Offset, WaitingNote

PAGE = text("xmlstream/manual/checkpoints.md")
ROWS = {found[1]: found[2] for found in re.finditer(r"^\| `(\w+)` \| (.*) \|$", PAGE, re.MULTILINE)}
"""The records of the page, and what it says of each."""


def _records(type_: Any) -> Iterator[type[Record]]:
    """A record, and those in its fields."""
    for part in get_args(type_):
        yield from _records(part)
    if isinstance(type_, type) and issubclass(type_, Record):
        yield type_
        hints = get_type_hints(type_)
        for each in fields(type_):  # type: ignore[arg-type]
            yield from _records(hints[each.name])


WRITTEN = sorted(
    {each for root in (Commit, QueryRecord, Offset, WaitingNote, Batch) for each in _records(root)}, key=str
)


@pytest.mark.parametrize("record", WRITTEN, ids=lambda record: record.__name__)
def test_each_field_of_a_record_is_in_the_page_and_no_other(record: type[Record]) -> None:
    written = set(re.findall(r"`(\w+)`", ROWS[record.__name__])) - {each.__name__ for each in WRITTEN}
    assert written == {each.name for each in fields(record)}  # type: ignore[arg-type]


def test_each_file_of_a_checkpoint_is_in_the_page() -> None:
    table = PAGE.partition("## Files")[2].partition("## Records")[0]
    named = [
        each for row in re.findall(r"^\| (`.*?)\*? \| ", table, re.MULTILINE) for each in re.findall(r"`([^`]+)`", row)
    ]
    patterns = [_pattern(each) for each in named]
    files = set[str]()
    for path in (ROOT / "tests/data").glob("format-*.zip"):
        with zipfile.ZipFile(path) as archive:
            files |= {name.removeprefix("state/") for name in archive.namelist() if name.startswith("state/")}
    assert len(files) > 20
    assert {file for file in files if not any(pattern.fullmatch(file) for pattern in patterns)} == set()
    assert PLANNED in named


def _pattern(named: str) -> re.Pattern[str]:
    """The files that a name of the page stands for."""
    written = re.escape(named).replace("000000007", r"\d{9}").replace("…", ".*")
    for name in ("OPERATOR", "SOURCE"):
        written = written.replace(name, "[^/]+")
    return re.compile(written.removesuffix("/") + "/.*" if named.endswith("/") else written)


def test_the_page_has_each_format_from_which_a_query_goes_on() -> None:
    numbers = list(map(int, re.findall(r"^\| (\d+) \| \d{4}-", PAGE, re.MULTILINE)))
    assert numbers == [*MIGRATIONS, CHECKPOINT_FORMAT]
    assert f"in format {CHECKPOINT_FORMAT}," in PAGE
