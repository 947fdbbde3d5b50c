"""The queries, asked through the public interface, and results read back from XML, ours and Spark's alike."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lxml import etree

import xmlstream as xs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAREHOUSE = Path("data/warehouse.sql")
CLOSING_PRICE = Path("data/auctions/tucker_2007_query_2.sql")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a query: the seconds of the whole call, the report of each slice, and when it was committed."""

    seconds: float
    slices: list[dict[str, Any]]
    commits: list[float]

    @property
    def between_commits(self) -> list[float]:
        """The seconds from the commit of a slice to that of the next: all that a slice costs, Spark's share too."""
        return [after - before for before, after in pairwise(self.commits)]

    @property
    def slice_seconds(self) -> float:
        """Those of the slices, from arrival to commit, added up."""
        return float(sum(one["seconds"] for one in self.slices))


def run(
    query: xs.Query,
    output: Path,
    row_tag: str = "row",
    *,
    as_written: bool = False,
    monitor: bool | str = False,
    engine: Literal["auto"] | None = None,
) -> Run:
    """Runs a query to the end of its input, made cheaper or `as_written`; what is in the output goes first."""
    shutil.rmtree(output, ignore_errors=True)
    slices: list[dict[str, Any]] = []
    commits: list[float] = []

    def note(report: dict[str, Any]) -> None:
        slices.append(report)
        commits.append(time.perf_counter() - began)

    began = time.perf_counter()
    query.run(output, row_tag=row_tag, on_slice=note, as_written=as_written, monitor=monitor, engine=engine)
    return Run(time.perf_counter() - began, slices, commits)


def warehouse(spark: SparkSession, directory: Path, bytes_per_slice: str = "64m") -> xs.Query:
    """The highest temperature of each hour, of two sensors."""
    text = WAREHOUSE.read_text(encoding="utf-8")
    text = text.replace("schemes 'hour'", f"schemes 'hour', maxBytesPerSlice '{bytes_per_slice}'")
    return xs.from_sql(spark, text, {"SENSORS": str(directory)})


def hottest(spark: SparkSession, document: Path, bytes_per_slice: str = "64m") -> xs.Query:
    """The same of one sensor alone."""
    schema = "sid STRING, hour INT, min INT, currtmp DOUBLE"
    options = {"rowTag": "tempdata", "schemes": "hour", "maxBytesPerSlice": bytes_per_slice}
    source = xs.read(spark, document, schema=schema, **options)
    return source.select("currtmp", "hour").distinct().group_by("hour").agg("max(currtmp) AS maxtemp")


def closing_price(
    spark: SparkSession, directory: Path, bytes_per_slice: tuple[str, str] | None = None, *, all_bids: bool = False
) -> xs.Query:
    """The highest bid on each item, of two streams of bids; with `all_bids`, equal bids are not looked for.

    `bytes_per_slice`: of the auctions and of each stream of bids; as the file says by default.
    """
    text = CLOSING_PRICE.read_text(encoding="utf-8")
    if bytes_per_slice is not None:
        for said, wanted in zip(("55m", "160m"), bytes_per_slice, strict=True):
            text = text.replace(f"maxBytesPerSlice '{said}'", f"maxBytesPerSlice '{wanted}'")
    if all_bids:
        text = text.replace("UNION SELECT", "UNION ALL SELECT")
    return xs.from_sql(spark, text, {"AUCTIONS": str(directory)})


def rows(directory: Path, row_tag: str) -> Iterator[dict[str, str]]:
    """The tuples of all documents of a directory, leaf texts by name; punctuations are of another namespace."""
    for path in sorted(directory.iterdir()):
        # Of a part without rows Spark writes an empty file.
        if path.name.startswith(("slice-", "part-")) and path.stat().st_size:
            for _, element in etree.iterparse(path, tag=row_tag):
                yield {str(child.tag): child.text or "" for child in element}
                element.clear()
