"""Arithmetic and functions of numbers under ANSI rules: types, overflow, division by zero, digits of decimals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from sqlglot import exp

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.expressions.dialect import Holding, any_in, call_name
from xmlstream.operators.expressions.operations.casts import (
    BITS,
    WIDEST,
    as_decimal,
    cast,
    common_type,
    is_rounded,
    same_type,
)
from xmlstream.operators.expressions.operations.part import (
    VOID,
    Part,
    Scalar,
    chained,
    combined,
    error,
    joined,
    number,
    require,
)
from xmlstream.operators.expressions.operations.spark_type import NotDefined, NotProven, in_duckdb, read_type, unlike
from xmlstream.punct_ns.numeric_type import DecimalType
from xmlstream.punct_ns.slices import own
from xmlstream.punct_ns.sql_type import FLOATING, INTEGERS, NUMBERS, TEMPORAL, SqlType

BIGINT, DOUBLE = map(read_type, ("BIGINT", "DOUBLE"))


_DIVISION = error("DIVIDE_BY_ZERO", "Division by zero.")
_REMAINDER = error("REMAINDER_BY_ZERO", "Remainder by zero.")


def arithmetic(operator: str, left: Part, right: Part, zone: str) -> Part:
    """The result of `+`, `-`, `*`, `/`, `%` or `DIV` on two numbers.

    Raises:
        NotProven: These types are not proven for the operator.
    """
    if "STRING" in (left.type.name, right.type.name):
        left, right = same_type([left, right], operator, zone)
    kinds = {left.type.kind, right.type.kind}
    # Spark's NULL divided by a DECIMAL is a DOUBLE.
    if not kinds <= {*NUMBERS, "VOID"} or kinds == {"VOID"} or (operator == "/" and kinds == {"VOID", "DECIMAL"}):
        raise _unlike(operator, left.type, right.type)
    if "DECIMAL" in kinds and not kinds & set(FLOATING):
        return _of_decimals(operator, *_decimals(left, right, operator))
    whole = not kinds & set(FLOATING)
    type_ = common_type([left.type, right.type])
    if operator == "DIV" and whole:
        type_ = BIGINT
    if operator == "/":
        type_ = DOUBLE
    if type_ is None or (operator == "DIV" and not whole):
        raise NotDefined(f"{left.type.name} {operator} {right.type.name}")
    # A literal stays one, so that a division by 2 is known to raise nothing.
    left, right = cast(left, type_, zone), replace(cast(right, type_, zone), constant=right.constant)
    if operator in ("/", "DIV", "%"):
        return _division(operator, left, right, type_)
    sql = f"({left.sql} {operator} {right.sql})"
    return combined(sql, type_, [left, right], raises=whole)


def _unlike(operator: str, left: SqlType, right: SqlType) -> NotProven:
    """The error for operands that are not both numbers: Spark moves days, and subtracts moments."""
    what, kinds = f"{left.name} {operator} {right.name}", {left.kind, right.kind}
    moves = (operator == "+" and "DATE" in kinds) or (operator == "-" and left.kind == "DATE")
    subtracts = operator == "-" and bool(kinds & set(TEMPORAL)) and kinds <= {*TEMPORAL, "STRING"}
    if "VOID" in kinds or subtracts or (moves and kinds <= {"DATE", *INTEGERS[:3]} and kinds != {"DATE"}):
        return NotProven(what)
    moment = "write ts + INTERVAL 5 MINUTES" if kinds & set(TEMPORAL) and kinds & set(NUMBERS) else None
    return NotDefined(what, "texts are joined by ||, as in a || b" if operator == "+" and "STRING" in kinds else moment)


def _divisor(left: Part, right: Part, operator: str) -> str:
    """The divisor, with an error where it is zero; where the dividend is null, Spark does not look at it."""
    raised = _REMAINDER if operator == "%" else _DIVISION
    return right.sql if _is_sure(right) else _unless_zero(left, right, right.sql, raised)


def _unless_zero(left: Part, right: Part, sql: str, raised: str = _DIVISION) -> str:
    looked_at = f" AND {left.sql} IS NOT NULL" if left.nullable else ""
    return f"CASE WHEN {right.sql} = 0{looked_at} THEN {raised} ELSE {sql} END"


def _is_sure(right: Part) -> bool:
    """Whether no division by it fails: a literal but zero, and of integers but -1, since the least one overflows."""
    by = 0.0 if right.constant is None else float(right.constant)
    return by > 0 or (by < 0 and right.type.name not in INTEGERS)


def _division(operator: str, left: Part, right: Part, type_: SqlType) -> Part:
    sql = f"({left.sql} {'//' if operator == 'DIV' else operator} {_divisor(left, right, operator)})"
    if operator == "%" and type_.name in INTEGERS and not _is_sure(right):  # In DuckDB the least one by -1 overflows.
        sql = f"CAST(CASE WHEN {right.sql} = -1 THEN {left.sql} - {left.sql} ELSE {sql} END AS {in_duckdb(type_)})"
    return _reversed(sql, type_, left, right, raises=not _is_sure(right))


def _reversed(sql: str, type_: SqlType, left: Part, right: Part, *, raises: bool) -> Part:
    """A quotient: Spark computes the divisor first, and the dividend only if that is not null."""
    return combined(sql, type_, [right, left], seems=True, raises=raises)


def _decimals(left: Part, right: Part, operator: str) -> tuple[Part, Part]:
    """Both operands as decimals: an integer literal has the digits that are written, any other those of its type."""
    sides = []
    for part in beside_decimals([left, right], operator):
        if part.type.same(VOID):
            sides.append(cast(part, right.type if part is left else left.type, "UTC"))
        else:
            sides.append(part if part.type.kind == "DECIMAL" else cast(part, as_decimal(part.type), "UTC"))
    return sides[0], sides[1]


def beside_decimals(parts: Sequence[Part], operator: str) -> list[Part]:
    """The operands of an operator; a whole literal beside a DECIMAL becomes one of the digits that are written.

    Raises:
        NotProven: A literal has a suffix, which the reader does not tell from a CAST.
    """
    if not any(part.type.kind == "DECIMAL" for part in parts):
        return list(parts)
    if any(part.typed and part.type.name in INTEGERS for part in parts):
        raise NotProven(f"{operator} of a DECIMAL and a literal with a suffix or cast")
    return [_of_written_digits(part) if part.type.name in INTEGERS else part for part in parts]


def _of_written_digits(part: Part) -> Part:
    # Spark's analyser takes the cast of the literal to be null somewhere.
    return part if part.constant is None else replace(number(f"{part.constant}."), nullable=True, seems=True)


def _of_decimals(operator: str, left: Part, right: Part) -> Part:
    (p1, s1), (p2, s2) = left.type.digits, right.type.digits
    scale = max(s1, s2)
    match operator:
        case "+" | "-":
            precision = max(p1 - s1, p2 - s2) + scale + 1
        case "*":
            precision, scale = p1 + p2 + 1, s1 + s2
        case "/":
            return _decimal_quotient(left, right)
        case "%":
            precision = min(p1 - s1, p2 - s2) + scale
            return _decimal_remainder(left, right, precision, scale)
        case _:
            raise NotProven(f"{left.type.name} {operator} {right.type.name}")
    if precision > WIDEST:
        raise NotProven(f"{left.type.name} {operator} {right.type.name}")
    type_ = DecimalType(precision, scale)
    if operator == "*":
        # DuckDB multiplies in 64 bits what both have in them.
        wide = f"CAST({left.sql} AS DECIMAL(19,{s1}))" if max(p1, p2) < 19 <= p1 + p2 else left.sql
        sql = f"CAST(({wide} * {right.sql}) AS {type_.name})"
        return combined(sql, type_, [left, right])
    # DuckDB adds in the wider of the two types, which may be too narrow for the sum.
    sql = f"(CAST({left.sql} AS {type_.name}) {operator} CAST({right.sql} AS {type_.name}))"
    return combined(f"CAST({sql} AS {type_.name})", type_, [left, right])


def _decimal_remainder(left: Part, right: Part, precision: int, scale: int) -> Part:
    wide = max(left.type.digits[0] - left.type.digits[1], right.type.digits[0] - right.type.digits[1]) + scale
    if wide > WIDEST or precision < 1:
        raise NotProven(f"{left.type.name} % {right.type.name}")
    type_ = DecimalType(precision, scale)
    one, other = (f"CAST({part.sql} AS DECIMAL({wide},{scale}))" for part in (left, right))
    by = other if _is_sure(right) else _unless_zero(left, right, other, _REMAINDER)
    return _reversed(f"CAST(({one} % {by}) AS {type_.name})", type_, left, right, raises=not _is_sure(right))


def _decimal_quotient(left: Part, right: Part) -> Part:
    """Spark rounds half up to the digits of the result's type; here in integers, as far as these hold the dividend."""
    (p1, s1), (p2, s2) = left.type.digits, right.type.digits
    whole = p1 - s1 + s2
    scale = max(6, s1 + p2 + 1)
    precision = whole + scale
    if precision > WIDEST:
        scale = max(WIDEST - whole, min(scale, 6))
        precision = WIDEST
    shift = scale + s2 - s1
    if p1 + shift > 37 or whole + scale > WIDEST or p2 > 36:
        raise NotProven(f"{left.type.name} / {right.type.name}")
    type_ = DecimalType(precision, scale)
    # The units of the dividend, shifted so that the quotient of integers is in units of the result.
    other = _units(right.sql) if _is_sure(right) else _unless_zero(left, right, _units(right.sql))
    sql = rounded(left.sql, shift, other, f"(sign({left.sql}) * sign({right.sql}))", type_)
    return _reversed(sql, type_, left, right, raises=not _is_sure(right))


def rounded(decimal: str, shift: int, divisor: str, sign: str, type_: SqlType) -> str:
    """A decimal, shifted by so many digits, by an integer, rounded half up to the digits of the result's type."""
    one = f"({_units(decimal)} * {10**shift}::HUGEINT)"
    return _from_units(f"((2 * abs({one}) + abs({divisor})) // (2 * abs({divisor})) * {sign})", type_)


def _units(decimal: str) -> str:
    """A decimal as an integer: the number of its last digit's units."""
    return f"CAST(replace(CAST({decimal} AS VARCHAR), '.', '') AS HUGEINT)"


def _from_units(units: str, type_: SqlType) -> str:
    """A decimal of so many units, by way of a text: no other way gives 38 digits exactly."""
    scale = type_.digits[1]
    if scale == 0:
        return f"CAST({units} AS {type_.name})"
    whole, rest = f"({units} // {10**scale}::HUGEINT)", f"({units} % {10**scale}::HUGEINT)"
    sign = f"CASE WHEN {units} < 0 THEN '-' ELSE '' END"
    written = f"{sign} || CAST(abs({whole}) AS VARCHAR) || '.' || lpad(CAST(abs({rest}) AS VARCHAR), {scale}, '0')"
    return f"CAST({written} AS {type_.name})"


def in_any_order(operator: str, parts: Sequence[Part], type_: SqlType) -> Part:
    """The sum, or the product, of integers of a type, and literals, which overflows only where the result does.

    In some order Spark's overflows, too; in which it computes depends on the plan around it.

    Raises:
        NotProven: They are not of one type, or are so many that they leave 128 bits.
    """
    bits = (BITS.get(type_.name, 0) - 1) * (len(parts) if operator == "*" else 1)
    if (
        any(part.type.name != type_.name and part.whole is None for part in parts)
        or type_.name not in ("INT", "BIGINT")
        or bits > 127
    ):
        raise NotProven(f"{type_.name} {operator} several constants")
    whole = chained(f" {operator} ", [f"CAST({part.sql} AS HUGEINT)" for part in parts])
    return combined(f"CAST(({whole}) AS {in_duckdb(type_)})", type_, parts, raises=True)


def signed(part: Part, sign: str) -> Part:
    """The number with the other sign, `-`, or without one, `abs`; the least integer overflows.

    Raises:
        NotProven: It is not a number.
    """
    if part.type.kind not in NUMBERS or is_rounded(part.type):
        raise unlike(f"{sign} of {part.type.name}", [part.type.kind], NUMBERS)
    return part.computed(f"({sign}({part.sql}))", raises=part.type.name in INTEGERS)


def modulus(left: Part, right: Part, zone: str) -> Part:
    """`pmod` by an integer literal above zero: the remainder that is not negative."""
    if (right.whole or 0) <= 0 or left.type.name not in INTEGERS:
        raise unlike(f"pmod({left.type.name}, {right.type.name}) by no positive literal", [left.type.kind], NUMBERS)
    type_ = common_type([left.type, right.type])
    assert type_ is not None
    one, by = cast(left, type_, zone), cast(right, type_, zone)
    rest = f"({one.sql} % {by.sql})"
    sql = f"CASE WHEN {rest} < 0 THEN {rest} + {by.sql} ELSE {rest} END"
    return combined(sql, type_, [one, by], seems=True)


@dataclass(frozen=True, slots=True)
class _Operands:
    """The operands of a sum of sums, or of a product of products.

    Attributes:
        number: How many there are.
        constants: How many of them are constants.
        whole: The sum, or the product, of the constants; None if one is no literal without a sign.
        tries: Whether one is a function that tries.
    """

    number: int
    constants: int
    whole: int | None
    tries: bool


class Reordering:
    """Sums and products that Spark computes in another order, which overflow elsewhere: those of several constants.

    One operand and literals without a sign overflow in any order, or in none. Spark also puts together
    `1 + try_add(n, 1)`, whose overflow then raises an error. What is known of a tree is found once: a chain has as many
    sums as terms.
    """

    def __init__(self) -> None:
        self._of: dict[int, tuple[exp.Expr, _Operands]] = {}
        self._has_attribute: Holding = {}

    def is_moved(self, tree: exp.Binary, type_: SqlType) -> bool:
        """Whether Spark computes a tree of that type in another order, which matters.

        Raises:
            NotProven: One of its operands is a function that tries.
        """
        found = self._operands(tree, type(tree))
        if found.tries:
            raise NotProven(f"{tree.key.upper()} of a function that tries")
        agrees = found.number == found.constants + 1 and found.whole is not None and _agree(found.whole, tree, type_)
        return 1 < found.constants < found.number and not agrees

    def operands(self, tree: exp.Binary) -> list[exp.Expr]:
        """The operands of a sum of sums, or of a product of products."""
        found, waiting = list[exp.Expr](), [tree.unnest()]
        while waiting:
            each = waiting.pop()
            if isinstance(each, type(tree)):
                waiting += [each.expression.unnest(), each.this.unnest()]
            else:
                found.append(each)
        return found

    def _operands(self, tree: exp.Expr, kind: type[exp.Expr]) -> _Operands:
        if not isinstance(tree, kind):
            return self._operand(tree)
        if id(tree) not in self._of:
            one, other = (self._operands(side.unnest(), kind) for side in (tree.this, tree.expression))
            whole = None if one.whole is None or other.whole is None else _together(one, other, is_sum=kind is exp.Add)
            found = _Operands(
                one.number + other.number, one.constants + other.constants, whole, one.tries or other.tries
            )
            self._of[id(tree)] = tree, found
        return self._of[id(tree)][1]

    def _operand(self, tree: exp.Expr) -> _Operands:
        is_constant = not any_in(tree, _is_attribute, self._has_attribute)
        is_plain = isinstance(tree, exp.Literal) and not tree.is_string and str(tree.this).isdigit()
        whole = int(tree.this) if is_plain else None if is_constant else 0
        return _Operands(1, int(is_constant), whole, call_name(tree).startswith("try_"))


_VALUES = own("value")
"""How the names begin that stand for literals."""


def _is_attribute(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Column) and not tree.name.startswith(_VALUES)


def _together(one: _Operands, other: _Operands, *, is_sum: bool) -> int:
    """The sum, or the product, of constants; beyond all types one is as good as the other."""
    numbers = [each.whole or 0 for each in (one, other) if each.constants]
    return min(sum(numbers) if is_sum else prod(numbers), 1 << 64)


def _agree(whole: int, tree: exp.Binary, type_: SqlType) -> bool:
    """Whether literals move a sum or a product in one direction, and are together a value of the type."""
    return whole < 2 ** (BITS[type_.name] - 1) and (isinstance(tree, exp.Add) or whole != 0)


def _abs(name: str, parts: Sequence[Part], zone: str) -> Part:
    require("abs", parts, NUMBERS)
    return signed(parts[0], "abs")


def _remainder(name: str, parts: Sequence[Part], zone: str) -> Part:
    if len(parts) != 2:
        raise NotProven(f"{name} of {len(parts)} arguments")
    left, right = parts
    return modulus(left, right, zone) if name == "pmod" else arithmetic("%", left, right, zone)


def _tried(name: str, parts: Sequence[Part], zone: str) -> Part:
    operator = {"try_add": "+", "try_subtract": "-", "try_multiply": "*"}[name]
    require(name, parts, INTEGERS, INTEGERS)
    done = arithmetic(operator, parts[0], parts[1], zone)
    if any(part.raises for part in parts):
        raise NotProven(f"{name} with an operand that can raise an error")
    # DuckDB computes what stands twice in a SELECT once, outside of TRY, so that `TRY(n + 1)` may be an error.
    one, other = (f"CAST({part.sql} AS HUGEINT)" for part in parts)
    sql = f"TRY_CAST(({one} {operator} {other}) AS {in_duckdb(done.type)})"
    return joined(sql, done.type, parts, nullable=True)


def _round(name: str, parts: Sequence[Part], zone: str) -> Part:
    require(name, parts, NUMBERS, *[("INT",)] * (len(parts) - 1))
    of, places = parts[0], parts[1].whole if len(parts) == 2 else 0
    if places is None or len(parts) > 2 or (places and of.type.name in FLOATING):
        raise NotProven(f"round({of.type.name}) to these places")
    if of.type.name in INTEGERS:
        return of.computed(of.sql, seems=True)
    if of.type.name in FLOATING:  # A zero of Spark's has no sign.
        return of.computed(f"(round({of.sql}) + 0)", seems=True)
    precision, scale = of.type.digits
    after = min(places, scale)
    whole = precision - scale + 1 + after
    if whole > 38:
        raise NotProven(f"round({of.type.name})")
    type_ = DecimalType(whole, after)
    return of.computed(f"CAST({of.sql} AS {type_.name})", type_, seems=True)


def _floor_or_ceil(name: str, parts: Sequence[Part], zone: str) -> Part:
    require(name, parts, NUMBERS)
    of = parts[0]
    if of.type.kind == "DECIMAL":
        precision, scale = of.type.digits
        if is_rounded(of.type):
            raise NotProven(f"{name}({of.type.name})")
        type_ = DecimalType(precision - scale + 1, 0) if scale else of.type
        return of.computed(f"CAST({name.removesuffix('ing')}({of.sql}) AS {type_.name})", type_, seems=True)
    if of.type.name in INTEGERS:
        return of.computed(f"CAST({of.sql} AS BIGINT)", BIGINT, seems=True)
    rounded = f"{name.removesuffix('ing')}(CAST({of.sql} AS DOUBLE))"
    within = f"{of.sql} IS NULL OR {of.sql} BETWEEN -9223372036854775808::DOUBLE AND 9223372036854774784::DOUBLE"
    beyond = error("ARITHMETIC_OVERFLOW", f"{name} is beyond BIGINT.")
    sql = f"CASE WHEN isnan({of.sql}) THEN 0 WHEN {within} THEN CAST({rounded} AS BIGINT) ELSE {beyond} END"
    return of.computed(sql, BIGINT, seems=True, raises=True)


def _sqrt(name: str, parts: Sequence[Part], zone: str) -> Part:
    require(name, parts, NUMBERS)
    of = cast(parts[0], DOUBLE, zone)
    return of.computed(f"CASE WHEN {of.sql} < 0 THEN 'NaN'::DOUBLE ELSE sqrt({of.sql}) END", seems=True)


OF_NUMBERS: Mapping[str, Scalar] = {
    "abs": Scalar(_abs),
    "round": Scalar(_round),
    "sqrt": Scalar(_sqrt),
    **dict.fromkeys(("ceil", "ceiling", "floor"), Scalar(_floor_or_ceil, "coarsely")),
    **dict.fromkeys(("mod", "pmod"), Scalar(_remainder)),
    **dict.fromkeys(("try_add", "try_multiply", "try_subtract"), Scalar(_tried)),
}
"""The proven functions of numbers, by name."""
