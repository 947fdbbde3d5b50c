"""Lookup: the rows of a segment that may agree with given keys, found without reading the others.

A slice of few tuples beside many kept rows needs the kept rows of its own keys. Statistics of row groups say nothing of
random keys: 10,000 of them fall into nearly every group of 1,000 rows among 10 million. So a segment that is looked up
for the first time is copied, in blocks of up to `BLOCK` rows, as plain Arrow into files that are mapped into memory,
where single rows can be taken; and each block has an index for the attributes of the keys: an array of one number for
each row, sorted, with a hash of the row's key above and the row's place in the block below. A lookup searches it for
the sorted hashes of all keys at once, and takes the rows at the places that it finds: those of the keys, and perhaps a
few others, with the same hash. What compares them afterwards is exact.

Blocks and indexes are no part of a checkpoint: their files have no names, and end with the process. So a hash may
change with any version, a start compares no more files than before, and an engine that reads all rows reads the segment
itself. On the disk they cost ten bytes for each row and index, and the row itself as plain Arrow.
"""

from __future__ import annotations

import json
import mmap
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute

from xmlstream.dataclasses import dataclass

pc: Any = pyarrow.compute
Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
Places: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

BITS = 20
BLOCK = 1 << BITS
"""The most rows of a block; a number of its index has so many places for the row."""

_BYTES = 256 << 20
"""The bytes of a block beyond which another one begins."""

_IN_MEMORY = 10_000
"""The number of rows up to which a block stays in memory."""

_ENDS = 32
"""Of a text, the bytes at either end that are hashed, besides its length."""

_ROWS = np.uint64(BLOCK - 1)
_PRIMES = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_NULL = np.uint64(0x6E756C6C)


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """The hashes of keys over some attributes of a segment's rows: sorted, each once, with zeros for the place."""

    names: tuple[str, ...]
    hashes: Numbers


def keys_of(table: pa.Table, kept: pa.Schema, names: Sequence[str]) -> Keys | None:
    """The keys of a table's rows, to look for rows of the schema `kept`.

    Attributes that the two sides compare by a cast, and nested ones, are left out: that finds more rows than needed.

    Args:
        table: The rows that have the keys, and nothing else.
        kept: The columns of the rows that are looked for.
        names: The attributes there that the columns of `table` are compared with, in their order.

    Returns:
        The keys, or None if no attribute can be compared.
    """
    there = {name.lower(): name for name in kept.names}
    pairs = [
        (place, theirs)
        for place, theirs in enumerate(there[name.lower()] for name in names)
        if (kind := _kind(table.schema.field(place).type)) is not None and kind == _kind(kept.field(theirs).type)
    ]
    if not pairs:
        return None
    found = hashes(table.select([place for place, _ in pairs]))
    return Keys(tuple(theirs for _, theirs in pairs), np.unique(found & ~_ROWS))


class _Index:
    """The numbers of a block's rows, sorted, and a bit for each beginning of a hash, set if there is one like it."""

    def __init__(self, rows: pa.RecordBatch, folder: Path) -> None:
        numbers = hashes(rows) & ~_ROWS
        numbers |= np.arange(len(numbers), dtype=np.uint64)
        numbers.sort()
        bits = len(numbers).bit_length() + 3
        self._shift = np.uint64(64 - bits)
        some = np.zeros(1 << bits, np.bool_)
        some[numbers >> self._shift] = True
        beginnings = np.packbits(some, bitorder="little")
        self._numbers: Numbers = numbers
        self._some: np.ndarray[Any, np.dtype[np.uint8]] = beginnings
        if len(numbers) > _IN_MEMORY:
            self._numbers = np.frombuffer(_away(numbers, folder), np.uint64)
            self._some = np.frombuffer(_away(beginnings, folder), np.uint8)

    def places(self, wanted: Numbers) -> Places:
        """The places of the rows with these hashes, in order."""
        begin = wanted >> self._shift
        # Of hashes that are not here, this leaves one in eight or fewer, before each is searched for.
        wanted = wanted[(self._some[begin >> np.uint64(3)] >> (begin & np.uint64(7)).astype(np.uint8)) & 1 == 1]
        first = np.searchsorted(self._numbers, wanted)
        there = first < len(self._numbers)
        first, wanted = first[there], wanted[there]
        hit = (self._numbers[first] & ~_ROWS) == wanted
        first, wanted = first[hit], wanted[hit]
        number = np.searchsorted(self._numbers, wanted | _ROWS, side="right") - first
        each = np.repeat(first - np.cumsum(number) + number, number) + np.arange(number.sum())
        return np.sort((self._numbers[each] & _ROWS).astype(np.int64))


class Block:
    """Some rows of a segment, with their indexes."""

    def __init__(self, rows: pa.RecordBatch, folder: Path) -> None:
        """Copies the rows to a file without a name in the folder, unless they are few."""
        self._folder = folder
        self.rows = rows if len(rows) <= _IN_MEMORY else _mapped(rows, folder)
        self._indexes: dict[tuple[str, ...], _Index] = {}

    def places(self, keys: Keys) -> Places:
        """The places of the rows whose keys may be among these, in order."""
        if keys.names not in self._indexes:
            self._indexes[keys.names] = _Index(self.rows.select(list(keys.names)), self._folder)
        return self._indexes[keys.names].places(keys.hashes)

    def take(self, places: Places) -> pa.RecordBatch:
        """The rows at places."""
        rows: Any = self.rows
        taken: pa.RecordBatch = rows.take(pa.array(places))
        return taken


def blocks_of(batches: Iterable[pa.RecordBatch], folder: Path) -> Iterator[Block]:
    """The rows of a segment as blocks."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        for first in range(0, len(batch), BLOCK):
            part = batch.slice(first, BLOCK)
            if held and (rows + len(part) > BLOCK or size + part.nbytes > _BYTES):
                yield _joined(held, folder)
                held, rows, size = [], 0, 0
            held.append(part)
            rows, size = rows + len(part), size + part.nbytes
    if held:
        yield _joined(held, folder)


def _joined(held: Sequence[pa.RecordBatch], folder: Path) -> Block:
    (whole,) = pa.Table.from_batches(held).combine_chunks().to_batches()
    return Block(whole, folder)


def _mapped(rows: pa.RecordBatch, folder: Path) -> pa.RecordBatch:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, rows.schema) as writer:
        writer.write_batch(rows)
    with pa.ipc.open_stream(pa.py_buffer(_away(out.getvalue(), folder))) as stream:
        return stream.read_next_batch()


def _away(content: Any, folder: Path) -> mmap.mmap:
    """The bytes in a file without a name, mapped: the system may take their memory whenever it needs it."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(content)
        file.flush()
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


_PLAIN = {"byte", "short", "integer", "long", "boolean", "string", "date", "timestamp", "timestamp_ntz", "float"}
_PLAIN |= {"double", "binary"}
_NOT_NESTED = ("timestamp", "variant", "interval", "time(")


def types_in(struct: str) -> Mapping[str, Any]:
    """The names and types of the columns of a Spark schema in JSON."""
    return dict(map(itemgetter("name", "type"), json.loads(struct)["fields"]))


def struct_with(columns: Mapping[str, Any]) -> str:
    """The Spark schema in JSON of columns with these names and types."""
    fields = [{"name": name, "type": type_, "nullable": True, "metadata": {}} for name, type_ in columns.items()]
    return json.dumps({"type": "struct", "fields": fields})


@lru_cache(maxsize=256)
def moments_of(struct: str) -> tuple[str, ...] | None:
    """The columns of a segment that are moments; None if Arrow may not have its types as the engine has them."""
    columns = types_in(struct)
    return tuple(name for name, type_ in columns.items() if type_ == "timestamp") if _all_plain(columns) else None


def _all_plain(columns: Mapping[str, Any]) -> bool:
    plain = (type_ in _PLAIN or type_.startswith("decimal(") for type_ in columns.values() if isinstance(type_, str))
    nested = json.dumps([type_ for type_ in columns.values() if not isinstance(type_, str)])
    return all(plain) and not any(word in nested for word in _NOT_NESTED)


def alike_in_engines(batch: pa.RecordBatch, moments: Sequence[str]) -> pa.RecordBatch:
    """Rows as any engine has them: Spark writes moments without a zone, and marks columns that are never null."""
    batch = pa.RecordBatch.from_arrays(batch.columns, batch.schema.names)
    for name in moments:
        if batch.schema.field(name).type.tz is None:
            at = batch.schema.get_field_index(name)
            column = batch.column(at).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
            batch = batch.set_column(at, name, column)
    return batch


def _kind(type_: pa.DataType) -> str | None:
    """What values of a type are hashed as; None if they are not. Equal values of one kind have equal hashes."""
    if pa.types.is_integer(type_):
        return "integer"
    if pa.types.is_floating(type_):
        return "floating"
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return "text"
    if pa.types.is_timestamp(type_):
        return "moment" if type_.tz is not None else "local time"
    if pa.types.is_decimal128(type_) or pa.types.is_boolean(type_) or pa.types.is_date32(type_):
        return str(type_)
    return None


def hashes(rows: pa.Table | pa.RecordBatch) -> Numbers:
    """A hash of each row; null is a value, NaN is one value, and zeros with a sign are the one without."""
    found = np.zeros(len(rows), np.uint64)
    for column in rows.columns:
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        kind = _kind(array.type)
        values = _texts(array) if kind == "text" else _numbers(array, kind)
        if array.null_count:
            values = np.where(pc.is_null(array).to_numpy(zero_copy_only=False), _NULL, values)
        found = _mixed(found * _PRIMES[0] + values)
    return found


def _mixed(numbers: Numbers) -> Numbers:
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _PRIMES[1]
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _PRIMES[2]
    return numbers ^ (numbers >> np.uint64(31))


def _numbers(array: Any, kind: str | None) -> Numbers:
    if kind == "floating":
        values = pc.fill_null(array.cast(pa.float64()), 0.0).to_numpy() + 0.0
        return np.where(np.isnan(values), np.nan, values).view(np.uint64)
    if pa.types.is_decimal128(array.type):
        words = np.frombuffer(array.buffers()[1], np.uint64)[2 * array.offset : 2 * (array.offset + len(array))]
        return words[::2] + _mixed(words[1::2].copy())
    if kind in ("moment", "local time"):
        array = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
    elif pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    found: Numbers = pc.fill_null(array.cast(pa.int64()), 0).to_numpy(zero_copy_only=False).view(np.uint64)
    return found


def _texts(array: Any) -> Numbers:
    """A number for the length of each text and its bytes near both ends, whatever other texts there are."""
    array = array.cast(pa.large_string())
    offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
    begin, end = offsets[:-1], offsets[1:]
    length = end - begin
    found = _mixed(length.astype(np.uint64))
    content = np.frombuffer(array.buffers()[2] or b"", np.uint8)
    padded = np.concatenate([content, np.zeros(8, np.uint8)])
    words: Numbers = np.ndarray((len(padded) - 7,), np.uint64, padded, 0, (1,))
    longest = int(length.max(initial=0))
    for least, first in ((0, begin), (_ENDS, np.maximum(end - _ENDS, begin + _ENDS))):
        for at in range(0, min(longest - least, _ENDS), 8):
            word = _word(words, first + at, end)
            found += np.where(first + at < end, _mixed(word + np.uint64(least + at)), np.uint64(0))
    return found


def _word(words: Numbers, begin: Places, end: Places) -> Numbers:
    """The eight bytes from an offset in each text, as a number, with zeros for those behind the text's end."""
    bits = (np.clip(end - begin, 0, 8) * 8).astype(np.uint64)
    mask = np.where(bits == 64, ~np.uint64(0), (np.uint64(1) << (bits & np.uint64(63))) - np.uint64(1))
    return words[np.minimum(begin, len(words) - 1)] & mask
