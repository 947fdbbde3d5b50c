"""Casts from type to type as Spark makes them under ANSI rules: those that are written, and those that it makes itself.

Where DuckDB casts otherwise, the text says how: it rounds a decimal to an integer where Spark cuts it off, and it reads
texts that Spark refuses. Where Spark reads more texts than are proven, these raise an error that says so.

Values of different types are cast to a common one, by casts that lose nothing, those that Spark's ANSI rules make of
integers to floating-point numbers, and those of a text to what stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC as ZERO
from datetime import date, datetime
from typing import TypeAlias

from xmlstream.dataclasses import replace
from xmlstream.operators.expressions.operations.part import (
    VOID,
    Part,
    at_local,
    computed_once,
    error,
    is_utc,
    local,
    null,
    refused,
    start_of_day,
    text,
)
from xmlstream.operators.expressions.operations.spark_type import NotDefined, NotProven, in_duckdb, read_type, unlike
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.numeric_type import DecimalType
from xmlstream.punct_ns.sql_type import (
    FLOATING,
    INTEGERS,
    NESTED,
    NUMBERS,
    TEMPORAL,
    ArrayType,
    Field,
    SqlType,
    StructType,
)

Cast: TypeAlias = Callable[[Part, SqlType, str], Part]
"""How a part is cast to a type, in a time zone."""

BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
"""The bits of the integer types."""


def as_decimal(integer: SqlType) -> SqlType:
    """The DECIMAL that Spark takes an integer type for.

    >>> as_decimal(read_type("BIGINT")).name
    'DECIMAL(20,0)'
    """
    return DecimalType(20 if integer.name == "BIGINT" else integer.digits[0], 0)


def cast(part: Part, to: SqlType, zone: str = "UTC") -> Part:
    """The part cast to a type.

    Raises:
        NotProven: This cast is not proven.
    """
    if part.type.same(to):
        return part
    if part.type.same(VOID):
        return Part(null(to), to, True)
    if part.type.element is not None and to.element is not None and part.type.element.same(VOID):
        return part.computed(f"CAST({part.sql} AS {in_duckdb(to)})", to)
    if (found := _constant(part, to)) is not None:
        return found
    how = CASTS.get((part.type.kind, to.kind))
    if how is None:
        what = f"CAST from {part.type.name} to {to.name}"
        raise NotProven(what) if _is_of_spark(part.type.kind, to.kind) else NotDefined(what)
    return how(part, to, zone)


def _is_of_spark(kind: str, to: str) -> bool:
    """Whether Spark casts values of one kind to another, or may."""
    if kind in NESTED or to in NESTED:
        return to in ("STRING", kind)
    values = (*NUMBERS, "BOOLEAN")
    alike = any(kind in family and to in family for family in (values, TEMPORAL, (*NUMBERS, "TIMESTAMP")))
    return alike or "STRING" in (kind, to) or (kind in INTEGERS and to == "BINARY")


def _plain(part: Part, to: SqlType) -> str:
    return f"CAST({part.sql} AS {in_duckdb(to)})"


def _safe(part: Part, to: SqlType, zone: str) -> Part:
    return part.computed(_plain(part, to), to)


def _between_integers(part: Part, to: SqlType, zone: str) -> Part:
    return part.computed(_plain(part, to), to, raises=BITS[part.type.name] > BITS[to.name])


def _integer_to_decimal(part: Part, to: SqlType, zone: str) -> Part:
    precision, scale = to.digits
    may_fail = precision - scale < as_decimal(part.type).digits[0]
    return part.computed(_plain(part, to), to, seems=may_fail, raises=may_fail)


def _between_decimals(part: Part, to: SqlType, zone: str) -> Part:
    (precision, scale), (digits, places) = part.type.digits, to.digits
    may_fail = digits - places < precision - scale or (places < scale and digits - places == precision - scale)
    return part.computed(_plain(part, to), to, seems=may_fail, raises=may_fail)


def is_rounded(type_: SqlType) -> bool:
    """Whether the values of a type have more digits than the 34 to which Java rounds where it computes with them.

    >>> [is_rounded(read_type(name)) for name in ("DECIMAL(34,2)", "DECIMAL(35,2)", "INT")]
    [False, True, False]
    """
    return type_.kind == "DECIMAL" and type_.digits[0] > 34


def _decimal_to_integer(part: Part, to: SqlType, zone: str) -> Part:
    if is_rounded(part.type):
        raise NotProven(f"CAST from {part.type.name} to {to.name}")
    return part.computed(f"CAST(trunc({part.sql}) AS {in_duckdb(to)})", to, seems=True, raises=True)


def _decimal_to_floating(part: Part, to: SqlType, zone: str) -> Part:
    precision, scale = part.type.digits
    exact = precision <= 15 and scale <= 15 and to.name == "DOUBLE"
    given = part.sql if exact else f"CAST({part.sql} AS VARCHAR)"
    return part.computed(f"CAST({given} AS {in_duckdb(to)})", to)


def _decimal_to_string(part: Part, to: SqlType, zone: str) -> Part:
    precision, scale = part.type.digits
    if 0 < scale == precision:  # Spark writes a zero before the point, DuckDB does not.
        wider = f"DECIMAL({precision + 1},{scale})"
        if precision == 38:
            raise NotProven(f"CAST from {part.type.name} to STRING")
        return part.computed(f"CAST(CAST({part.sql} AS {wider}) AS VARCHAR)", to)
    return _safe(part, to, zone)


def _floating_to_integer(part: Part, to: SqlType, zone: str) -> Part:
    whole = f"trunc(CAST({part.sql} AS DOUBLE))"
    sql = f"CAST({whole} AS {in_duckdb(to)})"
    if to.name == "BIGINT":  # Spark's test lets 2^63 pass, and Java then takes the greatest BIGINT.
        sql = f"CASE WHEN {part.sql} = 9223372036854775808::DOUBLE THEN 9223372036854775807 ELSE {sql} END"
    return part.computed(sql, to, seems=True, raises=True)


def _to_float(part: Part, to: SqlType, zone: str) -> Part:
    # Java rounds what lies beyond the greatest FLOAT to infinity, and so from half a step beyond it on.
    big = "340282356779733661637539395458142568447.0::DOUBLE"
    sql = (
        f"CASE WHEN isnan({part.sql}) THEN 'NaN'::FLOAT WHEN {part.sql} >= {big} THEN 'inf'::FLOAT"
        f" WHEN {part.sql} <= -{big} THEN '-inf'::FLOAT ELSE CAST({part.sql} AS FLOAT) END"
    )
    return part.computed(sql, to)


def _to_boolean(part: Part, to: SqlType, zone: str) -> Part:
    return part.computed(f"({part.sql} <> 0)", to)


_BLANK = r"[\x01-\x20]*"
_NUMBER = _BLANK + r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[dDfF]?" + _BLANK
_SHORT = _NUMBER.replace("[+-]?[0-9]+)", "[+-]?[0-9]{1,4})")


def _trimmed(sql: str) -> str:
    return f"regexp_replace({sql}, '^{_BLANK}|{_BLANK}$', '', 'g')"


def _read(part: Part, to: SqlType, zone: str, *, tries: bool = False) -> Part:
    """A text read by DuckDB where Spark reads it alike; others are invalid, or refused if it is not known of them.

    With `tries` it is null where a text is invalid, or its value no value of the type.
    """
    if part.word is not None and to.kind not in (*NUMBERS, "BOOLEAN"):
        return Part(moment(part.word, to, zone).sql, to, True, seems=True)
    return read_text(part, to, _TEXTS[to.kind](part.sql, to, zone), "CAST_INVALID_INPUT", tries=tries)


def read_text(part: Part, to: SqlType, texts: Texts, condition: str, *, tries: bool) -> Part:
    """A text read as a type; see `Texts`. With `tries` it is null where Spark raises an error of the condition."""
    if tries and part.raises:
        raise NotProven("TRY_CAST of an operand that can raise an error")
    alike, value, unknown = texts
    shown = f"'' || left({part.sql}, 80) || ''"
    message = f"The value '{shown}' cannot be cast to {to.name} because it is malformed."
    invalid = null(to) if tries else error(condition, message)
    sql = (
        f"CASE WHEN {part.sql} IS NULL THEN {null(to)} WHEN {alike} THEN {f'TRY({value})' if tries else value}"
        f" WHEN regexp_matches({part.sql}, '[\\x00\\x7f]') OR {unknown}"
        f" THEN {refused('CAST of this text to ' + to.name)} ELSE {invalid} END"
    )
    return part.computed(sql, to, nullable=True if tries else None, seems=not tries, raises=not tries, refuses=True)


def tried(part: Part, to: SqlType, zone: str) -> Part:
    """TRY_CAST: the part cast to a type, and null where the cast fails.

    Raises:
        NotProven: This cast is not proven, or the part can raise an error.
    """
    if part.refuses:  # whose error no TRY may take
        found = tried(replace(part, sql="given", raises=False, refuses=False), to, zone)
        return replace(
            found, sql=computed_once(part.sql, "given", found.sql), named=part.named, raises=True, refuses=True
        )
    if part.raises:
        raise NotProven("TRY_CAST of an operand that can raise an error")
    if part.type.kind == "STRING" and to.kind in _TEXTS and _constant(part, to) is None:
        return _read(part, to, zone, tries=True)
    found = cast(part, to, zone)
    if found.fails:
        return Part(f"TRY({found.sql})", to, True, rows=part.rows)
    is_wider = common_type([part.type, to]) == to and not (part.type.kind == "DECIMAL" and to.kind in FLOATING)
    is_silent = is_wider or to.kind == "STRING" or (part.type.kind, to.kind) in _SILENT
    return replace(found, nullable=part.nullable or not is_silent, seems=part.seems if is_silent else not found.null)


_SILENT = {*((one, "FLOAT") for one in INTEGERS), ("BIGINT", "TIMESTAMP"), ("TIMESTAMP", "BIGINT"),
           ("TIMESTAMP", "TIMESTAMP_NTZ"), ("DATE", "TIMESTAMP_NTZ")}  # fmt: skip
"""Casts that never fail, which Spark's analyser knows, beside those to a wider type or to a text."""


def _constant(part: Part, to: SqlType) -> Part | None:
    """A literal text as a number or a BOOLEAN; None for others, or if the algebra reads it otherwise than Spark may."""
    if to.kind not in (*NUMBERS, "BOOLEAN") or part.word is None:
        return None
    domain = Domain(to.name)
    try:
        value = domain.read(part.word)
    except ValueError:
        return None
    return Part(f"CAST({text(domain.write(value))} AS {in_duckdb(to)})", to, True, seems=True)


Texts: TypeAlias = tuple[str, str, str]
"""Conditions on a text: that both engines read it alike, its value, and that it is not known whether Spark reads it."""


def text_matches(sql: str, pattern: str) -> str:
    """DuckDB SQL: whether a text as a whole has a pattern."""
    return f"regexp_full_match({sql}, '(?s){pattern}')"


def _integer(sql: str, to: SqlType, zone: str) -> Texts:
    return text_matches(sql, _BLANK + "[+-]?[0-9]+" + _BLANK), f"CAST({_trimmed(sql)} AS {in_duckdb(to)})", "false"


def _decimal(sql: str, to: SqlType, zone: str) -> Texts:
    plain = _BLANK + r"[+-]?(?:[0-9]{1,37}(?:\.[0-9]{0,37})?|\.[0-9]{1,37})" + _BLANK
    unknown = f"({text_matches(sql, _NUMBER)} OR regexp_matches({sql}, '[^\\P{{Nd}}0-9]'))"  # Java reads all digits
    return text_matches(sql, plain), f"CAST({_trimmed(sql)} AS {in_duckdb(to)})", unknown


def _floating(sql: str, to: SqlType, zone: str) -> Texts:
    words = _BLANK + "(?i:[+-]?inf(?:inity)?|nan)" + _BLANK
    number = f"regexp_replace({_trimmed(sql)}, '([0-9.])[dDfF]$', '\\1')"
    unknown = text_matches(sql, _BLANK + "[+-](?:NaN|0[xX].*)|" + _BLANK + "0[xX].*|" + _NUMBER)
    return text_matches(sql, f"{_SHORT}|{words}"), f"CAST({number} AS {in_duckdb(to)})", unknown


def _boolean(sql: str, to: SqlType, zone: str) -> Texts:
    word, true = f"lower({_trimmed(sql)})", "('t', 'true', 'y', 'yes', '1')"
    return f"{word} IN {true} OR {word} IN ('f', 'false', 'n', 'no', '0')", f"({word} IN {true})", "false"


def moment(value: str, to: SqlType, zone: str) -> Part:
    """A literal text as a date or a moment, in the zone if it names none.

    Raises:
        NotProven: The algebra does not read this text.
    """
    try:
        found = Domain(to.name).read(value)
    except ValueError:
        raise NotProven(f"{to.name} '{value}'") from None
    assert isinstance(found, date)
    if to.name == "TIMESTAMP" and not _names_zone(value):
        return Part(at_local(_moment(found, read_type("TIMESTAMP_NTZ")), zone), to, False)
    return Part(_moment(found, to), to, False)


def _names_zone(value: str) -> bool:
    time = value.strip().partition(":")[2]
    return time[-1:] == "Z" or "+" in time or "-" in time


def _moment(value: date, to: SqlType) -> str:
    if not isinstance(value, datetime):
        return f"DATE '{value.isoformat()}'"
    since = value.replace(tzinfo=ZERO) - datetime(1970, 1, 1, tzinfo=ZERO)
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return f"make_timestamp{'tz' if to.name == 'TIMESTAMP' else ''}({micros}::BIGINT)"


_DATE, _TIME = "[0-9]{4}-[0-9]{2}-[0-9]{2}", "[ T][0-9]{2}(?::[0-9]{2}){2}(?:\\.[0-9]{1,6})?"
_BEGUN = "[+-]?[0-9]{4,7}(?:-[0-9]{1,2}(?:-[0-9]{1,2}(?:[ T].*)?)?)?|[0-9]{1,2}:.*|T.*"


def moment_in(sql: str, to: SqlType, zone: str) -> Texts:
    """Of all dates and moments that Spark reads, the common form; what does not begin like one is invalid."""
    common = _DATE if to.name == "DATE" else f"{_DATE}{_TIME}" + ("Z?" if to.name == "TIMESTAMP" else "")
    read = f"TRY_CAST({sql} AS {in_duckdb(to)})"
    if to.name == "TIMESTAMP" and not is_utc(zone):
        local_time = at_local(f"TRY_CAST({sql} AS TIMESTAMP)", zone)
        read = f"CASE WHEN ends_with({sql}, 'Z') THEN {read} ELSE {local_time} END"
    wrong = f"{text_matches(sql, common)} AND {sql} >= '0001'"
    unknown = f"{text_matches(sql, f'{_BLANK}(?:{_BEGUN}){_BLANK}')} AND NOT ({wrong})"
    return f"{wrong} AND ({read}) IS NOT NULL AND substring({sql}, 12, 2) <> '24'", read, unknown


_TEXTS: Mapping[str, Callable[[str, SqlType, str], Texts]] = {
    **dict.fromkeys(INTEGERS, _integer),
    **dict.fromkeys(FLOATING, _floating),
    **dict.fromkeys(TEMPORAL, moment_in),
    "DECIMAL": _decimal,
    "BOOLEAN": _boolean,
}


_LAST, _FIRST = "9999-12-31", "0001-01-01"


def within_calendar(day: str, result: str, what: str, type_: SqlType) -> str:
    """The result for days of the years 1 to 9999, which Spark and DuckDB write alike."""
    return (
        f"CASE WHEN {day} IS NULL THEN {null(type_)} WHEN {day} BETWEEN DATE '{_FIRST}' AND DATE '{_LAST}'"
        f" THEN {result} ELSE {refused(what + ' of this year')} END"
    )


def _date_to_string(part: Part, to: SqlType, zone: str) -> Part:
    written = f"strftime({part.sql}, '%Y-%m-%d')"
    return part.computed(within_calendar(part.sql, written, "the text", to), to, refuses=True)


def _moment_to_string(part: Part, to: SqlType, zone: str) -> Part:
    shown = local(part, zone)
    written = f"rtrim(rtrim(strftime({shown}, '%Y-%m-%d %H:%M:%S.%f'), '0'), '.')"
    return part.computed(within_calendar(f"CAST({shown} AS DATE)", written, "the text", to), to, refuses=True)


def _moment_to_date(part: Part, to: SqlType, zone: str) -> Part:
    return part.computed(f"CAST({local(part, zone)} AS DATE)", to, seems=part.type.name == "TIMESTAMP_NTZ")


def _from_local(part: Part, to: SqlType, zone: str) -> Part:
    if part.type.name != "DATE":
        return part.computed(at_local(part.sql, zone), to)
    return part.computed(start_of_day(f"CAST({part.sql} AS TIMESTAMP)", zone), to, refuses=not is_utc(zone))


def _moment_to_bigint(part: Part, to: SqlType, zone: str) -> Part:
    micros = f"epoch_us({part.sql})"
    return part.computed(f"(({micros} - ((({micros} % 1000000) + 1000000) % 1000000)) // 1000000)", to)


def _boolean_to_number(part: Part, to: SqlType, zone: str) -> Part:
    return part.computed(f"CAST(CAST({part.sql} AS INTEGER) AS {in_duckdb(to)})", to)


def _seconds_to_moment(part: Part, to: SqlType, zone: str) -> Part:
    return part.computed(moment_of(f"CAST({part.sql} AS BIGINT)", 1_000_000, "CAST to TIMESTAMP"), to, refuses=True)


def moment_of(number: str, length: int, what: str) -> str:
    """DuckDB SQL of the moment so many times `length` microseconds after 1970, around the calendar."""
    # A year more on both sides: the last window of the calendar ends behind it.
    least, most = -62_167_219_200_000_000 // length, 253_433_836_799_999_999 // length
    moved = number if length == 1 else f"({number} * {length})"
    within = f"CASE WHEN {number} BETWEEN {least} AND {most} THEN make_timestamptz({moved})"
    beyond = refused(f"{what} of a moment outside the years 0 to 10000")
    return f"{within} WHEN {number} IS NOT NULL THEN {beyond} END"


CASTS: Mapping[tuple[str, str], Cast] = {
    **{(one, other): _between_integers for one in INTEGERS for other in INTEGERS},
    **{(one, "DECIMAL"): _integer_to_decimal for one in INTEGERS},
    **{(one, other): _safe for one in INTEGERS for other in (*FLOATING, "STRING")},
    **{(one, "BOOLEAN"): _to_boolean for one in (*INTEGERS, *FLOATING, "DECIMAL")},
    **{(one, "TIMESTAMP"): _seconds_to_moment for one in INTEGERS},
    ("DECIMAL", "DECIMAL"): _between_decimals,
    **{("DECIMAL", other): _decimal_to_integer for other in INTEGERS},
    **{("DECIMAL", other): _decimal_to_floating for other in FLOATING},
    ("DECIMAL", "STRING"): _decimal_to_string,
    **{(one, other): _floating_to_integer for one in FLOATING for other in INTEGERS},
    ("FLOAT", "DOUBLE"): _safe,
    ("DOUBLE", "FLOAT"): _to_float,
    **{("STRING", other): _read for other in _TEXTS},
    ("BOOLEAN", "STRING"): _safe,
    **{("BOOLEAN", other): _boolean_to_number for other in INTEGERS},
    ("DATE", "STRING"): _date_to_string,
    ("DATE", "TIMESTAMP"): _from_local,
    ("DATE", "TIMESTAMP_NTZ"): lambda part, to, zone: part.computed(_plain(part, to), to, seems=True),
    **{(one, "STRING"): _moment_to_string for one in ("TIMESTAMP", "TIMESTAMP_NTZ")},
    **{(one, "DATE"): _moment_to_date for one in ("TIMESTAMP", "TIMESTAMP_NTZ")},
    ("TIMESTAMP", "TIMESTAMP_NTZ"): lambda part, to, zone: part.computed(local(part, zone), to),
    ("TIMESTAMP_NTZ", "TIMESTAMP"): _from_local,
    ("TIMESTAMP", "BIGINT"): _moment_to_bigint,
}
"""The proven casts, by the kinds of the two types."""


WIDEST = 38


def common_type(types: Sequence[SqlType]) -> SqlType | None:
    """The type that Spark casts values of these types to, to compare them or to choose among them; None if not proven.

    >>> found = common_type([read_type(name) for name in ("INT", "DECIMAL(5,2)", "VOID")])
    >>> found and found.name
    'DECIMAL(12,2)'
    """
    found: SqlType = VOID
    for type_ in types:
        wider = _wider(found, type_)
        if wider is None:
            return None
        found = wider
    return found


def _wider(one: SqlType, other: SqlType) -> SqlType | None:
    if one.same(other):
        return _with_nulls(one, other)
    if VOID in (one, other):
        return other if one == VOID else one
    kinds = {one.kind, other.kind}
    if kinds <= set(NUMBERS):
        return _wider_number(one, other)
    if one.element is not None and other.element is not None:
        element = _wider(one.element, other.element)
        return element and ArrayType(element, has_nulls=one.has_nulls or other.has_nulls)
    if kinds <= set(TEMPORAL):
        return read_type("TIMESTAMP" if "TIMESTAMP" in kinds else "TIMESTAMP_NTZ")
    return None


def _with_nulls(one: SqlType, other: SqlType) -> SqlType:
    """The type that both are, with nulls inside where one of them has some."""
    if one.element is not None and other.element is not None:
        return ArrayType(_with_nulls(one.element, other.element), has_nulls=one.has_nulls or other.has_nulls)
    if one.fields:
        pairs = zip(one.fields, other.fields, strict=True)
        return StructType(tuple(Field(a.name, _with_nulls(a.type, b.type), a.nullable or b.nullable) for a, b in pairs))
    return one


def _wider_number(one: SqlType, other: SqlType) -> SqlType | None:
    kinds = {one.kind, other.kind}
    if kinds & set(FLOATING):
        return read_type("FLOAT" if kinds == {"FLOAT"} else "DOUBLE")
    if "DECIMAL" not in kinds:
        return max((one, other), key=lambda type_: INTEGERS.index(type_.name))
    (precision, scale), (digits, places) = (
        t.digits if t.kind == "DECIMAL" else as_decimal(t).digits for t in (one, other)
    )
    after = max(scale, places)
    whole = max(precision - scale, digits - places)
    return DecimalType(whole + after, after) if whole + after <= WIDEST else None


def with_texts(types: Sequence[SqlType]) -> SqlType | None:
    """The type that Spark casts values to where there are texts among them: these are read as what stands beside them.

    >>> found = [with_texts([STRING, read_type(of)]) for of in ("INT", "DATE", "DECIMAL(5,2)")]
    >>> [type_.name for type_ in found if type_]
    ['BIGINT', 'DATE', 'DOUBLE']
    """
    others = [type_ for type_ in types if type_.kind not in ("STRING", "VOID")]
    found = common_type(others)
    if found is None or not others or len(others) == len([type_ for type_ in types if type_.kind != "VOID"]):
        return common_type(types)
    kinds = {type_.kind for type_ in others}
    if kinds <= set(INTEGERS):
        return read_type("BIGINT")
    if kinds <= {*FLOATING, "DECIMAL"}:
        return read_type("DOUBLE")
    return found if kinds <= {"BOOLEAN", *TEMPORAL} else None


STRING = read_type("STRING")


def same_type(parts: Sequence[Part], what: str, zone: str) -> list[Part]:
    """The parts in the one type that Spark casts them to; literal texts beside dates and moments become such.

    Raises:
        NotProven: That type is not proven.
    """
    texts = [part for part in parts if part.word is not None]
    others = [part for part in parts if part not in texts]
    typed = [part for part in others if not part.type.same(VOID)]
    if texts and typed and all(part.type.kind in TEMPORAL for part in typed):
        found = common_type([part.type for part in others])
    else:
        found = with_texts([part.type for part in parts])
    if found is None:
        kinds, types = [part.type.kind for part in parts], " and ".join(dict.fromkeys(part.type.name for part in parts))
        one = [kind for kind in kinds if kind != "STRING"][:1] or kinds
        raise unlike(f"{what} of {types}", kinds, *[one] * len(kinds))
    return [part if part.type.same(found) else cast(part, found, zone) for part in parts]
