"""Tuples that are chosen: by few punctuations in a condition, by many in joins with small tables; or the first of keys.

Where the driver has the tuples it chooses them itself (`xmlstream.operators.frames.held`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import product
from typing import Any

import pyarrow as pa

from xmlstream.operators.frames.expression import (
    Equal,
    Expression,
    Literal,
    Passed,
    Sql,
    all_of,
    spark_sql,
    sql,
)
from xmlstream.operators.frames.frame import Frame
from xmlstream.operators.frames.held import filter_of, first_rows
from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.numeric_type import DecimalType, IntegerType
from xmlstream.punct_ns.pattern import Constant, Empty, List, Pattern, Range, Wildcard
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.slices import arrow_type, own, quoted
from xmlstream.punct_ns.sql_type import StringType

INLINE = 160
"""Up to this number of values and end points a condition is SQL text; beyond, a joined table (three more jobs)."""

SHORT = 1000
"""The longest range of integers that a table lists as single values, for a hash join."""


def condition(punctuations: Iterable[Punctuation]) -> Expression:
    """Returns what is true for the tuples that any punctuation matches, and false, never null, otherwise."""
    pieces: list[Expression] = []
    for p in punctuations:
        pieces += (" OR (" if pieces else "(", *_one(p), ")")
    return Sql(tuple(pieces)) if pieces else "false"


def condition_text(punctuations: Iterable[Punctuation]) -> str:
    """The same as Spark SQL, with values as literals, as in the text of a query."""
    return spark_sql(condition(punctuations))


def _one(punctuation: Punctuation) -> Iterator[Expression]:
    begin = "("
    for attribute, pattern in zip(punctuation.schema, punctuation.patterns, strict=True):
        if not isinstance(pattern, Wildcard):
            yield begin
            yield from _test(attribute, pattern)
            begin = ") AND ("
    yield "true" if begin == "(" else ")"


def _test(attribute: Attribute, pattern: Pattern) -> Iterator[Expression]:
    column = quoted(attribute.name)
    match pattern:
        case Wildcard():
            yield "true"
        case Empty():
            yield "false"
        case Constant(value=None):
            yield f"{column} IS NULL"
        case Constant(value=value):
            assert value is not None
            yield f"{column} <=> "
            yield _value(value, attribute)
        case Range():
            yield f"{column} IS NOT NULL"
            if pattern.low is not None:
                yield f" AND {column} {'>=' if pattern.low_closed else '>'} "
                yield _value(pattern.low, attribute)
            if pattern.high is not None:
                yield f" AND {column} {'<=' if pattern.high_closed else '<'} "
                yield _value(pattern.high, attribute)
        case List(values=values):
            begin = f"{f'{column} IS NULL OR (' if None in values else ''}{column} IS NOT NULL AND {column} IN ("
            for value in values:
                if value is not None:
                    yield begin
                    yield Literal(value, attribute.domain)
                    begin = ", "
            yield "))" if None in values else ")"


def _value(value: Value, attribute: Attribute) -> Expression:
    """A value to compare an attribute with, as data; engines take texts and decimals as such anyway."""
    if isinstance(attribute.domain.sql, StringType | DecimalType):
        return Literal(value, attribute.domain)
    return Passed(value, attribute.domain, attribute.name)


def _size(punctuation: Punctuation) -> int:
    return sum(len(p.values) if isinstance(p, List) else 1 for p in punctuation.patterns if not isinstance(p, Wildcard))


def is_inline(punctuations: Sequence[Punctuation]) -> bool:
    """Whether `condition` is short enough to be put into a plan."""
    return sum(map(_size, punctuations)) <= INLINE


def matching(frame: Frame, punctuations: Sequence[Punctuation]) -> Frame:
    """Returns the tuples of the frame that some punctuation matches (`setMatchTs` of Tucker et al. 2003, Table 1)."""
    known = tuple(punctuations)
    return frame.chosen(partial(_kept, known, False), lambda: _matching(frame, known))


def _matching(frame: Frame, punctuations: Sequence[Punctuation]) -> Frame:
    if is_inline(punctuations):
        return frame.where(condition(punctuations))
    tables = list(_tables(frame, punctuations))
    parts = []
    for number, (table, on) in enumerate(tables):
        rest = frame
        for earlier, earlier_on in tables[:number]:
            rest = rest.join(earlier, earlier_on, "left_anti", "right")
        parts.append(rest.join(table, on, "left_semi", "right"))
    result = parts[0]
    for part in parts[1:]:
        result = result.union(part)
    return result


def not_matching(frame: Frame, punctuations: Sequence[Punctuation]) -> Frame:
    """Returns the tuples of the frame that no punctuation matches (`setNomatchTs` of Tucker et al. 2003, Table 1)."""
    if not punctuations:
        return frame
    known = tuple(punctuations)
    return frame.chosen(partial(_kept, known, True), lambda: _not_matching(frame, known))


def _not_matching(frame: Frame, punctuations: Sequence[Punctuation]) -> Frame:
    if is_inline(punctuations):
        return frame.where(sql("NOT (", condition(punctuations), ")"))
    for table, on in _tables(frame, punctuations):
        frame = frame.join(table, on, "left_anti", "right")
    return frame


def _kept(punctuations: Sequence[Punctuation], negated: bool, table: pa.Table) -> pa.Table | None:
    """The rows of a table that punctuations match, or do not match; None if Arrow compares their values otherwise."""
    test = filter_of(punctuations, negated=negated) if punctuations else None
    return None if test is None else table.filter(test(table))


def first_of_each(frame: Frame, keys: Sequence[str], by: str) -> Frame:
    """Returns the first tuple of each combination of values of these columns, by another one without duplicates."""
    return frame.chosen(
        lambda table: first_rows(table, keys, by), lambda: _first_of_each(frame, keys, by), compared=True
    )


def _first_of_each(frame: Frame, keys: Sequence[str], by: str) -> Frame:
    place = f"row_number() OVER (PARTITION BY {', '.join(map(quoted, keys))} ORDER BY {quoted(by)})"
    return frame.with_column(_PLACE, place).where(f"{_PLACE} = 1").drop(_PLACE)


_PLACE = own("place")
"""BIGINT: the place of a tuple among those of its key."""


def flagged(frame: Frame, punctuations: Sequence[Punctuation], name: str) -> Frame:
    """Adds a boolean column to the frame: whether some punctuation matches the tuple.

    With many punctuations whose ranges overlap, a tuple may occur more than once in the result.
    """
    if is_inline(punctuations):
        return frame.with_column(name, condition(punctuations))
    hits: list[str] = []
    for table, on in _tables(frame, punctuations):
        hits.append(f"{name}{len(hits)}")
        with_hit = table.distinct().with_column(hits[-1], "true")
        frame = frame.join(with_hit, on, "left", "right").drop(*table.columns)
    test = " OR ".join(f"{hit} IS NOT NULL" for hit in hits)
    return frame.with_column(name, test).drop(*hits)


def _tables(frame: Frame, punctuations: Sequence[Punctuation]) -> Iterator[tuple[Frame, Expression]]:
    """Yields small tables, each with its join condition; their union matches what the punctuations match.

    One table has the punctuations that restrict the same attributes in the same way, by a value or by a range, so
    that values are compared by hashing.
    """
    for table, ddl, test in _arrow_tables(tuple(punctuations)):
        yield frame.engine.rows(table, ddl), test


@lru_cache(maxsize=8)  # a hand_over has the same punctuations in each slice
def _arrow_tables(punctuations: tuple[Punctuation, ...]) -> list[tuple[pa.Table, str, Expression]]:
    """The tables, their types, and their join conditions."""
    schema, found = punctuations[0].schema, []
    for shape, rows in _rows_by_shape(punctuations).items():
        test = all_of(*(_joins(name, is_value, at) for name, is_value, at in _columns(shape, schema)))
        found.append((_arrow(shape, rows, schema), _ddl(shape, schema), test))
    return found


def keys_in(punctuations: Sequence[Punctuation]) -> list[tuple[list[str], pa.Table]] | None:
    """The values that punctuations match, with the names of their attributes; None if a range or all is among them."""
    schema = punctuations[0].schema
    found = []
    for shape, rows in _rows_by_shape(punctuations).items():
        if not shape or not all(is_value and not schema[i].domain.opaque for i, is_value in shape):
            return None
        found.append(([schema[i].name for i, _ in shape], _arrow(shape, rows, schema)))
    return found


_Shape = tuple[tuple[int, bool], ...]
"""The places that punctuations restrict, each with whether by a value."""


def _rows_by_shape(punctuations: Sequence[Punctuation]) -> dict[_Shape, list[tuple[Any, ...]]]:
    """The punctuations as rows of values and of the ends of ranges."""
    found: dict[_Shape, list[tuple[Any, ...]]] = {}
    for punctuation in punctuations:
        spans = [
            (i, list(_spans(punctuation.patterns[i], punctuation.schema[i].domain))) for i in punctuation.restricted
        ]
        for choice in product(*(span for _, span in spans)):
            shape = tuple((i, len(entry) == 1) for (i, _), entry in zip(spans, choice, strict=True))
            found.setdefault(shape, []).append(tuple(field for entry in choice for field in entry))
    return found


def _spans(pattern: Pattern, domain: Domain) -> Iterator[tuple[Any, ...]]:
    """Yields a pattern as values, each `(value,)`, and ranges, each `(low, low_closed, high, high_closed)`."""
    match pattern:
        case Constant(value=value):
            yield (value,)
        case List(values=values):
            yield from ((value,) for value in values)
        case Range(low=int() as low, high=int() as high) if isinstance(domain.sql, IntegerType) and high - low < SHORT:
            yield from ((value,) for value in range(low, high + 1))
        case Range():
            yield (pattern.low, pattern.low_closed, pattern.high, pattern.high_closed)


def _columns(shape: _Shape, schema: Schema) -> Iterator[tuple[str, bool, int]]:
    at = 0
    for index, is_value in shape:
        yield schema[index].name, is_value, at
        at += 1 if is_value else 4


def _arrow(shape: _Shape, rows: list[tuple[Any, ...]], schema: Schema) -> pa.Table:
    columns: list[pa.DataType] = []
    for index, is_value in shape:
        kind = arrow_type(schema[index].domain)
        columns += [kind] if is_value else [kind, pa.bool_(), kind, pa.bool_()]
    arrays = [pa.array(values, type=kind) for values, kind in zip(zip(*rows, strict=True), columns, strict=True)]
    return pa.Table.from_arrays(arrays, names=[_field(at) for at in range(len(columns))])


def _ddl(shape: _Shape, schema: Schema) -> str:
    types: list[str] = []
    for index, is_value in shape:
        type_ = schema[index].domain.type
        types += [type_] if is_value else [type_, "BOOLEAN", type_, "BOOLEAN"]
    return ", ".join(f"{_field(at)} {type_}" for at, type_ in enumerate(types))


def _joins(name: str, is_value: bool, at: int) -> Expression:
    if is_value:
        return Equal(name, _field(at), nulls=True)
    column = quoted(name)
    low, low_closed, high, high_closed = (_field(at + i) for i in range(4))
    above = f"({low} IS NULL OR {column} > {low} OR ({low_closed} AND {column} = {low}))"
    below = f"({high} IS NULL OR {column} < {high} OR ({high_closed} AND {column} = {high}))"
    return f"{column} IS NOT NULL AND {above} AND {below}"


def _field(at: int) -> str:
    return own(f"p{at}")
