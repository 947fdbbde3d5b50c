"""Frames as DuckDB SQL: each operation as a SELECT over the SQL of its inputs, with the columns that it gives.

The columns of a frame, with their types in Spark, follow from the columns of its inputs, without a computation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import takewhile

from xmlstream.operators.expressions.dialect import conjuncts, expression, render
from xmlstream.operators.expressions.operations.casts import common_type
from xmlstream.operators.expressions.operations.part import Part, null
from xmlstream.operators.expressions.operations.spark_type import NotProven, in_duckdb, name_in_duckdb, read_type
from xmlstream.operators.frames.expression import Column, Copy, Expression, Literal, Order, Passed, spark_sql
from xmlstream.operators.frames.frame import (
    Chosen,
    Distinct,
    Frame,
    Group,
    Join,
    Limit,
    Numbered,
    Observed,
    OneTask,
    Operation,
    Select,
    Table,
    Unary,
    Union,
    Where,
)
from xmlstream.operators.in_process.columns import Named, column
from xmlstream.operators.in_process.expressions import generator, mark, translated, value_part
from xmlstream.punct_ns.slices import own
from xmlstream.punct_ns.sql_type import FLOATING

ColumnsOf = Callable[[Frame], Named]
SqlOf = Callable[[Frame], str]
"""A frame as an item of FROM: a table's name, or a SELECT in brackets."""

_EACH = own("each")


class Relations:
    """Prints operations as SQL; `columns` and `source` give the columns and the SQL of their inputs."""

    def __init__(self, zone: str, columns: ColumnsOf, source: SqlOf) -> None:
        self._zone, self._columns, self._source = zone, columns, source

    def columns(self, operation: Operation) -> Named:
        """The columns that an operation gives.

        Raises:
            NotProven: An expression is not proven to be equal in DuckDB.
        """
        match operation:
            case Table():
                raise AssertionError("a leaf has its columns")
            case Union():
                return self._union_columns(operation)
            case Chosen(below):
                return self._columns(below)
            case Join(left, right, _, how):
                there = Named() if how in ("left_semi", "left_anti") else self._columns(right)
                if how == "left":
                    there = Named((name, _nullable(typed)) for name, typed in there)
                return Named((*self._columns(left), *there))
        given = self._columns(operation.input)
        match operation:
            case Select(_, columns, whole):
                return Named((*(given if whole else ()), *(self._selected(each, given) for each in columns)))
            case Group(_, keys, aggregates):
                by = given.by_name
                made = (self._selected(each, given) for each in aggregates)
                return Named((*((key, by[key.lower()]) for key in keys), *made))
            case Numbered(_, _, name):
                return Named((*given, column(name, read_type("BIGINT"), nullable=False)))
            case _:
                return given

    def _selected(self, of: Column, given: Named) -> tuple[str, Part]:
        made = _generated(of.expression, given, self._zone)
        typed = _part(of.expression, given, self._zone) if made is None else made[1]
        return column(of.name, typed.type, typed.nullable)

    def _union_columns(self, union: Union) -> Named:
        first, *others = map(self._columns, union.inputs)
        found = dict(first)
        for other in others:
            pairs = other if union.by_name else tuple(zip(found, (typed for _, typed in other), strict=True))
            here = {name for name, _ in pairs}
            found = {name: typed if name in here else _nullable(typed) for name, typed in found.items()}
            for name, typed in pairs:
                found[name] = _widened(found[name], typed) if name in found else _nullable(typed)
        return Named(column(name, typed.type, typed.nullable) for name, typed in found.items())

    def select(self, operation: Operation) -> str:
        match operation:
            case Table():
                raise AssertionError("a leaf has its SQL")
            case Union(inputs):
                wanted = self._union_columns(operation)
                return " UNION ALL ".join(self._cast(each, wanted, by_name=operation.by_name) for each in inputs)
            case Join():
                return self._joined(operation)
            case Chosen():
                return f"SELECT * FROM {self._source(operation.otherwise())}"
        return self._of_one(operation, self._columns(operation.input), self._source(operation.input))

    def _cast(self, frame: Frame, wanted: Named, *, by_name: bool) -> str:
        """The rows of a frame with these columns, by name or by place."""
        there = self._columns(frame)
        given = {name.lower(): (name, typed) for name, typed in there} if by_name else {}
        items = []
        for number, (name, typed) in enumerate(wanted):
            found = given.get(name.lower()) if by_name else there[number]
            target = typed.type
            if found is None:
                items.append(f"{null(target)} AS {name_in_duckdb(name)}")
            else:
                read = found[1].sql if found[1].type.same(target) else f"CAST({found[1].sql} AS {in_duckdb(target)})"
                items.append(f"{read} AS {name_in_duckdb(name)}")
        return f"SELECT {', '.join(items)} FROM {self._source(frame)}"

    def _joined(self, join: Join) -> str:
        both = Named((*self._columns(join.left), *self._columns(join.right)))
        whole = _part(join.on, both, self._zone)
        on = whole.sql
        if whole.raises:
            # AND with what can raise an error is one CASE, for which DuckDB would look at all pairs.
            parts = (_part(render(part), both, self._zone) for part in conjuncts(expression(spark_sql(join.on))))
            on = " AND ".join([*(part.sql for part in takewhile(lambda part: not part.raises, parts)), on])
        kind = {"inner": "JOIN", "left": "LEFT JOIN", "left_semi": "SEMI JOIN", "left_anti": "ANTI JOIN"}[join.how]
        return f"SELECT * FROM {self._source(join.left)} AS l {kind} {self._source(join.right)} AS r ON {on}"

    def _of_one(self, operation: Unary, given: Named, source: str) -> str:
        match operation:
            case Select():
                return self._select(operation, given, source)
            case Where(_, condition):
                return f"SELECT * FROM {source} WHERE {_part(condition, given, self._zone).sql}"
            case Group(_, keys, aggregates):
                by = given.by_name
                read = [_key(by[key.lower()]) for key in keys]
                items = [f"{key} AS {name_in_duckdb(name)}" for key, name in zip(read, keys, strict=True)]
                items += (_item(each, given, self._zone) for each in aggregates)
                groups = f" GROUP BY {', '.join(read)}" if keys else ""
                return f"SELECT {', '.join(items)} FROM {source}{groups}"
            case Distinct():
                items = [f"{_key(typed)} AS {name_in_duckdb(name)}" for name, typed in given]
                return f"SELECT DISTINCT {', '.join(items)} FROM {source}"
            case Limit(_, rows, order):
                by_order = f" ORDER BY {self._order(order, given)}" if order else ""
                return f"SELECT * FROM {source}{by_order} LIMIT {rows}"
            case Numbered(_, order, name, first):
                number = f"row_number() OVER (ORDER BY {self._order(order, given)})"
                return f"SELECT *, CAST({number} + {first - 1} AS BIGINT) AS {name_in_duckdb(name)} FROM {source}"
            case OneTask() | Observed():
                return f"SELECT * FROM {source}"

    def _order(self, order: Sequence[Order], given: Named) -> str:
        return ", ".join(f"{_part(Copy(by.name), given, self._zone).sql} {by.direction}" for by in order)

    def _select(self, select: Select, given: Named, source: str) -> str:
        items = [typed.sql for _, typed in given] if select.whole else []
        for each in select.columns:
            if (made := _generated(each.expression, given, self._zone)) is not None:
                array, element = made
                items.append(f"{element.sql} AS {name_in_duckdb(each.name)}")
                source = f"(SELECT *, unnest({array}) AS {_EACH} FROM {source})"
            else:
                items.append(_item(each, given, self._zone))
        return f"SELECT {', '.join(items)} FROM {source}"


def _item(of: Column, given: Named, zone: str) -> str:
    return f"{_part(of.expression, given, zone).sql} AS {name_in_duckdb(of.name)}"


def _part(expression: Expression, given: Named, zone: str) -> Part:
    """The expression in DuckDB SQL.

    Reading a text takes longer than computing it over a small slice. So values stand as names in the text, which is
    read once, and are put into the DuckDB SQL that was made of it.
    """
    values: list[Part] = []

    def named(value: Literal | Passed) -> str:
        values.append(value_part(value.value, value.domain, zone))
        return mark(len(values) - 1)

    text = spark_sql(expression, named)
    return translated(text, given.by_name, zone, values) if values else _lasting(text, given, zone)


@lru_cache(maxsize=4096)
def _lasting(text: str, given: Named, zone: str) -> Part:
    return translated(text, given.by_name, zone)


def _generated(expression: Expression, given: Named, zone: str) -> tuple[str, Part] | None:
    """The array and its element, if the expression makes a row of each element."""
    if not isinstance(expression, str) or ("explode" not in expression.lower() and "inline" not in expression.lower()):
        return None
    return _array(expression, given, zone)


@lru_cache(maxsize=4096)
def _array(text: str, given: Named, zone: str) -> tuple[str, Part] | None:
    made = generator(text, given.by_name, zone)
    if made is None:
        return None
    if len(made.columns) != 1:
        raise NotProven("a generator of several columns")
    ((_, typed),) = made.columns
    return made.array, replace(typed, sql=typed.sql.format(_EACH))


def _key(typed: Part) -> str:
    """A column to group by: zeros with a sign are the one without, as in Spark."""
    return f"({typed.sql} + 0)" if typed.type.name in FLOATING else typed.sql


def _nullable(typed: Part) -> Part:
    return replace(typed, nullable=True)


def _widened(one: Part, other: Part) -> Part:
    found = common_type([one.type, other.type])
    if found is None:
        raise NotProven(f"a union of {one.type.name} and {other.type.name}")
    return Part(one.sql, found, one.nullable or other.nullable)
