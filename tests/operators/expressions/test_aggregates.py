"""Aggregates of slices merge to those of all tuples; a group keeps one row, or tuples, as `explain` says."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.harness.nights import AT_NIGHT, SEED
from tests.harness.running import Running
from xmlstream.operators.expressions.aggregates import Aggregate, ignores_duplicates
from xmlstream.operators.expressions.operations.aggregate_functions import AGGREGATES
from xmlstream.operators.group_by import GroupBy
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.sql.in_process_analysis import ProvenAnalyst

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

GIVEN = Schema.parse("k INT, v INT, w BIGINT, p BOOLEAN, q BOOLEAN, u INT")
MERGED = (
    *("count(*)", "count(v)", "count(v, p)", "count_if(p)", "sum(v)", "avg(v)", "mean(w)", "min(v)", "max(w)"),
    *("bool_and(p)", "every(p)", "bool_or(q)", "some(q)", "bit_and(v)", "bit_or(w)", "bit_xor(v)", "max(DISTINCT v)"),
    *("bool_and(DISTINCT p)", "bit_or(DISTINCT v)", "count_if(p) FILTER (WHERE q)", "bit_xor(w) FILTER (WHERE p)"),
    *("bool_or(p) FILTER (WHERE v > 3)", "every(v > 1 OR p)", "any(p)", "any(v > 1)", "regr_count(v, w)"),
    *("min_by(v, u)", "max_by(p, u)", "max_by(v, nullif(u, 3)) FILTER (WHERE q)", "min_by(w, u)"),
    *("max_by(v, w)", "min_by(v, w)", "min_by(u, p)", "max_by(w, nullif(v, 5)) FILTER (WHERE q)"),
)
KEPT = (
    "count(DISTINCT v)",
    "count(DISTINCT v, p)",
    "count(DISTINCT v) FILTER (WHERE p)",
    "median(v)",
    "sum(DISTINCT w)",
)
DRAWN = 40 if AT_NIGHT else 1


def tuples(source: random.Random, number: int) -> list[tuple[Any, ...]]:
    def value(*values: Any) -> Any:
        return source.choice((None, *values))

    drawn = (
        (
            value(1, 2),
            value(-1, 0, 1, 5, 12),
            value(3, -(2**40)),
            value(True, False),
            value(True, False),
            source.randrange(10**9),
        )
        for _ in range(number)
    )
    return list(drawn)


@pytest.mark.parametrize("text", [*MERGED, *KEPT])
def test_what_slices_give_is_what_all_tuples_give(in_process: InProcessSession, tmp_path: Path, text: str) -> None:
    ((_, domain),) = ProvenAnalyst().columns(GIVEN, [text])
    operator = GroupBy(("k",), (Aggregate(Attribute("found", domain), text),))
    (model,) = operator.state_schema(GIVEN).models
    assert model.what == ("groups" if text in MERGED else "tuples of groups")
    for number in range(DRAWN):
        source = random.Random(f"{SEED} {text} {number}")
        running, rows = Running(in_process, tmp_path / str(number), operator, GIVEN), list[tuple[Any, ...]]()
        for _ in range(source.randrange(1, 4)):
            rows += (new := tuples(source, source.randrange(20)))
            kept = running.slice((new, [])).kept
            groups = len({row[0] for row in rows})
            assert (kept == groups) if text in MERGED else (kept >= groups), rows
        done = running.slice(([], [Punctuation.at(GIVEN, {})]))
        assert sorted(done.tuples, key=str) == sorted(at_once(in_process, rows, text), key=str), rows


@pytest.mark.parametrize("text", [*MERGED, *KEPT])
def test_duplicates_are_left_out_only_where_they_do_not_count(in_process: InProcessSession, text: str) -> None:
    rows = tuples(random.Random(SEED), 12)
    if ignores_duplicates(Aggregate(Attribute("found", Domain("INT")), text)):
        assert sorted(at_once(in_process, rows + rows, text), key=str) == sorted(
            at_once(in_process, rows, text), key=str
        )


def at_once(session: InProcessSession, rows: list[tuple[Any, ...]], text: str) -> list[tuple[Any, ...]]:
    types = {"INT": pa.int32(), "BIGINT": pa.int64(), "BOOLEAN": pa.bool_()}
    columns = {a.name: [row[i] for row in rows] for i, a in enumerate(GIVEN)}
    table = pa.table({a.name: pa.array(columns[a.name], types[a.domain.type]) for a in GIVEN})
    computed = Aggregate(Attribute("found", Domain("INT")), text).computed
    found = session.engine.rows(table, GIVEN.ddl()).group_by(("k",), {"found": computed}).to_arrow()
    return [tuple(row.values()) for row in found.to_pylist()]


def test_each_aggregate_whose_partial_results_merge_is_among_them() -> None:
    assert {text.partition("(")[0] for text in MERGED} == {name for name, entry in AGGREGATES.items() if entry.merges}


def test_of_equal_places_the_one_with_the_greater_value_is_the_greater(
    in_process: InProcessSession, tmp_path: Path
) -> None:
    """A null place counts for nothing; a null value is the least, and whatever is cut the answer is one."""
    schema = Schema.parse("x DOUBLE, y INT, at INT")
    rows = [
        (1.5, 1, 3),
        (None, 2, 3),
        (2.5, None, 3),
        (9.0, 9, None),
        (7.0, 3, 2),
        (4.0, 4, 2),
        (-1.0, 5, 1),
        (0.5, 0, 1),
    ]
    texts = ("max_by(x, at)", "min_by(x, at)", "max_by(y, at)", "min_by(y, at)", "max_by(x, at) FILTER (WHERE at > 3)")
    for beside in ((), ("count(DISTINCT y)",)):
        found = ProvenAnalyst().columns(schema, [*texts, *beside])
        answers = [Aggregate(Attribute(f"a{i}", domain), text) for i, (text, (_, domain)) in enumerate(
            zip((*texts, *beside), found, strict=True))]  # fmt: skip
        for number in range(6):
            given = random.Random(number).sample(rows, len(rows))
            running = Running(in_process, tmp_path / f"{len(beside)} {number}", GroupBy((), tuple(answers)), schema)
            running.slice((given[:number], []))
            running.slice((given[number:], []))
            (answer,) = running.slice(([], [Punctuation.at(schema, {})])).tuples
            assert answer[: len(texts)] == (2.5, -1.0, 2, 0, None)
