"""Columns of a frame: their types from DDL, from the JSON of a Spark struct and from Arrow, and that JSON of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa

from xmlstream.operators.expressions.operations.part import Part
from xmlstream.operators.expressions.operations.spark_type import NotProven, name_in_duckdb, read_type
from xmlstream.operators.frames.held import Field as StructField
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.slices import arrow_type, type_of_arrow
from xmlstream.punct_ns.sql_type import ArrayType, Field, SqlType, StructType
from xmlstream.punct_ns.type_names import split_outside


class Named(tuple[tuple[str, Part], ...]):
    """Columns in their order, by name; each expression over them is looked up by them, however many they are.

    >>> Named((("N", Part('t."N"', read_type("INT"), True)),)).by_name.keys()
    dict_keys(['n'])
    """

    @cached_property
    def by_name(self) -> Mapping[str, Part]:
        """The columns by their names in lower case."""
        return {name.lower(): part for name, part in self}

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash


_JSON = {"BIGINT": "long", "INT": "integer", "SMALLINT": "short", "TINYINT": "byte"}
_READ = {written: name for name, written in _JSON.items()}
_COLUMN = re.compile(r"\s*(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>\w+))\s+(?P<type>.+?)\s*", re.DOTALL)
_NOT_NULL = re.compile(r"(.+?)\s+NOT\s+NULL", re.IGNORECASE | re.DOTALL)


def column(name: str, type_: SqlType, nullable: bool = True) -> tuple[str, Part]:
    """A column that is read by its name."""
    return name, Part(name_in_duckdb(name), type_, nullable)


@lru_cache(maxsize=1024)
def declared(columns: str) -> Named:
    """The columns of DDL, or of the JSON of a struct.

    >>> [(name, typed.type.name, typed.nullable) for name, typed in declared("`a b` INT NOT NULL, c ARRAY<STRING>")]
    [('a b', 'INT', False), ('c', 'ARRAY<STRING>', True)]
    """
    if columns.startswith("{"):
        return Named(column(*field[:3]) for field in _fields(json.loads(columns)))
    return Named(_declared(text) for text in split_outside(columns, ","))


def _declared(text: str) -> tuple[str, Part]:
    found = _COLUMN.fullmatch(text)
    assert found is not None, text
    name = found["quoted"].replace("``", "`") if found["quoted"] else found["plain"]
    never = _NOT_NULL.fullmatch(found["type"])
    return column(name, read_type(never[1] if never else found["type"]), never is None)


def _fields(struct: Mapping[str, Any]) -> list[Field]:
    return [Field(each["name"], _type(each["type"]), each["nullable"]) for each in struct["fields"]]


def _type(written: Any) -> SqlType:
    if isinstance(written, str):
        return read_type(_READ.get(written, written))
    match written["type"]:
        case "struct":
            return StructType(tuple(_fields(written)))
        case "array":
            return ArrayType(_type(written["elementType"]), has_nulls=written["containsNull"])
    raise NotProven(f"the type {written['type']}")


def struct(columns: Named) -> str:
    """The JSON of the struct.

    >>> columns = declared("a DECIMAL(5,2), b STRUCT<c: TIMESTAMP>")
    >>> declared(struct(columns)) == columns
    True
    """
    return json.dumps({"type": "struct", "fields": fields(columns)})


@lru_cache(maxsize=1024)
def fields(columns: Named) -> Sequence[StructField]:
    """The columns as the JSON of the struct has them."""
    return [_field(Field(name, typed.type, typed.nullable)) for name, typed in columns]


@lru_cache(maxsize=1024)
def plain_schema(columns: Named) -> pa.Schema | None:
    """The columns in Arrow; None if one consists of others, or has a type that Arrow lacks."""
    try:
        return pa.schema([(name, arrow_type(Domain(typed.type.name))) for name, typed in columns])
    except KeyError:
        return None


def _struct(fields: Sequence[Field]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(map(_field, fields))}


def _field(of: Field) -> StructField:
    return {"name": of.name, "type": _json(of.type), "nullable": of.nullable, "metadata": {}}


def _json(type_: SqlType) -> Any:
    if type_.element is not None:
        return {"type": "array", "elementType": _json(type_.element), "containsNull": type_.has_nulls}
    if type_.fields:
        return _struct(type_.fields)
    if type_.kind == "MAP":
        raise NotProven(f"the type {type_.name}")
    return _JSON.get(type_.name, type_.name.lower())


def of_arrow(schema: pa.Schema) -> Named:
    """The columns of a table of Arrow.

    Raises:
        NotProven: A type has no counterpart in Spark.
    """
    return Named(column(field.name, read_type(_of_arrow(field.type)), field.nullable) for field in schema)


def _of_arrow(type_: pa.DataType) -> str:
    if (name := type_of_arrow(type_)) is None:
        raise NotProven(f"Arrow's type {type_}")
    return name
