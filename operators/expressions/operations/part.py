"""A part of a translated expression: its text in DuckDB, and what Spark's analyser says of it.

Spark computes operands from left to right, and leaves out those that cannot matter any more: the right side of an AND
whose left side is false, or the right operand of a sum whose left one is null. DuckDB computes all of them, in an order
of its own. Where an operand can raise an error this shows, so that such operands are guarded by a CASE.

Literals are parts, too: numbers with their types; an interval is its length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from sqlglot import exp

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.expressions.dialect import call_name
from xmlstream.operators.expressions.duration import MICROSECONDS
from xmlstream.operators.expressions.operations.spark_type import NotProven, in_duckdb, read_type, unlike
from xmlstream.punct_ns.errors import left_to_spark
from xmlstream.punct_ns.numeric_type import DecimalType
from xmlstream.punct_ns.slices import own
from xmlstream.punct_ns.sql_type import INTEGERS, NamedType, SqlType
from xmlstream.punct_ns.type_names import sql_type

VOID = NamedType("VOID")
BIGINT, DOUBLE, INT = map(read_type, ("BIGINT", "DOUBLE", "INT"))


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an expression.

    Attributes:
        sql: DuckDB SQL, in brackets where an operator beside it could bind more tightly.
        type: Its type in Spark.
        nullable: Whether Spark's analyser takes it to be null somewhere.
        raises: Whether computing it in DuckDB can raise an error.
        refuses: Whether only DuckDB raises it, for values that are not proven to be equal.
        seems: Whether only Spark's analyser takes it to be null: it is an error there instead.
        constant: The text of a literal: a number or a string; None for anything else.
        typed: Whether it may be a literal with a suffix, or such a CAST: `2L` is read as CAST(2 AS BIGINT).
        rows: Whether it is an aggregate or a function over rows, or contains one.
        named: Long operands, by the names that stand for them in the text: see `in_full`.
    """

    sql: str
    type: SqlType
    nullable: bool
    raises: bool = False
    constant: str | None = None
    typed: bool = False
    rows: bool = False
    refuses: bool = False
    seems: bool = False
    named: tuple[tuple[str, str], ...] = ()

    @property
    def null(self) -> bool:
        """Whether it is null for some value."""
        return self.nullable and not self.seems

    @property
    def fails(self) -> bool:
        """Whether Spark raises an error for some value, under ANSI rules."""
        return self.raises and not self.refuses

    @property
    def whole(self) -> int | None:
        """The value of a literal integer without a sign; None for anything else."""
        is_whole = self.constant is not None and self.type.name in INTEGERS and self.constant.isdigit()
        return int(self.constant or 0) if is_whole else None

    @property
    def word(self) -> str | None:
        """The text of a literal string; None for anything else."""
        return self.constant if self.type.name == "STRING" else None

    def computed(
        self,
        sql: str,
        type_: SqlType | None = None,
        *,
        nullable: bool | None = None,
        seems: bool = False,
        raises: bool = False,
        refuses: bool = False,
    ) -> Part:
        """A part made of this one alone; see `joined`."""
        to = self.type if type_ is None else type_
        return in_full(joined(sql, to, [self], nullable=nullable, seems=seems, raises=raises, refuses=refuses))


Function: TypeAlias = Callable[[str, Sequence[Part], str], Part]
"""The result of the function of that name for its arguments, in a time zone."""

Rises: TypeAlias = Literal["exactly", "coarsely", "cut", "day", "written", "part", "moved", "bounded", "shown", "read"]
"""How a function rises with its argument: exactly if different values have different results, coarsely if not.

Or it is a moment cut to a unit, its day, the moment as a text, one of its parts, a day moved by a number of days, the
least or greatest of two values, or a moment as a zone's clocks show it, or of what they show;
`xmlstream.operators.expressions.monotone` has the conditions.
"""


@dataclass(frozen=True, slots=True)
class Scalar:
    """What is known of a function of one row.

    Attributes:
        part: What makes its part.
        rises: How its values rise with those of one argument; None if they do not, or that is not known.
    """

    part: Function
    rises: Rises | None = None


def of_column(sql: str, type_: str, nullable: bool = True) -> Part:
    """The part of a column of a type of that name; one of a type that DuckDB lacks is refused where it is used."""
    try:
        return Part(sql, read_type(type_), nullable)
    except NotProven:
        return Part(sql, sql_type(type_), nullable)


def error(condition: str, message: str) -> str:
    """DuckDB SQL that raises an error with a condition of Spark's.

    >>> error("DIVIDE_BY_ZERO", "Division by zero.")
    "error('[DIVIDE_BY_ZERO] Division by zero.')"
    """
    return f"error('[{condition}] {message}')"


def refused(what: str) -> str:
    """DuckDB SQL that raises an error: for this value, the result is not proven to be Spark's."""
    hint = left_to_spark().replace("'", "''")
    return error("NOT_PROVEN", f"{what} is not proven to be equal in DuckDB: {hint}")


def text(value: str) -> str:
    """A string as DuckDB SQL.

    >>> text("it's")
    "'it''s'"
    """
    quoted = "'" + value.replace("'", "''") + "'"
    return quoted if "\0" not in value else "(" + " || chr(0) || ".join(map(text, value.split("\0"))) + ")"


def null(type_: SqlType) -> str:
    """A null of a type as DuckDB SQL."""
    return "NULL" if type_.same(VOID) else f"CAST(NULL AS {in_duckdb(type_)})"


def joined(
    sql: str,
    type_: SqlType,
    parts: Sequence[Part],
    *,
    nullable: bool | None = None,
    null: bool | None = None,
    seems: bool = False,
    raises: bool = False,
    refuses: bool = False,
) -> Part:
    """A part made of several, that can raise what they can.

    Args:
        sql: DuckDB SQL.
        type_: The type of its values.
        parts: The operands.
        nullable: Whether Spark's analyser takes it to be null somewhere, if not just where an operand is.
        null: Whether it is, if that is another answer.
        seems: Whether the analyser takes it to be null somewhere, although it is only where an operand is.
        raises: Whether Spark raises an error for some operands.
        refuses: Whether DuckDB raises one for operands for which it is not proven.
    """
    if null is None:
        null = any(part.null for part in parts) if nullable is None else nullable
    if nullable is None:
        nullable = seems or any(part.nullable for part in parts)
    fails = raises or any(part.fails for part in parts)
    found = fails or refuses or any(part.raises for part in parts)
    rows = any(part.rows for part in parts)
    names = tuple(dict.fromkeys(name for part in parts for name in part.named))
    seems = nullable and not null
    return Part(sql, type_, nullable, found, rows=rows, refuses=found and not fails, seems=seems, named=names)


LONG = 2_000
"""The length of DuckDB SQL from which on an operand is named where it stands twice: it would double at each level."""


def operand(part: Part, number: int) -> Part:
    """A part as an operand: a long one is a name, for which `in_full` puts the text again."""
    if len(part.sql) <= LONG or part.constant is not None:
        return part
    name = own(f"operand{number}_")
    return replace(part, sql=name, named=((name, part.sql),))


def in_full(part: Part) -> Part:
    """A part whose long operands are computed before it, once each; what stands in it once is there again."""
    return replace(part, sql=with_operands(part.sql, part.named), named=()) if part.named else part


def with_operands(sql: str, named: Sequence[tuple[str, str]]) -> str:
    """DuckDB SQL with the operands that names stand for: one that is long and stands there twice is computed before."""
    for name, of in named:
        is_twice = len(of) > LONG and sql.count(name) > 1
        sql = computed_once(of, name, sql) if is_twice else sql.replace(name, of)
    return sql


def chained(operator: str, operands: Sequence[str]) -> str:
    """DuckDB SQL of operands joined by an operator in whatever brackets, which many of them have."""
    while len(operands) > _AT_ONCE:
        operands = [f"({operator.join(operands[i : i + _AT_ONCE])})" for i in range(0, len(operands), _AT_ONCE)]
    return operator.join(operands)


_AT_ONCE = 50
"""The most operands in one pair of brackets: DuckDB reads n of them as n within each other."""


def decided(cases: Sequence[tuple[Part, str, str]], otherwise: str) -> str:
    """DuckDB SQL of a CASE that tests one operand after the other: each with its test and result."""
    if not any(part.named for part, _, _ in cases):
        return f"CASE {' '.join(f'WHEN {test} THEN {result}' for _, test, result in cases)} ELSE {otherwise} END"
    for part, test, result in reversed(cases):
        otherwise = with_operands(f"CASE WHEN {test} THEN {result} ELSE {otherwise} END", part.named)
    return otherwise


def combined(
    sql: str,
    type_: SqlType,
    parts: Sequence[Part],
    *,
    nullable: bool | None = None,
    seems: bool = False,
    raises: bool = False,
    refuses: bool = False,
) -> Part:
    """A part made of several, see `joined`; those that can raise an error are guarded.

    Spark does not compute an operand behind one that is null, so that no error of it shows then.
    """
    behind = [i for i, part in enumerate(parts) if part.raises and any(before.nullable for before in parts[:i])]
    if behind:
        # One by one, since the second of them may raise an error that the first one hides.
        before = [i for i, part in enumerate(parts[: behind[-1]]) if part.nullable]
        sql = with_operands(sql, [name for i in behind if i not in before for name in parts[i].named])
        sql = decided([(parts[i], f"{parts[i].sql} IS NULL", null(type_)) for i in before], sql)
        parts = [replace(part, named=()) if i in before or i in behind else part for i, part in enumerate(parts)]
    return joined(sql, type_, parts, nullable=nullable, seems=seems, raises=raises, refuses=refuses)


def require_silent(what: str, *parts: Part) -> None:
    """Refuses operands that can raise an error: whether they are null, DuckDB may know without computing them.

    Of a call of a Python function it knows nothing, nor of what is null for some value and an error in DuckDB alone.
    """
    known = (part for part in parts if part.raises and not (part.refuses and part.null))
    if any(not dict(part.named).get(part.sql, part.sql).startswith(own("python")) for part in known):
        raise NotProven(f"{what} of an operand that can raise an error")


def require(name: str, parts: Sequence[Part], *kinds: Sequence[str]) -> None:
    """Refuses arguments of other kinds, or another number of them."""
    if len(parts) != len(kinds) or any(p.type.kind not in of for p, of in zip(parts, kinds, strict=True)):
        names, given = ", ".join(part.type.name for part in parts), (part.type.kind for part in parts)
        raise unlike(f"{name}({names})", given, *kinds)


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
        type_ = DecimalType(precision, scale)
        return Part(f"CAST({text(written)} AS {type_.name})", type_, False, constant=written)
    if not re.fullmatch(r"-?\d+", written):
        raise NotProven(f"the number {written}")
    value = int(written)
    for integer, bits in ((INT, 31), (BIGINT, 63)):
        if -(2**bits) <= value < 2**bits:
            return Part(f"CAST({value} AS {in_duckdb(integer)})", integer, False, constant=str(value))
    digits = len(str(abs(value)))
    if digits > 38:
        raise NotProven(f"the number {written}")
    type_ = DecimalType(digits, 0)
    return Part(f"CAST({text(str(value))} AS {type_.name})", type_, False, constant=str(value))


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
    length = MICROSECONDS.get(unit.name.lower().removesuffix("s"))
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


UTC = ("UTC", "Etc/UTC", "Z", "GMT", "Etc/GMT", "UCT", "Zulu", "+00:00", "UTC+0", "GMT0")


def is_utc(zone: str) -> bool:
    """Whether the zone's clocks show UTC."""
    return zone in UTC


def local(part: Part, zone: str) -> str:
    """A moment as the clocks of the zone show it, a TIMESTAMP of DuckDB."""
    if part.type.name == "TIMESTAMP_NTZ":
        return part.sql
    return f"timezone({text('UTC' if is_utc(zone) else zone)}, {part.sql})"


def computed_once(sql: str, name: str, of: str) -> str:
    """An expression of a value that is computed once, and named in it."""
    return f"list_transform([{sql}], lambda {name}: {of})[1]"


def at_local(shown: str, zone: str) -> str:
    """The moment at which the clocks of the zone show a local time: the first, or that time later if they skip it."""
    if is_utc(zone):
        return f"timezone('UTC', {shown})"
    last = f"timezone({text(zone)}, clock)"
    return computed_once(shown, "clock", _with_offset(f"({last} - to_microseconds(86400000000))", "clock", last, zone))


def start_of_day(midnight: str, zone: str) -> str:
    """The first moment of a day, given its midnight."""
    if is_utc(zone):
        return at_local(midnight, zone)
    return computed_once(midnight, "midnight", _where_midnight_is("midnight", at_local("midnight", zone), zone))


def near(moment: str, form: str, zone: str, *, is_day: bool = False) -> str:
    """The moment of a local time computed from that of a moment: the offset of this one is kept where it can be."""
    if is_utc(zone):
        return at_local(form.format(f"timezone('UTC', {moment})"), zone)
    found = _with_offset("moment", "shown", at_local("shown", zone), zone)
    found = _where_midnight_is("shown", found, zone) if is_day else found
    return computed_once(
        moment, "moment", computed_once(form.format(f"timezone({text(zone)}, moment)"), "shown", found)
    )


def _where_midnight_is(midnight: str, begun: str, zone: str) -> str:
    """Refuses the begin of a day where the clocks go ahead over midnight, and not from it."""
    last, tick = f"timezone({text(zone)}, {midnight})", "to_microseconds(1)"
    shows = (
        f"timezone({text(zone)}, {last}) = {midnight} OR timezone({text(zone)}, {last} - {tick}) = {midnight} - {tick}"
    )
    return f"CASE WHEN {shows} THEN {begun} WHEN {midnight} IS NOT NULL THEN {refused('this day')} END"


def _with_offset(moment: str, shown: str, other: str, zone: str) -> str:
    """The moment of a local time with the offset of a moment if the clocks show it then, else the other one."""
    ahead = f"epoch_us(timezone({text(zone)}, {moment})) - epoch_us({moment})"
    found = f"make_timestamptz(epoch_us({shown}) - ({ahead}))"
    return f"CASE WHEN timezone({text(zone)}, {found}) = {shown} THEN {found} ELSE {other} END"
