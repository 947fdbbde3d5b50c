"""Documents that are not well-formed, among others: with `badDocuments 'skip'` the rows before the fault count, once.

What counts is drawn against expat: the rows whose elements end before the fault. It depends neither on how the
documents are cut into slices and tasks, nor on when they grow, nor on where a run is killed.
"""

from __future__ import annotations

import gzip
import json
import re
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from xml.parsers import expat

import pytest

import xmlstream as xs
from tests.harness.dying import Died, dying
from tests.harness.nights import AT_NIGHT, IN_PROCESS_BY_DAY, SEED
from xmlstream.punct_ns.errors import MalformedInput
from xmlstream.runtime.checkpoint.checkpoint import Checkpoint
from xmlstream.sources.xml.slices.staging import LocalStager

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession, Session

COLUMNS = "k INT, p STRING"
CORRUPT: dict[str, Any] = {"ignoreCorruptFiles": True}
JUNK = (b"&", b"<", b"</x>", b"\xff", b"\x01", b"<!-- a -- b -->", b"]]>", b"<p id=1/>", b"&nix;", b"<x>", b"<?xml?>")


def document(random: Random, first: int, rows: int) -> bytes:
    """A document, perhaps with a fault, and perhaps with text behind its root."""
    one = (f"<b><k>{first + at}</k><p>{'x' * random.choice((1, 1, 40))}</p></b>" for at in range(rows))
    text = ("<bs>" + random.choice(("", "\n", "<!-- < -->")).join(one) + "</bs>").encode()
    match random.choice(("sound", "junk", "cut", "tag", "behind")):
        case "junk":
            at = random.randrange(4, len(text) - 5)
            return text[:at] + random.choice(JUNK) + text[at:]
        case "cut":
            return text[: random.randrange(1, len(text))]
        case "tag":
            tags = [found.span() for found in re.finditer(rb"</?[bkp]>", text)]
            begin, end = random.choice(tags) if tags else (1, 2)
            return text[:begin] + text[end:]
        case "behind":
            return text + random.choice((b"<bs/>", b"x", b"<!-- <b/> -->", b"\n"))
    return text


def rows_before_the_fault(text: bytes) -> list[int]:
    """By expat: the keys of the rows whose elements end before the fault."""
    found, within, key, open_ = list[int](), list[int](), list[str](), list[str]()
    parser = expat.ParserCreate()

    def start(name: str, _: Any) -> None:
        open_.append(name)
        if name == "k":
            key.clear()

    def end(name: str) -> None:
        open_.pop()
        if name == "b":
            within.append(int("".join(key)))
        if "b" not in open_:  # a row within a row that does not end is not complete either
            found.extend(within)
            within.clear()

    def said(data: str) -> None:
        key.extend([data] if open_[-1] == "k" else [])

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, said
    with suppress(expat.ExpatError):
        parser.Parse(text, True)
    return found


def is_sound(text: bytes) -> bool:
    try:
        expat.ParserCreate().Parse(text, True)
    except expat.ExpatError:
        return False
    return True


class Feed:
    """A query over a directory, which goes on from its checkpoint."""

    def __init__(self, session: Session, directory: Path, **options: Any) -> None:
        self.session, self.directory = session, directory
        self.options = {"rowTag": "b", "schema": COLUMNS, "badDocuments": "skip", **options}
        (directory / "in").mkdir()

    def run(self, *, keep_open: bool = False) -> list[str]:
        """The kinds of the findings of a run."""
        rows = xs.read(self.session, self.directory / "in", **self.options)
        given: dict[str, Any] = {
            "output": self.directory / "out",
            "checkpoint": self.directory / "state",
            "keep_open": keep_open,
        }
        return [one.kind for one in rows.select("k").run(**given).findings]

    def keys(self) -> list[int]:
        text = "".join(path.read_text() for path in sorted((self.directory / "out").glob("*.xml")))
        return [int(key) for key in re.findall("<row><k>(.*?)</k></row>", text)]

    def letters(self) -> list[dict[str, Any]]:
        lines = (path.read_text() for path in sorted((self.directory / "out" / "_dead_letters").glob("*")))
        return [json.loads(line) for text in lines for line in text.splitlines()]


def _document(directory: Path, documents: str, name: str) -> Path:
    """Where a document is: two of them in a directory, if these are streams."""
    place = directory / "in" / (f"of-{int(name[0]) // 2}" if documents == "directories" else "")
    place.mkdir(exist_ok=True)
    return place / name


@IN_PROCESS_BY_DAY
@pytest.mark.parametrize("draw", range(SEED, SEED + (200 if AT_NIGHT else 12)))
def test_the_rows_before_a_fault_count_once(session: Session, tmp_path: Path, draw: int) -> None:
    random = Random(draw)
    texts = {f"{at}.xml": document(random, 1000 * at, random.choice((1, 3, 12))) for at in range(random.choice((1, 4)))}
    sizes = {"maxBytesPerSlice": random.choice((60, 300, 5000)), "maxBytesPerPartition": random.choice((40, 100, 5000))}
    feed = Feed(
        session, tmp_path, **sizes, documents=(documents := random.choice(("sequence", "files", "directories")))
    )
    grows = random.choice((0, 0, 2))
    for _ in range(grows):  # while the documents grow
        for name, text in texts.items():
            with _document(tmp_path, documents, name).open("ab") as file:
                file.write(text[file.tell() : random.randrange(file.tell(), len(text) + 1)])
        feed.run(keep_open=True)
    for name, text in texts.items():
        with _document(tmp_path, documents, name).open("ab") as file:
            file.write(text[file.tell() :])
    for slices in (0, 1, 3):  # the process dies at a commit, and the next one goes on
        with suppress(Died), dying(slices, (Checkpoint, "commit"), behind=random.random() < 0.5):
            feed.run()
    feed.run()
    assert sorted(feed.keys()) == [key for text in texts.values() for key in rows_before_the_fault(text)], texts
    faulty = {name for name, text in texts.items() if not is_sound(text)}
    letters = feed.letters()
    places = sorted(Path(one["document"]).name for one in letters)
    # What comes behind a root that was read is said where it is seen, and counts nowhere.
    assert places == sorted({*places})
    assert {*places} <= faulty
    assert {*places} >= (faulty if not grows else {name for name in faulty if b"</bs>" not in texts[name]})
    assert {one["kind"] for one in letters} <= {"document"}


def test_a_sender_with_a_bad_document_holds_nobody_up(in_process: InProcessSession, tmp_path: Path) -> None:
    feed = Feed(in_process, tmp_path, documents="files", punctuate="order of k")

    def run() -> list[tuple[str, str]]:
        groups = xs.read(in_process, tmp_path / "in", **feed.options).group_by("k").agg("count(*) AS n")
        groups.run(output=tmp_path / "out", checkpoint=tmp_path / "state", keep_open=True)
        text = "".join(path.read_text() for path in sorted((tmp_path / "out").glob("*.xml")))
        return re.findall("<row><k>(.*?)</k><n>(.*?)</n></row>", text)

    (tmp_path / "in" / "a.xml").write_bytes(b"<bs><b><k>1</k></b><b><k>2</p></b><b><k>3</k></b>")
    (tmp_path / "in" / "b.xml").write_bytes(b"<bs><b><k>1</k></b><b><k>5</k></b>")
    assert run() == [("1", "2")], "what b has not closed is open"
    with (tmp_path / "in" / "b.xml").open("ab") as file:
        file.write(b"<b><k>8</k></b>")
    with (tmp_path / "in" / "a.xml").open("ab") as file:
        file.write(b"<b><k>7</k></b></bs>")
    assert run() == [("1", "2"), ("5", "1")]


GOOD = b"<bs><b><k>%d</k><p>x</p></b><b><k>%d</k><p>y</p></b></bs>"


@IN_PROCESS_BY_DAY
def test_a_document_without_an_end_holds_nobody_up_behind_its_fault(session: Session, tmp_path: Path) -> None:
    feed = Feed(session, tmp_path)
    (tmp_path / "in" / "1.xml").write_bytes(b"<bs><b><k>1</k></b><b><k>2</p></b><b><k>3</k></b>")
    (tmp_path / "in" / "2.xml").write_bytes(GOOD % (4, 5))
    assert feed.run(keep_open=True) == ["bad documents"]
    assert feed.keys() == [1, 4, 5]
    with (tmp_path / "in" / "1.xml").open("ab") as file:
        file.write(b"<b><k>6</k></b></bs>")
    (tmp_path / "in" / "3.xml").write_bytes(GOOD % (7, 8))
    assert feed.run(keep_open=True) == ["bad documents"]
    assert feed.keys() == [1, 4, 5, 7, 8], "what grows behind the fault is skipped, too"
    (letter,) = feed.letters()
    assert (letter["line"], letter["column"], letter["raw"]) == (1, 31, None)
    feed.options["badDocuments"] = "fail"
    (tmp_path / "in" / "4.xml").write_bytes(b"<bs><b><k>9</k></b></x>")
    with pytest.raises(MalformedInput, match="Opening and ending tag mismatch") as raised:
        feed.run()
    assert "badDocuments 'skip'" in (raised.value.hint or "")


def test_a_slice_that_was_staged_ahead_skips_as_well(in_process: InProcessSession, tmp_path: Path) -> None:
    rows = b"".join(b"<b><k>%d</k></b>" % at for at in range(2000))
    text = b"<bs>" + rows.replace(b"<k>50</k>", b"<k>50</x>") + b"</bs>"
    feed = Feed(in_process, tmp_path, maxBytesPerSlice="4k", maxBytesPerPartition="1k")
    (tmp_path / "in" / "1.xml").write_bytes(text)
    (tmp_path / "in" / "2.xml").write_bytes(GOOD % (8001, 8002))
    with patch.object(LocalStager, "works_ahead", True):
        assert feed.run() == ["bad documents"]
    assert feed.keys() == [*range(50), 8001, 8002]


@IN_PROCESS_BY_DAY
@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE", "DROPMALFORMED"])
def test_a_source_ends_with_a_bad_document(session: Session, tmp_path: Path, mode: str) -> None:
    (tmp_path / "a.xml").write_bytes(b"<bs><b><k>1</k></b><b><k>1</k></b><b><k>2</k></b></x>")
    read = xs.read(session, tmp_path / "a.xml", rowTag="b", schema=COLUMNS, mode=mode, **CORRUPT)
    groups = read.group_by("k").agg("count(*) AS n").to_arrow().to_pylist()
    assert sorted((one["k"], one["n"]) for one in groups) == [(1, 2), (2, 1)]


@IN_PROCESS_BY_DAY
def test_the_end_of_a_bad_document_closes_nothing(session: Session, tmp_path: Path) -> None:
    day = {"schema": "k INT, day DATE", "path.day": "document([0-9-]{10})", "sectionEnds": "document() day"}
    feed = Feed(session, tmp_path, **day)
    (tmp_path / "in" / "2026-11-01.xml").write_bytes(b"<bs><b><k>1</k></b></x>")
    (tmp_path / "in" / "2026-11-02.xml").write_bytes(GOOD % (2, 3))
    read = xs.read(session, tmp_path / "in", **feed.options)
    days = read.group_by("day").agg("count(*) AS n")
    days.run(output=tmp_path / "out", checkpoint=tmp_path / "state", keep_open=True)
    text = "".join(path.read_text() for path in (tmp_path / "out").glob("*.xml"))
    assert re.findall("<row><day>(.*?)</day><n>(.*?)</n></row>", text) == [("2026-11-02", "2")]


def test_streams_of_one_document_are_skipped_together(in_process: InProcessSession, tmp_path: Path) -> None:
    text = b"<bs>" + b"".join(b"<b><k>%d</k></b><c><k>%d</k></c>" % (at, at) for at in range(90)) + b"</bs>"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.xml").write_bytes(text.replace(b"<c><k>40</k>", b"<c><k>40</k"))
    (tmp_path / "in" / "2.xml").write_bytes(b"<bs><b><k>900</k></b><c><k>901</k></c></bs>")
    sizes: dict[str, Any] = {
        "maxBytesPerSlice": 500,
        "maxBytesPerPartition": 100,
        "badDocuments": "skip",
        "schema": "k INT",
    }
    b, c = (xs.read(in_process, tmp_path / "in", rowTag=tag, **sizes) for tag in "bc")
    found = [row["k"] for row in b.union_all(c).to_arrow().to_pylist()]
    assert sorted(found) == sorted([*range(41), 900, *range(40), 901])


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_compressed_documents_count_up_to_their_damage(in_process: InProcessSession, tmp_path: Path, kept: int) -> None:
    keys = Random(kept).sample(range(10**8), 40_000)
    packed = gzip.compress(b"<bs>" + b"".join(b"<b><k>%d</k></b>" % key for key in keys) + b"</bs>")
    feed = Feed(in_process, tmp_path)
    (tmp_path / "in" / "1.xml.gz").write_bytes(packed[: len(packed) * kept // 4])
    (tmp_path / "in" / "2.xml").write_bytes(GOOD % (1, 2))
    assert feed.run() == ["bad documents"]
    assert feed.keys()[-2:] == [1, 2]
    assert feed.keys()[:-2] == keys[: len(feed.keys()) - 2]
    assert len(feed.keys()) > 5_000 * kept
