"""What FROM says of two queries that are joined, of the kind of join as SQL or PySpark calls it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import get_args

from operators.joins.join_sides import JoinKind
from punct_ns.errors import QueryError
from punct_ns.schema import Schema
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
        case str() if re.fullmatch(r"\s*\w+\s*", on):
            condition: list[str | QueryText] = [f" USING ({quoted(on.strip())})"]
        case str():
            condition = [" ON ", argument(on)]
        case _:
            condition = [f" USING ({', '.join(map(quoted, on))})"]
    return [f"`input` AS {quoted(left)} {kind} JOIN `other` AS {quoted(right)}", *condition]


def joined_asof(
    here: Schema,
    there: Schema,
    on: str,
    by: Sequence[str],
    how: str,
    left: str,
    right: str,
    tolerance: str | int | None,
) -> list[str | QueryText]:
    """The query of an as-of join of `input` and `other`, of these schemas.

    Raises:
        QueryError: There is no key, one of the names is none that both have, no as-of join is called so, or what a
            tolerance is of is said by a comparison.
    """
    plain = how.lower().replace("_", "")
    kind = {"inner": "", "left": "LEFT "}.get(SPARKS_JOINS.get(plain, plain))
    if kind is None:
        raise QueryError(f"no as-of join is called {how!r}", hint="inner, left")
    if not by:
        raise QueryError("an as-of join without a key", hint='by=["sensor"] names what is equal')
    keys = [here.attribute(name).name for name in by]
    same = {there.attribute(name).name for name in keys}
    compared = next((a.name for a in here if a.name.lower() == on.strip().lower()), None)
    at = None if compared is None else there.attribute(compared).name
    test = (
        argument(on) if compared is None else f"{quoted(left)}.{quoted(compared)} >= {quoted(right)}.{quoted(at or on)}"
    )
    shown = [f"{quoted(left)}.{quoted(name)}" if tolerance is not None else quoted(name) for name in keys]
    items = [*shown, *(f"{quoted(left)}.{quoted(name)}" for name in here.names if name not in keys)]
    for name in there.names:
        called = f" AS {quoted(f'{right}_{name}')}" if name == at else ""
        items += [f"{quoted(right)}.{quoted(name)}{called}"] if name not in same else []
    tables = f" FROM `input` AS {quoted(left)} {kind}ASOF JOIN `other` AS {quoted(right)} MATCH_CONDITION ("
    query: list[str | QueryText] = ["SELECT ", ", ".join(items), tables, test]
    if tolerance is None:
        return [*query, f"\n) USING ({', '.join(map(quoted, keys))})"]
    if compared is None or at is None:
        raise QueryError(
            f"an as-of join on {on!r} with a tolerance",
            hint="give both sides' attribute one name by with_column_renamed, and say on='that name'",
        )
    equal = [f"{quoted(left)}.{quoted(key)} = {quoted(right)}.{quoted(there.attribute(key).name)}" for key in keys]
    oldest = f"{quoted(right)}.{quoted(at)} >= {quoted(left)}.{quoted(compared)} - ("
    return [*query, f"\n) ON {' AND '.join(equal)} AND {oldest}", argument(str(tolerance)), "\n)"]
