"""How soon a group is out once its punctuation has come (Tucker et al. 2003, Fig. 2b), the sources idle otherwise.

make bench, or .ci/java .venv/bin/pytest --capture=no tests/benchmarks/first_result.py
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks import asking
from tests.benchmarks.measuring import ROUNDS, Measure
from xmlstream.punct_ns.xml_form import PUNCT_NS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

REPORTS = 1000
PATIENCE, QUIET = 60.0, 1.5
"""Seconds to wait for a result at most, and from the last one on until the query has nothing to do."""


def append(directory: Path, hour: int, *, over: bool) -> None:
    """An hour's reports to both sensors' documents, or the word that it is over."""
    for sensor in (1, 2):
        reports = "".join(
            f"<tempdata><sid>S{sensor}</sid><hour>{hour}</hour><min>{number % 60}</min>"
            f"<currtmp>{60 + number % 50 / 10}</currtmp></tempdata>\n"
            for number in range(REPORTS)
        )
        punctuation = f"<punct:tempdata><sid>*</sid><hour>{hour}</hour></punct:tempdata>\n"
        with (directory / f"sensor{sensor}.xml").open("a", encoding="utf-8") as file:
            file.write(punctuation if over else reports)


def seconds_until(output: Path, hour: int) -> float:
    """How long it takes until a committed document has the hour."""
    wanted, began = f"<hour>{hour}</hour>", time.perf_counter()
    while time.perf_counter() - began < PATIENCE:
        if any(wanted in path.read_text(encoding="utf-8") for path in output.glob("slice-*.xml")):
            return time.perf_counter() - began
        time.sleep(0.005)
    raise AssertionError(f"hour {hour} is not out after {PATIENCE:g} s")


def test_first_result(spark: SparkSession, bench: list[Measure], scratch: Path) -> None:
    directory, output = scratch / "live", scratch / "live-out"
    directory.mkdir()
    for sensor in (1, 2):
        (directory / f"sensor{sensor}.xml").write_text(f'<readings xmlns:punct="{PUNCT_NS}">\n', encoding="utf-8")
    query = asking.warehouse(spark, directory).start(output, scratch / "live-checkpoint", row_tag="hottest")
    waited = []
    try:
        for hour in range(ROUNDS + 2):
            append(directory, hour, over=False)
            time.sleep(QUIET)  # its reports are in, and their slice is over
            append(directory, hour, over=True)
            waited.append(seconds_until(output, hour))
            time.sleep(QUIET / 3)
            assert query.isActive
    finally:
        query.stop()
    note = f"of {2 * REPORTS:,} reports; from the punctuations' arrival in both files to the committed document"
    bench.append(Measure("first result, sources idle otherwise", "s", "less", waited[2:], target=1, note=note))
