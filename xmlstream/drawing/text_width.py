"""Widths of text that is yet to be drawn, of the widest font that a reader may have; text cut and wrapped to a width.

Nobody knows which font a browser takes. DejaVu Sans is wider than Arial, Helvetica, Segoe UI and San Francisco, and
DejaVu Sans Mono as wide as any other: what fits with these fits with all. Characters that the tables do not have are
counted as wide as high, as Chinese ones are.
"""

from __future__ import annotations

import re

SANS = "-apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

_PROPORTIONAL = (
    *(32, 41, 46, 84, 64, 96, 78, 28, 40, 40, 50, 84, 32, 37, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64),
    *(64, 64, 34, 34, 84, 84, 84, 54, 100, 69, 69, 70, 77, 64, 58, 78, 76, 30, 30, 66, 56, 87, 75, 79),
    *(61, 79, 70, 64, 62, 74, 69, 99, 69, 62, 69, 40, 34, 40, 84, 50, 50, 62, 64, 55, 64, 62, 36, 64),
    *(64, 28, 28, 58, 28, 98, 64, 62, 64, 64, 42, 53, 40, 64, 60, 82, 60, 60, 53, 64, 34, 64, 84),
)
"""Hundredths of the font's size, of the characters from the blank to the tilde."""

_MONOSPACED = 0.61
_ELLIPSIS = "…"


def width(text: str, size: float, *, mono: bool = False) -> float:
    """How wide a text is at the most, in the unit of its font's size.

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
    """The text, or as much of it as there is room for, and dots.

    >>> cut("a long name", 50, 10)
    'a long …'
    """
    if width(text, size, mono=mono) <= room:
        return text
    while text and width(text + _ELLIPSIS, size, mono=mono) > room:
        text = text[:-1]
    return text + _ELLIPSIS


def wrapped(text: str, room: float, size: float, *, most: int = 3, mono: bool = False) -> list[str]:
    """The text in lines, broken at blanks, the last of them cut.

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
