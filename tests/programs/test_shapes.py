"""The documents of the parser's benchmark are what they say they are, and the loop beside the parser reads the same."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from tests.benchmarks.shapes import SHAPES, Shape
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import RangeParser
from xmlstream.sources.xml.splits.byte_ranges import ByteRange

ROWS = 200


def _comparable(value: Any) -> Any:
    """Without a time zone where UTC is meant, and without the blanks around a text that the parser removes."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return value.strip() if isinstance(value, str) else value


def _parsed(shape: Shape, path: Path) -> list[tuple[Any, ...]]:
    options = SourceOptions.parse({"path": str(path), **shape.options})
    rows: list[tuple[Any, ...]] = []
    for parsed in RangeParser(options).parse(ByteRange(Document.at(path), 0, 0, path.stat().st_size, ends="root")):
        assert not parsed.malformed
        columns = [parsed.tuples.column(name).to_pylist() for name in options.schema.names]
        rows.extend(zip(*columns, strict=True))
    return rows


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_the_parser_and_the_loop_read_the_same_rows_of_a_shape(shape: Shape, tmp_path: Path) -> None:
    path = tmp_path / "document.xml"
    shape.write(path, ROWS, 1)
    assert path.stat().st_size / ROWS == pytest.approx(shape.row_bytes, rel=0.25)
    rows = _parsed(shape, path)
    looped = [shape.values(row) for row in etree.parse(path).iter(shape.tag)]
    assert [tuple(map(_comparable, row)) for row in rows] == [tuple(map(_comparable, row)) for row in looped]
    assert len(rows) == shape.loop(path) == ROWS


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_shape_is_the_same_for_the_same_seed_only(shape: Shape, tmp_path: Path) -> None:
    texts = []
    for number, seed in enumerate((1, 1, 2)):
        path = tmp_path / f"{number}.xml"
        shape.write(path, 10, seed)
        texts.append(path.read_bytes())
    assert texts[0] == texts[1] != texts[2]
