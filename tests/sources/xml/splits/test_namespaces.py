"""The tuples of a source are in one namespace, whichever that is, wherever the source is cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.xml_reading import END, FINE, WHOLE, Cuts, Read, read, read_cut, source
from tests.oracles.xml_oracle import PUNCT, Item
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import RangeParser
from xmlstream.sources.xml.slices.sources_reader import shared_scans
from xmlstream.sources.xml.splits.documents import Documents
from xmlstream.sources.xml.splits.slice_planner import Offset, Planner

CUTS = [WHOLE, FINE, Cuts(piece=50, window=500), Cuts(piece=300, partition="200")]
NEAR = PUNCT + "/"
ROOT = f"<r xmlns:p='{PUNCT}' xmlns:near='{NEAR}' xmlns:x='urn:x'>"
ROWS = [f"<row><a>{number}</a></row>" for number in range(50)]
STRAY = "<near:row><a>5</a></near:row>"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "document.xml"


def read_text(path: Path, text: str, cuts: Cuts, **options: str) -> Read:
    path.write_text(text, encoding="utf-8")
    return read_cut(path, cuts, schema="a STRING", **options)


def tuples(*numbers: int) -> list[Item]:
    return [Item("tuple", (str(number),)) for number in numbers]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED", "FAILFAST"])
@pytest.mark.parametrize("at", [1, 12, 49])
def test_a_namespace_that_is_almost_right_is_an_error_that_names_both(
    path: Path, cuts: Cuts, mode: str, at: int
) -> None:
    text = ROOT + "".join([*ROWS[:at], STRAY, *ROWS[at:]]) + "</r>"
    found = read_text(path, text, cuts, mode=mode)
    assert found.items == tuples(*range(at))
    assert found.error is not None
    assert f"of none and of '{NEAR}'" in found.error.reason
    assert text.encode()[found.error.offset :].startswith(STRAY.encode())


@pytest.mark.parametrize("cuts", CUTS)
def test_as_many_of_them_as_there_are_tuples_are_none(path: Path, cuts: Cuts) -> None:
    found = read_text(path, ROOT + "".join(ROWS) + STRAY * 50 + "</r>", cuts)
    assert (len(found.items), found.error is not None) == (50, True)


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize(
    ("tag", "expected"),
    [("{}row", [1]), ("{urn:x}row", [2]), (f"{{{NEAR}}}row", [5]), ("{urn:none}row", [])],
)
def test_a_row_tag_may_say_which_namespace_is_meant(path: Path, cuts: Cuts, tag: str, expected: list[int]) -> None:
    said = "<p:row><a>7</a></p:row>"
    found = read_text(path, f"{ROOT}{ROWS[1]}<x:row><a>2</a></x:row>{said}{STRAY}</r>", cuts, rowTag=tag)
    tuples_ = [item for item in found.items if item.kind == "tuple"]
    assert tuples_ == tuples(*expected)
    assert [item for item in found.items if item.kind == "punctuation"] == [Item("punctuation", ("7",)), END_OF_ONE]


END_OF_ONE = Item("punctuation", END.texts[:1])


@pytest.mark.parametrize("cuts", CUTS)
def test_prefixes_may_differ_and_so_may_what_stands_before_the_first_tuple(path: Path, cuts: Cuts) -> None:
    before = (
        f"<!-- {ROWS[0]} --><![CDATA[{ROWS[0]}]]><?q {ROWS[0]}?><p:row><a>9</a><row>*</row></p:row><rows/><x:rowx/>"
    )
    rows = "<x:row><a>1</a></x:row><row xmlns='urn:x'><a>2</a></row><w xmlns:y='urn:x'><y:row><a>3</a></y:row></w>"
    found = read_text(path, f"{ROOT}{before}{rows}</r>", cuts)
    assert found.error is None
    assert [item for item in found.items if item.kind == "tuple"] == tuples(1, 2, 3)


@pytest.mark.parametrize("budget", [1, None])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_the_documents_and_slices_of_a_source_are_in_one(tmp_path: Path, budget: int | None, encoding: str) -> None:
    declared = "<?xml version='1.0' encoding='iso-8859-1'?>" if encoding == "iso-8859-1" else ""
    for name, body in (("a", ""), ("b", "<p:row><a>0</a></p:row>"), ("c", ROWS[1] + ROWS[2]), ("d", STRAY)):
        (tmp_path / f"{name}.xml").write_text(f"{declared}{ROOT}{body}<é/></r>", encoding=encoding)
    options = source(tmp_path, schema="a STRING", follow="false")
    found = Read()
    at, tasks = Offset(), 0
    while found.error is None:
        # Slices are planned by one process after another, and each is read by a task that has seen no other.
        planner = Planner(options, Documents(options, log=False))
        after, ranges = planner.advance(Offset.from_json(at.json()), planner.sizes(at), budget)
        assert planner.ranges(at, after) == ranges
        for range_ in ranges:
            more = read(options, [range_])
            found.items += more.items
            found.malformed += more.malformed
            tasks += 1
        assert after != at
        at = after
    assert found.items == [Item("punctuation", ("0",)), *tuples(1, 2)]
    assert NEAR in found.malformed[-1].reason
    assert tasks >= 4


def test_each_of_the_sources_that_are_read_in_one_pass_has_its_own(path: Path) -> None:
    path.write_text(f"{ROOT}<x:line><a>0</a></x:line>{ROWS[1]}<x:line><a>2</a></x:line>{STRAY}</r>")
    rows, lines = (source(path, schema="a STRING", rowTag=tag, follow="false") for tag in ("row", "line"))
    (both,) = shared_scans([Reading.of(rows), Reading.of(lines)])
    planner = Planner(both, Documents(both, log=False))
    _, ranges = planner.advance(Offset(), planner.sizes(Offset()), None)
    assert {range_.namespaces for range_ in ranges} == {("", "urn:x")}
    parsed = [each for range_ in ranges for each in RangeParser(both).parse_all(range_)]
    assert [sum(each[stream].tuples.num_rows for each in parsed) for stream in (0, 1)] == [1, 2]
    assert NEAR in next(one.reason for each in parsed for one in each[0].malformed)


def test_an_offset_of_an_earlier_version_knows_no_namespace() -> None:
    json = {name: value for name, value in Offset().json().items() if name != "namespaces"}
    assert Offset.from_json(json) == Offset()
    known = Offset(namespaces=("urn:x", None))
    assert Offset.from_json(known.json()) == known
    assert SourceOptions.parse({"path": "p", "rowTag": "{}row", "schema": "a INT"}).unsplit == {b"row"}
