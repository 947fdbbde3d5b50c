"""DuckDB's settings under which expressions are proven to be equal to Spark's, and its errors by Spark's names."""

from __future__ import annotations

import re
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


_NAMED = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
_MEANT: tuple[tuple[str, str], ...] = (
    (r"Overflow in (?:addition|subtraction|multiplication) of (?:INT8|INT16)\b", "BINARY_ARITHMETIC_OVERFLOW"),
    (r"Overflow in (?:addition|subtraction|multiplication) of DECIMAL", "NUMERIC_VALUE_OUT_OF_RANGE"),
    (r"Overflow (?:in|on) |overflow in|Overflow on abs", "ARITHMETIC_OVERFLOW"),
    (r"(?:to|cast value .* to) (?:type )?DECIMAL|Casting value .* to type DECIMAL", "NUMERIC_VALUE_OUT_OF_RANGE"),
    (r"Type INT128 .* destination type INT64", "ARITHMETIC_OVERFLOW"),
    (r"Failed to cast decimal value .* to type INT", "CAST_OVERFLOW"),
    (r"Could not convert string", "CAST_INVALID_INPUT"),
    (r"can't be cast because the value is out of range|out of range for the destination", "CAST_OVERFLOW"),
)


def condition(message: str) -> str | None:
    """The condition of Spark's error where DuckDB raises one with this message; None if it is not known.

    >>> condition("Invalid Input Error: [DIVIDE_BY_ZERO] Division by zero.")
    'DIVIDE_BY_ZERO'
    >>> condition("Out of Range Error: Overflow in addition of INT64 (9223372036854775807 + 1)!")
    'ARITHMETIC_OVERFLOW'
    """
    if found := _NAMED.search(message):
        return found[1]
    return next((name for pattern, name in _MEANT if re.search(pattern, message)), None)
