"""A canvas for shapes and text as SVG, functions to measure, cut and wrap text, and the style sheets of pictures.

All text is escaped. The font of a browser is unknown, so widths are those of DejaVu Sans, which is wider than Arial,
Helvetica, Segoe UI and San Francisco, and of DejaVu Sans Mono, which is as wide as any other: text that fits with these
fits with all. Characters outside the table count as wide as high, as Chinese ones are.

Style sheets are light or dark as the reader's system is. A page is one HTML file that loads no script, font or image.
Colour is never the only sign: text always has the same information.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from itertools import pairwise
from typing import Literal

from xmlstream.dataclasses import dataclass, field

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


Tone = Literal["plain", "good", "late", "bad", "mend"]
"""Meaning of a colour: neutral, good, waits for the end of the input, trouble, remedy."""

_LIGHT = (
    "--ink:#1d2935;--pale:#5a6875;--edge:#c3ccd5;--paper:#ffffff;--card:#f7f9fb;"
    "--good:#17734a;--late:#8a5a00;--bad:#b3261e;--mend:#6a3fb5;--tuple:#1f63b5"
)
_DARK = (
    "--ink:#e6ebf0;--pale:#9aa7b4;--edge:#3d4854;--paper:#12171d;--card:#1b222a;"
    "--good:#56c28a;--late:#e0ab4a;--bad:#ff8a80;--mend:#b79cf2;--tuple:#6ea8ec"
)

COLOURS = f".xs{{{_LIGHT}}}\n@media(prefers-color-scheme:dark){{.xs{{{_DARK}}}}}"
"""Style sheet with the colours by name."""

SHAPES = f"""\
.xs text{{font-family:{SANS};fill:var(--ink)}}
.xs .mono{{font-family:{MONO}}}
.xs .strong{{font-weight:bold}}
.xs .paper{{fill:var(--paper)}}
.xs .card{{fill:var(--card);stroke:var(--edge);stroke-width:1.2}}
.xs .arrow{{fill:none;stroke:var(--tuple);stroke-width:1.8}}
.xs .thin{{fill:none;stroke:var(--pale);stroke-width:1.2}}
.xs .head{{fill:var(--tuple)}}
.xs text.pale{{fill:var(--pale)}}
.xs text.good{{fill:var(--good)}}
.xs text.late{{fill:var(--late)}}
.xs text.bad{{fill:var(--bad)}}
.xs text.mend{{fill:var(--mend)}}
.xs rect.good,.xs circle.good{{fill:var(--good)}}
.xs rect.late,.xs circle.late{{fill:var(--late)}}
.xs rect.bad,.xs circle.bad{{fill:var(--bad)}}
.xs rect.mend,.xs circle.mend{{fill:var(--mend)}}
.xs rect.plain{{fill:var(--edge)}}
.xs .card.bad-edge{{stroke:var(--bad);stroke-width:1.8}}
.xs .card.late-edge{{stroke:var(--late);stroke-width:1.8}}"""
"""Style sheet of the classes of shapes and texts."""


PAGE_LOOKS = f"""\
html{{background:var(--paper);color:var(--ink);color-scheme:light dark}}
body{{font:15px/1.5 {SANS};margin:0 auto;max-width:110rem;padding:1.2rem 1.4rem 3rem}}
h1{{font-size:1.5rem;margin:.2rem 0 .6rem}}
h2{{font-size:1.1rem;margin:1.8rem 0 .5rem}}
code,pre{{font-family:{MONO};font-size:.86rem}}
pre{{background:var(--card);border:1px solid var(--edge);border-radius:8px;overflow:auto;padding:.8rem 1rem}}
ul{{list-style:none;margin:.4rem 0;padding:0}}
li::before{{content:"●";margin-right:.5rem}}
summary{{cursor:pointer}}
.good{{color:var(--good)}}.late{{color:var(--late)}}.bad{{color:var(--bad)}}.mend{{color:var(--mend)}}
.picture{{border:1px solid var(--edge);border-radius:10px;overflow:auto}}
.picture svg{{display:block;height:auto;width:clamp(calc(.72*var(--wide)),100%,var(--wide))}}
:focus-visible{{outline:2px solid var(--tuple);outline-offset:2px}}"""
"""Style sheet of the elements of a page."""


def page(title: str, body: str) -> str:
    """An HTML page; `title` is text and is escaped, `body` is HTML."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return f"""\
<!DOCTYPE html>
<html lang="en" class="xs">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{escape(title)}</title>
<style>
{COLOURS}
{PAGE_LOOKS}
</style>
</head>
<body>
{body}
</body>
</html>
"""
