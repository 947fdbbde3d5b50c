"""A canvas: what is drawn on it, in its order, as SVG; all text is escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.y + self.height

    @property
    def middle(self) -> float:
        """Half way down."""
        return self.y + self.height / 2

    def overlaps(self, other: Box) -> bool:
        """Whether they have more than an edge in common."""
        apart = self.right <= other.x or other.right <= self.x or self.bottom <= other.y or other.bottom <= self.y
        return not apart


@dataclass(slots=True)
class Canvas:
    """Shapes and text, one after the other; attributes are SVG's, with `_` for `-` and `class_` for `class`."""

    parts: list[str] = field(default_factory=list)

    def rect(self, box: Box, *, radius: float = 6, **attributes: str) -> None:
        """A rectangle with round corners."""
        size = f'x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}"'
        self.parts.append(f'<rect {size} rx="{radius:g}"{written(attributes)}/>')

    def circle(self, x: float, y: float, radius: float, **attributes: str) -> None:
        """A circle."""
        self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}"{written(attributes)}/>')

    def text(self, x: float, y: float, text: str, *, size: float = 13, title: str = "", **attributes: str) -> None:
        """A line of text; `title` is what a pointer above it shows."""
        shown = f"<title>{escape(title)}</title>" if title else ""
        at = f'x="{x:g}" y="{y:g}" font-size="{size:g}"'
        self.parts.append(f"<text {at}{written(attributes)}>{shown}{escape(text)}</text>")

    def path(self, path: str, **attributes: str) -> None:
        """A path, in the letters of SVG."""
        self.parts.append(f'<path d="{path}"{written(attributes)}/>')

    @contextmanager
    def group(self, **attributes: str) -> Iterator[None]:
        """What is drawn meanwhile belongs together."""
        self.parts.append(f"<g{written(attributes)}>")
        yield
        self.parts.append("</g>")


def written(attributes: dict[str, str]) -> str:
    """Attributes as they stand in a tag.

    >>> written({"class_": "bad", "data_key": '"'})
    ' class="bad" data-key="&quot;"'
    """
    return "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(value)}"' for name, value in attributes.items() if value
    )


def curve(points: Sequence[Point]) -> str:
    """A smooth path through points, level at each of them."""
    path = f"M{points[0][0]:g} {points[0][1]:g}"
    for (x, y), (to_x, to_y) in pairwise(points):
        if y == to_y:
            path += f" H{to_x:g}"
        else:
            half = (x + to_x) / 2
            path += f" C{half:g} {y:g} {half:g} {to_y:g} {to_x:g} {to_y:g}"
    return path
