"""Metrics of a run: a report of each slice, per operator, and the totals over all slices.

A report has the tuples and punctuations in and out, kept and purged, and the time that the slice took. Summaries, the
monitor's page and Prometheus show the totals.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from operators.storage.durable import AppendOnlyFile
from punct_ns.errors import UsageError


@dataclass(frozen=True, slots=True)
class OperatorReport:
    """One operator in one slice; `kept` and `punctuations_held` are what it holds after the slice.

    Of the tuples that were purged, `overdue` counts those that were kept for longer than `purge_after` allows.
    """

    name: str
    tuples_in: int
    tuples_out: int
    kept: int
    purged: int
    punctuations_in: int
    punctuations_out: int
    punctuations_held: int
    overdue: int = 0


@dataclass(frozen=True, slots=True)
class SliceReport:
    """One slice; `seconds` pass from its arrival to its commit.

    `items_in` counts tuples and punctuations of all sources, `set_aside` the items that their modes dropped or
    diverted; `closed` says that the input has ended for good; `exact` that no tuple was overdue up to here; `findings`
    are all that was noticed up to here (`xmlstream.runtime.likely_mistakes`); `memory` is what processes take, in bytes
    (`xmlstream.session.java_process`).
    """

    slice: int
    seconds: float
    items_in: int
    tuples_out: int
    operators: tuple[OperatorReport, ...] = field(default=())
    set_aside: int = 0
    closed: bool = False
    exact: bool = True
    findings: tuple[dict[str, Any], ...] = ()
    memory: Mapping[str, int] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


def lately(
    before: Mapping[str, Any], operators: Iterable[OperatorReport], sources: Collection[str], now: Sequence[Any]
) -> dict[str, dict[str, Any]]:
    """When each source `spoke` last, by punctuations, and when the last kept tuples of each operator `left`.

    Args:
        before: The same as of the slice before.
        operators: The reports of this slice.
        sources: The names of those that are sources.
        now: The number of the slice, and its recorded time.
    """
    found = {name: dict(known) for name, known in before.items()}
    for one in operators:
        if one.name in sources and one.punctuations_in:
            found.setdefault(one.name, {})["spoke"] = now
        if one.purged:
            found.setdefault(one.name, {})["left"] = now
    return found


class MetricsFile:
    """One JSON object per committed slice, one a line, after what other runs and other queries have written there.

    Raises:
        UsageError: The file ends in something else.
    """

    def __init__(self, path: Path) -> None:
        self._file = AppendOnlyFile(path.absolute())
        if (torn := self._file.torn()) and not torn.startswith(b"{"):
            what = f"the metrics file {path} ends in something else"
            raise UsageError(what, hint="name a file of its own for them")
        # A run that ended in the middle of a line has left the rest of it out.
        self._file.lines()

    def append(self, report: dict[str, Any]) -> None:
        """Adds the slice's line."""
        self._file.append([json.dumps(report)], durable=False)

    def restore(self, report: dict[str, Any]) -> None:
        """Adds the line of the last slice of an earlier run, unless that run came to it."""
        if json.dumps(report).encode() not in self._file.lines():
            self.append(report)


def counted(number: int, word: str) -> str:
    """A number with its word.

    >>> counted(1, "tuple"), counted(2000, "tuple")
    ('1 tuple', '2,000 tuples')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"


BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the classes of slice times, in seconds."""


@dataclass(slots=True)
class Totals:
    """What a run has done up to now.

    Attributes:
        slices: How many slices were committed.
        items_in: Tuples and punctuations of all sources.
        tuples_out: Tuples of all results.
        set_aside: Items that went no further.
        seconds: Time of the slices.
        times: How many slices took so long; by the classes of `BOUNDS`, and one for all longer ones.
        flows: Of each operator what came in, went out and was purged, and what of that was overdue.
        last: The report of the last slice, also of one that an earlier run committed.
        time: When that was.
    """

    slices: int = 0
    items_in: int = 0
    tuples_out: int = 0
    set_aside: int = 0
    seconds: float = 0.0
    times: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    flows: dict[str, Counter[str]] = field(default_factory=dict)
    last: Mapping[str, Any] = field(default_factory=dict)
    time: str = ""

    def restore(self, record: Mapping[str, Any]) -> None:
        """What an earlier run left: what is kept, but nothing that this one did."""
        self.last, self.time = record["report"], record.get("time", "")

    def add(self, record: Mapping[str, Any]) -> None:
        """One more slice."""
        report = record["report"]
        self.restore(record)
        self.slices += 1
        self.items_in += report["items_in"]
        self.tuples_out += report["tuples_out"]
        self.set_aside += report["set_aside"]
        self.seconds += report["seconds"]
        self.times[sum(report["seconds"] > bound for bound in BOUNDS)] += 1
        for operator in report["operators"]:
            flow = self.flows.setdefault(operator["name"], Counter())
            for name in ("tuples_in", "tuples_out", "purged", "overdue", "punctuations_in", "punctuations_out"):
                flow[name] += operator[name]

    def numbers(self) -> dict[str, str]:
        """What the cards of the plan's picture say of operators, by keys such as `group_by kept`."""
        found = {}
        for now in self.last.get("operators", ()):
            name, flow = now["name"], self.flows.get(now["name"], Counter())
            said, held = flow["punctuations_out"], now["punctuations_held"]
            found[f"{name} tuples"] = f"{flow['tuples_in']:,} in · {flow['tuples_out']:,} out"
            found[f"{name} said"] = f"{said:,} punctuation{'' if said == 1 else 's'}"
            found[f"{name} kept"] = f"{now['kept']:,} now · {flow['purged']:,} purged"
            found[f"{name} held"] = f"{held:,} punctuation{'' if held == 1 else 's'}"
        return found

    def json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "slices": self.slices,
            "items_in": self.items_in,
            "tuples_out": self.tuples_out,
            "set_aside": self.set_aside,
            "seconds": round(self.seconds, 4),
            "kept": sum(operator["kept"] for operator in self.last.get("operators", ())),
            "held": sum(operator["punctuations_held"] for operator in self.last.get("operators", ())),
            "operators": {name: dict(flow) for name, flow in self.flows.items()},
        }
