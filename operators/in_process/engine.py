"""DuckDB as the engine of frames, in the driver's process.

A frame is one SELECT over the tables of its leaves: Arrow's rows in memory, or Parquet files. The rows of an observed
frame are computed once, into a temporary table, which is counted. DuckDB keeps within a limit of memory, and writes
what goes beyond it to a directory. Only expressions that are proven to be equal to Spark's are computed.

A statement takes a millisecond or more, however few rows it reads. So what is plain enough is computed from Arrow's
rows without one (`xmlstream.operators.frames.held`), few rows of a file are read into memory, and DuckDB is given a
table when a statement needs it.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from inspect import Parameter, Signature
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from xmlstream.dataclasses import dataclass, field
from xmlstream.operators.expressions.operations.group_calls import arrow_call
from xmlstream.operators.expressions.operations.part import text
from xmlstream.operators.expressions.operations.python_functions import SIGNATURES, ArrowCall
from xmlstream.operators.expressions.operations.spark_type import has_floating, in_duckdb, name_in_duckdb
from xmlstream.operators.frames import zones
from xmlstream.operators.frames.frame import Chosen, Frame, Join, Observed, Table
from xmlstream.operators.frames.held import Compute, Leaf, computed_rows
from xmlstream.operators.in_process.columns import Named, declared, fields, of_arrow, plain_schema, struct
from xmlstream.operators.in_process.expressions import computed, is_proven
from xmlstream.operators.in_process.plain_csv import plain_csv, require_readable
from xmlstream.operators.in_process.relations import Relations
from xmlstream.operators.in_process.statement import OPTIMIZERS, execute
from xmlstream.operators.storage.shared_files import conformed
from xmlstream.punct_ns.errors import QueryError, StateError, UsageError, XmlStreamError
from xmlstream.punct_ns.slices import own

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import ZoneRules
    from xmlstream.punct_ns.domain import Domain, Value
    from xmlstream.punct_ns.schema import Attribute

POSITIONAL = Parameter.POSITIONAL_ONLY

BATCH = 65_536
"""The number of rows of a record batch."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class _Leaf(Leaf):
    """A leaf with its columns; `make` gives the SELECT that reads it, once, and what ends with it."""

    columns: Named = field(kw_only=True)
    made: list[str] = field(default_factory=list)


_Made = tuple[str, str | None]
"""The SELECT that reads a leaf, and the view or table that is to be dropped with the leaf."""


class InProcessEngine:
    """DuckDB in this process; threads may share it.

    `work` is the directory for what exceeds the memory; without it, nothing is written.
    """

    name, most_numbers = "duckdb", 0

    def __init__(self, zone: str = "UTC", memory: str | None = None, threads: int | None = None) -> None:
        """Opens a database in memory.

        Args:
            zone: The session's time zone, as in Spark's setting.
            memory: The limit of DuckDB's memory, such as `2GB`; by default four fifths of the machine's.
            threads: The number of threads; by default one for each core.
        """
        config: dict[str, Any] = {"threads": threads or os.cpu_count() or 1, "autoinstall_known_extensions": False}
        if memory is not None:
            config["memory_limit"] = memory
        self.zone = zone
        try:
            self._connection = duckdb.connect(":memory:", config=config)
        except duckdb.Error as error:
            raise UsageError(_plain(str(error)), hint="give the memory as 2GB") from None
        prepare(self._connection, zones.zone_in_duckdb(zone))
        self._lock = threading.RLock()
        self._numbers = count()
        self._gone: list[str] = []
        self._is_closed = False
        self._work: Path | None = None
        self._remade: list[Path] = []
        self._functions = 0
        self._failures: list[QueryError] = []
        self._relations = Relations(zone, self._columns, self._source)

    def spill_to(self, directory: Path) -> None:
        """Sets the directory for what exceeds the memory; one that was used stays, also for later queries."""
        with self._running(), suppress(duckdb.NotImplementedException):
            self._connection.execute(f"SET temp_directory = {_text(str(directory))}")
            self._work = directory

    def begin(self, rows: int) -> None:
        """See `Engine.begin`; the directory of a query that has ended may be gone with its checkpoint."""
        if self._work is not None and not self._work.parent.is_dir():
            self._work.mkdir(parents=True)
            self._remade.append(self._work)

    def rows(self, table: pa.Table, columns: str) -> Frame:
        """A frame of Arrow's rows."""
        named = declared(columns)
        schema = plain_schema(named)
        return self._of_table(table, named, None if schema is None else cache(partial(_conformed, table, schema)))

    def empty(self, columns: str) -> Frame:
        """A frame without rows."""
        named = declared(columns)
        items = (f"CAST(NULL AS {in_duckdb(typed.type)}) AS {typed.sql}" for _, typed in named)
        schema = plain_schema(named)
        return self._leaf(
            named, lambda: (f"SELECT {', '.join(items)} LIMIT 0", None), None if schema is None else schema.empty_table
        )

    def parquet(self, columns: str, *paths: str, few: bool = False) -> Frame:
        """The rows of Parquet files or directories; a column that a file lacks is null."""
        files = [file for path in paths for file in _files(path)]
        if not files:
            return self.empty(columns)
        named = declared(columns)
        if few and (schema := plain_schema(named)) is not None:
            return self._of_few(files, named, schema)
        options = "hive_partitioning = false, union_by_name = true"
        read = f"read_parquet([{', '.join(map(_literally, files))}], {options})"
        return self._leaf(named, lambda: (self._read(named, read), None))

    def _of_few(self, files: Sequence[str], columns: Named, schema: pa.Schema) -> Frame:
        """The rows of files that fit into the memory of this process, which reads them once."""

        @cache
        def read() -> pa.Table:
            tables = (pq.read_table(file, partitioning=None, coerce_int96_timestamp_unit="us") for file in files)
            return pa.concat_tables(conformed(table, schema) for table in tables)

        return self._leaf(columns, lambda: self._registered(read(), columns), read)

    def given(self, frame: Any) -> Frame:
        """A table of Arrow as a frame.

        Raises:
            UsageError: It is none.
        """
        if not isinstance(frame, pa.Table):
            hint = "give a pyarrow.Table, or leave out engine='duckdb'"
            raise UsageError(f"a static table is a {type(frame).__name__}, which DuckDB does not read", hint=hint)
        return self._of_table(frame, of_arrow(frame.schema))

    def dataframe(self, frame: Frame) -> None:
        """See `Engine.dataframe`: there is no Spark."""

    def require_files(self, path: str) -> None:
        """See `Engine.require_files`."""
        hint = "declare it USING punctuated_xml or punctuated_parquet, or copy the files"
        raise UsageError(f"DuckDB does not read {path}, which a static table needs", hint=hint)

    def files(self, format: str, columns: str, options: Mapping[str, str], path: str) -> Frame:
        """The rows of a static table: Parquet, or plain CSV.

        Raises:
            NotProven: The format or an option is another one.
        """
        place = path.removeprefix("file://")
        require_readable(format, columns, options, self.zone)
        if format.lower() == "csv":
            named = declared(columns)
            return self._of_table(plain_csv(place, named, options, self.zone), named)
        frame = self.parquet(columns, place)
        with self._running():
            self._sql(frame)
        return frame

    def here(self, frame: Frame) -> pa.Table | None:
        """See `Engine.here`."""
        return computed_rows(frame)

    def table(self, frame: Frame) -> pa.Table:
        """Computes the rows, without a statement if that is simple."""
        here = computed_rows(frame)
        with self._running():
            return here if here is not None else self._execute(self._sql(frame)).to_arrow_table(BATCH)

    def count(self, frame: Frame) -> int:
        """Counts the rows."""
        here = computed_rows(frame)
        with self._running():
            return here.num_rows if here is not None else self._value(f"SELECT count(*) FROM {self._source(frame)}")

    def write(self, frame: Frame, path: str) -> None:
        """Computes the rows into a Parquet file."""
        with self._running():
            self._execute(f"COPY ({self._sql(frame)}) TO {_text(path)} (FORMAT parquet, COMPRESSION lz4_raw)")

    def write_parts(self, frame: Frame, writer: Any, columns: str) -> pa.Table:
        """Computes the rows, and gives them to the writer batch by batch."""
        with self._running():
            batches = self._execute(self._sql(frame)).to_arrow_reader(BATCH)
            written = list(writer(iter(batches)))
        return pa.Table.from_batches(written) if written else self.table(self.empty(columns))

    def struct(self, frame: Frame) -> str:
        """The types of the columns."""
        return struct(self._columns(frame))

    def metrics(self, frame: Frame) -> Mapping[str, Any]:
        """The aggregates of an observed frame; none if it was not needed."""
        assert isinstance(frame.operation, Observed)
        found: Mapping[str, Any] = frame.operation.found or {}
        return found

    def values(self, expression: str, x: Attribute, y: Domain, values: Sequence[Value]) -> list[Value | None]:
        """The expression for given values; None where it has no result."""
        with self._running():
            is_proven(expression, x, self.zone)
            self._create_functions()
            found = dict(computed(expression, x, y, values, self._connection, self.zone))
        return [found.get(value) for value in values]

    def describe(self, query: str, work: str) -> None:
        """See `Engine.describe`; nothing shows the work of this process."""

    def zone_rules(self, zone: str = "") -> ZoneRules:
        """The changes of the clocks of a zone, by default the session's."""
        return zones.PythonZone(zone or self.zone)

    def close(self) -> None:
        """Ends the database; frames can be computed no more."""
        with self._lock:
            self._is_closed = True
            self._connection.close()
            for work in self._remade:
                shutil.rmtree(work, ignore_errors=True)
                with suppress(OSError):  # another query may have its checkpoint there by now
                    work.parent.rmdir()

    def _leaf(self, columns: Named, make: Callable[[], _Made], read: Compute | None = None) -> Frame:
        leaf = _Leaf(fields(columns), make, read, columns=columns)
        return Frame(self, tuple(name for name, _ in columns), Table(leaf))

    def _of_table(self, table: pa.Table, columns: Named, read: Compute | None = None) -> Frame:
        return self._leaf(columns, lambda: self._registered(table, columns), read)

    def _registered(self, table: pa.Table, columns: Named) -> _Made:
        """The SELECT of a table that DuckDB is given now."""
        name = self._name()
        self._connection.register(name, table)
        read = (
            f"CAST({_filtered_here(name_in_duckdb(there))} AS {in_duckdb(typed.type)}) AS {typed.sql}"
            for there, (_, typed) in zip(table.column_names, columns, strict=True)
        )
        return f"SELECT {', '.join(read)} FROM {name}", f"view:{name}"

    def _read(self, columns: Named, read: str) -> str:
        """The SELECT of Parquet files: the columns that they have, as these types."""
        described = self._connection.execute(f"DESCRIBE SELECT * FROM {read}").fetchall()
        there = {name.lower(): (name, type_) for name, type_, *_ in described}
        items = []
        for name, typed in columns:
            target = in_duckdb(typed.type)
            found = there.get(name.lower())
            if found is None:
                items.append(f"CAST(NULL AS {target}) AS {typed.sql}")
                continue
            column = name_in_duckdb(found[0])
            # A file's statistics pass over NaN, and take a zero for one with a sign: nothing is to follow from them.
            if has_floating(typed.type):
                column = _filtered_here(column)
            # Spark writes moments in an old form, without a zone.
            if typed.type.name == "TIMESTAMP" and found[1] == "TIMESTAMP":
                column = f"({column} AT TIME ZONE 'UTC')"
            items.append(f"{column if found[1] == target else f'CAST({column} AS {target})'} AS {typed.sql}")
        return f"SELECT {', '.join(items)} FROM {read}"

    def _columns(self, frame: Frame) -> Named:
        operation = frame.operation
        if isinstance(operation, Table):
            leaf: _Leaf = operation.value
            return leaf.columns
        if not frame.made:
            frame.made.append(self._relations.columns(operation))
        found: Named = frame.made[0]
        return found

    def _sql(self, frame: Frame) -> str:
        """The SELECT of a frame; observed frames below it are computed now."""
        operation = frame.operation
        if isinstance(operation, Table):
            return self._made(operation.value)
        self._columns(frame)
        if len(frame.made) == 1:
            frame.made.append(self._leaf_of(frame) or self._relations.select(operation))
        return frame.made[1] if isinstance(frame.made[1], str) else self._made(frame.made[1])

    def _made(self, leaf: _Leaf) -> str:
        if not leaf.made:
            sql, gone = leaf.make()
            leaf.made.append(sql)
            if gone is not None:
                # Another thread may drop the last reference, while this one computes.
                weakref.finalize(leaf, self._gone.append, gone)
        return leaf.made[0]

    def _leaf_of(self, frame: Frame) -> _Leaf | None:
        """The leaf that is computed now and read in the place of a frame: one that is observed, or is simple.

        The condition of many punctuations takes longer to read as SQL than a small table to filter.
        """
        if isinstance(frame.operation, Observed):
            return self._observed(frame.operation)
        if not isinstance(frame.operation, Chosen | Join) or (table := computed_rows(frame)) is None:
            return None
        columns = self._columns(frame)
        return _Leaf(fields(columns), lambda: self._registered(table, columns), columns=columns)

    def _source(self, frame: Frame) -> str:
        return f"({self._sql(frame)})"

    def _observed(self, observed: Observed) -> _Leaf:
        """Computes the rows of an observed frame into a temporary table, and the aggregates over it."""
        columns, name = self._columns(observed.input), self._name()
        self._execute(f"CREATE TEMP TABLE {name} AS {self._sql(observed.input)}")
        leaf = _Leaf(fields(columns), lambda: (f"SELECT * FROM {name}", f"table:{name}"), columns=columns)
        aggregates = Frame(self, (), Table(leaf)).group_by((), dict(observed.aggregates))
        row = self._execute(self._sql(aggregates)).to_arrow_table().to_pylist()[0]
        observed.found = dict(row)
        return leaf

    def _drop(self) -> None:
        """Drops the tables that nothing needs any more."""
        while self._gone:
            kind, _, name = self._gone.pop().partition(":")
            if kind == "view":
                self._connection.unregister(name)
            else:
                self._connection.execute(f"DROP TABLE {name}")

    def _name(self) -> str:
        return f"xs{next(self._numbers)}"

    def _value(self, sql: str) -> int:
        row = self._execute(sql).fetchone()
        assert row is not None
        return int(row[0])

    def _execute(self, sql: str) -> duckdb.DuckDBPyConnection:
        """Runs a statement, whose Python functions DuckDB knows."""
        self._create_functions()
        return execute(self._connection, sql)

    def _create_functions(self) -> None:
        """Gives DuckDB the Python functions that texts have come to call; it calls each with nulls, too."""
        while self._functions < len(SIGNATURES):
            function, types = SIGNATURES[self._functions]
            of: list[Any] = [duckdb.type(in_duckdb(type_)) for type_ in types]
            returns = duckdb.type(in_duckdb(function.type))
            called: Any = partial(self._call, arrow_call(function))
            called.__signature__ = Signature([Parameter(f"x{i}", POSITIONAL) for i in range(len(of))])
            create: Any = self._connection.create_function
            create(own(f"python{self._functions}"), called, of, returns, type="arrow", null_handling="special")
            self._functions += 1

    def _call(self, call: ArrowCall, *columns: Any) -> Any:
        try:
            return call(*columns)
        except QueryError as error:
            self._failures.append(error)  # DuckDB reports the text of an exception alone
            raise

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Has the connection for this thread, drops what nothing needs any more, and reports errors as Spark's."""
        with self._lock:
            if self._is_closed:
                raise UsageError("the session was stopped", hint="open another one")
            try:
                self._drop()
                yield
            except duckdb.Error as error:
                raise next(iter(self._failures), None) or reported(error) from None
            finally:
                self._failures.clear()


def _conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of a table, by their places, with the names and types of a schema."""
    return table.rename_columns(schema.names).cast(schema)


def reported(error: duckdb.Error) -> Exception:
    """An error of a computation, by the name that Spark has for it; DuckDB's own for any other."""
    message = str(error)
    if isinstance(error, duckdb.OutOfMemoryException):
        return XmlStreamError(f"the memory does not suffice: {_plain(message)}", hint="give the session more memory")
    if isinstance(error, duckdb.IOException):
        return StateError(_plain(message))
    named = condition(message)
    return QueryError(_plain(message) if named is None else f"[{named}] {_plain(message)}")


def _plain(message: str) -> str:
    """The message without DuckDB's class, the condition, and what follows the first line."""
    line = message.partition("\n")[0]
    return re.sub(r"^(?:[A-Z][A-Za-z ]* Error: )?(?:\[[A-Z_.]+\] )?", "", line)


def _filtered_here(column: str) -> str:
    """The column of an Arrow table or a Parquet file, so that DuckDB itself filters it and finds its extremes.

    Arrow takes NaN for no number, needs more modules for moments, and has no Bloom filter, which a join of DuckDB may
    push down (duckdb-python issue 463). This costs 4 ms in a million rows.
    """
    return f"coalesce({column}, NULL)"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _literally(path: str) -> str:
    """A path that is not a glob, whatever characters it contains."""
    return _text("".join(f"[{letter}]" if letter in "*?[" else letter for letter in path))


def _files(path: str) -> list[str]:
    """The Parquet file of a path, or those in the directory, as Spark names what it writes."""
    if not Path(path).is_dir():
        return [path]
    return sorted(str(file) for file in Path(path).iterdir() if not file.name.startswith((".", "_")))


SETTINGS = {
    "disabled_optimizers": OPTIMIZERS,
    "preserve_insertion_order": "false",
    # It would keep every staged file, which is read once, until memory is short.
    "enable_external_file_cache": "false",
}
"""Settings of every connection; proofs have them, too."""


def prepare(connection: duckdb.DuckDBPyConnection, zone: str = "UTC") -> None:
    """Sets what results and errors depend on."""
    for name, value in {**SETTINGS, "TimeZone": zone}.items():
        connection.execute(f"SET {name} = {text(value)}")


_NAMED = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
_MEANT: tuple[tuple[str, str], ...] = (
    (r"Overflow in (?:addition|subtraction|multiplication) of (?:INT8|INT16)\b", "BINARY_ARITHMETIC_OVERFLOW"),
    (r"Overflow in (?:addition|subtraction|multiplication) of DECIMAL", "NUMERIC_VALUE_OUT_OF_RANGE"),
    (r"Overflow (?:in|on) |overflow in|Overflow on abs", "ARITHMETIC_OVERFLOW"),
    (r"(?:to|cast value .* to) (?:type )?DECIMAL|Casting value .* to type DECIMAL", "NUMERIC_VALUE_OUT_OF_RANGE"),
    (r"Type INT128 .* destination type INT(?:32|64)", "ARITHMETIC_OVERFLOW"),
    (r"Failed to cast decimal value .* to type INT", "CAST_OVERFLOW"),
    (r"Could not convert string", "CAST_INVALID_INPUT"),
    (r"can't be cast because the value is out of range|out of range for the destination", "CAST_OVERFLOW"),
)


def condition(message: str) -> str | None:
    """The condition of Spark's error where DuckDB raises one with this message; None if it is not known.

    >>> condition("Invalid Input Error: [DIVIDE_BY_ZERO] Division by zero.")
    'DIVIDE_BY_ZERO'
    >>> condition("Out of Range Error: Overflow in addition of INT64 (9223372036854775807 + 1)!")
    'ARITHMETIC_OVERFLOW'
    """
    if found := _NAMED.search(message):
        return found[1]
    return next((name for pattern, name in _MEANT if re.search(pattern, message)), None)
