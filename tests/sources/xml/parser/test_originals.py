"""A tuple is found again by its position, as it stands in its document."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from xmlstream.operators.storage.records import DeadLetter
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.slices.micro_batches import StagedRange
from xmlstream.sources.xml.slices.stage_writer import stage, with_elements
from xmlstream.sources.xml.splits.byte_ranges import ByteRange

ROWS = ["<row><h>1</h></row>", "<row><h>2</h><!-- é --></row>", "<row ><h>&#51;</h></row>", "<row><h>4</h></row>"]


@pytest.fixture(params=["utf-8", "utf-16", "iso-8859-1"])
def staged(request: pytest.FixtureRequest, tmp_path: Path) -> StagedRange:
    path = tmp_path / "d.xml"
    declared = f"<?xml version='1.0' encoding='{request.param}'?>" if request.param.startswith("iso") else ""
    text = declared + "<r up='é'>\n<in>\n" + "\n é ".join(ROWS) + "\n</in></r>"
    path.write_bytes(text.encode(request.param))
    options = SourceOptions.parse({"path": str(path), "rowTag": "row", "schema": "h INT"})
    whole = ByteRange(Document.at(path), 0, 0, path.stat().st_size, ends="root")
    (found,) = stage([whole], Reading.of(options, stage=str(tmp_path / "stage")))
    return found


def test_dead_letters_get_the_elements_of_their_positions(staged: StagedRange) -> None:
    assert staged.first_position is not None
    places = [staged.first_position + place for place in (1, 3, 2)]
    found = with_elements([DeadLetter(position=at, kind="x", reason="", raw={"h": 0}) for at in places], [staged])
    assert [one.raw for one in found] == [ROWS[1], ROWS[3], ROWS[2]]
    assert [(one.line, one.column) for one in found] == [(4, 4), (6, 4), (5, 4)]
    assert {(one.within, one.kind) for one in found} == {("<r up='é'><in>", "x")}
    written = json.loads(found[0].line_of("s"))
    assert [*written] == ["source", "_position", "document", "line", "column", "kind", "reason", "raw", "within"]


def test_what_is_not_there_any_more_stays_as_it_was_read(staged: StagedRange) -> None:
    Path(staged.part.ranges[0].document.where).unlink()
    letter = DeadLetter(position=staged.first_position or 0, kind="x", reason="", raw={"h": 1})
    assert with_elements([letter], [staged]) == [letter]
