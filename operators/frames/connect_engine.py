"""Spark behind Spark Connect as the engine of frames: a client of a server, which may be on another machine.

The client has no Java. So this engine uses PySpark's public methods where `SparkEngine` speaks with Java to spare
messages; each message goes to the server instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from xmlstream.operators.frames.frame import Frame, Observed
from xmlstream.operators.frames.spark_engine import SparkEngine, quiet_spark
from xmlstream.operators.frames.zones import PythonZone
from xmlstream.punct_ns.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from xmlstream.operators.frames.frame import ZoneRules
    from xmlstream.punct_ns.time_zones import ClockChange


class ConnectEngine(SparkEngine):
    """A session of Spark Connect as an engine."""

    @property
    def heap(self) -> int | None:
        """None: that of the server is not known here."""
        return None

    def mapped(self, made: DataFrame, function: Any, columns: StructType) -> DataFrame:
        """See `SparkEngine.mapped`: here `mapInArrow` itself, since a client of Spark Connect has pandas."""
        names = made.columns

        # Spark reads the name of the function, which an object that is called has not; and the dot in `window.start` as
        # that of a structure.
        def called(batches: Iterable[pa.RecordBatch]) -> Any:
            return function(batch.rename_columns(names) for batch in batches)

        return made.toDF(*(f"_{number}" for number in range(len(names)))).mapInArrow(called, columns)

    def require_files(self, path: str) -> None:
        """See `Engine.require_files`: the server looks for its file system when it analyses a reader of the path."""
        from pyspark.errors import PySparkException

        try:
            with quiet_spark():
                _ = self.spark.read.text(path).schema
        except PySparkException as error:
            if "UnsupportedFileSystemException" in str(error) or "ClassNotFoundException" in str(error):
                raise self._no_files(path) from None

    def metrics(self, frame: Frame) -> Mapping[str, Any]:
        """The aggregates that Spark has observed: they come with the rows."""
        assert isinstance(frame.operation, Observed)
        found = frame.operation.found or {}
        return found if isinstance(found, dict) else dict(found.get)

    def zone_rules(self, zone: str = "") -> ZoneRules:
        """Python's rules of a time zone, by default the session's, once the server has shown that it knows them.

        Raises:
            UsageError: It knows others.
        """
        return _zone(zone or self.zone, self.spark)

    def _given_rows(self, table: pa.Table, struct: StructType) -> DataFrame:
        return self.spark.createDataFrame(table, struct)

    def _name_job(self) -> None:
        """Names nothing: the names of jobs belong to the server's context."""


_STEP = 30 * 86_400
"""Seconds between the moments at which offsets are compared besides the changes."""


@lru_cache(maxsize=16)
def _zone(zone: str, spark: SparkSession) -> PythonZone:
    python = PythonZone(zone)
    # Those after 2099 follow the same rules as the last ones.
    changes = python.changes
    moments = sorted({*_around(changes), *range(changes[0].second, changes[-1].second, _STEP)} if changes else {0})
    local = "CAST(timestamp_seconds(id) AS TIMESTAMP_NTZ)"
    offset = f"timestampdiff(SECOND, TIMESTAMP_NTZ '1970-01-01 00:00:00', {local}) - id AS ahead"
    given = spark.createDataFrame(pa.table({"id": moments}))
    found = given.selectExpr("id", offset).toArrow().to_pylist()
    for row in found:
        if row["ahead"] != python.offset(row["id"]):
            raise UsageError(
                f"the server of Spark Connect and this machine have different clocks for the time zone {zone}",
                where=f"{row['id']} seconds after 1970 they are {row['ahead']} and {python.offset(row['id'])} s ahead",
                hint="bring the time zones of both up to date: Java there, the package tzdata here; or use UTC",
            )
    return python


def _around(changes: Sequence[ClockChange]) -> set[int]:
    return {change.second + beside for change in changes for beside in (-1, 0)}
