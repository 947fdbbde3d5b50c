"""Lines that go out as if their tuples came in now: each when it falls due, all streams side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

SECONDS_BETWEEN_WRITES = 0.05
"""How often what has fallen due is written."""

Line = tuple[float, int, bytes]
"""When it falls due, in seconds from the start; the number of its stream; what is written."""

Out = Callable[[Sequence[bytes]], None]
"""Takes the lines of one stream that have fallen due."""


def write_live(paths: Sequence[Path], lines: Iterator[Line], clock: Callable[[], float] = time.monotonic) -> None:
    """Write lines to files as they fall due; they come in the order in which they do."""
    with ExitStack() as stack:
        # All files are there before the first line, so that a reader finds every stream.
        files = [stack.enter_context(path.open("wb", buffering=0)) for path in paths]
        send_live([lambda texts, file=file: file.write(b"".join(texts)) for file in files], lines, clock)  # type: ignore[misc]


def send_live(outs: Sequence[Out], lines: Iterator[Line], clock: Callable[[], float] = time.monotonic) -> None:
    """Hand on lines as they fall due, each to its stream; they come in the order in which they do."""
    start = clock()
    line = next(lines, None)
    while line is not None:
        now = clock() - start
        ready: list[list[bytes]] = [[] for _ in outs]
        while line is not None and line[0] <= now:
            ready[line[1]].append(line[2])
            line = next(lines, None)
        for out, texts in zip(outs, ready, strict=True):
            if texts:
                out(texts)
        if line is not None:
            time.sleep(SECONDS_BETWEEN_WRITES)
