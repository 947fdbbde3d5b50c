"""Numeric literals: which number a constant of SQL is, of which type, and as which DECIMAL it is compared."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from operators.expressions.types import BIGINT, DOUBLE, INT, cast, compared_digits, kind
from punct_ns.numeric_type import DecimalType, FloatType, IntegerType
from punct_ns.sql_type import SqlType

_WHOLE = re.compile(r"\d+")
_DECIMAL = re.compile(r"(?:\d+\.\d*|\.\d+)")
_DOUBLE = re.compile(r"(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+")


@dataclass(frozen=True, slots=True)
class NumericLiteral:
    """A numeric constant.

    Attributes:
        value: The number.
        type: Its type to Spark.
        digits: Before and after the point, of the DECIMAL as which it is compared with an exact number; of a literal
            that is written out those that it has, of a cast one its type's; None of a DOUBLE.
    """

    value: int | Decimal | float
    type: SqlType
    digits: tuple[int, int] | None = None

    @property
    def is_double(self) -> bool:
        """Whether it is compared as a DOUBLE."""
        return isinstance(self.type, FloatType)


def numeric_literal(tree: exp.Expr | None) -> NumericLiteral | None:
    """The number that a literal stands for, signed or cast without loss; None for anything else, FLOAT among it.

    >>> from operators.expressions.dialect import parsed
    >>> numeric_literal(parsed("-2.50"))
    NumericLiteral(value=Decimal('-2.50'), type=DecimalType(precision=3, scale=2), digits=(1, 2))
    >>> numeric_literal(parsed("CAST('17' AS BIGINT)")).digits, numeric_literal(parsed("1 + 1"))
    ((20, 0), None)
    """
    tree = tree.unnest() if tree is not None else None
    if isinstance(tree, exp.Neg):
        if isinstance(tree.this, exp.Literal) and not tree.this.is_string:
            return _literal(f"-{tree.this.this}")
        return _negative(numeric_literal(tree.this))
    if isinstance(tree, exp.Literal) and not tree.is_string:
        return _literal(str(tree.this))
    found = cast(tree)
    if found is None or kind(found[1].sql) not in ("integer", "decimal", "double"):
        return None
    inner, domain = found
    text = str(inner.this) if isinstance(inner, exp.Literal) and inner.is_string else _text(numeric_literal(inner))
    try:
        value = domain.read(text) if text is not None else None
    except ValueError:
        return None
    if not isinstance(value, int | Decimal | float):
        return None
    return NumericLiteral(value, domain.sql, compared_digits(domain.sql))


def whole_number(tree: exp.Expr) -> int | None:
    """The whole number that is written out, without a sign; None for anything else."""
    is_whole = isinstance(tree, exp.Literal) and not tree.is_string and str(tree.this).isdigit()
    return int(tree.this) if is_whole else None


def _literal(text: str) -> NumericLiteral | None:
    """The number that is written so; None where Spark has none, of more digits than a DECIMAL."""
    bare = text.removeprefix("-")
    if _DOUBLE.fullmatch(bare):
        return NumericLiteral(float(text), DOUBLE)
    if not _WHOLE.fullmatch(bare) and not _DECIMAL.fullmatch(bare):
        return None
    value = Decimal(text)
    scale = max(0, -int(value.as_tuple().exponent))
    precision = max(len(value.as_tuple().digits), scale)
    try:
        type_: SqlType = DecimalType(precision, scale)
    except ValueError:
        return None
    number: int | Decimal = value
    if _WHOLE.fullmatch(bare):
        narrow = [of for of in (INT, BIGINT) if isinstance(of, IntegerType) and of.low <= value <= of.high]
        number, type_ = (int(value), narrow[0]) if narrow else (value, type_)
    return NumericLiteral(number, type_, (precision - scale, scale))


def _negative(of: NumericLiteral | None) -> NumericLiteral | None:
    """What minus makes of it, which is no literal any more; None where there is no such number."""
    if of is None or (isinstance(of.type, IntegerType) and of.value == of.type.low):
        return None
    return NumericLiteral(-of.value, of.type, compared_digits(of.type))


def _text(of: NumericLiteral | None) -> str | None:
    return None if of is None else format(of.value, "f") if isinstance(of.value, Decimal) else str(of.value)
