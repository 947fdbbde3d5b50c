"""Where Spark's own pages listen: on this machine alone, unless told otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from xmlstream.session.java_process import LOCAL_ADDRESS

pytestmark = pytest.mark.spark

PAGES = """
import socket, sys
import xmlstream as xs
conf = dict(option.split("=") for option in sys.argv[1:])
spark = xs.open_session("local[1]", {"spark.ui.enabled": "true", "spark.ui.port": "0", **conf})
port = int(spark.sparkContext.uiWebUrl.rsplit(":", 1)[1])
def reached(address):
    with socket.socket() as asking:
        return asking.connect_ex((address, port)) == 0
print([reached(address) for address in ("127.0.0.1", "127.0.0.2")])
spark.stop()
"""
"""Whether the pages are reached at the address of this machine for itself, and at another one that it has."""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8")
@pytest.mark.parametrize(
    ("conf", "environment", "reached"),
    [
        ((), {}, "[True, False]"),
        (("spark.driver.bindAddress=0.0.0.0",), {}, "[True, True]"),
        ((), {LOCAL_ADDRESS: "0.0.0.0"}, "[True, True]"),
    ],
)
def test_pages_of_spark_listen_to_this_machine_alone_unless_told_otherwise(
    conf: tuple[str, ...], environment: dict[str, str], reached: str, tmp_path: Path
) -> None:
    inherited = {name: value for name, value in os.environ.items() if name != LOCAL_ADDRESS}
    found = subprocess.run(
        [sys.executable, "-c", PAGES, *conf], env=inherited | environment, cwd=tmp_path,
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert found.stdout.strip().splitlines()[-1:] == [reached], found.stderr[-2000:]
