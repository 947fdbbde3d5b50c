"""The nights: every search of the tests, each round with a fresh seed, until the time is over.

    .venv/bin/python -m tests.campaigns.nights [--hours 2] [--seed N] [--examples 1000] [NAME …]

By day each property tries few examples, the same in every run. By night it tries many, and new ones. What fails is
written to `out/nights`: the output of the search, and in `open.json` its seed, with which the next run begins.
A failing example that is understood becomes an `@example`, so that it runs by day.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random, SystemRandom

PROPERTIES = sorted(Path("tests").glob("**/test_*.py"))
"""Where searches are: all tests whose examples Hypothesis draws, and those that do more at night."""

BENCHMARKS = sorted(str(path) for path in Path("tests/benchmarks").glob("*.py"))
CAMPAIGNS = {
    "benchmarks": ["env", "BENCH_SCALE=0.01", "BENCH_ROUNDS=1", sys.executable, "-m", "pytest", *BENCHMARKS],
    "clusters": [sys.executable, "-m", "tests.campaigns.clusters", "--kills", "2"],
    "damage": [sys.executable, "-m", "tests.campaigns.damage"],
    "feed": [sys.executable, "-m", "tests.campaigns.feed", "--kills", "3", "--clean", "delete"],
    "objects": [sys.executable, "-m", "tests.campaigns.objects", "--kills", "20", "--starts", "20", "--faults", "200"],
    "oldest": ["env", "HYPOTHESIS_PROFILE=quick", "make", "oldest"],
    "power": [sys.executable, "-m", "tests.campaigns.power", "--states", "100"],
    "receivers": [sys.executable, "-m", "tests.campaigns.receivers", "--kills", "5"],
    "sinks": [sys.executable, "-m", "tests.campaigns.sinks"],
}
"""What is killed and damaged at random, and what runs on PySpark's oldest version, beside the properties.

The benchmarks are run small, and their numbers mean nothing: it shows that each still runs.

`make signals` takes an hour and stays by itself.
"""

DRAWS = re.compile(r"^from hypothesis|tests\.harness\.nights", re.MULTILINE)
PASSING = re.compile(r"(\d+) passing, ")
SUMMARY = re.compile(r"^=+ (.*\b(?:passed|failed|error|skipped|no tests ran)\b.*) =+$", re.MULTILINE)
TURN = 600.0
"""Seconds of a search in each round, so that a short night sees many searches; the next round draws other examples."""


@dataclass(frozen=True, slots=True)
class Search:
    """A test file or a campaign, the seed of its draws, and how many examples the profile has."""

    name: str
    seed: int
    examples: int

    def command(self) -> list[str]:
        if self.name in CAMPAIGNS:
            return CAMPAIGNS[self.name]
        options = ["-p", "no:cacheprovider", "--hypothesis-show-statistics", "--capture=no"]
        return [sys.executable, "-m", "pytest", *options, f"--hypothesis-seed={self.seed}", self.name]

    def environment(self) -> dict[str, str]:
        own = {"HYPOTHESIS_PROFILE": "night", "NIGHT_EXAMPLES": str(self.examples), "NIGHT_SEED": str(self.seed)}
        return {**os.environ, **own}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a search ended, and what it printed; `passed` is None where the time was over before it ended."""

    passed: bool | None
    seconds: float
    output: str

    @property
    def words(self) -> str:
        """Its result in a line."""
        state = "not finished, nothing found" if self.passed is None else "passed" if self.passed else "FAILED"
        counted = sum(int(n) for n in PASSING.findall(self.output))
        summary = SUMMARY.findall(self.output)[-1:]
        return ", ".join([state, f"{self.seconds:.0f} s", *([f"{counted} test cases"] if counted else []), *summary])


HUNG = "\nhung: two minutes after an interrupt it had not ended\n"


def searches() -> list[str]:
    """The test files that draw, and the campaigns."""
    return [*(str(path) for path in PROPERTIES if DRAWS.search(path.read_text())), *CAMPAIGNS]


def run(search: Search, seconds: float) -> Outcome:
    """Runs a search for so many seconds at most, and interrupts it then."""
    begin = time.monotonic()
    process = subprocess.Popen(
        search.command(),
        env=search.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # an interrupt of the night ends Python first, and Java after it
        # A night in the background of a shell ignores interrupts, and would hand that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads run
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        output = _ended(process)
        found = "Failing test case" in output or "FAILED" in output or output.endswith(HUNG)
        return Outcome(False if found else None, time.monotonic() - begin, output)
    except BaseException:
        _ended(process)
        raise
    return Outcome(process.returncode == 0, time.monotonic() - begin, output)


def _ended(process: subprocess.Popen[str]) -> str:
    """Interrupts a process, so that it says what it knows, and kills what is left of it."""
    process.send_signal(signal.SIGINT)
    try:
        output, _ = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        output = None
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return output if output is not None else process.communicate()[0] + HUNG


def rounds(names: Sequence[str], seed: int, examples: int, left_open: Sequence[Search]) -> Iterator[Search]:
    """What failed last time; then all searches in a drawn order, round after round, each round with a new seed."""
    yield from left_open
    random = Random(seed)
    while True:
        of_round = random.randrange(10**9)
        for name in random.sample(names, len(names)):
            yield Search(name, of_round, examples)


def night(names: Sequence[str], hours: float, seed: int, examples: int, directory: Path) -> list[Search]:
    """Runs searches until the time is over, prints a line for each; the searches that failed."""
    directory.mkdir(parents=True, exist_ok=True)
    record = directory / "open.json"
    left_open = [Search(**each) for each in json.loads(record.read_text())] if record.exists() else []
    until = time.monotonic() + 3600 * hours
    failed: list[Search] = list(left_open)
    for search in rounds(names, seed, examples, left_open):
        left = until - time.monotonic()
        if left <= 0:
            break
        outcome = run(search, min(left, TURN))
        print(f"{time.strftime('%H:%M')} {search.name} seed {search.seed}: {outcome.words}", flush=True)
        if outcome.passed and search in failed:
            failed.remove(search)
        if outcome.passed is False:
            failed = [*(each for each in failed if each != search), search]
            written = directory / f"{Path(search.name).stem}-{search.seed}.txt"
            written.write_text(outcome.output)
            print(f"      what it printed: {written}", flush=True)
        record.write_text(json.dumps([asdict(each) for each in failed], indent=1))
    return failed


def main() -> int:
    """Runs a night; 1 where a search has failed."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("names", nargs="*", metavar="NAME", help="searches with this in their name (all)")
    arguments.add_argument("--hours", type=float, default=2)
    arguments.add_argument("--seed", type=int, default=SystemRandom().randrange(10**9), help="a fresh one (printed)")
    arguments.add_argument("--examples", type=int, default=1000, help="examples of a property; costly ones try a share")
    arguments.add_argument("--directory", type=Path, default=Path("out/nights"), help="where failures are kept")
    given = arguments.parse_args()
    names = [name for name in searches() if not given.names or any(part in name for part in given.names)]
    if not names:
        arguments.error(f"no search has {' or '.join(given.names)} in its name; there are {', '.join(searches())}")
    print(f"night of {given.hours:g} hours, --seed {given.seed}: {len(names)} searches", flush=True)
    try:
        failed = night(names, given.hours, given.seed, given.examples, given.directory)
    except KeyboardInterrupt:
        print(f"interrupted; what failed is in {given.directory / 'open.json'}")
        return 130
    for search in failed:
        print(f"open: {' '.join(search.command())}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
