"""What operators of two inputs promise, from what their inputs promise (Tucker et al. 2007, §6.2)."""

from __future__ import annotations

import pytest

from xmlstream.operators.difference import Difference
from xmlstream.operators.intersect import Intersect
from xmlstream.operators.merge import Merge
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import format_schemes, parse_schemes

BIDS = Schema.parse("hour INT NOT NULL, sid STRING, min INT NOT NULL", "min 0..59")


@pytest.mark.parametrize(
    ("first", "second", "merged", "common", "rest"),
    [
        ("hour", "hour", "hour", "hour", "hour"),
        ("hour prefix", "hour", "hour", "hour prefix", "hour prefix"),
        ("hour", "sid", "hour, sid", "hour; sid", "hour"),
        ("hour; sid", "hour prefix", "hour; sid, hour prefix", "sid; hour prefix", "hour; sid"),
        ("hour, min 0..59 by 10", "hour, min 0..59 by 20", *["hour, min 0..59 by 10"] * 3),
        ("hour", "", "", "", ""),
        ("", "hour", "", "", ""),
    ],
)
def test_set_operators_promise(first: str, second: str, merged: str, common: str, rest: str) -> None:
    inputs = parse_schemes(first, BIDS), parse_schemes(second, BIDS)
    made = [operator(BIDS).schemes(*inputs) for operator in (Merge, Intersect, Difference)]
    assert list(map(format_schemes, made)) == [merged, common, rest]
