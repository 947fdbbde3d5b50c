"""Results in the program: a loop over the slices of a query, and all tuples of one whose input ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from xmlstream.builder.run_options import settings_of
from xmlstream.plan.nodes import Node
from xmlstream.runtime import runner
from xmlstream.runtime.settings import Settings
from xmlstream.session.java_logging import quiet_failures
from xmlstream.sink.program_sink import LoopSink
from xmlstream.sink.result_slice import ResultSlice, no_rows
from xmlstream.sink.target import PROGRAM, Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_SECONDS = 0.05
"""How long the end of a query may go unnoticed."""


def loop(
    spark: SparkSession, root: Node, checkpoint: str | None, *, follow: bool, **options: Any
) -> Iterator[ResultSlice]:
    """The slices of a query that runs while they are asked for; what makes it fail is raised by the one that asks."""
    sink = LoopSink(root.schema)
    target = Target("the loop over its slices", form=PROGRAM, taken=sink)
    # What is wrong with these is told before anyone asks for a slice.
    return _slices(spark, root, settings_of([target], checkpoint, follow=follow, **options), sink)


def _slices(spark: SparkSession, root: Node, settings: Settings, sink: LoopSink) -> Iterator[ResultSlice]:
    with quiet_failures(spark):
        launched = runner.launch(spark, root, settings)
        try:
            while True:
                is_over = launched.is_over()
                if (slice_ := sink.next(0 if is_over else _POLL_SECONDS)) is not None:
                    yield slice_
                    sink.done()
                elif is_over:
                    launched.wait()
                    return
        finally:
            sink.leave()
            launched.stop()


def all_tuples(spark: SparkSession, root: Node, **options: Any) -> pa.Table:
    """The tuples of all slices, in the order in which they come."""
    options.setdefault("follow", False)
    tables = [slice_.tuples for slice_ in loop(spark, root, None, **options)]
    return pa.concat_tables(tables or [no_rows(root.schema)], promote_options="permissive")
