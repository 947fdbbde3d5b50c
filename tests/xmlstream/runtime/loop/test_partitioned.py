"""Partitions as inputs: what one of them says of values that come by it alone, it says for all."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.harness.nights import IN_PROCESS_BY_DAY
from xmlstream.diagnosis.inspection import plan_of
from xmlstream.operators.storage.store import folder_at
from xmlstream.punct_ns.errors import UngrammaticalStream, UsageError
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.checkpoint.commit_log import CommitLog, made_whole
from xmlstream.runtime.checkpoint.declared import declare
from xmlstream.sql.tables.declaration import scan

if TYPE_CHECKING:
    from xmlstream.session.engines import Session


def bid(auction: int, hour: int) -> str:
    return f"<bid><auction>{auction}</auction><hour>{hour}</hour></bid>"


def said(**patterns: str) -> str:
    return f"<p:bid>{''.join(f'<{name}>{text}</{name}>' for name, text in patterns.items())}</p:bid>"


class Feed:
    """Partitions of bids by auction, each a directory of documents, and the query over them, which is run again."""

    def __init__(self, session: Session, directory: Path, keys: str = "auction", **options: Any) -> None:
        self.directory, self.session = directory, session
        self.options = {"partitionedBy": keys, "schemes": "auction; hour prefix", **options}
        self.documents = 0

    def write(self, partition: int, *items: str) -> None:
        self.documents += 1
        document = self.directory / "in" / f"partition-{partition}" / f"{self.documents}.xml"
        document.parent.mkdir(parents=True, exist_ok=True)
        document.write_text(f"<s xmlns:p='{PUNCT_NS}'>{''.join(items)}</s>")

    def answer(self) -> dict[int, int]:
        """One more run to the end of what is there; of each auction that is out how many bids it had."""
        query = xs.read(
            self.session,
            self.directory / "in",
            "auction INT, hour INT NOT NULL",
            name="bid",
            rowTag="bid",
            documents="directories",
            **self.options,
        )
        self.summary = (
            query.group_by("auction")
            .agg("count(*) AS n")
            .run(output=self.directory / "out", checkpoint=self.directory / "checkpoint", keep_open=True)
        )
        texts = [path.read_text() for path in sorted((self.directory / "out").glob("slice-*.xml"))]
        found = re.findall(r"<row><auction>(\d+)</auction><n>(\d+)</n></row>", "".join(texts))
        return {int(auction): int(n) for auction, n in found}


def test_a_partition_that_says_nothing_holds_up_nobody_elses_keys(session: Session, tmp_path: Path) -> None:
    feed = Feed(session, tmp_path)
    feed.write(0, bid(1, 5), bid(1, 6), bid(3, 6), said(auction="1"))
    feed.write(1, bid(2, 5), bid(2, 7), bid(4, 7))
    feed.write(2)
    assert feed.answer() == {1: 2}
    # Ranges are of many keys, and each partition has some of them.
    feed.write(0, bid(3, 7), said(hour="(,7]"))
    feed.write(1, said(auction="{2,4}"))
    assert feed.answer() == {1: 2, 2: 2, 4: 1}
    feed.write(1, said(auction="[0,9]"))
    assert feed.answer() == {1: 2, 2: 2, 4: 1}
    feed.write(0, bid(3, 8), said(auction="3"))
    assert feed.answer() == {1: 2, 2: 2, 3: 3, 4: 1}


@IN_PROCESS_BY_DAY
def test_what_is_declared_of_a_partitions_own_values_holds_for_all(session: Session, tmp_path: Path) -> None:
    feed = Feed(session, tmp_path)
    feed.write(0, bid(1, 5), bid(3, 5))
    feed.write(1, bid(2, 5))
    assert feed.answer() == {}
    checkpoint = tmp_path / "checkpoint"
    last = made_whole(CommitLog(folder_at(checkpoint).below("commits")).records())
    for punctuation in ("<1, *>", "<*, 5>"):  # other partitions may have more of hour 5
        declare(checkpoint, plan_of(checkpoint), last, "bid/partition-0", punctuation)
    with pytest.raises(UsageError, match="bid has no open stream partition-7"):
        declare(checkpoint, plan_of(checkpoint), last, "bid/partition-7", "<1, *>")
    assert feed.answer() == {1: 1}


def test_a_tuple_of_a_value_that_another_partition_has_closed_is_ungrammatical(
    session: Session, tmp_path: Path
) -> None:
    feed = Feed(session, tmp_path / "divert", ungrammatical="divert")
    feed.write(0, bid(1, 5), said(auction="1"))
    feed.write(1, bid(2, 5))
    assert feed.answer() == {1: 1}
    feed.write(1, bid(1, 6), said(auction="2"))
    assert feed.answer() == {1: 1, 2: 1}
    (letters,) = (tmp_path / "divert").rglob("streams-*.jsonl")
    (letter,) = map(json.loads, letters.read_text().splitlines())
    assert letter["document"].endswith("partition-1/3.xml")
    strict = Feed(session, tmp_path / "fail")
    strict.write(0, bid(1, 5), said(auction="1"))
    strict.write(1, bid(2, 5))
    strict.answer()
    strict.write(1, bid(1, 6))
    with pytest.raises(UngrammaticalStream, match="partitionedBy auction"):
        strict.answer()


def test_keys_of_several_attributes_are_fixed_by_all_of_them(session: Session, tmp_path: Path) -> None:
    feed = Feed(session, tmp_path, "auction, hour", schemes="auction, hour; auction")
    feed.write(0, bid(1, 5), *(said(auction="1", hour=text) for text in ("[6,)", "(,4]")))
    feed.write(1, bid(2, 5), said(auction="2"))
    assert feed.answer() == {}
    feed.write(0, said(auction="1", hour="5"))
    assert feed.answer() == {}
    feed.write(1, *(said(auction="1", hour=text) for text in ("[6,)", "(,4]")))
    assert feed.answer() == {1: 1}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"documents": "sequence", "partitionedBy": "a"}, "needs several streams, and documents 'sequence' is one"),
        ({"documents": "directories", "partitionedBy": "b"}, "b"),
    ],
)
def test_what_is_no_partition_is_said(options: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        scan("t", {"path": "in", "rowTag": "r", **options}, "a INT")
