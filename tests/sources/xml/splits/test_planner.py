"""How a source is cut into slices: bounded, gapless, and the same again after a restart."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.xml_reading import in_slices, read
from tests.samples.xml_documents import COLUMNS, OPTIONS, ROW, Writer, encoded
from xmlstream.punct_ns.errors import InputError, StateError, UsageError
from xmlstream.punct_ns.slices import POSITION
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import RangeParser
from xmlstream.sources.xml.splits.byte_ranges import ByteRange
from xmlstream.sources.xml.splits.documents import DOCUMENT_LOG, Documents
from xmlstream.sources.xml.splits.slice_planner import Offset, Planner
from xmlstream.sources.xml.splits.split_scan import SMALLEST_WINDOW

ROOT = b"<r xmlns:p='http://www.cse.ogi.edu/dot/niagara/punct'>"


def rows(first: int, last: int) -> bytes:
    return b"".join(b"<row><h>%d</h></row>\n" % number for number in range(first, last))


def source(path: Path, **options: str) -> SourceOptions:
    return SourceOptions.parse({"path": str(path), "rowTag": "row", "schema": "h INT", "mode": "PERMISSIVE", **options})


def planner(options: SourceOptions) -> Planner:
    return Planner(options, Documents(options, log=options.document_log is not None))


class Reading:
    """A query's view of a source: slice after slice, and all that came."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self.planner = planner(options)
        self.at = Offset()
        self.slices: list[list[int | str]] = []
        self.positions: list[Any] = []

    def advance(self, budget: int | None = None) -> list[int | str] | None:
        """The values of the next slice, `*` for its end; None if nothing came."""
        after, ranges = self.planner.advance(self.at, self.planner.sizes(self.at), budget or 1 << 40)
        if after == self.at:
            assert not ranges
            return None
        assert self.planner.ranges(self.at, after) == ranges, "planned again, it is the same slice"
        self.at = Offset.from_json(after.json())
        self.slices.append(self.read(ranges))
        return self.slices[-1]

    def read(self, ranges: list[ByteRange]) -> list[int | str]:
        found: list[Any] = []
        for range_ in ranges:
            for parsed in RangeParser(self.options).parse(range_):
                self.positions += parsed.tuples[POSITION].to_pylist()
                self.positions += parsed.punctuations[POSITION].to_pylist()
                found += parsed.tuples["h"].to_pylist()
                found += ["*" for _ in range(parsed.punctuations.num_rows)]
                found += [one.kind for one in parsed.malformed]
        return found

    def to_the_end(self, budget: int | None = None) -> list[int | str]:
        while self.advance(budget) is not None:
            pass
        assert self.positions == sorted(set(self.positions))
        return [value for values in self.slices for value in values]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "stream.xml"


@pytest.mark.parametrize("budget", [1, 100, 5000, None])
def test_a_document_comes_whole_in_slices_of_bounded_size(file: Path, budget: int | None) -> None:
    file.write_bytes(ROOT + b"\n" + rows(0, 1000) + b"</r>\n")
    reading = Reading(source(file))
    assert reading.to_the_end(budget) == [*range(1000), "*"]
    assert reading.at.closed
    if budget is not None:
        assert max(len(values) for values in reading.slices) <= max(budget, SMALLEST_WINDOW) / 20


def test_a_growing_document_is_read_up_to_its_last_whole_item(file: Path) -> None:
    reading = Reading(source(file))
    file.write_bytes(b"")
    assert reading.advance() is None
    file.write_bytes(ROOT[:20])
    assert reading.advance() is None
    file.write_bytes(ROOT + rows(0, 3) + b"<row><h>3")
    assert reading.advance() == [0, 1, 2]
    assert reading.advance() is None
    file.write_bytes(ROOT + rows(0, 5))
    assert reading.advance() == [3, 4]
    file.write_bytes(ROOT + rows(0, 5) + b"<p:row><h>4</h></p:row>")
    assert reading.advance() == ["*"]
    file.write_bytes(ROOT + rows(0, 5) + b"<p:row><h>4</h></p:row></r>")
    assert reading.advance() == ["*"]
    assert reading.at.closed
    assert reading.advance() is None


def test_what_can_never_become_content_is_not_waited_for(file: Path) -> None:
    file.write_bytes(ROOT + rows(0, 2) + b"<row><h>1</row>\n<row><h>2</h></row>")
    assert Reading(source(file)).to_the_end() == [0, 1, "document"]


def test_a_document_that_shrinks_is_no_stream(file: Path) -> None:
    file.write_bytes(ROOT + rows(0, 3))
    reading = Reading(source(file))
    reading.advance()
    file.write_bytes(ROOT)
    with pytest.raises(InputError, match="shrunk"):
        reading.advance()


@pytest.mark.parametrize("first", [3, 300])
@pytest.mark.parametrize("by", ["copytruncate", "rename"])
def test_a_file_that_was_replaced_by_one_as_long_is_not_read_on(file: Path, by: str, first: int) -> None:
    read = ROOT + rows(0, first)
    file.write_bytes(read[:300])
    reading = Reading(source(file))
    reading.advance()
    file.write_bytes(read)
    reading.advance()
    names = count()
    for again in (reading, Reading(source(file))):  # after a restart, too
        again.at = reading.at
        file.write_bytes(read + rows(first, first + 5))
        start = again.at
        assert again.advance() == [*range(first, first + 5)]
        again.at = start
        for other in (
            ROOT + rows(first, 2 * first + 9),
            ROOT + rows(0, first // 2) + rows(5000, 5000 + first),
            b"<other>" + read[7:] + rows(0, 9),
        ):
            if by == "rename":
                file.rename(file.with_name(f"rotated-{next(names)}"))
            file.write_bytes(other)
            with pytest.raises(InputError, match=r"was replaced .*differs from what was read") as refused:
                again.advance()
            assert ("by another file" in str(refused.value)) == (by == "rename")
        file.write_bytes(read)
        assert again.advance() is None


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("length", [2, 40])
def test_a_file_that_was_replaced_is_another_document_where_that_is_wanted(
    tmp_path: Path, many: bool, length: int
) -> None:
    (tmp_path / "in").mkdir()
    file = tmp_path / "in" / "a.xml"
    log = {"documentLog": str(tmp_path / "log")}
    options = source(tmp_path / "in" if many else file, onReplaced="new", **log)
    at = Offset()

    def advanced() -> list[int | str]:
        """What comes next, as after a restart."""
        nonlocal at
        reading = Reading(options)
        at, ranges = reading.planner.advance(at, reading.planner.sizes(at), 1 << 40)
        at = Offset.from_json(at.json())
        return reading.read(ranges)

    file.write_bytes(ROOT + rows(0, 9))
    assert advanced() == [*range(9)]
    for number in range(1, 4):
        first = 100 * number
        file.rename(tmp_path / f"rotated-{number}")
        file.write_bytes(ROOT + rows(first, first + length))
        assert advanced() == [*range(first, first + length)]
        assert advanced() == []
        file.write_bytes(ROOT + rows(first, first + length + 1))
        assert advanced() == [first + length]
    if many:
        (tmp_path / "in" / "b.xml").write_bytes(ROOT + rows(7, 8) + b"</r>")
    file.write_bytes(ROOT + rows(first, first + length + 1) + b"</r>")
    assert advanced() == ([7] if many else ["*"])
    assert at.closed != many
    assert advanced() == []


def test_a_checkpoint_without_fingerprints_goes_on(file: Path) -> None:
    file.write_bytes(ROOT + rows(0, 3))
    reading = Reading(source(file))
    reading.advance()
    reading.at = Offset.from_json({name: value for name, value in reading.at.json().items() if name != "print"})
    file.write_bytes(ROOT + rows(0, 4))
    assert reading.advance() == [3]
    assert reading.at.print is not None
    file.write_bytes(ROOT + rows(1, 6))
    with pytest.raises(InputError, match="replaced"):
        reading.advance()


def test_at_a_definite_end_an_unfinished_document_is_malformed(file: Path) -> None:
    file.write_bytes(ROOT + rows(0, 2) + b"<row><h>2")
    assert Reading(source(file, follow="false")).to_the_end() == [0, 1, "document"]
    assert Reading(source(file, follow="false", close="true")).to_the_end() == [0, 1, "document"]


def test_kept_open_an_unfinished_document_goes_on_later(file: Path) -> None:
    options = source(file, follow="false", keepOpen="true")
    file.write_bytes(ROOT + rows(0, 2))
    reading = Reading(options)
    assert reading.to_the_end() == [0, 1]
    file.write_bytes(ROOT + rows(0, 4) + b"</r>")
    assert reading.to_the_end() == [0, 1, 2, 3, "*"]


def test_a_directory_is_read_by_name_and_then_by_arrival(tmp_path: Path) -> None:
    documents, log = tmp_path / "in", tmp_path / "log"
    documents.mkdir()
    reading = Reading(source(documents, documentLog=str(log)))
    assert reading.advance() is None
    for name, first in (("b.xml", 2), ("a.xml", 0), (".hidden", 90), ("_part", 91), ("c.tmp", 92)):
        (documents / name).write_bytes(ROOT + rows(first, first + 2) + b"</r>")
    assert reading.advance() == [0, 1, 2, 3]
    (documents / "0.xml").write_bytes(ROOT + rows(4, 5) + b"</r>")
    assert reading.advance() == [4]
    # Another process takes over; names alone would give another order.
    again = Reading(source(documents, documentLog=str(log)))
    assert again.to_the_end() == [0, 1, 2, 3, 4]
    assert [line for line in (log / DOCUMENT_LOG).read_text().splitlines() if "0.xml" in line] == [
        (log / DOCUMENT_LOG).read_text().splitlines()[-1]
    ]


def test_documents_may_go_once_they_are_read_and_not_before(tmp_path: Path) -> None:
    for name in ("a.xml", "b.xml"):
        (tmp_path / name).write_bytes(ROOT + rows(0, 1) + b"</r>")
    reading = Reading(source(tmp_path, maxFilesPerSlice="1", documentLog=str(tmp_path / "log")))
    assert reading.advance() == [0]
    (tmp_path / "a.xml").unlink()
    assert reading.planner.advance(reading.at, reading.planner.sizes(Offset()), None)[1]
    (tmp_path / "b.xml").unlink()
    with pytest.raises(InputError, match="was removed before"):
        reading.advance()


def test_a_document_without_its_end_holds_back_those_after_it(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(ROOT + rows(0, 1))
    (tmp_path / "b.xml").write_bytes(ROOT + rows(2, 3) + b"</r>")
    reading = Reading(source(tmp_path, documentLog=str(tmp_path / "log")))
    assert reading.to_the_end() == [0]
    (tmp_path / "a.xml").write_bytes(ROOT + rows(0, 2) + b"</r>")
    assert reading.to_the_end() == [0, 1, 2]
    assert not reading.at.closed


@pytest.mark.parametrize("budget", [1, 200, None])
def test_many_documents_are_one_stream_closed_at_its_definite_end(tmp_path: Path, budget: int | None) -> None:
    for number in range(5):
        (tmp_path / f"{number}.xml").write_bytes(ROOT + rows(10 * number, 10 * number + 10) + b"</r>\n")
    options = source(tmp_path / "*.xml", follow="false", close="true", documentLog=str(tmp_path / "log"))
    assert Reading(options).to_the_end(budget) == [*range(50), "*"]


def test_so_many_documents_end_in_a_slice_at_the_most(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.xml").write_bytes(ROOT + rows(number, number + 1) + b"</r>")
    reading = Reading(source(tmp_path, maxFilesPerSlice="2", documentLog=str(tmp_path / "log")))
    reading.to_the_end(1 << 20)
    assert reading.slices == [[0, 1], [2, 3], [4]]


def test_an_empty_directory_closed_says_so_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    options = source(tmp_path / "in", follow="false", close="true", documentLog=str(tmp_path / "log"))
    assert Reading(options).to_the_end() == ["*"]


def test_a_bad_document_of_many_takes_no_other_with_it(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(b"<!ELEMENT r><r/>")
    (tmp_path / "b.xml").write_bytes(ROOT + rows(0, 1) + b"</r>")
    options = source(tmp_path, follow="false", close="true", documentLog=str(tmp_path / "log"))
    assert Reading(options).to_the_end() == ["document", 0, "*"]


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "iso-8859-1", "cp1252", "gb18030", "utf-8-sig"])
@pytest.mark.parametrize("budget", [1, 300, None])
def test_every_encoding_is_read_in_slices_or_whole(file: Path, codec: str, budget: int | None) -> None:
    declared = "" if codec in ("utf-16", "utf-8-sig") else f"<?xml version='1.0' encoding='{codec}'?>"
    text = "".join(f"<row><h>{number}</h><s>é</s></row>" for number in range(40))
    file.write_bytes(f"{declared}<r é='é'>{text}</r>".encode(codec))
    assert Reading(source(file)).to_the_end(budget) == [*range(40), "*"]


def test_a_cut_below_the_root_remembers_what_is_open(file: Path) -> None:
    groups = [f"<g id='{number}'>{rows(0, 20).decode()}</g>" for number in range(5)]
    file.write_text("<r>" + "".join(groups) + "</r>", encoding="utf-8")
    options = source(file, **{"schema": "h INT, g INT", "path.g": "../@id"})
    reading = Reading(options)
    reading.planner = planner(options)
    at, seen, opens = Offset(), list[tuple[int, int]](), set[int]()
    while not at.closed:
        at, ranges = reading.planner.advance(at, reading.planner.sizes(at), 150)
        opens.add(len(at.open))
        for range_ in ranges:
            for parsed in RangeParser(options).parse(range_):
                seen += [(row["g"], row["h"]) for row in parsed.tuples.to_pylist()]
    assert seen == [(g, h) for g in range(5) for h in range(20)]
    assert 2 in opens


def test_a_stream_over_a_directory_needs_a_place_for_its_log(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="documentLog"):
        Documents(source(tmp_path), log=True)


def test_a_broken_last_line_of_the_log_is_forgotten_and_another_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        (tmp_path / "in" / name).write_bytes(ROOT + b"</r>")
    options = source(tmp_path / "in", documentLog=str(tmp_path))
    Documents(options, log=True).find()
    log = tmp_path / DOCUMENT_LOG
    log.write_bytes(log.read_bytes()[:-5])
    assert [each.key for each in Documents(options, log=True).find()] == ["a", "b"]
    log.write_bytes(b"nonsense\n" + log.read_bytes())
    with pytest.raises(StateError):
        Documents(options, log=True)


@pytest.mark.parametrize("path", ["nothing.xml", "hdfs://host/in"])
def test_what_is_not_there_is_said_so(tmp_path: Path, path: str) -> None:
    path = path if "://" in path else str(tmp_path / path)
    with pytest.raises((InputError, UsageError)):
        Documents(source(Path("x")).replace(path=path), log=False).find()


def test_an_item_that_is_too_long_and_still_grows_is_waited_for(file: Path) -> None:
    reading = Reading(source(file, maxItemBytes="2k"))
    text = ROOT + rows(0, 2) + b"<row><h>2</h>"
    for _ in range(4):
        text += b"<x>" + b"y" * 1_000 + b"</x>"
        file.write_bytes(text)
        reading.to_the_end()
    assert [value for values in reading.slices for value in values] == [0, 1]
    text += b"</row>" + rows(3, 5)
    file.write_bytes(text)
    assert reading.to_the_end() == [0, 1, "tuple", 3, 4]
    file.write_bytes(text + rows(5, 6) + b"</r>")
    assert reading.to_the_end() == [0, 1, "tuple", 3, 4, 5, "*"]


def test_a_unit_that_is_too_long_stops_the_reading_though_it_still_grows(file: Path) -> None:
    reading = Reading(source(file, maxItemBytes="2k", unitTag="u"))
    file.write_bytes(ROOT + b"<u>" + rows(0, 2) + b"</u><u>" + rows(2, 500))
    assert reading.to_the_end() == [0, 1, "document"]


EPILOGS = [b"<!-- a - b -->", b"<?a b?>", b"\n<!---->\n<?p ??>\n", b"\n\n"]


@pytest.mark.parametrize("epilog", EPILOGS)
@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
def test_a_document_that_is_cut_anywhere_behind_its_root_is_waited_for(
    tmp_path: Path, epilog: bytes, codec: str
) -> None:
    place, whole = tmp_path / "in", ROOT + rows(0, 3)
    place.mkdir()
    (place / "b.xml").write_bytes(ROOT + rows(7, 9) + b"</r>")

    def write(text: bytes) -> None:
        (place / "a.xml").write_bytes(text if codec == "utf-8" else text.decode().encode(codec))

    for options in ({"follow": "true"}, {"follow": "false", "keepOpen": "true"}):
        for cut in range(len(epilog)):
            log = tmp_path / f"log-{options['follow']}-{cut}"
            reading = Reading(source(place, documentLog=str(log), **options))
            write(whole + b"</r>" + epilog[:cut])
            found = reading.to_the_end()
            rest = epilog[:cut].rpartition(b">")[2].strip()
            assert found == ([] if rest and codec == "utf-16" else [0, 1, 2]) + [7, 8] * (not rest)
            write(whole + b"</r>" + epilog)
            assert reading.to_the_end() == [0, 1, 2, 7, 8]


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("growing") / "document.xml"


@given(st.integers(0, 1 << 40))
def test_any_document_that_grows_byte_by_byte_is_read_as_if_it_were_there_at_once(growing: Path, seed: int) -> None:
    random = Random(seed)
    writer = Writer(random)
    writer.mixed = False
    document = encoded(writer.document(random.choice([0, 1, 2, 5])), random)
    begin, end = random.choice([(0, 40), (0, len(document)), (len(document) - 40, len(document))])
    cuts = sorted({min(max(0, random.randrange(begin, end + 1)), len(document)) for _ in range(15)})
    given_ = {"path": str(growing), "schema": COLUMNS, "rowTag": ROW, "mode": "PERMISSIVE", **OPTIONS}
    at, planned = Offset(), planner(SourceOptions.parse({**given_, "follow": "true"}))
    ranges = list[ByteRange]()
    for cut in [*cuts, len(document)]:
        growing.write_bytes(document[:cut])
        while (step := planned.advance(at, planned.sizes(at), random.choice([1, 1 << 40])))[0] != at:
            at, ranges = step[0], ranges + step[1]
    assert at.closed
    whole = SourceOptions.parse({**given_, "follow": "false"})
    expected, found = read(whole, in_slices(whole, None)), read(whole, ranges)
    assert found.error is None
    assert found.items == expected.items


@pytest.mark.parametrize("root", [b"<r/>", b"<row><h>1</h></row>", b"<r></r>"])
@pytest.mark.parametrize("budget", [1, None])
def test_a_root_without_content_or_that_is_a_row_waits_for_the_end_of_what_is_behind_it(
    file: Path, root: bytes, budget: int | None
) -> None:
    reading = Reading(source(file))
    for behind in (b"<", b"<!-- a", b"<!-- a --"):
        file.write_bytes(root + behind)
        assert reading.to_the_end(budget) == []
    file.write_bytes(root + b"<!-- a -->")
    assert reading.to_the_end(budget) == [1, "*"][b"row" not in root :]


@pytest.mark.parametrize("behind", [b"<!-- a -- b", b"<r", b"text", b"<!-- a --><!D", b"</r>", b"<?a?>x<?b"])
def test_what_can_never_be_behind_a_root_is_not_waited_for(file: Path, behind: bytes) -> None:
    file.write_bytes(ROOT + rows(0, 2) + b"</r>" + behind)
    assert Reading(source(file)).to_the_end()[2] == "document"
