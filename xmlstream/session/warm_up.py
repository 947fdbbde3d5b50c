"""Warm-up of Spark's Python processes, on one machine, while Spark still analyses the statements of a query.

Spark starts the process that describes a Python data source, and the workers that read from it, at the first request of
each, one after the other, and waits. Here both are started early, by an empty request.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from sources.xml.spark.multi_source_reader import MultiSourceXml, register_multi_source
from xmlstream.session.spark_session import cores_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def warm_up(spark: SparkSession) -> None:
    """Starts the processes, beside whatever else is done, if this machine is Spark's only one."""
    if cores_of(str(spark.sparkContext.master)) is not None:
        threading.Thread(target=_try, args=(spark,), name="warm-up", daemon=True).start()


def _try(spark: SparkSession) -> None:
    # Whatever is wrong, the query itself will meet it, and say so.
    with contextlib.suppress(Exception):
        request_nothing(spark)


def request_nothing(spark: SparkSession) -> int:
    """Has both processes started: the one that says what the sources are, and a worker; how many rows it gave."""
    from pyspark.sql.functions import udf

    register_multi_source(spark)
    spark.readStream.format(MultiSourceXml.name()).load()
    imports = udf(_with_imports, "BIGINT", useArrow=False)
    return len(spark.range(1, numPartitions=1).select(imports("id")).collect())


def _with_imports(number: int) -> int:
    """What it is given, from a worker that has imported what the first range of a document will need."""
    import sources.xml.spark.stage_writer  # noqa: F401

    return number
