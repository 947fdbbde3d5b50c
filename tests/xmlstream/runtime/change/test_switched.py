"""A query goes on in the other engine after every slice, with its state, and writes what it would have written in one.

A checkpoint says nothing of engines: segments, offsets and commits are the same files.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.harness.data_queries import Asked, queries, write_inputs, written
from tests.harness.set_clock import set_clock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import InProcessSession, Session

pytestmark = pytest.mark.rest

NAMES = ("nexmark_q5", "nexmark_q6", "nexmark_q9", "nexmark_q11", "nexmark_q12", "nexmark_q16", "nexmark_q20")
"""Windows, ranks, row windows, joins in a range, sessions, the slice's time, distinct values, and joins on keys."""


@pytest.mark.slow
def test_switched_at_every_slice_queries_write_the_same(
    spark: SparkSession, in_process: InProcessSession, tmp_path: Path
) -> None:
    write_inputs(tmp_path / "in", 900)
    asked = [each for each in queries("80k") if each.name in NAMES]
    assert len(asked) == len(NAMES)
    whole = run(in_process, asked, tmp_path, "whole", 0)
    assert len(whole) > 3
    slices: list[int] = []
    for number in range(2 * len(whole)):
        session = in_process if number % 2 else spark
        with suppress(Stopped):
            slices += run(session, asked, tmp_path, "switched", len(slices), slices)
            break
    assert slices == whole
    found, expected = written(tmp_path / "switched"), written(tmp_path / "whole")
    assert found.keys() == expected.keys()
    for name, documents in expected.items():
        assert found[name] == documents, name


class Stopped(Exception):
    """The run is to go on by the other engine."""


def run(
    session: Session, asked: list[Asked], directory: Path, name: str, begin: int, slices: list[int] | None = None
) -> list[int]:
    """Runs the queries from their checkpoint on; returns the items of slices. With a list of these, only one slice."""
    seen: list[int] = []

    def noting(report: dict[str, Any]) -> None:
        seen.append(report["items_in"])
        if slices is not None:
            slices.append(report["items_in"])
            raise Stopped

    inserts = [each for one in asked for each in one.inserts(session, directory / "in", directory / name)]
    with set_clock(seconds=4, begin=begin):
        xs.run(inserts, directory / f"state of {name}", on_slice=noting)
    return seen
