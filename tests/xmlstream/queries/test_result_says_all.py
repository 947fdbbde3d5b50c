"""`punctuations 'all'`: a result also says what its query leaves out (Tucker et al. 2003, §6.2)."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.harness.nights import AT_NIGHT, IN_PROCESS_BY_DAY, SEED
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sink.xml_documents import Vocabulary

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

TABLE = """
CREATE TABLE s (sid STRING, value INT) USING punctuated_xml OPTIONS (path '{home}/in', rowTag 't', schemes 'sid');
CREATE TABLE r (sid STRING, value INT) USING punctuated_xml OPTIONS (path '{home}/in', rowTag 't', schemes 'sid');
CREATE TABLE said USING punctuated_xml OPTIONS (path '{home}/out', punctuations '{how}');
INSERT INTO said {query};
"""


class Feed:
    """Documents of one source, and a query over them whose result is a directory."""

    def __init__(self, session: Session, home: Path, query: str, how: str = "all") -> None:
        self.session, self.home, self.text = session, home, TABLE.format(home=home, query=query, how=how)
        (home / "in").mkdir()
        self.documents = 0

    def send(self, *rows: tuple[str, int | None], closed: str | None = None) -> None:
        self.documents += 1
        leaves = (f"<sid>{sid}</sid>" + ("" if v is None else f"<value>{v}</value>") for sid, v in rows)
        text = "".join(f"<t>{each}</t>" for each in leaves)
        text += "" if closed is None else f"<p:t><sid>{closed}</sid></p:t>"
        (self.home / "in" / f"{self.documents:05}.xml").write_text(f"<s xmlns:p='{PUNCT_NS}'>{text}</s>")

    def run(self, *, keep_open: bool = True) -> list[str]:
        """One more run; the items of the result, a text each."""
        xs.run(xs.inserts_from_sql(self.session, self.text), checkpoint=self.home / "state", keep_open=keep_open)
        return self.items()

    def items(self) -> list[str]:
        found = []
        for path in sorted((self.home / "out").glob("*.xml")):
            for line in path.read_text().splitlines():
                if line.startswith(("<row>", "<punct:row>")):
                    values = re.findall(r"<(?:sid|value|twice)>([^<]*)<", line.replace("&quot;", '"'))
                    found.append(f"{'<' if line.startswith('<punct') else '('}{', '.join(values)}")
        return found


def test_a_result_says_once_what_its_query_leaves_out(session: Session, tmp_path: Path) -> None:
    feed = Feed(session, tmp_path, "SELECT sid, value FROM s WHERE value > 250")
    feed.send(("a", 100), ("b", 300), ("c", None))
    assert feed.run() == ["(b, 300", "<*, (,250]", "<*, null"]
    feed.send(("b", 251), closed="b")
    assert feed.run()[3:] == ["(b, 251", "<b, *"]


@IN_PROCESS_BY_DAY
@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT sid, value * 2 AS twice FROM s WHERE value > 250", {"<*, (,501]", "<*, null"}),
        ("SELECT sid FROM s WHERE value > 250", set()),
        ("SELECT sid, value FROM (SELECT * FROM s UNION ALL SELECT * FROM r) WHERE value > 250", {"<*, (,250]"}),
        (
            "SELECT sid, value FROM s WHERE value BETWEEN 3 AND 5 AND sid IS NOT NULL",
            {"<*, (,2]", "<*, [6,)", "<null, *"},
        ),
        ("SELECT sid, max(value) AS value FROM s GROUP BY sid HAVING max(value) > 250", {"<*, (,250]", "<*, null"}),
        ("SELECT sid, max(value) AS value FROM s WHERE value > 250 GROUP BY sid", set()),
    ],
)
def test_what_is_said_stands_in_terms_of_the_result(
    session: Session, tmp_path: Path, query: str, said: set[str]
) -> None:
    feed = Feed(session, tmp_path, query)
    feed.send(("a", 100))
    found = {each for each in feed.run() if each.startswith("<")}
    assert said <= found
    assert bool(said) == bool(found)


def test_by_default_nothing_is_said_of_it(session: Session, tmp_path: Path) -> None:
    feed = Feed(session, tmp_path, "SELECT sid, value FROM s WHERE value > 250", "inline")
    feed.send(("a", 300))
    assert feed.run() == ["(a, 300"]


@IN_PROCESS_BY_DAY
@pytest.mark.parametrize("seed", range(SEED, SEED + (60 if AT_NIGHT else 3)))
def test_no_row_comes_that_was_left_out(session: Session, tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    tests = [
        "value > 3",
        "value < 3",
        "value <> 2",
        "value IN (1, 4)",
        "value IS NULL",
        "sid = 'a'",
        "sid < 'c'",
        "value IS NOT NULL",
    ]
    parts = drawn.sample(tests, drawn.randint(1, 3))
    condition = drawn.choice([" AND ", " OR "]).join(parts)
    if drawn.random() < 0.3:
        condition = f"NOT ({condition})"
    feed = Feed(session, tmp_path, f"SELECT sid, value FROM s WHERE {condition}")
    for _ in range(3):
        feed.send(*((drawn.choice("abcd"), drawn.choice([None, *range(6)])) for _ in range(8)))
        feed.run()
    items, schema, said = feed.items(), Schema.parse("sid STRING, value INT"), list[Punctuation]()
    for item in items:
        if item.startswith("<"):
            said.append(Punctuation.parse(f"{item}>", schema))
        else:
            sid, value, *_ = [*item[1:].split(", "), ""]
            assert not any(p.matches((sid, int(value) if value else None)) for p in said), (condition, item)


def test_another_place_for_punctuations_is_refused() -> None:
    with pytest.raises(UsageError, match="punctuations is 'most'") as raised:
        Vocabulary(punctuations="most")
    assert raised.value.hint == "it is one of inline, beside, none, all"
