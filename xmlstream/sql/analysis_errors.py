"""What Spark's analyser says of a query, in this house's words: what, where, hint."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from operators.expressions.dialect import offset, render
from operators.expressions.quiet import quiet_spark
from punct_ns.errors import QueryError
from xmlstream.session.spark_errors import first_cause
from xmlstream.sql.query_text import QueryText

if TYPE_CHECKING:
    from pyspark.errors.exceptions.base import PySparkException
    from pyspark.sql import SparkSession


@contextmanager
def explained(text: QueryText | None = None, start: int = 0) -> Iterator[None]:
    """Turns what the analyser raises into a `QueryError`; `start` is where in the text that begins which it reads."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        with quiet_spark():
            yield
    except PySparkException as error:
        what, hint = _said(error)
        at = _offset(error)
    except Py4JJavaError as error:  # what PySpark has no name for
        what, hint, at = _plain(first_cause(error).partition(": ")[2]), None, None
    else:
        return
    raise QueryError(what, hint=hint) if text is None else text.error(what, start + (at or 0), hint)


def require_patterns(tree: exp.Expr, text: QueryText, spark: SparkSession) -> None:
    """Tries the constant patterns of a query, which Spark would read only when the first tuple comes.

    Raises:
        QueryError: One cannot be read.
    """
    from pyspark.errors import PySparkException

    for call in tree.find_all(exp.Anonymous):
        name, given = str(call.this).lower(), call.expressions
        if name not in _PATTERNS or len(given) < 2 or not (isinstance(given[1], exp.Literal) and given[1].is_string):
            continue
        argument, hint = _PATTERNS[name]
        try:
            with quiet_spark():
                java: Any = spark.sql(f"SELECT {name}({argument}, {render(given[1])})")._jdf
                java.queryExecution().optimizedPlan()
        except PySparkException as error:
            if "PATTERN" in (error.getCondition() or ""):
                raise text.error(f"'{given[1].this}' is no pattern of {name}", offset(given[1]), hint) from None


_OF_MOMENTS = "y is the year, M the month, d the day of the month, H the hour: 'yyyy-MM-dd HH:mm:ss'"
_PATTERNS = {
    **dict.fromkeys(("date_format", "to_char", "to_varchar"), ("TIMESTAMP '2020-02-29 12:34:56'", _OF_MOMENTS)),
    **dict.fromkeys(("from_unixtime",), ("0", _OF_MOMENTS)),
    **dict.fromkeys(
        (*("to_date", "to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz", "to_unix_timestamp", "unix_timestamp"),),
        ("''", _OF_MOMENTS),
    ),
    **dict.fromkeys(
        ("regexp_extract", "regexp_extract_all", "regexp_like", "regexp_count", "regexp_instr", "regexp_substr"),
        ("''", "a pattern is a regular expression of Java's; a backslash is written twice, '\\\\d'"),
    ),
}
"""Functions whose second argument is a pattern: something to try one on, and a hint."""


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
