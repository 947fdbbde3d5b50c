"""What a notebook shows of runs: the plan with numbers, drawn anew while the run goes on, and its end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.harness.browser import overlapping_texts, texts_beside_their_cards
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime import tally
from xmlstream.runtime.tally import Progress

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from pyspark.sql import SparkSession


class Cell:
    """What a cell of a notebook shows, one after the other."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def display(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Cell:
        assert raw
        assert display_id
        self.update(data, raw=raw)
        return self

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.shown.append(data["text/html"])


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    """This process is the kernel of a notebook."""
    found = Cell()
    shell = SimpleNamespace(kernel=object())
    module = SimpleNamespace(get_ipython=lambda: shell, display=SimpleNamespace(display=found.display))
    monkeypatch.setitem(sys.modules, "IPython", module)
    return found


@pytest.mark.parametrize("shell", [None, SimpleNamespace()])
def test_outside_of_a_notebook_nothing_is_shown(shell: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    progress = Progress(lambda: pytest.fail("nobody sees it"))
    progress.update(at_once=True)
    progress.clear()
    assert not progress


def test_it_is_drawn_anew_now_and_then_and_once_more_if_asked(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    progress = Progress(iter("abcd").__next__)
    progress.update()
    assert cell.shown == ["a"]
    progress.update(at_once=True)
    monkeypatch.setattr(tally, "EVERY_SECONDS", 0.0)
    progress.update()
    progress.clear()
    progress.update(at_once=True)
    assert cell.shown == ["a", "b", "c", ""]


@pytest.fixture
def counted(spark: SparkSession, tmp_path: Path) -> Callable[[], xs.Query]:
    reports = "".join(f"<r><hour>{hour}</hour></r><p:r><hour>{hour}</hour></p:r>" for hour in range(3))
    (tmp_path / "s.xml").write_text(f'<s xmlns:p="{PUNCT_NS}">{reports}</s>', encoding="utf-8")
    read = xs.read(spark, tmp_path / "s.xml", schema="hour INT", rowTag="r", schemes="hour")
    return lambda: read.group_by("hour").agg("count(*) AS n")


@pytest.mark.spark
def test_a_run_shows_how_it_goes_on_and_its_summary_the_plan_with_numbers(
    counted: Callable[[], xs.Query], tmp_path: Path, cell: Cell, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tally, "EVERY_SECONDS", 0.0)
    summary = counted().run(tmp_path / "out")
    assert "0 slices, 0 items in" in cell.shown[0]
    assert "<svg" in cell.shown[0]
    assert any("1 slice, " in shown and "3 in · " in shown for shown in cell.shown), cell.shown
    assert cell.shown[-1] == ""
    shown = summary._repr_html_()
    for words in ("<td>3</td>", "3 in · 3 out", "0 now · 3 purged", "2 punctuations"):
        assert words in shown
    page = browser.new_page()
    page.set_content(shown)
    assert overlapping_texts(page) == [] == texts_beside_their_cards(page)
    page.close()


@pytest.mark.spark
def test_a_query_that_runs_is_drawn_anew_where_it_is_shown_until_it_has_ended(
    counted: Callable[[], xs.Query], tmp_path: Path, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tally, "EVERY_SECONDS", 0.0)
    query: Any = counted().start(tmp_path / "out", tmp_path / "state")
    try:
        query._ipython_display_()
        query.processAllAvailable()
    finally:
        query.stop()
    assert "<p>The query is running" in cell.shown[0]
    assert "<p>The query has ended.</p>" in cell.shown[-1]
    assert "3 in · " in cell.shown[-1]
    monkeypatch.delitem(sys.modules, "IPython")
    with pytest.raises(NotImplementedError):  # whereupon IPython shows it in another way
        query._ipython_display_()
