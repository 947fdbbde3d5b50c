"""A canvas for shapes and text as SVG, and functions to measure, cut and wrap text.

All text is escaped. The font of a browser is unknown, so widths are those of DejaVu Sans, which is wider than Arial,
Helvetica, Segoe UI and San Francisco, and of DejaVu Sans Mono, which is as wide as any other: text that fits with these
fits with all. Characters outside the table count as wide as high, as Chinese ones are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

SANS = "-apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

_PROPORTIONAL = (
    *(32, 41, 46, 84, 64, 96, 78, 28, 40, 40, 50, 84, 32, 37, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64),
    *(64, 64, 34, 34, 84, 84, 84, 54, 100, 69, 69, 70, 77, 64, 58, 78, 76, 30, 30, 66, 56, 87, 75, 79),
    *(61, 79, 70, 64, 62, 74, 69, 99, 69, 62, 69, 40, 34, 40, 84, 50, 50, 62, 64, 55, 64, 62, 36, 64),
    *(64, 28, 28, 58, 28, 98, 64, 62, 64, 64, 42, 53, 40, 64, 60, 82, 60, 60, 53, 64, 34, 64, 84),
)
"""Widths of the characters from blank to tilde, in hundredths of the font size."""

_MONOSPACED = 0.61
_ELLIPSIS = "…"


def width(text: str, size: float, *, mono: bool = False) -> float:
    """The largest width of a text, in the unit of the font size.

    >>> width("if", 10), width("if", 10, mono=True)
    (6.4, 12.2)
    """
    if mono:
        return round(size * sum(_MONOSPACED if ord(c) < 0x2E80 else 2 * _MONOSPACED for c in text), 2)
    return round(size * sum(_hundredths(c) for c in text) / 100, 2)


def _hundredths(character: str) -> int:
    at = ord(character) - 32
    return _PROPORTIONAL[at] if 0 <= at < len(_PROPORTIONAL) else 100


def cut(text: str, room: float, size: float, *, mono: bool = False) -> str:
    """The text if it fits into the room, else its beginning and an ellipsis.

    >>> cut("a long name", 50, 10)
    'a long …'
    """
    if width(text, size, mono=mono) <= room:
        return text
    while text and width(text + _ELLIPSIS, size, mono=mono) > room:
        text = text[:-1]
    return text + _ELLIPSIS


def wrapped(text: str, room: float, size: float, *, most: int = 3, mono: bool = False) -> list[str]:
    """The text in at most `most` lines, broken at blanks; the last line is cut.

    >>> wrapped("never, since nothing closes it", 90, 10)
    ['never, since', 'nothing closes it']
    """
    lines: list[str] = []
    words = re.findall(r"\S+", text)
    while words:
        line = words.pop(0)
        while words and width(f"{line} {words[0]}", size, mono=mono) <= room:
            line = f"{line} {words.pop(0)}"
        if len(lines) == most - 1:
            return [*lines, cut(" ".join([line, *words]), room, size, mono=mono)]
        lines.append(cut(line, room, size, mono=mono))
    return lines


Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """The x of the right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """The y of the lower edge."""
        return self.y + self.height

    @property
    def middle(self) -> float:
        """The y of the middle."""
        return self.y + self.height / 2


@dataclass(slots=True)
class Canvas:
    """Shapes and text in drawing order; attributes are SVG's, with `_` for `-` and `class_` for `class`."""

    parts: list[str] = field(default_factory=list)

    def rect(self, box: Area, *, radius: float = 6, **attributes: str) -> None:
        """Draws a rectangle with round corners."""
        size = f'x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}"'
        self.parts.append(f'<rect {size} rx="{radius:g}"{written(attributes)}/>')

    def circle(self, x: float, y: float, radius: float, **attributes: str) -> None:
        """Draws a circle."""
        self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}"{written(attributes)}/>')

    def text(self, x: float, y: float, text: str, *, size: float = 13, title: str = "", **attributes: str) -> None:
        """Draws a line of text; a pointer above it shows `title`."""
        shown = f"<title>{escape(title)}</title>" if title else ""
        at = f'x="{x:g}" y="{y:g}" font-size="{size:g}"'
        self.parts.append(f"<text {at}{written(attributes)}>{shown}{escape(text)}</text>")

    def path(self, path: str, **attributes: str) -> None:
        """Draws a path in SVG's notation."""
        self.parts.append(f'<path d="{path}"{written(attributes)}/>')

    @contextmanager
    def group(self, **attributes: str) -> Iterator[None]:
        """Groups everything that is drawn inside."""
        self.parts.append(f"<g{written(attributes)}>")
        yield
        self.parts.append("</g>")


def written(attributes: dict[str, str]) -> str:
    """Attributes in the form of a tag; empty ones are left out.

    >>> written({"class_": "bad", "data_key": '"'})
    ' class="bad" data-key="&quot;"'
    """
    return "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(value)}"' for name, value in attributes.items() if value
    )


def curve(points: Sequence[Point]) -> str:
    """A smooth path through points, horizontal at each of them."""
    path = f"M{points[0][0]:g} {points[0][1]:g}"
    for (x, y), (to_x, to_y) in pairwise(points):
        if y == to_y:
            path += f" H{to_x:g}"
        else:
            half = (x + to_x) / 2
            path += f" C{half:g} {y:g} {half:g} {to_y:g} {to_x:g} {to_y:g}"
    return path
