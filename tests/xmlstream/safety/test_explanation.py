"""What `xmlstream explain` says."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from xmlstream.cli.commands import app

BIDS = """
CREATE TABLE bid (auction INT, bidder INT, price INT)
USING punctuated_xml OPTIONS (path 'bid.xml', rowTag 'bid', schemes '{schemes}');
SELECT auction, count(*) AS prices FROM (SELECT DISTINCT * FROM bid) GROUP BY auction;
"""


def explain(schemes: str, *options: str) -> str:
    done = CliRunner().invoke(
        app, ["explain", "-", *options], input=BIDS.format(schemes=schemes), catch_exceptions=False
    )
    assert done.exit_code == 0
    return done.output


def test_each_operator_says_what_it_promises_when_it_answers_and_what_it_keeps() -> None:
    assert (
        explain("auction", "--follow")
        == """\
group_by: (auction) count(*) AS prices
  promises auction
  answers when auction closes
  keeps groups until auction closes
    distinct: auction, bidder, price
      promises auction
      answers at once
      keeps tuples until auction closes
        bid: bid.xml (auction, bidder, price)
          promises auction

It answers when groups close, and what it keeps is bounded.
"""
    )


SELECTED = BIDS.replace("FROM (SELECT DISTINCT * FROM bid)", "FROM bid WHERE bidder < 5")


def test_it_is_the_plan_that_runs_unless_asked_for_what_was_written() -> None:
    """Bidders from 5 on are excluded: what runs says so, and waits for the others alone."""
    query = SELECTED.format(schemes="bidder prefix")
    told = [
        CliRunner().invoke(app, ["explain", "-", "--follow", *options], input=query).output
        for options in ([], ["--as-written"])
    ]
    assert "answers when its input closes" in told[0]
    assert "never answers, since nothing closes auction" in told[1]


LOANS = """
CREATE TABLE loan (reader INT, since TIMESTAMP, until TIMESTAMP) USING punctuated_xml
OPTIONS (path 'loan.xml', rowTag 'loan', schemes 'since prefix');
CREATE TABLE visit (visitor INT, came TIMESTAMP, room INT) USING punctuated_xml
OPTIONS (path 'visit.xml', rowTag 'visit', schemes '{visits}');
SELECT * FROM loan JOIN visit ON reader = visitor AND came BETWEEN since - INTERVAL 5 MINUTES AND until;
"""


@pytest.mark.parametrize(
    ("visits", "keeps", "end"),
    [
        ("came prefix", "until came of visit closes", "It answers at once, and what it keeps is bounded."),
        (
            "",
            "for ever, since nothing closes visitor, came of visit",
            "join keeps tuples of the left side for ever, since nothing closes visitor, came of visit.\n"
            "If visit can say of each visitor when its last tuple has come, declare schemes 'visitor' in the options of"
            " visit.\n"
            "Or if visit can say up to which visitor all tuples have come, declare schemes 'visitor prefix' in the"
            " options of visit.\n"
            "Or if visit can say up to which came all tuples have come, declare schemes 'came prefix' in the options of"
            " visit.\n"
            "Or declare punctuate 'order of came' on visit, if tuples come in that order.",
        ),
    ],
)
def test_a_join_within_ends_is_told_to_be_bounded_by_time_alone(visits: str, keeps: str, end: str) -> None:
    text = LOANS.format(visits=visits)
    done = CliRunner().invoke(app, ["explain", "-", "--follow"], input=text, catch_exceptions=False)
    assert f"keeps tuples of the left side {keeps}" in done.output
    assert "keeps tuples of the right side until since of loan closes" in done.output
    assert done.output.strip().endswith(end)


def test_what_is_wrong_is_said_with_what_would_mend_it() -> None:
    assert (
        explain("bidder", "--follow").partition("\n\n")[2] == "group_by never answers, since nothing closes auction.\n"
        "group_by keeps groups for ever, since nothing closes auction.\n"
        "If bid can say of each auction when its last tuple has come, declare schemes 'bidder; auction' in the options"
        " of bid.\n"
        "Or if bid can say up to which auction all tuples have come, declare schemes 'bidder; auction prefix' in the"
        " options of bid.\n"
        "Or declare punctuate 'order of auction' on bid, if tuples come in that order.\n"
    )


def test_the_end_of_an_input_closes_what_nothing_else_does() -> None:
    told = explain("bidder")
    assert "answers at the end of its input" in told
    assert "promises bidder, and ends" in told
    assert told.endswith(
        "It answers at the end of its input, and what it keeps is bounded.\n"
        "With --keep-open its input does not end: group_by never answers, since nothing closes auction, and 1 more.\n"
        "Add --follow to see which promises mend that.\n"
    )


ROWS = "CREATE TABLE s (id INT, ts INT) USING punctuated_xml OPTIONS (path 'in', rowTag 'r'); SELECT * FROM s QUALIFY "


@pytest.mark.parametrize(
    ("rank", "advised"),
    [
        ("OVER (PARTITION BY id ORDER BY ts) = 1", True),
        ("OVER (PARTITION BY id ORDER BY ts) <= 2", False),
        ("OVER (ORDER BY ts) = 1", False),
    ],
)
def test_who_wants_the_first_of_each_key_learns_of_arrival(rank: str, advised: bool) -> None:
    told = CliRunner().invoke(app, ["explain", "-"], input=f"{ROWS} row_number() {rank}").output
    assert "With --keep-open its input does not end: top_n never answers, since nothing closes" in told
    line = "If you want the first row of each key as it comes, write ORDER BY arrival within OVER (…), in Python"
    assert (line in told) is advised


@pytest.mark.parametrize(("schemes", "safe"), [("auction", True), ("", False)])
def test_the_same_as_json(schemes: str, safe: bool) -> None:
    told = json.loads(explain(schemes, "--follow", "--format", "json"))
    assert (told["enabled"], told["safe"]) == (safe, safe)
    assert [one["name"] for one in told["operators"]] == ["bid", "distinct", "group_by"]
    (group_by,) = [one for one in told["operators"] if one["name"] == "group_by"]
    assert group_by["answers"]["groupings"] == [{"of": "distinct", "attributes": ["auction"]}]
    assert group_by["keeps"][0]["bounded"] == safe
    assert (told["remedies"] == []) == safe


@pytest.mark.parametrize(
    ("schemes", "idle"),
    [
        ("auction", []),
        ("auction; bidder", ["bidder"]),
        ("auction; auction prefix", ["auction"]),
        ("bidder; price", ["price"]),
    ],
)
def test_promises_by_which_nothing_answers_sooner_nor_is_forgotten_sooner_are_told(
    schemes: str, idle: list[str]
) -> None:
    told = json.loads(explain(schemes, "--follow", "--format", "json"))
    assert told["idle"] == [{"source": "bid", "scheme": scheme} for scheme in idle]
    said = " and ".join(f"'{scheme}'" for scheme in idle)
    assert explain(schemes, "--follow").endswith(f"It does not need these promises: {said} of bid.\n") == bool(idle)
