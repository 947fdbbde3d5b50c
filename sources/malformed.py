"""What could not be read, and the line and column of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa

from punct_ns.errors import MalformedInput
from sources.head import HEAD_LIMIT, FlawError, read_head
from sources.staging import MALFORMED

Kind = Literal["document", "tuple", "punctuation"]

RAW_LIMIT = 10_000
"""Characters of the raw text that are kept of one malformed item."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """One thing that could not be read.

    Attributes:
        position: Its place in the source.
        document: Path of the document.
        offset: Where it begins in the document.
        kind: What it would have been.
        reason: Why it cannot be read.
        raw: Its text, as far as that is known.
    """

    position: int
    document: str
    offset: int
    kind: Kind
    reason: str
    raw: str | None


def locate(path: str, offset: int, encoding: str | None = None) -> tuple[int, int]:
    """Line and column, from 1, of an offset in a document; the column counts characters.

    The offset is one of the document's UTF-8 form if its encoding is one that must be read whole.
    """
    with Path(path).open("rb") as file:
        try:
            head = read_head(file.read(HEAD_LIMIT), complete=False, encoding=encoding)
        except FlawError:
            head = None
        file.seek(0)
        if head is not None and not head.charset.cuttable:
            before = file.read()[head.charset.mark :].decode(head.charset.codec, "replace").encode()[:offset]
            return before.count(b"\n") + 1, len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        line, tail, left = 1, b"", offset
        while left and (block := file.read(min(left, 1 << 20))):
            left -= len(block)
            line += block.count(b"\n")
            newline = block.rfind(b"\n")
            tail = tail + block if newline < 0 else block[newline + 1 :]
        codec = head.charset.codec if head else "utf-8"
        mark = head.charset.mark if head and line == 1 else 0
        return line, len(tail[mark:].decode(codec, "replace")) + 1


def as_table(malformed: Iterable[Malformed], encoding: str | None = None) -> pa.Table:
    """The rows of a staged range (`staging.MALFORMED`)."""
    rows = []
    for one in malformed:
        line, column = locate(one.document, one.offset, encoding)
        raw = one.raw if one.raw is None else one.raw[:RAW_LIMIT]
        rows.append((one.position, one.document, line, column, one.kind, one.reason, raw))
    columns = zip(*rows, strict=True) if rows else [[] for _ in MALFORMED]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, MALFORMED, strict=True)]
    return pa.Table.from_arrays(arrays, schema=MALFORMED)


def as_error(malformed: Malformed, encoding: str | None = None) -> MalformedInput:
    """What is raised where bad input stops the reading."""
    line, column = locate(malformed.document, malformed.offset, encoding)
    return MalformedInput(
        malformed.reason, document=malformed.document, line=line, column=column, position=malformed.position
    )
