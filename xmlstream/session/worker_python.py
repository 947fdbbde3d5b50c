"""The Python that Spark starts its workers with, on this machine, so that they start in a third of the time.

Spark puts its own `pyspark.zip` in front of all that the workers import from. It holds sources only, and Python
compiles them anew in every process: about 0.8 s on two cores, and a query that reads Python sources waits for five such
processes, one after the other. The same PySpark is installed beside this package, compiled. So workers get a Python
that leaves Spark's archives out of `PYTHONPATH`; all else that is in it stays. Nor does it look into the current
directory first, where modules may be called like this project's packages.
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

from xmlstream.session import own_packages

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
exec {python} -P "$@"
"""

_OURS = "spark.executorEnv.PYTHONPATH"
_SAFE_PATH = "spark.executorEnv.PYTHONSAFEPATH"


def choose(*, one_process: bool) -> None:
    """Names the Python of Spark's workers in the environment, unless the user has named one.

    Args:
        one_process: Whether all of Spark runs in one process on this machine.
    """
    quick = _quick()
    mine = str(quick) if one_process and quick is not None else sys.executable
    for variable in _VARIABLES:
        # A session before this one may have had another master.
        if os.environ.get(variable) in (None, sys.executable, str(quick)):
            os.environ[variable] = mine


def finds_ours(*, one_machine: bool) -> dict[str, str]:
    """Spark's configuration by which workers, whatever Python they get, find this project's packages and no others.

    Args:
        one_machine: Whether the workers see the files of this process.
    """
    if one_machine and own_packages.hidden_by(os.environ.get("PYTHONPATH", "")) is not None:
        return {_SAFE_PATH: "1", _OURS: str(_alone())}
    return {_SAFE_PATH: "1"}


@cache
def _alone() -> Path:
    """A directory of nothing but this project's packages."""
    directory = Path(tempfile.mkdtemp(prefix="xmlstream-packages-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    for name in own_packages.NAMES:
        (directory / name).symlink_to(own_packages.HOME / name)
    return directory


@cache
def _quick() -> Path | None:
    """A script that starts this Python without Spark's archives; None where there is no way or no need to."""
    if os.name != "posix" or not _spark_is_installed_beside():
        return None
    directory = Path(tempfile.mkdtemp(prefix="xmlstream-python-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    script = directory / "python"
    script.write_text(_SCRIPT.format(python=shlex.quote(sys.executable)), encoding="utf-8")
    script.chmod(0o700)
    # Temporary directories are sometimes mounted such that nothing in them can be started.
    return script if os.access(script, os.X_OK) else None


def _spark_is_installed_beside() -> bool:
    """Whether PySpark is installed as files, which Python keeps compiled, and Java will run the Spark of just that."""
    packages = [find_spec(name) for name in ("pyspark", "py4j")]
    origins = [Path(found.origin) for found in packages if found is not None and found.origin is not None]
    if len(origins) < len(packages) or not all(origin.is_file() for origin in origins):
        return False
    return Path(os.environ.get("SPARK_HOME", origins[0].parent)).resolve() == origins[0].parent.resolve()
