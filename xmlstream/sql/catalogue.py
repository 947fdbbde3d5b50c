"""What Spark's analyser is shown: frames without tuples, and a session of its own that knows them by name.

Making them is much of what planning costs, so each is made once: a file of many queries has one session, and in it one
view of each table. No job is run, and no Python object goes to Java but the text of a schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from punct_ns.schema import Schema
from punct_ns.slices import quoted
from punct_ns.window_attributes import structured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Catalogue:
    """Frames without tuples, by their schema, and a session that has some of them as views."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._frames: dict[Schema, Any] = {}
        java: Any = spark._jvm
        self._fields = java.org.apache.spark.sql.types.StructType.fromDDL
        self._reader: SparkSession | None = None
        self._views: dict[str, Schema] = {}

    def frame(self, schema: Schema) -> DataFrame:
        """A frame of the schema in the user's session."""
        if schema not in self._frames:
            self._frames[schema] = self._empty(self._spark, schema)
        return self.of(self._frames[schema], self._spark)

    def session(self, tables: Mapping[str, Schema]) -> SparkSession:
        """A session with the tables as views, so that the user's own catalogue stays as it is.

        It has the settings of the user's session as they were when it was first asked for.
        """
        if self._reader is None:
            self._reader = self._with_settings()
        for name, schema in tables.items():
            if self._views.get(name) != schema:
                view = self.of(self._rowless(self._reader, _shown(schema)), self._reader)
                view.createOrReplaceTempView(f"`{name.replace('`', '``')}`")
                self._views[name] = schema
        return self._reader

    def _with_settings(self) -> SparkSession:
        session = self._spark.newSession()
        java: Any = self._spark._jvm
        settings = java.java.util.Properties()
        settings.putAll(self._spark._jsparkSession.conf().getAllAsJava())
        session._jsparkSession.sessionState().conf().setConf(settings)
        # What Spark's parser keeps behind a switch is read all the same: it is computed here.
        session.conf.set("spark.sql.join.asofJoin.enabled", "true")
        return session

    def _empty(self, session: SparkSession, schema: Schema) -> Any:
        return self._rowless(session, schema.ddl())

    def _rowless(self, session: SparkSession, ddl: str) -> Any:
        # Of an RDD: a frame of no rows would let Spark's optimizer make nothing of all that is asked of it. Of rows as
        # Spark has them itself: nothing has to be found that makes them of Java's.
        context: Any = session.sparkContext
        rows = context._jsc.emptyRDD().rdd()
        return session._jsparkSession.internalCreateDataFrame(rows, self._fields(ddl), False)

    @staticmethod
    def of(frame: Any, session: SparkSession) -> DataFrame:
        """Java's frame as Python's."""
        from pyspark.sql.classic.dataframe import DataFrame as OfJava

        return OfJava(frame, session)


def _shown(schema: Schema) -> str:
    """The schema as a query names its parts: a window is one."""
    return ", ".join(f"{quoted(name)} {type_}" for name, type_ in structured(schema))
