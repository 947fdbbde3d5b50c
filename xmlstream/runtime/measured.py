"""Rates of a former run: how many tuples each source sent in a slice, from its metrics file or its checkpoint.

`xmlstream explain --plans` compares ways to join at these rates, for sources that declare none.
"""

from __future__ import annotations

from xmlstream.punct_ns.errors import UsageError
from xmlstream.runtime.checkpoint import CommitLog
from xmlstream.runtime.metrics import read_metrics
from xmlstream.runtime.remote_checkpoint import readable


def measured_rates(path: str) -> dict[str, float]:
    """The average number of tuples that each source and operator emits in a slice, by name.

    Raises:
        UsageError: What is at the path or the URL is neither metrics nor a checkpoint, or has no slice with tuples.
    """
    with readable(path) as (directory, _):
        records = CommitLog(directory.below("commits")).records()
        reports = [each.report for each in records] or read_metrics(path)
    # Slices without items only wait for input.
    found = [report.operators for report in reports if report.items_in]
    if not found:
        raise UsageError(f"{path} has no slice with tuples", hint="name a file that --metrics wrote")
    rates: dict[str, float] = {}
    for operators in found:
        for one in operators:
            rates[one.name] = rates.get(one.name, 0) + one.tuples_out / len(found)
    return rates
