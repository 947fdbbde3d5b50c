"""Frames: lazy tables of tuples, and the engine that computes them.

A frame is a tree of relational operations. Its leaves are tables that an engine gives (`Engine.rows`, `parquet`, …);
nothing is computed until `to_arrow`, `count`, `write` or `write_parts` requests it. Expressions are in Spark's dialect,
under ANSI rules, with names regardless of case (`xmlstream.operators.frames.expression`).

The operations are few, and their meaning is literal:

- `select`: one row for each row; `with_columns` keeps all columns. An expression may be a window function, or one
  `explode(…)`, which gives a row for each element.
- `where`: the rows for which the condition is true.
- `union`: all rows of both, by the places of columns; `union_by_name`: by names, null where a frame lacks the column.
- `join`: `inner` and `left` give the columns of both sides, `left_semi` and `left_anti` those of the left one.
- `group_by`: one row for each group, null being a value; without keys exactly one. `distinct`: each row once.
- `chosen`: some of the rows, by one of two ways, as the engine can.
- `numbered`: the rows in an order, with increasing numbers.
- `observed`: the same rows; aggregates over them are known once they are computed.

Names of columns are known without the engine; types are known to the engine alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import pyarrow as pa

from xmlstream.dataclasses import dataclass, field
from xmlstream.operators.frames.expression import Column, Copy, Expression, Order, as_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from xmlstream.punct_ns.domain import Domain, Value
    from xmlstream.punct_ns.schema import Attribute
    from xmlstream.punct_ns.time_zones import ClockChange

EACH = 1 << 33
"""The distance between the numbers that Spark gives to the rows of one partition and the next (`Frame.numbered`)."""

JoinKind = Literal["inner", "left", "left_semi", "left_anti"]
Side = Literal["left", "right", "both"]


@dataclass(frozen=True, slots=True)
class Table:
    """A leaf: a table as the engine represents it."""

    value: Any


@dataclass(frozen=True, slots=True)
class Select:
    """The columns; with `whole`, behind all those of the input."""

    input: Frame
    columns: tuple[Column, ...]
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Where:
    """The rows for which the condition is true."""

    input: Frame
    condition: Expression


@dataclass(frozen=True, slots=True)
class Union:
    """All rows of the inputs, by the places of their columns, or by name."""

    inputs: tuple[Frame, ...]
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class Join:
    """The join of two frames whose columns have different names.

    The engine may copy the `small` side to all tasks; if `both` are small, one task may join them.
    """

    left: Frame
    right: Frame
    on: Expression
    how: JoinKind
    small: Side | None


@dataclass(frozen=True, slots=True)
class Group:
    """The groups by columns, with aggregates; without keys, one row."""

    input: Frame
    keys: tuple[str, ...]
    aggregates: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Distinct:
    """Each different row once."""

    input: Frame


@dataclass(frozen=True, slots=True)
class Limit:
    """Some rows, at most this number; with an order, the first ones."""

    input: Frame
    rows: int
    order: tuple[Order, ...] = ()


@dataclass(frozen=True, slots=True)
class OneTask:
    """The same rows; one task computes them and what follows, for window functions over all of them."""

    input: Frame


@dataclass(frozen=True, slots=True)
class Numbered:
    """The rows in an order, each with a number in the column `name`; numbers increase from `first` on, with gaps.

    `few` rows have no gaps.
    """

    input: Frame
    order: tuple[Order, ...]
    name: str
    first: int
    few: bool


@dataclass(slots=True, eq=False)
class Observed:
    """The same rows; `aggregates` over them are known once they are computed.

    `found` is for the engine.
    """

    input: Frame
    aggregates: tuple[Column, ...]
    found: Any = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """Some rows of the input: the driver chooses them `here`, from rows as Arrow; `otherwise` is a frame of the same.

    With `compared`, it compares whole values, so that no text may be of a type whose blanks do not count.
    """

    input: Frame
    here: Callable[[pa.Table], pa.Table | None]
    otherwise: Callable[[], Frame]
    compared: bool = False


Unary = Select | Where | Group | Distinct | Limit | OneTask | Numbered | Observed
Operation = Table | Union | Join | Chosen | Unary


class ZoneRules(Protocol):
    """The changes of one zone's clocks."""

    @property
    def changes(self) -> Sequence[ClockChange]:
        """The listed changes, in order of time."""

    def recurring(self, year: int) -> Sequence[ClockChange]:
        """The changes in a year after the listed ones, by rules without an end; empty if there are no such rules."""

    def offset(self, second: int) -> int:
        """The seconds ahead of UTC at a moment, in seconds since 1970."""


class Engine(Protocol):
    """Computes frames, and expressions of constants."""

    @property
    def name(self) -> str:
        """What computes the present slice: `spark` or `duckdb`."""

    @property
    def zone(self) -> str:
        """The session's time zone, in which expressions see moments."""

    @property
    def most_numbers(self) -> int:
        """The most numbers that `numbered` uses for a frame, unless it has more rows."""

    def __hash__(self) -> int:
        """Results for an engine are cached."""

    def spill_to(self, directory: Path) -> None:
        """Sets the directory for what exceeds the memory, where the engine does not choose it by itself."""

    def begin(self, rows: int) -> None:
        """Begins a slice in this thread; it has so many rows, with those that operators keep.

        Raises:
            UsageError: What is to compute it cannot be started.
        """

    def rows(self, table: pa.Table, columns: str) -> Frame:
        """A frame of Arrow's rows; `columns` are their Spark types, as DDL or as the JSON of a struct."""

    def empty(self, columns: str) -> Frame:
        """A frame without rows; `columns` as in `rows`."""

    def parquet(self, columns: str, *paths: str, few: bool = False) -> Frame:
        """The rows of at least one Parquet file or directory, whatever characters the paths contain.

        If they are `few`, the driver may read them itself.
        """

    def given(self, frame: Any) -> Frame:
        """A table that the user gave as the engine's own kind of table."""

    def dataframe(self, frame: Frame) -> DataFrame | None:
        """The rows as a DataFrame of the user's session, not computed yet; None where Spark does not compute."""

    def require_files(self, path: str) -> None:
        """Makes sure that it reads static tables from the object store of a URL.

        Raises:
            UsageError: It does not.
        """

    def files(self, format: str, columns: str, options: Mapping[str, str], path: str) -> Frame:
        """The rows of files in a format, read with the options of Spark's reader for it."""

    def describe(self, query: str, work: str) -> None:
        """Names what is computed from now on, where the engine shows its work: the query, and what it does."""

    def here(self, frame: Frame) -> pa.Table | None:
        """The rows, if the driver computes them itself from few that it has (`held`); else None."""

    def table(self, frame: Frame) -> pa.Table:
        """Computes the rows."""

    def count(self, frame: Frame) -> int:
        """Computes the number of rows."""

    def write(self, frame: Frame, path: str) -> None:
        """Computes the rows into a Parquet directory or file, which must not exist."""

    def write_parts(self, frame: Frame, writer: Any, columns: str) -> pa.Table:
        """Computes the rows, and gives them to copies of a function from record batches to record batches.

        Returns what the copies return, with these Spark types.
        """

    def struct(self, frame: Frame) -> str:
        """The types of the columns: the JSON of a Spark struct."""

    def metrics(self, frame: Frame) -> Mapping[str, Any]:
        """The aggregates of an `Observed` frame, once a frame that contains it is computed; none if it was not needed.

        Raises:
            XmlStreamError: They do not become known in time.
        """

    def values(self, expression: str, x: Attribute, y: Domain, values: Sequence[Value]) -> Sequence[Value | None]:
        """The expression of one attribute for given values, as values of `y`; None where it fails, or is null."""

    def zone_rules(self, zone: str = "") -> ZoneRules:
        """The changes of the zone's clocks."""


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A lazy table: its engine, the names of its columns, and the operation that gives it.

    `made` is for the engine.
    """

    engine: Engine = field(repr=False)
    columns: tuple[str, ...]
    operation: Operation = field(repr=False)
    made: list[Any] = field(default_factory=list, repr=False)

    def _of(self, operation: Operation, columns: Sequence[str]) -> Frame:
        return Frame(self.engine, tuple(columns), operation)

    def select(self, *columns: str | Column) -> Frame:
        """The rows with these columns: each a column of the frame by its name, or one with an expression."""
        made = tuple(Column(each, Copy(each)) if isinstance(each, str) else each for each in columns)
        known = {name.lower() for name in self.columns}
        for each in made:
            if isinstance(each.expression, Copy) and each.expression.name.lower() not in known:
                raise ValueError(f"there is no column {each.expression.name} among {self.columns}")
        return self._of(Select(self, made), [column.name for column in made])

    def renamed(self, names: Mapping[str, str]) -> Frame:
        """The rows with these columns alone: for each new name, the name of the column that has it from now on."""
        return self.select(*(Column(new, Copy(name)) for new, name in names.items()))

    def with_columns(self, columns: Mapping[str, Expression]) -> Frame:
        """The rows with more columns at the end, or with other values in the columns of these names."""
        if columns.keys().isdisjoint(self.columns):
            return self._of(Select(self, as_columns(columns), whole=True), (*self.columns, *columns))
        more = (name for name in columns if name not in self.columns)
        return self.select(*(Column(name, columns.get(name, Copy(name))) for name in (*self.columns, *more)))

    def with_column(self, name: str, expression: Expression) -> Frame:
        """The rows with one more column at the end, or with another value in the column of this name."""
        return self.with_columns({name: expression})

    def drop(self, *names: str) -> Frame:
        """The rows without these columns, if they are there."""
        left = [name for name in self.columns if name not in names]
        return self if len(left) == len(self.columns) else self.select(*left)

    def where(self, condition: Expression) -> Frame:
        """The rows for which the condition is true."""
        return self._of(Where(self, condition), self.columns)

    def union(self, other: Frame) -> Frame:
        """All rows of both, by the places of columns."""
        return self._of(Union((self, other)), self.columns)

    def union_by_name(self, other: Frame) -> Frame:
        """All rows of both, by the names of columns; null where one lacks the column."""
        more = [name for name in other.columns if name not in self.columns]
        return self._of(Union((self, other), by_name=True), (*self.columns, *more))

    def join(self, other: Frame, on: Expression, how: JoinKind = "inner", small: Side | None = None) -> Frame:
        """The join on a condition over the columns of both, whose names differ; one side may be `small`."""
        columns = self.columns if how in ("left_semi", "left_anti") else (*self.columns, *other.columns)
        return self._of(Join(self, other, on, how, small), columns)

    def group_by(self, keys: Sequence[str], aggregates: Mapping[str, Expression]) -> Frame:
        """A row for each group by these columns, with the keys and these aggregates by name."""
        return self._of(Group(self, tuple(keys), as_columns(aggregates)), (*keys, *aggregates))

    def distinct(self) -> Frame:
        """Each different row once."""
        return self._of(Distinct(self), self.columns)

    def limit(self, rows: int, *order: Order) -> Frame:
        """Some rows, at most this number; with an order, the first ones."""
        return self._of(Limit(self, rows, order), self.columns)

    def in_one_task(self) -> Frame:
        """The same rows; one task computes them and what follows, for window functions over all of them."""
        return self._of(OneTask(self), self.columns)

    def numbered(self, order: Sequence[Order], name: str, first: int, *, few: bool) -> Frame:
        """The rows in an order, with increasing numbers from `first` on in a column of this name at the end.

        With `few`, the numbers have no gaps, and one task computes them.
        """
        columns = [known for known in self.columns if known != name]
        return self._of(Numbered(self.drop(name), tuple(order), name, first, few), (*columns, name))

    def observed(self, aggregates: Mapping[str, Expression]) -> tuple[Frame, Callable[[], Mapping[str, Any]]]:
        """The same rows, and what gives the aggregates by name, once the rows were computed."""
        frame = self._of(Observed(self, as_columns(aggregates)), self.columns)
        return frame, partial(self.engine.metrics, frame)

    def chosen(
        self, here: Callable[[pa.Table], pa.Table | None], otherwise: Callable[[], Frame], *, compared: bool = False
    ) -> Frame:
        """Some rows: `here` chooses them from the rows as Arrow, if it can, and `otherwise` is a frame of the same."""
        return self._of(Chosen(self, here, cache(otherwise), compared), self.columns)

    def here(self) -> pa.Table | None:
        """The rows, if the driver has what they are computed from and computes them itself; else None."""
        return self.engine.here(self)

    def to_arrow(self) -> pa.Table:
        """Computes the rows."""
        return self.engine.table(self)

    def count(self) -> int:
        """Computes the number of rows."""
        return self.engine.count(self)

    def write(self, path: str | Path) -> None:
        """Computes the rows into Parquet files."""
        self.engine.write(self, str(path))

    def struct(self) -> str:
        """The types of the columns: the JSON of a Spark struct."""
        return self.engine.struct(self)
