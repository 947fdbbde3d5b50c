"""The object stores' campaign: runs on a store alone are killed, run against each other, and meet faults.

    .venv/bin/python -m tests.campaigns.objects [--kills 60] [--starts 100] [--faults 500]

A server of S3's protocol has input, output and checkpoint, behind a proxy that makes faults. What a query writes is
byte-equal to what it writes into a directory, and in every second round, into a table of Delta, equal row by row. Of
runs against each other, each stands still once. `tests/xmlstream/runtime/checkpoint/test_on_objects.py` does the same
with few.
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

from deltalake import DeltaTable

from tests.harness.fault_proxy import fault_proxy
from tests.harness.seaweed import object_server
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.sources.generators.sensors import write_sensors

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
        output: The name of the output: a directory of documents, or a table of Delta.
    """

    directory: Path
    url: str
    environment: Mapping[str, str]
    engine: str = "duckdb"
    output: str = "out"

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

    def expected(self) -> Mapping[str, object]:
        """What the query writes into a directory, as `written`."""
        out = self.directory / self.output
        command = self._command(str(self.directory / "in"), str(out), str(self.directory / "checkpoint"))
        subprocess.run(command, check=True, capture_output=True, timeout=MOST)
        if self.output.endswith(".delta"):
            return _tables(str(out))
        return {path.name: path.read_bytes() for path in out.glob("slice-*.xml")}

    def written(self) -> Mapping[str, object]:
        """The documents that are on the store, or the rows of the two tables."""
        if self.output.endswith(".delta"):
            return _tables(f"{self.url}/{self.output}")
        store = ObjectStore(f"{self.url}/{self.output}")
        return {name: store.read(name) for name in store.names() if name.startswith("slice-")}

    def start(self) -> subprocess.Popen[str]:
        """Starts a run on the store."""
        command = self._command(f"{self.url}/in", f"{self.url}/{self.output}", self.checkpoint)
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


def _tables(output: str) -> dict[str, list[str]]:
    """The rows of a table of Delta and of the one beside it, in order."""
    names = output, output.replace(".delta", "_closed.delta")
    options = {"aws_allow_http": "true"} if output.startswith("s3:") else None
    tables = [DeltaTable(name, storage_options=options).to_pyarrow_table().to_pylist() for name in names]
    return {name: sorted(map(str, rows)) for name, rows in zip(("rows", "closed"), tables, strict=True)}


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


def run_against_each_other(runs: Runs, starts: int, draws: random.Random, still: float = 6.0) -> int:
    """Starts so many runs, at each moment two or three; returns how many were fenced by another.

    Each stands still once, for at most `still` seconds.

    Raises:
        AssertionError: A run ended otherwise than fenced or with success.
    """

    def one(pause: float, until: float, stands: float) -> bool:
        time.sleep(pause)
        process = runs.start()
        time.sleep(until)
        os.killpg(process.pid, signal.SIGSTOP)
        time.sleep(stands)
        os.killpg(process.pid, signal.SIGCONT)
        output, _ = process.communicate(timeout=MOST)
        assert process.returncode == 0 or FENCED.search(output), output
        assert "Traceback" not in output, output
        return process.returncode != 0

    with ThreadPoolExecutor(3) as threads:
        most = 1.0, 0.5 + still, still
        drawn = [tuple(draws.uniform(0.0, each) for each in most) for _ in range(starts)]
        return sum(threads.map(one, *zip(*drawn, strict=True)))


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
                    url, out = f"s3://campaign/{given.seed}/{what}-{rounds}", ("out", "out.delta")[rounds % 2]
                    runs = Runs(Path(directory), url, through, output=out)
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
