"""Types of the options of a source, for checkers: what `read`, `read_column` and `from_stream` take by keyword.

Their meanings and defaults are in `xmlstream.builder.reading.READ_OPTIONS`. Each may be None, for the default, and each
may be a text: to a checker, `**{"path.id": "@id"}` passes texts by any name.
"""

from __future__ import annotations

from typing import TypedDict


class StreamOptions(TypedDict, total=False):
    """Options of every source."""

    schemes: str | None
    domains: str | None
    punctuate: str | None
    mode: str | None
    ungrammatical: str | None
    maxBytesPerSlice: int | str | None
    rate: float | str | None


class BatchOptions(StreamOptions, total=False):
    """Options of a DataFrame of Spark's."""

    replay: str | None


class XmlOptions(StreamOptions, total=False):
    """Options of every source of XML."""

    rowTag: str | None
    uniqueIds: str | None
    namespaces: str | None
    attributePrefix: str | None
    valueTag: str | None
    unitTag: str | None
    punctuationNamespace: str | None
    nullValue: str | None
    encoding: str | None
    doctype: str | None
    dateFormat: str | None
    timestampFormat: str | None
    locale: str | None
    timeZone: str | None
    ignoreSurroundingSpaces: bool | str | None
    maxItemBytes: int | str | None


class ColumnOptions(XmlOptions, BatchOptions, total=False):
    """Options of XML in a column; those of one attribute, such as `path.price`, are passed by `**`."""


class ReadOptions(XmlOptions, total=False):
    """Options of a source of documents; those of one attribute, such as `path.price`, are passed by `**`."""

    sectionEnds: str | None
    semantics: str | None
    format: str | None
    documents: str | None
    partitionedBy: str | None
    cleanSource: str | None
    sourceArchiveDir: str | None
    validate: str | None
    unfinished: str | None
    unfinishedAge: str | None
    onReplaced: str | None
    badDocuments: str | None
    maxBytesPerPartition: int | str | None
    maxFilesPerSlice: int | str | None
