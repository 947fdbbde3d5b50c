"""Boxes of drawings, compared."""

from __future__ import annotations

from xmlstream.drawing.canvas import Area


def overlap(one: Area, other: Area) -> bool:
    """Whether two boxes have more than an edge in common."""
    apart = one.right <= other.x or other.right <= one.x or one.bottom <= other.y or other.bottom <= one.y
    return not apart
