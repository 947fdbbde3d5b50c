"""Where Spark's own pages listen: on this machine alone, unless told otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from xmlstream.session.java_process import LOCAL_ADDRESS
from xmlstream.session.spark_session import open_spark_session

pytestmark = pytest.mark.spark

PAGES = """
import socket
import xmlstream as xs
spark = xs.open_session("local[1]", {"spark.ui.enabled": "true", "spark.ui.port": "0"})
port = int(spark.sparkContext.uiWebUrl.rsplit(":", 1)[1])
def reached(address):
    with socket.socket() as asking:
        return asking.connect_ex((address, port)) == 0
print([reached(address) for address in ("127.0.0.1", "127.0.0.2")])
spark.stop()
"""
"""Whether the pages are reached at the address of this machine for itself, and at another one that it has."""


@pytest.mark.sampled(2)
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8")
@pytest.mark.parametrize(
    ("environment", "reached"),
    [
        ({}, "[True, False]"),
        ({LOCAL_ADDRESS: "0.0.0.0"}, "[True, True]"),
    ],
)
def test_pages_of_spark_listen_to_this_machine_alone_unless_told_otherwise(
    environment: dict[str, str], reached: str, tmp_path: Path
) -> None:
    inherited = {name: value for name, value in os.environ.items() if name != LOCAL_ADDRESS}
    found = subprocess.run(
        [sys.executable, "-c", PAGES], env=inherited | environment, cwd=tmp_path,
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert found.stdout.strip().splitlines()[-1:] == [reached], found.stderr[-2000:]


class Started(Exception):
    """In place of a Java."""


def test_java_is_told_to_serve_where_the_configuration_binds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the pages do then, the environment of the user's above shows."""
    from pyspark import SparkContext, java_gateway

    told = []

    def launch(*_: object) -> None:
        told.append(os.environ[LOCAL_ADDRESS])
        raise Started

    for variable in (LOCAL_ADDRESS, "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(variable, "")  # so that each is restored
        monkeypatch.delenv(variable)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(java_gateway, "launch_gateway", launch)
    for address in ("127.0.0.1", "0.0.0.0"):
        with pytest.raises(Started):
            open_spark_session("local[1]", {"spark.driver.bindAddress": address})
    assert told == ["127.0.0.1", "0.0.0.0"]
