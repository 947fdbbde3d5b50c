"""Loggers of libraries, kept silent where what they would log is raised as an error anyway."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet(log: logging.Logger) -> Iterator[None]:
    """Keeps a library from logging what is raised as an error here anyway."""
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


@contextmanager
def quiet_spark() -> Iterator[None]:
    """Keeps PySpark from logging the errors of queries.

    PySpark's logger takes arguments that no other does: were it first asked for as one of Python's, each error of
    Spark's that came later would be a TypeError.
    """
    from pyspark.logger import PySparkLogger

    with quiet(PySparkLogger.getLogger("SQLQueryContextLogger")):
        yield
