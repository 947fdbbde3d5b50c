"""What Spark starts to plan slices has a process forked that is as if it had been started itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from xmlstream.session import forked

PROGRAM = """
import os, sys, time
if __name__ == "__main__":
    print(os.getppid(), os.environ["SAYS"], os.getcwd(), __name__, os.getpid(), flush=True)
    print("complains", file=sys.stderr)
    time.sleep(float(os.environ.get("SLEEPS", 0)))
    sys.exit(7)
"""
SERVER = """
import sys
from xmlstream.session import fork_server
fork_server.MODULE, fork_server.PRELOADED = "planning.program", ("planning.program",)
fork_server.serve(sys.argv[1])
"""


@dataclass(frozen=True)
class Served:
    """A server, and what is started beside it."""

    directory: Path
    server: subprocess.Popen[bytes]

    @property
    def address(self) -> str:
        return str(self.directory / "forks")

    def environment(self, **more: str) -> Mapping[str, str]:
        return {**os.environ, "PYTHONPATH": f"/opt/spark-core.jar:{self.directory}", "SAYS": "a b", **more}

    def command(self, address: str | None = None) -> list[str]:
        return [sys.executable, "-I", "-S", forked.__file__, address or self.address, "-m", "planning.program"]

    def run(self, address: str | None = None, **more: str) -> list[str]:
        """What the program says of itself; its status and its complaint are looked at here."""
        command, environment = self.command(address), self.environment(**more)
        done = subprocess.run(command, env=environment, cwd=self.directory, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (7, "complains\n")
        return done.stdout.rstrip().rsplit(" ", 4)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "planning").mkdir()
    (tmp_path / "planning" / "__init__.py").touch()
    (tmp_path / "planning" / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", SERVER, str(tmp_path / "forks")]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    while not (tmp_path / "forks").exists() and server.poll() is None:
        time.sleep(0.01)
    yield Served(tmp_path, server)
    server.kill()
    server.communicate()


def test_a_forked_process_is_as_the_one_that_was_started(served: Served) -> None:
    for _ in range(2):
        parent, *said = served.run()
        assert int(parent.split()[0]) == served.server.pid
        assert [*parent.split()[1:], *said][:4] == ["a", "b", str(served.directory), "__main__"]


def test_where_nothing_is_forked_it_is_the_process_itself(served: Served) -> None:
    elsewhere = {"PYTHONPATH": f"/opt/other:{served.directory}"}
    assert int(served.run(**elsewhere)[0].split()[0]) == os.getpid(), "it imports from elsewhere"
    assert int(served.run(str(served.directory / "nothing"))[0].split()[0]) == os.getpid(), "there is no server"


def test_it_ends_with_what_was_started(served: Served) -> None:
    started = subprocess.Popen(
        served.command(), env=served.environment(SLEEPS="60"), cwd=served.directory, stdout=subprocess.PIPE
    )
    assert started.stdout is not None
    pid = int(started.stdout.readline().split()[-1])
    os.kill(pid, 0)
    started.send_signal(signal.SIGTERM)
    started.communicate()
    until = time.monotonic() + 300
    with pytest.raises(ProcessLookupError):  # noqa: PT012  it is asked until it has gone
        while time.monotonic() < until:
            os.kill(pid, 0)
            time.sleep(0.01)


def test_the_server_ends_with_its_driver(served: Served) -> None:
    assert served.server.stdin is not None
    served.server.stdin.close()
    assert served.server.wait(300) == 0
