"""The sets of promises under which a query answers and stays bounded, and what each costs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from xmlstream.cli.commands import app
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.scheme import format_schemes
from xmlstream.safety.promises import PromiseSet, Rate, promise_sets, rates_of, sets_in_words
from xmlstream.safety.verdicts import judged
from xmlstream.sql.script import read

AUCTIONS = """
CREATE TABLE auction (id INT, seller INT) USING punctuated_xml OPTIONS (path 'a', rowTag 'auction'{0});
CREATE TABLE bid (auction INT, bidder INT, price DOUBLE, at TIMESTAMP) USING punctuated_xml
OPTIONS (path 'b', rowTag 'bid'{1});
"""
HIGHEST = "SELECT auction, max(price) AS highest FROM bid GROUP BY auction"
JOINED = "SELECT seller, id, price FROM auction JOIN bid ON bid.auction = auction.id"


def plan(query: str, auction: str = "", bid: str = "") -> Node:
    return read(AUCTIONS.format(auction, bid) + query).sketch()


def found(query: str, rates: str = "", **declared: str) -> list[PromiseSet]:
    root = plan(query, **declared)
    return promise_sets(root, optimized, rates_of(rates, root))


def schemes(sets: list[PromiseSet]) -> list[dict[str, str]]:
    return [{name: format_schemes(of) for name, of in one.schemes.items()} for one in sets]


def test_the_smallest_sets_come_first_and_each_suffices() -> None:
    assert schemes(found(HIGHEST)) == [{"bid": "auction"}, {"bid": "auction prefix"}]
    assert {"auction": "id", "bid": "auction"} in schemes(found(JOINED))
    for one in schemes(found(JOINED)):
        options = {name: f", schemes '{text}'" for name, text in one.items()}
        assert judged(optimized(plan(JOINED, **options)), follow=True).is_safe


def test_a_source_may_need_several() -> None:
    either = "SELECT id, bidder FROM auction JOIN bid ON bid.auction = auction.id OR bid.bidder = auction.seller"
    (one,) = schemes(found(either))
    assert one == {"auction": "id; seller", "bid": "auction; bidder"}


def test_what_is_declared_is_among_them_and_marked() -> None:
    declared = found(HIGHEST, bid=", schemes 'auction, bidder; auction'")
    assert [one.declared for one in declared] == [False, False, True]
    assert schemes(declared)[2] == {"bid": "auction, bidder; auction"}
    assert [one.declared for one in found(HIGHEST, bid=", schemes 'auction'")] == [True, False]


def test_unique_ids_are_no_promise_to_ask_for() -> None:
    sets = found(JOINED, "bid 10/s; bid.auction 1/s, open 2h; auction 1/s", auction=", uniqueIds 'id'")
    assert schemes(sets)[0] == {"bid": "auction"}
    assert sets[0].rows == 7200, "auctions while they are open, and no bid behind its auction"


def test_the_numbers_follow_from_the_rates() -> None:
    (one, _) = found(HIGHEST, "bid 10/s; bid.auction 1/s, open 10min")
    assert one.waits == "when auction closes"
    assert one.after == 600
    assert one.kept == (("group_by", "groups", 600.0),)
    assert not one.estimated
    assert one.bytes == 3600 * len("<punct:bid><auction>123456</auction></punct:bid>\n")
    assert json.loads(json.dumps(one.json()))["rows"] == 600


def test_what_is_not_known_is_asked_for() -> None:
    (one, _) = found(HIGHEST, "bid 10/s")
    assert (one.rows, one.after) == (None, None)
    assert one.bytes is not None, "one for each tuple at most"
    words = sets_in_words([one])
    asked = re.search(r"--rates '([^']*)'", words)
    assert asked is not None
    assert rates_of(asked[1].replace("…", "1").replace("open 1", "open 1h"), plan(HIGHEST))


def test_what_is_kept_above_a_join_is_an_estimate_unless_its_rows_are_those_of_a_source() -> None:
    rates = "bid 10/s; auction 1/s; auction.id open 0s; bid.auction open 1h"
    query = JOINED.replace("price", "{}, max(price) AS m") + " GROUP BY seller, id{}"
    by_auction, by_both = (found(query.format(*more), rates) for more in (("1 AS one", ""), ("bidder", ", bidder")))
    assert [one.estimated for one in by_auction] == [False] * len(by_auction)
    assert by_auction[0].kept[-1] == ("group_by", "groups", 3600.0)
    assert all(one.estimated for one in by_both)
    assert by_both[0].kept[-1] == ("group_by", "groups", 36000.0)
    assert "it keeps about 39,600 rows" in str(by_both[0])


def test_a_query_that_needs_nothing_says_so() -> None:
    (one,) = found("SELECT auction, price FROM bid WHERE price > 3")
    assert (one.schemes, one.kept, one.waits) == ({}, (), "")
    assert "it needs no punctuations" in str(one)


def test_a_query_that_no_promise_mends_says_so() -> None:
    assert "No promises of one attribute each" in sets_in_words(found("SELECT count(*) AS n FROM bid"))


@pytest.mark.parametrize(
    ("rates", "what"),
    [
        ("bid", "cannot be read"),
        ("bid 3", "cannot be read"),
        ("bit 3/s", "there is no bit"),
        ("bid 3/x", "cannot be read"),
        ("bid.auction open soon", "is not a span of time"),
    ],
)
def test_a_pace_that_cannot_be_read_is_refused(rates: str, what: str) -> None:
    with pytest.raises(UsageError, match=what) as raised:
        rates_of(rates, plan(HIGHEST))
    if what == "cannot be read":
        written = (raised.value.hint or "").partition(": ")[0]
        assert rates_of(written, plan(HIGHEST)) == {"bid": Rate(500), "bid.auction": Rate(20, 600)}


def test_the_command_lists_them(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(AUCTIONS.format("", "") + HIGHEST)

    def explain(*words: str) -> str:
        result = CliRunner().invoke(app, ["explain", str(tmp_path / "q.sql"), *words])
        return result.output if result.exit_code == 0 else str(result.exception)

    text = explain("--promises", "--rates", "bid 10/s; bid.auction 1/s, open 10m")
    assert (
        "1. bid: schemes 'auction'\n  a result comes when auction closes, at most 10 min after its first tuple\n"
        in text
    )
    assert "  it keeps at most 600 rows: group_by groups 600\n  punctuations take about 190 kB an hour" in text
    assert json.loads(explain("--promises", "--format", "json"))[0]["schemes"] == {"bid": "auction"}
    assert "--rates needs --promises" in explain("--rates", "bid 1/s")
    assert "has no format svg" in explain("--promises", "--format", "svg")
