"""Partial aggregates of each slice, which merge to those of all: what is said of groups, and how rows go out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.harness.running import Running
from tests.harness.saying import Saying
from xmlstream.operators.expressions.aggregates import Aggregate
from xmlstream.operators.pre_aggregate import PreAggregate
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.scheme import format_schemes, parse_schemes

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

READINGS = Schema.parse("sid INT, hour INT, v INT NOT NULL", "v 0..9")
COUNT = Aggregate(Attribute("n", Domain("BIGINT", nullable=False)), "count(*)")
HOURLY = PreAggregate(("hour", "sid"), (COUNT,))


def test_what_speaks_of_groups_goes_on_and_several_that_cover_the_rest_count_as_one() -> None:
    Saying(HOURLY, READINGS).shows(
        "<*, (,3], *> | <1, *, [0,4]> | <1, *, [5,9]> | <*, *, *>",
        out="<(,3], *> |               | <*, 1>        | <*, *>  ",
    )


def test_what_was_said_of_groups_that_do_not_coalesce_is_forgotten() -> None:
    named = Schema.of(name="STRING", v="INT")
    saying = Saying(PreAggregate(("name",), (COUNT,)), named)
    for number in range(100):
        assert saying.slice([Punctuation.parse(f"<s{number}, *>", named)])
    assert saying.state.punctuations_held == 0


def test_a_punctuation_that_ends_goes_on_with_its_lifespan() -> None:
    named = Schema.of(name="STRING", v="INT")
    ending = Punctuation.parse("<a, *> until 2026-01-01T00:00:00+00:00", named)
    (p,) = Saying(PreAggregate(("name",), (COUNT,)), named).slice([ending])
    assert p.lifespan == ending.lifespan


def test_it_promises_what_its_input_promises_of_the_keys() -> None:
    schemes = parse_schemes("sid; hour prefix; sid, v; hour, v 0..9 by 5", READINGS)
    assert format_schemes(HOURLY.schemes(schemes)) == "sid; hour prefix; hour"


def test_a_slice_gives_each_of_its_groups_once_and_keeps_nothing(session: Session, tmp_path: Path) -> None:
    running = Running(session, tmp_path, HOURLY, READINGS)
    done = running.slice(([(1, 5, 0), (1, 5, 1), (None, 5, 0), (2, 6, 0)], []))
    assert sorted(done.tuples, key=str) == [(5, 1), (5, None), (6, 2)]
    assert running.slice(([(1, 5, 2)], [])).tuples == [(5, 1)]
    assert done.kept == 0
