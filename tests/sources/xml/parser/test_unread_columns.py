"""What a query does not use is malformed all the same: an item's fate does not hang on the columns that are read."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from xmlstream.punct_ns.slices import POSITION
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import RangeParser
from xmlstream.sources.xml.splits import split_points
from xmlstream.sources.xml.splits.byte_ranges import ByteRange

TEXTS = {
    "i INT": ["1", "-7", "0042", " 5 ", "", "4 2", "seventeen", "2147483648", "+1", "0x1F"],
    "m SMALLINT": ["0", "59", "60", "-1", "99999"],
    "n BIGINT NOT NULL": ["1", "999999999999999999", "9999999999999999999", "", "1e3"],
    "d DOUBLE": ["1.5", "-2", "NaN", "1e5", "1.5.2", "", "warm"],
    "f FLOAT": ["0.0", "10", "11", "NaN", ".", "5."],
    "s STRING": ["", "any", "é", "<![CDATA[x]]>"],
    "t STRING NOT NULL": ["", "any", "a&amp;b"],
    "b BOOLEAN": ["true", "0", "yes", ""],
    "p DECIMAL(4,1)": ["17.5", "999.9", "1000", "0.25", "7", ""],
    "day DATE": ["2003-05-15", "2003-02-30", "15.5.2003", ""],
    "at TIMESTAMP": ["2003-05-15T17:20:00Z", "2003-05-15T25:20:00Z", ""],
    "many ARRAY<INT>": ["1", "2</many><many>3", "one", "2</many><many>x"],
    "k INT": ["k1", "k", "1", ""],
}
NAMES = [column.split()[0] for column in TEXTS]
GIVEN = {
    "rowTag": "row",
    "schema": ", ".join(TEXTS),
    "domains": "m 0..59, f 0..10",
    "prefix.k": "k",
    "mode": "PERMISSIVE",
}


def document(random: Random) -> str:
    """Rows that are mostly sound and mostly alike, so that all ways of reading them come into play."""
    bad, odd = random.choice([0.0, 0.002, 0.02]), random.choice([0.0, 0.05])

    def leaf(column: str) -> str:
        name, texts = column.split(maxsplit=1)[0], TEXTS[column]
        if random.random() < odd:
            return random.choice(["", f"<{name}/>", f"<{name}>1</{name}><!-- -->"])
        text = random.choice(texts) if random.random() < bad else texts[0]
        return f"<{name}>{text}</{name}>" + (f"<{name}>{text}</{name}>" if random.random() < bad / 4 else "")

    rows = ["<row>" + "".join(map(leaf, TEXTS)) + "</row>" for _ in range(random.choice([3, 40]))]
    return "<r>" + "\n".join(rows) + "</r>"


def read(path: Path, **options: str) -> tuple[list[dict[str, Any]], list[tuple[int, str, str, int]]]:
    """The tuples, and what is malformed with its position, kind, reason and place."""
    tuples: list[dict[str, Any]] = []
    malformed: list[tuple[int, str, str, int]] = []
    parser = RangeParser(SourceOptions.parse({"path": str(path), **GIVEN, **options}))
    for parsed in parser.parse(ByteRange(Document.at(path), 0, 0, path.stat().st_size, ends="root")):
        tuples += parsed.tuples.to_pylist()
        malformed += [(one.position, one.kind, one.reason, one.offset) for one in parsed.malformed]
    return tuples, malformed


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("documents")


@given(st.integers(0, 1 << 40), st.sets(st.sampled_from(NAMES), min_size=1))
def test_the_same_items_are_malformed_whatever_columns_are_read(directory: Path, seed: int, columns: set[str]) -> None:
    random = Random(seed)
    path = directory / "document.xml"
    path.write_text(document(random))
    with patch.object(split_points, "CHUNK_BYTES", random.choice([300, 5000, 1 << 20])):
        whole, malformed = read(path)
        some, malformed_too = read(path, columns=",".join(sorted(columns)))
    assert malformed_too == malformed
    wanted = [{name: repr(row[name]) for name in [*sorted(columns), POSITION]} for row in whole]
    assert [{name: repr(value) for name, value in row.items()} for row in some] == wanted  # NaN is NaN


@given(st.sampled_from([(column, text) for column, texts in TEXTS.items() for text in texts]), st.booleans())
@example(("i INT", "seventeen"), False)
def test_a_single_value_is_malformed_or_not_whether_it_is_read_or_not(
    directory: Path, value: tuple[str, str], regular: bool
) -> None:
    column, text = value
    name, path = column.split()[0], directory / "single.xml"
    sound = {each.split()[0]: texts[0] for each, texts in TEXTS.items()}
    rows = [sound, {**sound, name: text}, sound]
    xml = ["".join(f"<{leaf}>{value}</{leaf}>" for leaf, value in row.items()) for row in rows]
    path.write_text("<r>" + "".join(f"<row>{'' if regular else '<!-- -->'}{leaves}</row>" for leaves in xml) + "</r>")
    reasons = [reason for _, _, reason, _ in read(path)[1]]
    other = "s" if name != "s" else "i"
    assert [reason for _, _, reason, _ in read(path, columns=other)[1]] == reasons
    assert all(reason.startswith(name) for reason in reasons)
