"""The picture of the architecture: the floors as pyproject declares them, and the paths of a tuple and a punctuation.

`make house` draws it. What is a room, and on which storey, import-linter's contracts say; here stand a caption for each
room, the stops of the two paths, and the measures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.harness.pages import ROOT, contracts
from xmlstream.drawing.canvas import MONO, SANS, Area, Canvas

PICTURE = ROOT / "xmlstream" / "house.svg"

CAPTIONS = {
    "xmlstream": {
        "testing": "a query in a user's tests: slices in, result out, without documents",
        "cli": "the command xmlstream",
        "builder": "queries in Python",
        "monitor": "a live page of a run: what is kept, what is closed, and which input withholds what",
        "secret": "simulator",
        "sql": "from text",
        "optimizer": "rewrites",
        "diagnosis": "what a query that has begun waits for, and of whom",
        "safety": "verdicts",
        "runtime": "slices, checkpoint, commits",
        "plan": "operator DAG",
        "sink": "results",
        "drawing": "SVG pictures",
        "session": "of Spark, or in process",
    },
    "operators": {
        "joins": "equality, purge",
        "punctuators": "its rules",
        "state": "kept between slices",
        "in_process": "computed by DuckDB",
        "frames": "what an engine computes",
        "expressions": "what is known of SQL",
        "storage": "files",
    },
    "sources": {
        "generators": "seeded",
        "receivers": "live feeds",
    },
    "sources.xml": {
        "inference": "a declaration proposed",
        "spark": "data source",
        "slices": "planned, staged",
        "grammar": "no tuple after its punctuation",
        "parser": "XML to columns and patterns",
        "splits": "byte ranges, found unparsed",
        "options": "what is declared",
    },
}
"""What is in each room, in the order in which the rooms of a storey are drawn."""

NO_ROOM = "xml"
"""The folder that is drawn as storeys of its own."""

OPERATORS = (
    "select, project, explode, stamp, window,",
    "merge, distinct, intersect, difference,",
    "join, multiway_join, semi_join, asof_join,",
    "group_by, session, sort, top_n, row_window,",
    "describe, punctuate, …",
)
ALGEBRA = "types, domains, values  <  patterns  <  punctuations  <  sets, schemes  <  images, covers, prefixes"
"""What stands in the packages beside folders: words, since there are more modules than a picture can show."""

INK, PALE, EDGE, PAPER = "#22303c", "#5d6b78", "#c4ccd4", "#ffffff"
GROUND = {"xmlstream": "#eef3f9", "operators": "#f3f1ea", "sources": "#edf4ee", "punct_ns": "#f4eef4"}
TUPLE, PUNCTUATION = "#1f63b5", "#d0651b"

STOREY, LINE, SHAFT, ASIDE = 46.0, 28.0, 56.0, 84.0
"""Heights of a storey and of a line of modules; widths of the shaft between packages and of paths beside rooms."""

ROOF = Area(70, 12, 860, 0)
"""Place and width of the upper package; its storeys give it its height."""

WING = (ROOF.width - SHAFT) / 2
"""The width of a package that stands beside another."""


@dataclass(slots=True)
class Drawing(Canvas):
    """What is drawn, in its order, and where the rooms came to lie."""

    packages: dict[str, Area] = field(default_factory=dict)
    rooms: dict[str, Area] = field(default_factory=dict)

    def box(self, box: Area, fill: str, stroke: str = EDGE, radius: float = 6) -> None:
        self.rect(box, radius=radius, fill=fill, stroke=stroke)

    def words(self, x: float, y: float, text: str, *, size: float = 13, **style: str) -> None:
        self.text(x, y, text, size=size, **{"font_family": SANS, "fill": INK, **style})

    def package(self, name: str, phrase: str, box: Area) -> None:
        """The ground of a package, with its name and a phrase."""
        self.packages[name] = box
        self.box(box, GROUND[name], radius=10)
        self.words(box.x + 12, box.y + 21, name, size=15, font_family=MONO, font_weight="bold")
        self.words(box.x + 22 + 9.2 * len(name), box.y + 21, phrase, fill=PALE)

    def room(self, package: str, name: str, box: Area, indent: float = 10) -> None:
        """A folder, with what is in it; dashed if it stands around the core."""
        self.rooms[f"{package}.{name}"] = box
        dashed = {"stroke_dasharray": "5 4"} if _full_name(package, name) in AROUND else {}
        self.rect(box, radius=6, fill=PAPER, stroke=PALE if dashed else EDGE, **dashed)
        self.words(box.x + indent, box.y + box.height / 2 - 4, name, size=13, font_family=MONO, font_weight="bold")
        self.words(box.x + indent, box.y + box.height / 2 + 13, CAPTIONS[package][name], size=12.5, fill=PALE)

    def storey(self, package: str, names: Sequence[str], box: Area) -> None:
        """Rooms side by side: equally wide, or where words do not fit so, as wide as each has words and as much more.

        Raises:
            ValueError: The words do not fit.
        """
        needed = [_words(name, CAPTIONS[package][name]) for name in names]
        free = box.width - 8 * (len(names) - 1)
        more = (free - sum(needed)) / len(names)
        if more < 0:
            raise ValueError(f"captions of {', '.join(names)} are too long by {-more * len(names):.0f}")
        widths = [free / len(names)] * len(names) if max(needed) <= free / len(names) else [n + more for n in needed]
        x = box.x
        for name, width in zip(names, widths, strict=True):
            self.room(package, name, Area(x, box.y, width, box.height))
            x += width + 8

    def way(self, colour: str, *points: tuple[float, float], head: bool = False) -> None:
        """A line through points, its corners round, perhaps with an arrow's head at its end."""
        path = f"M{points[0][0]:g} {points[0][1]:g}"
        for before, corner, after in zip(points, points[1:], points[2:], strict=False):
            start, end = _towards(corner, before), _towards(corner, after)
            path += f" L{start[0]:g} {start[1]:g} Q{corner[0]:g} {corner[1]:g} {end[0]:g} {end[1]:g}"
        path += f" L{points[-1][0]:g} {points[-1][1]:g}"
        arrow = f' marker-end="url(#{"tuple" if colour == TUPLE else "punctuation"})"' if head else ""
        self.parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2.5"{arrow}/>')

    def stop(self, colour: str, number: int, x: float, y: float) -> None:
        """A numbered stop of a path."""
        self.parts.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="9.5" fill="{colour}" stroke="{PAPER}" stroke-width="1.5"/>'
        )
        style = {"fill": PAPER, "font_weight": "bold", "text_anchor": "middle"}
        self.words(x, y + 4, str(number), size=11.5, **style)

    def document(self, x: float, y: float, label: str) -> None:
        """A sheet of XML."""
        self.parts.append(
            f'<path d="M{x:g} {y:g} h26 l12 12 v38 h-38 z M{x + 26:g} {y:g} v12 h12" fill="{PAPER}" stroke="{INK}"/>'
        )
        self.words(x + 19, y + 34, "</>", size=13, font_family=MONO, text_anchor="middle")
        self.words(x + 19, y + 66, label, size=12, text_anchor="middle", fill=PALE)


def _words(name: str, caption: str) -> float:
    """How wide a room must be for its words, in the widest of the fonts."""
    return 18 + max(7.9 * len(name), 6.6 * len(caption))


def _full_name(package: str, name: str) -> str:
    return f"{'' if package == 'xmlstream' else 'xmlstream.'}{package}.{name}"


AROUND: list[str] = contracts()["core"]["forbidden_modules"]
"""The modules and folders that stand around the core, which imports none of them."""


def storeys(container: str) -> list[list[str]]:
    """The floors of a package as they are declared, the highest first; its rooms in the order of their captions.

    Raises:
        ValueError: A room has no caption, or a caption no room.
    """
    called = container if container == "xmlstream" else f"xmlstream.{container}"
    (layers,) = [contract["layers"] for contract in contracts().values() if contract.get("containers") == [called]]
    place = ROOT.joinpath(*container.split("."))
    rooms = [[name for name in layer.split(" | ") if _is_room(place / name)] for layer in layers]
    captions = list(CAPTIONS[container])
    if differ := set(captions) ^ {name for floor in rooms for name in floor}:
        raise ValueError(f"rooms of {container} without a caption, or captions without a room: {sorted(differ)}")
    return [sorted(floor, key=captions.index) for floor in rooms if floor]


def _is_room(place: Path) -> bool:
    return (place / "__init__.py").exists() and place.name != NO_ROOM and not place.is_symlink()


def drawn() -> str:
    """The picture, as SVG."""
    drawing = Drawing()
    roof = replace(ROOF, height=114 + 58 * len(storeys("xmlstream")[1:]))
    height = max(356, 94 + LINE * len(OPERATORS) + 58 * len(storeys("operators")))
    left = Area(ROOF.x, roof.bottom + 16, WING, height)
    below = Area(ROOF.x, left.bottom + 16, ROOF.width, 76)
    _xmlstream(drawing, roof)
    _operators(drawing, left)
    _sources(drawing, Area(left.right + SHAFT, left.y, WING, height))
    _punct_ns(drawing, below)
    _paths(drawing)
    _legend(drawing, below.bottom + 26)
    size = f"0 0 1000 {below.bottom + 50:g}"
    heads = "".join(
        f'<marker id="{name}" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="4" markerHeight="4" orient="auto">'
        f'<path d="M0 0 L8 4 L0 8 z" fill="{colour}"/></marker>'
        for name, colour in (("tuple", TUPLE), ("punctuation", PUNCTUATION))
    )
    parts = "\n".join(drawing.parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" role="img">\n'
        "<title>The four packages, their floors, the path of a tuple and of a punctuation</title>\n"
        f'<defs>{heads}</defs>\n<rect width="100%" height="100%" rx="12" fill="{PAPER}"/>\n{parts}\n</svg>\n'
    )


def _xmlstream(drawing: Drawing, box: Area) -> None:
    drawing.package("xmlstream", "what a user touches, and what makes and runs a plan", box)
    *upper, middle, under, low = storeys("xmlstream")
    x, width, y = box.x + 12, box.width - 24, box.y + 34
    for i, names in enumerate(upper):
        drawing.storey("xmlstream", names, Area(x, y + 58 * i, width, STOREY))
    y += 58 * (len(upper) - 1)
    half, right = WING - 24, box.x + WING
    drawing.storey("xmlstream", middle[:-1], Area(x, y + 58, half, STOREY))
    drawing.storey("xmlstream", under, Area(x, y + 116, half, STOREY))
    last = Area(right - 4, y + 58, x + width - right + 4, STOREY + 58)
    drawing.room("xmlstream", middle[-1], last, indent=SHAFT + 24)
    drawing.storey("xmlstream", low[:-1], Area(x, y + 196, half, STOREY))
    drawing.storey("xmlstream", low[-1:], Area(right + SHAFT + 12, y + 196, half - ASIDE, STOREY))


def _operators(drawing: Drawing, box: Area) -> None:
    drawing.package("operators", "four behaviours", box)
    floors = storeys("operators")
    x, width, y = box.x + 12, box.width - 24, box.y + 34
    top = Area(x, y, width, box.height - 46 - 58 * len(floors))
    drawing.rooms["operators"] = top
    drawing.box(top, PAPER)
    drawing.words(x + 10, y + 22, "one module each: step, pass, keep, propagate", size=12.5, fill=PALE)
    for i, line in enumerate(OPERATORS):
        drawing.words(x + 10, y + 50 + 20 * i, line, size=12, font_family=MONO)
    for i, floor in enumerate(floors):
        drawing.storey("operators", floor, Area(x, top.bottom + 12 + 58 * i, width, STOREY))


def _sources(drawing: Drawing, box: Area) -> None:
    drawing.package("sources", "punctuated XML, read and generated", box)
    x, width, y = box.x + 12, box.width - 24, box.y + 34
    first = [name for floor in storeys("sources") for name in floor]
    drawing.storey("sources", first, Area(x, y, width - ASIDE, STOREY))
    drawing.words(x + 1, y + STOREY + 20, "sources.xml", size=13, font_family=MONO, font_weight="bold")
    floors = storeys("sources.xml")
    low = y + STOREY + 28
    step = (box.bottom - 6 - low) / len(floors)
    for i, floor in enumerate(floors):
        drawing.storey("sources.xml", floor, Area(x, low + step * i, width, step - 6))


def _punct_ns(drawing: Drawing, box: Area) -> None:
    drawing.package("punct_ns", "the algebra of punctuations, without Spark", box)
    drawing.words(box.x + 12, box.y + 50, ALGEBRA, size=13)


def _paths(drawing: Drawing) -> None:
    rooms = drawing.rooms
    source = [rooms[f"sources.xml.{name}"] for name in ("splits", "parser", "grammar", "spark")]
    levels = [room.y + room.height / 2 for room in source]
    runtime, sink, state = rooms["xmlstream.runtime"], rooms["xmlstream.sink"], rooms["operators.state"]
    operators, left, right = rooms["operators"], drawing.packages["operators"], drawing.packages["sources"]
    below = drawing.packages["punct_ns"].y
    middle, lane, corridor = runtime.y + runtime.height / 2, operators.y + 18, sink.y - 17
    blue, orange = right.right - 12 - 50, right.right - 12 - 20
    shaft = left.right + SHAFT / 2
    out = sink.right - 36

    drawing.document(946, levels[0] - 25, "input")
    drawing.document(16, corridor - 25, "result")
    drawing.way(TUPLE, (945, levels[0] - 9), (blue, levels[0] - 9), (blue, middle))
    drawing.way(TUPLE, (shaft - 15, runtime.bottom), (shaft - 15, lane), (operators.right - 24, lane))
    drawing.way(TUPLE, (shaft - 15, lane - 12), (shaft - 15, state.y + 23), (state.right - 24, state.y + 23))
    drawing.way(TUPLE, (out, operators.y), (out, corridor + 6), (60, corridor + 6), head=True)
    drawing.way(PUNCTUATION, (945, levels[0] + 9), (orange, levels[0] + 9), (orange, middle))
    drawing.way(PUNCTUATION, (shaft + 15, runtime.bottom), (shaft + 15, below + 18))
    drawing.way(PUNCTUATION, (shaft, below), (shaft, lane + 28), (operators.right - 24, lane + 28))
    drawing.way(PUNCTUATION, (out + 23, operators.y), (out + 23, corridor - 8), (60, corridor - 8), head=True)

    for number, level in enumerate([levels[0] - 9, *levels[1:], middle], 1):
        drawing.stop(TUPLE, number, blue, level)
    drawing.stop(TUPLE, 6, operators.right - 24, lane)
    drawing.stop(TUPLE, 7, state.right - 24, state.y + 23)
    drawing.stop(TUPLE, 8, out, sink.y + 23)
    for number, level in enumerate([*levels[1:], middle], 1):
        drawing.stop(PUNCTUATION, number, orange, level)
    drawing.stop(PUNCTUATION, 5, shaft + 15, below + 18)
    drawing.stop(PUNCTUATION, 6, operators.right - 24, lane + 28)
    drawing.stop(PUNCTUATION, 7, out + 23, sink.y + 23)


def _legend(drawing: Drawing, y: float) -> None:
    drawing.way(TUPLE, (82, y), (122, y), head=True)
    drawing.words(132, y + 4, "the path of a tuple")
    drawing.way(PUNCTUATION, (282, y), (322, y), head=True)
    drawing.words(332, y + 4, "the path of a punctuation")
    drawing.words(
        930,
        y + 4,
        "Rooms import from below. Dashed: around the core.",
        fill=PALE,
        text_anchor="end",
    )


def _towards(corner: tuple[float, float], other: tuple[float, float], radius: float = 9) -> tuple[float, float]:
    """A point near a corner, in the direction of another point."""
    dx, dy = other[0] - corner[0], other[1] - corner[1]
    length = (dx * dx + dy * dy) ** 0.5
    share = min(radius, length / 2) / length
    return corner[0] + dx * share, corner[1] + dy * share


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
