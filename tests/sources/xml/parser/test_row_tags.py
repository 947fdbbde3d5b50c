"""Rows of several names, `row|bow`: read as XPath reads them, with the name that each has."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.harness.xml_reading import FINE, WHOLE, Cuts, any_cuts, read_cut, readable, source
from tests.oracles.xml_oracle import PUNCT, Item, items, well_formed
from tests.samples.xml_documents import COLUMNS, OPTIONS, PATHS, Writer, encoded
from xmlstream.punct_ns.errors import UsageError
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import RangeParser, originals
from xmlstream.sources.xml.splits.byte_ranges import ByteRange, RangePart

ROWS = "row|bow"
NAMED = {"schema": f"{COLUMNS}, kind STRING", **OPTIONS, "path.kind": "name(.)"}
UNNAMED = {"schema": COLUMNS, **OPTIONS}


class TwoNames(Writer):
    """Writes items of two names, which may be in one another."""

    def _item(self) -> str:
        item = super()._item()
        if self.random.random() < 0.6:
            return item
        return re.sub(r"\brow>$", "bow>", re.sub(r"^<((?:\w+:)?)row\b", r"<\1bow", item))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("row-tags") / "document.xml"


@pytest.mark.parametrize("options", [NAMED, UNNAMED], ids=["named", "unnamed"])
@given(seed=st.integers(0, 1 << 40))
@example(seed=80457)  # a row of one name in a punctuation of the other is not a row, nor tells their namespace
@example(seed=522142)
def test_any_document_reads_as_xpath_does(path: Path, options: dict[str, str], seed: int) -> None:
    random = Random(seed)
    document = encoded(TwoNames(random).document(random.choice([0, 1, 5, 30, 60])), random)
    path.write_bytes(document)
    given_ = {**options, "rowTag": ROWS}
    found, root = read_cut(path, any_cuts(random), **given_), well_formed(document)
    assert root is not None
    paths = [*PATHS, "name(.)"] if options is NAMED else PATHS
    expected = items(root, ROWS, paths)
    is_mixed = Item("stray") in expected
    assert (found.error is not None) == is_mixed
    end = [Item("punctuation", (None,) * len(paths))] * (not is_mixed)
    assert found.items == readable(expected, source(path, **given_)) + end
    assert found.dropped == sum(item.kind == "dropped" for item in expected)


@pytest.mark.parametrize("cuts", [WHOLE, FINE, Cuts(piece=50, window=500)])
def test_a_name_with_its_namespace_is_that_and_plain_ones_share_theirs(path: Path, cuts: Cuts) -> None:
    body = "<x:b xmlns:x='urn:x'><a>1</a></x:b><b><a>2</a></b><c xmlns='urn:y'><a>3</a></c><d xmlns='urn:y'/>" * 20
    path.write_text(f"<r>{body}</r>", encoding="utf-8")
    given_ = {"schema": "a INT, n STRING", "path.n": "name(.)", "rowTag": "c | d|{urn:x}b"}
    found = read_cut(path, cuts, **given_)
    assert [item.texts for item in found.items[:-1]] == [(1, "b"), (3, "c"), (None, "d")] * 20


def test_what_is_malformed_and_what_is_shown_are_rows_of_either_name(path: Path) -> None:
    body = "<b><a>1</a></b><c><a>x</a></c><b><a>y</a></b><c><a>2</a></c>"
    path.write_text(f"<r>{body}</r>", encoding="utf-8")
    found = read_cut(path, WHOLE, schema="a INT", rowTag="b|c")
    assert [one.raw for one in found.malformed] == ["<c><a>x</a></c>", "<b><a>y</a></b>"]
    options = SourceOptions.parse({"path": str(path), "rowTag": "b|c", "mode": "PERMISSIVE"}, "a INT")
    whole = ByteRange(Document.at(path), 0, 0, path.stat().st_size, ends="root")
    positions = [int(p) for piece in RangeParser(options).parse(whole) for p in piece.tuples[-1].to_numpy()]
    shown = originals(RangePart(Reading.of(options), 0, (whole,)), positions)
    assert [shown[position].raw for position in positions] == ["<b><a>1</a></b>", "<c><a>2</a></c>"]


def test_what_is_said_of_one_name_is_not_said_of_the_other(path: Path) -> None:
    path.write_text(f"<r xmlns:p='{PUNCT}'><b/><p:b><a>1</a></p:b><p:c><a>2</a></p:c></r>", encoding="utf-8")
    named = read_cut(path, WHOLE, **{"schema": "a INT, n STRING", "path.n": "name(.)", "rowTag": "b|c"})
    assert [item.texts for item in named.items] == [(None, "b"), ("1", '"b"'), ("2", '"c"'), (None, None)]
    unnamed = read_cut(path, WHOLE, schema="a INT", rowTag="b|c")
    assert (len(unnamed.items), unnamed.dropped) == (2, 2)


@pytest.mark.parametrize(
    ("row_tag", "refusal"),
    [("a|", "an empty name"), ("a|a", "a name twice"), ("a|q:b", "prefix q, which is not declared")],
)
def test_what_is_no_row_tag_is_refused(row_tag: str, refusal: str) -> None:
    with pytest.raises(UsageError, match=refusal):
        SourceOptions.parse({"path": "x", "rowTag": row_tag}, "a INT")
