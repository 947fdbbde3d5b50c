"""The object stores' campaign: runs on a store alone are killed, run against each other, and meet faults.

    .venv/bin/python -m tests.campaigns.objects [--kills 60] [--starts 100] [--faults 500]

A server of S3's protocol has input, output and checkpoint, behind a proxy that makes faults. What a query writes is
byte-equal to what it writes into a directory. `tests/xmlstream/runtime/test_on_objects.py` does the same with few.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from operators.storage.objects import ObjectStore
from sources.generators.sensors import write_sensors
from tests.harness.fault_proxy import fault_proxy
from tests.harness.seaweed import object_server

KILLS, STARTS = 10, 10
"""Kills and starts in a round: a query over an input of its own."""

MOST = 600.0
"""Seconds after which a run that was not killed has hung."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of one query over two sensors, on a store.

    Attributes:
        directory: A directory for the query, and for what the query writes without a store.
        url: An empty place on the store.
        environment: What the runs find the store by.
        engine: The engine of the runs.
    """

    directory: Path
    url: str
    environment: Mapping[str, str]
    engine: str = "duckdb"

    @property
    def checkpoint(self) -> str:
        """Where the runs keep their state."""
        return f"{self.url}/checkpoint"

    def prepare(self, hours: int) -> None:
        """Writes the input to a directory and to the store, and the query, which reads it in small slices."""
        write_sensors(
            self.directory / "in", sensors=2, hours=hours, punctuations_per_hour=2, reports_per_hour=20, seed=4
        )
        store = ObjectStore(self.url).below("in")
        for path in sorted((self.directory / "in").glob("*.xml")):
            store.write(path.name, [path.read_bytes()])
        text = Path("data/warehouse.sql").read_text().replace("schemes 'hour'", "schemes 'hour', maxBytesPerSlice '8k'")
        (self.directory / "query.sql").write_text(text)

    def expected(self) -> dict[str, bytes]:
        """The documents that the query writes into a directory."""
        out = self.directory / "out"
        command = self._command(str(self.directory / "in"), str(out), str(self.directory / "checkpoint"))
        subprocess.run(command, check=True, capture_output=True, timeout=MOST)
        return {path.name: path.read_bytes() for path in out.glob("slice-*.xml")}

    def written(self) -> dict[str, bytes]:
        """The documents that are on the store."""
        store = ObjectStore(f"{self.url}/out")
        return {name: store.read(name) for name in store.names() if name.startswith("slice-")}

    def start(self) -> subprocess.Popen[str]:
        """Starts a run on the store."""
        command = self._command(f"{self.url}/in", f"{self.url}/out", self.checkpoint)
        return subprocess.Popen(
            command,
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def _command(self, sensors: str, out: str, checkpoint: str) -> Sequence[str]:
        program = [sys.executable, "-m", "xmlstream", "run", str(self.directory / "query.sql"), "--engine", self.engine]
        return [*program, "-D", f"SENSORS={sensors}", "-o", out, "--checkpoint", checkpoint]


def run_killed(runs: Runs, kills: int, draws: random.Random, longest: float) -> int:
    """Kills so many runs after a random time of at most `longest` seconds, then lets one end; returns how many ended.

    Raises:
        AssertionError: A run ended otherwise than by the kill or with success.
    """
    ended = 0
    for number in range(kills + 1):
        process = runs.start()
        try:
            output, _ = process.communicate(timeout=MOST if number == kills else draws.uniform(0.3, longest))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            assert number < kills, f"the last run did not end: {output[-2000:]}"
            continue
        assert process.returncode == 0, output
        ended += 1
    return ended


FENCED = re.compile("another run has taken over")


def run_against_each_other(runs: Runs, starts: int, draws: random.Random) -> int:
    """Starts so many runs, at each moment two or three; returns how many were fenced by another.

    Raises:
        AssertionError: A run ended otherwise than fenced or with success.
    """

    def one(pause: float) -> bool:
        time.sleep(pause)
        process = runs.start()
        output, _ = process.communicate(timeout=MOST)
        assert process.returncode == 0 or FENCED.search(output), output
        assert "Traceback" not in output, output
        return process.returncode != 0

    with ThreadPoolExecutor(3) as threads:
        return sum(threads.map(one, [draws.uniform(0.0, 1.0) for _ in range(starts)]))


def main() -> int:
    """Runs it; whether there was a fault."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--kills", type=int, default=60)
    arguments.add_argument("--starts", type=int, default=100)
    arguments.add_argument("--faults", type=int, default=500)
    arguments.add_argument("--seed", type=int, default=int(os.environ.get("NIGHT_SEED", "0")))
    given = arguments.parse_args()
    draws = random.Random(given.seed)
    with object_server() as server, fault_proxy(server.endpoint, given.seed) as proxy:
        os.environ.update(server.environment)
        through = {**server.environment, "AWS_ENDPOINT_URL": proxy.endpoint}
        for what, wanted in (("kills", given.kills), ("starts", given.starts), ("faults", given.faults)):
            proxy.rate = 0.0 if what == "starts" else 0.2
            proxy.faults.clear()
            done = rounds = fenced = 0
            while done < wanted:
                with tempfile.TemporaryDirectory() as directory:
                    runs = Runs(Path(directory), f"s3://campaign/{given.seed}/{what}-{rounds}", through)
                    runs.prepare(hours=160)
                    try:
                        if what == "kills":
                            run_killed(runs, KILLS, draws, 4.0)
                            done += KILLS
                        elif what == "starts":
                            fenced += run_against_each_other(runs, STARTS, draws)
                            done += STARTS
                        else:
                            run_killed(runs, 0, draws, MOST)
                            done = proxy.faults.total()
                        expected, written = runs.expected(), runs.written()
                        assert written == expected, (sorted(written), sorted(expected))
                    except AssertionError as error:
                        print(f"objects, {what}: {error}")
                        return 1
                rounds += 1
            also = f", {fenced} of the runs were fenced" if what == "starts" else ""
            print(
                f"objects: {done} {what} in {rounds} rounds{also}; {proxy.faults.total()} faults, equal to a directory"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
