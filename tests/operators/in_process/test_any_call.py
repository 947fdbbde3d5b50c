"""Any expression is refused by name, or DuckDB takes it and gives the type that is said: whatever stands where."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pytest

from tests.harness.both_engines import bare
from tests.harness.drawn_rows import TYPES, connected
from tests.harness.nights import AT_NIGHT, SEED
from xmlstream.operators.expressions.operations.aggregate_functions import AGGREGATES, WINDOWS
from xmlstream.operators.expressions.operations.functions import FUNCTIONS
from xmlstream.operators.expressions.operations.part import of_column
from xmlstream.operators.expressions.operations.spark_type import in_duckdb, read_type
from xmlstream.operators.in_process.expressions import translated
from xmlstream.punct_ns.errors import QueryError

DRAWN = 200 if AT_NIGHT else 6
"""How many calls are drawn for each name and form."""

COLUMNS = {f"{begin}{i}": type_ for begin, type_ in TYPES.items() for i in (1, 3)}
COLUMNS |= {"l1": "ARRAY<INT>", "m1": "ARRAY<DOUBLE>", "r1": "STRUCT<a:INT,b:STRING>", "y1": "BINARY"}
LITERALS = (
    "NULL", "true", "1", "0", "-1", "2", "7L", "2.5", "1e3", "3000000000", "'1'", "'a'", "''", "'-2'", "'[a&&b]'",
    "'%'", "'yyyy'", "'MONTH'", "DATE '2020-02-29'", "TIMESTAMP '2020-02-29 12:00:00'", "INTERVAL 1 DAY",
    "INTERVAL '2' HOUR", "array()", "array(1, 2)", "named_struct('a', 1)", "1.23456789012345678901234567890123456789",
    "CAST('7' AS INT)", "CAST('true' AS BOOLEAN)", "99999999999999999999999999999999999999",
)  # fmt: skip
FORMS = (
    "{} LIKE {}", "{} NOT LIKE {}", "{} IN ({}, {})", "{} BETWEEN {} AND {}", "CASE {} WHEN {} THEN {} ELSE {} END",
    "CASE WHEN {} THEN {} END", "CAST({} AS {type})", "EXTRACT(YEAR FROM {})", "substring({}, {}, {})", "trim({})",
    "{} & {}", "{} ^ {}", "-{}", "NOT {}", "{} AND {}", "{} OR {}", "{} = {}", "{} < {}", "{} <=> {}", "{} IS NULL",
    "{} IS TRUE", "{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} % {}", "{} DIV {}", "{} || {}", "{}.a",
    "{} IS DISTINCT FROM {}", "abs(-{})", "try_add({}, {})", "timestampdiff(MICROSECOND, {}, {})",
    "sort_array(collect_set({}))", "size(collect_list({}))",
    "max({}) FILTER (WHERE {})", "count(DISTINCT {}, {})", "sum({}) OVER (PARTITION BY {} ORDER BY {})",
    "count(*) OVER (ORDER BY {} RANGE BETWEEN {} PRECEDING AND CURRENT ROW)",
)  # fmt: skip


def drawn(name: str, source: random.Random) -> str:
    """A call with any arguments, or a form filled with any operands."""

    def value() -> str:
        return source.choice((*COLUMNS, *LITERALS) if source.random() < 0.9 else (f"({source.choice(LITERALS)})",))

    if "{" in name:
        return name.replace("{type}", source.choice([*TYPES.values(), "DECIMAL(38,10)"])).format(
            *(value() for _ in "four")
        )
    call = f"{name}({', '.join(value() for _ in range(source.choice((0, 1, 1, 2, 2, 3))))})"
    return f"{call} OVER (PARTITION BY {value()} ORDER BY {value()})" if name in WINDOWS else call


@pytest.fixture(scope="module")
def rows() -> Iterator[duckdb.DuckDBPyConnection]:
    found = connected()
    found.execute(
        f"CREATE TABLE r ({', '.join(f'{name} {in_duckdb(read_type(type_))}' for name, type_ in COLUMNS.items())})"
    )
    yield found
    found.close()


READ_APART = (
    "timestampdiff",
    "element_at",
    "arrays_zip",
    "sort_array",
    "array_sort",
    "collect_set",
    "unnest",
    "aggregate",
    "window",
)


@pytest.mark.parametrize("name", [*FUNCTIONS, *AGGREGATES, *WINDOWS, *FORMS, *READ_APART])
def test_any_call_is_refused_or_has_the_type_that_is_said(rows: duckdb.DuckDBPyConnection, name: str) -> None:
    source = random.Random(f"{SEED} {name}")
    columns = {of: of_column(f'"{of}"', type_, not of.endswith("3")) for of, type_ in COLUMNS.items()}
    for text in (drawn(name, source) for _ in range(DRAWN)):
        try:
            found = translated(text, columns)
        except QueryError:
            continue
        described = rows.execute(f"DESCRIBE SELECT {found.sql} AS v FROM r").fetchall()[0][1]
        assert "VOID" in found.type.name or bare(described) == bare(in_duckdb(found.type)), text
