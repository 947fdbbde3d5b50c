"""What older versions of Spark do not parse: replaced by what they do parse, or refused by name.

Spark only types and checks a query; the plan is this package's own. So an ASOF JOIN, which Spark parses since 4.3, can
be shown to an older one as the ordinary join with the same columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import Token, exp

from xmlstream.operators.expressions.dialect import tokens

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.sql.statements import Statement

Version = tuple[int, int]

ASOF_SINCE: Version = (4, 3)
"""The first version of Spark that parses ASOF JOIN."""

_SINCE: dict[type[exp.Expression], tuple[str, Version, str]] = {
    exp.Qualify: ("QUALIFY", (4, 2), "number the rows in a subquery, and filter by WHERE around it"),
}
"""Clauses: their name, the first version of Spark that parses them, and what to write instead."""


def version_of(spark: SparkSession) -> Version:
    """The version of Spark in a session, its first two numbers."""
    major, minor, *_ = spark.version.split(".")
    return int(major), int(minor)


def require_parsed(statement: Statement, version: Version) -> None:
    """Makes sure that the statement has no clause that this version of Spark does not parse.

    Raises:
        QueryError: It has one.
    """
    for kind, (name, since, hint) in _SINCE.items():
        if version < since and (found := statement.tree.find(kind)) is not None:
            what = f"{name} needs Spark {since[0]}.{since[1]}, and this is {version[0]}.{version[1]}"
            raise statement.text.error(what, found.this, hint)


def without_asof(text: str) -> str:
    """The text with ordinary joins for ASOF JOINs: the word and the MATCH_CONDITION are blank, all else is in place.

    >>> without_asof("SELECT * FROM a ASOF JOIN b MATCH_CONDITION (f(a.t) >= b.t) ON a.k = b.k")
    'SELECT * FROM a      JOIN b                                 ON a.k = b.k'
    """
    blank = list[tuple[int, int]]()
    found = tokens(text)
    for number, token in enumerate(found):
        word = token.text.upper()
        if word == "ASOF" and found[number + 1 : number + 2] and found[number + 1].text.upper() == "JOIN":
            blank.append((token.start, token.end + 1))
        elif word == "MATCH_CONDITION" and (end := _closing(found, number + 1)) is not None:
            blank.append((token.start, end + 1))
    for start, end in blank:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _closing(found: list[Token], at: int) -> int | None:
    """The offset of the parenthesis that closes the one at a token; None if there is none."""
    depth = 0
    for token in found[at:]:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth <= 0:
            return token.end if token.text == ")" else None
    return None
