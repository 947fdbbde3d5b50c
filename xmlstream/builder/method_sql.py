"""SQL of the builder's methods: turns arguments into the text of a query, for columns, joins, groups and windows.

Each argument is Spark SQL as text, or a `Column` of PySpark that can be written as such. It is parsed by itself before
it becomes part of a query's text, so an error points into the argument.

Names are PySpark's: `JOINS` has PySpark's names of joins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from xmlstream.builder.run_options import in_sentences
from xmlstream.operators.expressions.dialect import call_name, expression, parsed
from xmlstream.operators.expressions.duration import duration
from xmlstream.operators.joins.join_sides import JoinKind
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import quoted
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.statements import parse_statements

if TYPE_CHECKING:
    from pyspark.sql import Column


def argument(given: str | Column) -> QueryText:
    """Checks one expression, perhaps with a name, and returns it as part of a query's text.

    Raises:
        QueryError: The argument is neither SQL text nor a Column, or is more than one expression.
    """
    text = sql_text(given)
    written = QueryText.of(text, f"'{text}'")
    statements = parse_statements(QueryText.joined(["SELECT ", written]))
    parts = {name for name, value in statements[0].tree.args.items() if value}
    if len(statements) != 1 or parts != {"expressions"} or len(statements[0].tree.expressions) != 1:
        raise written.error("not a single expression", 0, "pass each expression as an argument of its own")
    return written


def sql_text(given: str | Column) -> str:
    """An expression as SQL text.

    Raises:
        QueryError: It is neither a text nor a Column, or a part of the Column cannot be written as text.
    """
    if isinstance(given, str):
        return given
    if type(given).__module__.startswith("pyspark.sql.connect"):
        raise QueryError(f"{given} is a Column of Spark Connect", hint=_AS_TEXT)
    if not hasattr(given, "_jc"):
        raise QueryError(f"{given!r} is not SQL text", hint=_text_for(given))
    column: Any = given
    whole = str(given).removeprefix("Column<'").removesuffix("'>")
    found = _of_column(column._jc.node(), whole if len(whole) <= _LONGEST else f"{whole[:_LONGEST]}…")
    return found.removeprefix("(").removesuffix(")").strip() if _is_in_brackets(found) else found


def _text_for(given: object) -> str:
    """What to write in place of an argument that is no expression."""
    match given:
        case (str() as of, "max" | "min" | "sum" | "avg" | "mean" | "count" as what) if isinstance(given, tuple):
            return f'write it as text, "{what}({of})"'
        case list() | tuple() | set():
            return f"pass each as an argument of its own: {', '.join(map(repr, given))}"
        case dict():
            pairs = ((name, [what] if isinstance(what, str) else what) for name, what in given.items())
            return ", ".join(f'"{what}({name}) AS {what}_{name}"' for name, whats in pairs for what in whats)
        case int() | float():
            return f'write it as text, "{str(given).lower() if isinstance(given, bool) else given}"'
        case _ if callable(given):
            return 'declare a function with @xs.function("DOUBLE"), and call it by its name, "f(a) AS b"'
    return _AS_TEXT


_LONGEST = 80
"""The most letters of a Column in a message."""

_AS_TEXT = 'write expressions as text, such as "a + 1 AS b"'
_INFIX = frozenset(
    {"+", "-", "*", "/", "%", "=", "<", "<=", ">", ">=", "<=>", "and", "or", "&", "|", "^", "like", "ilike", "rlike"}
)
_PREFIX = {"!": "NOT ", "not": "NOT ", "negative": "-", "~": "~"}
_NO_TEXT = {
    "ExpressionColumnNode": "a function of Python that is not registered: declare it with @xs.function, and call it by"
    " its name, F.call_function('f', …)",
    "InvokeInlineUserDefinedFunction": "a function that is not registered: call a registered one by its name",
    "Window": "OVER: write it as text",
    "LambdaFunction": "a lambda, which is not supported",
}
"""Parts of Columns that are not written as text, by the names of their classes in Spark."""


def _of_column(node: Any, whole: str) -> str:
    """A part of a Column as text, in brackets where it is an operator; `whole` names the Column in errors."""
    kind = node.getClass().getSimpleName()
    match kind:
        case "UnresolvedAttribute":
            parts = node.nameParts()
            return ".".join(quoted(parts.apply(i)) for i in range(parts.size()))
        case "UnresolvedStar":
            return "*"
        case "SqlExpression":
            return f"({node.expression()}\n)"
        case "Literal":
            return _of_literal(node, whole)
        case "UnresolvedFunction":
            return _of_call(node, whole)
        case "Alias" if node.name().size() == 1:
            return f"{_of_column(node.child(), whole)} AS {quoted(node.name().apply(0))}"
        case "Cast":
            tried = "TRY_" if "Try" in node.evalMode().toString() else ""
            return f"{tried}CAST({_of_column(node.child(), whole)} AS {node.dataType().simpleString().upper()})"
        case "UnresolvedExtractValue":
            of, key = _of_column(node.child(), whole), node.extraction()
            is_name = key.getClass().getSimpleName() == "Literal" and isinstance(key.value(), str)
            return f"{of}.{quoted(key.value())}" if is_name else f"{of}[{_of_column(key, whole)}]"
        case "SortOrder":
            direction = "DESC" if "Descending" in node.sortDirection().toString() else "ASC"
            nulls = "FIRST" if "NullsFirst" in node.nullOrdering().toString() else "LAST"
            return f"{_of_column(node.child(), whole)} {direction} NULLS {nulls}"
        case "CaseWhenOtherwise":
            branches = (node.branches().apply(i) for i in range(node.branches().size()))
            tests = " ".join(f"WHEN {_of_column(b._1(), whole)} THEN {_of_column(b._2(), whole)}" for b in branches)
            rest = node.otherwise()
            return f"CASE {tests}{f' ELSE {_of_column(rest.get(), whole)}' if rest.isDefined() else ''} END"
    raise QueryError(f"{whole} has no text in SQL: it has {_NO_TEXT.get(kind, f'a part {kind}')}", hint=_AS_TEXT)


def _of_literal(node: Any, whole: str) -> str:
    value = node.value()
    if isinstance(value, str):
        return text_literal(value)
    if isinstance(value, float):
        return f"{value!r}D" if isfinite(value) else f"CAST('{value}' AS DOUBLE)"
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value).lower()
    if isinstance(value, int | Decimal):
        text = f"{value:f}" if isinstance(value, Decimal) else f"{value}{'L' * (abs(value) >= 1 << 31)}"
        return f"({text})" if value < 0 else text
    kind = value.getClass().getName() if hasattr(value, "getClass") else type(value).__name__
    if kind in ("java.sql.Date", "java.time.LocalDate"):
        return f"DATE '{value.toString()}'"
    if kind == "java.sql.Timestamp":
        return f"timestamp_micros({value.getTime() // 1000 * 1_000_000 + value.getNanos() // 1000}L)"
    raise QueryError(f"{whole} has no text in SQL: it has a literal of {kind}", hint=_AS_TEXT)


def _of_call(node: Any, whole: str) -> str:
    arguments = node.arguments()
    name, given = node.functionName().lower(), [_of_column(arguments.apply(i), whole) for i in range(arguments.size())]
    if name in _INFIX and len(given) == 2:
        return f"({given[0]} {name} {given[1]})"
    if name in _PREFIX and len(given) == 1:
        return f"({_PREFIX[name]}{given[0]})"
    if name == "in":
        return f"({given[0]} IN ({', '.join(given[1:])}))"
    distinct = "DISTINCT " if node.isDistinct() else ""
    return f"{name}({distinct}{', '.join(given)})"


def _is_in_brackets(text: str) -> bool:
    """Whether one pair of brackets is around a whole text."""
    tree = parsed(text) if text.startswith("(") else None
    return tree is not None and tree.key == "paren"


def sql_list(texts: Iterable[str | Column]) -> list[str | QueryText]:
    """Expressions, each parsed by itself, separated by commas."""
    return separated([argument(text) for text in texts])


def with_names(expressions: Sequence[str | Column], named: Mapping[str, str]) -> tuple[str | Column, ...]:
    """Expressions, and those that are given by name: `m="max(a)"`."""
    return (*expressions, *(f"{sql_text(text)} AS {quoted(name)}" for name, text in named.items()))


def named_key(given: str | Column) -> tuple[str, str | None]:
    """A key as text, and the name that it gives itself by AS, if it does; a window calls itself `window`."""
    text = sql_text(given)
    tree = parse_statements(QueryText.joined(["SELECT ", argument(text)]))[0].tree.expressions[0]
    return (f"{text} AS window", "window") if call_name(tree) == "window" else (text, tree.alias or None)


def separated(parts: Iterable[str | QueryText]) -> list[str | QueryText]:
    """The parts separated by commas, each on a line of its own, since a part may end with a comment."""
    listed = [separated for part in parts for separated in (part, "\n, ")]
    return [*listed[:-1], "\n"]


def sort_key_sql(given: str | Column, *, ascending: bool = True) -> str:
    """Checks an ORDER BY key: an attribute, perhaps with a direction; `ascending` is that of a key without one.

    Raises:
        QueryError: It is an expression, or has other words.
    """
    text = sql_text(given)
    name, *words = text.split()
    bare = name.startswith("`") or re.fullmatch(r"\w+", name)
    if not bare or not {word.upper() for word in words} <= {"ASC", "DESC", "NULLS", "FIRST", "LAST"}:
        raise QueryError(f"not a sort key: {text!r}", hint='write an attribute and its direction, such as "hour DESC"')
    has_direction = {"ASC", "DESC"} & {word.upper() for word in words}
    return text if ascending or has_direction else " ".join([name, "DESC", *words])


JoinType: TypeAlias = Literal[
    "inner", "left", "leftouter", "left_outer", "right", "rightouter", "right_outer", "outer", "full", "fullouter",
    "full_outer", "semi", "leftsemi", "left_semi", "anti", "leftanti", "left_anti",
]  # fmt: skip
"""The kinds of joins, by all of PySpark's names."""

_OUTER = {"outer": "full", **{f"{side}outer": side for side in ("left", "right", "full")}}
JOINS = {**_OUTER, "leftsemi": "semi", "leftanti": "anti"}
"""PySpark's other names of joins, without underscores."""


@in_sentences()
def session_window(moment: str | Column, gap: str) -> str:
    """A session window to group by: `group_by("bidder", xs.session_window("dateTime", "10 seconds"))`.

    Args:
        moment: An attribute or an expression of type TIMESTAMP.
        gap: A session ends after this time without a tuple of its group, such as "1 hour 30 minutes".

    Returns:
        SQL's `session_window(…)`; its ends are `session_window.start` and `session_window.end`.

    Raises:
        QueryError: The moment is not a single expression.
    """
    argument(moment)
    return f"session_window({sql_text(moment)}, {text_literal(gap)})"


def text_literal(text: str) -> str:
    """A text as a SQL literal.

    >>> text_literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def with_column(schema: Schema, name: str, expression: str | Column) -> list[str | QueryText]:
    """SELECT items: all attributes and a named expression, which replaces the attribute of that name."""
    new = QueryText.joined(["(", argument(expression), f"\n) AS {quoted(name)}"])
    at = [other.lower() for other in schema.names]
    parts: list[str | QueryText] = [quoted(other) for other in schema.names]
    if name.lower() in at:
        parts[at.index(name.lower())] = new
    else:
        parts.append(new)
    return separated(parts)


def renamed_sql(schema: Schema, old: str, new: str) -> str:
    """SELECT items: all attributes, one of them renamed."""
    known = schema.attribute(old).name
    items = (f"{quoted(name)} AS {quoted(new)}" if name == known else quoted(name) for name in schema.names)
    return ", ".join(items)


def without_columns(schema: Schema, names: Sequence[str]) -> str:
    """SELECT items: all attributes except these.

    Raises:
        QueryError: No attribute is left.
    """
    gone = {schema.attribute(sql_text(name)).name for name in names}
    left = [quoted(name) for name in schema.names if name not in gone]
    if not left:
        raise QueryError("drop removes all attributes of the query", hint="keep one of them")
    return ", ".join(left)


_JOINS = {
    how: ("LEFT " if how in ("semi", "anti") else "") + how.upper() for how in (*get_args(JoinKind), "semi", "anti")
}


def _plain_name(how: str) -> str:
    plain = how.lower().replace("_", "")
    return JOINS.get(plain, plain)


def joined_sql(on: str | Column | Sequence[str], how: str, left: str, right: str) -> list[str | QueryText]:
    """The FROM clause of a join: the tables `input` and `other` under the names of the sides, and ON or USING.

    Raises:
        QueryError: There is no such kind of join.
    """
    kind = _JOINS.get(_plain_name(how))
    if kind is None:
        raise QueryError(f"there is no join {how!r}", hint=", ".join(_JOINS))
    given: Any = on
    on = sql_text(given) if hasattr(given, "_jc") else given
    match on:
        case str() if re.fullmatch(r"\s*\w+\s*", on):
            condition: list[str | QueryText] = [f" USING ({quoted(on.strip())})"]
        case str():
            condition = [" ON ", argument(on)]
        case _:
            condition = [f" USING ({', '.join(quoted(sql_text(name)) for name in on)})"]
    return [f"`input` AS {quoted(left)} {kind} JOIN `other` AS {quoted(right)}", *condition]


def asof_sql(
    here: Schema,
    there: Schema,
    on: str,
    by: Sequence[str],
    how: str,
    left: str,
    right: str,
    tolerance: str | int | None,
) -> list[str | QueryText]:
    """The SELECT statement of an as-of join of `input` and `other`.

    Raises:
        QueryError: There is no key, a key is not an attribute of both sides, there is no such kind of as-of join, or
            `on` is a comparison and there is a tolerance.
    """
    kind = {"inner": "", "left": "LEFT "}.get(_plain_name(how))
    if kind is None:
        raise QueryError(f"there is no as-of join {how!r}", hint="inner, left")
    if not by:
        raise QueryError("an as-of join needs a key", hint='by=["sensor"] names the attributes that must be equal')
    keys = [here.attribute(name).name for name in by]
    same = {there.attribute(name).name for name in keys}
    compared = next((a.name for a in here if a.name.lower() == on.strip().lower()), None)
    at = None if compared is None else there.attribute(compared).name
    test = (
        argument(on) if compared is None else f"{quoted(left)}.{quoted(compared)} >= {quoted(right)}.{quoted(at or on)}"
    )
    shown = [f"{quoted(left)}.{quoted(name)}" if tolerance is not None else quoted(name) for name in keys]
    items = [*shown, *(f"{quoted(left)}.{quoted(name)}" for name in here.names if name not in keys)]
    for name in there.names:
        called = f" AS {quoted(f'{right}_{name}')}" if name == at else ""
        items += [f"{quoted(right)}.{quoted(name)}{called}"] if name not in same else []
    tables = f" FROM `input` AS {quoted(left)} {kind}ASOF JOIN `other` AS {quoted(right)} MATCH_CONDITION ("
    query: list[str | QueryText] = ["SELECT ", ", ".join(items), tables, test]
    if tolerance is None:
        return [*query, f"\n) USING ({', '.join(map(quoted, keys))})"]
    if compared is None or at is None:
        raise QueryError(
            f"a tolerance needs an attribute of both sides, and {on!r} is a comparison",
            hint="give both attributes one name by with_column_renamed, and pass on='that name'",
        )
    equal = [f"{quoted(left)}.{quoted(key)} = {quoted(right)}.{quoted(there.attribute(key).name)}" for key in keys]
    oldest = f"{quoted(right)}.{quoted(at)} >= {quoted(left)}.{quoted(compared)} - ("
    length = duration(expression(text_literal(str(tolerance))))
    span = (
        str(tolerance)
        if length is None or "interval" in str(tolerance).lower()
        else f"INTERVAL '{length}' MICROSECONDS"
    )
    return [*query, f"\n) ON {' AND '.join(equal)} AND {oldest}", argument(span), "\n)"]
