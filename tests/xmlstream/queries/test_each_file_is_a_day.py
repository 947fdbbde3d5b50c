"""A directory that fills, night after night: each document closes what its root or its name has."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.harness.nights import AT_NIGHT, SEED
from xmlstream.punct_ns.errors import QueryError, UngrammaticalStream

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession, Session

BY_ROOT = {"schema": "day DATE, price INT", "path.day": "../@day", "sectionEnds": "bids day"}
BY_NAME = {
    "schema": "day DATE, price INT, file STRING",
    "path.day": "document([0-9]{4}-[0-9]{2}-[0-9]{2})",
    "path.file": "document()",
    "sectionEnds": "document() day",
}


class Nights:
    """A query over a directory, which runs once a night, from its checkpoint."""

    def __init__(self, session: Session, directory: Path, options: dict[str, Any]) -> None:
        self.session, self.directory, self.options = session, directory, options
        (directory / "in").mkdir()

    def file(self, name: str, day: int, *prices: int, end: str = "</bids>") -> None:
        rows = "".join(f"<bid><price>{price}</price></bid>" for price in prices)
        text = f"<bids day='2026-11-{day:02}'>{rows}{end}".encode()
        (self.directory / "in" / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)

    def run(self) -> tuple[list[str], list[str]]:
        """The days that the night answers, each with its number of bids and the highest, and the kinds of findings."""
        bids = xs.read(self.session, self.directory / "in", rowTag="bid", **self.options)
        query = bids.group_by("day").agg("count(*) AS bids", "max(price) AS top")
        assert "It answers when groups close" in query.explain(format="text", follow=True)
        before = len(self.answers())
        summary = query.run(output=self.directory / "out", checkpoint=self.directory / "state", keep_open=True)
        return self.answers()[before:], [one.kind for one in summary.findings]

    def answers(self) -> list[str]:
        """The answers of all nights, by day."""
        text = "".join(path.read_text() for path in sorted((self.directory / "out").glob("*.xml")))
        found = re.findall("<row><day>2026-11-(.*?)</day><bids>(.*?)</bids><top>(.*?)</top></row>", text)
        return [f"{int(day)}: {bids}, {top}" for day, bids, top in sorted(found)]


@pytest.mark.parametrize("options", [BY_ROOT, BY_NAME], ids=["root", "name"])
def test_each_night_answers_the_days_whose_files_came(
    session: Session, tmp_path: Path, options: dict[str, Any]
) -> None:
    nights = Nights(session, tmp_path, options)
    nights.file("2026-11-01.xml", 1, 5, 7)
    assert nights.run() == (["1: 2, 7"], [])
    assert nights.run() == ([], [])
    nights.file("2026-11-02.xml.gz", 2, 4, 9, 6)
    nights.file("2026-11-03.xml", 3, 1, end="")
    assert nights.run() == (["2: 3, 9"], []), "the third file is still being written"
    nights.file("2026-11-04.xml", 4, 2)
    assert nights.run() == ([], ["unfinished"])
    with (tmp_path / "in" / "2026-11-03.xml").open("a") as document:
        document.write("<bid><price>8</price></bid></bids>")
    assert nights.run() == (["3: 2, 8", "4: 1, 2"], [])


@pytest.mark.parametrize("options", [BY_ROOT, BY_NAME], ids=["root", "name"])
def test_a_file_that_comes_late_for_its_day_is_ungrammatical(
    in_process: InProcessSession, tmp_path: Path, options: dict[str, Any]
) -> None:
    nights = Nights(in_process, tmp_path, options)
    nights.file("2026-11-01.xml", 1, 5)
    nights.file("2026-11-02.xml", 2, 6)
    nights.run()
    nights.file("late-2026-11-01.xml", 1, 7)
    with pytest.raises(UngrammaticalStream, match=r"\(2026-11-01, 7.*comes after the punctuation"):
        nights.run()
    nights.options = {**options, "ungrammatical": "divert"}
    assert nights.run() == ([], ["ungrammatical"])
    nights.file("2026-11-03.xml", 3, 8)
    assert nights.run() == (["3: 1, 8"], ["ungrammatical"])


def test_several_files_of_a_day_are_closed_by_the_next_day(in_process: InProcessSession, tmp_path: Path) -> None:
    nights = Nights(in_process, tmp_path, {**BY_NAME, "sectionEnds": "", "punctuate": "order of day"})
    nights.file("2026-11-01-a.xml", 1, 5)
    assert nights.run() == ([], [])
    nights.file("2026-11-01-b.xml", 1, 7)
    assert nights.run() == ([], [])
    nights.file("2026-11-02-a.xml", 2, 6)
    assert nights.run() == (["1: 2, 7"], [])


def test_ids_are_unique_among_all_files(in_process: InProcessSession, tmp_path: Path) -> None:
    nights = Nights(in_process, tmp_path, {**BY_NAME, "punctuate": "order of day", "uniqueIds": "price"})
    nights.file("2026-11-01.xml", 1, 5, 7)
    assert nights.run() == (["1: 2, 7"], [])
    nights.file("2026-11-02.xml", 2, 6, 7)
    with pytest.raises(UngrammaticalStream, match=r"\(2026-11-02, 7, .* comes after the punctuation"):
        nights.run()


@pytest.mark.parametrize("documents", ["sequence", "files"])
def test_each_tuple_has_its_file_and_groups_by_it_end_with_it(session: Session, tmp_path: Path, documents: str) -> None:
    for name, text in (
        ("a", "<r><t><n>1</n></t><!-- <t> --><t><n>2</n></t></r>"),
        ("b", "<r><t><n>4</n></t></r>"),
    ):
        (tmp_path / f"{name}.xml").write_text(text)
    read = {"schema": "n INT, file STRING", "path.file": "document()", "sectionEnds": "document() file"}
    rows = xs.read(session, f"{tmp_path}/*.xml", rowTag="t", documents=documents, **read)
    found = rows.group_by("file").agg("sum(n) AS total").to_arrow().to_pylist()
    expected = [(f"{tmp_path}/a.xml", 3), (f"{tmp_path}/b.xml", 4)]
    assert sorted((row["file"], row["total"]) for row in found) == expected


@pytest.mark.parametrize("seed", range(SEED, SEED + (100 if AT_NIGHT else 1)))
def test_night_after_night_days_end_with_their_files_and_transactions_with_their_number(
    in_process: InProcessSession, tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    (tmp_path / "in").mkdir()
    given = random.choice([BY_ROOT, BY_NAME]) | {"punctuate": f"end of tx after {random.choice(['n', '3'])}"}
    number = {tx: random.randint(1, 5) if given["punctuate"].endswith("n") else 3 for tx in range(30)}
    given["schema"] = "day DATE, tx INT, n INT"
    given.pop("path.file", None)
    left = [tx for tx, n in number.items() for _ in range(n - random.choice([0, 0, 0, 1]))]
    left = sorted(left, key=lambda tx: tx + random.randint(0, 9))
    day, came, ended = 0, list[int](), dict[int, int]()
    answers: dict[str, list[tuple[int, int]]] = {"day": [], "tx": []}

    def end(file: Path, day: int, rows: int) -> None:
        with file.open("a") as document:
            document.write("</bids>")
        ended.update({day: rows} if rows else {})

    while left:
        unfinished: Path | None = None
        for _ in range(random.randint(0 if day else 1, 3)):
            day, rows = day + 1, [left.pop(0) for _ in range(min(len(left), random.randint(0, 9)))]
            texts = [f"<bid><tx>{tx}</tx><n>{number[tx]}</n></bid>" for tx in rows]
            file = tmp_path / "in" / f"2026-11-{day:02}.xml"
            file.write_text(f"<bids day='2026-11-{day:02}'>{''.join(texts)}")
            came += rows
            if left and random.random() < 0.4:
                unfinished = file
                break
            end(file, day, len(rows))
        for key, of in answers.items():
            bids = xs.read(in_process, tmp_path / "in", rowTag="bid", **given)
            out = tmp_path / f"out-{key}"
            query = bids.group_by(key).agg("count(*) AS bids")
            query.run(output=out, checkpoint=tmp_path / f"state-{key}", keep_open=True)
            text = "".join(path.read_text() for path in sorted(out.glob("*.xml")))
            found = re.findall(r"<row><\w+>(?:2026-11-)?(.*?)</\w+><bids>(.*?)</bids></row>", text)
            of[:] = [(int(value), int(count)) for value, count in found]
            assert len(dict(of)) == len(of), "no group twice"
        assert dict(answers["day"]) == ended
        assert dict(answers["tx"]) == {tx: n for tx, n in Counter(came).items() if n == number[tx]}
        if unfinished is not None:
            end(unfinished, day, len(rows))


@pytest.mark.parametrize("name", ["input_file_name()", "_metadata.file_path", "bids._metadata.file_name"])
def test_sparks_names_of_the_file_lead_to_the_column(in_process: InProcessSession, name: str) -> None:
    table = "CREATE TABLE bids (price INT) USING punctuated_xml OPTIONS (path 'in', rowTag 'bid');"
    with pytest.raises(QueryError) as told:
        xs.from_sql(in_process, f"{table} SELECT price, {name} AS f FROM bids")
    assert "path.file 'document()'" in str(told.value)
    with pytest.raises(QueryError, match=r"path.file 'document\(\)'"):
        xs.read(in_process, "in", "price INT", name="bids", rowTag="bid").select(f"{name} AS f")


def test_where_no_other_document_may_follow_nothing_closes_everything(
    in_process: InProcessSession, tmp_path: Path
) -> None:
    nights = Nights(in_process, tmp_path, {"schema": "day DATE, price INT", "path.day": "../@day"})
    nights.options["sectionEnds"] = "bids *; bids day"
    with pytest.raises(xs.UsageError, match="the end of bids in one document closes everything, and others may follow"):
        nights.run()
