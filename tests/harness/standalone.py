"""A standalone cluster on this machine: Spark's master and one worker, processes of their own."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from xmlstream.session.spark_session import JAVA_OPTIONS
from xmlstream.session.warm_start import java_options

HOST = "127.0.0.1"
JAVA = f"{JAVA_OPTIONS} -XX:+UseSerialGC {java_options()}"
"""What lets each Java begin sooner; what its second compiler would win, it wins later."""

_BEGIN_SECONDS = 300.0
_MASTER, _WORKER = (f"org.apache.spark.deploy.{name}" for name in ("master.Master", "worker.Worker"))


@contextmanager
def standalone(directory: Path, cores: int = 2, memory: str = "3g") -> Iterator[str]:
    """A master and a worker of so many cores and so much memory; the master's address, `spark://127.0.0.1:…`."""
    with ExitStack() as stack:
        log = stack.enter_context(_daemon(directory, "master", _MASTER, "--host", HOST, "--port", "0"))
        address = _said(log, r"Starting Spark master at (spark://\S+)")
        own = ("--cores", str(cores), "--memory", memory, "--work-dir", str(directory / "work"), "--host", HOST)
        log = stack.enter_context(_daemon(directory, "worker", _WORKER, *own, address))
        _said(log, r"(Successfully registered with master)")
        yield address


@contextmanager
def _daemon(directory: Path, name: str, main: str, *arguments: str) -> Iterator[Path]:
    home = Path(pyspark.__file__).parent
    log = directory / f"{name}.log"
    command = [str(home / "bin" / "spark-class"), main, "--webui-port", "0", *arguments]
    # Spark's own configuration logs warnings alone, and the port is a matter of information.
    settings = directory / "log4j2.properties"
    settings.write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.stderr.ref = console\nappender.console.type = Console\n"
        "appender.console.name = console\nappender.console.target = SYSTEM_ERR\n"
        "appender.console.layout.type = PatternLayout\nappender.console.layout.pattern = %m%n\n"
    )
    java = f"-Dlog4j2.configurationFile={settings} {JAVA}"
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": HOST, "SPARK_DAEMON_JAVA_OPTS": java}
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, env=environment) as process:
        try:
            yield log
        finally:
            process.terminate()


def _said(log: Path, pattern: str) -> str:
    """What a daemon says of itself once it is ready."""
    end = time.monotonic() + _BEGIN_SECONDS
    while time.monotonic() < end:
        if found := re.search(pattern, log.read_text(encoding="utf-8", errors="replace")):
            return found[1]
        time.sleep(0.1)
    raise TimeoutError(f"{log.name}: nothing like {pattern}: {log.read_text(errors='replace')[-2000:]}")
