"""A run that goes on from its checkpoint may purge otherwise than the one before, and gives the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.harness.sealed_files import unseal
from xmlstream.operators.multiway_join import MultiwayJoin
from xmlstream.plan.nodes import topological
from xmlstream.plan.written_plan import PLAN_FILE, decoded
from xmlstream.punct_ns.xml_form import PUNCT_NS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

JOIN = "multiway_join"
QUERY = "".join(
    f"CREATE TABLE {name} ({x} INT, {y} INT) USING punctuated_xml OPTIONS (path '${{IN}}/{name}/*.xml', rowTag 'r',"
    f" maxFilesPerSlice '1', schemes '{x}; {y}');\n"
    for name, x, y in (("s1", "a", "b"), ("s2", "b", "c"), ("s3", "c", "a"))
)
RING = "SELECT {} s1.a, s2.b, s3.c FROM s1 JOIN s2 ON s1.b = s2.b JOIN s3 ON s2.c = s3.c AND s3.a = s1.a"


def write(directory: Path, number: int) -> None:
    """The documents of a slice: three tuples of each stream; those of the first three slices close in the fifth."""
    for name, (x, y) in {"s1": ("a", "b"), "s2": ("b", "c"), "s3": ("c", "a")}.items():
        keys = range(3 * number, 3 * number + 3)
        rows = "".join(f"<r><{x}>{key}</{x}><{y}>{key}</{y}></r>" for key in keys)
        closed = "".join(f"<punct:r><{one}>[0,8]</{one}></punct:r>" for one in (x, y)) if number == 4 else ""
        path = directory / name / f"{number}.xml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'<rs xmlns:punct="{PUNCT_NS}">{rows}{closed}</rs>')


def lines(out: Path) -> list[str]:
    """The tuples of a result."""
    said = [line for path in out.glob("slice-*.xml") for line in path.read_text().splitlines()]
    return sorted(line for line in said if "<row>" in line)


def purge(checkpoint: Path) -> int:
    """In every how many slices the join of the plan that ran looked."""
    (join,) = (node.operator for node in topological(decoded(unseal(checkpoint / PLAN_FILE))) if node.label == JOIN)
    assert isinstance(join, MultiwayJoin)
    return join.purge.every


def test_a_run_that_goes_on_purges_as_its_own_query_asks(spark: SparkSession, tmp_path: Path) -> None:
    query = xs.from_sql(spark, QUERY + RING.format(""), {"IN": str(tmp_path / "in")})
    for number in range(4):
        write(tmp_path / "in", number)
    query.run(tmp_path / "out", tmp_path / "state", keep_open=True)
    assert purge(tmp_path / "state") == 1
    write(tmp_path / "in", 4)
    # What asks for a purge is the same query.
    asked = xs.from_sql(spark, QUERY + RING.format("/*+ LAZY_PURGE(7) */"), {"IN": str(tmp_path / "in")})
    asked.run(tmp_path / "out", tmp_path / "state", keep_open=True)
    assert purge(tmp_path / "state") == 7
    write(tmp_path / "in", 5)
    query.run(tmp_path / "out", tmp_path / "state")
    assert purge(tmp_path / "state") == 1
    assert lines(tmp_path / "out") == sorted(f"<row><a>{key}</a><b>{key}</b><c>{key}</c></row>" for key in range(18))
