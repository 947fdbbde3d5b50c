"""One core and 512 MB: a broker, a receiver, a query that follows them in process, and its page."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.harness.feeds import HOST, broker, free_port
from tests.harness.nights import AT_NIGHT

MEMORY = 512 << 20
GROUPS = Path("/sys/fs/cgroup")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not AT_NIGHT, reason="a minute of waiting for sensors: make nights has it"),
]


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of Linux whose processes have 512 MB of memory together."""
    place = next((each for each in (GROUPS / "memory", GROUPS) if each.is_dir()), GROUPS) / f"xmlstream-{os.getpid()}"
    limit = "memory.limit_in_bytes" if place.parent.name == "memory" else "memory.max"
    try:
        place.mkdir()
        (place / limit).write_text(str(MEMORY))
    except OSError as error:
        pytest.skip(f"needs the right to make a control group: {error}")
    try:
        yield place
    finally:
        with suppress(OSError):
            place.rmdir()


def begun(group: Path | None, command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """A command of xmlstream; in the group on one core, or elsewhere."""
    given = [sys.executable, "-m", "xmlstream", *command]
    if group is not None:
        enter = 'echo $$ > "$0/cgroup.procs"; exec taskset -c 0 "$@"'
        given = ["sh", "-c", enter, str(group), *given]
    with log.open("wb") as out:
        return subprocess.Popen(given, stdout=out, stderr=subprocess.STDOUT)


def within(seconds: float, what: str, *logs: Path, true: Callable[[], bool]) -> None:
    """Waits until a function returns true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, (what, [log.read_text() for log in logs])
        time.sleep(0.2)


def test_a_followed_query_its_feed_and_its_page_fit_on_a_small_machine(group: Path, tmp_path: Path) -> None:
    feed, state, table, slices = (tmp_path / name for name in ("feed", "state", "maxima.parquet", "slices.jsonl"))
    with ExitStack() as stack:
        port, page = stack.enter_context(broker(tmp_path)), free_port()

        def begin(name: str, *command: str, small: bool = True) -> tuple[subprocess.Popen[bytes], Path]:
            log = tmp_path / f"{name}.log"
            process = begun(group if small else None, command, log)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            return process, log

        topic = f"mqtt://{HOST}:{port}/warehouse"
        into = ["--into", str(feed), "--row-tag", "tempdata", "--apart", "--key", "sid,hour,min"]
        _, log = begin("receiver", "receive", f"{topic}/#", *into)
        within(60, "the receiver", log, true=lambda: b"receiving" in log.read_bytes())
        begin("sensors", "generate", "sensors", "--to", topic, "--hours", "1000000", "--rate", "240", small=False)
        within(60, "both feeds", log, true=lambda: len(list(feed.glob("*/*.xml"))) > 1)
        places = ["--checkpoint", str(state), "-o", str(table), "--metrics", str(slices)]
        query, ran = begin(
            "query", "run", "data/warehouse_live.sql", "-D", f"FEED={feed}", "--follow", "--engine", "duckdb", *places
        )
        within(120, "a slice", ran, true=slices.is_file)
        _, served = begin("page", "monitor", "--checkpoint", str(state), "--metrics", str(slices), "--at", str(page))
        within(300, "fifty slices", ran, true=lambda: slices.read_bytes().count(b"\n") > 50)
        within(60, "the page", served, true=lambda: str(page).encode() in served.read_bytes())
        with urllib.request.urlopen(f"http://{HOST}:{page}/", timeout=30) as answer:
            assert b"<title>state" in answer.read()
        query.send_signal(signal.SIGTERM)
        assert query.wait(60) == 0, ran.read_text()
        peak = next(path for name in ("memory.max_usage_in_bytes", "memory.peak") if (path := group / name).is_file())
        assert int(peak.read_text()) < MEMORY
    assert pq.read_table(table).num_rows >= 10
