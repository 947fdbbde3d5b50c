"""Searches that Spark's Java process need not repeat: for the names of classes, and for installed data sources.

PySpark needs the same few Java classes with every column and every frame. Py4J asks Java anew whenever a name is used,
and Java then looks for classes of that name in every package that is imported: through all of Spark's jars for each
where there is none. In small slices that was a fifth of all waiting. Here each name is looked up once.

For the first data source in Python, such as ours, Spark has a Python process import every package whose name begins
with `pyspark_`: half a second of each start. This process sees the same packages, and seldom is there one.
"""

from __future__ import annotations

from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass, JavaMember  # type: ignore[import-untyped]

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


_USUAL = (
    "PythonSQLUtils",
    "PythonUtils",
    "functions",
    "org.apache.spark.sql.catalyst.trees.PySparkCurrentOrigin",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.functions",
)
"""What PySpark calls most, under the names that it calls it by."""


class _LookedUp(JavaClass):  # type: ignore[misc]
    """A class of Java that is asked once for each of its static methods."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            # Found from now on without coming here.
            setattr(self, name, found)
        return found


def look_up(spark: SparkSession) -> None:
    """Has this session's Python know the classes of its Java that PySpark calls most; what is no class stays as it is.

    Args:
        spark: A session, new or known; its Java process never changes what a name means.
    """
    jvm: Any = spark._jvm
    for name in _USUAL:
        found = getattr(jvm, name)
        if isinstance(found, JavaClass) and not isinstance(found, _LookedUp):
            setattr(jvm, name, _LookedUp(found._fqn, found._gateway_client))
