"""An environment in which PySpark is not installed: what computes in process needs none, and all else names it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.documentation.pages import ROOT

PARTS = (
    "tests/operators/test_group_by.py",
    "tests/operators/test_semi_join.py",
    "tests/operators/test_sort.py",
    "tests/operators/test_top_n.py",
    "tests/xmlstream/queries/test_lifespans.py",
    "tests/xmlstream/sink/test_program_sink.py",
    "tests/xmlstream/sink/test_result_tables.py",
    "tests/xmlstream/sql/test_refused_before_the_start.py",
    "tests/xmlstream/testing/test_case.py",
)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All packages of this environment but PySpark."""
    there = tmp_path_factory.mktemp("packages")
    for each in Path(sysconfig.get_path("purelib")).iterdir():
        if not each.name.startswith(("pyspark", "py4j")):
            (there / each.name).symlink_to(each)
    return there


def python(packages: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with these packages alone."""
    # By night, too, this is a look at a few of the tests.
    environment = {name: value for name, value in os.environ.items() if name != "HYPOTHESIS_PROFILE"}
    return subprocess.run(
        [sys.executable, "-S", *arguments],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": f"{ROOT}{os.pathsep}{packages}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


def test_in_process_nothing_asks_for_pyspark(packages: Path) -> None:
    done = python(packages, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not spark", *PARTS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) > 100


def test_without_it_a_run_is_in_process_and_says_so(packages: Path, tmp_path: Path) -> None:
    query = ("run", "data/warehouse.sql", "-D", "SENSORS=data", "-o", str(tmp_path / "out"))
    refused = python(packages, "-m", "xmlstream", *query, "--engine", "spark")
    assert refused.returncode == 2
    assert refused.stderr.splitlines() == [
        "Spark is not installed",
        "  Hint: pip install 'pyspark<4.4,>=4.1'; without it, use --engine duckdb",
    ]
    done = python(packages, "-m", "xmlstream", *query)
    assert done.returncode == 0
    first, *_ = done.stderr.splitlines()
    assert first == "PySpark is not installed: DuckDB computes, in this process (--engine duckdb)"


def test_without_it_what_spark_computes_names_what_to_install(packages: Path, tmp_path: Path) -> None:
    table = "CREATE TABLE s (sid STRING) USING punctuated_xml OPTIONS (path 'data/sensor1.xml', rowTag 'tempdata');"
    (tmp_path / "q.sql").write_text(f"{table} SELECT soundex(sid) AS x FROM s")
    refused = python(packages, "-m", "xmlstream", "run", str(tmp_path / "q.sql"), "-o", str(tmp_path / "out"))
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1] == "  Hint: Spark computes it: pip install 'pyspark<4.4,>=4.1'"
