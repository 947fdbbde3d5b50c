"""The settings of DuckDB under which expressions are proven to be equal to Spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from operators.in_process.part import text

if TYPE_CHECKING:
    import duckdb

SETTINGS = {"disabled_optimizers": "expression_rewriter"}
"""DuckDB would rewrite `n + 1 > 0` into `n > -1`, which does not overflow, and would compare before it casts."""


def prepare(connection: duckdb.DuckDBPyConnection, zone: str = "UTC") -> None:
    """Sets what results and errors depend on."""
    for name, value in {**SETTINGS, "TimeZone": zone}.items():
        connection.execute(f"SET {name} = {text(value)}")
