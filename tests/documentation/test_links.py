"""What a page leads to, or names, is there: files, headings, modules."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.harness.pages import BUILT, FORGE, PACKAGES, PAGES, ROOT, prose, section, text
from xmlstream.punct_ns.errors import DISTRIBUTION


@pytest.mark.parametrize("page", [*PAGES, *FORGE])
def test_every_relative_link_leads_somewhere(page: str) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if link.startswith(("https://", "http://")):
            continue
        place, _, heading = link.partition("#")
        target = (ROOT / page).parent / place if place else ROOT / page
        assert target.exists(), link
        assert ROOT in target.resolve().parents, link
        if heading:
            assert heading in _anchors(target), link


@pytest.mark.parametrize("page", PAGES)
def test_every_module_that_it_names_is_there(page: str) -> None:
    package = "|".join((*PACKAGES, "tests"))
    for name in re.findall(rf"(?:`|python -m |^from |^import )((?:{package})(?:\.\w+)+)", text(page), re.MULTILINE):
        assert name.endswith(".py") or _is_there(name), name


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_it_names_is_there(page: str) -> None:
    folder = "|".join((*PACKAGES, "data", "tests", r"\.ci", r"\.github"))
    for name in re.findall(rf"`((?:{folder})(?:/[\w.]+)+/?)`", prose(page)):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("page", sorted({*PAGES} - {*BUILT}))
def test_what_a_user_reads_needs_no_checkout(page: str) -> None:
    """Only two places of the README are about one: the top, which says how to install, and what sets one up."""
    read = _without_installing(text(page)) if page == "README.md" else text(page)
    needs = r"(?:`|^\$ )make [a-z].*|python -m tests.*|`(?:tests|\.ci)[/.].*"
    assert re.findall(needs, read, re.MULTILINE) == []


def test_one_place_says_how_to_install() -> None:
    """What names the project to pip is not true before it is on PyPI, so a release has one paragraph to change."""
    code = [file.relative_to(ROOT).as_posix() for name in PACKAGES for file in (ROOT / name).rglob("*.py")]
    site = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests" / "tools" / "site").rglob("*.md")]
    for page in {*PAGES, *FORGE, *code, *site} - {".github/CONTRIBUTING.md", "CHANGELOG.md"}:
        read = _without_installing(text(page)) if page == "README.md" else text(page)
        assert not re.findall(rf"pip install .*{DISTRIBUTION}|{DISTRIBUTION}\[.*", read), page
    installing = text("README.md").partition("\n## ")[0]
    assert "Nothing is on PyPI yet" not in installing or DISTRIBUTION not in installing


def test_the_readme_sets_a_checkout_up_by_two_commands() -> None:
    before, _, _ = text("README.md").partition("\n## Where to read on\n")
    assert CHECKOUT in before
    said = section("README.md", CHECKOUT.strip("\n# "))
    made = re.findall(r"^(\w+):.*## ", text("Makefile"), re.MULTILINE)
    for target in ("demo", "test"):
        assert target in made
        (row,) = re.findall(rf"^\| `make {target}` \| (.+) \| (.+) \|$", said, re.MULTILINE)
        assert all(row), "what it shows, and how long it takes"
    assert re.search(r"`\.venv`.* GB", said), "how much room it takes"


CHECKOUT = "\n## A checkout, in two commands\n"


def _without_installing(readme: str) -> str:
    """The README without the two places that are about a checkout."""
    read = "".join(readme.partition("\n## ")[1:])
    before, _, after = read.partition(CHECKOUT)
    return before + "".join(after.partition("\n## ")[1:])


def _anchors(page: Path) -> set[str]:
    """The headings of a page, as a forge calls them in links."""
    headings = re.findall(r"^#+ (.*)$", prose(page.resolve().relative_to(ROOT).as_posix()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _is_there(name: str) -> bool:
    """Whether it is a module, or a name in one."""
    module = ROOT / Path(*name.split("."))
    if module.is_dir() or module.with_suffix(".py").is_file():
        return True
    home, _, last = name.rpartition(".")
    return "." in home and hasattr(import_module(home), last)
