"""What a page leads to, or names, is there: files, headings, modules."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.documentation.pages import FORGE, PACKAGES, PAGES, ROOT, prose, text


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
