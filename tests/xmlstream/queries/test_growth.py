"""Planning takes work that grows as the query does: no result twice at a level, no look at the whole for each part.

Work is counted in calls of functions, and in the length of the SQL that DuckDB is given, at three sizes, each twice the
one before. By day the sizes are small; by night they are as large as queries get, and all queries run. What else
grows, punctuations and slices, has its tests beside the algebra and the loop over slices.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.harness.growing_queries import (
    CHAINS,
    FUNCTIONS,
    MANY,
    OPERATORS,
    WIDE,
    Dimension,
    calls,
    chained,
    clear_caches,
    exponent,
    nested,
    queries,
    steepest,
    table,
    wide,
)
from tests.harness.nights import AT_NIGHT
from xmlstream.operators.expressions.depth import deeply
from xmlstream.operators.expressions.operations.functions import FUNCTIONS as KNOWN
from xmlstream.operators.expressions.operations.spark_type import NotProven
from xmlstream.operators.in_process.expressions import translated
from xmlstream.optimizer.rules import optimized
from xmlstream.safety.explanation import explained
from xmlstream.sql.in_process_analysis import columns_of
from xmlstream.sql.script import Script, read

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

MOST = 1.1
"""The greatest exponent of growth."""

SQUARE = {
    "join of sources": "the result of each join has the columns of all tables before it",
    **dict.fromkeys(
        ("UNION ALL of sources", "groups of sources"),
        "without the promise of each source, those of all are met to see whether it is idle",
    ),
    **dict.fromkeys(
        ("coalesce list", "concat list"), "sqlglot looks at all operands of a call for each that is replaced"
    ),
    "MAX of sums": "for each expression two equal schemas are compared; little, and seen from 400 columns on",
}
"""What grows faster, up to the square, and why."""

DEEP = (50, 100, 200) if AT_NIGHT else (8, 16, 32)
COLUMNS = (100, 200, 400) if AT_NIGHT else (75, 150, 300)
SOURCES = (10, 20, 40)

REFUSED = {"try_add", "try_subtract", "try_multiply"}
"""What is not proven to be equal in DuckDB once it nests."""

UNREAD = {"regexp", "rlike"}
"""What a query writes as an operator alone."""


def _most(name: str) -> float:
    """The greatest exponent of a dimension; by day none of the small ones shows that it grows faster."""
    return 2.0 if name in SQUARE and (AT_NIGHT or name in MANY) else MOST


def _grown(
    make: Dimension, sizes: Sequence[int], session: InProcessSession, out: Path, most: float = MOST
) -> list[str]:
    """The steps of planning, and by night of a run, whose calls grow faster than they may."""
    found: dict[str, list[Counter[str]]] = {}
    for size in sizes:
        text = make(size)
        clear_caches()
        for step, work in _steps(text, session).items():
            try:
                found.setdefault(step, []).append(calls(work))
            except NotProven:
                found.pop(step)
        if AT_NIGHT:
            shutil.rmtree(out, ignore_errors=True)
            xs.from_sql(session, text).run(out, row_tag="row", allow_unsafe=True)
    totals = {step: exponent(sizes, [each.total() for each in of]) for step, of in found.items() if len(of) == 3}
    return [
        f"{step} {grown:.2f}: {'; '.join(steepest(sizes, found[step], MOST))}"
        for step, grown in totals.items()
        if grown > most
    ]


def _steps(text: str, session: InProcessSession) -> dict[str, Callable[[], object]]:
    """What is done before a run: the text is read first."""
    script: list[Script] = []
    return {
        "read": lambda: script.append(read(text)),
        "optimized": lambda: optimized(script[0].sketch()),
        "explained": lambda: explained(optimized(script[0].sketch()), follow=True),
        "planned": lambda: optimized(script[0].plan(session)),
    }


@pytest.fixture(scope="module", autouse=True)
def warm(in_process: InProcessSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What is imported and made once is not counted."""
    directory = tmp_path_factory.mktemp("warm")
    _grown(nested(directory, "v: abs({0})"), (2, 4, 8), in_process, directory / "out")


def test_each_known_function_has_a_form_in_which_it_nests() -> None:
    assert FUNCTIONS.keys() == KNOWN.keys()


@pytest.mark.parametrize("name", [*FUNCTIONS, *OPERATORS])
def test_what_nests_is_translated_to_a_text_that_grows_as_it_does(name: str, tmp_path: Path) -> None:
    columns = columns_of(read(table(tmp_path) + "SELECT * FROM a").sketch().schema)
    make, lengths = nested(tmp_path, {**FUNCTIONS, **OPERATORS}[name]), []
    for size in DEEP:
        text = make(size).partition("SELECT k, ")[2].removesuffix(" AS y FROM a")
        try:
            lengths.append(len(deeply(lambda text=text: translated(text, columns)).sql))  # type: ignore[misc]
        except NotProven:
            assert name in REFUSED
            return
    assert name not in REFUSED
    assert exponent(DEEP, lengths) <= MOST


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", [n for n in (*FUNCTIONS, *OPERATORS) if n not in REFUSED | UNREAD])
def test_what_nests_is_planned_in_calls_that_grow_as_it_does(
    name: str, in_process: InProcessSession, tmp_path: Path
) -> None:
    make = nested(tmp_path, {**FUNCTIONS, **OPERATORS}[name])
    assert _grown(make, DEEP, in_process, tmp_path / "out") == []


@pytest.mark.parametrize("operator", CHAINS)
def test_a_chain_is_planned_in_calls_that_grow_as_it_does(
    operator: str, in_process: InProcessSession, tmp_path: Path
) -> None:
    make = chained(tmp_path, operator, CHAINS[operator])
    assert _grown(make, DEEP, in_process, tmp_path / "out") == []


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", [name for name, _ in queries(Path())])
def test_queries_in_queries_and_lists_are_planned_in_calls_that_grow_as_they_do(
    name: str, in_process: InProcessSession, tmp_path: Path
) -> None:
    assert _grown(dict(queries(tmp_path))[name], DEEP, in_process, tmp_path / "out", _most(name)) == []


@pytest.mark.rest
@pytest.mark.parametrize("name", WIDE)
def test_columns_are_planned_in_calls_that_grow_as_they_do(
    name: str, in_process: InProcessSession, tmp_path: Path
) -> None:
    make = WIDE[name]
    assert _grown(lambda n: wide(tmp_path, n) + make(n), COLUMNS, in_process, tmp_path / "out", _most(name)) == []


@pytest.mark.rest
@pytest.mark.parametrize("name", MANY)
def test_sources_are_planned_in_calls_that_grow_as_they_do(
    name: str, in_process: InProcessSession, tmp_path: Path
) -> None:
    make = MANY[name]

    def text(number: int) -> str:
        return "".join(table(tmp_path, f"a{i}") for i in range(number)) + make(number)

    assert _grown(text, SOURCES, in_process, tmp_path / "out", _most(name)) == []
