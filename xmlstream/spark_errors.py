"""What Spark's analyser says of a query, in this house's words: what, where, hint."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from punct_ns.errors import QueryError
from xmlstream.dialect import quiet
from xmlstream.query_text import QueryText

if TYPE_CHECKING:
    from pyspark.errors.exceptions.base import PySparkException


@contextmanager
def explained(text: QueryText | None = None, start: int = 0) -> Iterator[None]:
    """Turns what the analyser raises into a `QueryError`; `start` is where in the text that begins which it reads."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        with quiet("SQLQueryContextLogger"):
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


def first_cause(error: BaseException) -> str:
    r"""What an error is about, in a line; of Java's, the first exception that it names.

    >>> first_cause(RuntimeError("An error occurred while calling o1.start.\n: java.io.IOException: disk full\n\tat x"))
    'java.io.IOException: disk full'
    >>> first_cause(ValueError())
    'ValueError'
    """
    lines = [line.strip().removeprefix(": ") for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if re.match(r"[\w.$]+(Exception|Error): ", line)]
    return (causes or lines or [type(error).__name__])[0]


def is_late_worker(error: object) -> bool:
    """Whether Spark waited in vain for a Python process that it had started.

    >>> is_late_worker("SparkException: Timed out while waiting for the Python worker to connect back")
    True
    """
    said = str(error)
    return "Python worker" in said and "connect back" in said


def reason_in(log: str) -> str | None:
    r"""Why Java ended, by what it wrote; None where it does not say.

    >>> reason_in("WARNING: x\nException in thread \"main\" java.lang.Error: no such master\n\tat y")
    'no such master'
    >>> reason_in("Error occurred during initialization of VM\nCould not reserve enough space\n")
    'Could not reserve enough space'
    """
    if found := re.search(r'^Exception in thread "[^"]*" [\w.$]+: (.*)$', log, re.MULTILINE):
        return found[1]
    if found := re.search(r"^Error occurred during initialization of VM\n(.*)$", log, re.MULTILINE):
        return found[1]
    found = re.search(r"^(?:Error: |.* ERROR \w+: )(.*)$", log, re.MULTILINE)
    return found[1] if found else None
