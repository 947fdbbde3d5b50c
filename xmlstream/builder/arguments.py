"""The builder's arguments: Spark SQL as text, each read by itself before it becomes part of a query's text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from punct_ns.errors import QueryError
from xmlstream.sql.grouping import aggregates_in
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.statements import parse_statements


def argument(text: str) -> QueryText:
    """One expression, perhaps with a name, as part of a query's text.

    Raises:
        QueryError: It is not SQL text, or is more than one expression.
    """
    if not isinstance(text, str):
        raise QueryError(f"{text!r} is no SQL text", hint='expressions are written as text, such as "a + 1 AS b"')
    written = QueryText.of(text, f"'{text}'")
    statements = parse_statements(QueryText.joined(["SELECT ", written]))
    parts = {name for name, value in statements[0].tree.args.items() if value}
    if len(statements) != 1 or parts != {"expressions"} or len(statements[0].tree.expressions) != 1:
        raise written.error("not one expression", 0, "give each expression as an argument of its own")
    return written


def has_aggregate(text: str) -> bool:
    """Whether an expression aggregates."""
    return any(True for _ in aggregates_in(parse_statements(QueryText.of(f"SELECT {text}"))[0].tree))


def listed(texts: Iterable[str]) -> list[str | QueryText]:
    """Expressions, each read by itself, with commas between."""
    return separated([argument(text) for text in texts])


def separated(parts: Iterable[str | QueryText]) -> list[str | QueryText]:
    """The parts with commas between; on lines of their own, since they may end with a comment."""
    listed = [separated for part in parts for separated in (part, "\n, ")]
    return [*listed[:-1], "\n"]


def sort_key(text: str) -> str:
    """An attribute, perhaps with its direction, as ORDER BY takes it."""
    name, *words = text.split()
    bare = name.startswith("`") or re.fullmatch(r"\w+", name)
    if not bare or not {word.upper() for word in words} <= {"ASC", "DESC", "NULLS", "FIRST", "LAST"}:
        raise QueryError(f"not a key to sort by: {text!r}", hint='an attribute and its direction, such as "hour DESC"')
    return text
