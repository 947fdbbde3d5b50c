"""The numbers of `explain --promises` beside those of runs: each is a bound, and none is more than half as much again.

An auction begins each minute and is open for an hour; a bid comes each ten seconds, for one of those that are open. A
document, and a slice, is a minute of both streams.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from xmlstream.optimizer.rules import optimized
from xmlstream.punct_ns.scheme import format_schemes
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.safety.promises import PromiseSet, promise_sets, rates_of
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

OPEN, MINUTES, BIDS = 60, 400 if AT_NIGHT else 140, 6
RATES = "bid 6/min; bid.auction 1/min, open 1h; auction 1/min; auction.id 1/min, open 0s; auction.seller open 0s"
TABLES = """
CREATE TABLE auction (id INT, seller INT) USING punctuated_xml
OPTIONS (path '{home}/auction', rowTag 'auction', maxFilesPerSlice '1'{auction});
CREATE TABLE bid (auction INT, bidder INT) USING punctuated_xml
OPTIONS (path '{home}/bid', rowTag 'bid', maxFilesPerSlice '1'{bid});
"""
QUERIES = {
    "group": "SELECT auction, min(bidder) AS first, count(*) AS n FROM bid GROUP BY auction",
    "distinct": "SELECT DISTINCT auction, bidder FROM bid",
    "join": "SELECT id, seller, bidder FROM auction JOIN bid ON bid.auction = auction.id",
    "anti": "SELECT id, seller FROM auction WHERE NOT EXISTS (SELECT 1 FROM bid WHERE bid.auction = auction.id)",
    "alternatives": "SELECT id, bidder FROM auction JOIN bid ON auction = id OR auction = seller",
    "join of groups": "SELECT seller, id, count(*) AS n FROM auction JOIN bid ON auction = id GROUP BY seller, id",
}


LOOSE = {"distinct": 3, "alternatives": 3, "anti": 8}
"""Where a bound is known to be loose: bids come at any time of their auction, and an auction with a bid is decided."""


def written(home: Path, schemes: dict[str, str]) -> int:
    """Writes the documents with the punctuations that are promised; returns how many bytes those of an hour take."""
    drawn, said = Random(7), {"auction": 0, "bid": 0}
    for name in said:
        (home / name).mkdir(parents=True)
    for minute in range(MINUTES):
        begun = f"<auction><id>{minute}</id><seller>{minute}</seller></auction>"
        lines: dict[str, list[str]] = {"auction": [begun], "bid": []}
        ended = minute - OPEN
        for _ in range(BIDS):
            of = drawn.randint(max(0, ended + 1), minute)
            lines["bid"].append(f"<bid><auction>{of}</auction><bidder>{drawn.randrange(10**6)}</bidder></bid>")
        for name, last in (("auction", minute), ("bid", ended)):
            for scheme in schemes.get(name, "").split("; ") if last >= 0 else ():
                leaf, _, kind = scheme.partition(" ")
                if leaf:
                    value = f"(,{last}]" if kind else f"{last}"
                    lines[name].append(f"<punct:{name}><{leaf}>{value}</{leaf}></punct:{name}>")
                    said[name] += (len(lines[name][-1]) + 1) * (minute >= MINUTES - 60)
        for name, text in lines.items():
            document = f'<all xmlns:punct="{PUNCT_NS}">\n' + "\n".join([*text, "</all>"])
            (home / name / f"{minute:05}.xml").write_text(document)
    return sum(said.values())


def ran(session: InProcessSession, home: Path, query: str, schemes: dict[str, str]) -> tuple[int, float, int]:
    """The most rows that a run keeps, the longest time from a first tuple to a result in seconds, and the bytes."""
    size = written(home, schemes)
    options = {name: f", schemes '{schemes[name]}'" if name in schemes else "" for name in ("auction", "bid")}
    reports: list[dict[str, Any]] = []
    text = TABLES.format(home=home, **options) + query
    xs.from_sql(session, text).run(home / "out", keep_open=True, on_slice=reports.append, checkpoint=home / "state")
    kept = max(sum(one["kept"] for one in report["operators"]) for report in reports)
    came = [report["slice"] for report in reports if report["tuples_out"]]
    return kept, 60.0 * (came[0] + 1 if came else 0), size


def promised(query: str) -> list[PromiseSet]:
    root = read(TABLES.format(home="in", auction="", bid="") + query).sketch()
    of = RATES if "FROM auction" in query else RATES.partition("; auction ")[0]
    return promise_sets(root, optimized, rates_of(of, root))


@pytest.mark.parametrize("name", QUERIES)
def test_the_numbers_are_those_of_a_run(in_process: InProcessSession, tmp_path: Path, name: str) -> None:
    found = promised(QUERIES[name])
    by_key = [one for one in found if "bidder" not in str(one.schemes)]
    assert by_key
    for number, one in enumerate(by_key[:2]):
        schemes = {source: format_schemes(of) for source, of in one.schemes.items()}
        kept, after, size = ran(in_process, tmp_path / str(number), QUERIES[name], schemes)
        assert one.rows is not None
        assert kept <= one.rows * 1.02 + 3, (str(one), kept)
        assert one.rows <= kept * LOOSE.get(name, 1.5), (str(one), kept)
        assert one.bytes is not None
        assert size / 1.5 <= one.bytes <= size * 1.5, (str(one), size)
        if one.waits and after:
            assert one.after is not None
            assert after <= one.after * 1.02 + 60, (str(one), after)
            assert one.after <= after * 1.5, (str(one), after)
