"""An environment in which PySpark is not installed: what computes in process needs none, and all else names it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.harness.pages import ROOT

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

INSTALL = "pip install 'pyspark<4.4,>=4.1'"
IN_PROCESS = "PySpark is not installed: running in process, on DuckDB"


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


@pytest.mark.rest
def test_in_process_nothing_asks_for_pyspark(packages: Path) -> None:
    done = python(packages, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not spark", *PARTS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) > 100


def test_without_it_duckdb_computes_what_is_proven_and_names_what_is_not(packages: Path, tmp_path: Path) -> None:
    run = ("-m", "xmlstream", "run", "data/warehouse.sql", "-D", "SENSORS=data")
    done = python(packages, *run, "-o", str(tmp_path / "out"))
    assert (done.returncode, done.stderr.splitlines()[0]) == (0, IN_PROCESS)
    query = tmp_path / "refused.sql"
    query.write_text(Path(ROOT, "data/warehouse.sql").read_text("utf-8").replace("MAX(", "KURTOSIS("), "utf-8")
    refused = python(packages, "-m", "xmlstream", "run", str(query), "-D", "SENSORS=data", "-o", str(tmp_path / "no"))
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (2, IN_PROCESS)
    assert refused.stderr.splitlines()[-1] == f"  Hint: Spark computes it: {INSTALL}"
    asked = python(packages, *run, "-o", str(tmp_path / "no"), "--engine", "spark")
    assert asked.returncode == 2
    assert asked.stderr.splitlines() == [
        "Spark is not installed",
        f"  Hint: {INSTALL}; without it, use --engine duckdb",
    ]
    session = python(packages, "-c", "import xmlstream as xs; print(type(xs.open_session()).__name__)")
    assert (session.stdout, session.stderr) == ("InProcessSession\n", f"{IN_PROCESS}\n")
