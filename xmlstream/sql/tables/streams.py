"""Streams of Spark's as sources: `CREATE TABLE bids USING stream OPTIONS (view 'bids_stream', punctuate '…')`.

The view is a temporary view of the session over a DataFrame, streaming or static, or a table of its catalog. A file is
read without a session: then the columns have to be declared, and the frame is found when the query is planned.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from xmlstream.dataclasses import replace
from xmlstream.plan.nodes import Node, StreamScan
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import UsageError, left_to_spark
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.slices import quoted
from xmlstream.session.engines import is_connect, is_in_process
from xmlstream.sources.xml.options.formats import choice, name_list
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.options.text_column import TextColumn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from xmlstream.session.engines import Session

_OWN = ("view", "punctuation", "column", "keep", "replay")
_ROWS = ("schemes", "domains", "mode", "ungrammatical", "maxBytesPerSlice", "maxFilesPerSlice", "rate")
"""Options of any source that apply to rows."""

_OF_SLICES = ("maxBytesPerSlice", "maxFilesPerSlice", "rate")


def spark_stream(
    name: str, options: Mapping[str, str], columns: str | None = None, frame: DataFrame | None = None
) -> Node:
    """A stream of Spark's as a leaf of a plan.

    Args:
        name: Its name.
        options: The options, without those that put an operator above it.
        columns: Spark DDL of its attributes; by default those of the frame.
        frame: The DataFrame; None if a session will find the view.

    Raises:
        UsageError: An option is unknown, missing or invalid, or a column has a type that no source has.
    """
    is_text = any(option.lower() == "column" for option in options)
    proper = {option.lower(): option for option in (*_OWN, *_ROWS)}
    given = {proper.get(option.lower(), option): value for option, value in options.items()}
    own = {option: given.pop(option) for option in _OWN if option in given}
    if "partitionedby" in map(str.lower, given):
        hint = "punctuate 'roster of partition (0, 1, 2), order of ts' waits for the slowest partition of a topic"
        raise UsageError("a stream of Spark's is one input, and cannot be partitionedBy", hint=hint)
    if not is_text and (unknown := [option for option in given if option not in _ROWS]):
        hint = f"it has {', '.join(proper.values())}; those of XML go with column, which names a column of texts"
        raise UsageError(f"a stream of Spark's has no option {unknown[0]}", hint=hint)
    replays = choice("exact", "none")("replay", own.get("replay", "exact")) == "exact"
    view, punctuation = own.get("view"), own.get("punctuation")
    if frame is None and view is None:
        raise UsageError("the stream has no view", hint="view names a temporary view, or a table of the catalog")
    if frame is not None:
        _require_driven_here(frame, name)
    texts = None
    if is_text:
        if punctuation is not None:
            raise UsageError(
                "punctuation names a column, and XML has its punctuations in its texts",
                hint="leave out the option punctuation, or column",
            )
        texts, columns = _texts(given, own, columns, frame)
        promised = [text for text in (given.get("schemes"), given.get("uniqueIds", "").replace(",", ";")) if text]
        given = {option: given[option] for option in _ROWS if option in given} | {"schemes": "; ".join(promised)}
        if not promised:
            del given["schemes"]
    elif columns is None:
        if frame is None:
            hint = f"declare them, as in CREATE TABLE {name} (auction BIGINT, price DOUBLE) USING stream …"
            raise UsageError(f"the columns of the view {view} are not known without its session", hint=hint)
        columns = _columns(frame, punctuation)
    given = {"format": "stream", "path": f"stream {name}", "rowTag": "row", **given}
    read = SourceOptions.parse(given, columns, giver="query")
    return Node(StreamScan(name, read, frame, view, punctuation, texts, replays), (), name)


def _texts(
    given: Mapping[str, str], own: Mapping[str, str], columns: str | None, frame: DataFrame | None
) -> tuple[TextColumn, str]:
    """A column of XML texts, and the attributes of its tuples with the columns that are kept, as Spark DDL."""
    keep = name_list("keep", own.get("keep", ""))
    if not columns:
        raise UsageError(
            "the attributes of the texts are missing", hint="declare them, as in 'auction INT, price DOUBLE'"
        )
    declared = Schema.parse(columns)
    kept = {name.lower() for name in keep}
    inside = Schema(tuple(attribute for attribute in declared if attribute.name.lower() not in kept))
    there = (
        {} if frame is None else {field.name.lower(): field.dataType.simpleString() for field in frame.schema.fields}
    )
    attributes = list(inside)
    kind = there.get(own["column"].lower(), "string")
    if kind not in ("string", "binary"):
        what = f"the column {own['column']} has no texts: it is {kind.upper()}"
        raise UsageError(what, hint="XML is in a STRING or a BINARY column")
    if frame is not None and kind == "string" and "encoding" in given:
        raise UsageError("the texts of a STRING column have no encoding", hint="leave it out: they are decoded already")
    for name in (*keep, own["column"]) if frame is not None else ():
        if name.lower() not in there:
            raise UsageError(f"there is no column {name}", hint=f"there are {', '.join(there)}")
    for name in keep:
        if name.lower() in map(str.lower, declared.names):
            attributes.append(declared.attribute(name))
        elif frame is not None:
            attributes.append(Attribute(name, Domain(there[name.lower()])))
        else:
            raise UsageError(f"the type of {name} is not known", hint=f"declare it among the columns: {name} INT")
    options = {option: value for option, value in given.items() if option not in _OF_SLICES}
    if "schemes" in options:
        schemes = options["schemes"].split(";")
        inner = [text for text in schemes if kept.isdisjoint(re.findall(r"\w+", text.lower()))]
        options["schemes"] = ";".join(inner)
    texts = TextColumn.of({**options, "schema": inside.ddl()}, own["column"], keep)
    return texts, Schema((*texts.options.schema, *attributes[len(inside) :])).ddl()


def found(node: Node, session: Session) -> Node:
    """The plan with the frames of the session's views.

    Raises:
        UsageError: The session has no such view, or is not one of Spark's.
    """
    below = tuple(found(each, session) for each in node.inputs)
    if isinstance(node.operator, StreamScan) and node.operator.frame is None:
        if is_in_process(session):
            there = (
                left_to_spark() if session.named == "duckdb" else "run(engine='auto') is there, too, xs.open_session()"
            )
            raise UsageError(
                "a stream of Spark's needs a session of Spark's",
                hint=f"{there}; or have the stream write files, and read them USING punctuated_xml",
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
