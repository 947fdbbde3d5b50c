"""Progress of a running query on standard error: plain lines now and then, and what is noticed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any

from rich.console import Console

from xmlstream.runtime.metrics import counted

EVERY_SECONDS = 2.0
"""At the least between two plain lines."""

NOTICED_EVERY_SECONDS = 30.0
"""How often what was noticed in the sources is said while the query waits."""

_IMPORTED = time.monotonic()

ReportJson = Mapping[str, Any]


class Totals:
    """What a run has done up to now."""

    def __init__(self) -> None:
        self.slices = self.items = self.tuples_out = self.kept = self.held = self.set_aside = 0
        self.exact = True
        self._began = time.perf_counter()

    def add(self, report: ReportJson) -> None:
        """One more slice."""
        self.slices += 1
        self.items += report["items_in"]
        self.tuples_out += report["tuples_out"]
        self.set_aside += report["set_aside"]
        self.exact = report["exact"]
        self.kept = sum(operator["kept"] for operator in report["operators"])
        self.held = sum(operator["punctuations_held"] for operator in report["operators"])

    def __str__(self) -> str:
        rate = self.items / max(time.perf_counter() - self._began, 1e-9)
        aside = f", {self.set_aside:,} set aside" if self.set_aside else ""
        return (
            f"{counted(self.slices, 'slice')}, {counted(self.items, 'item')} ({rate:,.0f}/s){aside}, "
            f"{counted(self.tuples_out, 'tuple')} out; kept: {counted(self.kept, 'tuple')}, "
            f"{counted(self.held, 'punctuation')}{'' if self.exact else '; not exact'}"
        )


@contextmanager
def noticed(console: Console, findings: Callable[[], Iterable[object]]) -> Iterator[None]:
    """Says what is noticed, now and then, each thing once; at the end again, where numbers have changed."""
    done = threading.Event()
    told: dict[Hashable, str] = {}

    def say(*, again: bool = False) -> None:
        for finding in findings():
            about, text = getattr(finding, "subject", str(finding)), str(finding)
            if about not in told or (again and told[about] != text):
                console.print(f"noticed in {text}", highlight=False, markup=False, soft_wrap=True)
                told[about] = text

    def wait() -> None:
        while not done.wait(NOTICED_EVERY_SECONDS):
            say()

    thread = threading.Thread(target=wait, name="noticed", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        say(again=True)


def lines(console: Console, every: float) -> Callable[[ReportJson], None]:
    """What is to be called with the report of each committed slice: the first one has a line.

    Of the others one has a line `every` so many seconds, and the last one, unless that is never.
    """
    totals = Totals()
    told = -inf

    def on_slice(report: ReportJson) -> None:
        nonlocal told
        totals.add(report)
        now = time.perf_counter()
        if told == -inf or now - told >= every or (report["closed"] and every < inf):
            told = now
            console.print(f"slice {report['slice']}: {totals}", highlight=False, soft_wrap=True)

    return on_slice


def seconds_since_start() -> float:
    """How long this process has been running, Python's own start included; without Linux's /proc, since its import."""
    try:
        # Field 22, in ticks since the machine's start; the command in field 2 may hold blanks and brackets.
        ticks = int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError):
        return time.monotonic() - _IMPORTED
