"""The queries of `data/auctions`, held to DuckDB's answers at prefixes of the input and at its end.

The documents grow in steps, each stream at a pace of its own, and the queries of a family go on from where they were:
so each step sees a known prefix. What is out by then must be what is due: nothing less, and nothing that may change.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from lxml import etree
from pyarrow.parquet import read_table

import xmlstream as xs
from tests.auctions.answers import BY_THE_CLOCK, ONE_STREAM, SITE, TWO_STREAMS, Answer
from tests.auctions.ledger import COLUMNS, ledger, load, require_written, rows_of
from tests.harness.data_queries import malformed
from tests.harness.nights import AT_NIGHT
from tests.harness.sealed_files import unseal
from tests.harness.set_clock import set_clock
from xmlstream.sources.generators.auction_documents import write_auctions
from xmlstream.sources.generators.auction_house import House

if TYPE_CHECKING:
    import duckdb

    from xmlstream.session.engines import InProcessSession, Session

QUERIES = Path(__file__).parents[2] / "data" / "auctions"

STEPS = ({"person": 0.3, "auction": 0.5, "bid": 0.4}, {"person": 0.7, "auction": 0.7, "bid": 0.75})[: 1 + AT_NIGHT]
"""How much of each stream is there at a step, before the last one; bids lag behind auctions, by night also go ahead."""

FAMILIES: Mapping[str, Mapping[str, Answer]] = {
    "one stream of bids": ONE_STREAM,
    "two streams of bids": TWO_STREAMS,
    "the clock": BY_THE_CLOCK,
}
HOUSES = {
    "one stream of bids": (2000, House(seed=4, in_flight=30, active=12)),
    "the clock": (2000, House(seed=6, in_flight=30, active=12)),
    "two streams of bids": (11_000, House(seed=5, in_flight=30, active=12, pace=1, heartbeat=300, bid_streams=2)),
}
"""How many events of which house each family is asked of; `active` and `in_flight` are small, so that much closes."""
LONGEST = () if AT_NIGHT else ("one stream of bids",)
"""Where Spark takes longest: by day `tests.xmlstream.queries.test_both_engines` holds it to the other engine."""


@dataclass(frozen=True, slots=True)
class Step:
    """What was there after a step, the last of which is the end.

    Attributes:
        database: What the documents said by then.
        rows: What each query had written by then.
        kept: How many tuples all their operators kept.
        is_end: Whether the documents had ended.
        minutes: Of bids that are filed by the minute, each with their number and prices, and whether it was complete.
    """

    database: duckdb.DuckDBPyConnection
    rows: Mapping[str, list[tuple[str | None, ...]]]
    kept: int
    is_end: bool
    minutes: list[tuple[datetime, int, int, bool]]


def shared(documents: dict[str, str]) -> None:
    """Lets every tenth bid of the first stream be in the second, too: right behind the last one there that is older.

    So it comes in front of what was said since, and the second stream stays grammatical.
    """
    first, second = (documents[name].splitlines(keepends=True) for name in ("bid1", "bid2"))
    times = {
        line: found[1] for line in [*first, *second] if (found := re.match("<bid>.*<dateTime>(.*)</dateTime>", line))
    }
    waiting = deque([line for line in first if line in times][::10])
    merged: list[str] = []
    behind: list[str] = []
    for line in second:
        if line in times:
            while waiting and times[waiting[0]] < times[line]:
                copied = waiting.popleft()
                merged += [copied] if merged else []
            merged += [*behind, line]
            behind = []
        else:
            behind.append(line)
    documents["bid2"] = "".join([*merged, *behind])


def prefix(text: str, part: float) -> str:
    """So much of a document, in whole lines."""
    return text if part == 1 else text[: text.index("\n", int(len(text) * part)) + 1]


def grown(session: Session, family: str, directory: Path) -> Iterator[Step]:
    """Runs the queries of a family together while their input grows."""
    events, house = HOUSES[family]
    write_auctions(directory / "whole", events, house)
    whole = {path.stem: path.read_text(encoding="utf-8") for path in (directory / "whole").glob("*.xml")}
    if house.bid_streams == 2:
        shared(whole)
    else:
        whole["bid"] = malformed(whole["bid"])
    (directory / "in").mkdir()
    texts = {name: (QUERIES / f"{name}.sql").read_text(encoding="utf-8") for name in FAMILIES[family]}
    if family == "the clock":
        # In slices so small that time passes within a step; and the bids as they came, of which the commits tell when.
        texts = {name: text.replace("'320m'", "'64k'") for name, text in texts.items()}
        texts["came"] = texts["nexmark_q12"].partition("SELECT bidder")[0] + "SELECT * FROM bid"
    inserts = [
        xs.from_sql(session, text, {"AUCTIONS": f"{directory}/in"}).insert_into(directory / name)
        for name, text in texts.items()
    ]
    if "nexmark_q10" in texts:
        filed = xs.from_sql(session, texts["nexmark_q10"], {"AUCTIONS": f"{directory}/in"})
        inserts.append(filed.insert_into(directory / "filed.parquet", partition_by="minute"))
    for parts in (*STEPS, dict.fromkeys(("person", "auction", "bid"), 1.0)):
        documents = {name: prefix(text, parts[name.rstrip("12")]) for name, text in whole.items()}
        for name, text in documents.items():
            (directory / "in" / f"{name}.xml").write_text(text, encoding="utf-8")
        database, is_end = ledger(documents), documents == whole
        reports: list[dict[str, Any]] = []
        with set_clock(seconds=4, begin=len(list((directory / "state").glob("commits/*.json")))):
            xs.run(inserts, directory / "state", keep_open=not is_end, on_slice=reports.append)
        if "came" in texts:
            came(database, directory)
        rows = {
            name: rows_of(directory / name, "row", [column[0] for column in database.sql(answer.asked).description])
            for name, answer in FAMILIES[family].items()
        }
        kept = sum(operator["kept"] for operator in reports[-1]["operators"])
        yield Step(database, rows, kept, is_end, minutes(directory / "filed.parquet"))


def minutes(directory: Path) -> list[tuple[datetime, int, int, bool]]:
    """What is filed by now."""
    found = []
    for path in sorted(directory.glob("minute=*")):
        documents = map(read_table, path.glob("*.parquet"))
        prices: list[Any] = [price for document in documents for price in document["price"].to_pylist()]
        moment = datetime.fromisoformat(unquote(path.name.partition("=")[2]).removesuffix("Z"))
        found.append((moment, len(prices), sum(prices), (path / "_SUCCESS").exists()))
    return found


def came(database: duckdb.DuckDBPyConnection, directory: Path) -> None:
    """Loads the bids with the times of their slices, by what the commits say, and the time of the last one."""
    records = [unseal(path) for path in sorted((directory / "state").glob("commits/*.json"))]
    times = {record["slice"]: record["time"].partition("+")[0] for record in records}
    names = [column.split()[0] for column in COLUMNS["bid"].split(", ")]
    rows = [
        (*(row.findtext(name) for name in names), times[int(path.stem.rpartition("-")[2])])
        for path in sorted((directory / "came").glob("slice-*.xml"))
        for row in etree.parse(path).iterfind("row")
    ]
    load(database, "bid_at", rows, f"{COLUMNS['bid']}, came TIMESTAMP")
    load(database, "now", [(max(times.values()),)], "value TIMESTAMP")


@pytest.fixture(scope="module")
def runs(
    in_process: InProcessSession, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], list[Step]]:
    """The steps of a family, which runs once in an engine."""

    @cache
    def run(engine: str, family: str) -> list[Step]:
        session = in_process if engine == "in process" else request.getfixturevalue("spark")
        return list(grown(session, family, tmp_path_factory.mktemp("auctions")))

    return run


def in_engines(family: str, *others: str) -> list[Any]:
    """The cases of a family, in process and under Spark."""
    by_spark = pytest.param("spark", family, *others, marks=[pytest.mark.spark, pytest.mark.rest])
    return [pytest.param("in process", family, *others), *([] if family in LONGEST else [by_spark])]


def test_every_query_has_an_answer_of_its_own() -> None:
    answered = {name for family in (*FAMILIES.values(), SITE) for name in family}
    assert {path.stem for path in QUERIES.glob("*.sql")} == answered


@pytest.mark.parametrize("path", sorted(QUERIES.glob("*.sql")), ids=lambda path: path.stem)
def test_a_query_says_what_it_asks_whose_it_is_and_what_closes_it(path: Path) -> None:
    comment = "".join(line for line in path.read_text(encoding="utf-8").splitlines(True) if line.startswith("--"))
    assert re.search(r"(NEXMark|XMark), Query \d+|et al\. \d{4}, (Example|Query) \d", comment)
    assert re.search(r"\(\w+\.[\w*]+|every punctuation goes on", comment)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "family", "name"),
    [case for family in FAMILIES for name in FAMILIES[family] for case in in_engines(family, name)],
)
def test_at_every_prefix_what_is_due_is_out_and_nothing_else(
    engine: str, family: str, name: str, runs: Callable[[str, str], list[Step]]
) -> None:
    answer, sizes = FAMILIES[family][name], []
    for step in runs(engine, family):
        require_written(step.database, answer.asked if step.is_end else answer.asked_and_due, step.rows[name])
        sizes.append((len(step.rows[name]), len(step.database.sql(answer.asked))))
    # Something was due in time, and not everything that could be said.
    assert sizes[-1][0] > 0
    if answer.due not in ("TRUE", "FALSE"):
        assert all(0 < due < asked for due, asked in sizes[:-1])


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "family"), [case for family in FAMILIES for case in in_engines(family)])
def test_what_is_kept_is_what_something_may_still_come_for(
    engine: str, family: str, runs: Callable[[str, str], list[Step]]
) -> None:
    relations = [relation for answer in FAMILIES[family].values() for relation in answer.kept]
    *steps, end = runs(engine, family)
    for step in steps:
        assert 0 < step.kept <= sum(len(step.database.sql(relation)) for relation in relations)
    assert end.kept == 0


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "family"), in_engines("one stream of bids"))
def test_bids_are_filed_by_the_minute_and_what_is_closed_is_marked(
    engine: str, family: str, runs: Callable[[str, str], list[Step]]
) -> None:
    """NEXMark's Query 10: each minute's directory is marked once a heartbeat has passed its end, and not before."""
    marked = []
    for step in runs(engine, family):
        over = "TRUE" if step.is_end else "minute + INTERVAL 1 MINUTE <= (FROM bid_until)"
        asked = f"SELECT date_trunc('minute', dateTime) AS minute, count(*), sum(price)::BIGINT, {over} FROM bid"
        assert step.minutes == step.database.sql(f"{asked} GROUP BY minute ORDER BY minute").fetchall()
        marked.append(sum(is_complete for *_, is_complete in step.minutes))
    assert marked[0] > 0
    assert all(before < after for before, after in pairwise(marked))
    assert marked[-1] == len(step.minutes)
