"""How fast XML becomes typed record batches on one core, beside floors and what else could be used.

    make bench, or pytest --capture=no tests/benchmarks/parser.py

CPU seconds of this process, median of five, the contenders taking turns. Ratios are what counts: absolutes move with
the machine.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, cast

import pytest
from lxml import etree

from sources.ranges import Range
from sources.sensors import generate
from sources.source import SourceOptions
from sources.xml_parser import XmlParser

TUPLES = 1_000_000
ROUNDS = 5
SCHEMA = "sid STRING, hour INT, min INT, currtmp DOUBLE"


def ours(path: Path) -> int:
    """The parser of this project, to typed record batches."""
    options = SourceOptions.parse({"path": str(path), "rowTag": "tempdata", "schema": SCHEMA})
    whole = Range(str(path), 0, 0, path.stat().st_size, ends="root")
    tuples = 0
    for parsed in XmlParser(options).parse(whole):
        assert not parsed.malformed
        tuples += parsed.tuples.num_rows
    return tuples


class Nothing:
    """A target that no event is handed to."""

    def close(self) -> Any:
        """The document has ended."""


def tokenizer(path: Path) -> int:
    """The floor: libxml2 reads the bytes and tells nobody."""
    with path.open("rb") as file:
        parser = etree.XMLParser(target=cast(Any, Nothing()))
        while piece := file.read(1 << 18):
            parser.feed(piece)
        parser.close()
    return TUPLES


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


def irregular(path: Path, to: Path) -> None:
    """30 of 100 tuples without one leaf, with the leaves in another order, with a comment, or with a reference."""
    random = Random(1)
    leaf = re.compile(rb"<(\w+)>[^<]*</\1>")

    def disturbed(line: bytes) -> bytes:
        if not line.startswith(b"<tempdata>") or random.random() >= 0.3:
            return line
        leaves = [found[0] for found in leaf.finditer(line, 10)]
        match random.randrange(4):
            case 0:
                leaves.pop(random.randrange(4))
            case 1:
                random.shuffle(leaves)
            case 2:
                leaves.insert(random.randrange(4), b"<!-- checked -->")
            case _:
                leaves[0] = b"<sid>S&#49;</sid>"
        return b"<tempdata>" + b"".join(leaves) + b"</tempdata>\n"

    with path.open("rb") as source, to.open("wb") as target:
        target.writelines(map(disturbed, source))


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A million tuples: with a punctuation for every 1,000, for every 10, and with irregular ones among them."""
    directory = tmp_path_factory.mktemp("documents")
    (sparse,) = generate(directory / "1000", 1, TUPLES // 1000, 1, 1000, seed=1)
    (dense,) = generate(directory / "10", 1, TUPLES // 600, 60, 600, seed=1)
    irregular(sparse, directory / "irregular.xml")
    return {"1 punctuation in 1,000": sparse, "1 in 10": dense, "30 % irregular": directory / "irregular.xml"}


def test_parser(documents: dict[str, Path]) -> None:
    contenders: list[tuple[str, str, Callable[[Path], int], Path]] = [
        (name, reader.__name__, reader, path) for name, path in documents.items() for reader in (ours, tokenizer)
    ]
    contenders.append(("30 % irregular", "iterparse", iterparse, documents["30 % irregular"]))
    seconds: dict[tuple[str, str], list[float]] = {}
    counts: dict[tuple[str, str], int] = {}
    for _ in range(ROUNDS):
        for document, name, read, path in contenders:
            began = time.process_time()
            counts[document, name] = read(path)
            seconds.setdefault((document, name), []).append(time.process_time() - began)
    rates = {key: counts[key] / median(those) / 1e6 for key, those in seconds.items()}
    print("\n\n| document | reader | million tuples/s | of the tokenizer |\n| --- | --- | ---: | ---: |")
    for (document, name), rate in rates.items():
        print(f"| {document} | {name} | {rate:.2f} | {rate / rates[document, 'tokenizer']:.2f} |")
    assert counts["30 % irregular", "ours"] == counts["30 % irregular", "iterparse"]
    assert rates["30 % irregular", "ours"] >= rates["30 % irregular", "iterparse"]
