"""Frames that the driver computes itself: from few rows that it holds, where an operation is plain enough.

A job of Spark takes 45 to 100 ms, whatever it computes. The rows that an operator keeps from slice to slice are often
few, and the driver has them as Arrow. What it does to them without Spark: choose and rename columns, add a number,
unite, limit, and leave out rows by punctuations, by nulls and by duplicates. Equality and order are Arrow's, so values
are compared only where they are Spark's: not for floating-point numbers (NaN, −0.0), decimals and nested values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute

from xmlstream.operators.expressions.dialect import PASSED_LITERAL
from xmlstream.operators.frames.frame import (
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
    name_of,
)
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.pattern import Constant, Empty, List, Pattern, Range, Wildcard
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.slices import arrow_type

pc: Any = pyarrow.compute

Field = dict[str, Any]
"""A column as in the JSON of a Spark struct: its name, its type, and whether it may be null."""

Compute = Callable[[], pa.Table]

_COMPARED = {"byte", "short", "integer", "long", "boolean", "string", "date", "timestamp", "timestamp_ntz"}
"""Spark's names in JSON of the types that Arrow compares as Spark does."""

_DOMAINS = {"TINYINT", "SMALLINT", "INT", "BIGINT", "BOOLEAN", "STRING", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"}

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
            mine, theirs = fields_of_struct(left), fields_of_struct(right) if how == "inner" else ()
            return None if mine is None or theirs is None or how == "left" else [*mine, *theirs]
        case Select(below, expressions):
            given = fields_of_struct(below)
            return None if given is None else _selected(expressions, given)
        case Where(below) | Limit(below) | Distinct(below) | Observed(below) | OneTask(below):
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


def _selected(expressions: Sequence[str], given: Sequence[Field]) -> list[Field] | None:
    found: list[Field] = []
    for text in expressions:
        if text == "*":
            found += given
        elif (place := _place(text, [field["name"] for field in given])) is not None:
            found.append({**given[place], "name": name_of(text)})
        elif _number(text) is not None:
            found.append({"name": name_of(text), "type": "long", "nullable": True, "metadata": {}})
        else:
            return None
    return found


_COPY = re.compile(r"\s*(?P<name>`(?:[^`]|``)+`|[a-z_]\w*)\s*(?:\sAS\s.*)?", re.IGNORECASE | re.DOTALL)
_NO_COLUMN = {"null", "true", "false"}
_PASSED = re.compile(rf"{PASSED_LITERAL}\s+AS\s.*", re.DOTALL)
_PRESENT = re.compile(r"(`(?:[^`]|``)+`) IS NOT NULL")


def _number(text: str) -> int | None:
    """The number that is passed in a column; None for any other column.

    >>> _number("__xs_passed(7L) AS n"), _number("7L AS n")
    (7, None)
    """
    found = _PASSED.fullmatch(text)
    return int(found["passed"][:-1]) if found and found["passed"].endswith("L") else None


def _place(text: str, names: Sequence[str]) -> int | None:
    """The place of the column that an expression copies; None if it is something else.

    >>> [_place(text, ["a", "B"]) for text in ("b", "`B` AS c", "a + 1 AS d", "1 AS a", "null AS e")]
    [1, 1, None, None, None]
    """
    found = _COPY.fullmatch(text)
    if found is None or found["name"].lower() in _NO_COLUMN:
        return None
    name = found["name"][1:-1].replace("``", "`") if found["name"].startswith("`") else found["name"]
    places = [place for place, known in enumerate(names) if known.lower() == name.lower()]
    return places[0] if len(places) == 1 else None


def computed_rows(frame: Frame) -> Compute | None:
    """What computes the rows in this process; None where the engine must."""
    fields = fields_of_struct(frame) if _may_be_here(frame) else None
    if fields is None or not 0 < len({name.lower() for name in frame.columns}) == len(frame.columns):
        return None
    if frame.filtered is not None:
        test = frame.filtered.test
        read = computed_rows(frame.filtered.input)
        return None if read is None else lambda: _filtered(read(), test)
    return _computed(frame, frame.operation, fields)


def _may_be_here(frame: Frame) -> bool:
    """Whether the driver has all rows that the frame is made of, and none are joined or put into groups."""
    if frame.filtered is not None:
        return _may_be_here(frame.filtered.input)
    match frame.operation:
        case Table(value):
            return isinstance(value, Leaf) and value.read is not None
        case Union(inputs):
            return all(map(_may_be_here, inputs))
        case Join() | Group() | Numbered():
            return False
        case operation:
            return _may_be_here(operation.input)


def _computed(frame: Frame, operation: Operation, fields: Sequence[Field]) -> Compute | None:
    match operation:
        case Table(Leaf(_, _, read)):
            return read
        case Union(inputs):
            parts = [part for each in inputs if (part := computed_rows(each)) is not None]
            names = list(frame.columns)
            return None if len(parts) < len(inputs) else lambda: _united([part() for part in parts], names)
        case Join() | Table():
            return None
    read, change = computed_rows(operation.input), _change(operation, fields)
    return None if read is None or change is None else lambda: change(read())


def _change(operation: Unary, fields: Sequence[Field]) -> Callable[[pa.Table], pa.Table] | None:
    """What an operation does to a table of its input; None where Spark must do it. The result has these types."""
    change: Callable[[pa.Table], pa.Table] | None = None
    match operation:
        case Select(_, expressions):
            change = partial(_columns, expressions=expressions)
        case Where(_, condition) if all(map(_PRESENT.fullmatch, condition.split(" AND "))):
            change = partial(_present, names=[name_of(name) for name in _PRESENT.findall(condition)])
        case Limit(_, rows, ()):
            change = partial(pa.Table.slice, offset=0, length=rows)
        case Distinct() if all(str(field["type"]) in _COMPARED and not field.get("metadata") for field in fields):
            change = _distinct
        case Observed(_, ("count(1) AS tuples",)):
            change = partial(_counted, operation)
        case OneTask():
            change = partial(pa.Table.slice, offset=0)
    return change


def _united(tables: Sequence[pa.Table], names: list[str]) -> pa.Table:
    return pa.concat_tables([table.rename_columns(names) for table in tables], promote_options="default")


def _present(table: pa.Table, names: Sequence[str]) -> pa.Table:
    return table.filter(_all([pc.is_valid(_column(table, name)) for name in names]))


def _columns(table: pa.Table, expressions: Sequence[str]) -> pa.Table:
    columns: dict[str, Any] = {}
    for text in expressions:
        if text == "*":
            columns |= zip(table.column_names, table.columns, strict=True)
        elif (place := _place(text, table.column_names)) is not None:
            columns[name_of(text)] = table.column(place)
        else:
            columns[name_of(text)] = pa.repeat(pa.scalar(_number(text), pa.int64()), table.num_rows)
    return pa.table(columns)


def _filtered(table: pa.Table, test: Test) -> pa.Table:
    return table.filter(test(table))


def _distinct(table: pa.Table) -> pa.Table:
    return table.group_by(table.column_names).aggregate([]).select(table.column_names)


def _counted(observed: Observed, table: pa.Table) -> pa.Table:
    observed.found = {"tuples": table.num_rows}
    return table


def _column(table: pa.Table, name: str) -> Any:
    (place,) = (place for place, known in enumerate(table.column_names) if known.lower() == name.lower())
    return table.column(place)


Test = Callable[[pa.Table], Any]


def filter_of(punctuations: Sequence[Punctuation], *, negated: bool = False) -> Test | None:
    """What finds the rows that a punctuation matches, or with `negated` the others; None if Spark must."""
    schema = punctuations[0].schema
    if any(schema[i].domain.type not in _DOMAINS for p in punctuations for i in p.restricted):
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
