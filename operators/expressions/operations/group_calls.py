"""Calls of functions of groups: the function gets all rows of a group at once, and gives rows.

The arguments are the keys, as a structure, if there are keys, and the rows, as an array of structures; the result is an
array of structures. The rows that the function gets are sorted by their columns, from the first to the last (nested
ones do not count), null last: so it gets the same whatever the engine, and however the stream was cut into slices.

A column of the result that is called as a key is that key: what the function gives there must be equal to it, and it
may leave it out. So nothing that a function returns can break a promise about the keys.

Of an accumulator, `add` gets the rows and gives a structure, the state; `merge` gets an array of states and gives one;
`finish` gets a state and gives rows. States are merged sorted by their columns, too, so that the same slices have the
same state after a crash.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.expressions.operations.python_functions import (
    ArrowCall,
    PythonFunction,
    converted,
    in_brief,
    is_wider,
)
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.slices import any_arrow_type, quoted
from xmlstream.punct_ns.sql_type import Field


def arrow_call(function: PythonFunction, *, in_fields: bool = False) -> ArrowCall:
    """What an engine calls for a function, of rows or of groups."""
    if function.step in ("add", "merge"):
        return StateCall(function, in_fields)
    return (GroupCall if function.is_of_groups else ArrowCall)(function, in_fields)


@dataclass(frozen=True, slots=True)
class GroupCall(ArrowCall):
    """A function of groups over Arrow's columns, or the last step of an accumulator: what an engine calls."""

    def _results(self, columns: list[pa.Array[Any]]) -> tuple[pa.Array[Any], list[QueryError | None]]:
        type_: Any = any_arrow_type(self.function.type)
        *keys, groups = columns
        takes_key = self.function.wrong_number(2) is None
        tables, ends, errors = list[pa.Table](), [0], list[QueryError | None]()
        for i in range(len(groups)):
            found, error = self._of_group(keys[0][i].as_py() if keys else {}, groups[i], takes_key=takes_key)
            tables += [] if found is None else [found]
            ends.append(ends[-1] + (0 if found is None else found.num_rows))
            errors.append(error)
        whole = pa.concat_tables(tables) if tables else pa.schema(list(type_.value_type)).empty_table()
        structures = whole.to_struct_array().combine_chunks()
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), structures, type=type_), errors

    def _of_group(
        self, key: Mapping[str, Any], group: Any, *, takes_key: bool
    ) -> tuple[pa.Table | None, QueryError | None]:
        function = self.function
        try:
            given = group.as_py() if function.step else _rows(group, function)
            arguments = (_key_of(tuple(key))(*key.values()), given) if takes_key else (given,)
            result = function.accumulator.finish(*arguments) if function.step else function.call(*arguments)
            if isinstance(result, Iterable) and not _is_table(result):
                result = [result] if isinstance(result, Mapping) else list(result)
        except Exception as raised:  # noqa: BLE001 - whatever a user's function raises
            return None, self._raised(raised, _group_in_words(key))
        try:
            table = _arrow(result) if _is_table(result) else self._of_dictionaries(result, key)
            return self._as_declared(table, key), None
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as reason:
            hint = (
                f"it is declared with the columns ({_declared(self._fields)}); rows are an Arrow table, a DataFrame or"
            )
            return None, self._not_as_declared(key, reason, f"{hint} dictionaries")

    def _not_as_declared(self, key: Mapping[str, Any], reason: Exception, hint: str) -> QueryError:
        return self._error(f"returned what is not as declared, for {_group_in_words(key)}: {reason}", hint)

    @property
    def _fields(self) -> tuple[Field, ...]:
        """The declared columns."""
        element = self.function.type.element
        assert element is not None
        return element.fields

    def _of_dictionaries(self, result: Any, key: Mapping[str, Any]) -> pa.Table:
        """The rows of dictionaries, each with the keys."""
        if not isinstance(result, list):
            raise TypeError(f"{in_brief(result)} is no rows" if result is not None else "None; for no rows return []")
        rows = []
        for row in result:
            if not isinstance(row, Mapping):
                raise TypeError(f"the row {in_brief(row)} is no dictionary")
            rows.append({str(name).lower(): value for name, value in row.items()})
        self._require_known(str(name) for row in result for name in row)
        keys = _folded(key)
        columns: dict[str, pa.Array[Any]] = {}
        for field in self._fields:
            name = field.name.lower()
            if lacking := next((row for row in rows if name not in row and name not in keys), None):
                raise TypeError(f"the row {in_brief(lacking)} lacks {field.name}")
            columns[field.name] = _column(field, [row.get(name, keys.get(name)) for row in rows])
        return pa.table(columns)

    def _require_known(self, names: Iterable[str]) -> None:
        known = {field.name.lower() for field in self._fields}
        if (other := next((name for name in names if name.lower() not in known), None)) is not None:
            raise TypeError(f"it has a column {other}")

    def _as_declared(self, table: pa.Table, key: Mapping[str, Any]) -> pa.Table:
        """The rows with the declared columns, the keys among them."""
        self._require_known(table.column_names)
        keys, there = _folded(key), {name.lower(): name for name in table.column_names}
        if len(there) < table.num_columns:
            raise TypeError("two of its columns have one name")
        names = {field.name.lower(): field.name for field in self._fields}
        if lacking := names.keys() - keys.keys() - there.keys():
            raise TypeError(f"it lacks the column {names[min(lacking)]}")
        columns: dict[str, pa.ChunkedArray[Any] | pa.Array[Any]] = {}
        for field in self._fields:
            name, type_ = field.name.lower(), any_arrow_type(field.type)
            given = None if name not in there else _cast(table[there[name]], field, type_)
            if name in keys:
                only: Any = pa.array([keys[name]], type_)
                if given is not None and {*map(repr, given.unique().to_pylist())} - {repr(only[0].as_py())}:
                    other = next(value for value in given.to_pylist() if repr(value) != repr(only[0].as_py()))
                    raise ValueError(f"it has {field.name} = {in_brief(other)}, and that column is the key")
                given = only.take(pa.array([0] * table.num_rows, pa.int32()))
            assert given is not None
            columns[field.name] = given
        return pa.table(columns)


@dataclass(frozen=True, slots=True)
class StateCall(GroupCall):
    """A step of an accumulator that gives a state: of new rows, or of several states."""

    def _results(self, columns: list[pa.Array[Any]]) -> tuple[pa.Array[Any], list[QueryError | None]]:
        *keys, groups = columns
        accumulator, states, errors = self.function.accumulator, list[Any](), list[QueryError | None]()
        for i in range(len(groups)):
            key, state, error = keys[0][i].as_py() if keys else {}, None, None
            try:
                state = self._state_of(accumulator, key, groups[i])
            except QueryError as raised:
                error = raised
            states.append(state)
            errors.append(error)
        return pa.array(states, any_arrow_type(self.function.type)), errors

    def _state_of(self, accumulator: Any, key: Mapping[str, Any], group: Any) -> Any:
        """The state of a group."""
        if self.function.step == "merge":
            first, *others = _table(group.values).to_pylist()
            return reduce(lambda one, other: self._called(accumulator.merge, key, one, other), others, first)
        state = replace(self, function=replace(self.function, step="zero"))._called(accumulator.zero, key)
        rows = _rows(group, self.function)
        return self._called(accumulator.add, key, state, rows) if len(rows) else state

    def _called(self, method: Any, key: Mapping[str, Any], *given: Any) -> Any:
        """The state that a method gives, as one that was kept is."""
        try:
            state = method(*given)
        except Exception as raised:  # noqa: BLE001 - whatever a user's method raises
            raise self._raised(raised, _group_in_words(key)) from None
        fields = self.function.type.fields
        try:
            values = _values_of(state, fields)
            columns = {f.name: _column(f, [value]) for f, value in zip(fields, values, strict=True)}
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as reason:
            hint = f"a state has the columns ({_declared(fields)}), as a dictionary or a tuple"
            raise self._not_as_declared(key, reason, hint) from None
        return {name: column[0].as_py() for name, column in columns.items()}


def _values_of(state: Any, fields: Sequence[Field]) -> Sequence[Any]:
    """The values of a state in the order of its columns."""
    if isinstance(state, Mapping):
        given, known = {str(name).lower(): value for name, value in state.items()}, [f.name.lower() for f in fields]
        if other := [name for name in given if name not in known]:
            raise TypeError(f"the state {in_brief(state)} has a column {other[0]}")
        if lacking := [name for name in known if name not in given]:
            raise TypeError(f"the state {in_brief(state)} lacks {lacking[0]}")
        return [given[name] for name in known]
    if not isinstance(state, tuple | list):
        raise TypeError(f"{in_brief(state)} is no state")
    if len(state) != len(fields):
        raise TypeError(f"the state {in_brief(state)} has {len(state)} columns, not {len(fields)}")
    return state


def _column(field: Field, values: Sequence[Any]) -> pa.Array[Any]:
    """Values of Python, or scalars of Arrow's, as a column.

    Raises:
        TypeError, ValueError: One has another type; the error names the column and the value.
    """
    of, type_ = converted(field.type), any_arrow_type(field.type)
    given = [value.as_py() if isinstance(value, pa.Scalar) else value for value in values]
    try:
        return pa.array([None if value is None else of(value) for value in given], type_)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as reason:
        wrong, why = _first_wrong(field, given, reason)
        raise ValueError(f"{field.name} = {in_brief(wrong)} is not a valid {field.type.name}: {why}") from None


def _first_wrong(field: Field, values: Sequence[Any], reason: Exception) -> tuple[Any, Exception]:
    """The first value that is not of a column's type, and why."""
    for value in values:
        try:
            pa.array([None if value is None else converted(field.type)(value)], any_arrow_type(field.type))
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as found:
            return value, found
    return values, reason


def _group_in_words(key: Mapping[str, Any]) -> str:
    of = ", ".join(f"{name} = {in_brief(value)}" for name, value in key.items())
    return f"the group {of}" if key else "all rows"


def _declared(fields: Iterable[Field]) -> str:
    return ", ".join(f"{quoted(field.name)} {field.type.name}" for field in fields).replace("`", "")


def _rows(group: Any, function: PythonFunction) -> Any:
    """The rows of a group as a function takes them."""
    rows = _table(group.values)
    return rows.to_pandas() if function.takes == "frame" else rows


def _table(structures: Any) -> pa.Table:
    """An array of structures as a table, sorted by its columns."""
    return _sorted(pa.Table.from_batches([pa.RecordBatch.from_struct_array(structures)]))


@lru_cache(maxsize=64)
def _key_of(names: tuple[str, ...]) -> Any:
    """The class of keys of these names; the ends of a window are `w_start` and `w_end`."""
    return namedtuple("Key", [name.replace(".", "_") for name in names], rename=True)


def _sorted(rows: pa.Table) -> pa.Table:
    keys: Any = [(field.name, "ascending") for field in rows.schema if not pa.types.is_nested(field.type)]
    return rows.take(pc.sort_indices(rows, keys)) if keys and rows.num_rows > 1 else rows


def _folded(key: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name.lower(): value for name, value in key.items()}


def _is_table(result: Any) -> bool:
    return hasattr(result, "__arrow_c_stream__") or isinstance(result, pa.RecordBatch)


def _arrow(result: Any) -> pa.Table:
    if type(result).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(result, preserve_index=False)
    return pa.table(result)


def _cast(column: Any, field: Field, type_: pa.DataType) -> Any:
    if not is_wider(type_, column.type):
        raise TypeError(f"its column {field.name} is of Arrow's type {column.type}")
    return column.cast(type_)
