"""Metrics of a run: where the reports of slices go, and the totals over all slices.

Summaries, the monitor's page and Prometheus show the totals.
"""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

from xmlstream.dataclasses import dataclass, field
from xmlstream.operators.storage.durable import AppendOnlyFile
from xmlstream.operators.storage.object_urls import is_object_url
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.punct_ns.errors import UsageError, counted, reason
from xmlstream.runtime.checkpoint.slice_report import BEFORE, SliceReport


class MetricsFile:
    """A file with one line for each committed slice, a JSON object; lines are appended after existing ones.

    Raises:
        UsageError: The file ends in text that is not metrics.
    """

    def __init__(self, path: Path) -> None:
        self._file = AppendOnlyFile(path.absolute())
        if (torn := self._file.torn()) and not torn.startswith(b"{"):
            what = f"the metrics file {path} ends in text that is not metrics"
            raise UsageError(what, hint="name a separate file for the metrics")
        # Removes a line that a run has begun and not ended.
        self._file.lines()

    def append(self, report: SliceReport) -> None:
        """Appends the line of a slice."""
        self._file.append([json.dumps(report.json())], durable=False)

    def restore(self, report: SliceReport) -> None:
        """Appends the line of the last slice of an earlier run, unless that run has written it."""
        if json.dumps(report.json()).encode() not in self._file.lines():
            self.append(report)


class MetricsObjects:
    """An object for each committed slice below a URL, `000000007.json`, since no object can be appended to.

    Raises:
        UsageError: The store cannot be used.
    """

    def __init__(self, url: str) -> None:
        self._objects = ObjectStore(url)
        self._objects.require_usable()

    def append(self, report: SliceReport) -> None:
        """Makes the object of a slice; one that an earlier run has made is replaced by the same."""
        self._objects.write(f"{report.slice:09d}.json", [json.dumps(report.json()).encode(), b"\n"])

    def restore(self, report: SliceReport) -> None:
        """Makes the object of the last slice of an earlier run, in case that run has not made it."""
        self.append(report)


Metrics: TypeAlias = MetricsFile | MetricsObjects
"""Where the reports of slices go."""


def metrics_at(path: str) -> Metrics:
    """The metrics at a path or below a URL; raises as the classes do."""
    return MetricsObjects(path) if is_object_url(path) else MetricsFile(Path(path))


def read_metrics(path: Path | str) -> list[SliceReport]:
    """The reports in a metrics file, or below a URL; without a last line that a killed run has begun.

    Raises:
        UsageError: The file cannot be read, or is not a metrics file.
    """
    place = str(path).removeprefix("file://")
    try:
        if is_object_url(place):
            objects = ObjectStore(place)
            with ThreadPoolExecutor(ObjectStore.AT_ONCE, thread_name_prefix="metrics") as threads:
                lines = [each.decode() for each in threads.map(objects.read, objects.names())]
        else:
            lines = Path(place).read_text(encoding="utf-8").splitlines(keepends=True)
        return [SliceReport.from_json(json.loads(line)) for line in lines if line.endswith("\n")]
    except OSError as error:
        raise UsageError(f"the metrics file {path} cannot be read: {reason(error)}") from None
    except (ValueError, TypeError, AttributeError):
        what = f"{path} is not a metrics file: it has a line that is not a report of a slice"
        raise UsageError(what, hint="name a file that --metrics wrote") from None


BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the histogram of slice times, in seconds."""


@dataclass(slots=True)
class Totals:
    """The totals of a run up to now.

    Attributes:
        slices: Number of committed slices.
        items_in: Number of tuples and punctuations of all sources.
        tuples_out: Number of tuples of all results.
        set_aside: Number of items that were set aside.
        seconds: Total time of the slices.
        times: Number of slices by their time: one class for each of `BOUNDS`, and one for longer times.
        flows: For each operator, the numbers of items in and out, and of purged and overdue tuples.
        last: The report of the last slice, even if an earlier run committed it.
        time: The recorded time of that slice.
    """

    slices: int = 0
    items_in: int = 0
    tuples_out: int = 0
    set_aside: int = 0
    seconds: float = 0.0
    times: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    flows: dict[str, Counter[str]] = field(default_factory=dict)
    last: SliceReport = BEFORE
    time: str = ""

    def restore(self, report: SliceReport, time: str = "") -> None:
        """Takes over the state after an earlier run's last slice, without counting that slice."""
        self.last, self.time = report, time

    def add(self, report: SliceReport, time: str = "") -> None:
        """Adds the report of one more slice."""
        self.restore(report, time)
        self.slices += 1
        self.items_in += report.items_in
        self.tuples_out += report.tuples_out
        self.set_aside += report.set_aside
        self.seconds += report.seconds
        self.times[sum(report.seconds > bound for bound in BOUNDS)] += 1
        for operator in report.operators:
            flow = self.flows.setdefault(operator.name, Counter())
            for name in ("tuples_in", "tuples_out", "purged", "overdue", "punctuations_in", "punctuations_out"):
                flow[name] += getattr(operator, name)

    def numbers(self) -> dict[str, str]:
        """The texts of the operators' cards in the plan's picture, by keys such as `group_by kept`."""
        found = {}
        for now in self.last.operators:
            name, flow = now.name, self.flows.get(now.name, Counter())
            found[f"{name} tuples"] = f"{flow['tuples_in']:,} in · {flow['tuples_out']:,} out"
            found[f"{name} sent"] = counted(flow["punctuations_out"], "punctuation")
            found[f"{name} kept"] = f"{now.kept:,} now · {flow['purged']:,} purged"
            found[f"{name} held"] = counted(now.punctuations_held, "punctuation")
        return found

    @property
    def kept(self) -> int:
        """Number of tuples that the operators keep after the last slice."""
        return sum(operator.kept for operator in self.last.operators)

    @property
    def held(self) -> int:
        """Number of punctuations that the operators keep after the last slice."""
        return sum(operator.punctuations_held for operator in self.last.operators)

    def json(self) -> dict[str, object]:
        """The totals as a JSON object."""
        return {
            "slices": self.slices,
            "items_in": self.items_in,
            "tuples_out": self.tuples_out,
            "set_aside": self.set_aside,
            "seconds": round(self.seconds, 4),
            "kept": self.kept,
            "held": self.held,
            "operators": {name: dict(flow) for name, flow in self.flows.items()},
        }
