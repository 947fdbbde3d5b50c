"""Installed data sources: Spark need not start a process to find that no Python package brings any.

Asked for the first data source in Python, such as ours, Spark has a Python process import every package whose name
begins with `pyspark_`: half a second of each start. This process sees the same packages, and seldom is there one.
"""

from __future__ import annotations

from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FINDER = "org.apache.spark.sql.execution.datasources.DataSourceManager$"


def spare_the_search(spark: SparkSession) -> None:
    """Tells Spark that no data source is installed, where that is so and it has not looked yet.

    Args:
        spark: A session whose Java process and workers see the packages that this process sees.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    if any(module.name.startswith("pyspark_") for module in iter_modules()):
        return
    jvm: Any = spark._jvm
    try:
        finder = getattr(getattr(jvm, _FINDER), "MODULE$")
        if finder.dataSourceBuilders().isEmpty():
            none = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(jvm.java.util.HashMap())
            getattr(finder, "dataSourceBuilders_$eq")(jvm.scala.Option.apply(none))
    except (Py4JError, TypeError):
        # It is Spark's own business where it notes what it found: a Spark that does so elsewhere looks for itself.
        return
