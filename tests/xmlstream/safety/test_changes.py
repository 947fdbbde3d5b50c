"""What is proposed mends: each remedy and each change, tried on the plan, and nothing less of it does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node
from xmlstream.safety.changes import Ordered, changes
from xmlstream.safety.remedies import remedies
from xmlstream.safety.verdicts import judged
from xmlstream.sql.script import read

DATA = Path(__file__).parents[3] / "data"
SCHEMES = re.compile(r"schemes '([^']*)'")


def is_mended(root: Node, said: dict[str, list[object]] | None = None) -> bool:
    verdict = judged(root, follow=True, additions=said)  # type: ignore[arg-type]
    return verdict.is_enabled and verdict.is_safe


def refused(text: str) -> Iterator[tuple[str, Node]]:
    """The query as it is, without each of its schemes, and without any; where it is refused then."""
    found = list(SCHEMES.finditer(text))
    without = [(None, text), ("any", SCHEMES.sub("schemes ''", text))]
    for match in found:
        parts = [part.strip() for part in match[1].split(";")]
        for part in parts:
            left = "; ".join(other for other in parts if other != part)
            without.append((f"{part} at {match.start()}", f"{text[: match.start(1)]}{left}{text[match.end(1) :]}"))
    for told, changed in without:
        root = optimized(read(changed, dict.fromkeys(re.findall(r"\$\{(\w+)\}", changed), "x")).sketch())
        if not is_mended(root):
            yield str(told), root


@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", sorted((DATA / "auctions").glob("*.sql")), ids=lambda path: path.stem)
def test_each_remedy_and_each_change_mends_what_is_refused_and_nothing_less_of_it_does(path: Path) -> None:
    for told, root in refused(path.read_text(encoding="utf-8")):
        for remedy in remedies(root, follow=True):
            assert is_mended(root, {name: [scheme] for name, scheme in remedy.promises}), (told, str(remedy))
            for some in combinations(remedy.promises, len(remedy.promises) - 1):
                assert not is_mended(root, {name: [scheme] for name, scheme in some}), (told, str(remedy))
        for change in changes(root, follow=True):
            assert is_mended(change.applied(root)), (told, str(change))
            if isinstance(change, Ordered):
                for fewer in combinations(change.rules, len(change.rules) - 1):
                    assert not is_mended(Ordered(fewer).applied(root)), (told, str(change))


TABLES = """
CREATE TABLE bid (auction INT, bidder INT, price INT, dateTime TIMESTAMP)
USING punctuated_xml OPTIONS (path 'bid.xml', rowTag 'bid', schemes '{bids}');
CREATE TABLE auction (id INT, seller INT, expires TIMESTAMP)
USING punctuated_xml OPTIONS (path 'auction.xml', rowTag 'auction', schemes '{auctions}');
"""


@pytest.mark.parametrize(
    ("query", "bids", "auctions", "expected"),
    [
        ("SELECT auction, max(price) AS top FROM bid GROUP BY auction", "auction", "", []),
        (
            "SELECT count(*) AS n FROM bid",
            "dateTime prefix",
            "",
            ["also group by a window: GROUP BY …, window(bid.dateTime, '1 hour')"],
        ),
        (
            "SELECT auction, max(price) AS top FROM bid GROUP BY auction",
            "dateTime prefix",
            "",
            [
                "declare punctuate 'order of auction' on bid, if tuples come in that order",
                "also group by a window: GROUP BY …, window(bid.dateTime, '1 hour')",
            ],
        ),
        (
            "SELECT id, price FROM auction JOIN bid ON id = auction",
            "dateTime prefix",
            "expires prefix",
            [
                "declare punctuate 'order of id' on auction and punctuate 'order of auction' on bid,"
                " if tuples come in that order",
                "bound the join in time: … AND bid.dateTime BETWEEN auction.expires"
                " AND auction.expires + INTERVAL '1' HOUR",
            ],
        ),
        (
            "SELECT a.price FROM bid a LEFT ANTI JOIN bid b ON a.auction = b.auction",
            "dateTime prefix",
            "",
            [
                "declare punctuate 'order of auction' on bid, if tuples come in that order",
                "bound the join in time, with left and right for the aliases of its inputs: …"
                " AND right.dateTime BETWEEN left.dateTime AND left.dateTime + INTERVAL '1' HOUR",
            ],
        ),
    ],
)
def test_rules_windows_and_bounds_are_proposed_where_they_mend(
    query: str, bids: str, auctions: str, expected: list[str]
) -> None:
    root = optimized(read(TABLES.format(bids=bids, auctions=auctions) + query).sketch())
    assert [str(change) for change in changes(root, follow=True)] == expected
