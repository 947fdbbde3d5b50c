"""A slice of a join of many streams, ten tuples of each, which are kept for two slices; on both engines.

    make bench, or .ci/java .venv/bin/pytest --capture=no tests/benchmarks/joins.py

Processor time of this process, of Java and of its workers, from commit to commit. On a path, each stream is joined with
the one before; in a star, all are joined on one key.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.benchmarks.engines import SLICES, a_slice
from tests.benchmarks.measuring import Measure, few_rounds, take_turns
from tests.samples.joined_streams import Shape, join_of, write_streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TARGETS = {2: 0.1, 5: 0.2, 10: 0.4, 20: 0.9}
"""Seconds of a slice in process, by the number of streams."""


@pytest.mark.parametrize("shape", ["star", "path"])
def test_a_slice_of_a_join_of_many(spark: SparkSession, bench: list[Measure], scratch: Path, shape: Shape) -> None:
    here = xs.open_session(engine="duckdb")
    try:
        for streams, target in TARGETS.items():
            directory = scratch / f"{shape}-{streams}"
            write_streams(directory, streams, SLICES)
            turns = {
                name: partial(a_slice, xs.from_sql(session, join_of(directory, streams, shape)), scratch / name)
                for name, session in (("here", here), ("spark", spark))
            }
            took = take_turns(turns, few_rounds(3))
            name = f"a slice of a join of {streams} streams in process, {shape}"
            bench.append(Measure(name, "s", "less", took["here"], "Spark", took["spark"], target=target))
    finally:
        here.stop()
