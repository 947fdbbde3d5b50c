"""What is computed twice: expressions over drawn rows, by Spark and by DuckDB, value by value, error by error.

Rows have three columns of each type: two that may be null, and one that may not. DuckDB computes each expression for
each row with TRY, so that it is known which rows raise an error; Spark computes the others in one query, and a few of
those that raise, each alone.
"""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from operators.frames.spark_engine import quiet_spark
from operators.in_process.connection import prepare
from operators.in_process.expressions import Typed, translated
from operators.in_process.spark_type import duckdb_type
from punct_ns.domain import Domain
from punct_ns.errors import QueryError
from punct_ns.slices import arrow_type

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
    "", " ", "a", "A", "b", "ab", "abc", "it's", 'say "x"', "é", "É", "ß", "ẞ", "İ", "ı", "Σ", "ΑΣ", "日本", "😀", "a😀b",
    "a/b", "a//b/", "/", "12", " 12 ", "-7", "+3", "1.5", "1e3", "0x1F", "true", "F", "yes", "2020-02-29", "a\\b", "%_",
    "x%", "\t", "a\nb", "http://x/y?channel_id=ab&z=1", "channel_id=", "&channel_id=q", "null", "NaN", "Infinity", "inf",
    "99999999999999999999", "128", "-129", "2147483648", "1_000", "1.", ".5", "--1", "\x7f", "\u00a0", "e\u0301",
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
            return source.choice(TEXTS) if edge else "".join(source.choices("abAB/ &='é1", k=source.randrange(6)))
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
    return Decimal(max(1 - top, min(top - 1, units))).scaleb(-scale)


def _integer(top: int, source: random.Random) -> int:
    size = source.choice((10, 100, top))
    return source.randrange(-min(size, top), min(size, top))


_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_DOUBLES = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, float("nan"), float("inf"), float("-inf"), 2.0**31, 2.0**53, -(2.0**63),
    2.0**63, 127.5, -128.9, 1e-7, 1e300, 5e-324, 3.5e38, 1e16, 0.1,
)  # fmt: skip
_DATES = (
    date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31), date(2020, 2, 29), date(1582, 10, 15), date(1582, 10, 4),
    date(2000, 12, 31), date(2026, 3, 29), date(1969, 12, 31), date(1900, 2, 28),
)  # fmt: skip
_MOMENTS = (
    0, -1, 1, 999_999, 59_999_999, -62_135_596_800_000_000, 253_402_300_799_999_999, 1_582_934_400_000_000,
    -12_219_292_800_000_000, 1_774_746_000_000_000, 86_400_000_000, -86_400_000_001, 3_600_000_000, 1_500_000,
)  # fmt: skip


@dataclass
class Rows:
    """Drawn rows, in both engines."""

    spark: SparkSession
    zone: str = "UTC"
    columns: dict[str, Typed] = field(default_factory=dict)

    @staticmethod
    def drawn(spark: SparkSession, number: int, seed: int, zone: str = "UTC", moments: Sequence[int] = ()) -> Rows:
        """Rows of all types; with `moments`, the moments are among these, in microseconds."""
        source, found = random.Random(seed), Rows(spark, zone)
        arrays, fields, ddl = [], [], []
        for begin, type_ in TYPES.items():
            for i in (1, 2, 3):
                values = [drawn(type_, source) for _ in range(number)]
                if moments and type_.startswith("TIMESTAMP"):
                    zoned = UTC if type_ == "TIMESTAMP" else None
                    values = [
                        (EPOCH + timedelta(microseconds=source.choice(moments))).replace(tzinfo=zoned) for _ in values
                    ]
                if i < 3:
                    values = [None if source.random() < 0.1 else value for value in values]
                arrays.append(pa.array(values, arrow_type(Domain(type_))))
                fields.append(pa.field(f"{begin}{i}", arrays[-1].type, nullable=i < 3))
                ddl.append(f"{begin}{i} {type_}{'' if i < 3 else ' NOT NULL'}")
                found.columns[f"{begin}{i}"] = Typed(f'"{begin}{i}"', type_, i < 3)
        # Groups, and an order that is total.
        arrays += [
            pa.array([source.randrange(8) for _ in range(number)], pa.int32()),
            pa.array(range(number), pa.int64()),
        ]
        fields += [pa.field("g", pa.int32(), nullable=False), pa.field("id", pa.int64(), nullable=False)]
        ddl += ["g INT NOT NULL", "id BIGINT NOT NULL"]
        found.columns |= {"g": Typed('"g"', "INT", False), "id": Typed('"id"', "BIGINT", False)}
        found.table, found.ddl = pa.Table.from_arrays(arrays, schema=pa.schema(fields)), ", ".join(ddl)
        return found

    table: pa.Table = None
    ddl: str = ""

    def connection(self) -> duckdb.DuckDBPyConnection:
        """A connection with the rows as table `r`."""
        found = connected(self.zone)
        found.register("given", self.table)
        names = ", ".join(f'CAST("{name}" AS {duckdb_type(c.type)}) AS "{name}"' for name, c in self.columns.items())
        found.execute(f"CREATE TABLE r AS SELECT {names} FROM given ORDER BY id")
        return found

    def frame(self) -> DataFrame:
        """The rows in Spark."""
        from pyspark.sql.types import StructType

        self.spark.conf.set("spark.sql.session.timeZone", self.zone)
        return self.spark.createDataFrame(self.table, StructType.fromDDL(self.ddl))


def connected(zone: str = "UTC") -> duckdb.DuckDBPyConnection:
    """A connection of one thread, in a time zone."""
    found = duckdb.connect(config={"threads": 1})
    prepare(found, zone)
    return found


@dataclass(frozen=True)
class Difference:
    """An expression that the engines compute differently."""

    text: str
    what: str

    def __str__(self) -> str:
        return f"{self.text}: {self.what}"


@dataclass
class Findings:
    """What a comparison found."""

    differences: list[Difference] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    values: int = 0
    errors: int = 0
    proven: dict[str, int] = field(default_factory=dict)

    def add(self, text: str, what: str) -> None:
        """Records a difference."""
        self.differences.append(Difference(text, what))


def compared(
    rows: Rows, texts: Sequence[str], findings: Findings, *, by: str = "", alone: int = 3, masked: bool = True
) -> Findings:
    """Computes the expressions of one row over the rows in both engines; `by` names groups of aggregates."""
    frame, found = rows.frame(), {}
    for text in dict.fromkeys(texts):
        try:
            found[text] = translated(text, rows.columns, rows.zone)
        except QueryError as refused:
            findings.refused[text] = refused.what
    _typed(frame, found, findings, by)
    known = rows.connection()
    texts = list(found)
    size = 150
    for begin in range(0, len(texts), size):
        chunk = texts[begin : begin + size]
        if by:
            _grouped(frame, known, {text: found[text] for text in chunk}, findings, by)
        else:
            _single(frame, known, {text: found[text] for text in chunk}, findings, alone, masked)
    return findings


def _typed(frame: DataFrame, found: dict[str, Typed], findings: Findings, by: str) -> None:
    """Compares types and nullability; removes what Spark cannot analyse."""
    with suppress(Exception), quiet_spark():
        wanted = [f"{text} AS c{i}" for i, text in enumerate(found)]
        chosen = frame.groupBy(by).agg(*map(_expr, wanted)) if by else frame.selectExpr(*wanted)
        for (text, typed), spark in zip(found.items(), chosen.schema.fields[1 if by else 0 :], strict=True):
            _of_one_type(text, typed, spark, findings)
        return
    for text, typed in list(found.items()):
        try:
            with quiet_spark():
                chosen = frame.groupBy(by).agg(_expr(text)) if by else frame.selectExpr(text)
                spark = chosen.schema.fields[-1]
        except Exception as error:  # whatever Spark says
            if "PARSE_SYNTAX_ERROR" in str(error):  # sqlglot reads more texts than Spark
                findings.refused[text] = "Spark's parser"
            else:
                findings.add(text, f"Spark refuses it: {str(error)[:200]}")
            del found[text]
            continue
        _of_one_type(text, typed, spark, findings)


def _of_one_type(text: str, typed: Typed, spark: Any, findings: Findings) -> None:
    of = Domain(spark.dataType.simpleString(), spark.nullable)
    if (of.type, of.nullable) != (Domain(typed.type).type, typed.nullable):
        findings.add(text, f"Spark's {of.type}, null {of.nullable}; here {typed.type}, null {typed.nullable}")


def _expr(text: str) -> Any:
    from pyspark.sql import functions as F

    return F.expr(text)


def _single(
    frame: DataFrame,
    known: duckdb.DuckDBPyConnection,
    found: dict[str, Typed],
    findings: Findings,
    alone: int,
    is_masked: bool,
) -> None:
    results: dict[str, list[Any]] = {}
    rows = known.execute("SELECT count(*) FROM r").fetchall()[0][0]
    for text, typed in list(found.items()):
        try:
            whole = f"struct_pack(v := {_failing(typed.sql)})"
            tried = f"SELECT {f'TRY({whole})' if is_masked else whole} AS v FROM r ORDER BY id"
            try:
                results[text] = _values(known.execute(tried).to_arrow_table())
            except duckdb.Error:  # which TRY does not catch everywhere
                if not is_masked:
                    raise
                results[text] = [value for i in range(rows) for value in _alone(known, typed.sql, i)]
            described = known.execute(f"DESCRIBE SELECT {typed.sql} AS v FROM r").fetchall()
            of = described[0][1] if typed.type != "VOID" else ""
        except duckdb.Error as error:
            findings.add(text, f"DuckDB refuses it: {str(error)[:300]}; {typed.sql[:300]}")
            del found[text]
            continue
        if of and _normal(of) != _normal(duckdb_type(typed.type)):
            findings.add(text, f"DuckDB's type is {of}, not {duckdb_type(typed.type)}")
    if not found:
        return
    names = {text: f"c{i}" for i, text in enumerate(found)}
    masks = pa.table(
        {"id": pa.array(range(rows), pa.int64())}
        | {f"ok{i}": pa.array([v is not None for v in results[text]]) for i, text in enumerate(found)}
    )
    session = frame.sparkSession
    masked = frame.join(session.createDataFrame(masks), "id").orderBy("id")
    wanted = [f"IF(ok{i}, {text}, NULL) AS {names[text]}" for i, text in enumerate(found)]
    if not is_masked:
        wanted = [f"{text} AS {names[text]}" for text in found]
    for part, table in _collected(masked, wanted, list(found), findings):
        for text in part:
            values = _counted(table[names[text]]).to_pylist()
            findings.values += len(values)
            findings.proven[text] = findings.proven.get(text, 0) + len(values)
            for i, (one, other) in enumerate(zip(values, results[text], strict=True)):
                if other is not None and key(one) != key(other["v"]):
                    findings.add(text, f"Spark's {one!r}, here {other['v']!r}, of {_shown(frame, known, text, i)}")
                    break
    raised = [(text, i) for text in found for i, value in enumerate(results[text]) if value is None]
    random.Random(len(raised)).shuffle(raised)
    tried: set[str] = set()
    for text, i in raised:
        if len(tried) == alone:
            break
        if text not in tried and "[NOT_PROVEN]" not in (message := _message(known, found[text].sql, i)):
            tried.add(text)
            findings.errors += 1
            try:
                with quiet_spark():
                    value = frame.where(f"id = {i}").selectExpr(f"{text} AS v").toArrow()["v"].to_pylist()
            except Exception as error:  # what Spark raises
                _conditions(text, str(error), message, findings)
                continue
            findings.add(text, f"Spark's {value}, here {message[:150]}, of {_shown(frame, known, text, i)}")


def _values(table: pa.Table) -> list[dict[str, Any] | None]:
    """The values of a column of structures with a field `v`, moments as microseconds; None where TRY failed."""
    column = table["v"].combine_chunks()
    inner = _counted(column.field("v")).to_pylist()
    return [{"v": v} if there else None for v, there in zip(inner, column.is_valid().to_pylist(), strict=True)]


def _alone(known: duckdb.DuckDBPyConnection, sql: str, i: int) -> list[dict[str, Any] | None]:
    try:
        return _values(known.execute(f"SELECT struct_pack(v := {sql}) AS v FROM r WHERE id = {i}").to_arrow_table())
    except duckdb.Error:
        return [None]


def _counted(column: Any) -> Any:
    """Moments as microseconds: Python does not represent all of them."""
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def _failing(sql: str) -> str:
    """The text with its errors raised by casts, since TRY takes no `error`."""
    return re.sub(r"error\(('(?:[^']|'')*')\)", r'CAST(CAST((\1 || id) AS INTEGER) AS "NULL")', sql)


def _conditions(text: str, spark: str, here: str, findings: Findings) -> None:
    from operators.in_process.errors import condition

    found = re.search(r"\[([A-Z_]+)", spark)
    mine = condition(here)
    if found is None or mine is None or found[1] != mine:
        findings.add(text, f"Spark raises {spark[:150]!r}, here {here[:150]!r} is {mine}")


def _message(known: duckdb.DuckDBPyConnection, sql: str, i: int) -> str:
    try:
        known.execute(f"SELECT {sql} FROM r WHERE id = {i}").fetchall()
    except duckdb.Error as error:
        return str(error)
    except Exception:  # a value that Python does not represent, or no pytz
        return "no error"
    return "no error"


def _shown(frame: DataFrame, known: duckdb.DuckDBPyConnection, text: str, i: int) -> str:
    names = [name for name in re.findall(r"\b[a-z]+[123]\b", text)]
    if not names:
        return f"row {i}"
    row = known.execute(f"SELECT {', '.join(dict.fromkeys(names))} FROM r WHERE id = {i}").to_arrow_table().to_pylist()
    return str(row)


def _normal(name: str) -> str:
    return re.sub(r'"(\w+)"', r"\1", name)


def _collected(
    frame: DataFrame, wanted: Sequence[str], texts: Sequence[str], findings: Findings
) -> Iterator[tuple[Sequence[str], pa.Table]]:
    """Yields expressions with their values; where Spark raises an error, it is looked for by halves."""
    try:
        with quiet_spark():
            yield texts, frame.selectExpr("id", *wanted).orderBy("id").toArrow()
    except Exception as error:  # whatever Spark raises
        if len(wanted) == 1:
            findings.add(texts[0], f"Spark raises an error, DuckDB does not: {str(error)[:200]}")
            return
        half = len(wanted) // 2
        yield from _collected(frame, wanted[:half], texts[:half], findings)
        yield from _collected(frame, wanted[half:], texts[half:], findings)


def _grouped(
    frame: DataFrame, known: duckdb.DuckDBPyConnection, found: dict[str, Typed], findings: Findings, by: str
) -> None:
    for text, typed in found.items():
        mine: Any
        spark: Any
        try:
            table = known.execute(f"SELECT {by}, {typed.sql} AS v FROM r GROUP BY {by} ORDER BY {by}").to_arrow_table()
            mine = table["v"].to_pylist()
            groups = table[by].to_pylist()
        except duckdb.Error as error:
            mine = error
        try:
            with quiet_spark():
                result = frame.groupBy(by).agg(_expr(f"{text} AS v")).orderBy(by).toArrow()
                spark = result["v"].to_pylist()
        except Exception as error:  # what Spark raises
            spark = error
        findings.values += 1
        findings.proven[text] = findings.proven.get(text, 0) + 1
        if isinstance(spark, Exception) or isinstance(mine, Exception):
            if isinstance(spark, Exception) and isinstance(mine, Exception):
                findings.errors += 1
                _conditions(text, str(spark), str(mine), findings)
            else:
                findings.add(text, f"Spark's {str(spark)[:150]}, here {str(mine)[:200]}")
        elif list(map(key, spark)) != list(map(key, mine)):
            at = next(i for i, (a, b) in enumerate(zip(spark, mine, strict=True)) if key(a) != key(b))
            findings.add(text, f"Spark's {spark[at]!r}, here {mine[at]!r}, of group {groups[at]}")


def key(value: Any) -> Any:
    """The value so that equal values, and only these, compare as equal: zeros by their signs, all NaN as one."""
    match value:
        case float():
            return "NaN" if value != value else struct.pack("d", value)  # noqa: PLR0124
        case datetime():
            return (value - EPOCH if value.tzinfo else value - EPOCH.replace(tzinfo=None)) // timedelta(microseconds=1)
        case Decimal():
            return value.as_tuple()
        case list():
            return [key(each) for each in value]
        case dict():
            return {name: key(each) for name, each in value.items()}
    return value
