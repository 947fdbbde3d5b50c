"""The collector of a task's findings, which samples the document where something expected is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from punct_ns.schema import Schema
from punct_ns.scheme import Term
from sources.xml.options.leaf_tree import local_tag
from sources.xml.options.source import SourceOptions
from sources.xml.parser.findings import Findings, few_names
from sources.xml.parser.item_parser import ItemParser
from sources.xml.parser.parsed import Parsed
from sources.xml.parser.path_sample import LITTLE, MUCH, sampled_elements, sampled_leaves, sampled_paths
from sources.xml.splits.byte_ranges import ByteRange

pc: Any = pyarrow.compute

_WILDCARD, _PATTERN, _PREFIX = range(3)


class FindingsCollector:
    """Adds up what the parser has at hand."""

    def __init__(self, options: SourceOptions, parser: ItemParser) -> None:
        self._options, self._parser = options, parser
        self._tuples = 0
        self._had: set[str] = set()
        self._void: Counter[str] = Counter()

    def add(self, parsed: Parsed) -> None:
        """The next piece."""
        self._tuples += parsed.tuples.num_rows
        self._had.update(parsed.had)
        self._void += parsed.void

    def findings(self, ranges: Sequence[ByteRange], said: Counter[str]) -> Findings:
        """What was noticed in ranges, their punctuations having been such (`restriction_counts`)."""
        found = Findings(
            bytes=sum(range_.length for range_ in ranges),
            tuples=self._tuples,
            read=self._parser.batches.read,
            had=frozenset(self._had),
            foreign=few_names(self._parser.reader.foreign),
            said=said,
            void=self._void,
        )
        return found + self._missed(found, ranges[0]) if ranges else found

    def _missed(self, found: Findings, range_: ByteRange) -> Findings:
        """What is there instead of what is not."""
        is_silent = bool(found.tuples and self._options.schemes) and not (found.said or found.void)
        is_known = not (found.is_nothing or found.missing or is_silent)
        if is_known or self._options.format == "parquet":
            return Findings()
        there = sampled_paths(range_, self._options.encoding, MUCH if found.is_nothing else LITTLE)
        rows, mark = self._options.row_names, "{" + self._options.punctuation_namespace + "}"
        tags = set(sampled_elements(there))
        return Findings(
            elements=few_names(map(local_tag, tags)) if found.is_nothing else frozenset(),
            leaves=few_names(sampled_leaves(there, rows, mark)) if found.missing else frozenset(),
            stray=few_names(tag for tag in tags if tag.startswith(mark) and local_tag(tag) not in rows),
        )


def restriction_counts(said: pa.Table, schema: Schema) -> Counter[str]:
    """How many punctuations restrict which attributes, written as a scheme: `hour`, `sid, ts prefix`.

    Args:
        said: A column of pattern texts for each attribute, null for a wildcard.
        schema: The attributes.
    """
    if not said.num_rows:
        return Counter()
    kinds = np.stack([_kinds(said[name]) for name in schema.names], axis=1)
    different, counts = np.unique(kinds, axis=0, return_counts=True)
    found: Counter[str] = Counter()
    for row, count in zip(different.tolist(), counts.tolist(), strict=True):
        terms = [
            Term(name, "prefix" if kind == _PREFIX else "each")
            for name, kind in zip(schema.names, row, strict=True)
            if kind != _WILDCARD
        ]
        if terms:
            found[", ".join(map(str, terms))] += count
    return found


def _kinds(texts: Any) -> npt.NDArray[np.int8]:
    column: Any = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    kinds = np.array([*map(_kind, column.dictionary.to_pylist()), _WILDCARD], np.int8)
    which: npt.NDArray[np.int32] = pc.fill_null(column.indices, len(kinds) - 1).to_numpy(zero_copy_only=False)
    found: npt.NDArray[np.int8] = kinds[which]
    return found


def _kind(text: str) -> int:
    return _WILDCARD if text == "*" else _PREFIX if text.startswith("(,") else _PATTERN
