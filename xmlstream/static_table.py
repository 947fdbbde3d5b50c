"""Static inputs: a table in files, or a DataFrame, read once by the first slice and closed from then on.

CREATE TABLE country (name STRING, region STRING) USING csv OPTIONS (path 'countries.csv', header 'true');
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from operators.behaviour import Slice, Tuples
from operators.parquet_files import LITERAL
from operators.segments import COLLECTED
from operators.state import OperatorState
from punct_ns.domain import Domain
from punct_ns.errors import InputError, UsageError
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Attribute, Schema
from sources.local_paths import absolute
from xmlstream.plan import Node, Static
from xmlstream.spark_errors import first_cause

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STATIC_FORMATS = ("csv", "json", "orc", "parquet", "xml")
"""Formats of Spark's own that a static table may have."""


def static_table(name: str, format_: str, options: Mapping[str, str], ddl: str | None) -> Node:
    """A table in files as the beginning of a plan; `ddl` is Spark DDL, None where it is the option `schema`.

    Raises:
        UsageError: It has no path, or no columns, or says NOT NULL, which nobody would check.
    """
    given = {key.lower(): value for key, value in options.items()}
    declared = given.pop("schema", ddl)
    if not given.get("path"):
        raise UsageError("there is no path", hint="path names a file, a directory or a glob")
    if not declared:
        raise UsageError("there are no columns", hint="declare them, as in CREATE TABLE t (a INT, b STRING) USING …")
    schema = Schema.parse(declared)
    if strict := [attribute.name for attribute in schema if not attribute.domain.nullable]:
        raise UsageError(f"NOT NULL of {', '.join(strict)} is not checked in a static table", hint="leave it out")
    return Node(Static(name, schema, format_, tuple(sorted(given.items()))), (), name)


def static_frame(name: str, frame: DataFrame) -> Node:
    """A DataFrame as the beginning of a plan.

    Raises:
        UsageError: Two of its columns have one name.
    """
    columns = frame.schema.fields
    if len({column.name.lower() for column in columns}) < len(columns):
        raise UsageError("two columns of the DataFrame have one name", hint="rename one with withColumnRenamed")
    domains = [Domain(column.dataType.simpleString(), column.nullable) for column in columns]
    named = zip((column.name for column in columns), domains, strict=True)
    return Node(Static(name, Schema(tuple(Attribute(*pair) for pair in named)), frame=frame), (), name)


class StaticIntake:
    """A static input of a running query; after its only slice it is closed.

    Of the last slice: the `items` that came, and the `punctuations` among them; nothing is ever `set_aside`.
    """

    set_aside = 0

    def __init__(self, spark: SparkSession, static: Static, state: OperatorState) -> None:
        self.items = self.punctuations = 0
        self._spark, self._static, self._state = spark, static, state
        # Read by the first slice, wherever this process is then.
        self._path = absolute(dict(static.options).get("path", ""))
        self._said = state.punctuations("said", static.schema)

    @property
    def closed(self) -> bool:
        """It has been read."""
        return self._said.set.is_all

    def slice(self) -> Slice:
        """All tuples and the end of them, the first time; then nothing.

        Raises:
            InputError: It cannot be read.
        """
        self.items = self.punctuations = 0
        if self.closed:
            return Slice(None)
        # Not collected, since nobody knows how many they are.
        try:
            tuples = self._state.computed(Tuples(self._frame(), COLLECTED + 1))
        except Exception as error:  # noqa: BLE001 - whatever Spark says of it, the table is what cannot be read
            where = dict(self._static.options).get("path")
            what = f"the static table {self._static.name} cannot be read: {first_cause(error)}"
            raise InputError(what, where=where) from None
        self.items, self.punctuations = tuples.at_most + 1, 1
        return Slice(tuples, tuple(self._said.absorb([Punctuation.all(self._static.schema)])))

    def _frame(self) -> DataFrame:
        static = self._static
        if static.frame is not None:
            return static.frame
        assert static.format is not None
        options = {"mode": "FAILFAST", **dict(static.options)}
        options.pop("path")
        path = self._path
        if Path(path.removeprefix("file://")).exists():
            options |= LITERAL
        return self._spark.read.format(static.format).schema(static.schema.ddl()).options(**options).load(path)
