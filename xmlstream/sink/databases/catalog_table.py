"""Tables of the session's catalog as sinks: Spark appends each slice to a table of Delta Lake or Iceberg.

A slice is appended once it is committed, from its draft in the checkpoint, so that its number always has the same rows.
The append carries the identifier of the query and the number. Delta Lake passes over an append whose number it has
(`txnAppId`, `txnVersion`); in an Iceberg table the number stands in the summary of the snapshot, where the next run
looks before it appends. Other formats cannot record the number together with the rows, and are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from xmlstream.punct_ns.errors import UsageError, XmlStreamError
from xmlstream.punct_ns.schema import Schema
from xmlstream.sink.sink import SinkHome, SinkKind
from xmlstream.sink.staged_sink import GOES_ON, StagedSlice, require_columns, require_last

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERY, SLICE = "xmlstream.query", "xmlstream.slice"
"""Keys in the summary of an Iceberg snapshot: the query, and the slice that it has appended."""

_SCHEME = "catalog://"


class CatalogLoader:
    """Appends one result of a query to a table (`xmlstream.sink.staged_sink.Loader`)."""

    def __init__(self, output: str, schema: Schema, home: SinkHome) -> None:
        self._name, self._schema, self._home = output.removeprefix(_SCHEME), schema, home
        self._format, self._last = "", -1

    def prepare(self) -> None:
        """Looks the table up, and the last slice that an Iceberg table has; raises the errors of `Loader.prepare`."""
        engine = self._home.engine
        empty = None if engine is None else engine.dataframe(engine.empty(self._schema.ddl()))
        if empty is None:
            hint = "without Spark write out.delta, or iceberg://catalog/namespace.table"
            raise UsageError(f"the table {self._name} of a catalog is written by Spark", hint=hint)
        with self._named():
            self._prepare(empty.sparkSession, empty)

    def _prepare(self, spark: SparkSession, empty: DataFrame) -> None:
        name = self._name
        if not spark.catalog.tableExists(name):
            columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in empty.schema)
            hint = f"create it: CREATE TABLE {name} ({columns}) USING delta"
            raise UsageError(f"there is no table {name} in the session's catalogs", hint=hint)
        self._format = _format_of(spark, name)
        if self._format not in ("delta", "iceberg"):
            hint = (
                "write a table of Delta Lake or Iceberg; or, each slice at least once, foreach_slice("
                f'lambda tuples, punctuations, number: tuples.write.mode("append").saveAsTable("{name}"))'
            )
            raise UsageError(f"the table {name} is {self._format}, which does not record its slices", hint=hint)
        require_columns(name, _types(spark.table(name)), _types(empty))
        if self._format == "iceberg":
            # The next run looks for the last one only, so older snapshots may expire.
            found = spark.table(f"{name}.snapshots").where(f"summary['{QUERY}'] = '{self._home.query}'")
            # A table that was rolled back shows the ancestors of its current snapshot only.
            shown = found.join(spark.table(f"{name}.history").where("is_current_ancestor"), "snapshot_id", "left_semi")
            last: Any = shown.selectExpr(f"max(CAST(summary['{SLICE}'] AS BIGINT))").first()
            require_last(name, last[0], self._home)
            self._last = -1 if last[0] is None else last[0]

    def load(self, staged: StagedSlice) -> None:
        """Appends the slice, unless the table has it already; raises as `Loader.load`."""
        if staged.number <= self._last:
            return
        with self._named():
            frame = staged.frame(self._home)
            assert frame is not None
            marks = {"txnAppId": self._home.query, "txnVersion": str(staged.number)}
            if self._format == "iceberg":
                marks = {
                    f"snapshot-property.{QUERY}": self._home.query,
                    f"snapshot-property.{SLICE}": str(staged.number),
                    **{f"snapshot-property.{name}": text for name, text in staged.marks.items()},
                }
            frame.writeTo(self._name).options(**marks).append()

    def close(self) -> None:
        """Does nothing: the session is the user's."""

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Names the table in the errors of Spark."""
        try:
            yield
        except XmlStreamError:
            raise
        except Exception as error:
            cause = str(error).partition("\n")[0]
            raise XmlStreamError(f"the table {self._name} cannot be written: {cause}", hint=GOES_ON) from error


def _format_of(spark: SparkSession, name: str) -> str:
    """The format of a table; `without a format` if its catalog has none."""
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").where("col_name = 'Provider'").collect()
    return str(described[0]["data_type"]).lower() if described else "without a format"


def _types(frame: DataFrame) -> dict[str, str]:
    """The columns by name, with the types that Iceberg distinguishes, too: it has no small integers."""
    kinds = {field.name.lower(): field.dataType.simpleString() for field in frame.schema}
    return {name: "int" if kind in ("tinyint", "smallint") else kind for name, kind in kinds.items()}


CATALOG = SinkKind(
    name="catalog",
    example="catalog://lake.db.table",
    url_schemes=("catalog",),
    options=("table",),
    needed="table names a table of the session's catalogs, as in lake.db.hottest",
    output=lambda options, _: f"{_SCHEME}{options['table']}",
    is_path=False,
    loader=CatalogLoader,
)
"""A table of Delta Lake or Iceberg in a catalog of the session."""
