"""Drawn rows for proofs, in Spark and in DuckDB: three columns of each type, two that may be null, one that may not."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from xmlstream.operators.expressions.operations.part import Part, of_column
from xmlstream.operators.expressions.operations.spark_type import in_duckdb
from xmlstream.operators.in_process.engine import prepare
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.slices import arrow_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

TYPES: Mapping[str, str] = {
    "ti": "TINYINT",
    "si": "SMALLINT",
    "i": "INT",
    "b": "BIGINT",
    "f": "FLOAT",
    "x": "DOUBLE",
    "d": "DECIMAL(12,2)",
    "e": "DECIMAL(5,3)",
    "w": "DECIMAL(20,0)",
    "z": "DECIMAL(3,3)",
    "s": "STRING",
    "p": "BOOLEAN",
    "day": "DATE",
    "t": "TIMESTAMP",
    "n": "TIMESTAMP_NTZ",
}
"""The types of the columns by the beginning of their names; `i1` and `i2` may be null, `i3` may not."""

TEXTS = (
    "", " ", "a", "A", "b", "ab", "abc", "it's", 'say "x"', "é", "É", "ß", "ẞ", "İ", "ı", "Σ", "ΑΣ", "日本", "😀",
    "a/b", "a//b/", "/", "12", " 12 ", "-7", "+3", "1.5", "1e3", "0x1F", "true", "F", "yes", "2020-02-29", "a\\b", "%_",
    "x%", "\t", "a\nb", "http://x/y?channel_id=ab&z=1", "channel_id=", "&channel_id=q", "null", "NaN", "inf", "a😀b",
    "99999999999999999999", "128", "-129", "2147483648", "1_000", "1.", ".5", "--1", "\x7f", "\u00a0", "e\u0301",
    "12,5", "n/a", "—", "12 °C", "1e99999", "1e-99999", "7d", "5.5F", "-NaN", "+inf", "-Infinity", "0x1p3", "１２",
    "20.11.2026", "2020-13-45", "2020-02-30", "2020-02-29 24:00:00", "2020-02-29T12:00:60Z", "12:30", "T12", "2020-2-9",
    "2020", "2020/02/29", "1e+3D", "0000-01-01", "2020-02-29 1", "a\r\n", "12\n", "12\r", "b\u2028", "x\x85", "\r\n",
    "a\r\nb\n",
)  # fmt: skip


def drawn(type_: str, source: random.Random) -> Any:
    """A value of the type: often one at which something changes."""
    edge = source.random() < 0.5
    if type_ in _BITS:
        top = 1 << (_BITS[type_] - 1)
        return source.choice((0, 1, -1, 2, 3, -7, 10, top - 1, -top, top // 2)) if edge else _integer(top, source)
    match type_:
        case "DOUBLE" | "FLOAT":
            if edge:
                found = source.choice(_DOUBLES)
            else:
                found = source.choice(
                    (source.uniform(-1e3, 1e3), source.uniform(-1e19, 1e19), source.randrange(-50, 50) / 2)
                )
            return struct.unpack("f", struct.pack("f", found))[0] if type_ == "FLOAT" and abs(found) < 3e38 else found
        case "STRING":
            return source.choice(TEXTS) if edge else "".join(source.choices("abAB/ &='é1\n\r", k=source.randrange(6)))
        case "BOOLEAN":
            return source.random() < 0.5
        case "DATE":
            return source.choice(_DATES) if edge else date.fromordinal(source.randrange(600_000, 800_000))
        case "TIMESTAMP" | "TIMESTAMP_NTZ":
            micros = source.choice(_MOMENTS) if edge else source.randrange(-(10**15), 4 * 10**15)
            return (EPOCH + timedelta(microseconds=micros)).replace(tzinfo=UTC if type_ == "TIMESTAMP" else None)
    precision, scale = map(int, re.findall(r"\d+", type_))
    top = 10**precision
    units = (
        source.choice((0, 1, -1, 5, -5, 50, -50, 150, 249, 250, top - 1, 1 - top)) if edge else _integer(top, source)
    )
    return Decimal(f"{max(1 - top, min(top - 1, units))}E-{scale}")


def _integer(top: int, source: random.Random) -> int:
    size = source.choice((10, 100, top))
    return source.randrange(-min(size, top), min(size, top))


_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_DOUBLES = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, float("nan"), float("inf"), float("-inf"), 2.0**31, 2.0**53,
    -(2.0**63), 2.0**63, 127.5, -128.9, 1e-7, 1e300, 5e-324, 3.5e38, 1e16, 0.1,
)  # fmt: skip
_DATES = (
    date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31), date(2020, 2, 29), date(1582, 10, 15), date(1582, 10, 4),
    date(2000, 12, 31), date(2026, 3, 29), date(1969, 12, 31), date(1900, 2, 28),
)  # fmt: skip
_MOMENTS = (
    0, -1, 1, 999_999, 59_999_999, -62_135_596_800_000_000, 253_402_300_799_999_999, 1_582_934_400_000_000,
    -12_219_292_800_000_000, 1_774_746_000_000_000, 86_400_000_000, -86_400_000_001, 3_600_000_000, 1_500_000,
)  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """Drawn rows, in both engines.

    Attributes:
        spark: The session; None for rows of DuckDB alone.
        table: The rows, with a group `g` and a number `id`, which orders them.
        ddl: Their schema in Spark.
        columns: How DuckDB reads their columns.
        zone: The time zone.
    """

    spark: SparkSession | None
    table: pa.Table
    ddl: str
    columns: Mapping[str, Part]
    zone: str = "UTC"

    @staticmethod
    def drawn(
        spark: SparkSession | None,
        number: int,
        seed: int,
        zone: str = "UTC",
        moments: Sequence[int] = (),
        share_of_nulls: float = 0.1,
        types: Mapping[str, str] = TYPES,
    ) -> Rows:
        """Rows of all types, or of others; with `moments`, the moments are among these, in microseconds."""
        source = random.Random(seed)
        found = [
            _column(f"{begin}{i}", type_, i < 3, _values(type_, number, source, moments, share_of_nulls * (i < 3)))
            for begin, type_ in types.items()
            for i in (1, 2, 3)
        ]
        found.append(_column("g", "INT", False, [source.randrange(8) for _ in range(number)]))
        found.append(_column("id", "BIGINT", False, list(range(number))))
        table = pa.Table.from_arrays([each.values for each in found], schema=pa.schema([each.field for each in found]))
        ddl = ", ".join(f"{each.field.name} {each.type}{'' if each.field.nullable else ' NOT NULL'}" for each in found)
        columns = {e.field.name: of_column(f'"{e.field.name}"', e.type, bool(e.field.nullable)) for e in found}
        return Rows(spark, table, ddl, columns, zone)

    def connection(self) -> duckdb.DuckDBPyConnection:
        """A connection with the rows as table `r`."""
        found = connected(self.zone)
        found.register("given", self.table)
        names = ", ".join(f'CAST("{name}" AS {in_duckdb(c.type)}) AS "{name}"' for name, c in self.columns.items())
        found.execute(f"CREATE TABLE r AS SELECT {names} FROM given ORDER BY id")
        return found

    def frame(self) -> DataFrame:
        """The rows in Spark."""
        from pyspark.sql.types import StructType

        assert self.spark is not None
        self.spark.conf.set("spark.sql.session.timeZone", self.zone)
        schema: Any = StructType.fromDDL(self.ddl)
        found: DataFrame = self.spark.createDataFrame(self.table, schema)
        return found


@dataclass(frozen=True)
class _Column:
    field: pa.Field[Any]
    type: str
    values: pa.Array[Any]


def _column(name: str, type_: str, is_nullable: bool, values: list[Any]) -> _Column:
    found = pa.array(values, arrow_type(Domain(type_)))
    return _Column(pa.field(name, found.type, nullable=is_nullable), type_, found)


def _values(type_: str, number: int, source: random.Random, moments: Sequence[int], nulls: float) -> list[Any]:
    values = [drawn(type_, source) for _ in range(number)]
    if moments and type_.startswith("TIMESTAMP"):
        zoned = UTC if type_ == "TIMESTAMP" else None
        values = [(EPOCH + timedelta(microseconds=source.choice(moments))).replace(tzinfo=zoned) for _ in values]
    return [None if source.random() < nulls else value for value in values]


def insert(database: duckdb.DuckDBPyConnection, table: str, rows: Iterable[Sequence[int | None]]) -> None:
    """Inserts integers in one text: for each value passed beside it DuckDB looks for pandas, which is not there."""
    values = ", ".join(f"({', '.join('NULL' if value is None else str(value) for value in row)})" for row in rows)
    if values:
        database.execute(f"INSERT INTO {table} VALUES {values}")


def connected(zone: str = "UTC") -> duckdb.DuckDBPyConnection:
    """A connection of one thread, in a time zone."""
    found = duckdb.connect(config={"threads": 1})
    prepare(found, zone)
    return found
