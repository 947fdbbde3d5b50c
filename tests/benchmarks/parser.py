"""How fast XML becomes typed record batches on one core, beside floors and what else could be used.

    make bench, or pytest --capture=no tests/benchmarks/parser.py

CPU seconds of this process, so that what other threads of it do counts, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from lxml import etree

from sources.generators.sensors import write_sensors
from sources.xml.options.source import SourceOptions
from sources.xml.parser.range_parser import RangeParser
from sources.xml.splits.byte_ranges import ByteRange
from tests.benchmarks.libxml2 import tokenize
from tests.benchmarks.measuring import Measure, rates, scaled, take_turns
from tests.benchmarks.shape_documents import irregular

TUPLES = scaled(1_000_000, at_least=60_000)
SCHEMA = "sid STRING, hour INT, min INT, currtmp DOUBLE"


def ours(path: Path) -> int:
    """The parser of this project, to typed record batches."""
    options = SourceOptions.parse({"path": str(path), "rowTag": "tempdata", "schema": SCHEMA})
    whole = ByteRange(str(path), 0, 0, path.stat().st_size, ends="root")
    tuples = 0
    for parsed in RangeParser(options).parse(whole):
        assert not parsed.malformed
        tuples += parsed.tuples.num_rows
    return tuples


def iterparse(path: Path) -> int:
    """What a careful user would write: lxml's iterparse, leaf texts by name, elements freed behind."""
    tuples = 0
    for _, element in etree.iterparse(path, tag="tempdata"):
        row = {child.tag: child.text for child in element}
        int(row.get("hour") or 0), int(row.get("min") or 0), float(row.get("currtmp") or 0)
        tuples += 1
        element.clear()
        while element.getprevious() is not None:
            del element.getparent()[0]
    return tuples


@pytest.fixture(scope="module")
def documents(scratch: Path) -> dict[str, Path]:
    """A million tuples: with a punctuation for every 1,000, for every 10, and with irregular ones among them."""
    (sparse,) = write_sensors(scratch / "parsed", 1, TUPLES // 1000, 1, 1000, seed=1)
    (dense,) = write_sensors(scratch / "parsed-dense", 1, TUPLES // 600, 60, 600, seed=1)
    irregular(sparse, scratch / "irregular.xml")
    return {"1 punctuation in 1,000": sparse, "1 in 10": dense, "30 % irregular": scratch / "irregular.xml"}


Key = tuple[str, str]
"""A document and a reader."""


def test_parser(documents: dict[str, Path], bench: list[Measure]) -> None:
    readers: dict[Key, Callable[[Path], int | None]] = {(name, "ours"): ours for name in documents}
    readers |= {(name, "tokenizer"): tokenize for name in documents}
    readers["30 % irregular", "iterparse"] = iterparse
    counts: dict[Key, int | None] = {}

    def reading(key: Key) -> float:
        began = time.process_time()
        counts[key] = readers[key](documents[key[0]])
        return time.process_time() - began

    seconds = take_turns({key: partial(reading, key) for key in readers}, within=60)
    assert counts["30 % irregular", "ours"] == counts["30 % irregular", "iterparse"]
    assert counts["1 punctuation in 1,000", "ours"] == TUPLES

    def add(document: str, contender: str, beside: str, target: float | None, ratio_target: float | None) -> None:
        tuples = counts[document, "ours"] or 0
        one, other = (rates(tuples, seconds[document, reader]) for reader in ("ours", beside))
        name = f"parser, {document}, CPU of one core"
        bench.append(Measure(name, "tuples/s", "more", one, contender, other, target, ratio_target))

    add("1 punctuation in 1,000", "libxml2's tokenizer", "tokenizer", 1.8e6, 0.6)
    add("1 in 10", "libxml2's tokenizer", "tokenizer", 0.9e6, None)
    add("30 % irregular", "libxml2's tokenizer", "tokenizer", None, None)
    add("30 % irregular", "lxml's iterparse", "iterparse", None, 1)
