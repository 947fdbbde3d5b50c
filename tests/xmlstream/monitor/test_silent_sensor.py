"""One sensor is silent: the page and the terminal of a real run name it with what is missing, until it speaks."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.xmlstream.monitor.test_page import wait_for
from tests.xmlstream.monitor.test_watched_run import asked, until
from xmlstream.punct_ns.xml_form import PUNCT_NS

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.rest, pytest.mark.spark]

WAREHOUSE = Path(__file__).parents[3] / "data" / "warehouse.sql"

MOST_MILLISECONDS = 60_000
"""Between a slice and the words that it makes true: only what hangs takes so long."""

WATCH = """() => {
    window.seen = [];
    const note = what => window.seen.push([what, performance.now()]);
    new EventSource("events").addEventListener("slice", () => note("slice"));
    new MutationObserver(() => note(document.getElementById("held").textContent))
        .observe(document.getElementById("held"), {childList: true, subtree: true});
}"""
"""Notes when slices came, and when what is waited for was told anew."""


def hours(sensor: str, first: int, last: int) -> str:
    return "".join(
        f"<tempdata><sid>{sensor}</sid><hour>{hour}</hour><min>0</min><currtmp>{60 + hour}</currtmp></tempdata>"
        f"<p:tempdata><sid>*</sid><hour>{hour}</hour><min>*</min><currtmp>*</currtmp></p:tempdata>"
        for hour in range(first, last)
    )


class Terminal:
    """A command in a terminal, and what it has shown."""

    def __init__(self, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "xmlstream", *arguments],
            stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs, env=environment, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self._shown = bytearray()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with suppress(OSError):  # the command has ended
            while part := os.read(self._ours, 65536):
                self._shown += part

    @property
    def text(self) -> str:
        """All that it has shown, without colours and movements."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._shown.decode("utf-8", "replace"))


@contextmanager
def followed(sensors: Path, directory: Path) -> Iterator[Terminal]:
    """The warehouse query, followed in a terminal."""
    where = ["-D", f"SENSORS={sensors}", "-o", str(directory / "out"), "--checkpoint", str(directory / "state")]
    terminal = Terminal("run", str(WAREHOUSE), *where, "--follow", "--monitor", "0")
    try:
        yield terminal
    finally:
        terminal.process.send_signal(signal.SIGINT)
        terminal.process.wait(300)


def test_a_silent_sensor_is_named_with_the_missing_pattern_until_it_speaks(browser: Browser, tmp_path: Path) -> None:
    for number, last in ((1, 2), (2, 2)):
        text = f'<s xmlns:p="{PUNCT_NS}">{hours(f"S{number}", 0, last)}'
        (tmp_path / f"sensor{number}.xml").write_text(text, encoding="utf-8")
    with followed(tmp_path, tmp_path) as terminal:
        until(lambda: "monitor: http" in terminal.text)
        (url,) = re.findall(r"monitor: (http://\S+/)", terminal.text)
        until(lambda: json.loads(asked(url, "healthz"))["slices"] > 0)
        page = browser.new_page()
        page.goto(url)
        wait_for(page, "#axes tr.meet", "0 to 1")
        page.evaluate(WATCH)
        with (tmp_path / "sensor1.xml").open("a", encoding="utf-8") as file:
            file.write(hours("S1", 2, 4))
        missing = "lacks hour 2 to 3; must send <*, [2,3], *, *>"
        wait_for(page, "#held", missing)
        assert re.search(r"sensor2, since \d\d:\d\d: 2 groups\n", page.inner_text("#held"))
        page.click("#held summary")
        now = json.loads(asked(url, "healthz"))["slices"] - 1
        assert re.search(
            rf"hour=2, since slice {now} \(\d\d:\d\d:\d\d\): sensor2 must send <\*, 2, \*, \*>",
            page.inner_text("#held"),
        )
        seen = page.evaluate("window.seen")
        told = next(at for what, at in seen if missing in what)
        took = told - max(at for what, at in seen if what == "slice" and at <= told)
        print(f"named {took:.0f} ms after its slice")
        assert took < MOST_MILLISECONDS
        until(lambda: "waits for sensor2 to send <*, [2,3], *, *>" in terminal.text)
        assert re.search(r"no slice for \d+ s; waits for sensor2 to send", terminal.text)
        shown = len(terminal.text)
        with (tmp_path / "sensor2.xml").open("a", encoding="utf-8") as file:
            file.write(hours("S2", 2, 4))
        wait_for(page, "#lacking", "nothing: no input lags behind the others")
        wait_for(page, "#figures", "4")
        until(lambda: "waits for more input" in terminal.text[shown:])
        out = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "out").glob("*.xml"))
        assert "<maxtemp>63</maxtemp><hour>3</hour>" in out
        page.close()
    assert "ending after the current slice" in terminal.text
