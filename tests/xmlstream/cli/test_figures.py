"""Figures are drawn from what the metrics say, and from nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.experiments.state_figure import draw_state, read_metrics, state_curves
from xmlstream.punct_ns.errors import UsageError


def a_slice(number: int, items: int, **kept: int) -> dict[str, object]:
    operators = [{"name": n, "kept": k} for n, k in kept.items()]
    return {"slice": number, "items_in": items, "seconds": 0.5, "operators": operators}


def metrics_file(path: Path, *slices: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in slices))
    return path


def test_a_curve_runs_over_the_items_that_have_arrived() -> None:
    slices = [a_slice(0, 10, union=8, group_by=1), a_slice(1, 5, union=2, group_by=3)]
    assert state_curves(slices) == {
        "union": [(0, 0), (10, 8), (15, 2)],
        "group_by": [(0, 0), (10, 1), (15, 3)],
    }


def test_an_operator_that_keeps_nothing_has_no_curve() -> None:
    assert state_curves([a_slice(0, 10, project=0, union=1)]) == {"union": [(0, 0), (10, 1)]}


def test_without_a_slice_there_is_no_curve() -> None:
    assert state_curves([]) == {}


def test_the_figure_is_written_where_it_was_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figure = tmp_path / "figures" / "state.png"
    metrics = metrics_file(tmp_path / "plain.jsonl", a_slice(0, 10, union=8, group_by=1), a_slice(1, 1_000, union=2))
    draw_state(figure, [metrics, metrics_file(tmp_path / "other.jsonl", a_slice(0, 10, project=0))])
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.splitlines() == [
        "plain: 1,010 items in 2 slices, 1,010 items/s, never more than 9 tuples kept",
        "other: 10 items in 1 slice, 20 items/s, never more than 0 tuples kept",
        f"The state that each run kept, as a figure: {figure}",
    ]


def test_what_is_no_metrics_file_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "query.sql").write_text("SELECT")
    for name in ("query.sql", "missing.jsonl"):
        with pytest.raises(UsageError, match=name):
            read_metrics(tmp_path / name)
