"""Leaves of a plan: a punctuated source, a table in files, a DataFrame.

A static table is read once by the first slice, and closed from then on:

CREATE TABLE country (name STRING, region STRING) USING csv OPTIONS (path 'countries.csv', header 'true');
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from operators.merge import Merge
from punct_ns.domain import Domain
from punct_ns.errors import UsageError
from punct_ns.schema import Attribute, Schema
from sources.xml.options.source import SourceOptions
from xmlstream.plan.nodes import Node, Scan, Static

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STATIC_FORMATS = ("csv", "json", "orc", "parquet", "xml")
"""Formats of Spark's own that a static table may have."""


def source(name: str, options: SourceOptions) -> Node:
    """A source as the beginning of a plan."""
    scan = Node(Scan(name, options), (), name)
    return Node(Merge(options.schema), (scan,), name) if options.is_merged else scan


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
        UsageError: It is a stream, or two of its columns have one name.
    """
    if frame.isStreaming:
        hint = "write it to files, which read and read_parquet follow; spark.read gives a static one"
        raise UsageError("the DataFrame is a stream, which is not read here", hint=hint)
    columns = frame.schema.fields
    if len({column.name.lower() for column in columns}) < len(columns):
        raise UsageError("two columns of the DataFrame have one name", hint="rename one with withColumnRenamed")
    domains = [Domain(column.dataType.simpleString(), column.nullable) for column in columns]
    named = zip((column.name for column in columns), domains, strict=True)
    return Node(Static(name, Schema(tuple(Attribute(*pair) for pair in named)), frame=frame), (), name)
