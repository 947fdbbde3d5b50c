"""What SELECT lists where a query's attributes stay, but for one that is added, renamed or dropped."""

from __future__ import annotations

from collections.abc import Sequence

from punct_ns.errors import QueryError
from punct_ns.schema import Schema
from punct_ns.slices import quoted
from xmlstream.builder.arguments import argument, separated
from xmlstream.sql.query_text import QueryText


def with_column(schema: Schema, name: str, expression: str) -> list[str | QueryText]:
    """All attributes, and an expression under a name, in the place of the attribute that has it."""
    new = QueryText.joined(["(", argument(expression), f"\n) AS {quoted(name)}"])
    at = [other.lower() for other in schema.names]
    parts: list[str | QueryText] = [quoted(other) for other in schema.names]
    if name.lower() in at:
        parts[at.index(name.lower())] = new
    else:
        parts.append(new)
    return separated(parts)


def renamed(schema: Schema, old: str, new: str) -> str:
    """All attributes, one of them under another name."""
    known = schema.attribute(old).name
    items = (f"{quoted(name)} AS {quoted(new)}" if name == known else quoted(name) for name in schema.names)
    return ", ".join(items)


def without(schema: Schema, names: Sequence[str]) -> str:
    """All attributes but these.

    Raises:
        QueryError: None is left.
    """
    gone = {schema.attribute(name).name for name in names}
    left = [quoted(name) for name in schema.names if name not in gone]
    if not left:
        raise QueryError("nothing is left of the query's attributes", hint="keep one of them")
    return ", ".join(left)
