"""What a conforming parser refuses stops the reading in any mode, and what came before the fault is all that comes."""

from __future__ import annotations

import codecs
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.harness.xml_reading import END, FINE, WHOLE, Cuts, any_cuts, read_cut, readable, source
from tests.oracles.xml_oracle import Item, before_the_fault, items, well_formed
from tests.samples.xml_damage import damaged
from tests.samples.xml_documents import PATHS, ROW, Writer, encoded

SOME = [WHOLE, FINE, Cuts(piece=50, window=500)]
ROOT = b"<root xmlns:punct='http://www.cse.ogi.edu/dot/niagara/punct' xmlns:p='urn:p'>"
GOOD = b"<row><a>1</a><b>2</b></row>"


def has_doctype(document: bytes) -> bool:
    """Whether a document has a declaration of its type, which is not accepted: its bytes may be other characters."""
    is_wide = document[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return "<!DOCTYPE" in document.decode("utf-16" if is_wide else "latin-1", "replace")


def holds(path: Path, document: bytes, cuts: list[Cuts]) -> None:
    """However a document is cut, it reads as XPath does; or what stands before its fault does, the same in all cuts."""
    path.write_bytes(document)
    root = well_formed(document)
    expected = items(root, ROW, PATHS) if root is not None else before_the_fault(document, ROW, PATHS)
    known = readable(expected, source(path))
    read = [read_cut(path, each) for each in cuts]
    assert len({len(found.items) for found in read}) == 1
    for found in read:
        if root is not None and not has_doctype(document) and Item("stray") not in expected:
            assert found.error is None
            assert found.items == [*known, END]
            assert found.dropped == sum(item.kind == "dropped" for item in expected)
        else:
            assert found.error is not None
            assert found.items == known[: len(found.items)]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged") / "document.xml"


@given(seed=st.integers(0, 1 << 40))
@example(seed=959338608)  # the bytes of a type's declaration, in a document of UTF-16
def test_a_damaged_document_is_read_up_to_its_fault(path: Path, seed: int) -> None:
    random = Random(seed)
    document = Writer(random).document(random.choice([1, 5, 30]))
    whole = document.encode() if random.random() < 0.8 else encoded(document, random)
    holds(path, damaged(whole, random), [WHOLE, FINE, any_cuts(random)])


FAULTS = [
    b"<row><a>1</b></row>",
    b"<row><a>AT&T</a></row>",
    b"<row><a>&none;</a></row>",
    b"<row><a>1</a><b>2",
    b"<row id='1' id='2'><a>1</a></row>",
    b"<row xmlns:s='urn:p' s:id='1' p:id='2'/>",
    b"<none:row><a>1</a></none:row>",
    b"<row none:id='1'><a>1</a></row>",
    b"<row><a>]]></a></row>",
    b"<row><a>\x01</a></row>",
    b"<row><a>\xef\xbf\xbe</a></row>",
    b"<row><a>\xed\xa0\x80</a></row>",
    b"<row id='<'><a>1</a></row>",
    b"<row id=1><a>1</a></row>",
    b"</row>",
    b"<row><a>1</a></ row>",
    b"<row><a>&#xD800;</a></row>",
    b"<!-- a -- b -->",
    b"<!-- <row/> ",
    b"<![CDATA[ <row/> ",
    b"<?xml version='1.0'?>",
    b"<?xmL?>",
    b"<?a:b?>",
    b"<?p <row/>",
    b"<!DOCTYPE root>",
    b"]]>",
    b"&nbsp;",
    b"<wrap>",
    b"</wrap>",
    b"<wrap></row></wrap>",
    b"</root><root>",
    b"<wrap xmlns:p=''/>",
    b"<wrap xmlns:xmlns='u'/>",
]


@pytest.mark.parametrize(
    "row", [b"<row><a xml:id='1 2'>1</a></row>", b"<row xml:id='x'/><row><a xml:id='x'>1</a></row>"]
)
@pytest.mark.parametrize(("before", "after"), [(0, 3), (25, 5)])
def test_ids_that_are_not_valid_are_no_fault(path: Path, row: bytes, before: int, after: int) -> None:
    document = ROOT + GOOD * before + row + GOOD * after + b"</root>"
    assert well_formed(document) is not None
    holds(path, document, SOME)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("before", "after"), [(0, 3), (25, 5)])
def test_a_fault_between_items_or_in_one_ends_the_reading(path: Path, fault: bytes, before: int, after: int) -> None:
    document = ROOT + GOOD * before + fault + GOOD * after + b"</root>"
    assert well_formed(document) is None
    holds(path, document, SOME)


@pytest.mark.parametrize(
    "head",
    [
        b"<?xml version='1.0'?><?xml version='1.0'?>",
        b" <?xml version='1.0'?>",
        b"<!-- a -- b -->",
        b"<?xml version='1.0' standalone='yes' encoding='utf-8'?>",
        b"<!-- \xff -->",
        b"text",
    ],
)
def test_what_may_not_stand_before_the_root_ends_the_reading(path: Path, head: bytes) -> None:
    document = head + ROOT + GOOD + b"</root>"
    assert well_formed(document) is None
    holds(path, document, SOME)


@pytest.mark.parametrize("tail", [b"<root/>", b"text", b"<!-- -- -->", b"<?xml version='1.0'?>", b"\xff", b"\x00"])
def test_what_may_not_stand_behind_the_root_ends_the_reading(path: Path, tail: bytes) -> None:
    document = ROOT + GOOD + b"</root>" + tail
    assert well_formed(document) is None
    holds(path, document, SOME)


@pytest.mark.parametrize("root", [b"<row>", b"<row><root>", b"<row>> --><row><a>1</a></row><root>"])
def test_nothing_of_a_root_that_is_a_tuple_and_does_not_end_comes(path: Path, root: bytes) -> None:
    document = root + GOOD + b"</root>" * (b"<root>" in root)
    assert well_formed(document) is None
    holds(path, document, SOME)
    assert not read_cut(path, WHOLE).items


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED", "FAILFAST"])
def test_a_document_that_ends_anywhere_before_its_end_is_not_taken_for_complete(path: Path, mode: str) -> None:
    document = ROOT + b"<wrap>" + GOOD + b"</wrap></root>"
    for end in range(len(ROOT) - 1, len(document)):
        path.write_bytes(document[:end])
        found = read_cut(path, WHOLE, mode=mode, close="true")
        assert found.error is not None
        assert END not in found.items
