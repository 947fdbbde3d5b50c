"""The option `semantics` of a stream: windows over it as another engine would have them, as text.

    streambase, size 5, slide 1, of time
    coral8, size 4, slide 1, of time, batch bid
    stream, size 100 tuples, slide 10, of time

The table has four attributes more then, by which a query groups what that engine would aggregate: window_start,
window_end, window_at and window_tuple (`operators.secret_window`).
"""

from __future__ import annotations

from punct_ns.errors import UsageError
from punct_ns.schema import split_name
from punct_ns.type_name import split_outside
from xmlstream.plan.nodes import Node
from xmlstream.secret.operator import secret_window
from xmlstream.secret.profile import PROFILES, Windows, profile
from xmlstream.sql.positions import require_positions

OPTION = "semantics"

_HINT = f"write 'streambase, size 5, slide 1, of time'; there are {', '.join(PROFILES)}; 'size 5 tuples' counts tuples"
_WORDS = ("size", "slide", "of", "batch")


def reported(node: Node, text: str) -> Node:
    """What an engine reports of windows over a source, each tuple in each of them.

    Raises:
        UsageError: The text cannot be read, or there is no such engine.
        QueryError: An attribute does not fit, or the tuples have no order.
    """
    engine, *parts = (part.strip() for part in split_outside(text, ","))
    said: dict[str, str] = {}
    for part in parts:
        word, _, value = part.partition(" ")
        if word.lower() not in _WORDS or not value.strip() or word.lower() in said:
            raise UsageError(f"'{part}' in semantics '{text}' cannot be read", hint=_HINT)
        said[word.lower()] = value.strip()
    if missing := [word for word in _WORDS[:3] if word not in said]:
        raise UsageError(f"semantics '{text}' does not say {_together(missing)}", hint=_HINT)
    size, _, unit = said["size"].partition(" ")
    length, slide = (int(number) if number.isdecimal() else 0 for number in (size, said["slide"]))
    if unit.strip().lower() not in ("", "tuples") or not (length and slide):
        raise UsageError(f"semantics '{text}' has a size or slide that is no number above 0", hint=_HINT)
    windows = Windows(length, slide, of_tuples=bool(unit.strip()))
    batch = split_name(said["batch"])[0] if "batch" in said else None
    return in_windows(node, engine, windows, split_name(said["of"])[0], batch)


def _together(words: list[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def in_windows(node: Node, engine: str, windows: Windows, time: str, batch: str | None) -> Node:
    """The same of any node whose tuples have positions."""
    require_positions(node, f"windows as {engine} has them")
    return Node(secret_window(profile(engine), windows, time, batch), (node,), "secret_window")
