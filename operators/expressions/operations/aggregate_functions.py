"""Aggregates, and functions over rows, that are proven to be equal to Spark's, each with its types.

DuckDB sums in wider types than Spark: the result is cast, so that it overflows where Spark's does. The sum of floating-
point numbers depends on the order of rows in both, and has no order over a window in DuckDB: there it is refused. Spark
takes a null in a structure for the least value, DuckDB for the greatest: structures are compared by a key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from sqlglot import exp

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.expressions.operations.arithmetic import rounded
from xmlstream.operators.expressions.operations.casts import BITS, cast
from xmlstream.operators.expressions.operations.part import (
    VOID,
    Part,
    divided,
    error,
    interval,
    is_utc,
    refused,
    require_silent,
)
from xmlstream.operators.expressions.operations.spark_type import NotProven, has_floating, in_duckdb, read_type, unlike
from xmlstream.punct_ns.numeric_type import DecimalType
from xmlstream.punct_ns.sql_type import FLOATING, INTEGERS, NUMBERS, TEMPORAL, ArrayType, SqlType

BIGINT, BOOLEAN, DOUBLE, INT = map(read_type, ("BIGINT", "BOOLEAN", "DOUBLE", "INT"))


@dataclass(frozen=True, slots=True)
class Rows:
    """What stands behind an aggregate: whether DISTINCT, its FILTER, and the rows that it is computed over.

    Attributes:
        distinct: Whether each different value counts once.
        where: DuckDB SQL of FILTER's condition; empty for none.
        over: DuckDB SQL between the brackets of OVER; None for an aggregate of a group.
        ordered: Whether OVER orders the rows.
        raises: Whether the condition or the rows' order can raise an error.
        ignores_nulls: Whether IGNORE NULLS is written.
    """

    distinct: bool = False
    where: str = ""
    over: str | None = None
    ordered: bool = False
    raises: bool = False
    ignores_nulls: bool = False

    def computed(self, call: str) -> str:
        """The text of a call, with its FILTER and its OVER."""
        where = f" FILTER (WHERE {self.where})" if self.where else ""
        over = "" if self.over is None else f" OVER ({self.over})"
        return f"{call}{where}{over}"


Aggregate: TypeAlias = Callable[[str, Sequence[Part], Rows], Part]
"""An aggregate of that name over its arguments and rows."""

Merging: TypeAlias = Literal["counts", "sums", "values", "means", "firsts"]
"""How partial results merge: counts and sums add up; extremes and what joins conditions or bits are merged by the
aggregate itself; a mean by its sum and its count; the value at the first or last place by that place."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of an aggregate.

    Attributes:
        part: What makes its part.
        merges: How partial results of it merge; None if they do not, so that a group keeps its tuples.
        idempotent: Whether duplicates do not change its value.
        over: Whether it is proven over rows, too.
    """

    part: Aggregate
    merges: Merging | None
    idempotent: bool = False
    over: bool = True


_ORDERED = (*INTEGERS, "DECIMAL", "STRING", "BOOLEAN", *TEMPORAL)


def aggregate(name: str, parts: Sequence[Part], rows: Rows) -> Part:
    """The part of an aggregate.

    Raises:
        NotProven: It is not in the table, or not with these types.
    """
    if any(part.rows for part in parts) and rows.over is None:
        raise NotProven(f"{name} of an aggregate")
    if rows.ignores_nulls and name not in _PLACED:
        raise NotProven(f"{name} IGNORE NULLS")
    if (entry := AGGREGATES.get(name)) is None:
        found = _window(name, parts, rows)
    elif rows.over is not None and not entry.over:
        raise NotProven(f"{name} over rows")
    else:
        found = entry.part(name, parts, rows)
    return Part(found.sql, found.type, found.nullable, found.raises or rows.raises or _raise(parts), rows=True)


def _raise(parts: Sequence[Part]) -> bool:
    return any(part.raises for part in parts)


def _window(name: str, parts: Sequence[Part], rows: Rows) -> Part:
    if rows.over is None or rows.distinct or rows.where or name not in WINDOWS:
        raise NotProven(f"{name} as a function of a group")
    return WINDOWS[name](name, parts, rows)


def _refuse(name: str, parts: Sequence[Part]) -> NotProven:
    expected = _EXPECTED.get(name.partition(" ")[0], ())
    names, kinds = ", ".join(part.type.name for part in parts), [part.type.kind for part in parts]
    if (
        expected == NUMBERS and kinds == ["TIMESTAMP"] and name != "median"
    ):  # Spark casts it to DOUBLE, and no other moment.
        return NotProven(f"{name}({names})")
    return unlike(f"{name}({names})", kinds, *[expected] * len(kinds))


_EXPECTED: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("any", "bool_and", "bool_or", "count_if", "every"), ("BOOLEAN",)),
    **dict.fromkeys(("avg", "mean", "median", "sum"), NUMBERS),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), INTEGERS),
}
"""The types of Spark's aggregates that do not take all."""


def _count(name: str, parts: Sequence[Part], rows: Rows) -> Part:
    if rows.distinct and rows.over is not None:
        raise NotProven("count(DISTINCT …) over rows")
    if any(part.type.same(VOID) for part in parts):
        raise NotProven("count(NULL)")
    require_silent("count", *parts)
    counted = ", ".join(map(_folded, parts)) or "*"
    if len(parts) > 1:
        present = " AND ".join(f"{part.sql} IS NOT NULL" for part in parts)
        counted = f"CASE WHEN {present} THEN {f'row({counted})' if rows.distinct else 1} END"
    return Part(rows.computed(f"count({'DISTINCT ' * rows.distinct}{counted})"), BIGINT, False)


def _median(name: str, parts: Sequence[Part], rows: Rows) -> Part:
    if len(parts) != 1 or rows.distinct or parts[0].type.name not in INTEGERS:
        raise _refuse(name, parts)
    here = f"{parts[0].sql} IS NOT NULL" + (f" AND {rows.where}" if rows.where else "")
    values = f"list_sort({Rows(where=here).computed(f'list({parts[0].sql})')})"
    sides = (f"0.5::DOUBLE * CAST(list_extract({values}, (len({values}) + {1 + i}) // 2) AS DOUBLE)" for i in (0, 1))
    return Part(f"({' + '.join(sides)})", DOUBLE, True)


def _regr_count(name: str, parts: Sequence[Part], rows: Rows) -> Part:
    if len(parts) != 2 or rows.distinct or any(part.type.kind not in NUMBERS for part in parts):
        raise _refuse(name, parts)
    return _count(name, parts, rows)


_FAR = 1e150
"""Beyond it squares of numbers leave DOUBLE: DuckDB fails there, Spark goes on with infinity."""
_NEEDS_TWO = ("corr", "std", "stddev", "stddev_samp", "var_samp", "variance", "covar_samp")
_IN_DUCKDB = {"std": "stddev_samp", "stddev": "stddev_samp", "variance": "var_samp"}


def _moments(name: str, parts: Sequence[Part], rows: Rows) -> Part:
    """Deviations, covariances and regressions, equal but for the last digits, which in Spark depend on the order."""
    if len(parts) != _MOMENTS[name] or rows.distinct or any(part.type.kind not in NUMBERS for part in parts):
        raise _refuse(f"{name}{' DISTINCT' if rows.distinct else ''}", parts)
    given = [cast(part, DOUBLE, "UTC").sql for part in parts]
    here = " AND ".join(f"{each} IS NOT NULL" for each in given)
    near = " AND ".join(f"abs({each}) <= {_FAR}" for each in given)
    number, beyond = (
        replace(rows, where=" AND ".join([f"({test})", *([rows.where] if rows.where else [])])).computed("count(*)")
        for test in (here, f"{here} AND NOT ({near})")
    )
    call = f"{_IN_DUCKDB.get(name, name)}({', '.join(f'CASE WHEN {near} THEN {each} END' for each in given)})"
    found = rows.computed(call)
    if name == "regr_slope":  # null where all are in one place
        found = f"CASE WHEN isnan({found}) THEN NULL ELSE {found} END"
    least = 2 if name in _NEEDS_TWO else 1
    far = refused(f"{name} of numbers beyond {_FAR:.0e}, of infinity or NaN")
    return Part(
        f"CASE WHEN {beyond} > 0 THEN {far} WHEN {number} >= {least} THEN {found} END", DOUBLE, True, raises=True
    )


_MOMENTS = {
    **dict.fromkeys(("std", "stddev", "stddev_pop", "stddev_samp", "var_pop", "var_samp", "variance"), 1),
    **dict.fromkeys(("corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_intercept", "regr_r2"), 2),
    **dict.fromkeys(("regr_slope", "regr_sxx", "regr_sxy", "regr_syy"), 2),
}
"""The number of arguments."""


def _folded(part: Part) -> str:
    """The value, with one zero instead of two."""
    return f"({part.sql} + 0)" if part.type.name in FLOATING else part.sql


def _sum(name: str, parts: Sequence[Part], rows: Rows) -> Part:
    if len(parts) != 1 or (rows.distinct and (rows.over is not None or parts[0].type.name not in INTEGERS)):
        raise _refuse(f"{name}{' DISTINCT' if rows.distinct else ''}", parts)
    of = parts[0]
    if of.type.name in INTEGERS:
        total = rows.computed(f"sum({'DISTINCT ' * rows.distinct}{of.sql})")
        return Part(f"CAST({total} AS BIGINT)", BIGINT, True, raises=True)
    if of.type.kind == "DECIMAL":
        precision, scale = of.type.digits
        type_ = DecimalType(min(precision + 10, 38), scale)
        total = rows.computed(f"sum({of.sql})")
        if precision + 10 > 38:
            # DuckDB adds integers of 128 bits, which have more than 38 digits.
            most = f"CAST('{'9' * (38 - scale)}.{'9' * scale}' AS {type_.name})"
            overflow = error("ARITHMETIC_OVERFLOW", "Overflow in sum of decimals.")
            # Spark overflows as soon as the sum of some of them does, in its order.
            of_all = rows.computed(f"sum(abs(CAST({of.sql} AS DOUBLE)))")
            beyond = f"WHEN {of_all} > CAST({most} AS DOUBLE) THEN {refused('this sum of decimals')}"
            total = f"CASE WHEN {total} NOT BETWEEN -{most} AND {most} THEN {overflow} {beyond} ELSE {total} END"
        return Part(f"CAST({total} AS {type_.name})", type_, True, raises=True)
    if of.type.name in FLOATING and rows.over is None:
        return Part(rows.computed(f"sum(CAST({of.sql} AS DOUBLE))"), DOUBLE, True)
    raise _refuse(name, parts)


_EXACT = 2**53
"""Up to this number sums of integers are exact as DOUBLE, in whatever order."""


def _avg(name: str, parts: Sequence[Part], rows: Rows) -> Part:
    if len(parts) != 1 or rows.distinct or parts[0].type.kind not in NUMBERS:
        raise _refuse(f"{name}{' DISTINCT' if rows.distinct else ''}", parts)
    of = parts[0].sql
    number = rows.computed(f"count({of})")
    if parts[0].type.kind == "DECIMAL":
        precision, scale = parts[0].type.digits
        if precision > 23:  # whose sum has too many digits for DuckDB's integers
            raise _refuse(name, parts)
        type_ = DecimalType(precision + 4, scale + 4)
        total = _sum("sum", parts, rows).sql
        return Part(rounded(total, 4, number, f"sign({total})", type_), type_, True, raises=True)
    if rows.over is None:
        total = rows.computed(f"sum(CAST({of} AS DOUBLE))")
        return Part(f"({total} / {number})", DOUBLE, True)
    if parts[0].type.name in FLOATING:
        raise _refuse(name, parts)
    total = f"CAST({rows.computed(f'sum({of})')} AS DOUBLE)"
    large = rows.computed(f"sum(abs(CAST({of} AS HUGEINT)))")
    beyond = refused("avg of so great numbers")
    return Part(f"CASE WHEN {large} > {_EXACT} THEN {beyond} ELSE ({total} / {number}) END", DOUBLE, True, raises=True)


def order_key(sql: str, type_: SqlType, *, nullable: bool = True, floating: bool = False) -> str:
    """A value in whose order DuckDB has the values as Spark: in a structure, null comes first.

    Args:
        sql: DuckDB SQL of the values.
        type_: Their type.
        nullable: Whether one may be null.
        floating: Whether fields may be of floating point, of whose zeros DuckDB makes one in the key.

    Raises:
        NotProven: The order of the type is not proven.
    """
    if not type_.fields:
        if type_.kind not in (*_ORDERED, *(FLOATING if floating else ())):
            raise NotProven(f"the order of {type_.name}")
        return sql
    parts = []
    for i, field in enumerate(type_.fields):
        inner = f"struct_extract({sql}, '{field.name.replace(chr(39), chr(39) * 2)}')"
        if field.nullable:
            parts.append(f"n{i} := {inner} IS NOT NULL")
        parts.append(f"v{i} := {order_key(inner, field.type, floating=floating)}")
    key = f"struct_pack({', '.join(parts)})"
    return f"CASE WHEN {sql} IS NOT NULL THEN {key} END" if nullable else key


def _has_nulls(type_: SqlType) -> bool:
    return any(field.nullable or _has_nulls(field.type) for field in type_.fields)


def _extreme(name: str, parts: Sequence[Part], rows: Rows) -> Part:
    if len(parts) != 1:
        raise _refuse(name, parts)
    of = parts[0]
    if of.type.fields:
        if _has_nulls(of.type):
            key = order_key(of.sql, of.type, nullable=of.nullable)
            found = "arg_min" if name == "min" else "arg_max"
            return Part(rows.computed(f"{found}({of.sql}, {key})"), of.type, True)
        order_key(of.sql, of.type)
    elif of.type.kind not in (*_ORDERED, *FLOATING):
        raise _refuse(name, parts)
    return Part(rows.computed(f"{name}({of.sql})"), of.type, True)


def _by(name: str, parts: Sequence[Part], rows: Rows) -> Part:
    if len(parts) != 2 or rows.distinct or (not parts[1].type.fields and parts[1].type.kind not in _ORDERED):
        raise _refuse(name, parts)
    of, by = parts
    place = order_key(by.sql, by.type, nullable=by.nullable, floating=True) if by.type.fields else by.sql
    if of.type.kind not in FLOATING and has_floating(of.type):  # whose zeros DuckDB makes one
        raise _refuse(name, parts)
    # The value may be null where the order is least. A FLOAT would lose the sign of its zero.
    single = of.type.name == "FLOAT"
    value = f"CAST({of.sql} AS DOUBLE)" if single else of.sql
    call = rows.computed(f"{'arg_min_null' if name == 'min_by' else 'arg_max_null'}({value}, {place})")
    return Part(f"CAST({call} AS FLOAT)" if single else call, of.type, True)


def _boolean(name: str, parts: Sequence[Part], rows: Rows) -> Part:
    if len(parts) != 1 or parts[0].type.name != "BOOLEAN":
        raise _refuse(name, parts)
    found = "bool_and" if name in ("bool_and", "every") else "bool_or"
    return Part(rows.computed(f"{found}({parts[0].sql})"), BOOLEAN, True)


def _bits(name: str, parts: Sequence[Part], rows: Rows) -> Part:
    if len(parts) != 1 or parts[0].type.name not in INTEGERS or (rows.distinct and name == "bit_xor"):
        raise _refuse(name, parts)
    return Part(rows.computed(f"{name}({parts[0].sql})"), parts[0].type, True)


def _count_if(name: str, parts: Sequence[Part], rows: Rows) -> Part:
    if len(parts) != 1 or parts[0].type.name != "BOOLEAN" or rows.distinct:
        raise _refuse(name, parts)
    return Part(rows.computed(f"count(CASE WHEN {parts[0].sql} THEN 1 END)"), BIGINT, False)


def collected(distinct: bool, of: Part, rows: Rows) -> Part:
    """`collect_set` or `collect_list`, of an order of its own: only for functions that sort it or count it."""
    if distinct and has_floating(of.type):
        raise NotProven(f"collect_set({of.type.name})")
    call = f"list({'DISTINCT ' if distinct else ''}{of.sql})"
    empty = f"CAST([] AS {in_duckdb(ArrayType(of.type))})"
    where = f"{of.sql} IS NOT NULL" + (f" AND {rows.where}" if rows.where else "")
    found = Rows(where=where, over=rows.over).computed(call)
    return Part(f"coalesce({found}, {empty})", ArrayType(of.type, has_nulls=False), False, of.raises, rows=True)


AGGREGATES: Mapping[str, Entry] = {
    "count": Entry(_count, "counts"),
    "count_if": Entry(_count_if, "counts"),
    "regr_count": Entry(_regr_count, "counts", over=False),
    "sum": Entry(_sum, "sums"),
    **dict.fromkeys(("avg", "mean"), Entry(_avg, "means")),
    **dict.fromkeys(("max", "min"), Entry(_extreme, "values", idempotent=True)),
    **dict.fromkeys(("max_by", "min_by"), Entry(_by, "firsts", idempotent=True)),
    **dict.fromkeys(("any", "bool_and", "bool_or", "every", "some"), Entry(_boolean, "values", idempotent=True)),
    **dict.fromkeys(("bit_and", "bit_or"), Entry(_bits, "values", idempotent=True)),
    "bit_xor": Entry(_bits, "values"),
    "median": Entry(_median, None, over=False),
    **dict.fromkeys(_MOMENTS, Entry(_moments, None, over=False)),
}
"""The proven aggregates by name. Of those that are not here, as of an average of decimals, a group keeps its tuples."""


def _number(name: str, parts: Sequence[Part], rows: Rows) -> Part:
    if parts or not rows.ordered:
        raise _refuse(name, parts)
    return Part(f"CAST({rows.computed(f'{name}()')} AS INTEGER)", INT, False)


def _part(name: str, parts: Sequence[Part], rows: Rows) -> Part:
    """The number of one of so many parts of the rows, or the share of the rows before or up to each."""
    if not rows.ordered or (name == "ntile") != bool(parts) or any((each.whole or 0) < 1 for each in parts):
        raise _refuse(name, parts)
    if name == "ntile":
        return Part(f"CAST({rows.computed(f'ntile({parts[0].whole})')} AS INTEGER)", INT, False)
    return Part(rows.computed(f"{name}()"), DOUBLE, False)


def _neighbour(name: str, parts: Sequence[Part], rows: Rows) -> Part:
    if not 1 <= len(parts) <= 3:
        raise _refuse(name, parts)
    of, further, default = parts[0], parts[1:2], [cast(each, parts[0].type) for each in parts[2:]]
    if any(each.whole is None for each in further):
        raise NotProven(f"{name} by a computed number of rows")
    if any(each.raises for each in default) or (default and rows.ignores_nulls):
        raise NotProven(f"{name} with a default that may raise an error, or of what is not null")
    given = "".join(f", {each}" for each in (*(each.whole for each in further), *(each.sql for each in default)))
    nulls = " IGNORE NULLS" if rows.ignores_nulls else ""
    found_always = bool(default) and not any(each.nullable for each in default)
    return Part(rows.computed(f"{name}({of.sql}{given}{nulls})"), of.type, of.nullable or not found_always)


def _placed(name: str, parts: Sequence[Part], rows: Rows) -> Part:
    at = 1 if name == "nth_value" else 0
    nulls = rows.ignores_nulls
    given = list(parts)
    if len(given) == at + 2:
        last = given.pop()
        if last.sql not in ("true", "false"):
            raise _refuse(name, parts)
        nulls = nulls or last.sql == "true"
    if len(given) != at + 1 or (at and (given[1].whole or 0) < 1):
        raise _refuse(name, parts)
    if given[0].type.kind not in FLOATING and has_floating(
        given[0].type
    ):  # see _by, which finds it for all rows so far
        raise _refuse(name, parts)
    number = f", {given[1].whole}" if at else ""
    called = {"first": "first_value", "last": "last_value"}.get(name, name)
    call = f"{called}({given[0].sql}{number}{' IGNORE NULLS' if nulls else ''})"
    # With IGNORE NULLS, Spark's analyser takes the value to be null, too: no row may be left.
    return Part(rows.computed(call), given[0].type, True)


_PLACES = ("first", "first_value", "last", "last_value", "nth_value")
_PLACED = ("lag", "lead", *_PLACES)
"""The functions that take IGNORE NULLS."""

WINDOWS: Mapping[str, Aggregate] = {
    **dict.fromkeys(("dense_rank", "rank", "row_number"), _number),
    **dict.fromkeys(("cume_dist", "ntile", "percent_rank"), _part),
    **dict.fromkeys(("lag", "lead"), _neighbour),
    **dict.fromkeys(_PLACES, _placed),
}
"""The proven functions over rows that are no aggregates, by name."""

Translate: TypeAlias = Callable[[exp.Expr], Part]
"""What makes the part of a tree."""


def over(tree: exp.Expr, name: str, rows: Rows, part: Translate, zone: str) -> Rows:
    """The rows of a function of that name that stand between the brackets of OVER.

    Raises:
        NotProven: A key, or the frame, is not proven.
    """
    if tree.args.get("alias") or tree.args.get("first") is not None:
        raise NotProven("OVER with a named window")
    texts, raises = [], False
    if groups := list(map(part, tree.args.get("partition_by") or [])):
        raises = any(group.raises for group in groups)
        texts.append(f"PARTITION BY {', '.join(group.sql for group in groups)}")
    order = tree.args.get("order")
    keys = [_key(part(each.this), each) for each in order.expressions] if order is not None else []
    if keys:
        texts.append(f"ORDER BY {', '.join(key for key, _ in keys)}")
        raises = raises or any(key.raises for _, key in keys)
    spec = tree.args.get("spec")
    if spec is not None and len(keys) == 1 and str(spec.args.get("kind")).upper() == "RANGE":
        texts[-1] = f"ORDER BY {_guarded(keys[0], spec, part)}"
    if spec is not None and (name in _PLACES or name not in WINDOWS):
        texts.append(_frame(spec, [key for _, key in keys], part, zone))
    return replace(rows, over=" ".join(texts), ordered=bool(keys), raises=raises)


def _guarded(key: tuple[str, Part], spec: exp.Expr, part: Translate) -> str:
    """The key of a RANGE, with an error where a distance from it overflows in Spark."""
    written, of = key
    ends = [end for end in map(spec.args.get, ("start", "end")) if isinstance(end, exp.Expr)]
    if of.type.name not in INTEGERS or not ends:
        return written
    distances = [part(end) for end in ends]
    most = max(each.whole or 0 for each in distances)
    top = 2 ** (BITS[of.type.name] - 1) - 1 - most
    beyond = refused("a RANGE so near to the end of the type")
    guarded = f"CASE WHEN abs(CAST({of.sql} AS HUGEINT)) > {top} THEN {beyond} ELSE {of.sql} END"
    return guarded + written.removeprefix(of.sql)


def _key(of: Part, tree: exp.Expr) -> tuple[str, Part]:
    if not isinstance(tree, exp.Ordered):
        raise NotProven("ORDER BY")
    if of.type.kind not in (*NUMBERS, "STRING", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        raise NotProven(f"ORDER BY {of.type.name}")
    direction = "DESC" if tree.args.get("desc") else "ASC"
    return f"{of.sql} {direction} NULLS {'FIRST' if tree.args.get('nulls_first') else 'LAST'}", of


def _frame(spec: exp.Expr, keys: Sequence[Part], part: Translate, zone: str) -> str:
    kind = str(spec.args.get("kind")).upper()
    if kind not in ("ROWS", "RANGE") or spec.args.get("exclude"):
        raise NotProven(f"a frame of {kind}")
    ends = []
    for name in ("start", "end"):
        value, side = spec.args.get(name), str(spec.args.get(f"{name}_side") or "")
        if value is None or value == "CURRENT ROW":
            ends.append("CURRENT ROW")
        elif value == "UNBOUNDED":
            ends.append(f"UNBOUNDED {side}")
        else:
            ends.append(f"{_distance(value, kind, keys, part, zone)} {side}")
    return f"{kind} BETWEEN {ends[0]} AND {ends[1]}"


def _distance(tree: exp.Expr, kind: str, keys: Sequence[Part], part: Translate, zone: str) -> str:
    if kind == "ROWS":
        if not isinstance(tree, exp.Literal) or not str(tree.this).isdigit():
            raise NotProven("a frame of a computed number of ROWS")
        return str(tree.this)
    if len(keys) == 1 and keys[0].type.name in INTEGERS and (of := part(tree)).whole is not None:
        return of.sql
    if len(keys) == 1 and keys[0].type.name == "TIMESTAMP" and isinstance(tree, exp.Interval):
        days, micros = divided(interval(tree))
        if not days or is_utc(zone):
            return f"to_microseconds({days * 86_400_000_000 + micros})"
    raise NotProven("a frame of this RANGE")
