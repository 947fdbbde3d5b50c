"""The picture of a plan: every operator with its verdict, nothing over anything else, all text as text."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from tests.harness.boxes import overlap
from tests.harness.browser import overlapping_texts, texts_beside_their_cards
from xmlstream.cli.commands import app
from xmlstream.drawing.canvas import Area, width
from xmlstream.operators.multiway_join import MultiwayJoin
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, names, source
from xmlstream.safety.explanation import explained
from xmlstream.safety.verdicts import judged
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from playwright.sync_api import Browser

DATA = Path(__file__).parents[3] / "data"
QUERIES = sorted(path for path in DATA.rglob("*.sql") if "CREATE" in path.read_text(encoding="utf-8"))
VARIABLES = {
    "AUCTIONS": "auctions",
    "SENSORS": "sensors",
    "FEED": "feed",
    "XMARK": "xmark.xml",
    "DATA": "data",
    "OUT": "out",
    "SITE": "site.xml",
}
SVG = "{http://www.w3.org/2000/svg}"


def plan(path: Path) -> Node:
    return optimized(read(path.read_text(encoding="utf-8"), VARIABLES, path.name).sketch())


def without_bidder() -> Node:
    """NEXMark 23, whose bids do not say which bidders have bid for the last time."""
    text = (DATA / "auctions" / "nexmark_q23.sql").read_text(encoding="utf-8")
    return optimized(read(text.replace("auction; bidder; dateTime", "auction; dateTime"), VARIABLES).sketch())


def ring(inputs: int, *, silent: int | None = None) -> Node:
    """A join of streams in a ring, each of which closes what the one before it asks; perhaps not one of them."""
    leaves = tuple(
        source(
            f"s{i}",
            SourceOptions.parse(
                {"path": "s.xml", "rowTag": "s", "schemes": "" if i == silent else f"a{i}"}, f"a{i} INT, b{i} INT"
            ),
        )
        for i in range(inputs)
    )
    equal = tuple(((i, f"b{i}"), ((i + 1) % inputs, f"a{(i + 1) % inputs}")) for i in range(inputs))
    return Node(MultiwayJoin(inputs, equal), leaves, "multiway_join")


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_each_operator_of_each_query_is_a_card_and_no_two_lie_over_each_other(path: Path) -> None:
    root = plan(path)
    drawing = ET.fromstring(explained(root, follow=True, format_="svg"))
    groups = [group for group in drawing.iter(f"{SVG}g") if group.get("class") == "operator"]
    assert {group.get("data-operator") for group in groups} == set(names(root).values())
    cards = []
    for group in groups:
        rect = group.find(f"{SVG}rect")
        assert rect is not None
        cards.append(Area(*(float(rect.get(name, "")) for name in ("x", "y", "width", "height"))))
    assert not any(overlap(one, other) for one, other in combinations(cards, 2))
    high, wide = float(drawing.get("height", "")), float(drawing.get("width", ""))
    assert all(card.right < wide and card.bottom < high for card in cards)


def test_verdicts_and_remedies_are_words_in_it() -> None:
    drawn = explained(without_bidder(), follow=True, format_="svg")
    said = " ".join("".join(text.itertext()) for text in ET.fromstring(drawn).iter(f"{SVG}text"))
    for words in (
        "keeps tuples of the right side for",
        "answers at once",
        "If bid can say of each bidder when its last",
    ):
        assert words in said
    assert said.count("lacks schemes 'bidder'") == 1
    assert "tuples of person are kept for ever: nothing leads to bid" in said


def test_each_input_of_a_ring_is_named_unless_they_are_too_many() -> None:
    drawn = explained(ring(6), follow=True, format_="svg")
    assert "tuples of each input are purged: from each, all others are reached" in drawn
    broken = explained(ring(6, silent=2), follow=True, format_="svg")
    assert "tuples of s3 are kept for ever: nothing leads to s2" in broken
    assert "tuples of 20 of its 20 inputs are purged" in explained(ring(20), follow=True, format_="svg")


def test_all_text_of_a_query_is_text() -> None:
    told = """CREATE TABLE `<b>` (`<i>` STRING) USING punctuated_xml OPTIONS (path '</svg>&', rowTag 'b');
    SELECT * FROM `<b>` WHERE `<i>` = '<script>alert(1)</script>'"""
    done = CliRunner().invoke(app, ["explain", "-", "--format", "html"], input=told, catch_exceptions=False)
    assert "<script" not in done.output
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in done.output
    ET.fromstring(explained(read(told).sketch(), format_="svg"))


def test_a_notebook_shows_the_picture_without_more_ado() -> None:
    from xmlstream.builder.query import Query

    query = Query(None, plan(DATA / "warehouse.sql"))  # type: ignore[arg-type]
    assert repr(query.explain()) == query.explain() == "\n".join(query.explain().splitlines())
    shown = query._repr_html_()
    assert shown.startswith("<svg ")
    assert "group_by" in shown


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_the_page_with_names_verdicts_and_remedies(
    browser: Browser, tmp_path: Path, scheme: str
) -> None:
    (tmp_path / "explained.html").write_text(explained(without_bidder(), follow=True, format_="html"), "utf-8")
    page = browser.new_page(color_scheme=scheme)  # type: ignore[arg-type]
    problems: list[str] = []
    page.on("console", lambda said: problems.append(said.text))
    page.goto(f"file://{tmp_path}/explained.html")
    seen = page.locator("body").inner_text()
    for one in judged(without_bidder(), follow=True).operators:
        assert one.name in seen
    assert (
        "declare schemes 'auction; dateTime prefix; bidder' in the options of bid."
        in page.locator("li.mend").first.inner_text()
    )
    assert page.locator("text.bad").count() >= 2
    colour = page.evaluate("getComputedStyle(document.querySelector('svg rect.paper')).fill")
    assert colour == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(18, 23, 29)")
    assert problems == []
    page.close()


@pytest.mark.parametrize("name", ["warehouse", "auctions/nexmark_q4", "auctions/nexmark_q9", "auctions/xmark_q10"])
def test_in_a_browser_no_text_lies_over_another_or_beside_its_card(browser: Browser, tmp_path: Path, name: str) -> None:
    (tmp_path / "drawn.svg").write_text(explained(plan(DATA / f"{name}.sql"), follow=True, format_="svg"), "utf-8")
    page = browser.new_page()
    page.goto(f"file://{tmp_path}/drawn.svg")
    assert overlapping_texts(page) == []
    assert texts_beside_their_cards(page) == []
    page.close()


@pytest.mark.parametrize("inputs", [3, 6, 12])
def test_in_a_browser_no_text_on_the_purges_of_a_join_lies_over_another(
    browser: Browser, tmp_path: Path, inputs: int
) -> None:
    (tmp_path / "drawn.svg").write_text(explained(ring(inputs, silent=1), follow=True, format_="svg"), "utf-8")
    page = browser.new_page()
    page.goto(f"file://{tmp_path}/drawn.svg")
    assert overlapping_texts(page) == []
    page.close()


def test_no_text_is_wider_in_a_browser_than_was_counted_on(browser: Browser) -> None:
    texts = ["The quick brown fox", "group_by: (hour) max(`currtmp`)", "WWWW@@@%%%", "iiiill..||", "≤ ∀ → … é ß 漢字"]
    page = browser.new_page()
    page.set_content(
        "<svg>" + "".join(f'<text font-size="20" font-family="DejaVu Sans">{text}</text>' for text in texts) + "</svg>"
    )
    measured = page.evaluate("[...document.querySelectorAll('text')].map(t => t.getComputedTextLength())")
    assert [m <= width(text, 20) for m, text in zip(measured, texts, strict=True)] == [True] * len(texts)
    page.close()


def test_what_stays_as_it_is_is_not_said_twice() -> None:
    drawn = explained(plan(DATA / "warehouse.sql"), format_="svg")
    assert not re.search(r">[^<]*hour AS hour[^<]*</text>", drawn)
