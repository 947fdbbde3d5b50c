"""Tasks of a small slice, handed to the driver: those that were planned, of that slice and no other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from xmlstream.sources.xml.slices import planned_tasks
from xmlstream.sources.xml.slices.micro_batches import ReadTask
from xmlstream.sources.xml.slices.planned_tasks import hand_over, handed_over
from xmlstream.sources.xml.splits.byte_ranges import ByteRange

FIRST = ByteRange("/in/é\udcff.xml", 7, 0, 90, open=("<a b='1'>", "<c>"), namespaces=("urn:x", None))
TASKS = [ReadTask((FIRST, replace(FIRST, start=90, end=120, ends="root", close=True))), ReadTask((FIRST,), reader=1)]


def offset(byte: int) -> dict[str, Any]:
    return {"a": {"byte": byte, "open": []}}


START, END, LATER = map(offset, (0, 120, 130))


def test_the_tasks_of_a_slice_are_those_that_were_planned(tmp_path: Path) -> None:
    file = str(tmp_path / "tasks.json")
    assert handed_over(file, START, END) is None
    hand_over(file, START, END, TASKS)
    assert handed_over(file, START, END) == TASKS
    hand_over(file, START, START, [])
    assert handed_over(file, START, START) == []


def test_the_tasks_of_another_slice_are_not_taken(tmp_path: Path) -> None:
    file = str(tmp_path / "tasks.json")
    hand_over(file, START, END, TASKS)
    assert handed_over(file, START, LATER) is None
    assert handed_over(file, END, END) is None


def test_a_large_slice_is_left_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = str(tmp_path / "tasks.json")
    hand_over(file, START, END, TASKS)
    monkeypatch.setattr(planned_tasks, "SMALL", 209)
    hand_over(file, START, END, TASKS)
    assert handed_over(file, START, END) is None
    assert not [*tmp_path.iterdir()]
