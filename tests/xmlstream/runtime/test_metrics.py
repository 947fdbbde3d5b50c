"""The metrics file: a line for each committed slice, whatever was written there before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from xmlstream.punct_ns.errors import UsageError
from xmlstream.runtime.checkpoint.slice_report import SliceReport
from xmlstream.runtime.metrics import MetricsFile


def report(slice_id: int, seconds: float = 0.5) -> SliceReport:
    return SliceReport(slice=slice_id, seconds=seconds, items_in=3, tuples_out=1)


def lines(path: Path) -> list[tuple[int, float]]:
    return [(line["slice"], line["seconds"]) for line in map(json.loads, path.read_text().splitlines())]


def test_a_second_query_goes_on_behind_the_first(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "metrics.jsonl"
    for seconds in (0.5, 0.7):
        file = MetricsFile(path)
        for slice_id in range(2):
            file.append(report(slice_id, seconds))
    assert lines(path) == [(0, 0.5), (1, 0.5), (0, 0.7), (1, 0.7)]


@pytest.mark.parametrize("reached", [True, False])
def test_the_last_slice_of_an_earlier_run_stands_there_once(reached: bool, tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    MetricsFile(path).append(report(0))
    if reached:
        MetricsFile(path).append(report(1))
    MetricsFile(path).restore(report(1))
    assert lines(path) == [(0, 0.5), (1, 0.5)]


@pytest.mark.parametrize("kept", [1, 20, -1])
def test_a_line_that_was_cut_off_goes(kept: int, tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    for slice_id in range(2):
        MetricsFile(path).append(report(slice_id))
    whole = path.read_bytes()
    second = whole.index(b"\n") + 1
    path.write_bytes(whole[: second + kept] if kept > 0 else whole[:kept])
    MetricsFile(path).restore(report(1))
    assert lines(path) == [(0, 0.5), (1, 0.5)]


def test_what_is_no_metrics_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("do not lose me")
    with pytest.raises(UsageError, match="ends in text that is not metrics"):
        MetricsFile(path)
    assert path.read_text() == "do not lose me"
