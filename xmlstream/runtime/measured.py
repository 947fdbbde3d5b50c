"""Rates of a former run: how many tuples each source sent in a slice, from its metrics file or its checkpoint.

`xmlstream explain --plans` compares ways to join at these rates, for sources that declare none.
"""

from __future__ import annotations

from pathlib import Path

from punct_ns.errors import UsageError
from xmlstream.runtime.checkpoint import CommitLog
from xmlstream.runtime.metrics import read_metrics


def measured_rates(path: Path) -> dict[str, float]:
    """The average number of tuples that each source and operator emits in a slice, by name.

    Raises:
        UsageError: `path` is neither a metrics file nor a checkpoint, or has no slice with tuples.
    """
    commits = path / "commits"
    reports = [each["report"] for each in CommitLog(commits).records()] if commits.is_dir() else read_metrics(path)
    # Slices without items only wait for input.
    found = [report["operators"] for report in reports if report["items_in"]]
    if not found:
        raise UsageError(f"{path} has no slice with tuples", hint="name a file that --metrics wrote")
    rates: dict[str, float] = {}
    for operators in found:
        for one in operators:
            rates[one["name"]] = rates.get(one["name"], 0) + one["tuples_out"] / len(found)
    return rates
