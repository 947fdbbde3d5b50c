"""Sinks in the program: users' own sinks, of one method or of two phases; a function; a loop that takes the slices.

`Sink.write` and the function of `foreach_slice` take slices that are committed. A slice is drafted in the checkpoint
first (`xmlstream.sink.staged_sink`), and its draft is removed once it was taken. So a slice that is passed again, after
an error or a crash, has the same number and the same tuples. Before its commit a slice has no such number: the run that
computes it anew may read further.
"""

from __future__ import annotations

import inspect
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from xmlstream.punct_ns.errors import UsageError, counted
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.sink.result_tables import ResultSlice
from xmlstream.sink.sink import ComputedSlice, Draft, SinkHome, SinkKind, SinkLeft, SliceSink
from xmlstream.sink.staged_sink import StagedSlice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Function: TypeAlias = "Callable[[DataFrame | pa.Table, list[Punctuation], int], object]"
"""What `foreach_slice` takes: a function of the tuples, the punctuations and the number of a slice."""


class Sink(ABC):
    """Base class of users' sinks, for `run(sink=…)`, `start(sink=…)` and `insert_into(sink=…)`.

    The query calls `write` once for each slice, in order. If it raises an error, or the process dies before it has
    returned, the next run begins with the same call: the slice has the same `query`, `number`, tuples and punctuations.
    So each slice is written at least once; and once, if the receiver drops a number that it has. Slices without tuples
    and punctuations are not passed. The error ends the query, and is raised to the caller that waits for it.
    """

    @abstractmethod
    def write(self, slice_: ResultSlice) -> None:
        """Takes a slice; when it returns, the slice must not get lost any more."""

    def close(self) -> None:
        """Releases resources after the query has ended; by default does nothing."""
        return


@runtime_checkable
class TwoPhaseSink(Protocol):
    """User's receiver of slices that shows each slice once, for `run(sink=…)`, `start(sink=…)` and `insert_into`.

    For each slice, the query calls `draft`, commits the slice, and calls `commit`. The process may die at any point. A
    slice that was drafted but not committed is drafted again under its number, perhaps with more tuples, and replaces
    the first draft. A slice that the query has committed is committed here by the next run at the latest, perhaps for
    the second time. So data written by `draft` must outlive the process, and a repeated `commit` must do nothing; then
    each slice counts once.

    An error raised here ends the query, and is raised to the caller that waits for it.
    """

    def draft(self, slice_: ResultSlice) -> None:
        """Stores a slice without showing it to readers. Slices without tuples and punctuations are not passed."""

    def commit(self, number: int) -> None:
        """Shows the slice with that number, the last one drafted: it is committed."""


class EachSlice(Sink):
    """Passes slices to a function: on Spark a DataFrame, in process an Arrow table."""

    def __init__(self, function: Function, *, on_spark: bool) -> None:
        what = "the tuples, the punctuations and the number of a slice: f(tuples, punctuations, number)"
        require_function("foreach_slice", function, what, (), [], 0)
        self._function, self._on_spark = function, on_spark

    def write(self, slice_: ResultSlice) -> None:
        """Calls the function."""
        tuples = slice_.to_dataframe() if self._on_spark else slice_.tuples
        self._function(tuples, list(slice_.punctuations), slice_.number)

    def __str__(self) -> str:
        return f"the function {_named(self._function)}"


def _named(function: object) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))


def require_function(name: str, function: object, what: str, *arguments: object) -> None:
    """Requires that a function can be called with the arguments that it will get.

    Args:
        name: What takes the function.
        function: The function.
        what: What is passed to it, in words.
        arguments: Such arguments.

    Raises:
        UsageError: It is no function, or has other parameters.
    """
    hint = f"pass a function of {what}"
    if not callable(function):
        raise UsageError(f"{name} takes a function, not a {type(function).__name__}", hint=hint)
    try:
        parameters = inspect.signature(function)
    except ValueError:
        return  # of what is built in, parameters may be unknown
    try:
        parameters.bind(*arguments)
    except TypeError as error:
        number = counted(len(arguments), "argument")
        raise UsageError(f"{name} passes {number}, and {_named(function)}: {error}", hint=hint) from None


class SinkLoader:
    """Passes the committed slices of a run to a user's sink (`xmlstream.sink.staged_sink.Loader`)."""

    def __init__(self, sink: Sink, home: SinkHome) -> None:
        self._sink, self._home = sink, home

    def prepare(self) -> None:
        """Does nothing: a user's sink prepares itself."""

    def load(self, staged: StagedSlice) -> None:
        """Has the sink write the slice."""
        slice_ = ResultSlice(
            staged.number,
            tuple(staged.punctuations),
            staged.exact,
            staged.schema,
            self._home.query,
            staged.table,
            staged.batches,
            lambda: staged.frame(self._home),
        )
        with _noted(self._sink, f"write slice {staged.number}", "the next run begins with this slice again"):
            self._sink.write(slice_)

    def close(self) -> None:
        """Closes the sink."""
        self._sink.close()


class ProgramSink(SliceSink):
    """Sink of a run that calls a user's two-phase sink."""

    def __init__(self, sink: TwoPhaseSink, schema: Schema, query: str) -> None:
        self._sink, self._schema, self._query = sink, schema, query

    def draft(self, slice_: ComputedSlice) -> Draft | None:
        """Passes the slice on unless it is empty."""
        drafted = ResultSlice.of(slice_, self._schema, self._query)
        if drafted is None:
            return None
        with _noted(self._sink, f"draft slice {slice_.number}", "the slice is not committed"):
            self._sink.draft(drafted)
        return Draft(str(slice_.number), "")

    def publish(self, draft: Draft | None) -> None:
        """Commits the slice in the user's sink."""
        if draft is not None:
            with _noted(self._sink, f"commit slice {draft.name}", "the next run commits it again"):
                self._sink.commit(int(draft.name))


@contextmanager
def _noted(sink: object, work: str, then: str) -> Iterator[None]:
    """Notes in the errors of a user's sink which sink could not do what, and what happens next."""
    try:
        yield
    except Exception as error:
        error.add_note(f"{name_of_sink(sink)} could not {work}; {then}")
        raise


class LoopSink(SliceSink):
    """Passes slices to a loop in another thread: each is committed once the loop requests the next one.

    So a slice in whose turn the loop ends, by an error or the death of the process, is not committed and comes again.

    Attributes:
        query: Identifier of the query, set before the first slice.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema, self.query = schema, ""
        self._drafted: ResultSlice | None = None
        self._handed: queue.Queue[ResultSlice] = queue.Queue(1)
        self._done = threading.Semaphore(0)
        self._is_left = False

    def next(self, seconds: float) -> ResultSlice | None:
        """The next slice; None if there is none within that time."""
        try:
            return self._handed.get(timeout=seconds)
        except queue.Empty:
            return None

    def done(self) -> None:
        """Called by the loop when it has processed its slice."""
        self._done.release()

    def leave(self) -> None:
        """Called when the loop ends: it takes no more slices."""
        self._is_left = True
        self._done.release()

    def draft(self, slice_: ComputedSlice) -> Draft | None:
        """Keeps the slice until `deliver` passes it on."""
        self._drafted = ResultSlice.of(slice_, self._schema, self.query)
        return None

    def deliver(self) -> None:
        """Passes the slice to the loop, and waits until the loop has processed it.

        Raises:
            SinkLeft: The loop has ended.
        """
        if self._drafted is not None and not self._is_left:
            self._handed.put(self._drafted)
            self._done.acquire()
        if self._is_left:
            raise SinkLeft


TWO_PHASE = SinkKind(name="program", example="sink=… with draft and commit", is_path=False)
"""Sinks that are objects of the program, and take slices before their commit; no output names this kind."""

WRITTEN = SinkKind(name="sink", example="sink=… with write", is_path=False)
"""Sinks that are objects of the program, and take committed slices; no output names this kind."""

Taken: TypeAlias = Sink | TwoPhaseSink | LoopSink
"""Objects of the program that take slices."""


def sink_of(given: object) -> Sink | TwoPhaseSink:
    """The object, checked to be a user's sink.

    Raises:
        UsageError: It is neither a `Sink`, nor has it `draft` and `commit`.
    """
    if not isinstance(given, Sink | TwoPhaseSink):
        hint = "a sink extends xs.Sink, with write(slice); or has draft(slice) and commit(number): xs.TwoPhaseSink"
        raise UsageError(f"a {type(given).__name__} is not a sink", hint=hint)
    return given


def made_sink(name: str, options: Mapping[str, str]) -> Sink | TwoPhaseSink:
    """A sink of a user's class, named `module:Class` and called with the options as keywords.

    Raises:
        UsageError: There is no such class, it does not take these options, or it makes no sink.
    """
    module, _, path = name.partition(":")
    try:
        made: Any = import_module(module)
        for part in path.split("."):
            made = getattr(made, part)
    except (ImportError, AttributeError, ValueError) as error:
        hint = "write 'module:Class', and put the folder of the module into PYTHONPATH"
        raise UsageError(f"the sink {name} cannot be imported: {error}", hint=hint) from error
    try:
        inspect.signature(made).bind(**options)
    except TypeError as error:
        hint = "the options are the keywords of the class"
        raise UsageError(f"the sink {name} cannot be made of the options: {error}", hint=hint) from None
    return sink_of(made(**options))


def name_of_sink(sink: object) -> str:
    """A user's sink as errors name it."""
    return str(sink) if isinstance(sink, EachSlice) else f"the sink {type(sink).__name__}"
