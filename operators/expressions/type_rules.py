"""Type rules of Spark SQL: result types of arithmetic, types in which numbers compare, casts without loss; literals.

`punct_ns` describes the types themselves: class, digits, order. This module describes their use in expressions, and the
value, type and DECIMAL digits of a numeric constant in SQL. A copy of an attribute in a wider type, cast without loss,
has the attribute's domain.

The type of an expression, and whether it is ever null, stand in the table of operations. Spark's analyser treats more
expressions as nullable than are: `a DIV 2`, which is an error under ANSI rules where it would be null, and
`date_trunc('HOUR', ts)`, where a text determines the operation. An expression that is never null has no null group that
would have to be closed.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from sqlglot import exp

from xmlstream.dataclasses import dataclass
from xmlstream.operators.expressions.dialect import position_of, type_text
from xmlstream.operators.expressions.operations.casts import as_decimal
from xmlstream.operators.expressions.operations.forms import known
from xmlstream.operators.expressions.operations.part import number
from xmlstream.operators.expressions.operations.spark_type import NotProven
from xmlstream.punct_ns.domain import Domain, sql_type
from xmlstream.punct_ns.numeric_type import DecimalType, FloatType, IntegerType
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.sql_type import INTEGERS, SqlType

BOOLEAN, STRING, DOUBLE, INT, BIGINT = map(sql_type, ("BOOLEAN", "STRING", "DOUBLE", "INT", "BIGINT"))
DATE, TIMESTAMP = map(sql_type, ("DATE", "TIMESTAMP"))
VOID = sql_type("VOID")
"""The type of NULL."""

WIDEST = 38
"""The most digits of a DECIMAL; beyond them Spark rounds before it compares, or fails."""


def compared_digits(type_: SqlType) -> tuple[int, int] | None:
    """The digits before and after the point of the DECIMAL in which Spark compares an exact number; else None.

    >>> from xmlstream.punct_ns.domain import sql_type
    >>> compared_digits(sql_type("BIGINT")), compared_digits(sql_type("DECIMAL(5,2)")), compared_digits(DOUBLE)
    ((20, 0), (3, 2), None)
    """
    match type_:
        case IntegerType():
            return as_decimal(type_).digits
        case DecimalType(precision, scale):
            return precision - scale, scale
    return None


def fit_one_decimal(digits: Iterable[tuple[int, int]]) -> bool:
    """Whether one DECIMAL holds all these digits before and after the point, so that nothing is rounded."""
    pairs = list(digits)
    return max(before for before, _ in pairs) + max(after for _, after in pairs) <= WIDEST


def cast(tree: exp.Expr | None) -> tuple[exp.Expr, Domain] | None:
    """The operand and the target type of a CAST; None for anything else, TRY_CAST included."""
    if not isinstance(tree, exp.Cast) or tree.args.get("safe") or tree.args.get("format"):
        return None
    try:
        return tree.this.unnest(), Domain(type_text(tree.to))
    except ValueError:
        return None


def lossless_cast(domain: Domain, wider: str) -> Domain | None:
    """The domain of an attribute cast to the wider type; None if the cast may change a value.

    Numbers only: a date as a timestamp depends on the time zone, and texts compare differently from numbers.

    >>> lossless_cast(Domain("INT", low=0), "BIGINT")
    Domain(type='BIGINT', nullable=True, low=0, high=None, listed=None)
    >>> lossless_cast(Domain("BIGINT"), "DOUBLE") is None
    True
    """
    target = Domain(wider, domain.nullable)
    if not loses_nothing(domain.sql, target.sql):
        return None
    low, high = (None if end is None else target.normal(end) for end in (domain.low, domain.high))
    return Domain(target.type, domain.nullable, low, high)


def lossless_common_type(one: SqlType, other: SqlType) -> SqlType | None:
    """The type in which Spark compares two types, if both lose nothing in it; None if they may.

    >>> from xmlstream.punct_ns.domain import sql_type
    >>> bigint, decimal = sql_type("BIGINT"), sql_type("DECIMAL(10,2)")
    >>> lossless_common_type(bigint, decimal).name, lossless_common_type(bigint, DOUBLE)
    ('DECIMAL(22,2)', None)
    """
    for type_, wider in ((one, other), (other, one)):
        if loses_nothing(type_, wider):
            return wider
    digits = [found for type_ in (one, other) if (found := compared_digits(type_)) is not None]
    if len(digits) < 2 or not fit_one_decimal(digits):
        return None
    scale = max(after for _, after in digits)
    return DecimalType(max(before for before, _ in digits) + scale, scale)


def loses_nothing(type_: SqlType, wider: SqlType) -> bool:
    """Whether a cast from one type to the other keeps every value.

    >>> from xmlstream.punct_ns.domain import sql_type
    >>> loses_nothing(sql_type("SMALLINT"), sql_type("FLOAT")), loses_nothing(sql_type("INT"), sql_type("DECIMAL(9,0)"))
    (True, False)
    """
    if type_ == wider:
        return True
    match type_, wider:
        case (IntegerType(bits=bits), IntegerType(bits=more)) | (FloatType(bits=bits), FloatType(bits=more)):
            return bits < more
        case IntegerType(bits=bits), FloatType(significand=exact):
            return bits <= exact
        case IntegerType(digits=(digits, _)), DecimalType(precision, scale):
            return digits <= precision - scale
        case DecimalType(digits, after_point), DecimalType(precision, scale):
            return digits - after_point <= precision - scale and after_point <= scale
    return False


@dataclass(frozen=True, slots=True)
class NumericLiteral:
    """A numeric constant.

    Attributes:
        value: The number.
        type: Its type in Spark.
        digits: The digits before and after the point of the DECIMAL in which it is compared with an exact number: those
            written in a literal, those of the type in a cast; None for a DOUBLE.
    """

    value: int | Decimal | float
    type: SqlType
    digits: tuple[int, int] | None = None

    @property
    def is_double(self) -> bool:
        """Whether Spark compares it as a DOUBLE."""
        return isinstance(self.type, FloatType)


def numeric_literal(tree: exp.Expr | None) -> NumericLiteral | None:
    """The number of a literal, with a sign or cast without loss; None for anything else, FLOAT included.

    >>> from xmlstream.operators.expressions.dialect import parsed
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
    if found is None or found[1].sql.kind not in (*INTEGERS, "DECIMAL", "DOUBLE"):
        return None
    inner, domain = found
    number = numeric_literal(inner)
    text = None if number is None else f"{number.value:f}" if isinstance(number.value, Decimal) else str(number.value)
    if isinstance(inner, exp.Literal) and inner.is_string:
        text = str(inner.this)
    try:
        value = domain.read(text) if text is not None else None
    except ValueError:
        return None
    if not isinstance(value, int | Decimal | float):
        return None
    return NumericLiteral(value, domain.sql, compared_digits(domain.sql))


def whole_number(tree: exp.Expr) -> int | None:
    """The number of a literal of digits alone; None for anything else."""
    is_whole = isinstance(tree, exp.Literal) and not tree.is_string and str(tree.this).isdigit()
    return int(tree.this) if is_whole else None


def _literal(text: str) -> NumericLiteral | None:
    """The number of a literal's text; None if it has more digits than a DECIMAL."""
    try:
        type_ = number(text).type
    except (NotProven, ValueError):
        return None
    if isinstance(type_, FloatType):
        return NumericLiteral(float(text), type_)
    value = Decimal(text)
    scale = max(0, -int(value.as_tuple().exponent))
    digits = max(len(value.as_tuple().digits), scale) - scale, scale
    return NumericLiteral(int(value) if isinstance(type_, IntegerType) else value, type_, digits)


def _negative(of: NumericLiteral | None) -> NumericLiteral | None:
    """The negative number; None if its type does not hold it."""
    if of is None or (isinstance(of.type, IntegerType) and of.value == of.type.low):
        return None
    return NumericLiteral(-of.value, of.type, compared_digits(of.type))


def value_type(tree: exp.Expr, schema: Schema) -> SqlType | None:
    """The type of the expression's values; None if that is not known.

    >>> from xmlstream.operators.expressions.dialect import expression
    >>> schema = Schema.of(hour="SMALLINT", at="TIMESTAMP")
    >>> texts = ("hour + 1", "at - INTERVAL 5 MINUTES", "CAST(hour AS BIGINT) * 2", "hour / 2")
    >>> [found.name for text in texts if (found := value_type(expression(text), schema))]
    ['INT', 'TIMESTAMP', 'BIGINT', 'DOUBLE']
    >>> value_type(expression("upper(hour)"), schema)
    """
    if (literal := numeric_literal(tree)) is not None:
        return literal.type
    if (found := known(tree, schema)) is not None:
        return sql_type(found.type.name)  # without what a name does not say: where nulls are inside
    given = cast(tree.unnest())
    return None if given is None else given[1].sql


def never_null(tree: exp.Expr, schema: Schema) -> bool:
    """Whether the expression is null for no tuple of the schema; False if that is not known.

    >>> from xmlstream.operators.expressions.dialect import expression
    >>> schema = Schema.parse("b INT NOT NULL, c INT, ts TIMESTAMP NOT NULL, t DOUBLE NOT NULL")
    >>> sure = ("b DIV 2", "date_trunc('HOUR', ts)", "coalesce(c, b)", "c IS NULL", "IF(c > 1, b, 0)")
    >>> [text for text in sure if not never_null(expression(text), schema)]
    []
    >>> unsure = ("c + b", "nullif(b, 1)", "CAST(t AS DECIMAL(9,2))", "CASE WHEN b > 1 THEN b END", "f(b)")
    >>> [text for text in unsure if never_null(expression(text), schema)]
    []
    """
    tree = tree.unnest()
    if (at := position_of(tree, schema)) is not None:
        domain = schema[at].domain
        return not domain.nullable and not domain.opaque
    found = known(tree, schema)
    return isinstance(tree, exp.Is | exp.NullSafeEQ) or (found is not None and not found.null)
