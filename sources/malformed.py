"""What could not be read, and the line and column of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO, Literal

import pyarrow as pa

from punct_ns.errors import MalformedInput
from sources.head import HEAD_LIMIT, Charset, FlawError, head_of, open_document
from sources.staging import MALFORMED

Kind = Literal["document", "tuple", "punctuation"]

RAW_LIMIT = 10_000
"""Characters of the raw text that are kept of one malformed item."""

BLOCK = 1 << 20
"""Bytes in which lines are counted at once."""


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


def locate(path: str, offsets: Sequence[int], encoding: str | None = None) -> list[tuple[int, int]]:
    """Lines and columns, from 1, of offsets in a document, in ascending order; a column counts characters.

    Offsets are those of the document's UTF-8 form if its encoding is one that must be read whole.
    """
    with open_document(path) as file:
        try:
            head = head_of(file, HEAD_LIMIT, complete=False, encoding=encoding)
        except FlawError:
            head = None
        charset = head.charset if head is not None else Charset()
        file.seek(charset.mark)
        if charset.cuttable:
            return list(_places(file, charset.mark, offsets, charset.codec))
        text = file.read().decode(charset.codec, "replace").encode()
        return list(_places(BytesIO(text), 0, offsets, "utf-8"))


def _places(file: BinaryIO, at: int, offsets: Sequence[int], codec: str) -> Iterator[tuple[int, int]]:
    line, tail = 1, b""  # the line's text so far
    for offset in offsets:
        while at < offset and (block := file.read(min(offset - at, BLOCK))):
            at += len(block)
            line += block.count(b"\n")
            newline = block.rfind(b"\n")
            tail = tail + block if newline < 0 else block[newline + 1 :]
        yield line, len(tail.decode(codec, "replace")) + 1


def as_table(malformed: Iterable[Malformed], encoding: str | None = None) -> pa.Table:
    """The rows of a staged range (`staging.MALFORMED`)."""
    by_document: dict[str, list[Malformed]] = {}
    for one in malformed:
        by_document.setdefault(one.document, []).append(one)
    rows = []
    for document, those in by_document.items():
        those.sort(key=lambda one: one.offset)
        places = locate(document, [one.offset for one in those], encoding)
        for one, (line, column) in zip(those, places, strict=True):
            raw = one.raw if one.raw is None else one.raw[:RAW_LIMIT]
            rows.append((one.position, document, line, column, one.kind, one.reason, raw))
    rows.sort()
    columns = zip(*rows, strict=True) if rows else [() for _ in MALFORMED]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, MALFORMED, strict=True)]
    return pa.Table.from_arrays(arrays, schema=MALFORMED)


def as_error(malformed: Malformed, encoding: str | None = None) -> MalformedInput:
    """What is raised where bad input stops the reading."""
    ((line, column),) = locate(malformed.document, [malformed.offset], encoding)
    return MalformedInput(
        malformed.reason, document=malformed.document, line=line, column=column, position=malformed.position
    )
