"""Alerts of a run: a command of the user's runs once when a condition begins to hold, and once when it has ended.

    in4 silent 10m        no punctuation of the source has come for so long
    group_by kept > 1000  an operator keeps more tuples

How long a source has been silent is that on the page (`progress`). Time passes without a slice, too: a thread looks
once a second.

The command finds in its environment the alert as it was given, `XMLSTREAM_ALERT`; `XMLSTREAM_STATE`, `begun` or
`ended`; `XMLSTREAM_SOURCE`, the name; `XMLSTREAM_VALUE`, the seconds of silence or the number of tuples; and
`XMLSTREAM_CHECKPOINT`. A command that fails is logged, and never ends the run. What holds when a run ends has not
ended; the next run begins with it anew.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from xmlstream.dataclasses import dataclass
from xmlstream.operators.storage.store import folder_at
from xmlstream.plan.nodes import Scan, names
from xmlstream.punct_ns.errors import UsageError
from xmlstream.runtime.checkpoint.commit_log import Commit
from xmlstream.runtime.progress import SourceProgress
from xmlstream.runtime.watching import Watched, Watcher
from xmlstream.sources.xml.options.formats import seconds

EVERY_SECONDS = 1.0
"""The time between two looks at the conditions."""

COMMAND_SECONDS = 60.0
"""The longest time that a command may take; then it is killed."""

_FORM = re.compile(r"\s*(?P<name>\S+)\s+(?:silent\s+(?P<time>\S+)|kept\s*>\s*(?P<most>[\d_]+))\s*", re.IGNORECASE)
_HINT = "an alert is 'in4 silent 10m', or 'group_by kept > 1000'"

_LOG = logging.getLogger("xmlstream.alerts")


@dataclass(frozen=True, slots=True)
class Alert:
    """A condition on a source or an operator: silent for so many seconds, or more tuples kept than so many."""

    text: str
    name: str
    silent: float | None = None
    most: int | None = None

    @staticmethod
    def parse(text: str) -> Alert:
        """Parses the text of an alert.

        >>> Alert.parse("in4 silent 10m").silent, Alert.parse("group_by kept > 1000").most
        (600.0, 1000)

        Raises:
            UsageError: It cannot be read.
        """
        if (found := _FORM.fullmatch(text)) is None:
            raise UsageError(f"the alert '{text}' cannot be read", hint=_HINT)
        name, time, most = found.groups()
        return Alert(text, name, most=int(most)) if time is None else Alert(text, name, seconds("silent", time))


class Alerts(Watcher):
    """Watches a run for alerts, and runs their command.

    Args:
        texts: The alerts.
        command: What the shell runs.
        now: Returns the time.
    """

    where = ""

    def __init__(
        self, texts: Sequence[str], command: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._alerts, self._command, self._now = [Alert.parse(text) for text in texts], command, now
        self._record: Commit | None = None
        self._progress: SourceProgress | None = None
        self._names: dict[str, str] = {}
        self._checkpoint = ""
        self._hold = set[Alert]()
        self._over, self._looking = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._run, name="alerts", daemon=True)

    def begun(self, run: Watched) -> None:
        """Takes the start of the run.

        Raises:
            UsageError: An alert names no source or operator of the plan.
        """
        called = names(run.root)
        for alert in self._alerts:
            among = [name for node, name in called.items() if alert.most is not None or isinstance(node.operator, Scan)]
            found = next((name for name in among if name.lower() == alert.name.lower()), None)
            if found is None:
                what = f"the alert '{alert.text}' names nothing of the plan"
                raise UsageError(what, hint=f"there are {', '.join(among)}")
            self._names[alert.name] = found
        self._progress = SourceProgress.of(run.root, self._now())
        self._checkpoint = folder_at(run.checkpoint).where()
        self._thread.start()

    def restored(self, record: Commit) -> None:
        """Takes the commit from which the run goes on."""
        self.committed(record)

    def committed(self, record: Commit) -> None:
        """Takes the record of a slice."""
        assert self._progress is not None
        self._progress.add(record)
        self._record = record

    def ended(self, failure: BaseException | None) -> None:
        """Ends the watch."""
        self._over.set()

    def look(self) -> None:
        """Runs the command for each condition that has begun to hold, or has ended, since the last look."""
        with self._looking:
            for alert in self._alerts:
                value = self._value(alert)
                holds = value >= alert.silent if alert.silent is not None else value > (alert.most or 0)
                if holds != (alert in self._hold):
                    self._hold ^= {alert}
                    self._call(alert, "begun" if holds else "ended", value)

    def _value(self, alert: Alert) -> float:
        """The seconds of silence of the source, or the tuples that the operator keeps."""
        assert self._progress is not None
        name = self._names[alert.name]
        if alert.silent is not None:
            return self._progress.silent(name, self._now()).total_seconds()
        reports = self._record.report.operators if self._record is not None else ()
        return next((each.kept for each in reports if each.name == name), 0)

    def _call(self, alert: Alert, state: str, value: float) -> None:
        found = {"ALERT": alert.text, "STATE": state, "SOURCE": self._names[alert.name], "VALUE": f"{value:.0f}"}
        found |= {"CHECKPOINT": self._checkpoint}
        environment = {**os.environ, **{f"XMLSTREAM_{name}": text for name, text in found.items()}}
        what = f"the command of the alert '{alert.text}'"
        try:
            running = subprocess.Popen(  # noqa: S602 - the user's own command, for the shell
                self._command, shell=True, env=environment, stdin=subprocess.DEVNULL, start_new_session=True
            )
        except OSError as error:
            _LOG.warning("%s cannot be run: %s", what, error.strerror)
            return
        try:
            if code := running.wait(COMMAND_SECONDS):
                _LOG.warning("%s has failed, with exit code %d", what, code)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()
            _LOG.warning("%s took longer than %.0f s, and was killed", what, COMMAND_SECONDS)

    def _run(self) -> None:
        while not self._over.wait(EVERY_SECONDS):
            self.look()
