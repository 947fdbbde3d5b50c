"""Small documents that are parsed at once give what each gives alone, in the same order, at the same positions."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser import range_parser
from xmlstream.sources.xml.parser.item_batches import Parsed
from xmlstream.sources.xml.parser.range_parser import RangeParser
from xmlstream.sources.xml.splits.byte_ranges import ByteRange
from xmlstream.sources.xml.splits.documents import Documents, open_document
from xmlstream.sources.xml.splits.slice_planner import Offset, Planner

ROOTS = [f'<l xmlns:punct="{PUNCT_NS}">', f'<l  xmlns:punct="{PUNCT_NS}">', "<l>"]
ITEMS = [
    "<r><a>1</a><b>x</b></r>",
    "<r><a>2</a><b>y &amp; z</b></r>",
    "<r a='3' b='q'/>",
    "<r><b>ü</b><a>4</a></r>",
    "<other><r><a>5</a></r></other>",
    "<r><a>none</a></r>",
    "<r><a>6</a><b><![CDATA[</r>]]></b></r>",
    "<!-- <r> --><?p </l>?>",
    "<punct:r><a>7</a></punct:r>",
    "<punct:r><b>[x,y]</b></punct:r>",
    "<punct:r><a>[</a></punct:r>",
    "<punct:r><c>1</c></punct:r>",
    "text",
    "<r><a>8</a></l>",
    "</r><r>",
    "<!-- ",
    " --> ",
    "&am",
    "p;",
    "<r><![CDATA[",
    "]]></r>",
    "<?p ",
    "?>",
    "<r a='",
    "'/>",
    "<r>",
    "</r>",
]
SOUND = (0, 1, 2, 3, 4, 8, 9)
"""Those of which a hundred in a row are read without one that is read alone."""

documents = st.tuples(
    st.sampled_from(["", '<?xml version="1.0"?>\n', "\ufeff", '<?xml version="1.0" encoding="iso-8859-1"?>']),
    st.sampled_from([ROOTS[0], ROOTS[0], ROOTS[0], *ROOTS]),
    st.lists(st.one_of(st.sampled_from([ITEMS[i] for i in SOUND]), st.sampled_from(ITEMS)), max_size=4),
    st.sampled_from(["</l>", "</l>\n", "</l>\n", "</l><!-- end -->", ""]),
)


def written(directory: Path, given: list[tuple[str, str, list[str], str]]) -> list[ByteRange]:
    for number, (begin, root, items, end) in enumerate(given):
        encoding = "iso-8859-1" if "8859" in begin else "utf-8"
        (directory / f"{number:03}.xml").write_text(begin + root + "".join(items) + end, encoding=encoding)
    planner = Planner(options(directory), Documents(options(directory), log=False))
    return planner.advance(Offset(), planner.sizes(Offset()), None)[1]


def options(directory: Path) -> SourceOptions:
    given = {"path": str(directory), "rowTag": "r", "schema": "a INT, b STRING, _c STRING, d STRING, e INT"}
    paths = {"path.a": "a|@a", "path.b": "b|@b", "path.d": "document()", "path.e": "document([0-9]+)"}
    return SourceOptions.parse({**given, **paths, "mode": "PERMISSIVE"})


def read(pieces: list[Parsed]) -> list[Any]:
    return [
        [row for piece in pieces for row in piece.tuples.to_pylist()],
        [row for piece in pieces for row in piece.punctuations.to_pylist()],
        [(one.position, one.document, one.offset, one.kind, one.reason) for piece in pieces for one in piece.malformed],
        sorted(name for piece in pieces for name in piece.void.elements()),
        sorted({name for piece in pieces for name in piece.had}),
    ]


@given(documents=st.lists(documents, max_size=7))
@example(documents=[("", ROOTS[0], ["<r><a>1</a>"], ""), ("", ROOTS[0], ["</r>"], "</l>")])
@example(documents=[("", ROOTS[0], ["<!-- "], "</l>"), ("", ROOTS[0], [" --> "], "</l>")])
@example(documents=[("", ROOTS[0], ["<r><a>1</a></r>"], "</l>"), ("", ROOTS[0], ["</r><r>"], "</l>")])
@example(documents=[("", ROOTS[0], [], "</l>"), ("", ROOTS[0], [ITEMS[0]], "</l>"), ("", ROOTS[0], [], "</l>")])
def test_parsed_at_once_they_give_what_each_gives_alone(
    tmp_path_factory: pytest.TempPathFactory, documents: list[tuple[str, str, list[str], str]]
) -> None:
    directory = tmp_path_factory.mktemp("small")
    if not documents:
        return
    ranges = written(directory, documents)
    each = [(range_.document.where, list(RangeParser(options(directory)).parse(range_))) for range_ in ranges]
    for where, pieces in each:
        of = {(row["d"], row["e"]) for piece in pieces for row in piece.tuples.to_pylist()}
        assert of <= {(where, int(Path(where).stem))}
    alone = [piece for _, pieces in each for piece in pieces]
    assert read([piece for (piece,) in RangeParser(options(directory)).parse_many(ranges)]) == read(alone)


@pytest.mark.parametrize("item", ["<r><a>none</a></r>", "</r><r>", "<r>", "<punct:r><a>[</a></punct:r>"])
def test_one_bad_document_of_a_hundred_lets_the_others_be_read_together(
    item: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranges = written(tmp_path, [("", ROOTS[0], [item if at == 41 else ITEMS[0]], "</l>\n") for at in range(100)])
    opened = mock.Mock(side_effect=open_document)
    monkeypatch.setattr(range_parser, "open_document", opened)
    pieces = [piece for (piece,) in RangeParser(options(tmp_path)).parse_many(ranges)]
    assert sum(piece.tuples.num_rows for piece in pieces) == 99
    assert opened.call_count <= 3


def test_a_large_document_keeps_no_small_ones_apart(tmp_path: Path) -> None:
    ranges = written(tmp_path, [("", ROOTS[0], [ITEMS[0]] * count, "</l>") for count in (5000, 1, 1, 1)])
    pieces = [piece.tuples.num_rows for (piece,) in RangeParser(options(tmp_path)).parse_many(ranges)]
    assert sum(pieces) == 5003
    assert pieces[-1] == 3


@pytest.mark.parametrize("item", [ITEMS[i] for i in SOUND])
def test_a_hundred_are_one_piece(item: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ranges = written(tmp_path, [("", ROOTS[0], [item, ITEMS[0]], "</l>\n")] * 100)
    opened = []
    monkeypatch.setattr(range_parser, "open_document", lambda *given: opened.append(given))
    *pieces, last = [piece for (piece,) in RangeParser(options(tmp_path)).parse_many(ranges)]
    assert len(pieces) <= 1
    assert not opened
    assert sum(piece.tuples.num_rows + piece.punctuations.num_rows for piece in [*pieces, last]) == 200
