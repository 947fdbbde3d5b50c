"""The papers' queries under the papers' schemes, and the queries of the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.harness.verdict_words import does_benefit
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node
from xmlstream.punct_ns.scheme import Scheme, Term, format_schemes
from xmlstream.safety.changes import changes
from xmlstream.safety.remedies import remedies
from xmlstream.safety.verdicts import When, all_promises, judged
from xmlstream.safety.words import line, troubles
from xmlstream.sql.script import read

DATA = Path(__file__).parents[3] / "data"

TABLES = """
CREATE TABLE bid1 (auctionid INT, bidderid INT, value DOUBLE, hour INT, minute INT)
USING punctuated_xml OPTIONS (path 'bid1.xml', rowTag 'bid', schemes '{bids}', domains '{domains}');
CREATE TABLE bid2 (auctionid INT, bidderid INT, value DOUBLE, hour INT, minute INT)
USING punctuated_xml OPTIONS (path 'bid2.xml', rowTag 'bid', schemes '{bids}', domains '{domains}');
CREATE TABLE auction (id INT, sellerid INT, itemname STRING, expires INT)
USING punctuated_xml OPTIONS (path 'auction.xml', rowTag 'auction', schemes '{auctions}');
"""
QUERY_1 = """SELECT hour, COUNT(*) AS n FROM (SELECT * FROM bid1 UNION SELECT * FROM bid2) WHERE value > 250
GROUP BY hour;"""
QUERY_2 = """SELECT a.id, a.itemname, b.close FROM auction a JOIN (SELECT auctionid, MAX(value) AS close
FROM (SELECT * FROM bid1 UNION SELECT * FROM bid2) GROUP BY auctionid) b ON a.id = b.auctionid;"""


def plan(query: str, bids: str = "", auctions: str = "", domains: str = "") -> Node:
    return read(TABLES.format(bids=bids, auctions=auctions, domains=domains) + query).sketch()


@pytest.mark.parametrize(
    ("bids", "domains", "benefits"),
    [
        ("hour", "", True),  # §6.1
        ("hour prefix", "", True),  # ordered data, §8.1; windows and heartbeats by the hour, §8.2, §8.3
        ("hour, minute 0..59 by 10", "minute 0..59", True),  # built up by describe, §7
        ("bidderid, hour", "", False),  # Fig. 3
        ("bidderid, hour", "bidderid 1..500", True),
        ("auctionid", "", False),
        ("minute", "minute 0..59", True),  # each of sixty minutes: then the stream has ended
        ("minute", "", False),
        ("", "", False),
    ],
)
def test_high_bids_of_each_hour(bids: str, domains: str, benefits: bool) -> None:
    """Tucker et al. 2007, Query 1."""
    verdict = judged(plan(QUERY_1, bids, domains=domains), follow=True)
    assert does_benefit(verdict) == benefits
    assert verdict.is_enabled == benefits


@pytest.mark.parametrize(
    ("bids", "auctions", "enabled", "safe"),
    [
        ("auctionid", "id", True, True),  # Fig. 5
        ("auctionid; hour prefix", "id; expires prefix", True, True),
        ("hour prefix", "id", False, False),  # ordered data and heartbeats cannot, §8.1 and §8.3
        ("auctionid", "", True, False),
        ("auctionid prefix", "id prefix", True, True),
        ("", "id", False, False),
    ],
)
def test_closing_prices(bids: str, auctions: str, enabled: bool, safe: bool) -> None:
    """Tucker et al. 2007, Query 2."""
    verdict = judged(plan(QUERY_2, bids, auctions), follow=True)
    assert (verdict.is_enabled, verdict.is_safe) == (enabled, safe)


def test_what_is_read_to_its_end_answers_then_at_the_latest() -> None:
    verdict = judged(plan(QUERY_1))
    assert verdict.answers is When.AT_THE_END
    assert does_benefit(verdict)
    assert judged(plan(QUERY_1, "hour")).answers is When.CLOSED


@pytest.mark.parametrize(
    ("query", "promised", "benefits"),
    [
        ("SELECT bidderid, count(*) AS n FROM bid1 WHERE hour < 5 GROUP BY bidderid", "hour prefix", True),
        ("SELECT bidderid, count(*) AS n FROM bid1 WHERE hour > 5 GROUP BY bidderid", "hour prefix", False),
        ("SELECT bidderid, count(*) AS n FROM bid1 WHERE hour < 5 GROUP BY bidderid", "hour", False),
        ("SELECT bidderid, count(*) AS n FROM bid1 WHERE hour BETWEEN 1 AND 5 GROUP BY bidderid", "hour", True),
        (
            "SELECT hour, max(value) AS m FROM bid1 WHERE bidderid IN (3, 7) GROUP BY hour",
            "bidderid, hour prefix",
            True,
        ),
        ("SELECT hour, max(value) AS m FROM bid1 WHERE bidderid <> 3 GROUP BY hour", "bidderid, hour prefix", False),
        (
            "SELECT bidderid, count(*) AS n FROM (SELECT * FROM bid1 WHERE hour < 5 UNION ALL SELECT * FROM bid2)"
            " GROUP BY bidderid",
            "hour prefix",
            False,
        ),
        (
            "SELECT bidderid, count(*) AS n FROM (SELECT * FROM bid1 WHERE hour < 5 UNION ALL SELECT * FROM bid2"
            " WHERE hour < 7) GROUP BY bidderid",
            "hour prefix",
            True,
        ),
    ],
)
def test_what_is_excluded_need_not_be_closed(query: str, promised: str, benefits: bool) -> None:
    """As written nothing says so, and groups wait for what never comes."""
    verdict = judged(optimized(plan(query + ";", promised)), follow=True)
    assert does_benefit(verdict) == verdict.is_enabled == benefits
    assert not judged(plan(query + ";", promised), follow=True).is_enabled


def test_tables_are_closed_at_once_and_keep_no_stream_waiting() -> None:
    table = "CREATE TABLE fee (item STRING, fee INT) USING csv OPTIONS (path 'fees.csv');"
    joined = read(TABLES.format(bids="", auctions="", domains="") + table + """
        SELECT auction.id, fee FROM auction JOIN fee ON itemname = item;""").sketch()  # fmt: skip
    verdict = judged(joined, follow=True)
    assert verdict.is_safe
    assert not verdict.is_cleansed, "the table stays"
    assert [kept.until.when for one in verdict.operators for kept in one.keeps] == [When.AT_ONCE, When.NEVER]


def test_finitely_many_values_are_kept_one_by_one() -> None:
    (verdict,) = [
        one
        for one in judged(plan("SELECT DISTINCT minute FROM bid1;", domains="minute 0..59"), follow=True).operators
        if one.keeps
    ]
    assert verdict.keeps[0].model.most == 61, "sixty minutes and null"
    assert verdict.is_safe
    assert not verdict.is_cleansed


OF_SENSORS = """
CREATE TABLE s (sid {type} NOT NULL, ts INT NOT NULL, v INT)
USING punctuated_xml OPTIONS (path 's.xml', rowTag 's', schemes '{schemes}', domains '{domains}');
"""


def of_sensors(query: str, schemes: str, domains: str = "", type_: str = "INT") -> Node:
    return optimized(read(OF_SENSORS.format(type=type_, schemes=schemes, domains=domains) + query).sketch())


@pytest.mark.parametrize(
    "function",
    ["row_number()", "rank()", "lag(v)", "lag(v, 3)", "sum(v)", "first_value(v)", "max(v)", "lead(v)"],
)
def test_rows_of_each_key_are_bounded_where_keys_close_or_are_a_list(function: str) -> None:
    query = f"SELECT sid, ts, {function} OVER (PARTITION BY sid ORDER BY ts) AS x FROM s"
    refused = judged(of_sensors(query, "ts prefix"), follow=True)
    assert not refused.is_safe
    assert "for ever, since nothing closes sid" in troubles(refused)[-1]
    assert refused.is_enabled == (function != "lead(v)"), "the last row of each sid waits for the next one"
    assert judged(of_sensors(query, "sid, ts prefix; sid"), follow=True).is_safe
    assert judged(of_sensors(query, "ts prefix", "sid 0..9"), follow=True).is_safe
    assert judged(of_sensors(query, "ts prefix", "sid {a, b}", "STRING"), follow=True).is_safe
    assert judged(of_sensors(query.replace("PARTITION BY sid", ""), "ts prefix"), follow=True).is_safe, "one group"
    mending = [str(change) for change in changes(of_sensors(query, "ts prefix"), follow=True)]
    assert any(one.startswith("list what sid can be in the options of s") for one in mending)


def test_an_outer_join_never_closes_the_nulls_that_stand_for_no_partner() -> None:
    query = "SELECT value, count(*) AS n FROM auction LEFT JOIN bid1 ON id = auctionid GROUP BY value;"
    assert not judged(plan(query, "auctionid; value", "id"), follow=True).is_enabled
    inner = query.replace("LEFT JOIN", "JOIN")
    assert judged(plan(inner, "auctionid; value", "id"), follow=True).is_enabled
    of_kept = "SELECT id, count(value) AS n FROM auction LEFT JOIN bid1 ON id = auctionid GROUP BY id;"
    assert does_benefit(judged(plan(of_kept, "auctionid", "id"), follow=True))


@pytest.mark.parametrize("kind", ["LEFT SEMI", "LEFT ANTI"])
def test_of_what_has_a_partner_or_none_both_sides_are_closed(kind: str) -> None:
    query = f"SELECT id FROM auction {kind} JOIN bid1 ON id = auctionid;"
    assert does_benefit(judged(plan(query, "auctionid", "id"), follow=True))
    assert judged(plan(query, "auctionid", ""), follow=True).is_enabled
    assert not judged(plan(query, "auctionid", ""), follow=True).is_safe
    assert judged(plan(query, "", "id"), follow=True).is_enabled == (kind == "LEFT SEMI")


@pytest.mark.parametrize(
    ("order", "schemes", "domains", "enabled"),
    [
        ("hour", "hour prefix", "", True),
        ("hour DESC", "hour prefix", "", False),
        ("hour", "hour", "", False),
        ("minute DESC", "minute 0..59 by 10", "", True),
        ("hour", "hour", "hour 0..", True),  # the sort of Tucker et al. 2003, §5.2
        ("hour DESC", "hour", "hour 0..", False),
        ("hour DESC", "hour", "hour ..23", True),
        ("hour", "hour, bidderid", "hour 0..", False),
        ("value", "value", "value 0..", False),  # there are fractions between any two
    ],
)
def test_what_is_sorted_waits_for_prefixes_of_the_order(order: str, schemes: str, domains: str, enabled: bool) -> None:
    window = f"sum(value) OVER (ORDER BY {order} ROWS 1 PRECEDING)"
    for query in (f"SELECT * FROM bid1 ORDER BY {order}", f"SELECT *, {window} FROM bid1"):
        verdict = judged(plan(query, schemes, domains=domains), follow=True)
        assert (verdict.is_enabled, verdict.is_safe) == (enabled, enabled)


def test_values_in_order_from_the_first_one_are_a_promise_of_prefixes() -> None:
    root = plan("SELECT * FROM bid1 ORDER BY hour", "hour", domains="hour 0..")
    assert format_schemes(all_promises(root, follow=True)[root].running) == "hour prefix"


NEEDED = {"person": "id", "auction": "seller", "bid": "bidder"}


def nexmark_23(without: str = "") -> Node:
    text = (DATA / "auctions" / "nexmark_q23.sql").read_text(encoding="utf-8")
    schemes = {"person": "id; dateTime prefix", "auction": "id; seller; dateTime prefix",
               "bid": "auction; bidder; dateTime prefix"}  # fmt: skip
    for source, said in schemes.items():
        left = "; ".join(part for part in said.split("; ") if f"{source}.{part}" != without)
        text = text.replace(f"schemes '{said}'", f"schemes '{left}'")
    return read(text, {"AUCTIONS": "auctions"}).sketch()


def test_people_who_sell_and_bid_need_a_scheme_on_the_key_of_each_stream() -> None:
    assert does_benefit(judged(nexmark_23(), follow=True))
    assert remedies(nexmark_23(), follow=True) == []


@pytest.mark.parametrize("source", NEEDED)
def test_the_scheme_that_is_missing_is_the_remedy(source: str) -> None:
    broken = nexmark_23(f"{source}.{NEEDED[source]}")
    assert not judged(broken, follow=True).is_safe
    found = remedies(broken, follow=True)
    assert found[0].promises == ((source, Scheme((Term(NEEDED[source]),))),)
    assert all({name for name, _ in remedy.promises} == {source} for remedy in found)


def test_a_remedy_of_streams_that_are_merged_is_said_of_both() -> None:
    first, *_ = remedies(plan(QUERY_1), follow=True)
    assert str(first) == (
        "if bid1 and bid2 can say of each hour when its last tuple has come,"
        " declare schemes 'hour' in the options of bid1 and bid2"
    )
    assert does_benefit(judged(plan(QUERY_1, "hour"), follow=True))


def test_a_remedy_is_named_that_only_the_user_can_tell_to_be_impossible() -> None:
    """Categories never end; if they did, NEXMark's fourth query would answer."""
    text = (DATA / "auctions" / "nexmark_q4.sql").read_text(encoding="utf-8")
    followed = read(text, {"AUCTIONS": "auctions"}).sketch()
    assert not judged(followed, follow=True).is_enabled
    assert [format_schemes(scheme for _, scheme in remedy.promises) for remedy in remedies(followed, follow=True)] == [
        "category",
        "category prefix",
    ]


def test_where_either_of_two_sources_helps_each_is_named() -> None:
    """What closes one key of both sides suffices, whichever it is."""
    table = "CREATE TABLE {0} (a INT, b INT) USING punctuated_xml OPTIONS (path '{0}.xml', rowTag 'r', schemes '{1}');"
    tables = f"{table.format('r', 'a')}\n{table.format('s', 'b')}\n"
    root = read(f"{tables}SELECT a, b, count(*) AS n FROM r FULL JOIN s USING (a, b) GROUP BY a, b").sketch()
    found = [(name, str(scheme)) for remedy in remedies(root, follow=True, most=4) for name, scheme in remedy.promises]
    assert found == [("r", "b"), ("s", "a"), ("r", "b prefix"), ("s", "a prefix")]


def test_where_no_promise_helps_none_is_named() -> None:
    counted = plan("SELECT count(*) AS n FROM bid1;")
    assert not judged(counted, follow=True).is_enabled
    assert remedies(counted, follow=True) == []


AT_THE_END = {
    "nexmark_q4",
    "nexmark_q4_original",
    *(f"xmark_q{n}" for n in (5, 6, 7, 8, 9, 10, 11, 12, 19, 20)),
    "xmark",
}
"""Queries that answer at the end of their input, and not before: a whole is asked for, or an order."""


@pytest.mark.parametrize("path", sorted(DATA.rglob("*.sql")), ids=lambda path: path.stem)
def test_every_query_of_the_repository_answers_and_keeps_what_is_open_unless_it_asks_for_a_whole(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    root = read(text, dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "x")).sketch()
    to_the_end, followed = judged(root), judged(root, follow=True)
    assert to_the_end.is_enabled
    assert to_the_end.is_safe
    assert (to_the_end.answers is When.AT_THE_END) == (path.stem in AT_THE_END)
    assert followed.is_enabled == (path.stem not in AT_THE_END)


VERDICT = "-- Verdict, followed: "


@pytest.mark.parametrize("path", sorted((DATA / "auctions").glob("*.sql")), ids=lambda path: path.stem)
def test_every_query_of_the_auctions_says_its_verdict(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    root = optimized(read(text, dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "x")).sketch())
    said = [one for one in text.splitlines() if one.startswith(VERDICT)]
    assert said == [VERDICT + line(judged(root, follow=True)) + "."]


@pytest.mark.parametrize(("form", "safe"), [("punctuated_xml", False), ("xml", True)])
def test_a_complete_document_is_declared_as_a_static_table(form: str, safe: bool) -> None:
    """What the page of sources says: a stream stays a stream, whatever its document looks like now."""
    root = read(
        "CREATE TABLE bid (item INT, price INT) USING punctuated_xml OPTIONS (path 'bids', rowTag 'bid');\n"
        f"CREATE TABLE item (id INT, name STRING) USING {form} OPTIONS (path 'items.xml', rowTag 'item');\n"
        "SELECT name, price FROM bid JOIN item ON bid.item = item.id;"
    ).sketch()
    verdict = judged(optimized(root), follow=True)
    assert (verdict.is_enabled, verdict.is_safe) == (True, safe)
