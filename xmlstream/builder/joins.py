"""What FROM says of two queries that are joined, of the kind of join as SQL or PySpark calls it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from operators.join import JoinKind
from punct_ns.errors import QueryError
from punct_ns.slices import quoted
from xmlstream.builder.arguments import argument
from xmlstream.builder.sparks_names import JOINS as SPARKS_JOINS
from xmlstream.sql.query_text import QueryText

_JOINS = {
    how: ("LEFT " if how in ("semi", "anti") else "") + how.upper() for how in (*get_args(JoinKind), "semi", "anti")
}


def joined(on: str | Sequence[str], how: str, left: str, right: str) -> list[str | QueryText]:
    """The tables `input` and `other`, under the names of the sides, and the condition or the common names.

    Raises:
        QueryError: No join is called so.
    """
    plain = how.lower().replace("_", "")
    kind = _JOINS.get(SPARKS_JOINS.get(plain, plain))
    if kind is None:
        raise QueryError(f"no join is called {how!r}", hint=", ".join(_JOINS))
    match on:
        case str():
            condition: list[str | QueryText] = [" ON ", argument(on)]
        case _:
            condition = [f" USING ({', '.join(map(quoted, on))})"]
    return [f"`input` AS {quoted(left)} {kind} JOIN `other` AS {quoted(right)}", *condition]
