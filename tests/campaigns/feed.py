"""The feed campaign: many documents of one message each, followed for long by a query that is killed now and then.

    .venv/bin/python -m tests.campaigns.feed [--documents 2000] [--seconds 30] [--kills 2] [--clean delete]

A directory fills with documents, evenly over the time. `xmlstream run --follow` reads them, is killed by SIGKILL at
random moments, and begun again from its checkpoint. Each message must be in the result exactly once. It prints the
processor time of the query, its memory, and the files and bytes of its checkpoint, when the feed had begun and at its
end: what a query costs must not depend on what it has ever read. With `--engine spark` begin it by `.ci/java`.

A feed of an hour: `--documents 100000 --seconds 3600 --kills 10`.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lxml import etree

from tests.benchmarks.apart import resident
from tests.campaigns.signals import Running, processes

BEGIN, END = (0.10, 0.25), (0.85, 1.0)
"""The parts of the time that are compared; no run is killed in them."""

DONE_SECONDS = 600.0
"""After so long without a result that a feed lacks, the query has lost it."""

TICKS = os.sysconf("SC_CLK_TCK")

QUERY = """
CREATE TABLE messages (id INT NOT NULL, value INT)
USING punctuated_xml OPTIONS (path '${IN}', rowTag 'message', schemes 'id', cleanSource '${CLEAN}');
SELECT id, max(value) AS value FROM messages GROUP BY id;
"""

DOCUMENT = (
    '<messages xmlns:punct="http://www.cse.ogi.edu/dot/niagara/punct"><message><id>{id}</id><value>{value}</value>'
    "</message><punct:message><id>{id}</id><value>*</value></punct:message></messages>\n"
)


def value(number: int) -> int:
    """The value in a message."""
    return number * 7919 % 10_007


@dataclass(frozen=True, slots=True)
class Sample:
    """What was there at a moment: seconds since the feed began, and of the query's processes, and sizes."""

    seconds: float
    processor: float
    documents: int
    memory: int
    files: int
    bytes: int


class Feed:
    """A directory that fills evenly over a time; each document appears whole."""

    def __init__(self, place: Path, documents: int, seconds: float) -> None:
        self.place, self.documents, self.seconds = place, documents, seconds
        place.mkdir()
        self.written = 0
        self.begun = time.monotonic()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        for number in range(self.documents):
            time.sleep(max(0.0, self.begun + number * self.seconds / self.documents - time.monotonic()))
            draft = self.place / f".{number:08}.xml"
            draft.write_text(DOCUMENT.format(id=number, value=value(number)))
            draft.rename(self.place / draft.name[1:])
            self.written = number + 1

    @property
    def elapsed(self) -> float:
        """The seconds since it began."""
        return time.monotonic() - self.begun


class Results:
    """The tuples of all documents that a query has published, each read once."""

    def __init__(self, out: Path) -> None:
        self._out, self._read = out, set[str]()
        self.tuples: list[tuple[int, int]] = []

    def look(self) -> int:
        """Reads new documents; returns the number of all tuples."""
        new = sorted({path.name for path in self._out.glob("slice-*.xml")} - self._read)
        for name in new:
            root = etree.parse(self._out / name).getroot()
            self.tuples += [(int(row[0].text or ""), int(row[1].text or "")) for row in root.findall("row")]
        self._read.update(new)
        return len(self.tuples)

    def faults(self, documents: int) -> list[str]:
        """What differs from each message once."""
        expected = [(number, value(number)) for number in range(documents)]
        if sorted(self.tuples) == expected:
            return []
        twice = len(self.tuples) - len(set(self.tuples))
        left_out = len(set(expected) - set(self.tuples))
        return [f"{left_out} messages are missing, {twice} came twice, of {documents}"]


def processor_seconds(processes_: Sequence[int]) -> float:
    """The processor time that processes have taken, with that of their children that have ended."""
    ticks = 0
    for process in processes_:
        try:
            text = (Path("/proc") / str(process) / "stat").read_text()
        except OSError:
            continue
        ticks += sum(map(int, text.rpartition(")")[2].split()[11:15]))
    return ticks / TICKS


class Campaign:
    """A feed, and the query that follows it."""

    def __init__(self, scratch: Path, chosen: argparse.Namespace) -> None:
        self._scratch, self._chosen = scratch, chosen
        self._query = scratch / "query.sql"
        self._query.write_text(QUERY)
        self._before = 0.0
        self.samples: list[Sample] = []
        self.faults: list[str] = []
        self.results = Results(scratch / "out")

    def _begin(self) -> Running:
        arguments = ["run", self._query, "-D", f"IN={self._scratch / 'in'}", "-D", f"CLEAN={self._chosen.clean}"]
        arguments += ["-o", self._scratch / "out", "--checkpoint", self._scratch / "state", "--follow"]
        arguments += ["--engine", self._chosen.engine]
        return Running(arguments, self._scratch)

    def _end(self, run: Running, number: signal.Signals, *codes: int) -> None:
        seconds = processor_seconds(list(processes(run.mark)))
        self._before += seconds
        run.send(number, to_group=True)
        ended = run.ended()
        self.faults += ended.faults(*codes)
        print(f"  {number.name} to a run that has taken {seconds:.1f} s of processor time", flush=True)

    def _sample(self, run: Running, feed: Feed) -> None:
        alive = list(processes(run.mark))
        sizes = []
        # `rglob` fails where a directory goes as it looks.
        for directory, _, names in os.walk(self._scratch / "state"):
            for name in names:
                with suppress(FileNotFoundError):
                    sizes.append((Path(directory) / name).stat().st_size)
        now = self._before + processor_seconds(alive)
        memory = sum(map(resident, alive))
        self.samples.append(Sample(feed.elapsed, now, feed.written, memory, len(sizes), sum(sizes)))

    def run(self) -> None:
        """Follows the feed to its end, and compares the result."""
        chosen, draw = self._chosen, random.Random(self._chosen.seed)
        feed = Feed(self._scratch / "in", chosen.documents, chosen.seconds)
        run = self._begin()
        kills = sorted(draw.uniform(BEGIN[1], END[0]) * chosen.seconds for _ in range(chosen.kills))
        step = max(0.5, chosen.seconds / 500)
        while feed.written < chosen.documents:
            time.sleep(step)
            if kills and feed.elapsed >= kills[0]:
                kills.pop(0)
                self._end(run, signal.SIGKILL, -signal.SIGKILL)
                run = self._begin()
            if run.process.poll() is not None:
                break
            self._sample(run, feed)
        last, left = time.monotonic(), self.results.look()
        while run.process.poll() is None and left < chosen.documents and time.monotonic() - last < DONE_SECONDS:
            time.sleep(step)
            if (now := self.results.look()) > left:
                last, left = time.monotonic(), now
        print(f"the last result came {feed.elapsed - chosen.seconds:.1f} s after the last document", flush=True)
        self._sample(run, feed)
        self._end(run, signal.SIGINT, 0, 130)
        self.results.look()
        self.faults += self.results.faults(chosen.documents)

    def shown(self) -> str:
        """The figures, when the feed had begun and at its end."""
        words = [f"{'':28}{'begin':>12}{'end':>12}"]
        parts = [self._part(*BEGIN), self._part(*END)]
        rows: dict[str, list[float]] = {
            "processor, % of a core": [100 * (b.processor - a.processor) / (b.seconds - a.seconds) for a, b in parts],
            "processor, ms a document": [
                1000 * (b.processor - a.processor) / max(1, b.documents - a.documents) for a, b in parts
            ],
            "memory, MB": [b.memory / 1e6 for _, b in parts],
            "files of the checkpoint": [b.files for _, b in parts],
            "bytes of the checkpoint": [b.bytes for _, b in parts],
            "documents": [b.documents for _, b in parts],
        }
        words += [f"{name:28}{one:>12,.1f}{other:>12,.1f}" for name, (one, other) in rows.items()]
        return "\n".join([*words, f"{'processor time of all runs':28}{self._before:>24,.1f} s"])

    def _part(self, begin: float, end: float) -> tuple[Sample, Sample]:
        seconds = self._chosen.seconds
        inside = [each for each in self.samples if begin * seconds <= each.seconds <= end * seconds + 1]
        return (inside[0], inside[-1]) if len(inside) > 1 else (self.samples[0], self.samples[-1])


def main() -> int:
    """The campaign; the number of faults."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=30.0, help="the time over which they arrive")
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--clean", default="off", choices=["off", "delete"], help="the option cleanSource")
    parser.add_argument("--engine", default="duckdb", choices=["duckdb", "spark"])
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="xmlstream-feed-") as scratch:
        campaign = Campaign(Path(scratch), chosen)
        campaign.run()
        print(campaign.shown(), flush=True)
    print("; ".join(campaign.faults) or f"{chosen.documents} messages, each in the result once", flush=True)
    return len(campaign.faults)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
