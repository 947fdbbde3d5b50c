"""Asks Spark the fixed questions of the tests, and keeps its answers for the installed minor of PySpark.

    .ci/java .venv/bin/python -m tests.tools.answers

Spark must agree with DuckDB on each: a file with a difference is not written. `tests.harness.kept_answers` reads it.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.harness.kept_answers import WRITES, path
from tests.harness.pages import ROOT

QUESTIONS = ("tests/operators/in_process/test_proven.py", "tests/xmlstream/sql/clauses/test_time_windows.py")


def main() -> int:
    """Runs the tests that ask Spark, and prints where the answers are; the exit code."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "spark and rest", *QUESTIONS]
    path().unlink(missing_ok=True)
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, WRITES: "1"}, check=False)
    print(path().relative_to(ROOT), f"{path().stat().st_size:,} bytes" if path().exists() else "is not written")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
