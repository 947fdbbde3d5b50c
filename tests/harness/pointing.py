"""Where an error points to in the text of a query."""

from __future__ import annotations

from xmlstream.punct_ns.errors import QueryError


def pointed_at(error: QueryError, text: str, line: int | None = None) -> str:
    """The rest of a text, from where an error points to on; `line` is the one on which the text lies."""
    assert line in (None, error.line)
    assert error.column is not None
    return text[error.column - 1 :]
