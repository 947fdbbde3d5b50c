"""Type rules of Spark SQL: result types of arithmetic, types in which numbers compare, casts without loss; literals.

`punct_ns` describes the types themselves: class, digits, order. This module describes their use in expressions, and the
value, type and DECIMAL digits of a numeric constant in SQL. A copy of an attribute in a wider type, cast without loss,
has the attribute's domain.

*The type* of an expression is Spark's, for the forms in which bounds of joins are written, as far as it follows from
the domains of the attributes. *Nullability*: Spark's analyser treats more expressions as nullable than are: `a DIV
2`, which is an error under ANSI rules where it would be null, and `date_trunc('HOUR', ts)`, where a text determines
the operation. An expression that is never null has no null group that would have to be closed. Most operations are
null if an operand is; conditions, choices and defaults less often. Treated as nullable are casts that give null for
some values, such as NaN to DECIMAL, functions that are not listed here, and values composed from parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypeAlias

from sqlglot import exp

from xmlstream.operators.expressions.dialect import position_of, type_text
from xmlstream.operators.expressions.operations.forms import known
from xmlstream.punct_ns.domain import TYPES, Domain, sql_type
from xmlstream.punct_ns.numeric_type import DecimalType, FloatType, IntegerType
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.sql_type import BooleanType, SqlType, StringType
from xmlstream.punct_ns.temporal_type import DateType, TimestampType

TypeKind: TypeAlias = Literal[
    "integer", "decimal", "float", "double", "date", "timestamp", "timestamp_ntz", "string", "boolean", "other"
]
"""The kinds of types that operators and functions distinguish; all integers are one kind, as are all decimals."""

FLOATING: frozenset[TypeKind] = frozenset(("float", "double"))
NUMERIC: frozenset[TypeKind] = FLOATING | {"integer", "decimal"}
MOMENTS: frozenset[TypeKind] = frozenset(("timestamp", "timestamp_ntz"))
TEMPORAL: frozenset[TypeKind] = MOMENTS | {"date"}

BOOLEAN, STRING, DOUBLE, INT, BIGINT = map(sql_type, ("BOOLEAN", "STRING", "DOUBLE", "INT", "BIGINT"))
DATE, TIMESTAMP = map(sql_type, ("DATE", "TIMESTAMP"))
VOID = sql_type("VOID")
"""The type of NULL."""

WIDEST = 38
"""The most digits of a DECIMAL; beyond them Spark rounds before it compares, or fails."""

_COMPARED_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
"""The digits of the DECIMAL that Spark casts an integer to, to compare it with a DECIMAL, by the integer's bits."""


def kind(type_: SqlType) -> TypeKind:
    """The kind of a type.

    >>> from xmlstream.punct_ns.domain import sql_type
    >>> [kind(sql_type(name)) for name in ("TINYINT", "DECIMAL(5,2)", "FLOAT", "TIMESTAMP", "ARRAY<INT>")]
    ['integer', 'decimal', 'float', 'timestamp', 'other']
    """
    match type_:
        case FloatType(bits=bits):
            return "double" if bits == 64 else "float"
        case TimestampType(zoned=zoned):
            return "timestamp" if zoned else "timestamp_ntz"
    return _KINDS.get(type(type_), "other")


_KINDS: dict[type[SqlType], TypeKind] = {
    IntegerType: "integer",
    DecimalType: "decimal",
    DateType: "date",
    StringType: "string",
    BooleanType: "boolean",
}


def type_name(type_: SqlType) -> str:
    """The name in Spark SQL of a type with an order.

    >>> type_name(sql_type("DECIMAL(5,2)")), type_name(sql_type("TIMESTAMP"))
    ('DECIMAL(5,2)', 'TIMESTAMP')
    """
    if isinstance(type_, DecimalType):
        return f"DECIMAL({type_.precision},{type_.scale})"
    return next(name for name, known in TYPES.items() if known == type_)


def result_kind(operation: type[exp.Binary], left: TypeKind, right: TypeKind) -> TypeKind:
    """The kind of the result of arithmetic on two numbers; the quotient of integers is a DOUBLE.

    >>> result_kind(exp.Add, "integer", "decimal"), result_kind(exp.Div, "integer", "integer")
    ('decimal', 'double')
    """
    both = {left, right}
    if operation is exp.IntDiv:
        return "integer"
    if both & FLOATING or (operation is exp.Div and both == {"integer"}):
        return "double"
    return "decimal" if "decimal" in both else "integer"


def compared_digits(type_: SqlType) -> tuple[int, int] | None:
    """The digits before and after the point of the DECIMAL in which Spark compares an exact number; else None.

    >>> from xmlstream.punct_ns.domain import sql_type
    >>> compared_digits(sql_type("BIGINT")), compared_digits(sql_type("DECIMAL(5,2)")), compared_digits(DOUBLE)
    ((20, 0), (3, 2), None)
    """
    match type_:
        case IntegerType(bits=bits):
            return _COMPARED_DIGITS[bits], 0
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
    Domain(type='BIGINT', nullable=True, low=0, high=None)
    >>> lossless_cast(Domain("BIGINT"), "DOUBLE") is None
    True
    """
    target = Domain(wider, domain.nullable)
    if not loses_nothing(domain.sql, target.sql):
        return None
    low, high = (None if end is None else target.normal(end) for end in (domain.low, domain.high))
    return Domain(target.type, domain.nullable, low, high)


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
        case IntegerType(digits=digits), DecimalType(precision, scale):
            return digits <= precision - scale
        case DecimalType(digits, after_point), DecimalType(precision, scale):
            return digits - after_point <= precision - scale and after_point <= scale
    return False


_WHOLE = re.compile(r"\d+")
_DECIMAL = re.compile(r"(?:\d+\.\d*|\.\d+)")
_DOUBLE = re.compile(r"(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+")


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
    if found is None or kind(found[1].sql) not in ("integer", "decimal", "double"):
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
    """The negative number; None if its type does not hold it."""
    if of is None or (isinstance(of.type, IntegerType) and of.value == of.type.low):
        return None
    return NumericLiteral(-of.value, of.type, compared_digits(of.type))


def value_type(tree: exp.Expr, schema: Schema) -> SqlType | None:
    """The type of the expression's values; None if that is not known.

    >>> from xmlstream.operators.expressions.dialect import expression
    >>> schema = Schema.of(hour="SMALLINT", at="TIMESTAMP")
    >>> texts = ("hour + 1", "at - INTERVAL 5 MINUTES", "CAST(hour AS BIGINT) * 2", "hour / 2")
    >>> [type_name(found) for text in texts if (found := value_type(expression(text), schema))]
    ['INT', 'TIMESTAMP', 'BIGINT', 'DOUBLE']
    >>> value_type(expression("upper(hour)"), schema)
    """
    if (literal := numeric_literal(tree)) is not None:
        return literal.type
    if (found := known(tree, schema)) is not None:
        return Domain(found.type.name).sql
    given = cast(tree.unnest())
    return None if given is None else given[1].sql


_OPERATIONS = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE,
    exp.And, exp.Or, exp.Not, exp.DPipe, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot,
)  # fmt: skip
"""Operations that are null only if an operand is; under ANSI rules a division by zero is an error."""

_FUNCTIONS = frozenset((
    "abs", "ceil", "ceiling", "floor", "sign", "signum", "bit_count", "mod", "pmod", "exp", "hypot", "unix_seconds",
    "unix_millis", "unix_micros", "unix_date", "timestamp_seconds", "timestamp_millis", "timestamp_micros",
    "date_from_unix_date", "year", "quarter", "month", "day", "dayofmonth", "dayofweek", "weekday", "dayofyear",
    "weekofyear", "hour", "minute", "second", "date_add", "date_sub", "datediff", "add_months", "last_day", "upper",
    "lower", "ucase", "lcase", "length", "char_length", "character_length", "ltrim", "rtrim", "reverse", "concat",
    "repeat", "startswith", "endswith", "md5", "crc32", "hex",
))  # fmt: skip
"""Functions of numbers, moments and texts that are null only if an argument is."""

DAYS = frozenset(("WEEK", "MONTH", "MON", "MM", "QUARTER", "YEAR", "YYYY", "YY"))
INSTANTS = DAYS | {"MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "DD"}
_TRUNCATED: Mapping[str, frozenset[str]] = {"date_trunc": INSTANTS, "trunc": DAYS}
"""The units to which moments can be truncated; for any other the result is null."""


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
    entry = known(tree, schema)
    return (entry is not None and not entry.nullable) or _is_never(tree, schema)


def _is_never(tree: exp.Expr, schema: Schema) -> bool:
    """Whether the expression is null for no tuple since its operands are, whatever Spark's analyser takes it for."""
    tree = tree.unnest()
    match tree:
        case exp.Column() if (at := position_of(tree, schema)) is not None:
            domain = schema[at].domain
            return not domain.nullable and not domain.opaque
        case exp.Literal() | exp.Boolean() | exp.Interval(this=exp.Literal()) | exp.Is() | exp.NullSafeEQ():
            return True
        case exp.Cast():
            return _is_cast(tree, schema)
        case exp.Between():
            return _all((tree.this, tree.args["low"], tree.args["high"]), schema)
        case exp.In():
            return bool(tree.expressions) and _all((tree.this, *tree.expressions), schema)
        case exp.Like():
            return _all((tree.this, tree.expression), schema)
        case exp.Case(args={"ifs": ifs, "default": exp.Expr() as default}):
            return _all((*(branch.args["true"] for branch in ifs), default), schema)
        case exp.Anonymous(this=str(name), expressions=arguments):
            return _is_call(name.lower(), arguments, schema)
    return isinstance(tree, _OPERATIONS) and _all(
        (side for side in (tree.this, tree.args.get("expression")) if side is not None), schema
    )


def _all(trees: Iterable[exp.Expr], schema: Schema) -> bool:
    return all(_is_never(tree, schema) for tree in trees)


def _any(trees: Iterable[exp.Expr], schema: Schema) -> bool:
    return any(_is_never(tree, schema) for tree in trees)


_CHOICES: Mapping[str, Callable[[Sequence[exp.Expr], Schema], bool]] = {
    **dict.fromkeys(("if", "iff", "nvl2"), lambda of, schema: len(of) == 3 and _all(of[1:], schema)),
    **dict.fromkeys(("coalesce", "nvl", "ifnull", "least", "greatest"), _any),
    **dict.fromkeys(("isnull", "isnotnull", "equal_null", "zeroifnull"), lambda _, __: True),
}


def _is_call(name: str, arguments: Sequence[exp.Expr], schema: Schema) -> bool:
    if name in _CHOICES:
        return _CHOICES[name](arguments, schema)
    if name in _TRUNCATED and len(arguments) == 2:
        unit, of = arguments if name == "date_trunc" else reversed(arguments)
        is_unit = isinstance(unit, exp.Literal) and str(unit.this).upper() in _TRUNCATED[name]
        return is_unit and _is_never(of, schema)
    if name in ("date_format", "to_date", "date") and len(arguments) == (2 if name == "date_format" else 1):
        # A text may name no day.
        return _kind(arguments[0], schema) in MOMENTS | {"date"} and _all(arguments, schema)
    return name in _FUNCTIONS and _all(arguments, schema)


def _kind(tree: exp.Expr, schema: Schema) -> TypeKind:
    found = value_type(tree.unnest(), schema)
    return "other" if found is None else kind(found)


def _is_cast(tree: exp.Cast, schema: Schema) -> bool:
    """Under ANSI rules a failing cast is an error, but NaN and infinity become null as a DECIMAL or a moment."""
    found = cast(tree)
    if found is None or not _is_never(found[0], schema):
        return False
    target, of = kind(found[1].sql), _kind(found[0], schema)
    if target in ("decimal", *MOMENTS):
        is_text = isinstance(found[0], exp.Literal) and found[0].is_string
        return is_text or of in (*(NUMERIC - FLOATING), *MOMENTS, "date", "string")
    return target != "other"
