"""Errors of Spark and Java: finds the cause in their output, and silences their loggers.

Spark logs the stack trace of an error that ends a query twice, and that of a failed task, too; the raised exception
has the same in one sentence.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from xmlstream.punct_ns.errors import InputError, QueryError, XmlStreamError, few


def first_cause(error: BaseException) -> str:
    r"""The message of an error in one line; for an error of Java, the first exception that it names.

    >>> first_cause(RuntimeError("An error occurred while calling o1.start.\n: java.io.IOException: disk full\n\tat x"))
    'java.io.IOException: disk full'
    >>> first_cause(ValueError())
    'ValueError'
    """
    lines = [line.strip().removeprefix(": ") for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if re.match(r"[\w.$]+(Exception|Error): ", line)]
    return (causes or lines or [type(error).__name__])[0]


def reason_in(log: str) -> str | None:
    r"""The reason why Java ended, from its log; None if the log has none.

    >>> reason_in("WARNING: x\nException in thread \"main\" java.lang.Error: no such master\n\tat y")
    'no such master'
    >>> reason_in("Error occurred during initialization of VM\nCould not reserve enough space\n")
    'Could not reserve enough space'
    """
    found = (re.search(pattern, log, re.MULTILINE) for pattern in _REASONS)
    return next((reason[1] for reason in found if reason), None)


_REASONS = (
    r'^Exception in thread "[^"]*" [\w.$]+: (.*)$',
    r"^Error occurred during initialization of VM\n(.*)$",
    r"^(?:Error: |.* ERROR \w+: )(.*)$",
)


def of_data(failure: BaseException, documents: Sequence[str], slice_: int) -> InputError | None:
    r"""The failure of a slice as an error of its data, if a value could not be computed; else None.

    >>> str(of_data(QueryError("[SQRT] It is below zero."), ["in/1.xml"], 3))
    'It is below zero [SQRT]\n  slice 3, which read in/1.xml\n  Hint: correct the source'
    """
    text = failure.what if isinstance(failure, QueryError) else first_cause(failure)
    found = re.search(r"\[([A-Z_]+)[.\w]*\] (.*?)\.?(?: (?:Correct|Use|If) .*| SQLSTATE.*)?$", text)
    if found is None or not (isinstance(failure, QueryError) or "SQLSTATE: 22" in text) or found[1] == "NOT_PROVEN":
        return None
    where = f"slice {slice_}, which read {few(documents)}"
    if several := re.search(rf"(\d+){SEVERAL_ROWS}", found[2]):
        what = f"a subquery that is used as one value has {several[1]} rows"
        return InputError(what, where=where, hint="select max(…) in it, or write a condition that leaves one row")
    hint = next((hint for part, hint in _CURES.items() if part in found[1]), "correct the source")
    return InputError(f"{found[2]} [{found[1]}]", where=where, hint=hint)


SEVERAL_ROWS = " rows of a subquery that is used as one value"
"""What stands behind their number in the text that the value of a subquery of several rows casts to an INT."""


_CURES = {
    "CAST": "write TRY_CAST in place of CAST, which gives null then, or declare the column with this type, so that the"
    " option mode 'PERMISSIVE' sets such items aside; without a CAST, two types differ in a comparison, CASE or"
    " coalesce",
    "BY_ZERO": "write a / nullif(b, 0), which is null then",
}
"""Hints by parts of Spark's conditions."""


def of_worker(failure: BaseException, slice_: int) -> XmlStreamError | None:
    r"""The failure of a slice whose Python worker has ended, in words; else None.

    >>> of_worker(RuntimeError("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"), 3).what
    'a worker process of Python has ended while it computed'
    """
    if not any(part in str(failure) for part in _WORKER_ENDED):
        return None
    return XmlStreamError(
        "a worker process of Python has ended while it computed",
        where=f"slice {slice_}",
        hint="does a function of the query end the process, or take more memory than there is? Nothing of the slice"
        " is committed: the next run computes it again",
    )


_WORKER_ENDED = ("Python worker exited unexpectedly", "PYTHON_WORKER_EXITED_UNEXPECTEDLY", "python worker crashed")


LOGGERS = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution",
)
"""The loggers of errors that end a query."""


@contextmanager
def quiet_failures(spark: Any) -> Iterator[None]:
    """Silences these loggers while errors are raised instead; restores their levels afterwards.

    `spark` is a session; one without Spark has no loggers.
    """
    if not hasattr(spark, "sparkContext"):
        yield
        return
    log4j: Any = spark._jvm.org.apache.logging.log4j
    set_level = log4j.core.config.Configurator.setLevel
    with _CHANGING:
        _levels_before.append([log4j.LogManager.getLogger(name).getLevel() for name in LOGGERS])
        for name in LOGGERS:
            set_level(name, log4j.Level.OFF)
    try:
        yield
    finally:
        with _CHANGING:
            # Queries end in any order: the last one restores what the first one found.
            before = _levels_before.pop()
            for name, level in zip(LOGGERS, before, strict=True) if not _levels_before else ():
                set_level(name, level)


_CHANGING, _levels_before = threading.Lock(), list[list[Any]]()
