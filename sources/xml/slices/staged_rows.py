"""The staged row: what a task returns for a range whose tuples it has written to a file.

The tuples of a range never pass through Spark on their way to disk: the task that parses them writes them to a Parquet
file and returns one row with its path, the range's punctuations and its malformed items.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from xmlstream.sources.xml.parser.source_findings import Findings
from xmlstream.sources.xml.splits.byte_ranges import Part

STAGED = (
    "source STRING, path STRING, tuples BIGINT, bytes BIGINT, first_position BIGINT, last_position BIGINT, "
    "part STRING, findings STRING, punctuations BINARY, malformed BINARY"
)
"""The schema of a staged row, as Spark DDL.

`path` is the Parquet file (the requested attributes, then `_position`), null without tuples; `bytes` is the number of
bytes read; `first_position` and `last_position` enclose all items and are null without any; `part` is JSON
that describes the input of the task (`xmlstream.sources.xml.splits.byte_ranges`);
`findings` is JSON of the findings (`xmlstream.sources.xml.parser.source_findings`);
`punctuations` and `malformed` are Arrow IPC streams, null without any.
"""


@dataclass(frozen=True, slots=True)
class StagedRange:
    """The staged result of one task.

    Attributes:
        source: The name of the source.
        path: The Parquet file of the tuples; None without any.
        tuples: The number of tuples.
        bytes: The number of bytes read.
        first_position: Lower bound of the items' positions; None without items.
        last_position: Upper bound of the items' positions; None without items.
        part: The input of the task, so that it can be read again.
        findings: The findings of the task.
        punctuations: `_position`, then for every attribute its pattern's text (None: wildcard); in stream order.
        malformed: As `xmlstream.sources.xml.parser.malformed.MALFORMED`, in stream order.
    """

    source: str
    path: str | None
    tuples: int
    bytes: int
    first_position: int | None
    last_position: int | None
    part: Part
    findings: Findings
    punctuations: pa.Table | None
    malformed: pa.Table | None

    @staticmethod
    def of(row: Mapping[str, Any] | Any) -> StagedRange:
        """The staged range of a collected row: a `pyspark.sql.Row`, or a mapping with the same columns."""
        return StagedRange(
            source=row["source"],
            path=row["path"],
            tuples=row["tuples"],
            bytes=row["bytes"],
            first_position=row["first_position"],
            last_position=row["last_position"],
            part=Part.of(row["part"]),
            findings=Findings.from_json(json.loads(row["findings"])),
            punctuations=from_ipc(row["punctuations"]),
            malformed=from_ipc(row["malformed"]),
        )


def to_ipc(table: pa.Table | None) -> bytes | None:
    """Writes a table as an Arrow IPC stream; None if it has no rows."""
    if table is None or not table.num_rows:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def from_ipc(stream: bytes | None) -> pa.Table | None:
    """Reads the table of an Arrow IPC stream, None of None; `from_ipc(to_ipc(t)) == t` for tables with rows."""
    return None if stream is None else pa.ipc.open_stream(stream).read_all()
