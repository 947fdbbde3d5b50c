"""The figures of the papers, each with the verdict that it is there for."""

from __future__ import annotations

import pytest

from tests.harness.verdict_words import does_benefit
from xmlstream.operators.join import Join
from xmlstream.operators.multiway_join import MultiwayJoin
from xmlstream.plan.nodes import Node
from xmlstream.safety.verdicts import judged
from xmlstream.sql.script import read
from xmlstream.sql.tables.declaration import scan

S1, S2, S3 = "a1 INT, b1 INT", "b2 INT, c2 INT", "c3 INT, a3 INT"
B, C, A = ((0, "b1"), (1, "b2")), ((1, "c2"), (2, "c3")), ((2, "a3"), (0, "a1"))


def streams(*schemes: str) -> tuple[Node, ...]:
    """S₁, S₂ and S₃ with their schemes."""
    columns = zip((S1, S2, S3), schemes, strict=True)
    return tuple(
        scan(f"s{i}", {"path": "in", "rowTag": "r", "schemes": said}, ddl) for i, (ddl, said) in enumerate(columns, 1)
    )


def forgotten(root: Node) -> list[bool]:
    """Of each log that a plan keeps, whether its tuples are forgotten; operators below come first."""
    return [kept.until.when < 3 for one in judged(root, follow=True).operators for kept in one.keeps]


def joined(*schemes: str, cyclic: bool) -> list[bool]:
    """Of S₁, S₂ and S₃, whether their tuples are purged by one join of all three."""
    return forgotten(Node(MultiwayJoin(3, (B, C, A) if cyclic else (B, C)), streams(*schemes), "join"))


AUCTION = """
CREATE TABLE item (itemid INT, sellerid INT, name STRING, initialprice INT)
USING punctuated_xml OPTIONS (path 'item.xml', rowTag 'item', schemes '{items}');
CREATE TABLE bid (bidderid INT, itemid INT, increase INT)
USING punctuated_xml OPTIONS (path 'bid.xml', rowTag 'bid', schemes '{bids}');
SELECT item.itemid, sum(increase) AS rise FROM item JOIN bid ON item.itemid = bid.itemid GROUP BY item.itemid;
"""


@pytest.mark.parametrize(
    ("items", "bids", "safe"),
    [("itemid", "itemid", True), ("itemid", "bidderid", False), ("", "itemid", False), ("itemid", "", False)],
)
def test_li_2006_figure_1_how_much_each_items_price_rises(items: str, bids: str, safe: bool) -> None:
    verdict = judged(read(AUCTION.format(items=items, bids=bids)).sketch(), follow=True)
    assert verdict.is_safe == safe


def test_li_2006_figures_3_and_4_a_chain_leads_to_streams_that_are_not_joined_with_the_tuple() -> None:
    """S₁ needs S₂ on B, then S₃ on C; and the other way around."""
    assert joined("", "b2", "c3", cyclic=False) == [True, False, False]
    assert joined("b1", "c2", "", cyclic=False) == [False, False, True]
    assert joined("b1", "b2; c2", "c3", cyclic=False) == [True, True, True]
    assert joined("", "b2", "", cyclic=False) == [False, False, False]


def test_li_2006_figure_5_a_strongly_connected_graph_is_purged_by_one_join() -> None:
    assert joined("b1", "c2", "a3", cyclic=True) == [True, True, True]


def test_li_2006_figure_6_what_cannot_reach_all_others_stays() -> None:
    """Theorem 1: each of the three edges of Fig. 5 is needed, but by the stream that ends in it."""
    assert joined("", "c2", "a3", cyclic=True) == [True, False, False]
    assert joined("b1", "", "a3", cyclic=True) == [False, True, False]
    assert joined("b1", "c2", "", cyclic=True) == [False, False, True]


@pytest.mark.parametrize("first", [0, 1, 2])
def test_li_2006_figure_7_no_tree_of_binary_joins_is_safe_there(first: int) -> None:
    """Whichever two are joined first, one of them waits for the other in vain."""
    sources = streams("b1", "c2", "a3")
    equal = [("b1", "b2"), ("c2", "c3"), ("a3", "a1")][first:] + [("b1", "b2"), ("c2", "c3"), ("a3", "a1")][:first]
    one, other, last = (sources[(first + i) % 3] for i in range(3))
    lower = Node(Join("inner", equal[0][:1], equal[0][1:]), (one, other), "join")
    upper = Join("inner", (equal[1][0], equal[2][1]), (equal[1][1], equal[2][0]))
    assert not judged(Node(upper, (lower, last), "join"), follow=True).is_safe
    assert forgotten(lower) in ([True, False], [False, True])


def test_li_2006_figures_8_and_9_a_scheme_of_two_attributes_is_one_generalized_edge() -> None:
    """Differs: §4.2 says that S₃ is purgeable by Theorem 1, but S₁ and S₂ punctuate nothing there that S₃ knows."""
    assert joined("b1", "b2", "c3, a3", cyclic=True) == [True, True, False]
    assert joined("b1", "b2; c2", "c3, a3", cyclic=True) == [True, True, True]


BIDS = """
CREATE TABLE bid (auctionid INT, bidderid INT, value DOUBLE, minute INT, wid INT)
USING punctuated_xml OPTIONS (path 'bid.xml', rowTag 'bid', schemes '{bids}');
CREATE TABLE auction (id INT, itemname STRING, expires INT)
USING punctuated_xml OPTIONS (path 'auction.xml', rowTag 'auction', schemes '{auctions}');
"""
QUERY_1 = (
    "SELECT hour, count(*) AS n FROM (SELECT value, minute DIV 60 AS hour FROM bid) WHERE value > 250 GROUP BY hour;"
)
SLIDING = """SELECT half, count(*) AS n FROM (SELECT value, minute DIV 30 AS half FROM bid
UNION ALL SELECT value, (minute + 30) DIV 30 AS half FROM bid) WHERE value > 250 GROUP BY half;"""
BY_WINDOW_ID = "SELECT wid, count(*) AS n FROM bid WHERE value > 250 GROUP BY wid;"
QUERY_2 = """SELECT a.id, a.itemname, b.close FROM auction a
JOIN (SELECT auctionid, max(value) AS close FROM bid GROUP BY auctionid) b ON a.id = b.auctionid;"""


@pytest.mark.parametrize(
    ("promised", "bids", "auctions"),
    [
        ("ordered data, §8.1", "minute prefix", "expires prefix"),
        ("heartbeats, §8.3", "minute prefix", "expires prefix"),
        ("windows by their ids, §8.2", "wid", "expires"),
    ],
)
def test_tucker_2007_section_8_query_1_benefits_from_what_speaks_of_time_and_query_2_does_not(
    promised: str, bids: str, auctions: str
) -> None:
    def benefits(query: str) -> bool:
        return does_benefit(judged(read(BIDS.format(bids=bids, auctions=auctions) + query).sketch(), follow=True))

    of_time = [QUERY_1, SLIDING] if bids == "minute prefix" else [BY_WINDOW_ID]
    assert all(map(benefits, of_time)), promised
    assert not benefits(QUERY_2), promised


def test_tucker_2007_section_8_query_2_waits_for_auctions() -> None:
    sketch = read(BIDS.format(bids="auctionid; minute prefix", auctions="id; expires prefix") + QUERY_2).sketch()
    assert does_benefit(judged(sketch, follow=True))
