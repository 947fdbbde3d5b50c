"""What an auction house says of its streams is true, complete, and what was asked for."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise, product
from pathlib import Path

import pytest

from sources.generators.auctions import generator
from sources.generators.auctions.house import SCHEMES, House
from sources.generators.auctions.streams import Form, documents
from sources.xml.grammar.check import check_grammar
from sources.xml.options.source import SourceOptions
from tests.samples.auction_items import BRISK, START, Item, said, streams, tuples


def violation(made: list[Item]) -> Item | None:
    """The first tuple that comes after a punctuation that matches it, by looking."""
    closed: dict[str, set[str]] = {}
    over = START
    for item in made:
        if item.is_punctuation:
            ((name, text),) = item.leaves.items()
            if name == "dateTime":
                assert text.startswith("(,")
                assert text.endswith(")")
                over = max(over, datetime.fromisoformat(text[2:-1]))
            else:
                closed.setdefault(name, set()).add(text)
        elif item["dateTime"] < over or any(item.leaves[name] in values for name, values in closed.items()):
            return item
    return None


HOUSES = [
    House(seed=seed, schemes=schemes, bid_streams=bids, out_of_order=late, pace=pace, **BRISK)
    for seed, (schemes, (bids, late, pace)) in enumerate(
        product([*SCHEMES, "dateTime", "all", "none"], [(1, 0, 10), (2, 7.3, 10), (1, 0.004, 5000), (3, 0, 4000)])
    )
]


@pytest.mark.parametrize("house", HOUSES, ids=lambda house: f"{house.seed}, {house.schemes}")
def test_no_tuple_comes_after_a_punctuation_that_matches_it(tmp_path: Path, house: House) -> None:
    for items in streams(tmp_path, 3000, house).values():
        assert violation(items) is None


@pytest.mark.parametrize("form", ["flat", "nested"])
@pytest.mark.parametrize("late", [0, 4.5])
def test_the_grammar_check_finds_no_violation(tmp_path: Path, form: Form, late: float) -> None:
    house = House(seed=7, form=form, out_of_order=late, bid_streams=2, **BRISK)
    generator.write_auctions(tmp_path, 4000, house)
    for name, stream in documents(2):
        options = stream.options(form, tmp_path / f"{name}.xml", house.promised(stream.name))
        assert check_grammar(SourceOptions.parse(options, stream.schema)).violation is None


@pytest.mark.parametrize("late", [0, 6.5])
def test_all_that_is_over_is_said(tmp_path: Path, late: float) -> None:
    events, house = 5000, House(seed=8, out_of_order=late, bid_streams=2, **BRISK)
    made = streams(tmp_path, events, house)
    end = START + timedelta(milliseconds=(events - 1) * 100)
    expired = sorted((lot["expires"], lot.leaves["id"]) for lot in tuples(made["auction"]) if lot["expires"] <= end)
    people = sorted(item.leaves["id"] for item in tuples(made["person"]))
    assert len(expired) > 200
    for name in ("bid1", "bid2"):
        assert [*map(int, said(made[name], "auction"))] == [int(number) for _, number in expired]
        # Who is one of the last 25 people is active; the others have retired before the last came.
        assert said(made[name], "bidder") == people[:-25]
    assert said(made["auction"], "seller") == people[:-25]
    beats = [f"(,{START + timedelta(seconds=20 * beat):%Y-%m-%dT%H:%M:%S}.000Z)" for beat in range(1, 25)]
    assert all(said(items, "dateTime") == beats for items in made.values())
    for name in ("person", "auction"):
        for before, item in pairwise(made[name]):
            if not before.is_punctuation:
                assert item == Item(is_punctuation=True, leaves={"id": before.leaves["id"]})


def test_an_auction_is_said_to_be_closed_as_soon_as_it_has_expired(tmp_path: Path) -> None:
    made = streams(tmp_path, 5000, House(seed=15, schemes="bid.auction", **BRISK))
    expires = {lot.leaves["id"]: lot["expires"] for lot in tuples(made["auction"])}
    seen = START
    for before, item in pairwise(made["bid"]):
        if item.is_punctuation:
            assert seen < expires[item.leaves["auction"]]
        else:
            if before.is_punctuation:
                assert item["dateTime"] >= expires[before.leaves["auction"]]
            seen = item["dateTime"]


@pytest.mark.parametrize(
    ("schemes", "asked"),
    [(name, {name}) for name in SCHEMES]
    + [
        ("none", set()),
        ("all", set(SCHEMES)),
        ("dateTime", {"person.dateTime", "auction.dateTime", "bid.dateTime"}),
        ("person.id; auction.id, bid.auction", {"person.id", "auction.id", "bid.auction"}),
    ],
)
def test_what_is_asked_for_is_said_and_promised_and_nothing_else(tmp_path: Path, schemes: str, asked: set[str]) -> None:
    house = House(schemes=schemes, **BRISK)
    made = streams(tmp_path, 4000, house)
    found = {
        f"{stream}.{name}"
        for stream, items in made.items()
        for item in items
        if item.is_punctuation
        for name in item.leaves
    }
    assert found == asked
    promised = {f"{stream}.{term.split()[0]}" for stream in made for term in house.promised(stream).split("; ") if term}
    assert promised == asked
