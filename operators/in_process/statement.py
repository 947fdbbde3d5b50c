"""Statements of DuckDB: what is nested deeply is planned on a large stack, and without what takes its depth cubed.

DuckDB refuses expressions that are nested more than 1,000 deep, since it plans them by recursion, and it looks in each
for what stands in it twice: at a depth of 1,000 that takes six seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import duckdb

from xmlstream.operators.expressions.depth import deeply, depth, too_deep

OPTIMIZERS = "expression_rewriter"
"""What DuckDB leaves out: it would rewrite `n + 1 > 0` into `n > -1`, which does not overflow, and compare uncast."""

_DEEP = 100
"""The brackets within each other from which on a statement is deep."""

_SHORT = 20 * _DEEP
"""The length up to which no statement is deep, and none is looked at."""


def execute(
    connection: duckdb.DuckDBPyConnection, sql: str, values: Sequence[Any] | None = None
) -> duckdb.DuckDBPyConnection:
    """Runs a statement; once one is deep, the connection is set for such.

    Raises:
        QueryError: It is nested more deeply than DuckDB reads: some 4,900 brackets, or 2,490 CASE.
    """
    run = partial(connection.execute, sql, values)
    if len(sql) <= _SHORT or depth(sql) <= _DEEP:
        return run()
    connection.execute("SET max_expression_depth = 100000")
    connection.execute(f"SET disabled_optimizers = '{OPTIMIZERS},common_subexpressions'")
    try:
        return deeply(run)
    except duckdb.ParserException as error:
        if "memory exhausted" not in str(error):
            raise
        raise too_deep() from None
