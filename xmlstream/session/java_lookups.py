"""Avoids repeated searches in Spark's Java process: for class names, and for installed data sources.

PySpark uses the same few Java classes for every column and every frame. For each use of a name Py4J sends a request to
Java, which searches every imported package, and so all of Spark's jars, for a class of that name. In small slices this
takes a fifth of the waiting time. `look_up` searches each name once. For a dotted name each part is searched: `org`,
`org.apache` and so on; planning a query needs twenty, and each error of Spark for a hundred.

For the first Python data source, Spark starts a Python process that imports every package whose name begins with
`pyspark_`: half a second of each start. This process sees the same packages; usually there are none.
"""

from __future__ import annotations

from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_FINDER = "org.apache.spark.sql.execution.datasources.DataSourceManager$"


def spare_the_search(spark: SparkSession) -> None:
    """Informs Spark that no Python data source is installed, if that is so and Spark has not searched yet.

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
        # This field is internal to Spark: a version without it searches as usual.
        return


_USUAL = (
    "ArrowIteratorServer",
    "PythonSQLUtils",
    "PythonUtils",
    "functions",
    "org.apache.spark.sql.catalyst.trees.PySparkCurrentOrigin",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.functions",
)
"""The Java classes that PySpark uses most, by the names that it uses."""

_PACKAGES = ("java", "org", "py4j", "scala")
"""Where the names of all packages begin that PySpark and this project use."""


class _LookedUp(JavaClass):  # type: ignore[misc]
    """A Java class that looks up each of its static methods only once."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            # The next access finds the attribute without this method.
            setattr(self, name, found)
        return found


class _LookedInto(JavaPackage):  # type: ignore[misc]
    """A Java package that looks up each package below it, and each of its classes, only once."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaClass):
            found = _LookedUp(found._fqn, found._gateway_client)
        elif isinstance(found, JavaPackage) and name.islower():
            found = _LookedInto(found._fqn, found._gateway_client, found._jvm_id)
        else:
            # Java does not know the class yet; a jar that a session adds later may have it.
            return found
        setattr(self, name, found)
        return found


def look_up(spark: SparkSession) -> None:
    """Looks up the Java classes that PySpark uses most, once per session, and all packages when they are first used.

    Args:
        spark: A session; repeated calls have no effect.
    """
    jvm: Any = spark._jvm
    for name in _USUAL:
        found = getattr(jvm, name)
        if isinstance(found, JavaClass) and not isinstance(found, _LookedUp):
            setattr(jvm, name, _LookedUp(found._fqn, found._gateway_client))
    for name in _PACKAGES:
        found = getattr(jvm, name)
        if isinstance(found, JavaPackage) and not isinstance(found, _LookedInto):
            setattr(jvm, name, _LookedInto(found._fqn, found._gateway_client, found._jvm_id))
