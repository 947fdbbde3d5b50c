"""Closed strings that lie on disk: what is missing is not what was said long ago."""

from __future__ import annotations

from pathlib import Path

import pytest

from xmlstream.diagnosis.kept_rows import ClosedOnDisk
from xmlstream.operators.state.closed_set import ConstantRuns
from xmlstream.operators.storage.segments import SegmentStore
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema

SCHEMA = Schema.parse("sid STRING, n INT")


@pytest.fixture
def stored(tmp_path: Path) -> ClosedOnDisk:
    store = SegmentStore(None, tmp_path)  # type: ignore[arg-type]
    store.begin(0)
    runs = ConstantRuns(store)
    runs.add(["b", "d"])
    runs.add(["c"])
    return ClosedOnDisk(tmp_path, SCHEMA, {"added sid": runs.record()})


@pytest.mark.parametrize(
    ("asked", "found"),
    [("<b, *>", ["<b, *>"]), ("<a, *>", []), ("<{a,b,c,d,e}, *>", ["<{b,d}, *>", "<c, *>"]), ("<[a,e], 1>", [])],
)
def test_what_a_punctuation_names_is_looked_up(stored: ClosedOnDisk, asked: str, found: list[str]) -> None:
    closed = sorted(
        value for p in stored.named(Punctuation.parse(asked, SCHEMA)) for value in str(p)[1:-4].strip("{}").split(",")
    )
    assert closed == sorted(value for text in found for value in text[1:-4].strip("{}").split(","))


def test_all_of_them_are_read_and_counted(stored: ClosedOnDisk) -> None:
    assert [str(p) for p in stored.all()] == ["<{b,d}, *>", "<c, *>"]
    assert stored.rows == {"sid": 3}
    assert ClosedOnDisk(Path(), SCHEMA, {}).rows == {}
