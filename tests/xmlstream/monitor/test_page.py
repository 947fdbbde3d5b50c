"""The page in a browser: its numbers are those of the run, who lacks what is named, and all text is text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.browser import overlapping_texts
from tests.xmlstream.monitor.test_monitor import ROOT, altered, overdue, record, served
from xmlstream.monitor.lateness import LastingCause
from xmlstream.monitor.monitor import Monitor
from xmlstream.monitor.run_view import RunView
from xmlstream.plan.nodes import names
from xmlstream.runtime.watching import Watched
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SCRIPT = "<script>document.title = 'taken over'</script><img src=x onerror=\"document.title = 'taken over'\">"


@contextmanager
def seen(browser: Browser, monitor: Monitor, scheme: str = "light", wide: int = 1200) -> Iterator[Page]:
    """The page of a monitor; nothing on it may go wrong."""
    page = browser.new_page(color_scheme=scheme, viewport={"width": wide, "height": 800})  # type: ignore[arg-type]
    problems: list[str] = []
    page.on("console", lambda said: problems.append(said.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(monitor.where)
    yield page
    assert problems == []
    page.close()


def wait_for(page: Page, selector: str, text: str) -> None:
    page.locator(selector).filter(has_text=text).first.wait_for(timeout=300_000)


def test_an_input_that_lags_is_named_with_what_it_lacks_until_it_speaks(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as monitor, seen(browser, monitor) as page:
        monitor.committed(record(0, sensor1="<*, [,17], *, *>", sensor2="<*, [,16], *, *>"))
        wait_for(page, "#lacking", "sensor2: hour 17 is not closed, but others have closed it; missing: <*, 17, *, *>")
        wait_for(page, "#lacking", "; its last punctuation came ")
        wait_for(page, "#axes tr.lags", "lacks 17")
        page.fill("#value", "17")
        page.keyboard.press("Enter")
        wait_for(page, "#answer", "sensor2 must still send <*, 17, *, *>")
        monitor.committed(record(1, sensor2="<*, 17, *, *>"))
        wait_for(page, "#lacking", "nothing: no input lags behind the others")
        wait_for(page, "#axes tr.meet", "≤ 17")
        page.keyboard.press("Enter")
        wait_for(page, "#answer", "sensor2 has closed it")


def test_of_a_run_that_has_stopped_times_count_up_to_its_end(browser: Browser, tmp_path: Path) -> None:
    view = RunView()
    view.begun(Watched(ROOT, True, tmp_path, tmp_path, None))
    view.committed(record(0, sensor1="<*, [,17], *, *>", sensor2="<*, [,16], *, *>"))
    view.recorded("stopped", time="2026-01-01T00:05:00+00:00")
    monitor = Monitor("0", view)
    with seen(browser, monitor) as page:
        wait_for(page, "#lacking", "; its last punctuation came 5 min before the end")
    monitor.close()


def test_several_attributes_are_asked_of_together(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as monitor, seen(browser, monitor) as page:
        monitor.committed(record(0, sensor1="<*, [,17], *, *>"))
        wait_for(page, "#lacking", "sensor2")
        page.fill("#value", "17")
        page.click("#and")
        page.keyboard.type("60.5")
        chosen = page.locator("#ask select").evaluate_all("all => all.map(one => one.value)")
        assert chosen == ["hour", "maxtemp"]
        assert page.locator("#and").is_hidden()
        with page.expect_response("**/key.json?**") as asked:
            page.keyboard.press("Enter")
        assert asked.value.url.endswith("key.json?attribute=hour&value=17&attribute=maxtemp&value=60.5")
        wait_for(page, "#answer", "sensor2 must still send <*, 17, *, *>")


def test_it_connects_again_by_itself_where_another_run_serves(browser: Browser, tmp_path: Path) -> None:
    page = browser.new_page()
    with served(tmp_path) as monitor:
        port = monitor.where.rpartition(":")[2].strip("/")
        page.goto(monitor.where)
        wait_for(page, "#state", "running")
        monitor.close()  # as if it were killed: no end is told
        monitor.wait()
        wait_for(page, "#state", "no answer; trying again")
    with served(tmp_path, port) as again:
        again.committed(record(7, sensor1="<*, [,17], *, *>"))
        wait_for(page, "#state", "running")
        wait_for(page, "#axes", "≤ 17")
    page.close()


def test_what_is_not_exact_and_the_memory_of_processes_are_told_with_units(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as monitor, seen(browser, monitor) as page:
        memory = {"driver": 123_400_000, "java": 1_230_000_000, "java_heap": 99_000, "workers": 200_000_000}
        monitor.committed(altered(record(0), exact=False, memory=memory))
        wait_for(page, "#cards .late", "not exact")
        wait_for(page, "#figures", "1.55 GB")
        wait_for(page, "#charts h3", "Memory")


def test_what_has_computed_the_last_slice_is_told(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as monitor, seen(browser, monitor) as page:
        for number, (engine, told) in enumerate((("duckdb", "200 ms in process, "), ("spark", "200 ms on Spark, "))):
            monitor.committed(altered(record(number), engine=engine))
            wait_for(page, "#pulse", told)


def test_its_numbers_are_those_of_the_metrics(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as monitor, seen(browser, monitor) as page:
        for number in range(3):
            monitor.committed(record(number))
        wait_for(page, "#figures", "3")
        figures = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page.locator("#figures").inner_html())
        totals = monitor.view.totals.json()
        assert dict(figures) == {
            "slices": "3",
            "items in": str(totals["items_in"]),
            "tuples out": str(totals["tuples_out"]),
            "tuples kept": str(totals["kept"]),
            "punctuations held": str(totals["held"]),
            "set aside": "0",
        }
        wait_for(page, "#pulse", "slice 2 took 200 ms, ")
        wait_for(page, '[data-key="group_by kept"]', "2 now · 6 purged")
        wait_for(page, '[data-key="sensor1 sent"]', "6 punctuations")
        assert page.locator("#charts canvas").count() == 4


def test_a_chart_has_the_five_highest_lines_and_the_sum_of_the_others(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as monitor, seen(browser, monitor) as page:
        kept = [{"kept": 10 * (number + 1)} for number in range(len(names(ROOT)))]
        monitor.committed(altered(record(0), operators=kept))
        *others, fifth, fourth, third, second, first = names(ROOT).values()
        assert len(others) > 1
        wait_for(page, ".chart", f"{len(others)} others")
        labels = page.locator(".chart").first.locator(".u-legend .u-label").all_inner_texts()
        assert labels == ["slice", first, second, third, fourth, fifth, f"{len(others)} others"]


def test_what_grows_is_told(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as monitor, seen(browser, monitor) as page:
        for number in range(12):
            monitor.committed(altered(record(number), operators={"kept": 10 * number}))
        wait_for(page, '[data-key="group_by kept"].late', "110 now · 24 purged, growing")


def test_that_results_are_not_exact_is_told_and_of_which_operator(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as monitor, seen(browser, monitor) as page:
        monitor.committed(record(0))
        wait_for(page, '[data-key="group_by kept"]', "2 now · 2 purged")
        wait_for(page, "#cards", "Answering")
        assert page.locator("#cards .late").count() == 0
        monitor.committed(overdue(1))
        wait_for(page, "#cards .late", "not exact")
        wait_for(page, '[data-key="group_by kept"].late', "2 now · 4 purged, 1 overdue")


@pytest.mark.parametrize(("late", "tone"), [(False, "late"), (True, "bad")])
def test_answering_is_red_only_where_a_promise_is_late(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool, tone: str
) -> None:
    given = {"source": "in4", "rule": None, "rows": 3, "results": (), "since": None, "missing": ("<7>",)}
    cause = LastingCause(**given, is_last=True, input="in4", behind=True)  # type: ignore[arg-type]
    stands = {"tone": "late", "text": "waits for in4", "word": "", "time": ""}
    need = {"source": "in4", "wanted": "<7>", "missing": ["<7>"], "rule": None}
    example = {"key": {"id": "7"}, "needs": [need], "since": None}
    waiting = {
        "waits": [{"operator": "d", "what": "groups", "count": 3, "blocks": True, "examples": [example]}],
        "causes": [cause.json()],
        "stands": stands,
        "sources": [],
        "operated": False,
        "declared": [],
    }
    result = {"name": "d", "tuples_out": 0, "last_out": None, "waits": ["in4"]}
    monkeypatch.setattr(RunView, "waiting", lambda _: {**waiting, "results": [result], "late": late})
    with served(tmp_path) as monitor, seen(browser, monitor) as page:
        monitor.committed(record(0))
        wait_for(page, f"#cards .{tone}", "Answering")


def test_a_tuple_with_a_script_is_text(browser: Browser, tmp_path: Path) -> None:
    letter = {"source": SCRIPT, "reason": SCRIPT, "document": SCRIPT, "raw": SCRIPT}
    (tmp_path / "sensor1-000000000.jsonl").write_text(json.dumps(letter) + "\n", encoding="utf-8")
    with served(tmp_path) as monitor, seen(browser, monitor) as page:
        findings = ({"source": SCRIPT, "kind": SCRIPT, "what": SCRIPT},)
        monitor.committed(altered(record(0), set_aside=1, findings=findings))
        wait_for(page, "#letters td", SCRIPT)
        wait_for(page, "#findings", SCRIPT)
        assert page.locator("#letters img, #findings img, #letters script").count() == 0
        assert "taken over" not in page.title()


def test_a_tuple_that_was_set_aside_is_shown_by_the_names_of_its_values(browser: Browser, tmp_path: Path) -> None:
    late = {"source": "group_by", "reason": "kept for long", "raw": {"sid": SCRIPT, "hour": 16, "maxtemp": None}}
    (tmp_path / "group_by-000000000.jsonl").write_text(json.dumps(late) + "\n", encoding="utf-8")
    with served(tmp_path) as monitor, seen(browser, monitor) as page:
        monitor.committed(altered(record(0, sensor1="<*, [,17], *, *>"), set_aside=1))
        wait_for(page, "#letters td.element", f"sid={SCRIPT}, hour=16, maxtemp=null")


def test_a_name_with_a_script_is_text(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path, name=SCRIPT) as monitor, seen(browser, monitor) as page:
        assert page.locator("h1").inner_text() == SCRIPT


def test_a_script_that_got_in_would_not_run(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as monitor:
        page = browser.new_page()
        page.goto(monitor.where)
        page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title = 1\">')")
        page.evaluate(
            "document.body.append(Object.assign(document.createElement('script'), {textContent: 'document.title = 2'}))"
        )
        page.wait_for_timeout(200)
        assert page.title() == "query – xmlstream"
        page.close()


def test_the_end_and_a_failure_are_told(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as monitor, seen(browser, monitor) as page:
        wait_for(page, "#state", "running")
        monitor.ended(ValueError("the disk is full"))
        wait_for(page, "#state.bad", "failed: the disk is full")


@pytest.mark.parametrize(("scheme", "wide"), [("light", 1200), ("dark", 1200), ("light", 380)])
def test_it_fits_light_and_dark_and_on_a_telephone(browser: Browser, tmp_path: Path, scheme: str, wide: int) -> None:
    with served(tmp_path) as monitor, seen(browser, monitor, scheme, wide) as page:
        monitor.committed(record(0, sensor1="<*, [,17], *, *>", sensor2="<*, [,16], *, *>"))
        wait_for(page, "#lacking", "sensor2")
        assert page.evaluate("document.documentElement.scrollWidth") <= wide
        assert overlapping_texts(page) == []
        background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert background == ("rgb(18, 23, 29)" if scheme == "dark" else "rgb(255, 255, 255)")


@pytest.mark.parametrize("wide", [1200, 700, 380])
def test_no_moment_is_broken_at_its_hyphens(browser: Browser, tmp_path: Path, wide: int) -> None:
    tables = "".join(
        f"CREATE TABLE {name} (ts TIMESTAMP) USING punctuated_xml"
        f" OPTIONS (path '{name}.xml', rowTag 't', schemes 'ts prefix');\n"
        for name in ("s1", "s2")
    )
    root = read(f"{tables}SELECT ts FROM s1 UNION ALL SELECT ts FROM s2").sketch()
    moments = [f"2003-05-15T17:{minute}:30.123456Z" for minute in (20, 21, 27, 28, 29)]
    with served(tmp_path, root=root) as monitor, seen(browser, monitor, wide=wide) as page:
        said = "<[{1},{2}]>; <{3}>; <{4}>".format(*moments)
        monitor.committed(record(0, s1=f"<(,{moments[0]}]>", s2=said))
        wait_for(page, "#axes", moments[2])
        rects = "all => all.filter(one => one.getClientRects().length > 1).map(one => one.textContent)"
        assert page.locator("#axes .whole").count() >= 4
        assert page.locator(".whole").evaluate_all(rects) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= wide


def test_it_is_used_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as monitor, seen(browser, monitor) as page:
        monitor.committed(record(0, sensor1="<*, [,17], *, *>"))
        wait_for(page, "#lacking", "sensor2")
        reached = set()
        for _ in range(14):
            page.keyboard.press("Tab")
            reached.add(
                page.evaluate(
                    "document.activeElement.id || document.activeElement.className || document.activeElement.tagName"
                )
            )
        assert {"A", "attribute", "value", "BUTTON", "picture"} <= reached
