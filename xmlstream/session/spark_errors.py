"""Causes of failures, found in what Spark and Java print."""

from __future__ import annotations

import re


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
