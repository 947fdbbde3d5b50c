"""Python functions in queries: what is declared of each, and the call over columns that both engines make.

A text of a query names a function by its key, `fahr__xs1`: another function of that name has another key, so that what
is cached for a text never means another function. `as_written` gives the text as it was written.

Spark and DuckDB both give a function Arrow's columns. `ArrowCall` takes them apart, calls the function once for each
row, or once for all if it is annotated with `pa.Array`, and checks what it returns. So nulls, types and errors are the
same on both engines. Moments with a time zone are in UTC, whatever the session's zone; those without one are naive.

A function that returns a TABLE is one of a whole group: its arguments are the keys and an array of the group's rows,
and its result is an array of rows (`group_calls`). Instead of a function, a class may be declared so, an accumulator:
its steps `add`, `merge` and `finish` are three functions of one name (`accumulators`).
"""

from __future__ import annotations

import inspect
import os
import re
import sys
import typing
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.expressions.operations.accumulators import (
    is_accumulator,
    require_accumulator,
    wrong_number,
)
from xmlstream.operators.expressions.operations.function_version import function_version
from xmlstream.operators.expressions.operations.part import Part, joined
from xmlstream.operators.expressions.operations.spark_type import NotProven, read_type
from xmlstream.punct_ns.errors import QueryError, UsageError, in_transport
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import any_arrow_type, own, quoted
from xmlstream.punct_ns.sql_type import FLOATING, INTEGERS, SqlType

Declared = Literal["rising", "falling", "injective", "rising injective", "falling injective"]
"""What a user declares of the values: they never fall, or never rise, and different values have different results."""

Takes = Literal["values", "columns", "rows", "frame"]
"""What it is called with: the values of a row; Arrow's columns; all rows of a group, in Arrow's form or pandas'."""

Step = Literal["zero", "add", "merge", "finish"]
"""What a function is of an accumulator: `add` is from rows to a state (`zero` its begin), `merge` from states to one,
`finish` from a state to rows."""

_MARK = re.compile(r"__xs\d+\b")
_CALLED = re.compile(r"\b\w+__xs\d+\b")

_SIMPLE = ("BOOLEAN", *INTEGERS, *FLOATING, "DECIMAL", "STRING", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
_TYPES_HINT = f"types that a function takes and returns: {', '.join(_SIMPLE)}, ARRAY and STRUCT of these"


@dataclass(frozen=True, slots=True, eq=False)
class PythonFunction:
    """A function of Python as queries know it.

    Attributes:
        name: Its name in queries, in lower case.
        call: The function.
        type: The type of its results.
        declared: What is declared of its values; a declared function maps only null to null.
        takes: What it is called with.
        number: Tells it from other functions of this name in this process.
        step: For one of an accumulator, which of its steps; `call` is the accumulator, or its class.
    """

    name: str
    call: Callable[..., Any]
    type: SqlType
    declared: Declared | None = None
    takes: Takes = "values"
    number: int = 0
    step: Step | None = None

    @property
    def key(self) -> str:
        """Its name in the texts of plans."""
        return f"{_base(self.name, self.step)}__xs{self.number}"

    def of_step(self, step: Step) -> PythonFunction:
        """The function of another step of an accumulator."""
        return _BY_KEY[f"{_base(self.name, step)}__xs{self.number}"]

    @property
    def accumulator(self) -> Any:
        """The accumulator of a step."""
        return self.call() if inspect.isclass(self.call) else self.call

    @property
    def code(self) -> Any:
        """The code of what is called; None for what has none."""
        return getattr(getattr(self.call, self.step) if self.step else self.call, "__code__", None)

    @property
    def words(self) -> str:
        """What messages call it."""
        return f"{self.step} of the accumulator {self.name}" if self.step else f"the function {self.name}"

    @property
    def origin(self) -> str:
        """Its module and its name there."""
        name = getattr(self.call, "__qualname__", type(self.call).__name__)
        return f"{getattr(self.call, '__module__', None) or 'builtins'}:{name}"

    @property
    def version(self) -> str:
        """Its origin and a hash of what decides its results, which is another one when that is."""
        return f"{self.origin} {function_version(self.call)}"

    @property
    def is_of_groups(self) -> bool:
        """Whether it is called once for a group, and its results are rows."""
        return self.step == "finish" or (self.takes in ("rows", "frame") and not self.step)

    @property
    def directory(self) -> str | None:
        """Where its module lies, and others that it may import."""
        file = getattr(sys.modules.get(self.origin.partition(":")[0]), "__file__", None)
        return None if file is None else str(Path(file).resolve().parent)

    def wrong_number(self, given: int) -> str | None:
        """What is wrong with a call with so many arguments; None if it takes them."""
        wrong = wrong_number(getattr(self.accumulator, self.step) if self.step else self.call, given)
        return wrong and f"{self.name} {wrong}"

    def part(self, name: str, parts: Sequence[Part], zone: str) -> Part:
        """A call as a part of an expression: of the result nothing is known but its type."""
        self.require_types(part.type for part in parts)
        number = _signature(self, tuple(part.type for part in parts))
        # An argument is computed whatever the others are: the function sees nulls.
        sql = f"{own(f'python{number}')}({', '.join(part.sql for part in parts)})"
        return joined(sql, self.type, parts, nullable=True, raises=True)

    def require_types(self, types: Iterable[SqlType]) -> None:
        """Refuses arguments of types that the engines give differently, or not at all."""
        for type_ in types:
            if not is_passed(type_):
                what = f"the function {self.name} cannot take a {type_.name}"
                raise QueryError(what, hint=_TYPES_HINT)


def _base(name: str, step: Step | None) -> str:
    """The name of a function in texts, without its number."""
    return name if step in (None, "finish") else f"{name}_{step}"


_BY_KEY: dict[str, PythonFunction] = {}

OF_PROGRAM: dict[str, PythonFunction] = {}
"""The functions that this program has declared for all its queries, by their names."""

_COUNTS: Counter[str] = Counter()

SIGNATURES: list[tuple[PythonFunction, tuple[SqlType, ...]]] = []
"""The functions that translated texts call, each with the types of its arguments; its place is its name in DuckDB."""


def known_by(name: str) -> PythonFunction | None:
    """The function of a key; None for any other name."""
    return _BY_KEY.get(name)


def declared_function(
    call: Any,
    name: str,
    returns: str,
    *,
    monotone: bool = False,
    falling: bool = False,
    injective: bool = False,
) -> PythonFunction:
    """The function with what is declared of it; the same one if it was declared so before.

    Raises:
        QueryError: It is no function of one row or of groups and no accumulator, or its type is not supported.
    """
    name = name.lower()
    table = _TABLE.fullmatch(returns)
    _require_name(name)
    accumulator = None
    if table is not None and is_accumulator(call):
        accumulator = require_accumulator(call, name)
    else:
        _require_function(call, name, of_groups=table is not None)
    try:
        type_ = read_type(returns if table is None else f"ARRAY<{_structure(table[1])}>")
    except NotProven:
        raise QueryError(f"the function {name} cannot return a {returns}", hint=_TYPES_HINT) from None
    if not is_passed(type_):
        raise QueryError(f"the function {name} cannot return a {returns}", hint=_TYPES_HINT)
    if monotone and falling:
        raise QueryError(f"the function {name} is declared to rise and to fall", hint="leave one of them out")
    words = ("falling" if falling else "rising" if monotone else "", "injective" if injective else "")
    promised: Any = " ".join(filter(None, words)) or None
    takes = "values" if accumulator is not None else _taken_by(call, of_groups=table is not None)
    made = PythonFunction(name, call, type_, promised, takes, step=None if accumulator is None else "finish")
    if made.is_of_groups and (promised or (made.wrong_number(2) and made.wrong_number(1))):
        what = f"is declared {promised}" if promised else f"does not take a key and rows: {made.wrong_number(2)}"
        hint = "write lambda key, rows: …" if name == "lambda" else f"declare def {name}(key, rows)"
        raise QueryError(f"the function {name} of groups {what}", hint=hint)
    if made.declared and made.wrong_number(1):
        raise QueryError(f"the function {name} is declared {made.declared}, and does not take one argument")
    for known in _BY_KEY.values():
        same = (known.name, known.type, known.declared, known.is_of_groups)
        if known.call is call and same == (name, type_, made.declared, made.is_of_groups):
            return known
    return _noted(made, accumulator)


def _noted(made: PythonFunction, accumulator: Any) -> PythonFunction:
    """The function with a number that tells it from others; of an accumulator, its last step, beside the others."""
    steps = [made]
    if accumulator is not None:
        state = _state_type(accumulator, made.name)
        adding = replace(made, type=state, takes=_taken_by(accumulator.add, of_groups=True), step="add")
        steps += [adding, replace(made, type=state, step="merge")]
    names = [_base(made.name, each.step) for each in steps]
    number = 1 + max(_COUNTS[each] for each in names)
    for name, each in zip(names, steps, strict=True):
        _COUNTS[name], numbered = number, replace(each, number=number)
        _BY_KEY[numbered.key] = numbered
    return _BY_KEY[f"{made.name}__xs{number}"]


_TABLE = re.compile(r"\s*TABLE\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)
"""What a function of groups returns: TABLE (…) with the columns of its rows."""


def _structure(columns: str) -> str:
    """The type of a row with columns that are given as in a declaration of a table."""
    try:
        schema = Schema.parse(columns)
    except UsageError as error:
        raise QueryError(error.what, hint=error.hint) from None
    if (never := next((a.name for a in schema if not a.domain.nullable), None)) is not None:
        what = f"NOT NULL of the column {never} that a function returns is not supported"
        raise QueryError(what, hint="leave it out: the function itself decides whether a value is null")
    return f"STRUCT<{', '.join(f'{quoted(a.name)}: {a.domain.type}' for a in schema)}>"


def _state_type(accumulator: Any, name: str) -> SqlType:
    """The type of the states of an accumulator."""
    with suppress(NotProven):
        if is_passed(type_ := read_type(_structure(accumulator.state))):
            return type_
    raise QueryError(f"the accumulator {name} cannot have the state {accumulator.state}", hint=_TYPES_HINT)


def _require_name(name: str) -> None:
    if not re.fullmatch(r"[^\W\d]\w*", name):
        raise QueryError(f"{name} is not a name of a function", hint='give one: @xs.function("DOUBLE", name="fahr")')


def _require_function(call: Any, name: str, *, of_groups: bool) -> None:
    if inspect.isclass(call) or not callable(call):
        is_class = inspect.isclass(call)
        what = (
            f"{name} is a class, as aggregates and table functions are" if is_class else f"{call!r} is not a function"
        )
        hint = "declare a function from the values of one row to one value"
        if of_groups:
            hint = "give a function itself, def f(key, rows), or a class with zero, add, merge and finish"
        raise QueryError(what, hint=hint)
    if inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call):
        raise QueryError(f"{name} awaits", hint="declare a function that returns its result: def, not async def")
    if of_groups:
        return
    if inspect.isgeneratorfunction(call):
        hint = "return an array, and make rows of it by LATERAL VIEW explode(…); or declare it RETURNS TABLE (…)"
        raise QueryError(f"{name} yields, and is a function of one row", hint=hint)
    if any("pandas" in str(getattr(hint, "__module__", hint)) or str(hint).startswith("pd.") for hint in _hints(call)):
        raise QueryError(f"{name} is annotated with a class of pandas", hint="annotate pa.Array, or nothing")
    with suppress(TypeError, ValueError):  # some functions that are written in C have no signature
        if not inspect.signature(call).parameters:
            raise QueryError(f"{name} takes no argument", hint="write a literal in its place")


def _hints(call: Any) -> list[Any]:
    """The annotations, as classes if they can be read."""
    try:
        return list(typing.get_type_hints(call).values())
    except Exception:  # noqa: BLE001 - whatever an annotation raises
        hints = getattr(call, "__annotations__", {}).values()
        return [pa.Array if re.match(r"(pa|pyarrow)\.(Chunked)?Array\b", str(hint)) else hint for hint in hints]


def _taken_by(call: Any, *, of_groups: bool) -> Takes:
    hints = _hints(call)
    if not of_groups:
        return "columns" if pa.Array in hints or pa.ChunkedArray in hints else "values"
    given = {name: hint for name, hint in getattr(call, "__annotations__", {}).items() if name != "return"}
    return "frame" if any(re.search(r"\b(pandas|pd)\b", str(hint)) for hint in given.values()) else "rows"


def is_passed(type_: SqlType) -> bool:
    """Whether a function takes and returns values of a type."""
    if type_.element is not None:
        return is_passed(type_.element)
    return all(is_passed(field.type) for field in type_.fields) if type_.fields else type_.kind in _SIMPLE


def _signature(function: PythonFunction, types: tuple[SqlType, ...]) -> int:
    """The place of a function of arguments of these types."""
    pair = function, types
    if pair not in SIGNATURES:
        SIGNATURES.append(pair)
    return SIGNATURES.index(pair)


def as_written(text: str) -> str:
    """A text of a plan with its functions as they were written.

    >>> as_written("max(fahr__xs2(`temp`)) AS m")
    'max(fahr(`temp`)) AS m'
    """
    return _MARK.sub("", text)


def called_in(text: str) -> list[PythonFunction]:
    """The functions that a text of a plan calls, each once."""
    if _MARK.search(text) is None:
        return []
    found = map(_BY_KEY.get, dict.fromkeys(_CALLED.findall(text)))
    return [function for function in found if function is not None]


@dataclass(frozen=True, slots=True)
class ArrowCall:
    """A function over Arrow's columns: what an engine calls.

    With `in_fields`, each result is a structure of the value and of the text of its error, which is raised where the
    value is used. Otherwise the first error is raised.
    """

    function: PythonFunction
    in_fields: bool = False

    def __call__(self, *given: Any) -> pa.Array[Any]:
        """The results for the rows."""
        found, errors = self._results([_seen(column) for column in given])
        first = next((error for error in errors if error is not None), None)
        if not self.in_fields:
            if first is not None:
                raise first
            return found
        texts = pa.array([None if error is None else in_transport(error) for error in errors], pa.string())
        return pa.StructArray.from_arrays([found, texts], names=["value", "error"])

    def _results(self, columns: list[pa.Array[Any]]) -> tuple[pa.Array[Any], list[QueryError | None]]:
        return self._vectorised(columns) if self.function.takes == "columns" else self._of_rows(columns)

    def _of_rows(self, columns: list[pa.Array[Any]]) -> tuple[pa.Array[Any], list[QueryError | None]]:
        type_, rows = any_arrow_type(self.function.type), [*zip(*(c.to_pylist() for c in columns), strict=True)]
        result_of = self._result()
        try:
            return pa.array([result_of(row) for row in rows], type_), [None] * len(rows)
        except Exception:  # noqa: BLE001 - whatever a user's function raises: each row has an error of its own
            pairs = [self._result_or_error(row) for row in rows]
            return pa.array([result for result, _ in pairs], type_), [error for _, error in pairs]

    def _result(self) -> Callable[[tuple[Any, ...]], Any]:
        """From a row of arguments to the result in Python's form for Arrow."""
        call, of_type, is_strict = self.function.call, converted(self.function.type), bool(self.function.declared)

        def of(row: tuple[Any, ...]) -> Any:
            if is_strict:
                return None if row[0] is None else of_type(call(*row))
            found = call(*row)
            return None if found is None else of_type(found)

        return of

    def _result_or_error(self, row: tuple[Any, ...]) -> tuple[Any, QueryError | None]:
        if self.function.declared and row[0] is None:
            return None, None
        try:
            result = self.function.call(*row)
        except Exception as raised:  # noqa: BLE001 - whatever a user's function raises
            return None, self._raised(raised, _arguments(row))
        try:
            if result is None and self.function.declared:
                raise TypeError(f"it is declared {self.function.declared}")
            found = None if result is None else converted(self.function.type)(result)
            pa.array([found], any_arrow_type(self.function.type))
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as reason:
            return None, self._wrong(result, str(reason), row)
        return found, None

    def _vectorised(self, columns: list[pa.Array[Any]]) -> tuple[pa.Array[Any], list[QueryError | None]]:
        type_: Any
        type_, count = any_arrow_type(self.function.type), len(columns[0])
        rows = f"{count} rows, first {_arguments(tuple(c[0].as_py() for c in columns))}" if count else ""
        error: QueryError | None = None
        found: Any = None
        try:
            found = self.function.call(*columns)
        except Exception as raised:  # noqa: BLE001 - whatever a user's function raises
            error = self._raised(raised, rows)
        else:
            found = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
            if not isinstance(found, pa.Array) or len(found) != count:
                what = f"{len(found)} values" if isinstance(found, pa.Array) else f"a {type(found).__name__}"
                error = self._error(f"returned {what} for {count} rows", "return a pa.Array of as many values")
            elif found.type != type_:
                try:
                    found = found.cast(type_) if is_wider(type_, found.type) else None
                except pa.ArrowException:
                    found = None
                error = None if found is not None else self._error("returned values of another Arrow type", None)
            if (
                error is None
                and self.function.declared
                and (found.is_null().to_pylist() != columns[0].is_null().to_pylist())
            ):
                error = self._error(
                    f"is declared {self.function.declared}, and is null where its argument is not", None
                )
        if error is not None:
            return pa.nulls(count, type_), [error] * count
        return found, [None] * count

    def _error(self, what: str, hint: str | None, where: str | None = None) -> QueryError:
        code = self.function.code
        if where is None:
            where = None if code is None else _line(code.co_filename, code.co_firstlineno)
        return QueryError(f"{self.function.words} {what}", where=where, hint=hint)

    def _wrong(self, result: object, reason: str, row: tuple[Any, ...]) -> QueryError:
        type_ = self.function.type.name
        what = f"returned {in_brief(result)}, which is not a valid {type_}, for {_arguments(row)}: {reason}"
        return self._error(what, f"its declaration says RETURNS {type_}")

    def _raised(self, raised: Exception, arguments: str) -> QueryError:
        """The error with the line of the function's own file that led to it."""
        code, trace, where = self.function.code, raised.__traceback__, None
        while trace is not None:
            if code is not None and trace.tb_frame.f_code.co_filename == code.co_filename:
                where = _line(code.co_filename, trace.tb_lineno)
            trace = trace.tb_next
        words = " ".join(str(raised).split()) or "no message"
        return self._error(
            f"raised {type(raised).__name__} for {arguments}: {in_brief(words, plain=True)}", None, where
        )


def _line(file: str, line: int) -> str:
    return f"{os.path.relpath(file) if Path(file).is_relative_to(Path.cwd()) else file}, line {line}"


_LONGEST = 200
"""The most letters of a value in a message."""


def in_brief(value: object, *, plain: bool = False) -> str:
    """A value in a message, which is not longer than some letters."""
    text = str(value) if plain else repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _arguments(row: tuple[Any, ...]) -> str:
    return f"({', '.join(map(in_brief, row))})"


def _seen(column: Any) -> pa.Array[Any]:
    """A column as a function sees it, whichever engine gives it: one array, with moments in UTC."""
    found = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    type_ = _type_seen(found.type)
    return found if found.type == type_ else found.cast(type_)


def _type_seen(type_: pa.DataType) -> pa.DataType:
    if isinstance(type_, pa.TimestampType):
        return pa.timestamp("us", None if type_.tz is None else "UTC")
    if isinstance(type_, pa.ListType):
        return pa.list_(pa.field("element", _type_seen(type_.value_type)))
    if isinstance(type_, pa.StructType):
        return pa.struct([pa.field(field.name, _type_seen(field.type)) for field in type_])
    return pa.string() if pa.types.is_large_string(type_) else type_


def is_wider(to: pa.DataType, of: pa.DataType) -> bool:
    """Whether Arrow's values of one type are values of another."""
    if to == of:
        return True
    if isinstance(to, pa.ListType) and isinstance(of, pa.ListType | pa.LargeListType):
        return is_wider(to.value_type, of.value_type)
    if isinstance(to, pa.StructType) and isinstance(of, pa.StructType):
        same = [field.name for field in to] == [field.name for field in of]
        return same and all(is_wider(one.type, other.type) for one, other in zip(to, of, strict=True))
    if isinstance(of, pa.DictionaryType):
        return is_wider(to, of.value_type)
    if pa.types.is_null(of) or (pa.types.is_string(to) and of in (pa.large_string(), pa.string_view())):
        return True
    if pa.types.is_integer(of):
        return pa.types.is_integer(to) or pa.types.is_floating(to) or pa.types.is_decimal(to)
    if pa.types.is_timestamp(of) and pa.types.is_timestamp(to):
        return (of.tz is None) == (to.tz is None)
    return pa.types.is_floating(of) and pa.types.is_floating(to) and of.bit_width <= to.bit_width


def converted(type_: SqlType) -> Callable[[Any], Any]:
    """From a result of Python to a value of the type for Arrow; TypeError for any other."""
    if type_.element is not None:
        of_element = converted(type_.element)
        return lambda value: [None if each is None else of_element(each) for each in _only(value, (list, tuple))]
    if not type_.fields:
        return _CONVERTED[type_.kind]
    of_fields = {field.name: converted(field.type) for field in type_.fields}

    def structure(value: Any) -> Any:
        if _only(value, dict).keys() != of_fields.keys():
            raise TypeError(f"its keys are {', '.join(map(str, value))}")
        return {name: None if value[name] is None else convert(value[name]) for name, convert in of_fields.items()}

    return structure


def _only(value: Any, kinds: type | tuple[type, ...], not_: type | tuple[type, ...] = ()) -> Any:
    if not isinstance(value, kinds) or isinstance(value, not_):
        raise TypeError(f"it is of Python's type {type(value).__name__}")
    return value


def _number(value: Any) -> float:
    # -0.0 is read as 0.0, as from XML; a test for an abstract class takes ten times as long as one for a float.
    return value + 0.0 if type(value) is float else float(_only(value, Real, bool)) + 0.0


def _whole(value: Any) -> int:
    return value if type(value) is int else int(_only(value, Integral, bool))


def _moment(value: Any) -> datetime:
    if _only(value, datetime).tzinfo is None:
        raise TypeError("it has no time zone")
    return value  # type: ignore[no-any-return]


def _local(value: Any) -> datetime:
    if _only(value, datetime).tzinfo is not None:
        raise TypeError("it has a time zone")
    return value  # type: ignore[no-any-return]


_CONVERTED: dict[str, Callable[[Any], Any]] = {
    "BOOLEAN": lambda value: bool(value) if type(value).__name__ == "bool_" else _only(value, bool),
    **dict.fromkeys(INTEGERS, _whole),
    **dict.fromkeys(FLOATING, _number),
    "DECIMAL": lambda value: _only(value, (Decimal, int), bool),
    "STRING": lambda value: _only(value, str),
    "DATE": lambda value: _only(value, date, datetime),
    "TIMESTAMP": _moment,
    "TIMESTAMP_NTZ": _local,
}
