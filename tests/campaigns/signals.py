"""The signals campaign: runs of the command that are interrupted at every moment, in every way.

    .ci/java .venv/bin/python -m tests.campaigns.signals [--moments 20] [--only "SIGINT to the group"]

Whenever and however a run is ended, it exits with the code that says so, without a traceback, leaves no process behind,
and its checkpoint resumes to the answer of a run that was left alone. It takes about a quarter of an hour on two cores.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from xmlstream.sources.generators.sensors import write_sensors

if TYPE_CHECKING:
    from xmlstream.builder.query import Query

MARK = "XMLSTREAM_CAMPAIGN"
"""The environment variable by which a run's processes are found, whatever session they are in."""

GONE_SECONDS = 300.0
"""After so long nothing of an ended run may be there."""

ENDED_SECONDS = 300.0
"""After so long a run that was interrupted must have ended."""

QUERY = """
CREATE TABLE sensor1 (sid STRING, hour INT, min INT, currtmp DOUBLE)
USING punctuated_xml OPTIONS (path '${SENSORS}/sensor1.xml', rowTag 'tempdata', schemes 'hour', maxBytesPerSlice '5k');
CREATE TABLE sensor2 (sid STRING, hour INT, min INT, currtmp DOUBLE)
USING punctuated_xml OPTIONS (path '${SENSORS}/sensor2.xml', rowTag 'tempdata', schemes 'hour', maxBytesPerSlice '5k');
SELECT MAX(currtmp) AS maxtemp, count(*) AS n, hour
FROM (SELECT currtmp, hour FROM sensor1 UNION SELECT currtmp, hour FROM sensor2) GROUP BY hour;
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended: its exit code, the seconds from the last signal, what it said, what was left of it."""

    code: int | None
    seconds: float
    said: str
    left: tuple[str, ...]

    def faults(self, *codes: int) -> list[str]:
        """What is wrong with it, if its code may be one of these."""
        found = []
        if self.code is None:
            found.append(f"did not end in {ENDED_SECONDS:.0f} s")
        elif self.code not in codes:
            found.append(f"exit code {self.code}, not {' or '.join(map(str, codes))}")
        if "Traceback" in self.said or "\tat " in self.said or "Exception" in self.said:
            found.append(f"said {self.said!r}")
        if self.left:
            found.append(f"left {', '.join(self.left)}")
        return found


class Running:
    """The command in a process group of its own, as a shell starts it."""

    def __init__(self, arguments: Sequence[object], scratch: Path, stdout: int = subprocess.DEVNULL) -> None:
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        self._said = scratch / f"said-{self.mark}"
        command = [sys.executable, "-m", "xmlstream", *map(str, arguments)]
        with self._said.open("wb") as stderr:
            self.process = subprocess.Popen(
                command, stdout=stdout, stderr=stderr, env={**os.environ, MARK: self.mark}, start_new_session=True
            )

    def wait_until_it_listens(self) -> None:
        """Before that it is Python that starts, and what it does about signals is its own."""
        listens = 1 << (signal.SIGTERM - 1)
        while self.process.poll() is None:
            status = (Path("/proc") / str(self.process.pid) / "status").read_text()
            caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
            if int(caught, 16) & listens:
                return
            time.sleep(0.005)

    def send(self, number: signal.Signals, *, to_group: bool) -> None:
        """A signal to the process, or to its group as a terminal sends it."""
        if self.process.poll() is None:
            (os.killpg if to_group else os.kill)(self.process.pid, number)

    def ended(self, within: float = ENDED_SECONDS) -> Ended:
        """Waits for its end, and for the end of all that it started."""
        begun = time.monotonic()
        try:
            code: int | None = self.process.wait(within)
        except subprocess.TimeoutExpired:
            code = None
        seconds = time.monotonic() - begun
        deadline = time.monotonic() + GONE_SECONDS
        while (left := processes(self.mark)) and time.monotonic() < deadline:
            time.sleep(0.1)
        for number in left:
            os.kill(number, signal.SIGKILL)
        self.process.wait()
        said = self._said.read_text(errors="replace")
        return Ended(code, seconds, said, tuple(left.values()))


def processes(mark: str) -> dict[int, str]:
    """The processes of a run and their command lines."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes().split(b"\0"):
                line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if line:
                    found[int(process.name)] = line[:120]
        except OSError:
            continue
    return found


def documents(out: Path) -> dict[str, str]:
    """What a query wrote."""
    return {path.name: path.read_text() for path in sorted(out.glob("slice-*.xml"))}


Way = Callable[[Running], None]


def presses(number: signal.Signals, *, to_group: bool, times: int = 1, apart: float = 0.6) -> Way:
    """A signal, and again."""

    def send(run: Running) -> None:
        for press in range(times):
            if press:
                time.sleep(apart)
            run.send(number, to_group=to_group)

    return send


def to_each(run: Running) -> None:
    """SIGTERM to every process of the run, as systemd sends it by default."""
    for number in processes(run.mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGTERM)


WAYS: dict[str, tuple[Way, int, int]] = {
    "SIGINT to the process": (presses(signal.SIGINT, to_group=False), 130, 1),
    "SIGINT to the group": (presses(signal.SIGINT, to_group=True), 130, 1),
    "SIGTERM to the process": (presses(signal.SIGTERM, to_group=False), 143, 1),
    "SIGTERM to the group": (presses(signal.SIGTERM, to_group=True), 143, 1),
    "SIGINT to the group, twice": (presses(signal.SIGINT, to_group=True, times=2), 130, 2),
    "SIGTERM to the group, twice at once": (presses(signal.SIGTERM, to_group=True, times=2, apart=0.01), 143, 4),
    "SIGTERM to each process": (to_each, 143, 4),
    "SIGKILL to the process": (presses(signal.SIGKILL, to_group=False), -9, 4),
}
"""How a run is ended, the exit code that says so, and at which part of the moments."""


class Campaign:
    """One input, the answer to it, and runs over it that are ended."""

    def __init__(self, scratch: Path) -> None:
        self.scratch, self.sensors = scratch, scratch / "sensors"
        write_sensors(self.sensors, sensors=2, hours=6, punctuations_per_hour=2, reports_per_hour=40, seed=3)
        self.query = scratch / "query.sql"
        self.query.write_text(QUERY)
        begun = time.monotonic()
        whole = Running(self.arguments(scratch / "whole"), scratch).ended(300.0)
        self.seconds = time.monotonic() - begun
        assert whole.code == 0, whole
        self.answer = documents(scratch / "whole" / "out")
        self.asked: Query | None = None

    def arguments(self, place: Path, output: str | None = None) -> list[object]:
        """Of a run that has its output and its checkpoint in a place."""
        files = ["-o", output or place / "out", "--checkpoint", place / "state"]
        return ["run", self.query, "-D", f"SENSORS={self.sensors}", "--master", "local[2]", *files]

    def resumed(self, place: Path) -> list[str]:
        """What is wrong with the answer, once a run that was ended has gone on."""
        import xmlstream as xs

        if self.asked is None:
            spark = xs.open_session("local[2]")
            self.asked = xs.from_sql(spark, QUERY, {"SENSORS": str(self.sensors)})
        self.asked.run(place / "out", place / "state")
        found = documents(place / "out")
        return [] if found == self.answer else [f"after resuming {sorted(found)}, not {sorted(self.answer)}"]

    def ended_by(self, way: Way, code: int, moment: float, name: str) -> list[str]:
        """What is wrong with a run that is ended at a moment, and with the one that goes on from it."""
        place = self.scratch / name
        run = Running(self.arguments(place), self.scratch)
        run.wait_until_it_listens()
        time.sleep(moment)
        way(run)
        ended = run.ended()
        # It may have been done before the moment came.
        faults = ended.faults(code, 0) if code > 0 else ended.faults(code, 0, 130)
        print(f"  at {moment:5.2f} s: {ended.code} in {ended.seconds:.1f} s {'; '.join(faults)}", flush=True)
        return faults + self.resumed(place)


def other_ends(campaign: Campaign) -> Iterator[tuple[str, list[str]]]:
    """A reader that has seen enough, a full disk, a closed standard output."""
    place = campaign.scratch / "pipe"
    end, head = os.pipe()
    run = Running(campaign.arguments(place, "-"), campaign.scratch, stdout=head)
    os.close(head)
    os.read(end, 10)
    os.close(end)
    yield "a reader that has seen enough", run.ended().faults(141)
    full = os.open("/dev/full", os.O_WRONLY)
    run = Running(campaign.arguments(campaign.scratch / "full", "-"), campaign.scratch, stdout=full)
    os.close(full)
    ended = run.ended()
    yield "a full disk", ended.faults(1) + ([] if "no space left" in ended.said.lower() else [ended.said])
    closed = ["sh", "-c", '"$@" >&-', "sh", sys.executable, "-m", "xmlstream"]
    arguments = [*closed, *map(str, campaign.arguments(campaign.scratch / "closed", "-"))]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    faults = Ended(done.returncode, 0.0, done.stderr, ()).faults(2)
    yield "a closed standard output", faults + ([] if "standard output" in done.stderr else [done.stderr])


def main() -> int:
    """The campaign; the number of runs with a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=20, help="of each way to end a run")
    parser.add_argument("--only", default="", help="ways whose name holds this; - for none of them")
    chosen = parser.parse_args()
    failed = runs = 0
    with tempfile.TemporaryDirectory(prefix="xmlstream-signals-") as scratch:
        campaign = Campaign(Path(scratch))
        print(f"a run left alone takes {campaign.seconds:.1f} s", flush=True)
        for number, (name, (way, code, part)) in enumerate(WAYS.items()):
            if chosen.only not in name:
                continue
            print(name, flush=True)
            for step in range(0, chosen.moments, part):
                # From before anything of ours is imported to about its end.
                moment = campaign.seconds * step / max(chosen.moments - 1, 1)
                faults = campaign.ended_by(way, code, moment, f"{number}-{step}")
                runs, failed = runs + 1, failed + bool(faults)
        for name, faults in [] if chosen.only.strip("-") else other_ends(campaign):
            print(f"{name}: {'; '.join(faults) or 'as it should'}", flush=True)
            runs, failed = runs + 1, failed + bool(faults)
    print(f"{runs} runs, {failed} with a fault", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
