"""The functions of one row that are proven to be equal to Spark's, each with its types: the table that users see.

A function is given its arguments as parts and returns the part of its result; it refuses types that are not proven.
Names are Spark's, in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from xmlstream.operators.expressions.operations.arithmetic import absolute, arithmetic, modulus
from xmlstream.operators.expressions.operations.casts import (
    cast,
    common_type,
    is_utc,
    local,
    same_type,
    within_calendar,
)
from xmlstream.operators.expressions.operations.part import (
    VOID,
    Part,
    combined,
    error,
    joined,
    null,
    refused,
    require_silent,
    text,
)
from xmlstream.operators.expressions.operations.spark_type import (
    FLOATING,
    INTEGERS,
    NUMBERS,
    TEMPORAL,
    Field,
    NotProven,
    array_of,
    in_duckdb,
    name_in_duckdb,
    read_type,
    struct_of,
)

Function: TypeAlias = Callable[[Sequence[Part], str], Part]
"""The result of a function for its arguments, in a time zone."""

BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP = map(
    read_type, ("BIGINT", "BOOLEAN", "DATE", "DOUBLE", "INT", "STRING", "TIMESTAMP")
)


def _require(name: str, parts: Sequence[Part], *kinds: Sequence[str]) -> None:
    """Refuses arguments of other kinds, or another number of them."""
    if len(parts) != len(kinds) or any(p.type.kind not in of for p, of in zip(parts, kinds, strict=True)):
        raise NotProven(f"{name}({', '.join(part.type.name for part in parts)})")


def call(name: str, parts: Sequence[Part], zone: str) -> Part:
    """The result of a function.

    Raises:
        NotProven: The function is not in the table, or not with these types.
    """
    function = FUNCTIONS.get(name)
    if function is None:
        raise NotProven(f"the function {name}")
    return function(parts, zone)


def _coalesce(parts: Sequence[Part], zone: str) -> Part:
    if not parts:
        raise NotProven("coalesce()")
    sides = same_type(parts, "coalesce", zone)
    sql = f"coalesce({', '.join(part.sql for part in sides)})"
    type_ = sides[0].type if len(sides) == 1 else common_type([side.type for side in sides]) or sides[0].type
    return joined(sql, type_, sides, nullable=all(part.nullable for part in sides))


def _nvl(parts: Sequence[Part], zone: str) -> Part:
    if len(parts) != 2:
        raise NotProven(f"nvl of {len(parts)} arguments")
    return _coalesce(parts, zone)


def if_(parts: Sequence[Part], zone: str) -> Part:
    """IF(condition, one, other)."""
    if len(parts) != 3 or parts[0].type.name not in ("BOOLEAN", "VOID"):
        raise NotProven(f"if({', '.join(part.type.name for part in parts)})")
    found = choice([(parts[0], parts[1])], parts[2], zone)
    return replace(found, nullable=any(part.nullable for part in parts[1:]))


def choice(branches: Sequence[tuple[Part, Part]], default: Part | None, zone: str) -> Part:
    """CASE WHEN … THEN … ELSE … END."""
    results = [result for _, result in branches] + ([default] if default is not None else [])
    sides = same_type(results, "CASE", zone)
    if any(test.type.name not in ("BOOLEAN", "VOID") for test, _ in branches):
        raise NotProven("CASE with a condition that is no BOOLEAN")
    tests = [test for test, _ in branches]
    whens = " ".join(f"WHEN {t.sql} THEN {r.sql}" for t, r in zip(tests, sides, strict=False))
    otherwise = f" ELSE {sides[-1].sql}" if default is not None else ""
    type_ = common_type([side.type for side in sides]) or sides[0].type
    sql = f"CASE {whens}{otherwise} END"
    if type_.same(VOID):
        sql = "NULL"
    nullable = _may_be_null(tests, sides, has_default=default is not None)
    return joined(sql, type_, [*tests, *sides], nullable=nullable)


def _may_be_null(tests: Sequence[Part], results: Sequence[Part], *, has_default: bool) -> bool:
    """Whether a CASE may be null: behind a branch that is always taken, Spark looks at none."""
    always = next((i for i, test in enumerate(tests) if test.sql == "true"), None)
    if always is not None:
        return any(result.nullable for result in results[: always + 1])
    return not has_default or any(result.nullable for result in results)


def _nullif(parts: Sequence[Part], zone: str) -> Part:
    if len(parts) != 2 or parts[0].raises:
        raise NotProven("nullif with an operand that can raise an error")
    one, other = same_type(parts, "nullif", zone)
    sql = f"CASE WHEN {one.sql} = {other.sql} THEN {null(parts[0].type)} ELSE {parts[0].sql} END"
    return combined(sql, parts[0].type, parts, nullable=True)


def _extreme(name: str) -> Function:
    def function(parts: Sequence[Part], zone: str) -> Part:
        if len(parts) < 2:
            raise NotProven(f"{name} of {len(parts)} arguments")
        sides = same_type(parts, name, zone)
        if sides[0].type.kind not in (*INTEGERS, "DECIMAL", "DOUBLE", "FLOAT", "STRING", *TEMPORAL, "BOOLEAN"):
            raise NotProven(f"{name} of {sides[0].type.name}")
        if sides[0].type.kind in FLOATING:
            raise NotProven(f"{name} of {sides[0].type.name}, of whose zeros either may be chosen,")
        sql = f"{name}({', '.join(part.sql for part in sides)})"
        return joined(sql, sides[0].type, sides, nullable=all(part.nullable for part in sides))

    return function


def _abs(parts: Sequence[Part], zone: str) -> Part:
    _require("abs", parts, NUMBERS)
    return absolute(parts[0])


def _mod(parts: Sequence[Part], zone: str) -> Part:
    if len(parts) != 2:
        raise NotProven(f"mod of {len(parts)} arguments")
    return arithmetic("%", parts[0], parts[1], zone)


def _pmod(parts: Sequence[Part], zone: str) -> Part:
    if len(parts) != 2:
        raise NotProven(f"pmod of {len(parts)} arguments")
    return modulus(parts[0], parts[1], zone)


def _tried(operator: str) -> Function:
    def function(parts: Sequence[Part], zone: str) -> Part:
        name = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}[operator]
        _require(name, parts, INTEGERS, INTEGERS)
        done = arithmetic(operator, parts[0], parts[1], zone)
        if any(part.raises for part in parts):
            raise NotProven(f"{name} with an operand that can raise an error")
        # DuckDB computes what stands twice in a SELECT once, outside of TRY, so that `TRY(n + 1)` may be an error.
        one, other = (f"CAST({part.sql} AS HUGEINT)" for part in parts)
        sql = f"TRY_CAST(({one} {operator} {other}) AS {in_duckdb(done.type)})"
        return Part(sql, done.type, True, rows=done.rows)

    return function


def _named_struct(parts: Sequence[Part], zone: str) -> Part:
    if len(parts) % 2 or not parts:
        raise NotProven("named_struct of an odd number of arguments")
    fields, texts = [], []
    for name, value in zip(parts[::2], parts[1::2], strict=True):
        if not name.word or value.type.same(VOID):
            raise NotProven(f"named_struct with a field of {value.type.name} or a computed name")
        fields.append(Field(name.word, value.type, value.nullable))
        texts.append(f"{name_in_duckdb(name.word)} := {value.sql}")
    if len({field.name.lower() for field in fields}) < len(fields):
        raise NotProven("named_struct with two fields of one name")
    sql = f"struct_pack({', '.join(texts)})"
    return joined(sql, struct_of(fields), parts, nullable=False)


def field(of: Part, name: str) -> Part:
    """A field of a structure; of an array of structures, the array of their fields.

    Raises:
        NotProven: There is none of the name, or there are several.
    """
    if of.type.element is not None and of.type.element.fields:
        inner = field(Part("x", of.type.element, of.type.has_nulls), name)
        type_ = array_of(inner.type, has_nulls=inner.nullable)
        return of.computed(f"list_transform({of.sql}, lambda x: {inner.sql})", type_)
    found = [field for field in of.type.fields if field.name.lower() == name.lower()]
    if len(found) != 1:
        raise NotProven(f"the field {name} of {of.type.name}")
    sql = f"struct_extract({of.sql}, {text(found[0].name)})"
    return of.computed(sql, found[0].type, nullable=of.nullable or found[0].nullable)


def _array(parts: Sequence[Part], zone: str) -> Part:
    if not parts:
        return Part("[]", array_of(VOID, has_nulls=False), False)
    sides = same_type(parts, "array", zone)
    element = common_type([side.type for side in sides]) or sides[0].type
    if element.same(VOID):
        raise NotProven("array of nulls")
    type_ = array_of(element, has_nulls=any(side.nullable for side in sides))
    sql = f"[{', '.join(side.sql for side in sides)}]"
    return joined(sql, type_, sides, nullable=False)


def _get(parts: Sequence[Part], zone: str) -> Part:
    _require("get", parts, ("ARRAY",), ("TINYINT", "SMALLINT", "INT"))
    array, index = parts
    assert array.type.element is not None
    inside = f"CAST(list_extract({array.sql}, CAST({index.sql} AS BIGINT) + 1) AS {in_duckdb(array.type.element)})"
    sql = inside if index.whole is not None else f"CASE WHEN {index.sql} >= 0 THEN {inside} END"
    return combined(sql, array.type.element, parts, nullable=True)


def _size(parts: Sequence[Part], zone: str) -> Part:
    _require("size", parts, ("ARRAY",))
    return parts[0].computed(f"CAST(len({parts[0].sql}) AS INTEGER)", INT)


def _sequence(parts: Sequence[Part], zone: str) -> Part:
    if len(parts) == 2:
        parts = [*parts, Part("1", INT, False, constant="1")]
    _require("sequence", parts, INTEGERS, INTEGERS, INTEGERS)
    type_ = common_type([part.type for part in parts[:2]]) or BIGINT
    if type_.name not in ("INT", "BIGINT"):
        raise NotProven(f"sequence of {type_.name}")
    first, last, step = (cast(part, type_, zone) for part in parts)
    if not parts[2].whole:
        raise NotProven("sequence with a step that is no positive literal")
    # Down from the first to the last, Spark refuses a positive step, and goes by -1 where none is given.
    down = error("ILLEGAL_SEQUENCE_BOUNDARIES", "Illegal sequence boundaries.")
    name = in_duckdb(array_of(type_))
    given = f"CAST(generate_series({first.sql}, {last.sql}, {step.sql}) AS {name})"
    sql = f"CASE WHEN {first.sql} > {last.sql} THEN {down} ELSE {given} END"
    return combined(sql, array_of(type_, has_nulls=False), [first, last, step], raises=True)


def _lower_or_upper(name: str) -> Function:
    def function(parts: Sequence[Part], zone: str) -> Part:
        _require(name, parts, ("STRING",))
        of = parts[0].sql
        sql = (
            f"CASE WHEN regexp_full_match({of}, '[\\x01-\\x7e\\s]*') THEN {name}({of}) WHEN {of} IS NULL THEN NULL"
            f" ELSE {refused(name + ' of letters beyond ASCII')} END"
        )
        return parts[0].computed(sql, refuses=True)

    return function


def _length(parts: Sequence[Part], zone: str) -> Part:
    _require("length", parts, ("STRING",))
    return parts[0].computed(f"CAST(length({parts[0].sql}) AS INTEGER)", INT)


def _replace(parts: Sequence[Part], zone: str) -> Part:
    _require("replace", parts, ("STRING",), ("STRING",), ("STRING",))
    return combined(f"replace({', '.join(part.sql for part in parts)})", STRING, parts)


def _concat(parts: Sequence[Part], zone: str) -> Part:
    if not parts or any(part.type.name != "STRING" for part in parts):
        raise NotProven(f"concat({', '.join(part.type.name for part in parts)})")
    if any(part.raises for part in parts) and any(part.nullable for part in parts):
        raise NotProven("concat of an operand that can raise an error and of one that can be null")
    # Of constants DuckDB may find no type, where they are null.
    return combined(f"CAST(({' || '.join(part.sql for part in parts)}) AS VARCHAR)", STRING, parts)


def _found(name: str, function_: str) -> Function:
    def function(parts: Sequence[Part], zone: str) -> Part:
        _require(name, parts, ("STRING",), ("STRING",))
        return combined(f"{function_}({parts[0].sql}, {parts[1].sql})", BOOLEAN, parts)

    return function


def _split(parts: Sequence[Part], zone: str) -> Part:
    _require("split", parts, ("STRING",), ("STRING",))
    by = parts[1].word
    if by is None or not re.fullmatch(r"[\w /,;:&=#@!%~-]", by, re.ASCII):
        raise NotProven("split by anything but one plain character")
    sql = f"string_split({parts[0].sql}, {text(by)})"
    return parts[0].computed(sql, array_of(STRING, has_nulls=False))


_PLAIN = r"[\w /,;:&=#@!%~\-]"
_SET = r"\[\^?(?:(?!&&)[\w /,;:&=#@!%~])+\]"  # in Java && is an intersection
_ATOM = f"(?:{_PLAIN}|{_SET})[*+?]?"
_RUN = f"(?:{_ATOM})*"
_PATTERN = re.compile(rf"(?:\({_PLAIN}\|\^\)|\(\^\|{_PLAIN}\)|\({_RUN}\)|{_ATOM})+", re.ASCII)
"""Regular expressions that Java and RE2 read alike: letters, sets, repetitions of these, groups without repetition."""


def _regexp_extract(parts: Sequence[Part], zone: str) -> Part:
    if len(parts) == 2:
        parts = [*parts, Part("1", INT, False, constant="1")]
    _require("regexp_extract", parts, ("STRING",), ("STRING",), ("INT",))
    pattern, group = parts[1].word, parts[2].whole
    if pattern is None or group is None or not _PATTERN.fullmatch(pattern):
        raise NotProven("regexp_extract by a pattern with more than letters, sets, groups and repetitions")
    if group > pattern.count("("):
        raise NotProven(f"regexp_extract of group {group} of {pattern.count('(')}")
    return parts[0].computed(f"regexp_extract({parts[0].sql}, {text(pattern)}, {group})")


_FORMATS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "SSSSSS": "%f", "SSS": "%g"}


def _date_format(parts: Sequence[Part], zone: str) -> Part:
    _require("date_format", parts, TEMPORAL, ("STRING",))
    pattern = parts[1].word
    if not pattern:
        raise NotProven("date_format with a computed pattern, or an empty one,")
    written = ""
    for word in re.findall(r"([A-Za-z])(\1*)|([^A-Za-z])", pattern):
        letters = word[0] + word[1]
        if (letters and letters not in _FORMATS) or (word[2] in "'[]{}#" and word[2]):
            raise NotProven(f"date_format by '{pattern}'")
        written += _FORMATS[letters] if letters else word[2].replace("%", "%%")
    # In a zone, Spark reads a local time as a moment, which moves those that the clocks leave out.
    is_moved = parts[0].type.name != "TIMESTAMP" and not is_utc(zone)
    if is_moved and (parts[0].type.name != "DATE" or set(written) & set("HMSfg")):
        raise NotProven(f"date_format of a {parts[0].type.name} by '{pattern}' in {zone}")
    shown = parts[0].sql if parts[0].type.name == "DATE" else local(parts[0], zone)
    if parts[0].type.name == "DATE":
        shown = f"CAST({shown} AS TIMESTAMP)"
    sql = f"strftime({shown}, {text(written)})"
    day = f"CAST({shown} AS DATE)"
    return parts[0].computed(within_calendar(day, sql, "date_format", STRING), STRING, refuses=True)


def _part_of_time(name: str, unit: str) -> Function:
    def function(parts: Sequence[Part], zone: str) -> Part:
        _require(name, parts, ("TIMESTAMP", "TIMESTAMP_NTZ"))
        return parts[0].computed(f"CAST(date_part('{unit}', {local(parts[0], zone)}) AS INTEGER)", INT)

    return function


def _part_of_date(name: str, unit: str) -> Function:
    def function(parts: Sequence[Part], zone: str) -> Part:
        _require(name, parts, TEMPORAL)
        day = parts[0].sql if parts[0].type.name == "DATE" else local(parts[0], zone)
        nullable = parts[0].nullable or parts[0].type.name == "TIMESTAMP_NTZ"  # Spark casts it to a DATE first
        return parts[0].computed(f"CAST(date_part('{unit}', {day}) AS INTEGER)", INT, nullable=nullable)

    return function


_UNITS = {
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "DD": 86_400_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}
_MONTHS = {"MONTH": "month", "MON": "month", "MM": "month", "YEAR": "year", "YYYY": "year", "YY": "year",
           "QUARTER": "quarter", "WEEK": "week"}  # fmt: skip


def _date_trunc(parts: Sequence[Part], zone: str) -> Part:
    _require("date_trunc", parts, ("STRING",), ("TIMESTAMP",))
    unit = (parts[0].word or "").upper()
    of = parts[1]
    if is_utc(zone) and unit in _MONTHS:
        truncated = f"date_trunc('{_MONTHS[unit]}', {local(of, zone)})"
        return of.computed(f"timezone('UTC', CAST({truncated} AS TIMESTAMP))", TIMESTAMP, nullable=True)
    if unit not in _UNITS or not (is_utc(zone) or unit.endswith("SECOND")):
        raise NotProven(f"date_trunc('{unit}', TIMESTAMP) in {zone}")
    micros, length = f"epoch_us({of.sql})", _UNITS[unit]
    down = f"({micros} - ((({micros} % {length}) + {length}) % {length}))"
    return of.computed(f"make_timestamptz({down})", TIMESTAMP, nullable=True)


def _to_date(parts: Sequence[Part], zone: str) -> Part:
    _require("to_date", parts, TEMPORAL)
    return cast(parts[0], DATE, zone)


def _unix(name: str, length: int) -> Function:
    def function(parts: Sequence[Part], zone: str) -> Part:
        _require(name, parts, ("TIMESTAMP",))
        micros = f"epoch_us({parts[0].sql})"
        down = f"({micros} - ((({micros} % {length}) + {length}) % {length})) // {length}"
        return parts[0].computed(micros if length == 1 else f"({down})", BIGINT)

    return function


def _timestamp(name: str, length: int) -> Function:
    def function(parts: Sequence[Part], zone: str) -> Part:
        _require(name, parts, INTEGERS)
        micros = f"CAST({parts[0].sql} AS BIGINT)"
        moved = micros if length == 1 else f"({micros} * {length})"
        # A year more on both sides: the last window of the calendar ends behind it.
        least, most = -62_167_219_200_000_000, 253_433_836_799_999_999
        beyond = refused(f"{name} of a moment outside the years 0 to 10000")
        within = f"CASE WHEN {micros} BETWEEN {least // length} AND {most // length} THEN make_timestamptz({moved})"
        sql = f"{within} WHEN {micros} IS NULL THEN {null(TIMESTAMP)} ELSE {beyond} END"
        overflows = length > 1 and parts[0].type.name == "BIGINT"
        return parts[0].computed(sql, TIMESTAMP, raises=overflows, refuses=True)

    return function


def _unix_date(parts: Sequence[Part], zone: str) -> Part:
    _require("unix_date", parts, ("DATE",))
    return parts[0].computed(f"CAST(({parts[0].sql} - DATE '1970-01-01') AS INTEGER)", INT)


def _date_from_unix_date(parts: Sequence[Part], zone: str) -> Part:
    _require("date_from_unix_date", parts, ("INT",))
    of = parts[0].sql
    within = f"CASE WHEN {of} BETWEEN -719162 AND 2932896 THEN DATE '1970-01-01' + {of} WHEN {of} IS NULL THEN NULL"
    sql = f"{within} ELSE {refused('date_from_unix_date of a day outside the years 1 to 9999')} END"
    return parts[0].computed(sql, DATE, refuses=True)


def _date_add(sign: str) -> Function:
    def function(parts: Sequence[Part], zone: str) -> Part:
        name = "date_add" if sign == "+" else "date_sub"
        _require(name, parts, ("DATE",), ("TINYINT", "SMALLINT", "INT"))
        moved = f"({parts[0].sql} {sign} {parts[1].sql})"
        return combined(within_calendar(moved, moved, name, DATE), DATE, parts, refuses=True)

    return function


def _datediff(parts: Sequence[Part], zone: str) -> Part:
    _require("datediff", parts, ("DATE",), ("DATE",))
    return combined(f"CAST(({parts[0].sql} - {parts[1].sql}) AS INTEGER)", INT, parts)


def _floor_or_ceil(name: str) -> Function:
    def function(parts: Sequence[Part], zone: str) -> Part:
        _require(name, parts, (*INTEGERS, *FLOATING))
        of = parts[0]
        if of.type.name in INTEGERS:
            return of.computed(f"CAST({of.sql} AS BIGINT)", BIGINT, nullable=True)
        rounded = f"{'floor' if name == 'floor' else 'ceil'}(CAST({of.sql} AS DOUBLE))"
        within = f"{of.sql} IS NULL OR {of.sql} BETWEEN -9223372036854775808::DOUBLE AND 9223372036854774784::DOUBLE"
        beyond = error("ARITHMETIC_OVERFLOW", f"{name} is beyond BIGINT.")
        sql = f"CASE WHEN isnan({of.sql}) THEN 0 WHEN {within} THEN CAST({rounded} AS BIGINT) ELSE {beyond} END"
        return of.computed(sql, BIGINT, nullable=True, raises=True)

    return function


def _isnull(parts: Sequence[Part], zone: str) -> Part:
    if len(parts) != 1:
        raise NotProven(f"isnull of {len(parts)} arguments")
    require_silent("isnull", parts[0])
    return parts[0].computed(f"({parts[0].sql} IS NULL)", BOOLEAN, nullable=False)


def _isnotnull(parts: Sequence[Part], zone: str) -> Part:
    if len(parts) != 1:
        raise NotProven(f"isnotnull of {len(parts)} arguments")
    require_silent("isnotnull", parts[0])
    return parts[0].computed(f"({parts[0].sql} IS NOT NULL)", BOOLEAN, nullable=False)


def _isnan(parts: Sequence[Part], zone: str) -> Part:
    _require("isnan", parts, FLOATING)
    return parts[0].computed(f"coalesce(isnan({parts[0].sql}), false)", BOOLEAN, nullable=False)


FUNCTIONS: Mapping[str, Function] = {
    "abs": _abs,
    "array": _array,
    "ceil": _floor_or_ceil("ceil"),
    "ceiling": _floor_or_ceil("ceiling"),
    "coalesce": _coalesce,
    "concat": _concat,
    "contains": _found("contains", "contains"),
    "date": _to_date,
    "date_add": _date_add("+"),
    "date_format": _date_format,
    "date_from_unix_date": _date_from_unix_date,
    "date_sub": _date_add("-"),
    "date_trunc": _date_trunc,
    "datediff": _datediff,
    "day": _part_of_date("day", "day"),
    "dayofmonth": _part_of_date("dayofmonth", "day"),
    "dayofyear": _part_of_date("dayofyear", "doy"),
    "endswith": _found("endswith", "ends_with"),
    "floor": _floor_or_ceil("floor"),
    "get": _get,
    "greatest": _extreme("greatest"),
    "hour": _part_of_time("hour", "hour"),
    "if": if_,
    "ifnull": _nvl,
    "isnan": _isnan,
    "isnotnull": _isnotnull,
    "isnull": _isnull,
    "least": _extreme("least"),
    "len": _length,
    "length": _length,
    "lower": _lower_or_upper("lower"),
    "minute": _part_of_time("minute", "minute"),
    "mod": _mod,
    "month": _part_of_date("month", "month"),
    "named_struct": _named_struct,
    "nullif": _nullif,
    "nvl": _nvl,
    "pmod": _pmod,
    "quarter": _part_of_date("quarter", "quarter"),
    "regexp_extract": _regexp_extract,
    "replace": _replace,
    "second": _part_of_time("second", "second"),
    "sequence": _sequence,
    "size": _size,
    "split": _split,
    "startswith": _found("startswith", "starts_with"),
    "timestamp_micros": _timestamp("timestamp_micros", 1),
    "timestamp_millis": _timestamp("timestamp_millis", 1_000),
    "timestamp_seconds": _timestamp("timestamp_seconds", 1_000_000),
    "to_date": _to_date,
    "try_add": _tried("+"),
    "try_multiply": _tried("*"),
    "try_subtract": _tried("-"),
    "unix_date": _unix_date,
    "unix_micros": _unix("unix_micros", 1),
    "unix_millis": _unix("unix_millis", 1_000),
    "unix_seconds": _unix("unix_seconds", 1_000_000),
    "upper": _lower_or_upper("upper"),
    "year": _part_of_date("year", "year"),
}
"""The proven functions by name."""
