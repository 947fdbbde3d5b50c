"""The functions of dates and moments that are proven to be equal to Spark's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from xmlstream.operators.expressions.duration import DAY, MICROSECONDS
from xmlstream.operators.expressions.operations.casts import cast, moment_of, within_calendar
from xmlstream.operators.expressions.operations.part import (
    Part,
    Scalar,
    combined,
    is_utc,
    local,
    near,
    refused,
    require,
    text,
    where_midnight_is,
)
from xmlstream.operators.expressions.operations.spark_type import INTEGERS, TEMPORAL, NotProven, read_type

BIGINT, DATE, INT, STRING, TIMESTAMP = map(read_type, ("BIGINT", "DATE", "INT", "STRING", "TIMESTAMP"))


_FORMATS = {"yyyy": "%Y", "yy": "%y", "MM": "%m", "M": "%-m", "MMM": "%b", "MMMM": "%B", "dd": "%d", "d": "%-d",
            "DDD": "%j", "E": "%a", "EEEE": "%A", "HH": "%H", "H": "%-H", "hh": "%I", "h": "%-I", "a": "%p", "mm": "%M",
            "m": "%-M", "ss": "%S", "s": "%-S", "SSSSSS": "%f", "SSS": "%g"}  # fmt: skip


def _date_format(name: str, parts: Sequence[Part], zone: str) -> Part:
    require("date_format", parts, TEMPORAL, ("STRING",))
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
    if is_moved and (parts[0].type.name != "DATE" or set(written) & set("HIpMSfg")):
        raise NotProven(f"date_format of a {parts[0].type.name} by '{pattern}' in {zone}")
    shown = parts[0].sql if parts[0].type.name == "DATE" else local(parts[0], zone)
    if parts[0].type.name == "DATE":
        shown = f"CAST({shown} AS TIMESTAMP)"
    sql = f"strftime({shown}, {text(written)})"
    day = f"CAST({shown} AS DATE)"
    return parts[0].computed(within_calendar(day, sql, "date_format", STRING), STRING, refuses=True)


def _part_of_time(name: str, parts: Sequence[Part], zone: str) -> Part:
    require(name, parts, ("TIMESTAMP", "TIMESTAMP_NTZ"))
    return parts[0].computed(f"CAST(date_part('{name}', {local(parts[0], zone)}) AS INTEGER)", INT)


def _part_of_date(name: str, parts: Sequence[Part], zone: str) -> Part:
    require(name, parts, TEMPORAL)
    day = parts[0].sql if parts[0].type.name == "DATE" else local(parts[0], zone)
    seems = parts[0].type.name == "TIMESTAMP_NTZ"  # Spark casts it to a DATE first
    part = _PARTS.get(name, "date_part('{0}', {1})").format(name, day)
    return parts[0].computed(f"CAST({part} AS INTEGER)", INT, seems=seems)


_PARTS = {"dayofmonth": "date_part('day', {1})", "dayofyear": "date_part('doy', {1})",
          "dayofweek": "date_part('dow', {1}) + 1", "weekday": "date_part('isodow', {1}) - 1",
          "weekofyear": "date_part('week', {1})"}  # fmt: skip
_LENGTHS = {"micros": 1, "millis": 1_000, "seconds": 1_000_000}


_UNITS = {unit.upper(): length for unit, length in MICROSECONDS.items()} | {"DD": DAY}
_MONTHS = {"MONTH": "month", "MON": "month", "MM": "month", "YEAR": "year", "YYYY": "year", "YY": "year",
           "QUARTER": "quarter", "WEEK": "week"}  # fmt: skip


def _date_trunc(name: str, parts: Sequence[Part], zone: str) -> Part:
    require(name, parts, ("STRING",), TEMPORAL)
    unit = (parts[0].word or "").upper()
    of = cast(parts[1], TIMESTAMP, zone)
    if unit not in (*_MONTHS, *_UNITS):
        raise NotProven(f"date_trunc('{unit}', TIMESTAMP)")
    if unit in _MONTHS or not (is_utc(zone) or unit.endswith("SECOND")):
        name = _MONTHS.get(unit) or unit.lower().replace("dd", "day")
        shown = f"CAST(date_trunc('{name}', {local(of, zone)}) AS TIMESTAMP)"
        begun = near(of.sql, shown, zone)
        sql = where_midnight_is(shown, begun, zone) if unit in _MONTHS else begun
        return of.computed(sql, TIMESTAMP, seems=True, refuses=unit in _MONTHS and not is_utc(zone))
    micros, length = f"epoch_us({of.sql})", _UNITS[unit]
    down = f"({micros} - ((({micros} % {length}) + {length}) % {length}))"
    return of.computed(f"make_timestamptz({down})", TIMESTAMP, seems=True)


def _trunc(name: str, parts: Sequence[Part], zone: str) -> Part:
    require(name, parts, ("DATE",), ("STRING",))
    unit = (parts[1].word or "").upper()
    if unit not in _MONTHS:
        raise NotProven(f"trunc(DATE, '{unit}')")
    return parts[0].computed(f"CAST(date_trunc('{_MONTHS[unit]}', {parts[0].sql}) AS DATE)", seems=True)


def _to_date(name: str, parts: Sequence[Part], zone: str) -> Part:
    require("to_date", parts, TEMPORAL)
    return cast(parts[0], DATE, zone)


def _unix(name: str, parts: Sequence[Part], zone: str) -> Part:
    require(name, parts, ("TIMESTAMP",))
    micros, length = f"epoch_us({parts[0].sql})", _LENGTHS[name.partition("_")[2]]
    down = f"({micros} - ((({micros} % {length}) + {length}) % {length})) // {length}"
    return parts[0].computed(micros if length == 1 else f"({down})", BIGINT)


def _timestamp(name: str, parts: Sequence[Part], zone: str) -> Part:
    require(name, parts, INTEGERS)
    length = _LENGTHS[name.partition("_")[2]]
    sql = moment_of(f"CAST({parts[0].sql} AS BIGINT)", length, name)
    overflows = length > 1 and parts[0].type.name == "BIGINT"
    return parts[0].computed(sql, TIMESTAMP, raises=overflows, refuses=True)


def _date_from_unix_date(name: str, parts: Sequence[Part], zone: str) -> Part:
    require("date_from_unix_date", parts, ("INT",))
    of = parts[0].sql
    within = f"CASE WHEN {of} BETWEEN -719162 AND 2932896 THEN DATE '1970-01-01' + {of} WHEN {of} IS NULL THEN NULL"
    sql = f"{within} ELSE {refused('date_from_unix_date of a day outside the years 1 to 9999')} END"
    return parts[0].computed(sql, DATE, refuses=True)


def _date_add(name: str, parts: Sequence[Part], zone: str) -> Part:
    require(name, parts, ("DATE",), ("TINYINT", "SMALLINT", "INT"))
    moved = f"({parts[0].sql} {'-' if name == 'date_sub' else '+'} {parts[1].sql})"
    return combined(within_calendar(moved, moved, name, DATE), DATE, parts, refuses=True)


MOMENTS: Mapping[str, Scalar] = {
    "date_format": Scalar(_date_format, "written"),
    "date_from_unix_date": Scalar(_date_from_unix_date, "exactly"),
    "date_trunc": Scalar(_date_trunc, "cut"),
    "trunc": Scalar(_trunc, "cut"),
    **dict.fromkeys(("date", "to_date"), Scalar(_to_date, "day")),
    **dict.fromkeys(("date_add", "date_sub", "dateadd"), Scalar(_date_add, "moved")),
    **dict.fromkeys(("quarter", *_PARTS), Scalar(_part_of_date)),
    **dict.fromkeys(("year", "month", "day", "dayofmonth"), Scalar(_part_of_date, "part")),
    **dict.fromkeys(("hour", "minute", "second"), Scalar(_part_of_time, "part")),
    **{f"timestamp_{unit}": Scalar(_timestamp, "exactly") for unit in _LENGTHS},
    **{f"unix_{unit}": Scalar(_unix, "exactly" if unit == "micros" else "coarsely") for unit in _LENGTHS},
}
"""The proven functions of dates and moments, by name."""
