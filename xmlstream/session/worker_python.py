"""The Python command for Spark's workers on this machine, with which they start in a third of the time.

Spark puts its own `pyspark.zip` first into the workers' import path. The archive has only source files, which Python
compiles in every process: about 0.8 s on two cores. A query waits for such processes where tasks write a large result,
and a stream of `punctuated_xml` for five, one after the other. The same PySpark is installed beside this package,
compiled. So the workers' command removes Spark's archives from `PYTHONPATH`, and keeps the rest.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_VARIABLES = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")

_SCRIPT = """#!/bin/sh
rest=$PYTHONPATH: PYTHONPATH=
while [ -n "$rest" ]; do
    entry=${{rest%%:*}} rest=${{rest#*:}}
    case $entry in
        */pyspark.zip | */py4j-*-src.zip) ;;
        *) PYTHONPATH=$PYTHONPATH${{PYTHONPATH:+:}}$entry ;;
    esac
done
export PYTHONPATH
exec {python} "$@"
"""


def passing_directory(purpose: str) -> Path:
    """A new directory that is removed when this process ends."""
    directory = tempfile.mkdtemp(prefix=f"xmlstream-{purpose}-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


def choose(*, one_process: bool) -> None:
    """Sets the environment variables for the workers' Python, unless the user has set them.

    Args:
        one_process: All of Spark runs in one process on this machine.
    """
    quick = _quick()
    mine = str(quick) if one_process and quick is not None else sys.executable
    for variable in _VARIABLES:
        # An earlier session of this process may have had another master.
        if os.environ.get(variable) in (None, sys.executable, str(quick)):
            os.environ[variable] = mine


@cache
def _quick() -> Path | None:
    """A script that starts this Python without Spark's archives; None if it is not possible or not needed."""
    if os.name != "posix" or not _spark_is_installed_beside():
        return None
    script = passing_directory("python") / "python"
    script.write_text(_SCRIPT.format(python=shlex.quote(sys.executable)), encoding="utf-8")
    script.chmod(0o700)
    # Temporary directories are sometimes mounted without permission to execute files.
    return script if os.access(script, os.X_OK) else None


def _spark_is_installed_beside() -> bool:
    """Whether PySpark is installed as files, so that Python can compile them once, and belongs to the Spark in use."""
    packages = [find_spec(name) for name in ("pyspark", "py4j")]
    origins = [Path(found.origin) for found in packages if found is not None and found.origin is not None]
    if len(origins) < len(packages) or not all(origin.is_file() for origin in origins):
        return False
    return Path(os.environ.get("SPARK_HOME", origins[0].parent)).resolve() == origins[0].parent.resolve()
