"""What an auction house says of its streams is true, complete, and what was asked for."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from itertools import pairwise, product
from pathlib import Path

import pytest

from tests.samples.auction_items import BRISK, START, Item, said, streams, tuples
from xmlstream.punct_ns.errors import UsageError
from xmlstream.sources.generators import auction_documents
from xmlstream.sources.generators.auction_house import SCHEMES, Form, House, documents
from xmlstream.sources.xml.grammar.check import check_grammar
from xmlstream.sources.xml.options.source import SourceOptions


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
    auction_documents.write_auctions(tmp_path, 4000, house)
    for name, stream in documents(2):
        options = stream.options(form, tmp_path / f"{name}.xml", house.promised(stream.name))
        assert check_grammar(SourceOptions.parse(options, stream.schema)).violation is None


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", ["flat", "nested"])
@pytest.mark.parametrize("late", [0, 4.5])
def test_ids_are_used_again_once_what_is_said_of_them_has_ended(tmp_path: Path, form: Form, late: float) -> None:
    houses = [House(seed=7, form=form, out_of_order=late, lifespan=lasts, **BRISK) for lasts in ("", "PT20S")]
    for house in houses:
        auction_documents.write_auctions(tmp_path / house.lifespan, 12_000, house)
    for name, stream in documents(1):
        options = stream.options(form, tmp_path / "PT20S" / f"{name}.xml", houses[1].promised(stream.name))
        assert check_grammar(SourceOptions.parse(options, stream.schema)).violation is None
        # As if nothing was ever used again, the grammar is broken: what ends matters.
        text = (tmp_path / "PT20S" / f"{name}.xml").read_text()
        (tmp_path / f"{name}.xml").write_text(re.sub(r' punct:lifespan="[^"]*"', "", text))
        options = stream.options(form, tmp_path / f"{name}.xml", houses[1].promised(stream.name))
        assert check_grammar(SourceOptions.parse(options, stream.schema)).violation is not None


def test_but_for_their_ids_reused_lives_are_those_of_a_house_without_lifespans(tmp_path: Path) -> None:
    apart = streams(tmp_path / "apart", 12_000, House(seed=9, **BRISK))
    again = streams(tmp_path / "again", 12_000, House(seed=9, lifespan="PT30S", **BRISK))
    for name in apart:
        assert len(apart[name]) == len(again[name])
        references = ("id", "auction", "bidder", "seller")
        for before, item in zip(apart[name], again[name], strict=True):
            assert before.leaves.keys() == item.leaves.keys()
            assert all(item.leaves[leaf] == text for leaf, text in before.leaves.items() if leaf not in references)
    lots = [item["id"] for item in tuples(again["auction"])]
    assert len(lots) > 5 * len(set(lots))
    # The next life of an id begins when the last one is over, and so long after it.
    lots_apart = [lot["id"] for lot in tuples(apart["auction"])]
    names = dict(zip(lots_apart, lots, strict=True))
    assert all(item["auction"] == names[b["auction"]] for b, item in zip(*map(bids, (apart, again)), strict=True))
    over: dict[int, datetime] = {}
    for lot in tuples(again["auction"]):
        assert lot["id"] not in over or lot["dateTime"] > over[lot["id"]] + timedelta(seconds=30)
        over[lot["id"]] = lot["expires"]


def bids(made: dict[str, list[Item]]) -> list[Item]:
    return tuples(made["bid"])


@pytest.mark.parametrize(
    ("lifespan", "schemes", "words"),
    [
        ("soon", "all", "not a valid duration"),
        ("PT0S", "all", "a lifespan of PT0S"),
        ("P100Y", "all", "a lifespan of P100Y"),
        ("PT1H", "bid.auction; auction.dateTime", "without heartbeats of bid"),
        ("PT1H", "auction.id, bid.dateTime", "without heartbeats of auction"),
    ],
)
def test_a_lifespan_that_cannot_be_said_is_refused(lifespan: str, schemes: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        House(lifespan=lifespan, schemes=schemes)


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
