"""A part of the suite that computes in process, where PySpark is not installed: nothing on that way asks for it."""

from __future__ import annotations

import os
import re
import subprocess
import sys

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


def test_in_process_nothing_asks_for_pyspark() -> None:
    options = ("-q", "-p", "no:cacheprovider", "-p", "tests.harness.without_pyspark", "-m", "not spark")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *PARTS],
        cwd=ROOT,
        # By night, too, this is a look at a few of them.
        env={name: value for name, value in os.environ.items() if name != "HYPOTHESIS_PROFILE"},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) > 100
