"""Errors of DuckDB as conditions of Spark, by which both are reported alike."""

from __future__ import annotations

import re

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
