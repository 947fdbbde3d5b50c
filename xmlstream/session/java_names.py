"""Names of Java's classes, looked up once: PySpark asks for the same few with every column and every frame.

Py4J asks Java anew whenever a name is used, and Java then looks for classes of that name in every package that is
imported: through all of Spark's jars for each where there is none. In small slices that was a fifth of all waiting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass, JavaMember  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
