"""Expressions of Spark SQL as DuckDB SQL, as far as they are proven to be equal; all others are refused by name.

Equal is the value, NaN, zeros with a sign and scales of decimals included; the type and whether it may be null, as
Spark's analyser says; and that an error is raised where Spark, under ANSI rules, raises one. Texts are read by the
project's own reader of Spark's dialect; what is proven stands in the tables of `operators/expressions/operations`.

Values of expressions of one attribute, for the bounds of monotone functions, are computed by DuckDB, too. A value for
which the expression raises an error, or is not proven, has no result; then nothing is derived from it.

A column is given by how DuckDB reads it, with its type and nullability in Spark. Results are cached, since the same
expressions come with each slice. Generators, `explode` and `inline`, make rows of the elements of an array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlglot import exp

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.expressions.depth import MOST, depth, too_deep
from xmlstream.operators.expressions.dialect import call_name, parsed
from xmlstream.operators.expressions.operations.casts import cast
from xmlstream.operators.expressions.operations.forms import Translator
from xmlstream.operators.expressions.operations.part import VOID, Part, null, of_column
from xmlstream.operators.expressions.operations.part import text as written
from xmlstream.operators.expressions.operations.spark_type import NotDefined, NotProven, in_duckdb, read_type
from xmlstream.operators.expressions.readings import require_one_reading
from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.schema import Attribute
from xmlstream.punct_ns.slices import own
from xmlstream.punct_ns.sql_type import StringType
from xmlstream.punct_ns.temporal_type import TimestampType

if TYPE_CHECKING:
    import duckdb

Columns: TypeAlias = Mapping[str, Part]
"""Columns by their names in lower case."""


def translated(text: str, columns: Columns, zone: str = "UTC", values: Sequence[Part] = ()) -> Part:
    """The expression in DuckDB SQL: of one row, an aggregate, or over rows; without an alias.

    >>> from xmlstream.operators.expressions.operations.part import of_column
    >>> found = translated("n <=> 1", {"n": of_column('t."n"', "INT")})
    >>> found.sql, found.type.name, found.nullable
    ('(t."n" IS NOT DISTINCT FROM CAST(1 AS INTEGER))', 'BOOLEAN', False)

    Args:
        text: The expression.
        columns: The columns that it may refer to.
        zone: The session's time zone.
        values: Literals, which are put into the SQL in the places of their marks in the text (`mark`).

    Raises:
        NotProven: A part of it is not in the tables.
        QueryError: It refers to a column that there is not.
    """
    marks = {mark(i): Part(f"{_OPEN}{i}{_CLOSE}", each.type, False) for i, each in enumerate(values)}
    found = _translated(text, used(text, columns, marks), zone)
    return replace(found, sql=_filled(found.sql, values)) if values else found


_OPEN, _CLOSE = "{{" + own("value"), "}}"
"""Around the number of a literal, in DuckDB SQL."""


def mark(number: int) -> str:
    """The name that stands for a literal in the text of an expression.

    >>> from xmlstream.operators.expressions.operations.part import of_column
    >>> seven = value_part(7, Domain("INT"), "UTC")
    >>> print(translated(f"n <=> {mark(0)}", {"n": of_column("n", "INT")}, values=[seven]).sql)
    (n IS NOT DISTINCT FROM CAST('7' AS INTEGER))
    """
    return own(f"value{number}")


def _filled(sql: str, values: Sequence[Part]) -> str:
    """The SQL with the literals in the places of their marks."""
    first, *others = sql.split(_OPEN)
    pairs = (other.partition(_CLOSE) for other in others)
    return first + "".join(f"{values[int(number)].sql}{rest}" for number, _, rest in pairs)


def value_part(value: Value, domain: Domain, zone: str) -> Part:
    """A value as a literal of DuckDB's.

    Raises:
        NotProven: DuckDB does not have the type.
    """
    text = value if isinstance(value, str) else domain.write(value)
    if isinstance(domain.sql, StringType):
        return Part(written(text), _STRING, False)
    if domain.type == "BIGINT":
        return Part(f"({text})::BIGINT", _BIGINT, False)
    return cast(Part(written(text), _STRING, False, constant=text), read_type(domain.type), zone)


_STRING, _BIGINT = map(read_type, ("STRING", "BIGINT"))


def used(text: str, columns: Columns, values: Columns) -> tuple[tuple[str, Part], ...]:
    """The columns in the expression, with their names in lower case."""
    found = []
    for name in _names(text):
        column = values.get(name) or columns.get(name)
        if column is None:
            hint = f"there are {', '.join(columns)}" if columns else None
            raise QueryError(f"there is no attribute {name}", hint=hint)
        found.append((name, column))
    return tuple(found)


@lru_cache(maxsize=4096)
def _names(text: str) -> tuple[str, ...]:
    tree = parsed(text)
    if tree is None:
        raise QueryError(f"not an expression: {text}")
    names = {
        column.name.lower(): None for column in tree.find_all(exp.Column) if isinstance(column.this, exp.Identifier)
    }
    return tuple(names)


@lru_cache(maxsize=4096)
def _translated(text: str, columns: tuple[tuple[str, Part], ...], zone: str) -> Part:
    tree = parsed(text)
    assert tree is not None
    require_one_reading(tree)
    found = Translator(dict(columns), zone).whole(tree.this if isinstance(tree, exp.Alias) else tree)
    if len(found.sql) > MOST and depth(found.sql) > MOST:
        raise too_deep()
    return Part("NULL", VOID, True) if found.type.same(VOID) else found


@dataclass(frozen=True, slots=True)
class Generated:
    """The rows that a generator makes of each row.

    Attributes:
        array: DuckDB SQL of a list, to be unnested; one without elements, or null, makes no row.
        columns: The columns of the rows by their names in Spark, each as DuckDB SQL with `{}` in the element's place.
    """

    array: str
    columns: tuple[tuple[str, Part], ...]


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
    of = Translator(dict(used(text, columns, {})), zone).whole(tree.expressions[0])
    element = of.type.element
    if element is None or element.same(VOID):
        raise (NotProven if of.type.kind in ("ARRAY", "MAP", "VOID") else NotDefined)(f"{name}({of.type.name})")
    outer = name.endswith("_outer")
    array = of.sql
    if outer:
        array = f"CASE WHEN len({of.sql}) > 0 THEN {of.sql} ELSE [{null(element)}] END"
    nullable = of.type.has_nulls or outer
    if name.startswith("explode"):
        return Generated(array, (("col", Part("{}", element, nullable)),))
    if not element.fields:
        raise NotProven(f"{name}({of.type.name})")
    found = []
    for each in element.fields:
        name_in_pattern = written(each.name).replace("{", "{{").replace("}", "}}")
        read = f"struct_extract({{}}, {name_in_pattern})"
        found.append((each.name, Part(read, each.type, nullable or each.nullable)))
    return Generated(array, tuple(found))


def computed(
    expression: str,
    x: Attribute,
    y: Domain,
    values: Sequence[Value],
    connection: duckdb.DuckDBPyConnection,
    zone: str = "UTC",
) -> list[tuple[Value, Value]]:
    """The expression's values for those of the attribute, in their order; without those that fail or are null.

    >>> import duckdb
    >>> x = Attribute("n", Domain("INT"))
    >>> computed("100 DIV n", x, Domain("BIGINT"), [5, 0, 7], duckdb.connect())
    [(5, 20), (7, 14)]
    """
    column = of_column('"x"', x.domain.type)
    try:
        found = translated(expression, {x.name.lower(): column}, zone)
    except NotProven:
        return []
    if found.type.name != y.type:
        return []
    sql = f"epoch_us({found.sql})" if isinstance(y.sql, TimestampType) else found.sql
    return _computed(sql, x.domain, y, values, connection)


def is_proven(expression: str, x: Attribute, zone: str) -> bool:
    """Whether DuckDB computes the expression of the attribute as Spark does."""
    try:
        translated(expression, {x.name.lower(): of_column('"x"', x.domain.type)}, zone)
    except NotProven:
        return False
    return True


def _computed(
    sql: str, x: Domain, y: Domain, values: Sequence[Value], connection: duckdb.DuckDBPyConnection
) -> list[tuple[Value, Value]]:
    import duckdb

    from xmlstream.operators.in_process.statement import execute

    if not values:
        return []
    # A moment is passed as a number, so that the local time of this process does not change it.
    given = ", ".join(f"({number}, {_written(x)})" for number in range(len(values)))
    query = f'SELECT number, {sql} FROM (VALUES {given}) AS t(number, "x") ORDER BY number'
    try:
        rows = execute(connection, query, [_passed(value, x) for value in values]).fetchall()
        found = [(values[row[0]], _value(row[1], y)) for row in rows]
    except (duckdb.Error, ValueError, OverflowError):
        if len(values) == 1:
            return []
        half = len(values) // 2
        parts = (_computed(sql, x, y, part, connection) for part in (values[:half], values[half:]))
        return [pair for part in parts for pair in part]
    return [(value, image) for value, image in found if image is not None]


def _written(domain: Domain) -> str:
    if isinstance(domain.sql, TimestampType):
        return "make_timestamptz(?::BIGINT)" if domain.sql.zoned else "make_timestamp(?::BIGINT)"
    return f"CAST(? AS {in_duckdb(read_type(domain.type))})"


def _passed(value: Value, domain: Domain) -> Any:
    if isinstance(domain.sql, TimestampType):
        return domain.sql.ordinal(value)
    return value if isinstance(domain.sql, StringType) or isinstance(value, int | float) else domain.write(value)


def _value(found: Any, domain: Domain) -> Value | None:
    if found is None:
        return None
    return domain.bound(found, above=True)[0] if isinstance(domain.sql, TimestampType) else domain.normal(found)
