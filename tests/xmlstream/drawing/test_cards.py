"""Cards of the drawing are as wide as their words."""

from __future__ import annotations

from xmlstream.drawing.cards import Card, Line


def test_the_widest_line_of_a_card_is_never_cut() -> None:
    cut = []
    for number in range(1, 1000):
        text = f"{number} in · {number} out"
        card = Card("merge", (Line(text, label="tuples"),))
        room = card.width - (Card("merge").width - 96)
        cut += [shown for _, shown, _ in card.rows(room) if shown != text]
    assert cut == []
