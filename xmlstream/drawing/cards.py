"""Cards: boxes with a name and lines of text, as wide as their text, with arrows between them, laid out in layers."""

from __future__ import annotations

from collections.abc import Sequence

from xmlstream.dataclasses import dataclass
from xmlstream.drawing.canvas import Area, Canvas, Tone, curve, cut, width, wrapped
from xmlstream.drawing.layers import Arrow, layered

NARROWEST, WIDEST = 96.0, 236.0
"""Limits of the width of a card's text."""

_NAME, _TEXT, _ROW, _PADDING = 14.0, 12.0, 16.5, 11.0
"""Font sizes of name and text, height of a row, and padding."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a card.

    Attributes:
        text: The text; if it does not fit it is cut, and a pointer above it shows all of it.
        label: A pale word before the text.
        tone: Colour of the text, with a dot before it unless plain.
        mono: Use a monospaced font.
        rows: Most rows of the card that the text may take.
        key: Name by which a live page finds the text to change it.
        title: Longer text that a pointer shows.
    """

    text: str
    label: str = ""
    tone: Tone = "plain"
    mono: bool = False
    rows: int = 1
    key: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """A box with a name and lines below it; its edge has the worst tone of its lines."""

    name: str
    lines: tuple[Line, ...] = ()

    @property
    def width(self) -> float:
        """Width of the card: that of its text, within limits."""
        words = [width(self.name, _NAME, mono=True)]
        words += [_indent(line) + min(width(line.text, _TEXT, mono=line.mono), WIDEST) for line in self.lines]
        return min(max(*words, NARROWEST), WIDEST) + 2 * _PADDING

    def rows(self, room: float) -> list[tuple[Line, str, bool]]:
        """The rows: each with its line, its text, and whether it is the first row of the line."""
        found = []
        for line in self.lines:
            # Rounded like widths of texts, so that a text fits into a card of exactly its width.
            texts = wrapped(line.text, round(room - _indent(line), 2), _TEXT, most=line.rows, mono=line.mono) or [""]
            found += [(line, text, not i) for i, text in enumerate(texts)]
        return found

    @property
    def height(self) -> float:
        """Height of the card, by its rows."""
        return 2 * _PADDING + _NAME + 3 + _ROW * len(self.rows(self.width - 2 * _PADDING))

    def draw(self, canvas: Canvas, box: Area) -> None:
        """Draws the card into a box that is at least as wide as the card."""
        tones = {line.tone for line in self.lines}
        edge = "bad-edge" if "bad" in tones else "late-edge" if "late" in tones else ""
        spoken = [self.name, *(f"{line.label} {line.text}".strip() for line in self.lines if line.text)]
        with canvas.group(class_="operator", data_operator=self.name, role="img", aria_label=": ".join(spoken)):
            canvas.rect(box, class_=f"card {edge}".strip())
            x, y, room = box.x + _PADDING, box.y + _PADDING + 11, box.width - 2 * _PADDING
            name = cut(self.name, room, _NAME, mono=True)
            title = self.name if name != self.name else ""
            canvas.text(x, y, name, size=_NAME, class_="mono strong", title=title)
            y += 3
            # A wider box may need fewer rows than the height of the card allows for.
            for line, text, first in self.rows(room):
                y += _ROW
                self._row(canvas, x, y, line, text, first=first)

    @staticmethod
    def _row(canvas: Canvas, x: float, y: float, line: Line, text: str, *, first: bool) -> None:
        if first and line.label:
            canvas.text(x, y, line.label, size=_TEXT - 1, class_="pale")
        if first and line.tone != "plain":
            canvas.circle(x + 4, y - 4, 4, class_=line.tone)
        look = " ".join(filter(None, ["mono" if line.mono else "", line.tone if line.tone != "plain" else ""]))
        whole = line.title or (line.text if text.endswith("…") else "")
        canvas.text(x + _indent(line), y, text, size=_TEXT, class_=look, data_key=line.key, title=whole)


def _indent(line: Line) -> float:
    """Indentation of a line's text, for the label or dot before it."""
    if line.label:
        return width(line.label, _TEXT - 1) + 6
    return 14.0 if line.tone != "plain" else 0.0


def drawn(
    canvas: Canvas, cards: Sequence[Card], arrows: Sequence[Arrow], x: float, y: float
) -> tuple[Area, list[Area]]:
    """Draws cards and arrows at a point; returns the bounds of all, and of each card."""
    layout = layered([(card.width, card.height) for card in cards], arrows)
    places = [Area(box.x + x, box.y + y, box.width, box.height) for box in layout.boxes]
    low = max(place.bottom for place in places)
    for points in layout.arrows:
        moved = [(px + x, py + y) for px, py in points]
        low = max(low, *(py for _, py in moved))
        *_, (end, level) = moved
        canvas.path(curve([*moved[:-1], (end - 7, level)]), class_="arrow")
        canvas.path(f"M{end:g} {level:g} l-9 -4.5 v9 z", class_="head")
    for card, place in zip(cards, places, strict=True):
        card.draw(canvas, place)
    right = max(place.right for place in places)
    return Area(x, y, right - x, low - y), places
