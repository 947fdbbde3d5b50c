"""The closed map: which attributes are compared, what is closed, and who lacks what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xmlstream.monitor import closed_map as closed_map_module
from xmlstream.monitor.closed_map import MOST_BARS, Axis, ClosedMap, frontier
from xmlstream.operators.state.closed_set import ConstantRuns
from xmlstream.operators.state.expiring_set import Entry, recorded
from xmlstream.operators.state.state_schema import OperatorRecord
from xmlstream.operators.storage.segments import SegmentStore
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.lifespan import Lifespan
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.value_set import ValueSet
from xmlstream.runtime.checkpoint.commit_log import Commit
from xmlstream.runtime.checkpoint.slice_report import Activity
from xmlstream.runtime.loop.in_step import axes
from xmlstream.sql.script import read

DATA = Path(__file__).parents[3] / "data"


def plan(name: str) -> Node:
    text = (DATA / f"{name}.sql").read_text(encoding="utf-8")
    return optimized(read(text, {"SENSORS": "sensors", "AUCTIONS": "auctions"}).sketch())


def commit(added: Mapping[str, Sequence[Entry]]) -> Commit:
    """The record of a slice in which sources have added punctuations."""
    states = {name: OperatorRecord(sets={"added": entries}) for name, entries in added.items()}
    return Commit(0, operators=states)


def said(**sources: str) -> Commit:
    return commit({name: text.split("; ") for name, text in sources.items()})


def compared(found: ClosedMap) -> list[dict[str, Any]]:
    return [axis.json() for axis in found.compared()]


def warehouse(**sources: str) -> ClosedMap:
    found = ClosedMap.of(plan("warehouse"))
    found.add(said(**sources))
    return found


def lacking(axes_: Sequence[Axis]) -> dict[str, str]:
    """For each input the values that it has not closed, but others have."""
    return {row.input: row.lacks for axis in axes_ for row in axis.rows if row.lacks}


def test_what_a_source_has_moved_away_or_forgotten_is_passed_over() -> None:
    found = warehouse(sensor1="<*, 5, *, *>; moved sid; -<*, 6, *, *>", sensor2="<*, 4, *, *>")
    assert {each.input: each.closed for each in found.closers("hour", "5")} == {"sensor1": True, "sensor2": False}
    assert not any(each.closed for each in found.closers("hour", "6"))


def test_what_holds_for_a_time_is_told_with_it_and_is_open_again_behind_it() -> None:
    found = warehouse(sensor1="<*, (,3], *, *>")
    schema = Schema.parse("sid STRING, hour INT, min INT, currtmp DOUBLE")
    for hour, bound in ((5, "hour < 9"), (6, "hour <= 3")):
        lifespan = Lifespan.parse(f"while {bound}", schema).begun(datetime(2026, 1, 1, tzinfo=UTC), "sensor1")
        p = Punctuation.of(schema, hour=str(hour)).lasting(lifespan)
        found.add(commit({"sensor1": [recorded(p)]}))
    of = {hour: found.closers("hour", hour)[0] for hour in ("2", "5", "6")}
    assert [(of[hour].closed, of[hour].holds) for hour in of] == [
        (True, None),
        (True, "while hour < 9"),
        (False, None),
    ]


def test_a_source_spoke_last_when_it_did_and_not_when_all_that_it_has_said_is_recorded_anew() -> None:
    found = warehouse()
    at = {slice_: Activity((slice_, datetime(2026, 1, 1, 0, slice_, tzinfo=UTC))) for slice_ in (13, 50)}
    found.add(replace(said(sensor1="<*, 1, *, *>"), last_activity={"sensor1": at[13]}))
    whole = said(sensor1="<*, 1, *, *>", sensor2="<*, 1, *, *>")
    found.add(replace(whole, last_activity={"sensor1": at[13], "sensor2": at[50]}))
    (axis,) = compared(found)
    assert [row["last_sent"]["slice"] for row in axis["rows"]] == [13, 50]


def test_attributes_are_compared_behind_a_rule_and_behind_the_same_function() -> None:
    tables = "".join(
        f"CREATE TABLE {name} (at TIMESTAMP, v INT) USING punctuated_xml"
        f" OPTIONS (path '{name}', rowTag 'r', punctuate 'order of at');"
        for name in "abc"
    )
    parts = [("a", "date_trunc('HOUR', at)"), ("b", "date_trunc('HOUR', at)"), ("c", "date_trunc('DAY', at)")]
    branches = " UNION ALL ".join(f"SELECT {term} AS h, v FROM {name}" for name, term in parts)
    found = axes(optimized(read(tables + f"SELECT h, sum(v) AS v FROM ({branches}) GROUP BY h;").sketch()))
    assert [axis for axis in found if ("a", "at") in axis] == [[("a", "at"), ("b", "at")]]
    assert [axis for axis in found if ("c", "at") in axis] == [[("c", "at")]]


def test_attributes_are_compared_that_are_merged_renamed_or_joined() -> None:
    assert [("sensor1", "hour"), ("sensor2", "hour")] in axes(plan("warehouse"))
    joined = [("auction", "seller"), ("bid", "bidder"), ("person", "id")]
    assert joined in map(sorted, axes(plan("auctions/nexmark_q23")))


STRINGS = Schema.parse("sid STRING, n INT")


def of_strings(**said: list[str]) -> ClosedMap:
    found = ClosedMap(dict.fromkeys(said, STRINGS), dict.fromkeys(said, ("sid",)), [[(name, "sid") for name in said]])
    lists = {name: [f"<{value}, *>" for value in values] for name, values in said.items()}
    found.add(commit(lists))
    return found


@given(st.lists(st.lists(st.integers(0, 40).map("k{:02}".format), unique=True), min_size=1, max_size=3))
def test_of_many_strings_the_same_is_said_as_of_few(drawn: list[list[str]]) -> None:
    found = of_strings(**{f"s{i}": values for i, values in enumerate(drawn)})
    (few,) = compared(found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(closed_map_module, "MANY", -1)
        (many,) = compared(found)
    for row, other in zip(few["rows"], many["rows"], strict=True):
        assert {name: row[name] for name in ("closed", "lacks", "missing")} == {
            name: other[name] for name in ("closed", "lacks", "missing")
        }
        # A bar has a place for each value that anyone has closed.
        numbers = sorted({value for values in drawn for value in values})
        open_ = {numbers.index(value) for value in numbers if value not in drawn[int(row["input"][1:])]}
        drawn_open = {n for n in range(len(numbers)) if not any(a <= n < b for a, b in other["bars"])}
        assert drawn_open == open_
    assert few["meet"]["closed"] == many["meet"]["closed"]


def test_where_many_are_drawn_as_one_nothing_open_is_drawn_as_closed() -> None:
    names = [f"k{n:05}" for n in range(10_000)]
    (axis,) = compared(of_strings(a=names, b=[name for name in names if name != "k04242"]))
    (whole,), (before, after) = (row["bars"] for row in axis["rows"])
    assert whole == [0.0, 10_000.0]
    assert before[1] <= 4242 < after[0]
    assert axis["rows"][1]["lacks"] == "k04242"
    assert axis["rows"][1]["missing"] == ["<k04242, *>"]


def on_disk(directory: Path, name: str, values: list[str]) -> Commit:
    """A commit whose source has these strings on disk."""
    store = SegmentStore(None, directory / name)  # type: ignore[arg-type]
    store.begin(0)
    runs = ConstantRuns(store)
    runs.add(values)
    return Commit(0, operators={name: OperatorRecord(sets={"added": ["moved sid"]}, kept={"added sid": runs.record()})})


def test_strings_that_an_earlier_run_has_on_disk_are_closed_too(tmp_path: Path) -> None:
    found = of_strings(a=["x", "y"], b=["z"])
    record = on_disk(tmp_path, "b", ["x", "y"])
    found.add(record, tmp_path, restored=True)
    (axis,) = compared(found)
    assert [(row["lacks"], row["closed"]) for row in axis["rows"]] == [("z", "x, y"), ("", "x, y, z")]


def test_of_too_many_strings_it_is_told_how_many_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closed_map_module, "MOST_VALUES", 2)
    found = of_strings(a=["x"], b=[])
    found.add(on_disk(tmp_path, "b", ["x", "y", "z"]), tmp_path, restored=True)
    (axis,) = compared(found)
    assert [row["closed"] for row in axis["rows"]] == ["not compared", "3 values, too many to compare"]
    assert [row["lacks"] for row in axis["rows"]] == ["", ""]


def test_it_says_what_is_closed_by_each_what_by_all_and_who_lacks_what() -> None:
    (axis,) = compared(warehouse(sensor1="<*, [,17], *, *>", sensor2="<*, [,9], *, *>; <*, 12, *, *>"))
    assert [(row["input"], row["closed"], row["lacks"]) for row in axis["rows"]] == [
        ("sensor1", "≤ 17", ""),
        ("sensor2", "≤ 12 but 10 to 11", "10 to 11, 13 to 17"),
    ]
    assert axis["meet"]["closed"] == "≤ 12 but 10 to 11"
    assert axis["meet"]["bars"] == [[None, 10.0], [12.0, 13.0]]


def test_an_input_that_promised_and_says_nothing_is_there_with_nothing() -> None:
    found = warehouse(sensor1="<*, 5, *, *>")
    assert [row["closed"] for row in compared(found)[0]["rows"]] == ["5", "nothing yet"]
    assert lacking(found.compared()) == {"sensor2": "5"}
    found.add(said(sensor2="<*, 5, *, *>"))
    assert lacking(found.compared()) == {}


def test_where_nothing_is_closed_by_all_it_is_not_said_to_be_null_where_there_is_none() -> None:
    schema = Schema.parse("n INT NOT NULL")
    found = ClosedMap(dict.fromkeys(("a", "b"), schema), {"a": ("n",), "b": ("n",)}, [[("a", "n"), ("b", "n")]])
    assert [row["closed"] for row in compared(found)[0]["rows"]] == ["nothing yet"] * 2
    found.add(commit({"a": ["<[,3]>"], "b": ["<7>"]}))
    assert compared(found)[0]["meet"]["closed"] == "nothing yet"


def test_an_input_that_has_ended_has_closed_all() -> None:
    (axis,) = compared(warehouse(sensor1="<*, *, *, *>", sensor2="<*, [,3], *, *>"))
    assert [(row["closed"], row["lacks"]) for row in axis["rows"]] == [("all", ""), ("≤ 3", "≥ 4")]


def test_an_input_lacks_nothing_below_the_first_value_that_an_input_has_named() -> None:
    by_range = "<*, [,17], *, *>"
    assert lacking(warehouse(sensor1=by_range, sensor2="<*, [0,9], *, *>").compared()) == {"sensor2": "10 to 17"}
    assert lacking(warehouse(sensor1=f"{by_range}; <*, 19, *, *>", sensor2="<*, [0,19], *, *>").compared()) == {
        "sensor1": "18"
    }
    assert lacking(warehouse(sensor1="<*, 3, *, *>; <*, [5,17], *, *>", sensor2="<*, [10,12], *, *>").compared()) == {
        "sensor2": "3, 5 to 9, 13 to 17"
    }
    assert lacking(warehouse(sensor1=by_range).compared()) == {"sensor2": "≤ 17"}


def test_what_the_commits_of_one_run_add_up_to_is_what_a_whole_record_says() -> None:
    parts, whole = warehouse(sensor1="<*, 1, *, *>"), warehouse(sensor1="<*, [1,3], *, *>")
    parts.add(said(sensor1="<*, 2, *, *>"))
    parts.add(said(sensor1="<*, 3, *, *>"))
    assert parts.compared() == whole.compared()


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
    from xmlstream.punct_ns.schema import Schema

    found = ClosedMap({"s": Schema.of(a=type_)}, {}, [[("s", "a")]])
    found.add(commit({"s": texts}))
    (axis,) = compared(found)
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
    (axis,) = compared(warehouse(sensor1=numbers))
    bars = axis["rows"][0]["bars"]
    assert len(bars) == MOST_BARS
    assert (bars[0][0], bars[-1][1]) == (0.0, 1999.0)
