"""The warehouse query in a process and a session of its own, as often as it is asked; and what memory that takes.

Started as `python -m tests.benchmarks.apart MASTER MEMORY`, it reads a line of JSON for each run and answers with one:
so several of them can take turns, and none starts while another is measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO, cast

from tests.benchmarks import asking

SAMPLE_SECONDS = 0.1
"""Between two looks at the memory."""

_ANSWER = "ANSWER "
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Apart:
    """A process with a session, as a context."""

    def __init__(self, master: str, memory: str = "1g") -> None:
        command = [sys.executable, "-m", "tests.benchmarks.apart", master, memory]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        cast(TextIO, self._process.stdin).close()
        self._process.wait(60)
        cast(TextIO, self._process.stdout).close()

    def ask(self, query: str, path: Path, bytes_per_slice: str = "64m") -> dict[str, float]:
        """Runs `warehouse` over a directory, or `hottest` over one document, so much of a document in a slice.

        Returns:
            The `seconds` of the whole call, the result's `tuples`, and the `peak` of memory meanwhile in MiB: resident
            sizes of all processes added up, driver and Python workers.
        """
        asked, told = cast(TextIO, self._process.stdin), cast(TextIO, self._process.stdout)
        asked.write(json.dumps({"query": query, "path": str(path), "bytes_per_slice": bytes_per_slice}) + "\n")
        asked.flush()
        with Peak(self._process.pid) as peak:
            for line in told:  # Java speaks here, too
                if line.startswith(_ANSWER):
                    answer: dict[str, float] = json.loads(line.removeprefix(_ANSWER))
                    return {**answer, "peak": peak.so_far}
        raise AssertionError(f"the process apart ended with {self._process.wait()} instead of an answer")


class Peak:
    """The largest memory that a process and all below it had while the context lasts."""

    def __init__(self, process: int) -> None:
        self.so_far = 0.0
        self._process = process
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            self.so_far = max(self.so_far, sum(map(resident, family(self._process))) / 2**20)


def family(process: int) -> set[int]:
    """A process and all that come from it."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # The name in parentheses may hold anything.
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it has just ended
    found, new = {process}, {process}
    while new:
        new = {child for child, parent in parents.items() if parent in new} - found
        found |= new
    return found


def resident(process: int) -> int:
    """The resident bytes of a process."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE
    except OSError:
        return 0


def main(master: str, memory: str) -> None:
    """Answers until nothing more is asked."""
    import xmlstream as xs

    spark = xs.open_session(master, {"spark.driver.memory": memory})
    with tempfile.TemporaryDirectory(prefix="xmlstream-apart-") as output:
        for line in sys.stdin:
            asked: dict[str, Any] = json.loads(line)
            path = Path(asked["path"])
            ask = asking.hottest if asked["query"] == "hottest" else asking.warehouse
            query = ask(spark, path, asked["bytes_per_slice"])
            done = asking.run(query, Path(output) / "out", "hottest")
            answer = {"seconds": done.seconds, "tuples": sum(one["tuples_out"] for one in done.slices)}
            print(_ANSWER + json.dumps(answer), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
