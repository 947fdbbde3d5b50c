"""An auction house as its streams show it, held to the definition of the NEXMark benchmark's generator."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from math import log10
from pathlib import Path
from typing import Any

import pytest

from tests.harness.clock import Clock
from tests.samples.auction_items import BRISK, START, Item, streams, tuples
from xmlstream.punct_ns.errors import UsageError
from xmlstream.sources.generators import auction_documents
from xmlstream.sources.generators.auction_house import House


@pytest.mark.parametrize("events", [0, 1, 4, 50, 1234])
def test_people_auctions_and_bids_come_as_1_3_46(tmp_path: Path, events: int) -> None:
    made = streams(tmp_path, events, House(seed=1))
    kinds = Counter(
        "person" if number % 50 == 0 else "auction" if number % 50 < 4 else "bid" for number in range(events)
    )
    assert {name: len(tuples(items)) for name, items in made.items()} == {
        name: kinds[name] for name in ("person", "auction", "bid")
    }
    for name in ("person", "auction"):
        ids = [item["id"] for item in tuples(made[name])]
        assert ids == list(range(1000, 1000 + len(ids)))


@pytest.mark.parametrize("pace", [1, 7, 10, 30_000])
def test_events_happen_at_equal_distances(tmp_path: Path, pace: int) -> None:
    made = streams(tmp_path, 600, House(pace=pace))
    moments = sorted(item["dateTime"] for items in made.values() for item in tuples(items))
    assert moments == [START + timedelta(milliseconds=number * 1000 // pace) for number in range(600)]
    for items in made.values():
        seen = [item["dateTime"] for item in tuples(items)]
        assert seen == sorted(seen)


@pytest.mark.parametrize("house", [House(seed=2), House(seed=3, pace=20_000, **BRISK), House(in_flight=1, active=1)])
def test_every_reference_is_to_what_is_there_and_open(tmp_path: Path, house: House) -> None:
    made = streams(tmp_path, 25_000, house)
    people = {item["id"]: item for item in tuples(made["person"])}
    lots = {item["id"]: item for item in tuples(made["auction"])}
    for lot in lots.values():
        assert people[lot["seller"]]["dateTime"] <= lot["dateTime"] < lot["expires"]
        assert lot["reserve"] > lot["initialBid"]
    for bid in tuples(made["bid"]):
        lot = lots[bid["auction"]]
        assert lot["dateTime"] <= bid["dateTime"] < lot["expires"]
        assert people[bid["bidder"]]["dateTime"] <= bid["dateTime"]


def share(items: list[Item], fits: Any) -> float:
    return sum(1 for item in items if fits(item)) / len(items)


def test_what_is_hot_is_as_hot_as_in_nexmark(tmp_path: Path) -> None:
    made = streams(tmp_path, 50_000, House(seed=4))
    bids, lots, people = (tuples(made[name]) for name in ("bid", "auction", "person"))
    # Cold draws hit the hot one, too, one time in a hundred or less; and where all tries are closed.
    assert share(bids, lambda bid: bid["auction"] % 100 == 0) == pytest.approx(1 / 2, abs=0.02)
    assert share(bids, lambda bid: bid["bidder"] % 100 == 1) == pytest.approx(3 / 4, abs=0.02)
    assert share(lots, lambda lot: lot["seller"] % 100 == 0) == pytest.approx(3 / 4, abs=0.03)
    hot = ("Google", "Facebook", "Baidu", "Apple")
    assert share(bids, lambda bid: bid["channel"] in hot) == pytest.approx(1 / 2, abs=0.02)
    assert len({bid["channel"] for bid in bids if bid["channel"] not in hot}) > 8000
    assert {lot["category"] for lot in lots} == {10, 11, 12, 13, 14}
    assert {person["state"] for person in people} == {"AZ", "CA", "ID", "OR", "WA", "WY"}
    for price, items in (("price", bids), ("initialBid", lots)):
        logs = sorted(log10(item[price] / 100) for item in items)
        assert (logs[0], logs[len(logs) // 2], logs[-1]) == pytest.approx((0, 3, 6), abs=0.2)
    middle = START + timedelta(seconds=4000)
    assert 50 < sum(lot["dateTime"] <= middle < lot["expires"] for lot in lots) < 150


def test_urls_are_those_of_queries_21_and_22(tmp_path: Path) -> None:
    bids = tuples(streams(tmp_path, 10_000, House(seed=5))["bid"])
    for bid in bids:
        parts = bid["url"].split("/")
        assert parts[:3] == ["https:", "", "www.nexmark.com"]
        assert all(3 <= len(part) <= 4 and part.isalpha() for part in parts[3:6])
        assert parts[6].partition("&")[0] == "item.htm?query=1"
    others = [bid for bid in bids if bid["channel"].startswith("channel-")]
    assert share(others, lambda bid: "&channel_id=" in bid["url"]) == pytest.approx(0.9, abs=0.02)
    for bid in others:
        if "&channel_id=" in bid["url"]:
            # Java's Math.abs(Integer.reverse(number))
            bits = int(f"{int(bid['channel'].removeprefix('channel-')):032b}"[::-1], 2)
            assert int(bid["url"].partition("channel_id=")[2]) == abs(bits - (bits >> 31 << 32))
    assert not any("channel_id" in bid["url"] for bid in bids if not bid["channel"].startswith("channel-"))


def test_sizes_are_filled_up_to_those_of_nexmark(tmp_path: Path) -> None:
    made = streams(tmp_path, 10_000, House(seed=6))
    bids, lots = tuples(made["bid"]), tuples(made["auction"])
    assert sum(len(bid["extra"]) for bid in bids) / len(bids) == pytest.approx(100 - 32, abs=2)
    long = [len(lot["extra"] + lot["itemName"] + lot["description"]) + 48 for lot in lots]
    assert sum(long) / len(long) == pytest.approx(500, abs=10)


def lines(path: Path) -> list[bytes]:
    """The tuples of a document, one a line."""
    return [line for line in path.read_bytes().splitlines() if not line.startswith((b"<punct:", b"<?", b"</"))][1:]


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    house = House(seed=9, out_of_order=3, **BRISK)
    first = [path.read_bytes() for path in auction_documents.write_auctions(tmp_path / "a", 30_000, house)[:3]]
    assert [path.read_bytes() for path in auction_documents.write_auctions(tmp_path / "b", 30_000, house)[:3]] == first
    other = House(seed=10, out_of_order=3, **BRISK)
    assert all(
        path.read_bytes() != text
        for path, text in zip(auction_documents.write_auctions(tmp_path / "c", 30_000, other)[:3], first, strict=True)
    )


def test_fewer_events_are_the_beginning_of_more(tmp_path: Path) -> None:
    house = House(seed=11, bid_streams=2, **BRISK)
    more = [path.read_bytes() for path in auction_documents.write_auctions(tmp_path / "more", 50_000, house)[:4]]
    for events in (25_000, 20_000, 777):
        for path, text in zip(
            auction_documents.write_auctions(tmp_path / str(events), events, house)[:4], more, strict=True
        ):
            assert text.startswith(path.read_bytes().rpartition(b"</")[0])


def test_what_is_told_moves_no_tuple(tmp_path: Path) -> None:
    plain = auction_documents.write_auctions(tmp_path / "plain", 5000, House(seed=12, schemes="none", **BRISK))
    told = auction_documents.write_auctions(
        tmp_path / "told", 5000, House(seed=12, bid_streams=3, out_of_order=9, **BRISK)
    )
    person, auction, *bids = (lines(path) for path in told[:5])
    spread = sorted(line for bid in bids for line in bid)
    assert [sorted(person), sorted(auction), spread] == [sorted(lines(path)) for path in plain[:3]]
    assert all(len(bid) == pytest.approx(len(spread) / 3, rel=0.1) for bid in bids)


def test_a_tenth_of_the_tuples_is_late_and_none_by_more_than_was_said(tmp_path: Path) -> None:
    made = streams(tmp_path, 20_000, House(seed=13, schemes="none", out_of_order=30))
    for items in made.values():
        seen, late = START, list[float]()
        for item in tuples(items):
            late.append((seen - item["dateTime"]).total_seconds())
            seen = max(seen, item["dateTime"])
        behind = [seconds for seconds in late if seconds > 0]
        assert max(behind) <= 30
        assert len(behind) / len(late) == pytest.approx(0.1, abs=0.03)
    assert max(behind) > 29


def test_a_live_auction_keeps_its_rate_and_writes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(seed=14, out_of_order=2, **BRISK)
    clock = Clock()
    clock.governs_live(monkeypatch)
    live = auction_documents.write_auctions(tmp_path / "live", 600, house, rate=1000)
    # What is late at the end comes after the last event, by as much of its time: 2 seconds are 20 events.
    assert 0.6 < clock.now < 0.7
    at_once = auction_documents.write_auctions(tmp_path / "once", 600, house)
    assert [path.read_bytes() for path in live[:3]] == [path.read_bytes() for path in at_once[:3]]


def test_the_streams_of_a_live_auction_are_written_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[int]] = []
    clock = Clock()

    def look(seconds: float) -> None:
        written = [(tmp_path / f"{name}.xml").read_bytes() for name in ("person", "auction", "bid")]
        seen.append(
            [text.count(f"<{name}>".encode()) for name, text in zip(("person", "auction", "bid"), written, strict=True)]
        )
        clock.now += seconds

    monkeypatch.setattr(clock, "sleep", look)
    clock.governs_live(monkeypatch)
    auction_documents.write_auctions(tmp_path, 1000, House(schemes="none"), rate=2000)
    assert len(seen) >= 5
    for person, auction, bid in seen:
        number = person + auction + bid
        kinds = Counter("person" if n % 50 == 0 else "auction" if n % 50 < 4 else "bid" for n in range(number))
        assert (person, auction, bid) == (kinds["person"], kinds["auction"], kinds["bid"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"seed": -1}, {"bid_streams": 0}, {"out_of_order": -1}, {"pace": 0}, {"heartbeat": 0}, {"in_flight": 0},
        {"active": 0}, {"form": "round"}, {"schemes": "bid.price"}, {"schemes": "auction"}, {"schemes": ""},
    ],
)  # fmt: skip
def test_a_house_that_means_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        House(**wrong)


@pytest.mark.parametrize(("events", "rate"), [(-1, None), (1, 0.0)])
def test_numbers_that_mean_nothing_are_refused(tmp_path: Path, events: int, rate: float | None) -> None:
    with pytest.raises(UsageError):
        auction_documents.write_auctions(tmp_path, events, rate=rate)
