"""Totals of a run, added up from the reports of its slices; what people, pages and Prometheus are told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
