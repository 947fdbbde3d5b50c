"""Streams of Spark's as sources: `CREATE TABLE bids USING stream OPTIONS (view 'bids_stream', punctuate '…')`.

The view is a temporary view of the session over a DataFrame, streaming or static, or a table of its catalog. A file is
read without a session: then the columns have to be declared, and the frame is found when the query is planned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from xmlstream.dataclasses import replace
from xmlstream.plan.nodes import Node, StreamScan
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import quoted
from xmlstream.session.engines import is_connect, is_in_process
from xmlstream.sources.xml.options.formats import choice
from xmlstream.sources.xml.options.source import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from xmlstream.session.engines import Session

_OWN = ("view", "punctuation", "replay")
_ROWS = ("schemes", "domains", "mode", "ungrammatical", "maxBytesPerSlice", "maxFilesPerSlice", "rate")
"""Options of any source that apply to rows."""


def stream(name: str, options: Mapping[str, str], columns: str | None = None, frame: DataFrame | None = None) -> Node:
    """A stream of Spark's as a leaf of a plan.

    Args:
        name: Its name.
        options: The options, without those that put an operator above it.
        columns: Spark DDL of its attributes; by default those of the frame.
        frame: The DataFrame; None if a session will find the view.

    Raises:
        UsageError: An option is unknown, missing or invalid, or a column has a type that no source has.
    """
    proper = {option.lower(): option for option in (*_OWN, *_ROWS)}
    for option in options:
        if option.lower() == "partitionedby":
            hint = "punctuate 'roster of partition (0, 1, 2), order of ts' waits for the slowest partition of a topic"
            raise UsageError("a stream of Spark's is one input, and cannot be partitionedBy", hint=hint)
        if option.lower() not in proper:
            raise UsageError(f"a stream of Spark's has no option {option}", hint=f"it has {', '.join(proper.values())}")
    given = {proper[option.lower()]: value for option, value in options.items()}
    view, punctuation = given.pop("view", None), given.pop("punctuation", None)
    replays = choice("exact", "none")("replay", given.pop("replay", "exact")) == "exact"
    if frame is None and view is None:
        raise UsageError("the stream has no view", hint="view names a temporary view, or a table of the catalog")
    if frame is not None:
        _require_driven_here(frame, name)
    if columns is None:
        if frame is None:
            hint = f"declare them, as in CREATE TABLE {name} (auction BIGINT, price DOUBLE) USING stream …"
            raise UsageError(f"the columns of the view {view} are not known without its session", hint=hint)
        columns = _columns(frame, punctuation)
    given = {"format": "stream", "path": f"stream {name}", "rowTag": "row", **given}
    read = SourceOptions.parse(given, columns, giver="query")
    return Node(StreamScan(name, read, frame, view, punctuation, replays=replays), (), name)


def found(node: Node, session: Session) -> Node:
    """The plan with the frames of the session's views.

    Raises:
        UsageError: The session has no such view, or is not one of Spark's.
    """
    below = tuple(found(each, session) for each in node.inputs)
    if isinstance(node.operator, StreamScan) and node.operator.frame is None:
        if is_in_process(session):
            raise UsageError(
                "a stream of Spark's needs a session of Spark's",
                hint="leave out --engine duckdb; or have the stream write files, and read them USING punctuated_xml",
            )
        frame = frame_of(session, node.operator.view or "")
        _require_driven_here(frame, node.operator.name)
        return Node(replace(node.operator, frame=frame), (), node.label)
    return node if below == node.inputs else Node(node.operator, below, node.label)


def _require_driven_here(frame: DataFrame, name: str) -> None:
    """Raises UsageError for a streaming frame of Spark Connect, whose batches a process of the server takes."""
    if is_connect(frame.sparkSession) and frame.isStreaming:
        raise UsageError(
            f"{name} is a stream, whose batches a session of Spark Connect gives to a process beside its server",
            hint="run the program where Spark's driver runs, with a classic session; or have the stream write Parquet "
            "files, and read them USING punctuated_parquet",
        )


def frame_of(spark: SparkSession, view: str) -> DataFrame:
    """The frame of a temporary view, or the stream of a table of the catalog.

    Raises:
        UsageError: The session has neither.
    """
    if not spark.catalog.tableExists(view):
        raise UsageError(
            f"the session has no view {view}",
            hint="a program that has created it runs the query by xs.from_sql; a command has a session of its own",
        )
    frame = spark.table(view)
    is_view = frame.isStreaming or spark.catalog.getTable(view).tableType in ("TEMPORARY", "VIEW")
    return frame if is_view else spark.readStream.table(view)


def _columns(frame: DataFrame, punctuation: str | None) -> str:
    """The attributes of a frame as Spark DDL."""
    ends = {True: "", False: " NOT NULL"}
    fields = [each for each in frame.schema.fields if punctuation is None or each.name.lower() != punctuation.lower()]
    if punctuation is not None and len(fields) == len(frame.schema.fields):
        raise UsageError(f"there is no column {punctuation}", hint=f"there are {', '.join(frame.columns)}")
    texts = [f"{quoted(each.name)} {each.dataType.simpleString()}{ends[each.nullable]}" for each in fields]
    return Schema.parse(", ".join(texts)).ddl()
