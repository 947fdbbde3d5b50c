"""Two projections as one promise all that they promise one after the other: each function of each other's result."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from tests.harness.nights import AT_NIGHT
from xmlstream.optimizer.simplify import collapse_projections
from xmlstream.punct_ns.errors import QueryError
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

TABLE = (
    "CREATE TABLE r (x INT, y INT, t TIMESTAMP, u TIMESTAMP) USING punctuated_xml "
    "OPTIONS (path 'r.xml', rowTag 'r', schemes 'x prefix; y; x; t prefix; u prefix; t'); "
)

OF_NUMBERS = (
    *("{x}", "{x} + 1", "-{x}", "{x} DIV 7", "CAST({x} AS INT)", "coalesce({x}, y)", "{x} + y", "abs({x})"),
    *(("{x} * 2", "floor({x})", "CAST({x} AS STRING)", "greatest({x}, 3)", "coalesce({x}, 0)", "{x} % 5", "{x} / 2",
       "timestamp_seconds({x})", "IF({x} > 3, {x}, y)", "nullif({x}, 3)", "round({x}, -1)", "ceil({x})",
       "CAST({x} AS BIGINT)", "CAST({x} AS DOUBLE)", "CAST({x} AS DECIMAL(20, 2))") if AT_NIGHT else ()),
)  # fmt: skip
OF_MOMENTS = (
    *("{x}", "date_trunc('hour', {x})", "CAST({x} AS DATE)", "coalesce({x}, u)", "{x} + INTERVAL 1 HOUR"),
    *(("year({x})", "unix_seconds({x})", "month({x})", "CAST({x} AS TIMESTAMP)", "date_add({x}, 1)", "last_day({x})")
      if AT_NIGHT else ()),
)  # fmt: skip


def test_what_two_projections_promise_they_promise_as_one(in_process: InProcessSession) -> None:
    tried, lost = 0, []
    for functions, column, other in ((OF_NUMBERS, "x", "y"), (OF_MOMENTS, "t", "u")):
        for outer, inner in product(functions, repeat=2):
            of = f"SELECT {inner.format(x=column)} AS z, {other} FROM r"
            query = f"SELECT {outer.format(x='z')} AS a, {other} AS b FROM ({of})"
            try:
                written = read(TABLE + query).plan(in_process)
            except QueryError:
                continue  # of other types
            tried += 1
            promised = {*map(str, written.schemes)} - {*map(str, collapse_projections(written).schemes)}
            lost += [f"{query}: {', '.join(promised)}"] if promised else []
    assert tried > 50
    assert not lost


def test_a_choice_between_computed_attributes_stays_above_what_computes_them(in_process: InProcessSession) -> None:
    """Else `coalesce(a, CAST(n AS INT))` would be of no attribute alone, and no longer say that b is one of a."""
    query = "SELECT coalesce(a, b) AS a FROM (SELECT x AS a, CAST(sum(y) AS INT) AS b FROM r GROUP BY x)"
    written = read(TABLE + query).plan(in_process)
    assert collapse_projections(written) == written
