"""What is computed twice: expressions over drawn rows, by Spark and by DuckDB, value by value, error by error.

DuckDB computes each expression for each row with TRY, so that it is known which rows raise an error. Spark computes the
others, many expressions in one query; and a few of those that raise, each alone, since an error ends a query. By night
more of them are computed.
"""

from __future__ import annotations

import hashlib
import random
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

import duckdb
import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from tests.harness.drawn_rows import EPOCH, Rows
from tests.harness.nights import AT_NIGHT
from xmlstream.operators.expressions.operations.part import Part
from xmlstream.operators.expressions.operations.spark_type import in_duckdb
from xmlstream.operators.frames.spark_engine import quiet_spark
from xmlstream.operators.in_process.engine import condition
from xmlstream.operators.in_process.expressions import translated
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import QueryError

ALONE = 150 if AT_NIGHT else 3
"""How many of the rows that raise an error Spark computes for each query of many expressions."""

ALL = "()"
"""All rows as one group, which is there even if no row is."""

REFUSED: list[Any] = [None]
"""The answer of an engine that cannot read a text."""

AT_ONCE = 150
"""How many expressions Spark computes in one query."""

OF_SPARK = (PySparkException, Py4JError)


@dataclass(frozen=True)
class Difference:
    """An expression that the engines compute differently."""

    text: str
    what: str

    def __str__(self) -> str:
        return f"{self.text}: {self.what}"


@dataclass
class Findings:
    """What comparisons found.

    Attributes:
        differences: Where the engines differ.
        refused: The expressions that are not translated, with the reason.
        values: How many values of each expression were compared.
        errors: How many rows raised an error in both engines.
        answers: What DuckDB answers to each expression, as JSON has it: type, whether it may be null, a digest of the
            values, and, where it was looked at in both engines, a row that raises an error, and its condition.
    """

    differences: list[Difference] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)
    errors: int = 0
    answers: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, text: str, what: str) -> None:
        """Records a difference."""
        self.differences.append(Difference(text, what))

    def compared(self, text: str, number: int) -> None:
        """Records that values were compared."""
        self.values[text] = self.values.get(text, 0) + number

    def __str__(self) -> str:
        shown = [str(each)[:400] for each in self.differences[:30]]
        return "\n".join([*shown, f"{len(self.differences)} differences"])


def typed(rows: Rows, texts: Iterable[str], findings: Findings, *, by: str = "") -> Findings:
    """Compares types and nullability alone; see `compared`."""
    comparison = _Comparison(rows, findings, by)
    comparison.types(comparison.translated(texts))
    return findings


def typed_here(rows: Rows, texts: Iterable[str], findings: Findings, *, by: str = "") -> Findings:
    """Finds types and nullability in DuckDB alone."""
    _Comparison(rows, findings, by).translated(texts)
    return findings


def compared(
    rows: Rows, texts: Iterable[str], findings: Findings, *, by: str = "", has_errors: bool = True
) -> Findings:
    """Computes expressions over the rows in both engines.

    Args:
        rows: The rows.
        texts: The expressions, of one row or over rows; aggregates with `by`.
        findings: Where to record what is found.
        by: The column that groups rows, or `ALL`.
        has_errors: Whether single rows may raise errors; if not, any error of DuckDB is a difference.
    """
    comparison = _Comparison(rows, findings, by)
    found = comparison.translated(texts)
    comparison.types(found)
    for begin in range(0, len(found), AT_ONCE):
        part = dict(list(found.items())[begin : begin + AT_ONCE])
        if by:
            comparison.groups(part)
        else:
            comparison.values(part, has_errors=has_errors)
    return findings


def here(
    rows: Rows,
    texts: Iterable[str],
    findings: Findings,
    raising: Mapping[str, int] | None = None,
    *,
    by: str = "",
    has_errors: bool = True,
) -> Findings:
    """Computes expressions in DuckDB alone; see `compared`.

    Args:
        raising: Of some expressions the row whose error counts.
    """
    comparison = _Comparison(rows, findings, by)
    for text, part in comparison.translated(texts).items():
        if by:
            comparison.grouped_here(text, part)
        else:
            values = comparison.values_here(text, part, has_errors)
            if (i := (raising or {}).get(text)) is not None and values and values[i] is None:
                comparison.raised(text, part, i)
    return findings


class _Comparison:
    """Two engines with the same rows."""

    def __init__(self, rows: Rows, findings: Findings, by: str) -> None:
        self._rows, self._known, self._findings, self._by = rows, rows.connection(), findings, by
        self._number = rows.table.num_rows
        self._keys = () if by in ("", ALL) else (by,)

    @cached_property
    def _frame(self) -> Any:
        return self._rows.frame()

    def translated(self, texts: Iterable[str]) -> dict[str, Part]:
        """What DuckDB computes; what it does not is refused."""
        found: dict[str, Part] = {}
        for text in dict.fromkeys(texts):
            try:
                found[text] = part = translated(text, self._rows.columns, self._rows.zone)
            except QueryError as refused:
                self._findings.refused[text] = refused.what
            else:
                self._findings.answers[text] = [Domain(part.type.name).type, part.nullable]
        return found

    def types(self, found: dict[str, Part]) -> None:
        """Compares types and nullability; removes what Spark cannot analyse."""
        with suppress(*OF_SPARK), quiet_spark():
            fields = self._analysed([f"{text} AS c{i}" for i, text in enumerate(found)])
            for (text, typed), spark in zip(found.items(), fields, strict=True):
                self._type(text, typed, spark)
            return
        for text, typed in list(found.items()):
            try:
                with quiet_spark():
                    (spark,) = self._analysed([text])
            except OF_SPARK as error:
                if "PARSE_SYNTAX_ERROR" in str(error):  # sqlglot reads more texts than Spark
                    self._findings.refused[text] = "Spark's parser"
                else:
                    self._findings.add(text, f"Spark refuses it: {str(error)[:200]}")
                del found[text]
                self._findings.answers[text] = REFUSED
                continue
            self._type(text, typed, spark)

    def _analysed(self, texts: Sequence[str]) -> list[Any]:
        frame = self._grouped(map(F.expr, texts)) if self._by else self._frame.selectExpr(*texts)
        fields: list[Any] = frame.schema.fields
        return fields[len(self._keys) :]

    def _type(self, text: str, typed: Part, spark: Any) -> None:
        of = Domain(spark.dataType.simpleString(), spark.nullable)
        if (of.type, of.nullable) != (Domain(typed.type.name).type, typed.nullable):
            what = f"Spark's {of.type}, null {of.nullable}; here {typed.type.name}, null {typed.nullable}"
            self._findings.add(text, what)

    def values(self, found: dict[str, Part], *, has_errors: bool) -> None:
        """Compares the values of expressions of one row, or over rows."""
        mine = {text: values for text, typed in found.items() if (values := self.values_here(text, typed, has_errors))}
        names = {text: f"c{i}" for i, text in enumerate(mine)}
        ids = {"id": pa.array(range(self._number), pa.int64())}
        masks = {f"ok{i}": pa.array([value is not None for value in values]) for i, values in enumerate(mine.values())}
        masked = self._frame.join(self._frame.sparkSession.createDataFrame(pa.table(ids | masks)), "id")
        wanted = [
            f"IF(ok{i}, {text}, NULL) AS c{i}" if has_errors else f"{text} AS c{i}" for i, text in enumerate(mine)
        ]
        for part, table in self._collected(masked, wanted, list(mine)):
            for text in part:
                theirs = _counted(table[names[text]]).to_pylist()
                self._findings.compared(text, len(theirs))
                for i, (one, other) in enumerate(zip(theirs, mine[text], strict=True)):
                    if other is not None and key(one) != key(other["v"]):
                        self._findings.add(text, f"Spark's {one!r}, here {other['v']!r}, of {self._shown(text, i)}")
                        break
        self._errors(found, [(text, i) for text, values in mine.items() for i, v in enumerate(values) if v is None])

    def values_here(self, text: str, typed: Part, has_errors: bool) -> list[Any]:
        """DuckDB's values, each in a dictionary, or None where it raises an error; nothing if it refuses the text."""
        whole = f"struct_pack(v := {failing(typed.sql)})"
        value = f"TRY({whole})" if has_errors else whole
        try:
            described = self._known.execute(f"DESCRIBE SELECT {typed.sql} AS v FROM r").fetchall()[0][1]
            if typed.type.name != "VOID" and bare(described) != bare(in_duckdb(typed.type)):
                self._findings.add(text, f"DuckDB's type is {described}, not {in_duckdb(typed.type)}")
            found: list[Any] = self._values_of(value, 0, self._number, has_errors)
            self._findings.answers[text].append(digest([value and [key(value["v"])] for value in found]))
            return found
        except duckdb.Error as error:
            self._findings.add(text, f"DuckDB refuses it: {str(error)[:300]}; {typed.sql[:300]}")
            return []

    def _values_of(self, value: str, begin: int, end: int, has_errors: bool) -> list[Any]:
        """The values of some of the rows; what TRY does not catch is looked for by halves."""
        some = "" if end - begin == self._number else f"WHERE id >= {begin} AND id < {end}"
        try:
            return _values(self._known.execute(f"SELECT {value} AS v FROM r {some} ORDER BY id").to_arrow_table())
        except duckdb.Error:
            if not has_errors:
                raise
        if end - begin == 1:
            return [None]
        half = (begin + end) // 2
        return [v for ends in ((begin, half), (half, end)) for v in self._values_of(value, *ends, has_errors)]

    def _collected(
        self, frame: Any, wanted: Sequence[str], texts: Sequence[str]
    ) -> Iterator[tuple[Sequence[str], pa.Table]]:
        """Yields expressions with Spark's values; where it raises an error, the expression is looked for by halves."""
        if not wanted:
            return
        try:
            with quiet_spark():
                table = frame.selectExpr("id", *wanted).orderBy("id").toArrow()
        except OF_SPARK as error:
            if len(wanted) == 1:
                self._findings.add(texts[0], f"Spark raises an error, DuckDB does not: {str(error)[:200]}")
                return
            half = len(wanted) // 2
            yield from self._collected(frame, wanted[:half], texts[:half])
            yield from self._collected(frame, wanted[half:], texts[half:])
        else:
            yield texts, table

    def _errors(self, found: Mapping[str, Part], raised: list[tuple[str, int]]) -> None:
        """Computes some of the rows that raise an error in DuckDB, each alone, in Spark."""
        random.Random(len(raised)).shuffle(raised)
        tried: set[str] = set()
        for text, i in raised:
            if len(tried) == ALONE:
                break
            message = "" if text in tried else self._message(found[text].sql, i)
            if not message or "[NOT_PROVEN]" in message:
                continue
            tried.add(text)
            self._findings.errors += 1
            try:
                with quiet_spark():
                    theirs = self._frame.where(f"id = {i}").selectExpr(f"{text} AS v").toArrow()["v"].to_pylist()
            except OF_SPARK as error:
                self._conditions(text, str(error), message)
                self.raised(text, found[text], i)
            else:
                self._findings.add(text, f"Spark's {theirs}, here {message[:150]}, of {self._shown(text, i)}")

    def raised(self, text: str, typed: Part, i: int) -> None:
        """Notes the condition of the error that a row raises."""
        self._findings.answers[text] += [i, condition(self._message(typed.sql, i))]

    def _message(self, sql: str, i: int) -> str:
        try:
            self._known.execute(f"SELECT {sql} FROM r WHERE id = {i}").to_arrow_table()
        except duckdb.Error as error:
            return str(error)
        return "no error"

    def _conditions(self, text: str, spark: str, here: str) -> None:
        theirs, mine = re.search(r"\[([A-Z_]+)", spark), condition(here)
        if theirs is None or theirs[1] != mine:
            self._findings.add(text, f"Spark raises {spark[:150]!r}, here {here[:150]!r} is {mine}")

    def _shown(self, text: str, i: int) -> str:
        names = dict.fromkeys(re.findall(r"\b[a-z]+[123]\b", text)) or {"id": None}
        return str(self._known.execute(f"SELECT {', '.join(names)} FROM r WHERE id = {i}").to_arrow_table().to_pylist())

    def groups(self, found: Mapping[str, Part]) -> None:
        """Compares the values of aggregates; those that Spark raises an error for, each alone."""
        texts = list(found)
        try:
            wanted = [F.expr(f"{text} AS c{i}") for i, text in enumerate(texts)]
            grouped = self._grouped(wanted)
            with quiet_spark():
                table = (grouped.orderBy(*self._keys) if self._keys else grouped).toArrow()
            for i, (text, typed) in enumerate(found.items()):
                self._group(text, typed, _counted(table[f"c{i}"]).to_pylist())
            return
        except OF_SPARK as error:
            raised = str(error)
        if len(texts) == 1:
            # What overflows in Spark's order of additions may not in DuckDB's.
            if "[ARITHMETIC_OVERFLOW]" in raised and found[texts[0]].type.name == "BIGINT":
                self._findings.errors += 1
                self.grouped_here(texts[0], found[texts[0]])
            else:
                self._group(texts[0], found[texts[0]], None)
            return
        for half in (texts[: len(texts) // 2], texts[len(texts) // 2 :]):
            self.groups({text: found[text] for text in half})

    def _grouped(self, wanted: Iterable[Any]) -> Any:
        return self._frame.groupBy(*self._keys).agg(*wanted)

    def grouped_here(self, text: str, typed: Part) -> list[Any] | duckdb.Error:
        """DuckDB's values of an aggregate, or its error."""
        order = f" ORDER BY {self._by}" if self._keys else ""
        query = f"SELECT {typed.sql} AS v FROM r GROUP BY {self._by}{order}"
        try:
            found: list[Any] = _counted(self._known.execute(query).to_arrow_table()["v"]).to_pylist()
        except duckdb.Error as error:
            self._findings.answers[text].append(str(condition(str(error))))
            return error
        self._findings.answers[text].append(digest([[key(value)] for value in found]))
        return found

    def _group(self, text: str, typed: Part, theirs: list[Any] | None) -> None:
        """Compares the values of one aggregate; None for an error of Spark."""
        mine = self.grouped_here(text, typed)
        if isinstance(mine, duckdb.Error):
            error = mine
            # What overflows in DuckDB's order of additions may not in Spark's.
            if theirs is None or "[NOT_PROVEN]" in str(error) or "Overflow in HUGEINT addition" in str(error):
                self._findings.errors += 1
            else:
                self._findings.add(text, f"Spark's {theirs}, here {str(error)[:200]}")
            return
        self._findings.compared(text, self._number)
        if theirs is None:
            self._findings.add(text, f"Spark raises an error, here {mine}")
        elif wrong := [(a, b) for a, b in zip(theirs, mine, strict=True) if key(a) != key(b)]:
            self._findings.add(text, f"Spark's {wrong[0][0]!r}, here {wrong[0][1]!r}")


def _values(table: pa.Table) -> list[Any]:
    """The values of a column of structures with a field `v`, each in a dictionary; None where TRY failed."""
    column: Any = table["v"].combine_chunks()
    inner = _counted(column.field("v")).to_pylist()
    return [{"v": v} if there else None for v, there in zip(inner, column.is_valid().to_pylist(), strict=True)]


def _counted(column: Any) -> Any:
    """Moments as microseconds, and dates as days: Python does not represent all of them."""
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32())
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def failing(sql: str) -> str:
    """The text with its errors raised by casts, since TRY takes no `error`.

    >>> print(failing("IF(a, error('n)o'), error(left(b, 8)))"))
    IF(a, CAST(CAST(('n)o' || id) AS INTEGER) AS "NULL"), CAST(CAST((left(b, 8) || id) AS INTEGER) AS "NULL"))
    """
    found = re.search(r"\berror\(", sql)
    if found is None:
        return sql
    depth, end = 1, found.end()
    for token in re.finditer(r"'(?:[^']|'')*'|[()]", sql[found.end() :]):
        depth += (token[0] == "(") - (token[0] == ")")
        if depth == 0:
            end = found.end() + token.start()
            break
    message = failing(sql[found.end() : end])
    return f'{sql[: found.start()]}CAST(CAST(({message} || id) AS INTEGER) AS "NULL"){failing(sql[end + 1 :])}'


def digest(value: object) -> str:
    """Ten digits that equal values share."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:10]


def bare(name: str) -> str:
    return re.sub(r'"(\w+)"', r"\1", name)


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
            return list(map(key, value))
        case dict():
            return {name: key(each) for name, each in value.items()}
    return value
