"""Spark as the engine of frames: each operation is one of a DataFrame, which is made when a computation needs it.

Java parses an expression and analyses each operation, so a DataFrame is made once for each frame.
"""

from __future__ import annotations

import json
import pickle
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from xmlstream.dataclasses import dataclass, field
from xmlstream.operators.expressions.dialect import literal, quiet
from xmlstream.operators.frames.expression import BIGINT, Column, Copy, Expression, Literal, Order, Passed, spark_sql
from xmlstream.operators.frames.frame import (
    EACH,
    Chosen,
    Distinct,
    Frame,
    Group,
    Join,
    Limit,
    Numbered,
    Observed,
    OneTask,
    Operation,
    Select,
    Table,
    Unary,
    Union,
    Where,
)
from xmlstream.operators.frames.held import FEW, Field, Leaf, computed_rows, fields_of_struct
from xmlstream.operators.frames.spark_functions import Job, OneJob, Result, ResultRow, with_functions
from xmlstream.operators.frames.zones import JavaZone
from xmlstream.operators.storage.object_urls import is_object_url
from xmlstream.operators.storage.shared_files import RowsOfObjects, conformed, opened
from xmlstream.punct_ns.errors import UsageError, XmlStreamError
from xmlstream.punct_ns.slices import own, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, Observation, SparkSession
    from pyspark.sql.types import StructType

    from xmlstream.operators.frames.frame import ZoneRules
    from xmlstream.punct_ns.domain import Domain, Value
    from xmlstream.punct_ns.schema import Attribute


LITERAL = {"__globPaths__": "false"}
"""The options of a Spark reader that switch globs off: each path names one file or directory."""

_WRITTEN = {"compression": "none", "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
"""The options with which Spark writes a segment: no empty `_SUCCESS` file, which costs two processes."""


_FILES = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.files.maxRecordsPerFile": "0",
}
"""The settings with which Spark writes our own files, whatever those of the user's session are."""

_READ = LITERAL | {
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "mergeSchema": "false",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
}
"""The options with which Spark reads them."""

_WRITING = threading.Lock()


@dataclass(slots=True)
class _Work:
    """The group and the description of the next job of Spark, and of the last one."""

    following: tuple[str, str] | None = None
    last: tuple[str, str] | None = None


@dataclass(frozen=True)
class SparkEngine:
    """A Spark session as an engine."""

    spark: SparkSession
    _work: _Work = field(default_factory=_Work, compare=False, repr=False)
    name = "spark"

    @property
    def zone(self) -> str:
        """The session's time zone."""
        return str(self.spark.conf.get("spark.sql.session.timeZone"))

    @property
    def most_numbers(self) -> int:
        """The distance between the numbers of the first partition and those behind the last."""
        return int(str(self.spark.conf.get("spark.sql.shuffle.partitions"))) * EACH

    def spill_to(self, directory: Path) -> None:
        """See `Engine.spill_to`: Spark has a setting."""

    def begin(self, rows: int) -> None:
        """See `Engine.begin`."""

    def given(self, frame: DataFrame) -> Frame:
        return Frame(self, tuple(frame.columns), Table(frame), [frame])

    @property
    def heap(self) -> int | None:
        """The bytes of Java's heap at most; None if they are not known."""
        java: Any = self.spark._jvm
        return int(java.java.lang.Runtime.getRuntime().maxMemory())

    def mapped(self, made: DataFrame, function: Any, columns: StructType) -> DataFrame:
        """Applies a function, from record batches to record batches with these columns, to each partition.

        The same as `DataFrame.mapInArrow`, which requires pandas to be installed although it would not use it.
        """
        from pyspark.sql import DataFrame
        from pyspark.sql import functions as F
        from pyspark.sql.udf import UserDefinedFunction
        from pyspark.util import PythonEvalType

        udf: Any = UserDefinedFunction(function, columns, "mapped", PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
        column = udf(*(F.col(quoted(name)) for name in made.columns))
        java: Any = made._jdf
        return DataFrame(java.mapInArrow(column._jc, False, None), made.sparkSession)

    def results(self, made: DataFrame, function: Callable[[Iterable[pa.RecordBatch]], Any]) -> list[Any]:
        """Applies a function to the record batches of each partition; returns the results in order."""
        found = self.mapped(made, ResultRow(function), _struct("result BINARY")).toArrow()
        rows: list[Any] = found.column(0).to_pylist()
        return [pickle.loads(row) for row in rows]  # noqa: S301 - our own tasks have written it

    def in_tasks(self, function: Callable[[Job], Result], jobs: Sequence[Job]) -> list[Result]:
        """Applies a function to each job, each in a task of its own; returns the results in order."""
        return self.results(self.spark.range(0, len(jobs), 1, len(jobs)), OneJob(function, tuple(jobs)))

    def require_files(self, path: str) -> None:
        """See `Engine.require_files`."""
        scheme = path.partition("://")[0]
        java: Any = self.spark._jvm
        try:
            java.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, self.spark._jsc.hadoopConfiguration())
        except Exception:  # noqa: BLE001 - whatever Java throws, it has no such file system
            raise self._no_files(path) from None

    @staticmethod
    def _no_files(path: str) -> UsageError:
        what = f"Spark has no file system for {path}, which a static table needs"
        hint = "declare it USING punctuated_xml or punctuated_parquet, copy the files, or give Spark hadoop-aws"
        return UsageError(what, hint=hint)

    def files(self, format: str, columns: str, options: Mapping[str, str], path: str) -> Frame:
        """The rows of files, by Spark's reader; a path that exists names itself, whatever characters it contains."""
        literally = LITERAL if Path(path.removeprefix("file://")).exists() else {}
        return self.given(self.spark.read.format(format).schema(columns).options(**options, **literally).load(path))

    def rows(self, table: pa.Table, columns: str) -> Frame:
        """A frame of Arrow's rows."""
        struct = _struct(columns)
        read = cache(lambda: table.cast(_arrow(struct)))
        leaf = Leaf(_fields(struct), lambda: self._given_rows(table, struct), read)
        return Frame(self, tuple(table.column_names), Table(leaf))

    def _given_rows(self, table: pa.Table, struct: StructType) -> DataFrame:
        """The same as `createDataFrame`, which reads settings from Java each time: 10 of its 14 calls.

        Where a type is not as Spark gives it, the settings decide.
        """
        from pyspark.sql import DataFrame
        from pyspark.sql.pandas.serializers import ArrowStreamSerializer

        if table.schema.types != _arrow(struct).types:
            return self.spark.createDataFrame(table, struct)
        context: Any = self.spark.sparkContext
        java: Any = self.spark._jvm
        of_file, of_socket = java.PythonSQLUtils.readArrowStreamFromFile, java.ArrowIteratorServer
        read = context._serialize_to_jvm(table.to_batches(), ArrowStreamSerializer(), of_file, of_socket)
        return DataFrame(java.PythonSQLUtils.toDataFrame(read, struct.json(), self.spark._jsparkSession), self.spark)

    def empty(self, columns: str) -> Frame:
        """A frame without rows."""
        struct = _struct(columns)
        read = (lambda: _arrow(struct).empty_table()) if _is_plain(struct) else None
        leaf = Leaf(_fields(struct), lambda: self.spark.createDataFrame([], struct), read)
        return Frame(self, tuple(struct.names), Table(leaf))

    def parquet(self, columns: str, *paths: str, few: bool = False) -> Frame:
        """The rows of Parquet files or directories."""
        struct = _struct(columns)
        in_store = is_object_url(paths[0])
        leaf = Leaf(
            _fields(struct),
            lambda: self._of_objects(struct, paths) if in_store else self._of_files(struct, paths),
            cache(lambda: pa.concat_tables(_read(p, struct) for p in paths)) if few and _is_plain(struct) else None,
        )
        return Frame(self, tuple(struct.names), Table(leaf))

    def _of_files(self, struct: StructType, paths: Sequence[str]) -> DataFrame:
        return self.spark.read.schema(struct).options(**_READ).parquet(*paths)

    def _of_objects(self, struct: StructType, urls: Sequence[str]) -> DataFrame:
        """The rows of Parquet objects, which tasks read without a file system of Spark: each reads whole objects."""
        made = self._given_rows(pa.table({"url": list(urls)}), _struct("url STRING"))
        return self.mapped(made, RowsOfObjects(_arrow(struct)), struct)

    def describe(self, query: str, work: str) -> None:
        """See `Engine.describe`: Spark's page shows it with the jobs."""
        self._work.following = query, work

    @contextmanager
    def _job(self, frame: Frame) -> Iterator[DataFrame]:
        """The DataFrame of a frame that a job is about to compute, which is described; its errors are raised only."""
        self._name_job()
        with quiet_spark():
            yield self.made(frame)

    def _name_job(self) -> None:
        if self._work.following is not None and self._work.following != self._work.last:
            self._work.last = self._work.following
            self.spark.sparkContext.setJobGroup(*self._work.following)

    def here(self, frame: Frame) -> pa.Table | None:
        """See `Engine.here`."""
        return computed_rows(frame)

    def table(self, frame: Frame) -> pa.Table:
        """Computes the rows in Spark, and collects them; computes them here if that is simple."""
        here = computed_rows(frame)
        if here is not None:
            return here
        with self._job(frame) as made:
            return made.toArrow()

    def count(self, frame: Frame) -> int:
        """Has Spark count the rows, unless they are here."""
        here = computed_rows(frame)
        if here is not None:
            return here.num_rows
        with self._job(frame) as made:
            return made.count()

    def write(self, frame: Frame, path: str) -> None:
        """Has tasks write the rows into a Parquet directory."""
        with self._job(frame) as made, self._files_as_ours():
            made.write.mode("overwrite").options(**_WRITTEN).parquet(path)

    @contextmanager
    def _files_as_ours(self) -> Iterator[None]:
        """Has the session write files with our settings; no other thread of ours writes meanwhile."""
        with _WRITING:
            given = {name: self.spark.conf.get(name, None) for name in _FILES}
            others = {name: own for name, own in _FILES.items() if given[name] != own}
            for name, own in others.items():
                self.spark.conf.set(name, own)
            try:
                yield
            finally:
                for name in others:
                    before = given[name]
                    self.spark.conf.unset(name) if before is None else self.spark.conf.set(name, before)

    def write_parts(self, frame: Frame, writer: Any, columns: str) -> pa.Table:
        """Applies the writer to each partition."""
        with self._job(frame) as made:
            return self.mapped(made, writer, _struct(columns)).toArrow()

    def struct(self, frame: Frame) -> str:
        """The types of the columns: as they follow from those of the leaves, or as Spark's analyser finds them."""
        fields = fields_of_struct(frame)
        return self.made(frame).schema.json() if fields is None else json.dumps({"type": "struct", "fields": fields})

    def metrics(self, frame: Frame) -> Mapping[str, Any]:
        """The aggregates that Spark has observed; none if it found while planning that there are no rows."""
        assert isinstance(frame.operation, Observed)
        found = frame.operation.found or {}
        return found if isinstance(found, dict) else metrics_of(found)

    def values(self, expression: str, x: Attribute, y: Domain, values: Sequence[Value]) -> list[Value | None]:
        """The expression for given values: Spark computes a relation of literals while it plans, without a job.

        Where it fails for one of them, Spark computes the halves.
        """
        from pyspark.errors import ArithmeticException, DateTimeException, NumberFormatException, SparkRuntimeException

        rows = ", ".join(f"({number}, {literal(value, x.domain)})" for number, value in enumerate(values))
        # A moment is passed as a number, so that the local time of this process does not change it.
        expression = with_functions(expression, self.spark)
        column = f"unix_micros({expression})" if y.sql.kind == "TIMESTAMP" else expression
        at, image = own("number"), own("image")
        query = f"SELECT {at}, {column} AS {image} FROM VALUES {rows} AS t({at}, {quoted(x.name)})"
        try:
            with quiet_spark():
                found = {row[0]: value_of(row[1], y) for row in self.spark.sql(query).collect()}
        except (
            ArithmeticException,
            DateTimeException,
            NumberFormatException,
            SparkRuntimeException,
            ValueError,
            OverflowError,
        ):
            if len(values) == 1:
                return [None]
            half = len(values) // 2
            return [*self.values(expression, x, y, values[:half]), *self.values(expression, x, y, values[half:])]
        return [found[number] for number in range(len(values))]

    def zone_rules(self, zone: str = "") -> ZoneRules:
        """Java's rules of a time zone, which Spark follows; by default of the session's."""
        return JavaZone.of(zone or self.zone, self.spark)

    def dataframe(self, frame: Frame) -> DataFrame:
        """See `Engine.dataframe`."""
        return self.made(frame)

    def made(self, frame: Frame) -> DataFrame:
        if not frame.made:
            here = self._made_here(frame)
            frame.made.append(self._make(frame.operation) if here is None else here)
        return frame.made[0]  # type: ignore[no-any-return]

    def _made_here(self, frame: Frame) -> DataFrame | None:
        """The DataFrame of few rows that are computed here; None for a leaf, and where Spark must compute them."""
        table = None if isinstance(frame.operation, Table) else computed_rows(frame)
        if table is None or table.num_rows > FEW:
            return None
        return self._given_rows(table, _struct(self.struct(frame)))

    def _make(self, operation: Operation) -> DataFrame:
        match operation:
            case Table(value):
                return value.make() if isinstance(value, Leaf) else value  # type: ignore[no-any-return]
            case Union(inputs, by_name):
                first, *others = map(self.made, inputs)
                for other in others:
                    first = first.unionByName(other, allowMissingColumns=True) if by_name else first.unionAll(other)
                return first
            case Join():
                return self._joined(operation)
            case Chosen():
                return self.made(operation.otherwise())
            case _:
                return self._of_one(operation, self.made(operation.input))

    def _joined(self, join: Join) -> DataFrame:
        from pyspark.sql import functions as F

        left, right = self.made(join.left), self.made(join.right)
        if join.small == "both":
            # A broadcast is a job of its own.
            left, right = left.coalesce(1), right.coalesce(1).hint("shuffle_hash")
        left = F.broadcast(left) if join.small == "left" else left
        right = F.broadcast(right) if join.small == "right" else right
        return left.join(right, F.expr(self._printed(join.on)), join.how)

    def _of_one(self, operation: Unary, made: DataFrame) -> DataFrame:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        match operation:
            case Select():
                return made.selectExpr(*["*"] * operation.whole, *map(self._item, operation.columns))
            case Where():
                return made.where(self._printed(operation.condition))
            case Group():
                return made.groupBy(*map(quoted, operation.keys)).agg(
                    *(F.expr(self._item(each)) for each in operation.aggregates)
                )
            case Distinct():
                return made.dropDuplicates()
            case Limit():
                return (made.orderBy(*map(_in_order, operation.order)) if operation.order else made).limit(
                    operation.rows
                )
            case OneTask():
                return made.coalesce(1)
            case Numbered():
                return self._numbered(operation, made)
            case Observed():
                operation.found = Observation()
                return made.observe(operation.found, *(F.expr(self._item(each)) for each in operation.aggregates))

    def _printed(self, expression: Expression) -> str:
        return with_functions(spark_sql(expression, _written), self.spark)

    def _item(self, of: Column) -> str:
        if isinstance(of.expression, Copy) and of.expression.name == of.name:
            return quoted(of.name)
        return f"{self._printed(of.expression)} AS {quoted(of.name)}"

    def _numbered(self, operation: Numbered, made: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        order = map(_in_order, operation.order)
        made = made.coalesce(1).sortWithinPartitions(*order) if operation.few else made.orderBy(*order)
        # Row numbers increase along the partitions, and orderBy has sorted these.
        number = F.monotonically_increasing_id() + F.lit(operation.first).cast("BIGINT")
        return made.withColumn(operation.name, number)


def _written(value: Literal | Passed) -> str:
    """A value as Spark takes it: what is passed is an element of an array, which Spark takes as data.

    A number would be part of the code that Spark generates, and each other number would need code of its own. The index
    of the element must not be a constant, or Spark would fold it.

    >>> from xmlstream.punct_ns.domain import Domain
    >>> _written(Passed(7, Domain("BIGINT"))), _written(Passed(7, Domain("BIGINT"), beside="n"))
    ('element_at(array(7L), 1 + (spark_partition_id() & 0))', 'element_at(array(7L), 1 + (hash(`n`) & 0))')
    """
    text = literal(value.value, value.domain)
    if isinstance(value, Literal):
        return text
    if value.domain == BIGINT:
        text = f"{value.domain.write(value.value)}L"
    varying = "spark_partition_id()" if value.beside is None else f"hash({quoted(value.beside)})"
    return f"element_at(array({text}), 1 + ({varying} & 0))"


@contextmanager
def quiet_spark() -> Iterator[None]:
    """Silences PySpark's logger for errors of queries.

    PySpark's logger takes arguments that Python's loggers do not. If Python created the logger first, each later error
    of Spark would become a TypeError.
    """
    from pyspark.logger import PySparkLogger

    with quiet(PySparkLogger.getLogger("SQLQueryContextLogger")):
        yield


def value_of(found: Any, domain: Domain) -> Value | None:
    """A value as the domain has it; a moment is given in microseconds of UTC since 1970."""
    if found is None:
        return None
    return domain.bound(found, above=True)[0] if domain.sql.kind == "TIMESTAMP" else domain.normal(found)


def _in_order(by: Order) -> SparkColumn:
    """An item of ORDER BY."""
    from pyspark.sql import functions as F

    order = f"{'desc' if by.descending else 'asc'}_nulls_{'first' if by.nulls_first else 'last'}"
    return getattr(F.col(quoted(by.name)), order)()  # type: ignore[no-any-return]


@lru_cache(maxsize=1024)
def _struct(columns: str) -> StructType:
    """Reads the types of columns from DDL, or from JSON, which needs no Java."""
    from pyspark.sql.types import StructType

    found = StructType.fromJson(json.loads(columns)) if columns.startswith("{") else StructType.fromDDL(columns)
    assert isinstance(found, StructType)
    return found


def _fields(struct: StructType) -> list[Field]:
    return struct.jsonValue()["fields"]  # type: ignore[no-any-return]


_PLAIN = re.compile(r"byte|short|integer|long|float|double|decimal\(.*\)|boolean|string|binary|date|timestamp(_ntz)?")


def _is_plain(struct: StructType) -> bool:
    """Whether Arrow has all types."""
    return all(isinstance(field["type"], str) and _PLAIN.fullmatch(field["type"]) for field in _fields(struct))


def _arrow(struct: StructType) -> pa.Schema:
    """Arrow's types as Spark gives them, with timestamps in UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema

    convert: Any = to_arrow_schema
    # Before PySpark 4.2 there was no choice of the zone.
    found: pa.Schema = convert(struct, **({"timezone": "UTC"} if "timezone" in signature(convert).parameters else {}))
    return found


def _read(path: str, struct: StructType) -> pa.Table:
    """The rows of a Parquet file or directory; a column that it lacks is null."""
    table = pq.read_table(opened(path), partitioning=None, coerce_int96_timestamp_unit="us")
    return conformed(table, _arrow(struct))


PATIENCE_SECONDS = 120.0
"""The longest wait for an event that usually takes milliseconds."""


def metrics_of(observation: Observation, patience: float = PATIENCE_SECONDS) -> dict[str, Any]:
    """The metrics by name; none if Spark found while planning that there are no tuples.

    Spark reports them by an event, after the computation. If the DataFrame was never computed, or a busy machine lost
    the event, none comes: the wait for it is long, but ends.

    Raises:
        XmlStreamError: Spark does not report them in time.
    """
    # Java waits; this timer ends the wait from another thread, and costs nothing if it is not needed.
    timer = threading.Timer(patience, _give_up, [observation])
    timer.daemon = True
    timer.start()
    try:
        return dict(observation.get)
    except Exception as error:
        if _GIVEN_UP not in str(error):
            # If Spark folds a plan to no row, nothing is observed in it, and a row without columns has no schema.
            if observation._jo is not None and observation._jo.getRow().length() == 0:
                return {}
            raise
        hint = "the machine may have too much to do; a run with the same checkpoint does the slice again"
        raise XmlStreamError(f"Spark did not report its counts within {patience:.0f} s", hint=hint) from None
    finally:
        timer.cancel()


_GIVEN_UP = "the observation has no result"


def _give_up(observation: Any) -> None:
    jvm = observation._jvm
    observation._jo.setMetricsAndNotify(jvm.scala.util.Failure(jvm.java.util.concurrent.TimeoutException(_GIVEN_UP)))
