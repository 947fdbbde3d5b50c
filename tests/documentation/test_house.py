"""The picture of the architecture shows what there is, and nothing else."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.documentation import house, refused
from tests.documentation.pages import PACKAGES, ROOT, section


def test_the_picture_is_that_of_the_floors_in_pyproject() -> None:
    assert house.PICTURE.read_text(encoding="utf-8") == house.drawn(), "make house draws it anew"


def test_the_picture_of_a_refused_query_is_what_explain_draws_today() -> None:
    assert refused.PICTURE.read_text(encoding="utf-8") == refused.drawn(), "make house draws it anew"


def test_every_folder_of_the_packages_is_a_room_in_it() -> None:
    written = {text.text for text in ET.parse(house.PICTURE).getroot().iter("{http://www.w3.org/2000/svg}text")}
    for package in PACKAGES:
        folders = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")} - house.NO_ROOMS
        assert {package} | folders <= written
    assert {path.parent.name for path in (ROOT / "sources" / "xml").glob("*/__init__.py")} <= written


def test_every_operator_and_every_module_of_the_algebra_is_in_it() -> None:
    written = {text.text for text in ET.parse(house.PICTURE).getroot().iter("{http://www.w3.org/2000/svg}text")}
    for package in ("operators", "punct_ns"):
        assert {path.stem for path in (ROOT / package).glob("*.py")} - {"__init__"} <= written


def test_every_folder_is_in_the_table_of_the_architecture() -> None:
    rows = [line for line in section("xmlstream/README.md", "Folders").splitlines() if line.startswith("| `")]
    listed = [row.split("`")[1] for row in rows]
    made = [path.parent.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("__init__.py")]
    only_hold_others = {"xmlstream", "sources/xml"}
    assert sorted(listed) == sorted({path.as_posix() for path in made} - only_hold_others)


def test_a_room_without_a_caption_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    floors = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(floors.replace('joins | windows"', 'joins | windows | attic"'))
    monkeypatch.setattr(house, "ROOT", tmp_path)
    with pytest.raises(ValueError, match="'attic'"):
        house.storeys("operators")
