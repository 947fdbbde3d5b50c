"""Frames that the driver computes itself: from few rows that it holds, where an operation is plain enough.

A job of Spark takes 45 to 100 ms, whatever it computes. The rows that an operator keeps from slice to slice are often
few, and the driver has them as Arrow. What it does to them without Spark: choose and rename columns, add a number,
unite, limit, leave out rows by punctuations, by nulls and by duplicates, and join on equal columns. In process, it
spares statements in the same way. Equality and order are Arrow's and Python's, so values are compared only where these
are Spark's: not for floating-point numbers (NaN, −0.0), decimals and nested values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute

from xmlstream.dataclasses import dataclass
from xmlstream.operators.frames.expression import (
    BIGINT,
    COUNT,
    Column,
    Copy,
    Equal,
    Expression,
    Passed,
    Present,
    conditions_of,
)
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
    Select,
    Table,
    Unary,
    Union,
    Where,
)
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.pattern import Constant, Empty, List, Pattern, Range, Wildcard
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.slices import arrow_type

pc: Any = pyarrow.compute

Field = dict[str, Any]
"""A column as in the JSON of a Spark struct: its name, its type, and whether it may be null."""

Compute = Callable[[], pa.Table]

COMPARED = {"TINYINT", "SMALLINT", "INT", "BIGINT", "BOOLEAN", "STRING", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"}
"""The types whose values Arrow and Python compare as Spark does."""

_COMPARED = {arrow_type(Domain(name)) for name in COMPARED}

FEW = 10_000
"""The most rows that Spark is given from the driver's memory."""

MOST = 256
"""The most punctuations that are compared with the rows one by one."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A table that Spark is given when it needs it; `read` gives the rows to the driver, None if they are many."""

    fields: Sequence[Field] | None
    make: Callable[[], Any]
    read: Compute | None = None


def fields_of_struct(frame: Frame) -> Sequence[Field] | None:
    """The types of the columns, if they follow from those of the leaves; None if Spark must tell them."""
    match frame.operation:
        case Table(value):
            return value.fields if isinstance(value, Leaf) else None
        case Union(inputs):
            return _of_union(frame, [fields_of_struct(each) for each in inputs], inputs)
        case Join(left, right, _, how):
            mine, theirs = fields_of_struct(left), fields_of_struct(right) if how in ("inner", "left") else ()
            if mine is None or theirs is None:
                return None
            return [*mine, *({**field, "nullable": True} if how == "left" else field for field in theirs)]
        case Select(below, columns, whole):
            given = fields_of_struct(below)
            return None if given is None else _selected(columns, given, whole=whole)
        case Where(below) | Limit(below) | Distinct(below) | Observed(below) | OneTask(below) | Chosen(below):
            return fields_of_struct(below)
    return None


def _of_union(frame: Frame, each: Sequence[Sequence[Field] | None], inputs: Sequence[Frame]) -> list[Field] | None:
    """The types of a union of frames with equal columns in one order."""
    known = [fields for fields in each if fields is not None]
    alike = {tuple(str(field["type"]) for field in fields) for fields in known}
    names = {tuple(name.lower() for name in one.columns) for one in inputs}
    if len(known) < len(each) or len(alike) != 1 or len(names) != 1:
        return None
    columns = zip(*known, strict=True)
    return [
        {**some[0], "name": name, "nullable": any(field["nullable"] for field in some)}
        for name, some in zip(frame.columns, columns, strict=True)
    ]


def _selected(columns: Sequence[Column], given: Sequence[Field], *, whole: bool) -> list[Field] | None:
    found = list(given) if whole else []
    names = [field["name"] for field in given]
    for column in columns:
        match column.expression:
            case Copy(name) if (place := _place(name, names)) is not None:
                found.append({**given[place], "name": column.name})
            case Passed(_, domain) if domain == BIGINT:
                found.append({"name": column.name, "type": "long", "nullable": True, "metadata": {}})
            case _:
                return None
    return found


def _place(name: str, names: Sequence[str]) -> int | None:
    """The place of the column of that name; None if there are none or several."""
    folded = name.lower()
    places = [place for place, known in enumerate(names) if known.lower() == folded]
    return places[0] if len(places) == 1 else None


def computed_rows(frame: Frame) -> pa.Table | None:
    """The rows, computed in this process; None where the engine must."""
    return _rows(frame) if _is_here(frame) else None


def first_rows(table: pa.Table, keys: Sequence[str], order: str) -> pa.Table | None:
    """Of each combination of values of these columns the first row by another one; None if Arrow compares otherwise."""
    found = [_place(key, table.column_names) for key in keys]
    places = [place for place in found if place is not None and table.schema.types[place] in _COMPARED]
    if len(places) < len(keys):
        return None
    table = table.sort_by(order)
    names = [str(place) for place in places]
    keyed = pa.table([table.column(place) for place in places], names)
    rows = keyed.append_column("row", pa.array(range(table.num_rows), pa.int64()))
    return table.take(rows.group_by(names).aggregate([("row", "min")])["row_min"])


def _is_here(frame: Frame, *, compared: bool = False) -> bool:
    """Whether the driver has all rows that the frame is made of, and none of them are numbered or put into groups.

    If whole rows or keys are `compared`, no text is one of a type whose blanks do not count.
    """
    match frame.operation:
        case Table(Leaf(fields, _, read)):
            return read is not None and not any(compared and field.get("metadata") for field in fields or ())
        case Union(inputs):
            return all(_is_here(each, compared=compared) for each in inputs)
        case Join(left, right):
            return _is_here(left, compared=True) and _is_here(right, compared=True)
        case Table() | Group() | Numbered():
            return False
        case Chosen(below, compared=compares):
            return _is_here(below, compared=compared or compares)
        case operation:
            return _is_here(operation.input, compared=compared or isinstance(operation, Distinct))


def _rows(frame: Frame) -> pa.Table | None:
    """The rows of a frame of the driver's rows; None where an operation is not plain."""
    if not 0 < len({name.lower() for name in frame.columns}) == len(frame.columns):
        return None
    match frame.operation:
        case Table(value):
            return None if value.fields is None else value.read()
        case Union(inputs):
            return _united([_rows(each) for each in inputs], list(frame.columns))
        case Join(left, right) as join:
            mine = _rows(left)
            theirs = None if mine is None else _rows(right)
            return None if mine is None or theirs is None else _joined(join, mine, theirs)
        case Chosen(below, here, otherwise):
            table = _rows(below)
            found = None if table is None else here(table)
            return computed_rows(otherwise()) if table is not None and found is None else found
        case operation:
            table = _rows(operation.input)
            return None if table is None else _changed(operation, table)


def _changed(operation: Unary, table: pa.Table) -> pa.Table | None:
    """What an operation makes of a table of its input; None where the engine must make it."""
    match operation:
        case Select():
            return _columns(table, operation)
        case Where(_, condition):
            return _present(table, condition)
        case Limit(_, rows, ()):
            return table.slice(0, rows)
        case Distinct() if all(type_ in _COMPARED for type_ in table.schema.types):
            return table.group_by(table.column_names).aggregate([]).select(table.column_names)
        case Observed(_, (Column(name, expression),)) if expression == COUNT:
            operation.found = {name: table.num_rows}
            return table
        case OneTask():
            return table
    return None


def _joined(join: Join, left: pa.Table, right: pa.Table) -> pa.Table | None:
    """The join of few rows on equal columns; None where the engine must join them."""
    pairs = [each for each in conditions_of(join.on) if isinstance(each, Equal)]
    if max(left.num_rows, right.num_rows) > FEW or len(pairs) < len(conditions_of(join.on)):
        return None
    keys: list[tuple[list[Any], list[Any]]] = []
    for pair in pairs:
        turned = _place(pair.one, left.column_names) is None
        mine, theirs = (pair.other, pair.one) if turned else (pair.one, pair.other)
        here, there = _place(mine, left.column_names), _place(theirs, right.column_names)
        if here is None or there is None:
            return None
        columns = left.column(here), right.column(there)
        if columns[0].type != columns[1].type or columns[0].type not in _COMPARED:
            return None
        keys.append((_values(columns[0]), _values(columns[1])))
    strict = [i for i, pair in enumerate(pairs) if not pair.nulls]
    sought, given = (_keys([of_sides[side] for of_sides in keys], strict) for side in range(2))
    places: dict[tuple[Any, ...] | None, list[int]] = {}
    for number, key in enumerate(given):
        places.setdefault(key, []).append(number)
    places.pop(None, None)
    if join.how in ("left_semi", "left_anti"):
        wanted = join.how == "left_semi"
        return left.filter(pa.array([(key in places) == wanted for key in sought], pa.bool_()))
    unmatched: list[Any] = [None] if join.how == "left" else []
    met = [places.get(key, unmatched) for key in sought]
    if sum(map(len, met)) > FEW:
        return None
    rows = pa.array([number for number, some in enumerate(met) for _ in some], pa.int64())
    found = [*left.take(rows).columns, *right.take(pa.array(chain.from_iterable(met), pa.int64())).columns]
    return pa.table(found, [*left.column_names, *right.column_names])


def _keys(columns: Sequence[list[Any]], strict: Sequence[int]) -> list[tuple[Any, ...] | None]:
    """The keys of rows; None for one that is null in a place where null equals nothing."""
    return [None if any(key[i] is None for i in strict) else key for key in zip(*columns, strict=True)]


def _values(column: pa.ChunkedArray[Any]) -> list[Any]:
    """The values of a column; of days and moments their numbers."""
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    return column.cast(pa.int64()).to_pylist() if pa.types.is_temporal(column.type) else column.to_pylist()


def _united(tables: Sequence[pa.Table | None], names: list[str]) -> pa.Table | None:
    """The rows of tables with equal columns in one order; None where a table is not known, or its columns differ."""
    known = [table for table in tables if table is not None]
    alike = {(*(name.lower() for name in table.column_names), *table.schema.types) for table in known}
    if len(known) < len(tables) or len(alike) != 1:
        return None
    return pa.concat_tables([table.rename_columns(names) for table in known], promote_options="default")


def _present(table: pa.Table, condition: Expression) -> pa.Table | None:
    """The rows whose columns are not null; None if the condition is another one."""
    tests = [pc.is_valid(_column(table, each.name)) for each in conditions_of(condition) if isinstance(each, Present)]
    return table.filter(_all(tests)) if len(tests) == len(conditions_of(condition)) else None


def _columns(table: pa.Table, select: Select) -> pa.Table | None:
    columns: dict[str, Any] = dict(zip(table.column_names, table.columns, strict=True)) if select.whole else {}
    for column in select.columns:
        match column.expression:
            case Copy(name) if (place := _place(name, table.column_names)) is not None:
                columns[column.name] = table.column(place)
            case Passed(value, domain) if domain == BIGINT:
                columns[column.name] = pa.repeat(pa.scalar(value, pa.int64()), table.num_rows)
            case _:
                return None
    return pa.table(columns)


def _column(table: pa.Table, name: str) -> Any:
    (place,) = (place for place, known in enumerate(table.column_names) if known.lower() == name.lower())
    return table.column(place)


Test = Callable[[pa.Table], Any]


def filter_of(punctuations: Sequence[Punctuation], *, negated: bool = False) -> Test | None:
    """What finds the rows that a punctuation matches, or with `negated` the others; None if Spark must."""
    schema = punctuations[0].schema
    if any(schema[i].domain.type not in COMPARED for p in punctuations for i in p.restricted):
        return None
    listed: dict[int, set[Any]] = {}
    others: list[Punctuation] = []
    for p in punctuations:
        i = min(p.restricted, default=0)
        match p.patterns[i] if len(p.restricted) == 1 else None:
            case Constant(value=value):
                listed.setdefault(i, set()).add(value)
            case List(values=values):
                listed.setdefault(i, set()).update(values)
            case _:
                others.append(p)
    if len(others) > MOST:
        return None

    def test(table: pa.Table) -> Any:
        nothing = pa.repeat(pa.scalar(False), table.num_rows)
        found = reduce(pc.or_, _hits(table, others, listed, schema), nothing)
        return pc.invert(found) if negated else found

    return test


def _hits(table: pa.Table, others: Sequence[Punctuation], listed: dict[int, set[Any]], schema: Any) -> Iterator[Any]:
    for i, values in listed.items():
        yield _test(table, schema[i].name, List(tuple(values)), schema[i].domain)
    for p in others:
        tests = [_test(table, schema[i].name, p.patterns[i], schema[i].domain) for i in p.restricted]
        yield _all(tests) if tests else pa.repeat(pa.scalar(True), table.num_rows)


def _test(table: pa.Table, name: str, pattern: Pattern, domain: Domain) -> Any:
    kind = arrow_type(domain)
    column = _column(table, name).cast(kind)
    match pattern:
        case Wildcard() | Empty():
            return pa.repeat(pa.scalar(isinstance(pattern, Wildcard)), table.num_rows)
        case Constant(value=value):
            return pc.is_in(column, value_set=pa.array([value], kind))
        case List(values=values):
            return pc.is_in(column, value_set=pa.array(values, kind))
        case Range():
            ends = [pc.is_valid(column)]
            if pattern.low is not None:
                above = pc.greater_equal if pattern.low_closed else pc.greater
                ends.append(above(column, pa.scalar(pattern.low, kind)))
            if pattern.high is not None:
                below = pc.less_equal if pattern.high_closed else pc.less
                ends.append(below(column, pa.scalar(pattern.high, kind)))
            return pc.fill_null(_all(ends), fill_value=False)


def _all(tests: Sequence[Any]) -> Any:
    return reduce(pc.and_, tests)
