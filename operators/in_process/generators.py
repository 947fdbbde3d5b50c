"""Generators: `explode` and `inline`, which make rows of the elements of an array."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from xmlstream.operators.expressions.dialect import call_name, parsed
from xmlstream.operators.in_process.expressions import Columns, Translator, Typed, used
from xmlstream.operators.in_process.part import VOID, null, text
from xmlstream.operators.in_process.spark_type import NotProven


@dataclass(frozen=True, slots=True)
class Generated:
    """The rows that a generator makes of each row.

    Attributes:
        array: DuckDB SQL of a list, to be unnested; one without elements, or null, makes no row.
        columns: The columns of the rows by their names in Spark, each as DuckDB SQL with `{}` in the element's place.
    """

    array: str
    columns: tuple[tuple[str, Typed], ...]


def generator(text: str, columns: Columns, zone: str = "UTC") -> Generated | None:
    """The rows that `explode`, `explode_outer` or `inline` makes; None for any other expression.

    To compute them: SELECT …, column.sql.format("e") FROM (SELECT *, unnest(array) AS e FROM …).
    """
    tree = parsed(text)
    if isinstance(tree, exp.Alias):
        tree = tree.this
    name = call_name(tree)
    if tree is None or name not in ("explode", "explode_outer", "inline", "inline_outer") or len(tree.expressions) != 1:
        return None
    of = Translator(dict(used(text, columns, {})), zone).part(tree.expressions[0])
    element = of.type.element
    if element is None or element.same(VOID):
        raise NotProven(f"{name}({of.type.name})")
    outer = name.endswith("_outer")
    array = of.sql
    if outer:
        array = f"CASE WHEN len({of.sql}) > 0 THEN {of.sql} ELSE [{null(element)}] END"
    nullable = of.type.has_nulls or outer
    if name.startswith("explode"):
        return Generated(array, (("col", Typed("{}", element.name, nullable, inner=element)),))
    if not element.fields:
        raise NotProven(f"{name}({of.type.name})")
    found = []
    for each in element.fields:
        read = f"struct_extract({{}}, {text_of(each.name)})"
        found.append((each.name, Typed(read, each.type.name, nullable or each.nullable, inner=each.type)))
    return Generated(array, tuple(found))


def text_of(name: str) -> str:
    """A field's name as a text in a pattern of `str.format`."""
    return text(name).replace("{", "{{").replace("}", "}}")
