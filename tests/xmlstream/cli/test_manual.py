"""The manual: every page under a topic, in a pager or as Markdown, and as HTML whose links lead somewhere."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from lxml import html

from tests.harness.pages import PAGES, text
from xmlstream.cli import manual
from xmlstream.cli.commands import main

Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Say:
    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["xmlstream", "manual", *map(str, arguments)])
        with pytest.raises(SystemExit) as raised:
            main()
        return int(str(raised.value.code)), *capfd.readouterr()

    return run


def test_every_page_has_a_topic_and_a_line(say: Say) -> None:
    assert {page.path for page in manual.pages()} == set(PAGES)
    topics = [page.topic for page in manual.pages()]
    assert len(set(topics)) == len(topics) == len({page.line for page in manual.pages()})
    code, out, _ = say()
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[2 : 2 + len(topics)]] == topics
    assert re.search(r"^sources +how XML is read: xmlstream infer", out, re.MULTILINE)


def test_every_topic_has_its_line_in_the_list() -> None:
    assert [page.topic for page in manual.pages()] == list(manual._LINES)


def test_without_a_terminal_a_page_is_printed_as_markdown(say: Say) -> None:
    code, out, _ = say("Architecture")
    assert code == 0
    assert out.partition("\n")[0] == text("xmlstream/README.md").partition("\n")[0]


@pytest.mark.parametrize("page", manual.pages(), ids=lambda page: page.topic)
def test_what_a_printed_page_leads_to_is_a_topic(page: manual.Page) -> None:
    printed = manual.printed(page)
    assert re.findall(r"\]\((?!https?:|mailto:)[^)]*\.md[^)]*\)", printed) == []
    for topic in re.findall(r"`xmlstream manual ([a-z]\w+)`", printed):
        assert manual.page_of_topic(topic).topic == topic
    assert "(`xmlstream manual " in printed or not re.search(r"\]\([^)]*\.md", page.text)
    assert not re.search(r"!\[|<picture|\.(?:png|svg)\)", printed)
    fenced = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
    assert fenced.findall(printed) == fenced.findall(page.text)


def test_the_site_is_named_once_the_readme_names_it(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tomllib.loads(text("pyproject.toml"))["project"]["urls"]["Documentation"]
    assert (site in say()[1]) == (site in text("README.md"))
    monkeypatch.setattr(manual.Page, "text", f"[The same pages]({site})")
    assert say()[1].endswith(f"The same with a search: {site}\n")


@pytest.mark.parametrize(
    ("topic", "hint"), [("recievers", "did you mean receivers?"), ("zzz", "there are readme, tutorial, cookbook,")]
)
def test_an_unknown_topic_is_bad_usage(topic: str, hint: str, say: Say) -> None:
    code, out, err = say(topic)
    assert (code, out) == (2, "")
    assert err.startswith(f"the manual has no page {topic}\n  Hint: {hint}")


def test_a_terminal_gets_a_pager(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    seen: list[str] = []
    monkeypatch.setattr("pydoc.pager", seen.append)
    monkeypatch.setenv("TERM", "xterm")
    manual.show("# Sources\n\nof *XML*\n")
    (shown,) = seen
    assert "Sources" in shown
    assert "#" not in shown


def test_the_links_and_pictures_of_the_html_lead_somewhere(say: Say, tmp_path: Path) -> None:
    code, out, _ = say("monitor", "--html", tmp_path)
    assert (code, out) == (0, f"{tmp_path / 'xmlstream' / 'monitor' / 'README.html'}\n")
    trees = {file: html.parse(file) for file in tmp_path.rglob("*.html")}
    assert len(trees) == len(PAGES)
    links = 0
    for file, tree in trees.items():
        for link in tree.xpath("//@href | //@src | //@srcset"):
            if link.startswith("https://"):
                continue
            links += 1
            path, _, heading = link.partition("#")
            target = (file.parent / path).resolve() if path else file
            assert target.is_file(), (file, link)
            assert not heading or trees[target].xpath("//*[@id=$id]", id=heading), (file, link)
    assert links > 100
