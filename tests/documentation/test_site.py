"""The site of the documentation: it builds without a warning, and everything has its place on it."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer.main

import xmlstream as xs
import xmlstream.testing as xt
from tests.harness.pages import PAGES, ROOT, blocks, first_cells, section, text
from xmlstream.cli.commands import app
from xmlstream.sink.target import SINKS

if TYPE_CHECKING:
    from playwright.sync_api import Browser

site: Any = import_module("tests.tools.site.__main__")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built by the command of `make docs`, in a process of its own and without Java."""
    out = tmp_path_factory.mktemp("site") / "docs"
    command = [sys.executable, "-m", "tests.tools.site", str(out)]
    without_java = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": ""}
    done = subprocess.run(command, cwd=ROOT, env=without_java, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return out


@pytest.fixture(scope="module")
def entries(built: Path) -> set[str]:
    """The entries of the reference: names of Python, and commands with their options."""
    inventory = (built / "objects.inv").read_bytes().split(b"\n", 4)[4]
    lines = zlib.decompress(inventory).decode().splitlines()
    return {line.split()[0] for line in lines if line.split()[1].startswith(("py:", "std:cmdoption"))}


def test_every_page_has_one_place_in_the_navigation() -> None:
    listed = [page for pages in site.listed().values() for page in pages]
    assert sorted(listed) == sorted({*PAGES, *site.REFERENCE})


def test_the_address_of_a_page_is_its_path(built: Path) -> None:
    for page in PAGES:
        assert (built / page).with_suffix(".html").exists()


def test_the_landing_page_has_a_picture_a_query_and_three_doors(built: Path) -> None:
    front = (built / "index.html").read_text(encoding="utf-8").split("<article")[1].split("</article>")[0]
    assert (front.count("<img "), front.count("<pre>")) == (1, 3)
    (doors,) = re.findall(r'<ul class="doors.*?</ul>', front, re.DOTALL)
    assert re.findall(r'href="([^"]+)"', doors) == [
        f"xmlstream/manual/{name}.html" for name in ("tutorial", "cookbook", "closing")
    ]


def test_the_landing_page_shows_what_its_query_answers_in_sql_and_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql, shown, python = (block.text for block in blocks(f"tests/tools/site/{site.LANDING}"))
    log = re.search(r"<power>.*</power>\n", text("README.md"), re.DOTALL)
    assert log is not None
    monkeypatch.chdir(tmp_path)
    Path("power.xml").write_text(log[0].replace("</power>", ""))
    session = xs.open_session(engine="duckdb")
    (part,) = itertools.islice(xs.from_sql(session, sql).slices(follow=True), 1)
    hours = [f"<hour>{row['hour']:%Y-%m-%dT%H:%M:%S.%fZ}</hour>" for row in part.tuples.to_pylist()]
    assert hours == re.findall("<hour>.*?</hour>", shown)
    assert [f"{row['highest']:g}" for row in part.tuples.to_pylist()] == re.findall("<highest>(.*?)</highest>", shown)
    printed: list[object] = []

    def printing(rows: object) -> None:
        printed.append(rows)
        sys.exit()

    names = {"print": printing}
    with pytest.raises(SystemExit):
        exec(python.replace("open_session()", "open_session(engine='duckdb')"), names)
    assert printed == [part.tuples.to_pylist()]


def test_copy_buttons_copy_what_is_typed_by_keyboard_too(built: Path, browser: Browser) -> None:
    """A block of SQL as it is; of a session in a shell its commands, without the prompts and what they print."""
    page = browser.new_page()
    page.add_init_script("navigator.clipboard.writeText = async (text) => { window.copied = text; };")
    page.goto((built / "index.html").as_uri())
    page.get_by_role("button", name="Copy").first.focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Copied").wait_for()
    query = blocks(f"tests/tools/site/{site.LANDING}")[0].text
    assert page.evaluate("copied") == query.rstrip()
    page.goto((built / "reference" / "commands.html").as_uri())
    page.locator(".highlight-console").first.get_by_role("button").click()
    page.wait_for_function("window.copied")
    assert re.match("xmlstream ", page.evaluate("copied"))
    page.close()


def test_a_page_fits_a_phone_and_has_its_contents_beside_it_on_a_small_screen(built: Path, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 380, "height": 800})
    for name in ("index.html", "xmlstream/manual/closing.html", "xmlstream/sql/README.html"):
        page.goto((built / name).as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 380, name
    assert page.locator(".table-wrapper.scrolls[tabindex='0']").count()
    assert page.locator(".toc-drawer").is_hidden()
    page.locator(".toc-header-icon").focus()
    page.keyboard.press("Enter")
    page.locator(".toc-drawer").get_by_role("link", name="Windows in time").wait_for()
    page.set_viewport_size({"width": 1200, "height": 800})
    page.reload()
    page.evaluate("scrollTo(0, 3000)")
    box = page.locator(".toc-tree").bounding_box()
    assert box
    assert box["x"] + box["width"] <= 1200
    assert 0 <= box["y"] < 800
    page.close()


def test_a_word_of_the_index_leads_to_its_heading(built: Path) -> None:
    written = (built / "genindex.html").read_text(encoding="utf-8")
    for (page, _), words in site.INDEX.items():
        for word in words.split(", ") if page in PAGES else ():
            assert re.search(rf'href="{page.removesuffix(".md")}\.html#index-\d+"><strong>{word}</strong>', written), (
                word
            )
    with pytest.raises(ValueError, match="no heading with 'Slices and checkpoints'"):
        site.indexed("xmlstream/runtime/README.md", "## Another heading")


def test_what_a_page_shows_and_leads_to_is_on_the_site(built: Path) -> None:
    links = 0
    for page in built.rglob("*.html"):
        for link in re.findall(r'(?:href|src)="([^"]+)"', page.read_text(encoding="utf-8")):
            place, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", place):
                continue
            target = page.parent / place.partition("?")[0] if place else page
            assert target.exists(), f"{page.relative_to(built)}: {link}"
            if anchor and target.suffix == ".html":
                assert f'id="{anchor}"' in target.read_text(encoding="utf-8"), f"{page.relative_to(built)}: {link}"
            links += 1
    assert links > len(PAGES)


def test_a_picture_is_there_for_each_theme(built: Path) -> None:
    front = (built / "README.html").read_text(encoding="utf-8")
    assert "<picture>" not in front
    for theme in ("light", "dark"):
        (image,) = re.findall(rf"<img [^>]*only-{theme}[^>]*>", front)
        assert f"waiting-{theme}.png" in image


def test_every_public_name_is_in_the_reference(entries: set[str]) -> None:
    for module in (xs, xt):
        assert {f"{module.__name__}.{name}" for name in module.__all__} <= entries


@pytest.mark.parametrize("kind", [xs.Query, xs.Groups, xs.Receiving, xs.ResultSlice, xs.Sink, xs.TwoPhaseSink, xt.Case])
def test_every_public_method_is_in_the_reference(entries: set[str], kind: type) -> None:
    module = "xmlstream.testing" if kind is xt.Case else "xmlstream"
    methods = {
        value.__name__ if callable(value) else name
        for base in kind.__mro__[:-1]
        for name, value in vars(base).items()
        if not name.startswith("_") and (callable(value) or isinstance(value, property)) and base.__module__ != "typing"
    }
    assert {f"{module}.{kind.__name__}.{method}" for method in methods} <= entries


def test_every_option_of_every_command_is_in_the_reference(entries: set[str]) -> None:
    def options(name: str, command: Any) -> Iterator[str]:
        for parameter in command.params:
            if parameter.param_type_name == "option":
                yield from (f"{name}.{spelling}" for spelling in parameter.opts)
        for below, one in getattr(command, "commands", {}).items():
            yield from options(f"{name}-{below}", one)

    root: Any = typer.main.get_command(app)
    every = [each for name, command in root.commands.items() for each in options(f"xmlstream-{name}", command)]
    assert len(every) > len(root.commands)
    assert set(every) <= entries


def test_every_option_of_a_sink_is_in_the_table_of_sinks() -> None:
    rows = [row.split("|")[1:3] for row in section("xmlstream/sql/README.md", "Sinks").splitlines() if row[:3] == "| `"]
    listed = {first_cells(f"|{name}|")[0]: set(re.findall("`([^`]+)`", options)) for name, options in rows}
    for name, kind in SINKS.items():
        assert {*kind.options} <= listed[name]


def test_machines_get_every_page_with_a_line_and_all_the_text(built: Path) -> None:
    short = (built / "llms.txt").read_text(encoding="utf-8")
    for page in (*PAGES, *site.REFERENCE):
        (line,) = re.findall(rf"^- \[.+\]\({re.escape(page.removesuffix('.md'))}\.html\): (.*)$", short, re.MULTILINE)
        assert len(line.split()) > 1, page
    full = (built / "llms-full.txt").read_text(encoding="utf-8")
    assert "### Query.group_by(self, *keys: 'str | Column') -> 'Groups'" in full
    assert "## xmlstream run" in full


def test_a_link_that_leads_nowhere_fails(tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    broken = ("[gone](sources/GONE.md)", "[gone](#no-heading-here)", "[gone](other.md#no-heading-there)")
    front = ["# A", *broken, "```{toctree}\nother\n```", ""]
    (sources / "index.md").write_text("\n\n".join(front), encoding="utf-8")
    (sources / "other.md").write_text("# B\n", encoding="utf-8")
    build = f"from pathlib import Path; from tests.tools.site.__main__ import html; p = Path({str(tmp_path)!r});"
    command = [sys.executable, "-c", f"{build} raise SystemExit(html(p / 'sources', p / 'out', p))"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    for missing in ("GONE", "no-heading-here", "no-heading-there"):
        assert missing in done.stderr
