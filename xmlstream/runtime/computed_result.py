"""The tuples of a result, computed: collected by the driver while they are few, written by their tasks beyond that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from operators.state.behaviour import Slice, Tuples
from punct_ns.slices import POSITION, quoted
from sources.xml.spark.error_transport import original_error
from xmlstream.plan.nodes import Node
from xmlstream.sink.part_writer import REPORT, PartWriter, WrittenPart, reported

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LARGE = 1 << 17
"""Tuples, at the most, up to which a result is collected."""


@dataclass(frozen=True, slots=True)
class ComputedResult:
    """The tuples of a result in a slice.

    Attributes:
        rows: How many they are.
        tuples: Those that the driver has, None for none.
        parts: What tasks have written of the others.
    """

    rows: int = 0
    tuples: pa.Table | None = None
    parts: tuple[WrittenPart, ...] = ()

    @staticmethod
    def of(result: Slice, root: Node, writer: PartWriter | None) -> ComputedResult:
        """Computes the tuples of a result, whose node is `root`; a writer has tasks write them if they are many."""
        if result.tuples is None:
            return ComputedResult()
        frame = _columns(result.tuples, root)
        if writer is None or result.tuples.at_most <= LARGE:
            table = frame.toArrow()
            return ComputedResult(table.num_rows, table)
        try:
            parts, sent, rows = reported(_mapped(frame, writer).toArrow())
        except Exception as error:  # noqa: BLE001 - raised, perhaps as what it was in its task
            raise original_error(error) or error from None
        return ComputedResult(rows, sent, tuple(parts))


def _columns(tuples: Tuples, root: Node) -> DataFrame:
    frame = tuples.frame
    names = [*root.schema.names, *([POSITION] if POSITION in frame.columns else [])]
    return frame.select(*map(quoted, names))


def _mapped(frame: DataFrame, writer: PartWriter) -> DataFrame:
    """What the writer makes of each partition.

    As `DataFrame.mapInArrow` does, which refuses to work where pandas is not installed, and would not use it.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType
    from pyspark.sql.udf import UserDefinedFunction
    from pyspark.util import PythonEvalType

    reports = StructType.fromDDL(REPORT)
    udf: Any = UserDefinedFunction(writer, reports, "written", PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column = udf(*(F.col(quoted(name)) for name in frame.columns))
    java: Any = frame._jdf
    return DataFrame(java.mapInArrow(column._jc, False, None), frame.sparkSession)
