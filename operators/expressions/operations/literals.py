"""Literal numbers and intervals: their types in Spark, and their values."""

from __future__ import annotations

import re

from sqlglot import exp

from xmlstream.operators.expressions.dialect import call_name
from xmlstream.operators.expressions.operations.part import Part, text
from xmlstream.operators.expressions.operations.spark_type import NotProven, in_duckdb, read_type

BIGINT, DOUBLE, INT = map(read_type, ("BIGINT", "DOUBLE", "INT"))

_DECIMAL = re.compile(r"-?(\d*)\.(\d*)")
_DOUBLE = re.compile(r"-?(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+")


def number(written: str) -> Part:
    """A literal number: INT if that holds it, or BIGINT, or DECIMAL; DOUBLE with an exponent."""
    if _DOUBLE.fullmatch(written):
        return Part(f"CAST({text(written)} AS DOUBLE)", DOUBLE, False, constant=written)
    if found := _DECIMAL.fullmatch(written):
        scale = len(found[2])
        precision = max(len(found[1].lstrip("0")) + scale, scale, 1)
        if precision > 38:
            raise NotProven(f"the number {written}")
        type_ = read_type(f"DECIMAL({precision},{scale})")
        return Part(f"CAST({text(written)} AS {type_.name})", type_, False, constant=written)
    if not re.fullmatch(r"-?\d+", written):
        raise NotProven(f"the number {written}")
    value = int(written)
    for type_, bits in ((INT, 31), (BIGINT, 63)):
        if -(2**bits) <= value < 2**bits:
            return Part(f"CAST({value} AS {in_duckdb(type_)})", type_, False, constant=str(value))
    digits = len(str(abs(value)))
    if digits > 38:
        raise NotProven(f"the number {written}")
    type_ = read_type(f"DECIMAL({digits},0)")
    return Part(f"CAST({text(str(value))} AS {type_.name})", type_, False, constant=str(value))


_MICROS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}


def interval(tree: exp.Expr) -> int:
    """The microseconds of a literal interval, or of `make_dt_interval` of literals.

    Raises:
        NotProven: Its length is not fixed, or it is computed.
    """
    tree = tree.unnest()
    if call_name(tree) == "make_dt_interval":
        return _made(tree)
    unit = tree.args.get("unit")
    if not isinstance(tree, exp.Interval) or not isinstance(unit, exp.Var):
        raise NotProven("an interval of several units, or a computed one,")
    of, sign = (tree.this.this, -1) if isinstance(tree.this, exp.Neg) else (tree.this, 1)
    length = _MICROS.get(unit.name.upper().removesuffix("S"))
    if length is None or not isinstance(of, exp.Literal) or not re.fullmatch(r"[+-]?\d{1,9}", str(of.this)):
        raise NotProven(f"an interval of {unit.name.upper()}")
    return sign * int(of.this) * length


def _made(tree: exp.Expr) -> int:
    days, hours, minutes, seconds = tree.expressions if len(tree.expressions) == 4 else (None,) * 4
    whole = [each.name for each in (days, hours, minutes) if isinstance(each, exp.Literal) and not each.is_string]
    inner = seconds.this if isinstance(seconds, exp.Cast) else None
    digits = re.fullmatch(r"(\d+)\.(\d{6})", str(inner.this)) if isinstance(inner, exp.Literal) else None
    if len(whole) != 3 or digits is None:
        raise NotProven("make_dt_interval of anything but literals")
    first = ((int(whole[0]) * 24 + int(whole[1])) * 60 + int(whole[2])) * 60_000_000
    return first + int(digits[1]) * 1_000_000 + int(digits[2])


def divided(micros: int) -> tuple[int, int]:
    """Whole days and the microseconds behind them, both with the sign of the whole, as Java divides."""
    days = abs(micros) // 86_400_000_000 * (1 if micros >= 0 else -1)
    return days, micros - days * 86_400_000_000
