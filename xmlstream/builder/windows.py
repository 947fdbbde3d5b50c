"""Windows in time as the builder has them: the text of their lengths, and of sessions, by which to group."""

from __future__ import annotations

from collections.abc import Sequence

from xmlstream.builder.arguments import argument


def session_window(moment: str, gap: str) -> str:
    """SQL of the sessions by which to group, as in `group_by("bidder", xs.session_window("dateTime", "10 seconds"))`.

    Args:
        moment: An attribute, or an expression, that is a TIMESTAMP.
        gap: After how long without a tuple of its group a session is over, such as "1 hour 30 minutes".

    Returns:
        SQL's `session_window(…)`, whose ends are `session_window.start` and `session_window.end`.

    Raises:
        QueryError: The moment is not one expression.
    """
    argument(moment)
    return f"session_window({moment}, {text_literal(gap)})"


def lengths_of(size: str, slide: str | None, start: str | None) -> Sequence[str]:
    """The lengths that SQL's `window` takes behind the moment."""
    given = [size, slide or size, start] if start is not None else [size, slide]
    return [length for length in given if length is not None]


def text_literal(text: str) -> str:
    """A text as SQL writes it.

    >>> text_literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
