"""Python functions in Spark: given to a session over Arrow's columns, and sent to workers by value.

Spark computes such a function for all rows of its input, also for those whose value CASE or AND leave out. So each
result is a structure with the text of its error, which the surrounding expression raises where the value is used.

Functions of this package over the partitions of a frame are sent to workers, too: `ResultRow`, `OneJob`.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa

from xmlstream.dataclasses import dataclass
from xmlstream.operators.expressions.dialect import call_name, expression, render
from xmlstream.operators.expressions.operations.group_calls import arrow_call
from xmlstream.operators.expressions.operations.python_functions import PythonFunction, called_in, known_by
from xmlstream.punct_ns.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Job = TypeVar("Job")
Result = TypeVar("Result")

_GIVEN: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()
"""The Python functions that sessions have, by their keys."""


def with_functions(text: str, spark: SparkSession) -> str:
    """The text as Spark takes it; the session has the Python functions that it calls."""
    functions = called_in(text)
    for function in functions:
        give_function(function, spark)
    return _with_errors(text) if functions else text


def give_function(function: PythonFunction, spark: SparkSession, *, typed: bool = False) -> None:
    """Gives a session a function once; a `typed` one is there for Spark's analyser alone."""
    from pyspark.sql.udf import UserDefinedFunction
    from pyspark.util import PythonEvalType

    if type(spark).__module__.startswith("pyspark.sql.connect"):
        hint = "use a classic session, or DuckDB in process; or write what the function does in SQL"
        raise UsageError(f"the function {function.name} of Python does not run over Spark Connect", hint=hint)
    given = _GIVEN.setdefault(spark, set())
    if function.key in given:
        return
    of = function.type.name
    returns = of if typed else f"struct<value: {of}, error: string>"
    call: Any = UserDefinedFunction(Sent(function), returns, function.key, PythonEvalType.SQL_SCALAR_ARROW_UDF)
    spark.udf.register(function.key, call)
    given.add(function.key)


@lru_cache(maxsize=1024)
def _with_errors(text: str) -> str:
    """The text, each call with its error; the call stands three times in the text, and is computed once."""
    tree = expression(text)
    for call in reversed([node for node in tree.walk(bfs=False) if known_by(call_name(node)) is not None]):
        of = render(call)
        instead = expression(f"if(isnull({of}.error), {of}.value, raise_error({of}.error))")
        tree = instead if call is tree else tree
        call.replace(instead)
    return render(tree)


@dataclass(frozen=True, slots=True)
class Sent:
    """The call of a function that workers make.

    Its code is sent by value, since workers may lack its module; modules beside that are found where the directory is.
    """

    function: PythonFunction

    def __call__(self, *columns: Any) -> Any:
        """The results and errors for the rows."""
        return arrow_call(self.function, in_fields=True)(*columns)

    def __reduce__(self) -> tuple[Any, ...]:
        """Its parts, with the function as bytes."""
        from pyspark import cloudpickle as untyped

        cloudpickle: Any = untyped
        of, module = self.function, sys.modules.get(self.function.origin.partition(":")[0])
        by_value = module is not None and module.__name__ not in cloudpickle.list_registry_pickle_by_value()
        if by_value:
            cloudpickle.register_pickle_by_value(module)
        try:
            code = cloudpickle.dumps(of.call)
        finally:
            if by_value:
                cloudpickle.unregister_pickle_by_value(module)
        return _received, (of.directory, code, of.name, of.type, of.declared, of.takes, of.number, of.step)


def _received(directory: str | None, code: bytes, name: str, *others: Any) -> Sent:
    """The call in a worker."""
    if directory is not None and directory not in sys.path:
        sys.path.append(directory)
    return Sent(PythonFunction(name, pickle.loads(code), *others))  # noqa: S301 - this query's driver has written it


@dataclass(frozen=True, slots=True)
class ResultRow:
    """In a task: gives the result of a function of record batches as a row."""

    function: Callable[[Iterable[pa.RecordBatch]], Any]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"result": [pickle.dumps(self.function(batches))]})


@dataclass(frozen=True, slots=True)
class OneJob(Generic[Job, Result]):
    """In a task: does the job whose number is its one row."""

    function: Callable[[Job], Result]
    jobs: tuple[Job, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Result:
        numbers: list[Any] = [number for batch in batches for number in batch.column(0).to_pylist()]
        (number,) = numbers
        return self.function(self.jobs[number])
