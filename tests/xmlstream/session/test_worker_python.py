"""Which Python Spark's workers get, and what they import from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from xmlstream.session import spark_session

PYTHON, DRIVER_PYTHON = "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (PYTHON, DRIVER_PYTHON, "SPARK_HOME"):
        # First set, so that it is restored whatever a test makes of it.
        monkeypatch.setenv(variable, "")
        monkeypatch.delenv(variable)
    spark_session._quick_python.cache_clear()


def imports(python: str, path: str) -> tuple[str, str, list[str]]:
    """What a worker finds: the file of PySpark, its PYTHONPATH, its arguments."""
    program = "import json, os, pyspark, sys; print(json.dumps([pyspark.__file__, os.environ['PYTHONPATH'], sys.argv]))"
    command = [python, "-c", program, "-m", "a b", "*"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=True, capture_output=True, text=True)
    file, path, arguments = json.loads(done.stdout)
    return file, path, arguments


def test_workers_import_the_compiled_spark_and_whatever_else_their_path_has(tmp_path: Path) -> None:
    import pyspark

    spark_session.choose_python(one_process=True)
    installed = Path(pyspark.__file__)
    archives = [str(path) for path in (installed.parent / "python" / "lib").glob("*.zip")]
    assert len(archives) == 2
    others = ["/opt/some where", "/opt/spark-core.jar", str(tmp_path)]
    file, path, arguments = imports(os.environ[PYTHON], ":".join([*archives, *others]))
    assert Path(file) == installed
    assert path == ":".join(others)
    assert arguments[1:] == ["-m", "a b", "*"]
    assert imports(os.environ[DRIVER_PYTHON], "")[1] == ""
    # Without the script it is the archive's, which is what the script is for.
    assert ".zip" in imports(sys.executable, ":".join([*archives, *others]))[0]


def test_what_the_user_named_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PYTHON, "/opt/env/bin/python")
    spark_session.choose_python(one_process=True)
    assert os.environ[PYTHON] == "/opt/env/bin/python"


def test_on_a_cluster_it_is_this_python_even_after_a_session_on_this_machine() -> None:
    spark_session.choose_python(one_process=True)
    assert os.environ[PYTHON] != sys.executable
    spark_session.choose_python(one_process=False)
    assert (os.environ[PYTHON], os.environ[DRIVER_PYTHON]) == (sys.executable, sys.executable)


def test_beside_another_spark_its_own_archives_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    spark_session.choose_python(one_process=True)
    assert os.environ[PYTHON] == sys.executable
