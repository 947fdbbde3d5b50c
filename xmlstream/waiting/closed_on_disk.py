"""Closed strings of a source that lie on disk, as a commit has them: looked up, or read, without touching them.

What a source has said is in the records of commits; but strings that were closed one by one go into sorted files
(`operators.state.heard_punctuations`), of which the records tell the names alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute

from punct_ns.isolated import listed
from punct_ns.pattern import List
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema

pc: Any = pyarrow.compute  # its stubs do not know search_sorted

_AT_ONCE = 1000


class ClosedOnDisk:
    """The closed strings of one source, by attribute.

    Args:
        state: The directory of the source's state.
        schema: Its schema.
        kept: What a commit recorded of its files, by name.

    Raises:
        OSError, pa.ArrowException: When they are read: a file is gone, as where the query has gone on.
    """

    def __init__(self, state: Path, schema: Schema, kept: Mapping[str, Any]) -> None:
        recorded = {i: kept.get(f"said {a.name}", {"segments": (), "rows": 0}) for i, a in enumerate(schema)}
        self._schema = schema
        self._files = {i: [state / part["name"] for part in one["segments"]] for i, one in recorded.items()}
        self.rows = {schema[i].name: int(one["rows"]) for i, one in recorded.items() if one["segments"]}

    def named(self, p: Punctuation) -> Iterator[Punctuation]:
        """Of the strings that a punctuation names one by one, those that are closed whatever else there is."""
        for i, paths in self._files.items():
            asked = [value for value in listed(p.patterns[i]) if isinstance(value, str)]
            if asked and paths:
                yield from self._closing(i, sorted(self._among(asked, paths)))

    def all(self) -> Iterator[Punctuation]:
        """All of them."""
        for i, paths in self._files.items():
            for path in paths:
                values = _values(path).to_pylist()
                for begin in range(0, len(values), _AT_ONCE):
                    yield from self._closing(i, values[begin : begin + _AT_ONCE])

    def _closing(self, i: int, values: Sequence[str]) -> Iterator[Punctuation]:
        if values:
            yield Punctuation.of(self._schema, {self._schema[i].name: List(tuple(values))})

    @staticmethod
    def _among(asked: Sequence[str], paths: Sequence[Path]) -> set[str]:
        wanted: Any = pa.array(asked, pa.string())
        found = set[str]()
        for path in paths:
            values = _values(path)
            at = pc.min_element_wise(pc.search_sorted(values, wanted), pa.scalar(len(values) - 1, pa.uint64()))
            found.update(wanted.filter(pc.equal(values.take(at), wanted)).to_pylist())
        return found


def _values(path: Path) -> Any:
    with pa.ipc.open_file(pa.memory_map(str(path))) as file:
        return file.get_batch(0).column(0)
