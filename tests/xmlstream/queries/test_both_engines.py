"""The queries of `data/` in both engines: the same documents slice by slice, or refused for a listed reason."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.data_queries import REFUSED, Written, malformed, queries, refusal, run, write_inputs, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import InProcessSession

pytestmark = pytest.mark.rest

EVENTS, SLICE = 400, "32k"

ASKED = queries(SLICE)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("inputs")
    write_inputs(directory, EVENTS)
    bids = directory / "one" / "bid.xml"
    bids.write_text(malformed(bids.read_text(encoding="utf-8")), encoding="utf-8")
    return directory


@pytest.fixture(scope="module")
def alone(in_process: InProcessSession, inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Runs each query in process; why some are refused."""
    out = tmp_path_factory.mktemp("alone")
    found = {asked.name: refusal(in_process, asked, inputs, out) for asked in ASKED}
    return {"": str(out), **{name: why for name, why in found.items() if why is not None}}


def test_what_duckdb_refuses_is_listed(alone: dict[str, str]) -> None:
    refused = {name: why for name, why in alone.items() if name}
    assert refused.keys() == REFUSED.keys()
    assert all(REFUSED[name] in why for name, why in refused.items())


@pytest.mark.slow
def test_both_engines_write_the_same(
    spark: SparkSession, in_process: InProcessSession, inputs: Path, alone: dict[str, str], tmp_path: Path
) -> None:
    for session, name in ((spark, "spark"), (in_process, "in process")):
        out = tmp_path / name
        run([each for asked in ASKED if asked.name not in REFUSED for each in asked.inserts(session, inputs, out)])
    expected, found, by_itself = written(tmp_path / "spark"), written(tmp_path / "in process"), written(Path(alone[""]))
    assert expected.keys() == found.keys() == by_itself.keys()
    for name, documents in expected.items():
        assert found[name] == documents, name
        # Alone its slices are others, and so are its punctuations, of which several may be one.
        assert tuples(by_itself[name]) == tuples(documents), name
    assert max(map(len, expected.values())) > 3


def tuples(documents: Written) -> Counter[bytes]:
    """All tuples."""
    return reduce(add, (found for found, _ in documents.values()))
