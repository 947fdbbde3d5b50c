from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme, Term, format_schemes, implied, parse_schemes

BIDS = Schema.parse(
    "auctionid INT, `bidder id` INT, hour INT, min INT, ts TIMESTAMP, price DECIMAL(5,2), temp DOUBLE,"
    "d DATE, l ARRAY<INT>, flag BOOLEAN",
    domains="hour 0..",
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("hour", "hour"),
        ("HOUR ;; ", "hour"),
        ("hour; auctionid,`bidder id`; ts prefix", "hour; auctionid, `bidder id`; ts prefix"),
        ("hour, min 0..59  BY 10", "hour, min 0..59 by 10"),
        ("price 0..9.99 by 0.5", "price 0.00..9.99 by 0.50"),
        ("d 2003-01-01..2003-12-31 by 7", "d 2003-01-01..2003-12-31 by 7"),
        ("hour; hour", "hour"),
        ("", ""),
    ],
)
def test_schemes_are_read_and_written(text: str, shown: str) -> None:
    schemes = parse_schemes(text, BIDS)
    assert format_schemes(schemes) == shown
    assert parse_schemes(shown, BIDS) == schemes


@given(
    st.lists(
        st.lists(st.sampled_from(["auctionid", "ts prefix", "min 0..59 by 7", "`bidder id`"]), min_size=1, unique=True)
    )
)
def test_format_and_parse_are_inverse(drawn: list[list[str]]) -> None:
    schemes = parse_schemes(";".join(map(",".join, drawn)), BIDS)
    assert parse_schemes(format_schemes(schemes), BIDS) == schemes


@pytest.mark.parametrize(
    "text",
    ["hours", "hour,", "hour, hour", "min 0..59", "min 0.. by 5", "min 0..59 by 0", "min 0..59 by -1", "min 0-59 by 5",
     "min 0..59 by x", "temp 0..9 by 1", "ts 2003-01-01..2004-01-01 by 1", "l", "hour suffix", "min 9..0 by 1"],
)  # fmt: skip
def test_what_is_no_scheme_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        implied(BIDS, parse_schemes(text, BIDS))


def test_tiles_imply_bounds_and_tiles_and_prefixes_not_null_and_no_nan() -> None:
    schema = implied(BIDS, parse_schemes("hour 5..20 by 5, min 0..59 by 10; ts prefix; temp prefix; auctionid", BIDS))
    assert schema["hour"].domain == Domain("INT", nullable=False, low=5, high=20)
    assert schema["min"].domain == Domain("INT", nullable=False, low=0, high=59)
    assert schema["ts"].domain == Domain("TIMESTAMP", nullable=False)
    assert schema["temp"].domain == Domain("DOUBLE", nullable=False, high=math.inf)
    assert schema["auctionid"] == BIDS["auctionid"]
    with pytest.raises(UsageError, match="outside the declared domain"):
        implied(BIDS, parse_schemes("hour -9..-1 by 3", BIDS))


def test_a_scheme_in_new_names_loses_only_what_tiles_complete() -> None:
    tiled = Scheme((Term("hour"), Term("min", "tiles", 0, 59, 10)))
    assert str(tiled.renamed({"hour": "h", "min": "m"})) == "h, m 0..59 by 10"
    assert str(tiled.renamed({"hour": "h"})) == "h"
    assert tiled.renamed({"min": "m"}) is None
    assert tiled.attributes == ("hour", "min")
