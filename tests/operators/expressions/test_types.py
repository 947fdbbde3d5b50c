"""Types of SQL: read once, from their names, by the algebra; everyone else asks what a type is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from xmlstream.operators.expressions.dialect import expression
from xmlstream.operators.expressions.operations.spark_type import read_type
from xmlstream.operators.expressions.type_rules import compared_digits, fit_one_decimal, value_type
from xmlstream.punct_ns.domain import TYPES, sql_type
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import any_arrow_type
from xmlstream.punct_ns.sql_type import NUMBERS, TEMPORAL, StructType

HOUSE = Path(__file__).parents[3]
ROOMS = [HOUSE / name for name in ("punct_ns", "operators", "sources", "xmlstream")]


def texts(node: ast.expr) -> Iterator[str]:
    """The texts that something is compared with."""
    yield from (part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str))


def test_nobody_reads_the_name_of_a_type() -> None:
    wrong = []
    # The types of operations have methods, and the nullability inside them, where a `Domain` has a name.
    typed = ("in_process", "expressions/operations")
    paths = (path for room in ROOMS for path in sorted(room.rglob("*.py")) if not any(of in str(path) for of in typed))
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Compare(left=ast.Attribute(attr="type"), comparators=others):
                    read = any(list(texts(other)) for other in others)
                case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="type"))):
                    read = True
                case _:
                    read = False
            if read:
                wrong.append(f"{path.relative_to(HOUSE)}:{getattr(node, 'lineno', 0)} {ast.unparse(node)}")
    assert not wrong


OTHERS = ("DECIMAL(5,2)", "ARRAY<INT>", "MAP<INT,INT>", "STRUCT<a:INT>", "CHAR(5)", "VOID")


def test_every_type_has_a_kind() -> None:
    assert {type_.name: type_.kind for type_ in map(sql_type, (*TYPES, *OTHERS))} == {
        **{name: name for name in TYPES},
        "DECIMAL(5,2)": "DECIMAL",
        "ARRAY<INT>": "ARRAY",
        "MAP<INT,INT>": "MAP",
        "STRUCT<a:INT>": "STRUCT",
        "CHAR(5)": "CHAR",
        "VOID": "VOID",
    }
    assert all(sql_type(name).name == name for name in (*TYPES, *OTHERS))
    assert {*NUMBERS, *TEMPORAL, "STRING", "BOOLEAN"} == {*TYPES, "DECIMAL"}


def test_where_nulls_are_inside_stands_beside_the_name_of_a_type() -> None:
    written, plain = sql_type("struct<a: int not null, b: array<string>>"), sql_type("STRUCT<a:INT,b:ARRAY<STRING>>")
    assert written.name == "STRUCT<a:INT not null,b:ARRAY<STRING>>"
    assert [each.nullable for each in written.fields] == [False, True]
    assert read_type(written.name).same(plain)
    assert read_type(written.name) != plain
    assert isinstance(plain, StructType)
    inside = sql_type("STRUCT<a: STRUCT<b: INT NOT NULL> NOT NULL>")
    assert (inside.fields[0].nullable, inside.fields[0].type.fields[0].nullable) == (False, False)
    assert any_arrow_type(inside) == pa.struct([("a", pa.struct([("b", pa.int32())]))])
    assert sql_type("STRUCT<a:INT COMMENT 'x', b: INT COLLATE c>").fields[0].nullable


@pytest.mark.parametrize("name", ["STRUCT<a>", "STRUCT<a:INT,b>", "MAP<INT>", "ARRAY<INT,INT>", "ARRAY<DECIMAL(50,2)>"])
def test_what_is_no_type_keeps_its_text(name: str) -> None:
    assert sql_type(name).name == name
    assert sql_type(name).opaque


@pytest.mark.parametrize(("name", "digits"), [("TINYINT", 3), ("SMALLINT", 5), ("INT", 10), ("BIGINT", 20)])
def test_an_integer_is_compared_with_the_digits_that_spark_gives_it(name: str, digits: int) -> None:
    assert compared_digits(sql_type(name)) == (digits, 0)
    assert fit_one_decimal([(digits, 0), (0, 38 - digits)])
    assert not fit_one_decimal([(digits, 0), (0, 39 - digits)])


def test_arithmetic_of_integers_stays_whole_but_for_quotients() -> None:
    schema = Schema.of(i="INT", f="FLOAT", d="DECIMAL(5,2)")
    types = [value_type(expression(text), schema) for text in ("i + i", "i * i", "i DIV i", "i / i", "f - d")]
    assert [type_.name for type_ in types if type_] == ["INT", "INT", "BIGINT", "DOUBLE", "DOUBLE"]
