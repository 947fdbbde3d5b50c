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

from xmlstream.operators.expressions.operations.part import VOID, Part, error, null, refused, text
from xmlstream.operators.expressions.operations.spark_type import (
    FLOATING,
    INTEGERS,
    NESTED,
    NUMBERS,
    TEMPORAL,
    Field,
    NotDefined,
    NotProven,
    Type,
    array_of,
    in_duckdb,
    read_type,
    struct_of,
    unlike,
)
from xmlstream.punct_ns.domain import Domain

Cast: TypeAlias = Callable[[Part, Type, str], Part]
"""How a part is cast to a type, in a time zone."""

BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
"""The bits of the integer types."""
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
"""The digits of the DECIMAL that Spark takes an integer for."""

UTC = ("UTC", "Etc/UTC", "Z", "GMT", "Etc/GMT", "UCT", "Zulu", "+00:00", "UTC+0", "GMT0")


def as_decimal(integer: Type) -> Type:
    """The DECIMAL that Spark takes an integer type for.

    >>> as_decimal(read_type("BIGINT")).name
    'DECIMAL(20,0)'
    """
    return read_type(f"DECIMAL({_DIGITS[integer.name]},0)")


def is_utc(zone: str) -> bool:
    """Whether the zone's clocks show UTC."""
    return zone in UTC


def local(part: Part, zone: str) -> str:
    """A moment as the clocks of the zone show it, a TIMESTAMP of DuckDB."""
    if part.type.name == "TIMESTAMP_NTZ":
        return part.sql
    return f"timezone({text('UTC' if is_utc(zone) else zone)}, {part.sql})"


def cast(part: Part, to: Type, zone: str = "UTC") -> Part:
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


def _plain(part: Part, to: Type) -> str:
    return f"CAST({part.sql} AS {in_duckdb(to)})"


def _safe(part: Part, to: Type, zone: str) -> Part:
    return part.computed(_plain(part, to), to)


def _between_integers(part: Part, to: Type, zone: str) -> Part:
    return part.computed(_plain(part, to), to, raises=BITS[part.type.name] > BITS[to.name])


def _integer_to_decimal(part: Part, to: Type, zone: str) -> Part:
    precision, scale = to.digits
    may_fail = precision - scale < _DIGITS[part.type.name]
    return part.computed(_plain(part, to), to, seems=may_fail, raises=may_fail)


def _between_decimals(part: Part, to: Type, zone: str) -> Part:
    (precision, scale), (digits, places) = part.type.digits, to.digits
    may_fail = digits - places < precision - scale or (places < scale and digits - places == precision - scale)
    return part.computed(_plain(part, to), to, seems=may_fail, raises=may_fail)


def is_rounded(type_: Type) -> bool:
    """Whether the values of a type have more digits than the 34 to which Java rounds where it computes with them.

    >>> [is_rounded(read_type(name)) for name in ("DECIMAL(34,2)", "DECIMAL(35,2)", "INT")]
    [False, True, False]
    """
    return type_.kind == "DECIMAL" and type_.digits[0] > 34


def _decimal_to_integer(part: Part, to: Type, zone: str) -> Part:
    if is_rounded(part.type):
        raise NotProven(f"CAST from {part.type.name} to {to.name}")
    return part.computed(f"CAST(trunc({part.sql}) AS {in_duckdb(to)})", to, seems=True, raises=True)


def _decimal_to_floating(part: Part, to: Type, zone: str) -> Part:
    precision, scale = part.type.digits
    exact = precision <= 15 and scale <= 15 and to.name == "DOUBLE"
    given = part.sql if exact else f"CAST({part.sql} AS VARCHAR)"
    return part.computed(f"CAST({given} AS {in_duckdb(to)})", to)


def _decimal_to_string(part: Part, to: Type, zone: str) -> Part:
    precision, scale = part.type.digits
    if 0 < scale == precision:  # Spark writes a zero before the point, DuckDB does not.
        wider = f"DECIMAL({precision + 1},{scale})"
        if precision == 38:
            raise NotProven(f"CAST from {part.type.name} to STRING")
        return part.computed(f"CAST(CAST({part.sql} AS {wider}) AS VARCHAR)", to)
    return _safe(part, to, zone)


def _floating_to_integer(part: Part, to: Type, zone: str) -> Part:
    whole = f"trunc(CAST({part.sql} AS DOUBLE))"
    sql = f"CAST({whole} AS {in_duckdb(to)})"
    if to.name == "BIGINT":  # Spark's test lets 2^63 pass, and Java then takes the greatest BIGINT.
        sql = f"CASE WHEN {part.sql} = 9223372036854775808::DOUBLE THEN 9223372036854775807 ELSE {sql} END"
    return part.computed(sql, to, seems=True, raises=True)


def _to_float(part: Part, to: Type, zone: str) -> Part:
    # Java rounds what lies beyond the greatest FLOAT to infinity, and so from half a step beyond it on.
    big = "340282356779733661637539395458142568447.0::DOUBLE"
    sql = (
        f"CASE WHEN isnan({part.sql}) THEN 'NaN'::FLOAT WHEN {part.sql} >= {big} THEN 'inf'::FLOAT"
        f" WHEN {part.sql} <= -{big} THEN '-inf'::FLOAT ELSE CAST({part.sql} AS FLOAT) END"
    )
    return part.computed(sql, to)


def _to_boolean(part: Part, to: Type, zone: str) -> Part:
    return part.computed(f"({part.sql} <> 0)", to)


_BLANK = r"[\x01-\x20]*"
_NUMBER = _BLANK + r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?" + _BLANK


def _trimmed(sql: str) -> str:
    return f"regexp_replace({sql}, '^{_BLANK}|{_BLANK}$', '', 'g')"


def _invalid(part: Part, to: Type) -> str:
    """DuckDB SQL that raises Spark's error, with the text."""
    value = f"'' || left({part.sql}, 80) || ''"
    return error("CAST_INVALID_INPUT", f"The value '{value}' cannot be cast to {to.name} because it is malformed.")


def _read(part: Part, to: Type, pattern: str, sql: str) -> Part:
    """A text read by DuckDB where it has the pattern, which Spark reads alike; other plain texts are invalid.

    Spark trims more characters than DuckDB does, and reads more forms; texts with such characters are refused.
    """
    plain = r"[\x20-\x7e]*"
    found = (
        f"CASE WHEN {part.sql} IS NULL THEN {null(to)} WHEN regexp_full_match({part.sql}, '{pattern}') THEN {sql}"
        f" WHEN regexp_full_match({part.sql}, '{plain}') THEN {_invalid(part, to)}"
        f" ELSE {refused('CAST of this text to ' + to.name)} END"
    )
    return part.computed(found, to, seems=True, raises=True)


def _string_to_integer(part: Part, to: Type, zone: str) -> Part:
    return _read(part, to, _BLANK + "[+-]?[0-9]+" + _BLANK, f"CAST({_trimmed(part.sql)} AS {in_duckdb(to)})")


def _constant(part: Part, to: Type) -> Part | None:
    """A literal text as a number or a BOOLEAN; None for others, or if the algebra reads it otherwise than Spark may."""
    if to.kind not in (*NUMBERS, "BOOLEAN") or part.word is None:
        return None
    domain = Domain(to.name)
    try:
        value = domain.read(part.word)
    except ValueError:
        return None
    return Part(f"CAST({text(domain.write(value))} AS {in_duckdb(to)})", to, True, seems=True)


def _string_to_decimal(part: Part, to: Type, zone: str) -> Part:
    plain = _BLANK + r"[+-]?(?:[0-9]{1,37}(?:\.[0-9]{0,37})?|\.[0-9]{1,37})" + _BLANK
    found = _read(part, to, plain, f"CAST({_trimmed(part.sql)} AS {in_duckdb(to)})")
    long = f"regexp_full_match({part.sql}, '{_NUMBER}') AND NOT regexp_full_match({part.sql}, '{plain}')"
    sql = f"CASE WHEN {long} THEN {refused('CAST of this text to ' + to.name)} ELSE {found.sql} END"
    return found.computed(sql, to)


def _string_to_floating(part: Part, to: Type, zone: str) -> Part:
    read = f"CAST({_trimmed(part.sql)} AS {in_duckdb(to)})"
    sql = (
        f"CASE WHEN {part.sql} IS NULL THEN {null(to)} WHEN regexp_full_match({part.sql}, '{_NUMBER}') THEN {read}"
        f" ELSE {refused('CAST of this text to ' + to.name)} END"
    )
    return part.computed(sql, to, seems=True, raises=True)


def _string_to_boolean(part: Part, to: Type, zone: str) -> Part:
    word = f"lower({_trimmed(part.sql)})"
    sql = (
        f"CASE WHEN {part.sql} IS NULL THEN {null(to)}"
        f" WHEN NOT regexp_full_match({part.sql}, '[\\x01-\\x7e]*') THEN {refused('CAST of this text to BOOLEAN')}"
        f" WHEN {word} IN ('t', 'true', 'y', 'yes', '1') THEN true"
        f" WHEN {word} IN ('f', 'false', 'n', 'no', '0') THEN false ELSE {_invalid(part, to)} END"
    )
    return part.computed(sql, to, seems=True, raises=True)


def moment(value: str, to: Type, zone: str) -> Part:
    """A literal text as a date or a moment, in the zone if it names none.

    Raises:
        NotProven: The algebra does not read this text, or a zone's clocks decide about it.
    """
    try:
        found = Domain(to.name).read(value)
    except ValueError:
        raise NotProven(f"{to.name} '{value}'") from None
    assert isinstance(found, date)
    if to.name == "TIMESTAMP" and not _names_zone(value) and not is_utc(zone):
        raise NotProven(f"{to.name} '{value}' without a zone, in {zone},")
    return Part(_moment(found, to), to, False)


def _names_zone(value: str) -> bool:
    time = value.strip().partition(":")[2]
    return time[-1:] == "Z" or "+" in time or "-" in time


def _moment(value: date, to: Type) -> str:
    if not isinstance(value, datetime):
        return f"DATE '{value.isoformat()}'"
    since = value.replace(tzinfo=ZERO) - datetime(1970, 1, 1, tzinfo=ZERO)
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return f"make_timestamp{'tz' if to.name == 'TIMESTAMP' else ''}({micros}::BIGINT)"


_DATE = "[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_TIME = "[ T](?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}(?:\\.[0-9]{1,6})?"


def _string_to_moment(part: Part, to: Type, zone: str) -> Part:
    """A text as a date or a moment: of all that Spark reads, the common form; texts without digits are invalid."""
    if part.word is not None:
        return Part(moment(part.word, to, zone).sql, to, True, seems=True)
    pattern = _DATE if to.name == "DATE" else f"{_DATE}{_TIME}" + ("Z" if to.name == "TIMESTAMP" else "")
    if to.name == "TIMESTAMP" and is_utc(zone):
        pattern += "?"
    read = f"TRY_CAST({part.sql} AS {in_duckdb(to)})"
    sql = (
        f"CASE WHEN {part.sql} IS NULL THEN {null(to)} WHEN regexp_full_match({part.sql}, '[\\x20-\\x7e]*') AND NOT"
        f" regexp_matches({part.sql}, '[0-9]') THEN {_invalid(part, to)} WHEN NOT regexp_full_match({part.sql},"
        f" '{pattern}') OR {part.sql} < '0001' THEN {refused('CAST of this text to ' + to.name)}"
        f" WHEN {read} IS NULL THEN {_invalid(part, to)} ELSE {read} END"
    )
    return part.computed(sql, to, seems=True, raises=True)


_LAST, _FIRST = "9999-12-31", "0001-01-01"


def within_calendar(day: str, result: str, what: str, type_: Type) -> str:
    """The result for days of the years 1 to 9999, which Spark and DuckDB write alike."""
    return (
        f"CASE WHEN {day} IS NULL THEN {null(type_)} WHEN {day} BETWEEN DATE '{_FIRST}' AND DATE '{_LAST}'"
        f" THEN {result} ELSE {refused(what + ' of this year')} END"
    )


def _date_to_string(part: Part, to: Type, zone: str) -> Part:
    written = f"strftime({part.sql}, '%Y-%m-%d')"
    return part.computed(within_calendar(part.sql, written, "the text", to), to, refuses=True)


def _moment_to_string(part: Part, to: Type, zone: str) -> Part:
    shown = local(part, zone)
    written = f"rtrim(rtrim(strftime({shown}, '%Y-%m-%d %H:%M:%S.%f'), '0'), '.')"
    return part.computed(within_calendar(f"CAST({shown} AS DATE)", written, "the text", to), to, refuses=True)


def _moment_to_date(part: Part, to: Type, zone: str) -> Part:
    return part.computed(f"CAST({local(part, zone)} AS DATE)", to, seems=part.type.name == "TIMESTAMP_NTZ")


def _moment_to_local(part: Part, to: Type, zone: str) -> Part:
    return part.computed(local(part, zone), to)


def _from_local(part: Part, to: Type, zone: str) -> Part:
    if not is_utc(zone):
        raise NotProven(f"CAST from {part.type.name} to {to.name} in {zone}")
    moment_ = f"CAST({part.sql} AS TIMESTAMP)" if part.type.name == "DATE" else part.sql
    return part.computed(f"timezone('UTC', {moment_})", to)


def _date_to_ntz(part: Part, to: Type, zone: str) -> Part:
    return part.computed(f"CAST({part.sql} AS TIMESTAMP)", to, seems=True)


def _moment_to_bigint(part: Part, to: Type, zone: str) -> Part:
    micros = f"epoch_us({part.sql})"
    return part.computed(f"(({micros} - ((({micros} % 1000000) + 1000000) % 1000000)) // 1000000)", to)


def _boolean_to_number(part: Part, to: Type, zone: str) -> Part:
    return part.computed(f"CAST(CAST({part.sql} AS INTEGER) AS {in_duckdb(to)})", to)


def _seconds_to_moment(part: Part, to: Type, zone: str) -> Part:
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
    **{("STRING", other): _string_to_integer for other in INTEGERS},
    ("STRING", "DECIMAL"): _string_to_decimal,
    **{("STRING", other): _string_to_floating for other in FLOATING},
    ("STRING", "BOOLEAN"): _string_to_boolean,
    **{("STRING", other): _string_to_moment for other in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")},
    ("BOOLEAN", "STRING"): _safe,
    **{("BOOLEAN", other): _boolean_to_number for other in INTEGERS},
    ("DATE", "STRING"): _date_to_string,
    ("DATE", "TIMESTAMP"): _from_local,
    ("DATE", "TIMESTAMP_NTZ"): _date_to_ntz,
    **{(one, "STRING"): _moment_to_string for one in ("TIMESTAMP", "TIMESTAMP_NTZ")},
    **{(one, "DATE"): _moment_to_date for one in ("TIMESTAMP", "TIMESTAMP_NTZ")},
    ("TIMESTAMP", "TIMESTAMP_NTZ"): _moment_to_local,
    ("TIMESTAMP_NTZ", "TIMESTAMP"): _from_local,
    ("TIMESTAMP", "BIGINT"): _moment_to_bigint,
}
"""The proven casts, by the kinds of the two types."""


WIDEST = 38


def common_type(types: Sequence[Type]) -> Type | None:
    """The type that Spark casts values of these types to, to compare them or to choose among them; None if not proven.

    >>> found = common_type([read_type(name) for name in ("INT", "DECIMAL(5,2)", "VOID")])
    >>> found and found.name
    'DECIMAL(12,2)'
    """
    found = VOID
    for type_ in types:
        wider = _wider(found, type_)
        if wider is None:
            return None
        found = wider
    return found


def _wider(one: Type, other: Type) -> Type | None:
    if one.same(other):
        return _with_nulls(one, other)
    if VOID in (one, other):
        return other if one == VOID else one
    kinds = {one.kind, other.kind}
    if kinds <= set(NUMBERS):
        return _wider_number(one, other)
    if one.element is not None and other.element is not None:
        element = _wider(one.element, other.element)
        return element and array_of(element, has_nulls=one.has_nulls or other.has_nulls)
    if kinds <= set(TEMPORAL):
        return read_type("TIMESTAMP" if "TIMESTAMP" in kinds else "TIMESTAMP_NTZ")
    return None


def _with_nulls(one: Type, other: Type) -> Type:
    """The type that both are, with nulls inside where one of them has some."""
    if one.element is not None and other.element is not None:
        return array_of(_with_nulls(one.element, other.element), has_nulls=one.has_nulls or other.has_nulls)
    if one.fields:
        pairs = zip(one.fields, other.fields, strict=True)
        return struct_of(Field(a.name, _with_nulls(a.type, b.type), a.nullable or b.nullable) for a, b in pairs)
    return one


def _wider_number(one: Type, other: Type) -> Type | None:
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
    return read_type(f"DECIMAL({whole + after},{after})") if whole + after <= WIDEST else None


def with_texts(types: Sequence[Type]) -> Type | None:
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
    if texts and others and all(part.type.kind in TEMPORAL or part.type.same(VOID) for part in others):
        found = common_type([part.type for part in others])
    else:
        found = with_texts([part.type for part in parts])
    if found is None or (found.kind != "STRING" and any(part.is_mark and part.type == STRING for part in parts)):
        kinds, types = [part.type.kind for part in parts], " and ".join(dict.fromkeys(part.type.name for part in parts))
        one = [kind for kind in kinds if kind != "STRING"][:1] or kinds
        raise unlike(f"{what} of {types}", kinds, *[one] * len(kinds))
    return [part if part.type.same(found) else cast(part, found, zone) for part in parts]
