"""Rates of a former run: how many tuples each source sent in a slice, from its metrics file or its checkpoint.

`xmlstream explain --plans` compares ways to join at these rates, for sources that declare none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from punct_ns.errors import UsageError
from xmlstream.runtime.checkpoint import CommitLog


def measured_rates(path: Path) -> dict[str, float]:
    """The average number of tuples that each source and operator emits in a slice, by name.

    Raises:
        UsageError: `path` is neither a metrics file nor a checkpoint, or has no slice with tuples.
    """
    reports = _of_checkpoint(path) if (path / "commits").is_dir() else _of_file(path)
    # Slices without items only wait for input.
    found = [report["operators"] for report in reports if report["items_in"]]
    if not found:
        raise UsageError(f"{path} has no slice with tuples", hint="name a file that --metrics wrote")
    rates: dict[str, float] = {}
    for operators in found:
        for one in operators:
            rates[one["name"]] = rates.get(one["name"], 0) + one["tuples_out"] / len(found)
    return rates


def _of_checkpoint(path: Path) -> Iterator[Mapping[str, Any]]:
    for record in CommitLog(path / "commits").records():
        yield record["report"]


def _of_file(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"{path} cannot be read", hint="name a file that --metrics wrote, or a checkpoint") from None
    for line in lines:
        try:
            report = json.loads(line)
        except ValueError:
            continue  # the last line of a run that was killed
        if isinstance(report, dict) and {"items_in", "operators"} <= report.keys():
            yield report
