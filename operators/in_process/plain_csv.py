"""CSV files without escapes and quotes within fields, read as Spark's reader reads them; all others are refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from xmlstream.operators.expressions.operations.part import is_utc
from xmlstream.operators.expressions.operations.spark_type import NotProven
from xmlstream.operators.in_process.columns import Named, declared
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import InputError
from xmlstream.punct_ns.numeric_type import DecimalType
from xmlstream.punct_ns.slices import arrow_type
from xmlstream.punct_ns.sql_type import INTEGERS

_DAY, _TIME = r"\d{4}-\d\d-\d\d", r"[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?"
_WRITTEN: Mapping[str, str] = {
    **dict.fromkeys(INTEGERS, r"-?\d+"),
    "DOUBLE": r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?",
    "BOOLEAN": "true|false",
    "DATE": _DAY,
    "TIMESTAMP": rf"{_DAY}{_TIME}Z?",
    "TIMESTAMP_NTZ": rf"{_DAY}{_TIME}",
    "STRING": r"(?s:.*)",
}
"""The types, each with the texts that both readers understand alike."""


def plain_csv(path: str, columns: Named, options: Mapping[str, str], zone: str = "UTC") -> pa.Table:
    """The rows of a file of CSV, or of all files in a directory; an empty field is null.

    Args:
        path: The file or the directory.
        columns: Their names and types.
        options: Spark's options `header` and `sep`, and `mode`, which is FAILFAST.
        zone: The session's time zone, in which a TIMESTAMP may be written.

    Raises:
        NotProven: The files have quotes or escapes, or there are other options or types.
        InputError: A line has another number of fields, or a field is not a value of its type.
    """
    _require_plain(columns, options, zone)
    given = {name.lower(): value for name, value in options.items()}
    has_header = given.get("header", "false").lower() == "true"
    separator = given.get("sep", given.get("delimiter", ","))
    readers = [_reader(name, typed.type.name) for name, typed in columns]
    files = sorted(Path(path).iterdir()) if Path(path).is_dir() else [Path(path)]
    rows = [
        row
        for file in files
        if not file.name.startswith((".", "_"))
        for row in _rows(file, given.get("encoding", "UTF-8"), separator, readers, has_header=has_header)
    ]
    arrays = [
        pa.array([row[at] for row in rows], arrow_type(Domain(typed.type.name)))
        for at, (_, typed) in enumerate(columns)
    ]
    return pa.Table.from_arrays(arrays, names=[name for name, _ in columns])


def require_readable(format_: str, columns: str, options: Mapping[str, str], zone: str) -> None:
    """Checks that static tables of a format are read as Spark reads them; NotProven if that is not certain."""
    if format_.lower() == "csv":
        _require_plain(declared(columns), options, zone)
    elif format_.lower() != "parquet":
        raise NotProven(f"a static table USING {format_}")
    elif others := [name for name in options if name.lower() != "mode"]:
        raise NotProven(f"a static table USING parquet with the option {others[0]}")


def _require_plain(columns: Named, options: Mapping[str, str], zone: str) -> None:
    """Checks what can be known without the files; NotProven for another option or type."""
    for name, value in options.items():
        if name.lower() not in _OPTIONS or (name.lower() == "encoding" and value.upper() not in _ENCODINGS):
            raise NotProven(f"the option {name} '{value}' of CSV")
    for name, typed in columns:
        _reader(name, typed.type.name)
        if typed.type.name == "TIMESTAMP" and not is_utc(zone):
            raise NotProven(f"CSV of type TIMESTAMP in {zone}")


_OPTIONS = {"header", "sep", "delimiter", "mode", "encoding"}
_ENCODINGS = {"UTF-8", "ISO-8859-1"}


def _rows(
    file: Path, encoding: str, separator: str, readers: Sequence[Callable[[str], Any]], *, has_header: bool
) -> Iterator[list[Any]]:
    text = file.read_text(encoding)
    if "\\" in text or "\r" in text.replace("\r\n", ""):
        raise NotProven(f"CSV with escapes, as in {file},")
    after = re.escape(separator)
    written = re.compile(rf'(?:"([^"]+)"|([^"{after}]*)){after}')
    lines = text.replace("\r\n", "\n").split("\n")
    for number, line in enumerate(lines, 1):
        if not line or (has_header and number == 1):
            continue
        where = f"{file}, line {number}"
        fields = line.split(separator)
        if '"' in line:
            found = list(written.finditer(line + separator))
            if "".join(match[0] for match in found) != line + separator:
                raise NotProven(f"CSV with quotes within a field, as in {where},")
            fields = [match[1] or match[2] for match in found]
        if len(fields) != len(readers):
            raise InputError(f"{len(fields)} fields in place of {len(readers)}", where=where)
        try:
            yield [read(field) if field else None for read, field in zip(readers, fields, strict=True)]
        except ValueError as error:
            raise InputError(str(error), where=where) from None


def _reader(name: str, type_: str) -> Callable[[str], Any]:
    domain, pattern = Domain(type_), _WRITTEN.get(type_)
    if isinstance(domain.sql, DecimalType):
        whole, after = domain.sql.precision - domain.sql.scale, domain.sql.scale
        pattern = rf"-?\d{{1,{whole}}}(?:\.\d{{1,{after}}})?" if whole and after else None
    if pattern is None:
        raise NotProven(f"CSV of type {type_}")
    written = re.compile(pattern)

    def read(field: str) -> Any:
        if not written.fullmatch(field):
            raise ValueError(f"'{field}' is not a valid {type_} as column {name} declares it")
        return field if type_ == "STRING" else domain.read(field)

    return read
