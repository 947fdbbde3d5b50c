"""Static input of a running query: read once by the first slice, and closed from then on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from operators.state.behaviour import Slice, Tuples
from operators.state.operator_state import OperatorState
from operators.state.parquet_files import LITERAL
from operators.state.segments import COLLECTED
from operators.state.state_schema import StateSchema
from punct_ns.errors import InputError
from punct_ns.punctuation import Punctuation
from sources.xml.options.local_paths import absolute
from xmlstream.plan.nodes import Static
from xmlstream.session.spark_errors import first_cause

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class StaticInput:
    """A static input of a running query; after its only slice it is closed.

    Of the last slice: the `items` that came, and the `punctuations` among them; nothing is ever `set_aside`.
    """

    set_aside = 0

    def __init__(self, spark: SparkSession, static: Static, state: OperatorState) -> None:
        self.items = self.punctuations = 0
        self._spark, self._static, self._state = spark, static, state
        # Read by the first slice, wherever this process is then.
        self._path = absolute(dict(static.options).get("path", ""))
        self._said = state.punctuations("said")

    @staticmethod
    def state_schema(static: Static) -> StateSchema:
        """That it has been read."""
        return StateSchema(sets={"said": static.schema})

    @property
    def closed(self) -> bool:
        """It has been read."""
        return self._said.set.is_all

    def slice(self) -> Slice:
        """All tuples and the end of them, the first time; then nothing.

        Raises:
            InputError: It cannot be read.
        """
        self.items = self.punctuations = 0
        if self.closed:
            return Slice(None)
        # Not collected, since nobody knows how many they are.
        try:
            tuples = self._state.computed(Tuples(self._frame(), COLLECTED + 1))
        except Exception as error:  # noqa: BLE001 - whatever Spark says of it, the table is what cannot be read
            where = dict(self._static.options).get("path")
            what = f"the static table {self._static.name} cannot be read: {first_cause(error)}"
            raise InputError(what, where=where) from None
        self.items, self.punctuations = tuples.at_most + 1, 1
        return Slice(tuples, tuple(self._said.absorb([Punctuation.all(self._static.schema)])))

    def _frame(self) -> DataFrame:
        static = self._static
        if static.frame is not None:
            return static.frame
        assert static.format is not None
        options = {"mode": "FAILFAST", **dict(static.options)}
        options.pop("path")
        path = self._path
        if Path(path.removeprefix("file://")).exists():
            options |= LITERAL
        return self._spark.read.format(static.format).schema(static.schema.ddl()).options(**options).load(path)
