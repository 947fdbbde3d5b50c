"""Tucker et al. 2007, §7, and what SEMANTICS makes of it. Tuples flow through; so most of this needs no Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.running import Running
from tests.harness.saying import Saying
from tests.oracles import oracle
from tests.samples.strategies import SmallSchema, small_punctuations, small_schemas
from xmlstream.operators.describe import Describe
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme, format_schemes, parse_schemes

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

BIDS = Schema.parse(
    "auctionid INT, bidderid INT, price DOUBLE, hour INT, minute INT NOT NULL", "hour 0.., minute 0..59"
)
NULLABLE = Schema.parse("hour INT, minute INT", "minute 0..59")
HOURLY = Describe(("hour",), ("minute",), ("[0,59]",))


def test_only_what_has_wildcards_elsewhere_describes() -> None:
    """Definition (1) of §7.1, with the schemes of §7: hour, auctionid."""
    Saying(Describe(("hour",)), BIDS).shows(
        "<*, *, *, 1, *> <7, *, *, *, *> <*, *, *, 2, [0,9]> <*, *, *, [3,4], *>",
        out="<*, *, *, 1, *>                                     <*, *, *, [3,4], *>",
    )


def test_without_watching_nothing_is_built_up_and_nothing_is_held() -> None:
    describe = Saying(Describe(("hour",)), BIDS)
    describe.shows("<*, *, *, 1, [0,30]> | <*, *, *, 1, [31,59]>", out="|")
    assert describe.state.punctuations_held == 0


def test_the_hour_of_section_7_is_built_from_its_quarters() -> None:
    """§7: [0,15], [15,45] and [45,59] of hour 1 say that hour 1 is over, and Query 1 gets that punctuation."""
    Saying(HOURLY, BIDS).shows(
        "<*, *, *, 1, [0,15]> | <*, *, *, 1, [15,45]> | <*, *, *, 1, [45,59]>",
        out="                 |                       | <*, *, *, 1, *>      ",
    )  # fmt: skip


def test_the_hulls_of_ranges_cover_nothing() -> None:
    """Figure 8 would join [0,15] and [45,59] to [0,59]."""
    Saying(HOURLY, BIDS).shows(
        "<*, *, *, 1, [0,15]> <*, *, *, 1, [45,59]> | <*, *, *, 1, [16,44]>",
        out="                                       | <*, *, *, 1, *>      ",
    )  # fmt: skip


def test_the_key_is_what_is_said_of_the_described_attributes() -> None:
    """Figure 8 would put the minutes of hours 1 and 2 under one key, since all other attributes are wildcards."""
    Saying(HOURLY, BIDS).shows(
        "<*, *, *, 1, [0,30]> <*, *, *, 2, [31,59]> | <*, *, *, [1,3], [31,59]> | <*, *, *, {2,3}, [0,30]>",
        out="                                       | <*, *, *, 1, *>           | <*, *, *, [2,3], *>     ",
    )  # fmt: skip


def test_what_restricts_the_watched_attribute_alone_counts_for_every_key() -> None:
    Saying(HOURLY, BIDS).shows(
        "<*, *, *, *, [0,30]> | <*, *, *, 5, [31,59]>",
        out="                 | <*, *, *, 5, *>      ",
    )  # fmt: skip


def test_what_restricts_an_attribute_neither_described_nor_watched_is_dropped() -> None:
    describe = Saying(HOURLY, BIDS)
    describe.shows("<7, *, *, 1, [0,59]> <7, *, *, 1, *> <{7}, *, *, *, *>", out="")
    assert describe.state.punctuations_held == 0


def test_what_is_built_takes_the_place_of_its_parts_goes_out_and_is_forgotten() -> None:
    describe = Saying(HOURLY, BIDS)
    describe.shows(" ".join(f"<*, *, *, 1, [{low},{low + 9}]>" for low in range(0, 50, 10)), out="")
    describe.shows("<*, *, *, 1, [50,59]>", out="<*, *, *, 1, *>")
    assert not describe.state.punctuations("input").set


def test_what_waits_survives_a_restart() -> None:
    describe = Saying(HOURLY, BIDS)
    describe.shows("<*, *, *, 1, [0,30]>", out="")
    describe.restart()
    describe.shows("<*, *, *, 1, [31,59]>", out="<*, *, *, 1, *>")
    describe.restart()
    describe.shows("<*, *, *, {2,4}, [31,59]>", out="")


def test_several_attributes_are_watched_together() -> None:
    schema = Schema.parse("day INT, hour INT NOT NULL, min INT NOT NULL", "hour 0..23, min 0..59")
    Saying(Describe(("day",), ("hour", "min")), schema).shows(
        "<1, [0,11], *> <1, [12,23], [0,30]> | <1, [13,23], [31,59]> | <1, 12, {31}> <1, 12, [32,59]>",
        out="                                |                       | <1, *, *>                     ",
    )  # fmt: skip


def test_null_is_watched_too() -> None:
    Saying(Describe(("hour",), ("minute",)), NULLABLE).shows(
        "<{1,2}, [0,59]> | <2, null> | <null, null> <null, (,)>",
        out="            | <2, *>    | <null, *>              ",
    )  # fmt: skip


def test_the_end_of_the_stream_describes_everything() -> None:
    Saying(Describe(()), BIDS).shows("<*, *, *, *, *> <*, *, *, 1, *>", out="<*, *, *, *, *>")
    Saying(Describe((), ("minute",)), BIDS).shows("<*, *, *, *, [0,9]> <*, *, *, *, [10,59]>", out="<*, *, *, *, *>")


@pytest.mark.parametrize(
    ("describe", "schema"),
    [
        (HOURLY, NULLABLE),
        (HOURLY, Schema.parse("hour INT, minute INT NOT NULL")),
        (Describe(("hour",), ("minute",), ("[0,30]",)), BIDS),
    ],
)
def test_a_pattern_that_leaves_out_values_of_the_domain_is_refused(describe: Describe, schema: Schema) -> None:
    """Else a tuple with minute 60, or without any, could come after hour 1 is said to be over."""
    with pytest.raises(UsageError, match=r"(?s)does not cover the domain of minute.*domains 'minute"):
        describe.schema(schema)


def test_parameters_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(UsageError, match="Hour"):
        Describe(("hour",), ("Hour",))
    with pytest.raises(UsageError, match="2 patterns for 1"):
        Describe(("hour",), ("minute",), ("*", "*"))
    with pytest.raises(UsageError, match="no attribute"):
        Describe(("hours",)).schema(BIDS)


def test_schemes_are_those_that_describe_and_those_whose_tiles_are_watched() -> None:
    """Figure 7: the scheme of hours and tens of minutes becomes that of hours."""
    schemes = parse_schemes("hour, minute 0..59 by 10; hour; auctionid; hour, auctionid; minute 0..59 by 5", BIDS)
    *some, end = HOURLY.schemes(schemes)
    assert format_schemes(some) == "hour"
    assert end == Scheme(()), "all tiles of the minute are all tuples"
    assert format_schemes(Describe(("hour",)).schemes(schemes)) == "hour"
    assert format_schemes(Describe(("auctionid", "hour")).schemes(schemes)) == "hour; auctionid; hour, auctionid"
    assert Describe(("hour",), ("minute",)).schemes(parse_schemes("hour, minute 0..59 by 10", BIDS)) != ()
    assert Describe(("hour",)).schemes(parse_schemes("hour, minute 0..59 by 10", BIDS)) == ()


@given(st.data())
def test_what_is_described_is_what_those_in_question_cover_together(data: st.DataObject) -> None:
    space: SmallSchema = data.draw(small_schemas().filter(lambda space: len(space.smalls) > 1))
    described, watched = data.draw(st.permutations(space.schema.names))[:2]
    slices = data.draw(st.lists(st.lists(small_punctuations(space), max_size=4), max_size=4))
    describe = Saying(Describe((described,), (watched,)), space.schema)
    restart = data.draw(st.integers(0, 3))
    at, allowed = space.schema.index(described), {space.schema.index(name) for name in (described, watched)}
    in_question: list[Punctuation] = []
    source, told = PunctuationSet(space.schema), PunctuationSet(space.schema)
    for number, drawn in enumerate(slices):
        said = source.add_all(drawn)  # a source passes on what it has not said before
        in_question += [p for p in said if allowed.issuperset(p.restricted)]
        for p in describe.slice(said):
            assert told.add(p), "said before"
        if number == restart:
            describe.restart()
        for u in space.universe:
            alike = [t for t in space.universe if oracle.same(t[at], u[at])]
            assert told.matches(u) == all(oracle.set_match(t, in_question) for t in alike)


def test_tuples_flow_through_unchanged_with_their_punctuation(session: Session, tmp_path: Path) -> None:
    running = Running(session, tmp_path, HOURLY, BIDS)
    first, other = "(7, 1, 2.5, 1, 15) (7, 1, 2.5, 1, 15)", "(7, 2, null, null, 59)"
    running.shows(f"{first} {other} <*, *, *, 1, [0,30]>", out=f"{first} {other}", kept="0")
    running.restart()
    running.shows(f"{other} <*, *, *, 1, [31,59]>", out=f"{other} <*, *, *, 1, *>")
