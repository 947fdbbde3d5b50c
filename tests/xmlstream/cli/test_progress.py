"""What a terminal shows of a run: inputs with what they have closed and lack, and what is waited for."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.xmlstream.monitor.test_monitor import ROOT, record
from xmlstream.cli import progress
from xmlstream.cli.progress import LiveTable, shown, waited_for
from xmlstream.monitor.closed_map import Axis, AxisRow, Meet
from xmlstream.monitor.run_view import RunView
from xmlstream.runtime.watching import Watched


@pytest.fixture
def view(tmp_path: Path) -> RunView:
    found = RunView()
    found.begun(Watched(ROOT, True, tmp_path, tmp_path))
    return found


def seen(table: LiveTable) -> list[str]:
    out = StringIO()
    Console(file=out, width=120).print(table)
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_it_shows_inputs_with_what_they_have_closed_and_lack(view: RunView) -> None:
    table = LiveTable(view, follow=False)
    assert "no slice yet" in seen(table)[0]
    slice_ = record(0, sensor1="<*, [,17], *, *>", sensor2="<*, [,16], *, *>")
    view.committed(slice_)
    table.slice(slice_.report)
    assert seen(table)[:3] == ["input tuples closed lacks", "sensor1 2 hour ≤ 17", "sensor2 2 hour ≤ 16 17"]
    assert "1 slice, 7 items" in seen(table)[3]


def test_a_run_that_follows_says_what_it_waits_for_once_nothing_moves(
    view: RunView, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, silent = LiveTable(view, follow=True), LiveTable(view, follow=False)
    slice_ = record(0, sensor1="<*, 17, *, *>")
    view.committed(slice_)
    table.slice(slice_.report)
    silent.slice(slice_.report)
    assert not any("no slice for" in line for line in seen(table))
    monkeypatch.setattr(progress, "IDLE_SECONDS", 0.0)
    assert seen(table)[-1] == "no slice for 0 s; waits for sensor2 to send <*, 17, *, *>"
    assert not any("no slice for" in line for line in seen(silent))


def test_what_is_waited_for_where_nobody_lags() -> None:
    assert waited_for([]) == "waits for more input"
    assert waited_for([AxisRow("s1", "hour", [], "nothing yet")]) == "waits for s1, which has closed no hour yet"


def test_markup_in_a_value_is_text(view: RunView, monkeypatch: pytest.MonkeyPatch) -> None:
    table = LiveTable(view, follow=False)
    slice_ = record(0, sensor1="<*, 1, *, *>")
    view.committed(slice_)
    table.slice(slice_.report)
    axis = Axis("a", "STRING", "text", [], [], [], (AxisRow("[bold]s", "a", [], "[red]x", "[/]"),), Meet([], ""))
    monkeypatch.setattr(view, "closed", lambda: [axis])
    assert "[bold]s a [red]x [/]" in seen(table)


def test_on_no_terminal_the_first_slice_has_a_line_and_others_if_verbose(view: RunView) -> None:
    for verbose in (True, False):
        out = StringIO()
        with shown(Console(file=out), view, verbose=verbose, follow=True) as on_slice:
            on_slice(record(0).report)
            assert out.getvalue().startswith("slice 0: ")
            on_slice(replace(record(0).report, closed=True))
        assert out.getvalue().count("\n") == 1 + verbose
