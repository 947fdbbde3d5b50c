"""Java's logging of a query that ends with an error, kept quiet while the error itself is on its way to the user.

Spark logs the stack of it twice, and that of a task that failed; the exception that comes says it in a sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGGERS = (
    "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution",
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
)
"""Who tells of errors that end a query."""


@contextmanager
def quiet_failures(spark: SparkSession) -> Iterator[None]:
    """Keeps these loggers of Spark's from saying what is raised; afterwards they say what they said before."""
    log4j: Any = spark._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    set_level = log4j.core.config.Configurator.setLevel
    before = {name: log4j.LogManager.getLogger(name).getLevel() for name in LOGGERS}
    for name in LOGGERS:
        set_level(name, log4j.Level.OFF)
    try:
        yield
    finally:
        for name, level in before.items():
            set_level(name, level)
