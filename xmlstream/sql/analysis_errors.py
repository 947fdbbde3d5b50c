"""What Spark's analyser says of a query, in this house's words: what, where, hint."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from operators.expressions.quiet import quiet_spark
from punct_ns.errors import QueryError
from xmlstream.sql.query_text import QueryText

if TYPE_CHECKING:
    from pyspark.errors.exceptions.base import PySparkException


@contextmanager
def explained(text: QueryText | None = None, start: int = 0) -> Iterator[None]:
    """Turns what the analyser raises into a `QueryError`; `start` is where in the text that begins which it reads."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        with quiet_spark():
            yield
    except (AnalysisException, ParseException) as error:
        what, hint = _said(error)
        at = _offset(error)
        if text is None or at is None:
            raise QueryError(what, hint=hint) from None
        raise text.error(what, start + at, hint) from None


def _offset(error: PySparkException) -> int | None:
    for context in error.getQueryContext():
        if context.contextType().name == "SQL":
            return int(context.startIndex())
    return None


def _said(error: PySparkException) -> tuple[str, str | None]:
    condition, given = error.getCondition() or "", error.getMessageParameters() or {}
    match condition.split("."):
        case ["UNRESOLVED_COLUMN", *_]:
            name, proposal = _bare(given.get("objectName", "")), _bare(given.get("proposal", ""))
            return f"there is no attribute {name}", f"there are {proposal}" if proposal else None
        case ["AMBIGUOUS_REFERENCE"]:
            return f"{_bare(given.get('name', ''))} may be several attributes", "put the table's name before it"
        case ["TABLE_OR_VIEW_NOT_FOUND"]:
            return f"there is no table {_bare(given.get('relationName', ''))}", "declare it with CREATE TABLE"
        case ["MISSING_AGGREGATION" | "MISSING_GROUP_BY", *_]:
            return (
                f"{given.get('expression', 'this').strip(chr(34))} is neither grouped by nor aggregated",
                "name it in GROUP BY, or aggregate it",
            )
        case ["PARSE_SYNTAX_ERROR"]:
            return f"{given.get('error', 'this')} is not expected here", None
    return _plain(str(error)), None


def _bare(names: str) -> str:
    return names.replace("`.`", ".").replace("`", "")


def _plain(message: str) -> str:
    r"""Spark's message without its error class, its SQL state and the plan that follows.

    >>> _plain("[A.B] Cannot do it. SQLSTATE: 42K09; line 1 pos 7;\n'Project")
    'Cannot do it.'
    """
    message = re.sub(r"^\s*\[[A-Z0-9_.]+\]\s*", "", message)
    return re.sub(r"\s*(SQLSTATE: \w+|; line \d+ pos \d+).*", "", message, flags=re.DOTALL).strip()
