"""A standalone cluster on this machine: Spark's master and workers, processes of their own.

Workers see all files of this machine, or not those of a directory: then they are like machines that share no disk.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

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
        address = _master(stack, directory)
        _worker(stack, directory, "worker", address, directory / "work", cores=cores, memory=memory)
        yield address


@dataclass(frozen=True, slots=True)
class Apart:
    """A cluster whose workers have disks of their own.

    Attributes:
        address: The master's.
        workers: The processes of the workers.
        begin: Begins another worker, under a name of its own.
    """

    address: str
    workers: list[subprocess.Popen[bytes]]
    begin: Callable[[str], subprocess.Popen[bytes]]

    def seen(self, place: Path) -> list[list[str]]:
        """What each worker finds in a directory."""
        roots = [Path(f"/proc/{worker.pid}/root{place}") for worker in self.workers]
        return [sorted(path.name for path in root.iterdir()) for root in roots]

    def lose(self, number: int) -> None:
        """Kills a worker, and with it its executor and its disk; an empty one takes its place."""
        self.workers[number].kill()
        self.workers[number] = self.begin(f"worker-after-{self.workers[number].pid}")


@contextmanager
def standalone_apart(directory: Path, hidden: Path, workers: int = 2) -> Iterator[Apart]:
    """A master and workers of one core, to which the directory `hidden` is an empty disk of their own."""
    unshare = ["unshare", "--mount", "--propagation", "private", "--"]
    mount = ["sh", "-c", 'mount -t tmpfs tmpfs "$0" && exec "$@"', str(hidden)]
    if shutil.which("unshare") is None or subprocess.run([*unshare, *mount, "true"], check=False).returncode:
        pytest.skip("processes cannot have disks of their own here")
    with ExitStack() as stack:
        address = _master(stack, directory)

        def begin(name: str) -> subprocess.Popen[bytes]:
            return _worker(stack, directory, name, address, hidden / "work", before=[*unshare, *mount])

        yield Apart(address, [begin(f"worker-{number}") for number in range(workers)], begin)


def _master(stack: ExitStack, directory: Path) -> str:
    log, _ = stack.enter_context(_daemon(directory, "master", _MASTER, "--host", HOST, "--port", "0"))
    return _said(log, r"Starting Spark master at (spark://\S+)")


def _worker(
    stack: ExitStack,
    directory: Path,
    name: str,
    address: str,
    work: Path,
    *,
    cores: int = 1,
    memory: str = "1g",
    before: Sequence[str] = (),
) -> subprocess.Popen[bytes]:
    own = ("--cores", str(cores), "--memory", memory, "--work-dir", str(work), "--host", HOST)
    log, process = stack.enter_context(_daemon(directory, name, _WORKER, *own, address, before=before))
    _said(log, r"(Successfully registered with master)")
    return process


@contextmanager
def _daemon(
    directory: Path, name: str, main: str, *arguments: str, before: Sequence[str] = ()
) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    home = Path(pyspark.__file__).parent
    log = directory / f"{name}.log"
    command = [*before, str(home / "bin" / "spark-class"), main, "--webui-port", "0", *arguments]
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
            yield log, process
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
