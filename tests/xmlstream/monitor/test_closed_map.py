"""The closed map: which attributes are compared, what is closed, and who lacks what."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.state.passing_punctuations import recorded
from punct_ns.domain import Domain
from punct_ns.lifespan import Lifespan
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.value_set import ValueSet
from xmlstream.monitor.axes import axes
from xmlstream.monitor.closed_map import MOST_BARS, ClosedMap
from xmlstream.monitor.frontier import frontier
from xmlstream.monitor.run_view import closed_map
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node
from xmlstream.sql.script import read

DATA = Path(__file__).parents[3] / "data"


def plan(name: str) -> Node:
    text = (DATA / f"{name}.sql").read_text(encoding="utf-8")
    return optimized(read(text, {"SENSORS": "sensors", "AUCTIONS": "auctions"}).sketch())


def said(**sources: str) -> dict[str, object]:
    return {"operators": {name: {"sets": {"said": text.split("; ")}} for name, text in sources.items()}}


def warehouse(**sources: str) -> ClosedMap:
    found = closed_map(plan("warehouse"))
    found.add(said(**sources))
    return found


def test_what_a_source_has_moved_away_or_forgotten_is_passed_over() -> None:
    found = warehouse(sensor1="<*, 5, *, *>; moved sid; -<*, 6, *, *>", sensor2="<*, 4, *, *>")
    assert {each["input"]: each["closed"] for each in found.asked("hour", "5")} == {"sensor1": True, "sensor2": False}
    assert not any(each["closed"] for each in found.asked("hour", "6"))


def test_what_holds_for_a_time_is_told_with_it_and_is_open_again_behind_it() -> None:
    found = warehouse(sensor1="<*, (,3], *, *>")
    schema = Schema.parse("sid STRING, hour INT, min INT, currtmp DOUBLE")
    for hour, bound in ((5, "hour < 9"), (6, "hour <= 3")):
        lifespan = Lifespan.parse(f"while {bound}", schema).begun(datetime(2026, 1, 1, tzinfo=UTC), "sensor1")
        p = Punctuation.of(schema, hour=str(hour)).lasting(lifespan)
        found.add({"sensor1": {"sets": {"said": [recorded(p)]}}})
    of = {hour: found.asked("hour", hour)[0] for hour in ("2", "5", "6")}
    assert [(of[hour]["closed"], of[hour]["holds"]) for hour in of] == [
        (True, None),
        (True, "while hour < 9"),
        (False, None),
    ]


def test_attributes_are_compared_that_are_merged_renamed_or_joined() -> None:
    assert [("sensor1", "hour"), ("sensor2", "hour")] in axes(plan("warehouse"))
    joined = [("auction", "seller"), ("bid", "bidder"), ("person", "id")]
    assert joined in map(sorted, axes(plan("auctions/nexmark_q23")))


def test_it_says_what_is_closed_by_each_what_by_all_and_who_lacks_what() -> None:
    (axis,) = warehouse(sensor1="<*, [,17], *, *>", sensor2="<*, [,9], *, *>; <*, 12, *, *>").json()
    assert [(row["input"], row["closed"], row["lacks"]) for row in axis["rows"]] == [
        ("sensor1", "≤ 17", ""),
        ("sensor2", "≤ 12 but 10 to 11", "10 to 11, 13 to 17"),
    ]
    assert axis["meet"]["closed"] == "≤ 12 but 10 to 11"
    assert axis["meet"]["bars"] == [[None, 10.0], [12.0, 13.0]]


def test_an_input_that_promised_and_says_nothing_is_there_with_nothing() -> None:
    found = warehouse(sensor1="<*, 5, *, *>")
    assert [row["closed"] for row in found.json()[0]["rows"]] == ["5", "nothing yet"]
    assert found.lacking() == ["sensor2 has not closed hour 5, as others have"]
    found.add(said(sensor2="<*, 5, *, *>"))
    assert found.lacking() == []


def test_an_input_that_has_ended_has_closed_all() -> None:
    (axis,) = warehouse(sensor1="<*, *, *, *>", sensor2="<*, [,3], *, *>").json()
    assert [(row["closed"], row["lacks"]) for row in axis["rows"]] == [("all", ""), ("≤ 3", "≥ 4")]


def test_what_the_commits_of_one_run_add_up_to_is_what_a_whole_record_says() -> None:
    parts, whole = warehouse(sensor1="<*, 1, *, *>"), warehouse(sensor1="<*, [1,3], *, *>")
    parts.add(said(sensor1="<*, 2, *, *>"))
    parts.add(said(sensor1="<*, 3, *, *>"))
    assert parts.json() == whole.json()


@pytest.mark.parametrize(
    ("type_", "texts", "words", "scale"),
    [
        ("INT", ["<[3,9]>", "<12>"], "3 to 12 but 10 to 11", "number"),
        ("DOUBLE", ["<[,2.5)>"], "< 2.5", "number"),
        ("TIMESTAMP", ["<[,2003-05-15T17:20:00Z]>"], "≤ 2003-05-15T17:20:00Z", "time"),
        ("DATE", ["<[,2003-05-15]>"], "≤ 2003-05-15", "time"),
        ("STRING", ["<ann>", "<bob>", "<eve>", "<joe>", "<kim>", "<sue>"], "ann, bob, eve, joe and 2 more", "text"),
        ("BOOLEAN", ["<true>"], "true", "text"),
        ("DECIMAL(5,2)", ["<[,9.99]>"], "≤ 9.99", "number"),
    ],
)
def test_every_type_has_an_axis_and_words(type_: str, texts: list[str], words: str, scale: str) -> None:
    from punct_ns.schema import Schema

    found = ClosedMap({"s": Schema.of(a=type_)}, {}, [[("s", "a")]])
    found.add({"operators": {"s": {"sets": {"said": texts}}}})
    (axis,) = found.json()
    assert axis["scale"] == scale
    assert axis["rows"][0]["closed"] == words
    assert axis["rows"][0]["bars"]


@given(st.sets(st.integers(-50, 50), min_size=1))
def test_a_frontier_names_every_value_that_it_leaves_out_or_counts_them(values: set[int]) -> None:
    words = frontier(ValueSet.of(Domain("INT"), values))
    assert str(min(values)) in words
    if len(values) == max(values) - min(values) + 1:
        assert words in (str(min(values)), f"{min(values)} to {max(values)}")


def test_many_intervals_become_as_many_bars_as_can_be_seen() -> None:
    numbers = "; ".join(f"<*, {hour}, *, *>" for hour in range(0, 2000, 2))
    (axis,) = warehouse(sensor1=numbers).json()
    bars = axis["rows"][0]["bars"]
    assert len(bars) == MOST_BARS
    assert (bars[0][0], bars[-1][1]) == (0.0, 1999.0)
