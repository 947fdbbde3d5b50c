"""The picture of the architecture shows what there is, and nothing else."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations, pairwise

import pytest

from tests.harness.boxes import overlap
from tests.harness.pages import PACKAGES, ROOT, section
from tests.tools import house, refused
from tests.tools.weight import lines_of_maps
from xmlstream.drawing.canvas import Area, width

SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_is_that_of_the_floors_in_pyproject() -> None:
    assert house.PICTURE.read_text(encoding="utf-8") == house.drawn(), "make house draws it anew"


def test_the_picture_of_a_refused_query_is_what_explain_draws_today() -> None:
    assert refused.PICTURE.read_text(encoding="utf-8") == refused.drawn(), "make house draws it anew"


def test_every_folder_of_the_packages_is_a_room_in_it() -> None:
    written = {text.text for text in ET.parse(house.PICTURE).getroot().iter(f"{SVG}text")}
    for package in PACKAGES:
        folders = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")} - {house.NO_ROOM}
        assert {package} | folders <= written
    assert {path.parent.name for path in (ROOT / "sources" / "xml").glob("*/__init__.py")} <= written


def test_every_box_is_within_another_or_beside_it() -> None:
    boxes = [_rectangle(rect) for rect in ET.parse(house.PICTURE).getroot().iter(f"{SVG}rect") if rect.get("x")]
    assert len(boxes) > len(PACKAGES)
    crossing = [(a, b) for a, b in combinations(boxes, 2) if overlap(a, b) and not _within(a, b) and not _within(b, a)]
    assert not crossing


def test_words_are_free_of_stops_and_paths() -> None:
    root = ET.parse(house.PICTURE).getroot()
    words = [_around(text) for text in root.iter(f"{SVG}text") if text.get("text-anchor") is None]
    stops = [_box(circle, "cx", "cy") for circle in root.iter(f"{SVG}circle")]
    paths = [path.get("d", "") for path in root.iter(f"{SVG}path") if path.get("fill") == "none"]
    ways = [way for path in paths for way in pairwise(re.findall(r"([\d.]+) ([\d.]+)", path))]
    assert stops
    assert not [(name, stop) for name, box in words for stop in stops if overlap(box, stop)]
    assert not [(name, way) for name, box in words for way in ways if overlap(box, _between(*way))]


def _around(text: ET.Element) -> tuple[str, Area]:
    said, size = text.text or "", float(text.get("font-size", 0))
    wide = width(said, size, mono="mono" in text.get("font-family", ""))
    return said, Area(float(text.get("x", 0)), float(text.get("y", 0)) - size, wide, size)


def _box(circle: ET.Element, x: str, y: str) -> Area:
    radius = float(circle.get("r", 0))
    return Area(float(circle.get(x, 0)) - radius, float(circle.get(y, 0)) - radius, 2 * radius, 2 * radius)


def _rectangle(rect: ET.Element) -> Area:
    return Area(*(float(rect.get(name, 0)) for name in ("x", "y", "width", "height")))


def _within(one: Area, other: Area) -> bool:
    return other.x <= one.x and other.y <= one.y and one.right <= other.right and one.bottom <= other.bottom


def _between(one: tuple[str, str], other: tuple[str, str]) -> Area:
    (left, right), (top, bottom) = (sorted(map(float, ends)) for ends in zip(one, other, strict=True))
    return Area(left, top, right - left, bottom - top)


def test_every_folder_is_in_the_table_of_the_architecture() -> None:
    rows = [line for line in section("xmlstream/README.md", "Folders").splitlines() if line.startswith("| `")]
    listed = [row.split("`")[1] for row in rows]
    made = [path.parent.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("__init__.py")]
    only_hold_others = {"xmlstream", "sources/xml"}
    assert sorted(listed) == sorted({path.as_posix() for path in made} - only_hold_others)


def test_the_two_maps_have_about_as_many_lines_as_the_page_says() -> None:
    found = lines_of_maps()
    said = [
        int(n.replace(",", ""))
        for n in re.findall(r"^([\d,]+) lines", section("xmlstream/README.md", "Folders"), re.MULTILINE)
    ]
    assert said == pytest.approx([found["lines of the core"], found["lines around it"]], rel=0.05)


def test_a_room_without_a_caption_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(house.CAPTIONS["operators"], "joins")
    with pytest.raises(ValueError, match="'joins'"):
        house.storeys("operators")
