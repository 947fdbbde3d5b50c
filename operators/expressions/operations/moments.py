"""The functions of dates and moments that are proven to be equal to Spark's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timezone

from xmlstream.dataclasses import replace
from xmlstream.operators.expressions.duration import DAY, MICROSECONDS
from xmlstream.operators.expressions.operations.casts import (
    cast,
    moment_in,
    moment_of,
    read_text,
    text_matches,
    tried,
    within_calendar,
)
from xmlstream.operators.expressions.operations.part import (
    Part,
    Scalar,
    at_local,
    combined,
    computed_once,
    is_utc,
    local,
    near,
    refused,
    require,
    text,
)
from xmlstream.operators.expressions.operations.spark_type import NotProven, read_type
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.sql_type import INTEGERS, TEMPORAL
from xmlstream.punct_ns.time_zones import full_zone, offset, rules

BIGINT, DATE, INT, STRING, TIMESTAMP, NTZ = map(
    read_type, ("BIGINT", "DATE", "INT", "STRING", "TIMESTAMP", "TIMESTAMP_NTZ")
)


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
        begun = near(of.sql, f"CAST(date_trunc('{name}', {{}}) AS TIMESTAMP)", zone, is_day=unit in _MONTHS)
        return of.computed(begun, TIMESTAMP, seems=True, refuses=unit in _MONTHS and not is_utc(zone))
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
    if len(parts) == 1 and parts[0].type.kind != "STRING":
        require("to_date", parts, TEMPORAL)
        return cast(parts[0], DATE, zone)
    return _from_text(name, parts, zone)


_WIDTHS = {"yyyy": 4, "MM": 2, "dd": 2, "HH": 2, "mm": 2, "ss": 2}


def _from_text(name: str, parts: Sequence[Part], zone: str) -> Part:
    """A text as a day or a moment, perhaps by a pattern of numbers of fixed width."""
    require(name, parts, *[("STRING",)] * min(max(len(parts), 1), 2))
    to, tries = DATE if name.endswith("date") else TIMESTAMP, name.startswith("try_")
    if len(parts) == 1:
        return (tried if tries else cast)(parts[0], to, zone)
    words = re.findall(r"([A-Za-z])(\1*)|'(T)'|([^A-Za-z'\[\]{}#])", parts[1].word or "")
    read = [word[0] + word[1] for word in words if word[0]]
    shape = "".join(f"([0-9]{{{_WIDTHS.get(w[0] + w[1], 0)}}})" if w[0] else re.escape(w[2] + w[3]) for w in words)
    written = "".join(w[0] + w[1] + (w[2] and "'T'") + w[3] for w in words)
    if written != parts[1].word or sorted(read, key=[*_WIDTHS, *read].index) != [*_WIDTHS][: max(len(read), 3)]:
        raise NotProven(f"{name} by a pattern of more than yyyy, MM, dd, HH, mm and ss")
    places = [rf"\{read.index(of) + 1}" if of in read else "00" for of in _WIDTHS]
    iso = f"regexp_replace({parts[0].sql}, {text(shape)}, {text('{}-{}-{} {}:{}:{}'.format(*places))})"
    alike, value, _ = moment_in(iso, NTZ, zone)
    shaped = text_matches(parts[0].sql, shape)
    unknown = f"regexp_matches({parts[0].sql}, '[+-][0-9]{{4}}') OR ({shaped} AND {iso} < '0001')"
    texts = (f"{shaped} AND {alike}", value, unknown)
    found = read_text(parts[0], NTZ, texts, "CANNOT_PARSE_TIMESTAMP", tries=tries)
    nullable = parts[0].nullable or tries
    return replace(cast(found, to, zone), nullable=nullable, seems=parts[0].seems and not tries)


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


def _by_wall(name: str, parts: Sequence[Part], zone: str) -> Part:
    """A moment as the clocks of a zone show it, as if they showed UTC; or the moment at which they show that."""
    require(name, parts, TEMPORAL, ("STRING",))
    of, wall = cast(parts[0], TIMESTAMP, zone), full_zone(parts[1].word or "")
    try:
        if not wall or (isinstance(rules(wall), timezone) and not is_utc(wall) and not _OFFSET.fullmatch(wall)):
            raise NotProven(f"{name} in the zone '{wall}'")
    except UsageError as error:
        raise NotProven(f"{name} in the zone '{wall}'") from error
    utc = "timezone('UTC', {})"
    if name.startswith("from"):
        shown = utc.format(_shown(of.sql, wall))
    elif _OFFSET.fullmatch(wall):
        shown = f"({of.sql} - to_microseconds({offset(wall, 0) * 1_000_000}))"
    else:
        shown = at_local(utc.format(of.sql), wall)
    day = f"CAST({utc.format('moved')} AS DATE)"
    sql = computed_once(shown, "moved", within_calendar(day, "moved", name, TIMESTAMP))
    return of.computed(sql, TIMESTAMP, refuses=True)


_OFFSET = re.compile(r"[+-]\d\d:\d\d", re.ASCII)


def _shown(moment: str, wall: str) -> str:
    """A moment as the clocks of a zone show it."""
    if _OFFSET.fullmatch(wall):
        return f"timezone('UTC', {moment} + to_microseconds({offset(wall, 0) * 1_000_000}))"
    return f"timezone({text('UTC' if is_utc(wall) else wall)}, {moment})"


MOMENTS: Mapping[str, Scalar] = {
    "date_format": Scalar(_date_format, "written"),
    "date_from_unix_date": Scalar(_date_from_unix_date, "exactly"),
    "date_trunc": Scalar(_date_trunc, "cut"),
    "trunc": Scalar(_trunc, "cut"),
    "from_utc_timestamp": Scalar(_by_wall, "shown"),
    "to_utc_timestamp": Scalar(_by_wall, "read"),
    **dict.fromkeys(("date", "to_date"), Scalar(_to_date, "day")),
    **dict.fromkeys(("to_timestamp", "try_to_timestamp", "try_to_date"), Scalar(_from_text)),
    **dict.fromkeys(("date_add", "date_sub", "dateadd"), Scalar(_date_add, "moved")),
    **dict.fromkeys(("quarter", *_PARTS), Scalar(_part_of_date)),
    **dict.fromkeys(("year", "month", "day", "dayofmonth"), Scalar(_part_of_date, "part")),
    **dict.fromkeys(("hour", "minute", "second"), Scalar(_part_of_time, "part")),
    **{f"timestamp_{unit}": Scalar(_timestamp, "exactly") for unit in _LENGTHS},
    **{f"unix_{unit}": Scalar(_unix, "exactly" if unit == "micros" else "coarsely") for unit in _LENGTHS},
}
"""The proven functions of dates and moments, by name."""
