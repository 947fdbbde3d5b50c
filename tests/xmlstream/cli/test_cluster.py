"""A standalone cluster: master, worker, driver and executors are processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.harness.standalone import JAVA, standalone
from xmlstream.sources.generators.sensors import write_sensors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.rest, pytest.mark.spark, pytest.mark.slow]


def written(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.glob("slice-*.xml")}


def test_executors_of_a_standalone_cluster_write_what_one_process_writes(spark: SparkSession, tmp_path: Path) -> None:
    write_sensors(tmp_path / "in", sensors=2, hours=6, punctuations_per_hour=2, reports_per_hour=60, seed=4)
    query = xs.from_sql(spark, Path("data/warehouse.sql").read_text(), {"SENSORS": str(tmp_path / "in")})
    query.run(tmp_path / "alone", tmp_path / "checkpoint-alone")
    # The cluster computes a function of Python, too, whose modules lie beside the query.
    (tmp_path / "given.py").write_text("from helping import same\n\ndef again(x):\n    return same(x)\n")
    (tmp_path / "helping.py").write_text("def same(x):\n    return x\n")
    text = Path("data/warehouse.sql").read_text().replace("MAX(currtmp)", "MAX(again(currtmp))")
    (tmp_path / "q.sql").write_text(f"CREATE FUNCTION again AS 'given:again' RETURNS DOUBLE;\n{text}")
    command = [sys.executable, "-m", "xmlstream", "run", str(tmp_path / "q.sql"), "-D", f"SENSORS={tmp_path / 'in'}"]
    command += ["-o", str(tmp_path / "apart"), "--checkpoint", str(tmp_path / "checkpoint-apart")]
    # Two executors of one core: what one of them has staged, the other reads.
    command += ["--conf", "spark.executor.cores=1", "--conf", "spark.executor.memory=1g"]
    for which in ("driver", "executor"):
        command += ["--conf", f"spark.{which}.extraJavaOptions={JAVA}"]
    with standalone(tmp_path) as master:
        subprocess.run([*command, "--master", master], check=True, timeout=300)
    executors = [path for path in (tmp_path / "work").glob("app-*/*") if path.is_dir()]
    assert len(executors) == 2
    alone, apart = written(tmp_path / "alone"), written(tmp_path / "apart")
    assert alone
    assert apart == alone
