"""Measured rates: how many tuples the sources of a former run sent in a slice, and how long its operators kept tuples.

By them ways to join are compared (`xmlstream explain --plans`), where sources do not say their rates themselves; and
a run that goes on from its checkpoint chooses by them how joins of many purge.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from punct_ns.errors import StateError, UsageError
from xmlstream.plan.loads import Load, Loads
from xmlstream.runtime.checkpoint import CommitLog


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of a run.

    Attributes:
        slices: In how many slices.
        rates: Of each source, and each operator, the tuples that it put out in a slice, by name.
        loads: Of each operator the tuples that it kept after a slice, and that came to it in one.
    """

    slices: int
    rates: Mapping[str, float]
    loads: Loads


def measured(path: Path) -> Measured:
    """What a metrics file tells, or a checkpoint, of its latest slices.

    Raises:
        UsageError: It is neither, or tells of no slice.
    """
    reports = list(_of_checkpoint(path) if (path / "commits").is_dir() else _of_file(path))
    # Slices without tuples are waits for the next ones.
    reports = [report for report in reports if report["items_in"]]
    if not reports:
        raise UsageError(f"{path} tells of no slice in which anything came", hint="name a file that --metrics wrote")
    kept, came = _means(reports, "kept"), _means(reports, "tuples_in")
    loads = {name: Load(kept[name], came[name]) for name in kept}
    return Measured(len(reports), _means(reports, "tuples_out"), loads)


def loads_of(checkpoint: str | Path | None) -> Loads:
    """What the run before has measured of a query with this checkpoint; nothing where there was none."""
    if checkpoint is None or not (Path(checkpoint) / "commits").is_dir():
        return {}
    try:
        return measured(Path(checkpoint)).loads
    except (UsageError, StateError):
        return {}  # nothing came yet; whether it is damaged, the run itself looks at


def _means(reports: list[Mapping[str, Any]], what: str) -> dict[str, float]:
    sums: dict[str, float] = {}
    for report in reports:
        for one in report["operators"]:
            sums[one["name"]] = sums.get(one["name"], 0) + one[what]
    return {name: total / len(reports) for name, total in sums.items()}


def _of_checkpoint(path: Path) -> Iterator[Mapping[str, Any]]:
    for record in CommitLog(path / "commits").records():
        yield record["report"]


def _of_file(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        lines: Iterable[str] = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"{path} cannot be read", hint="name a file that --metrics wrote, or a checkpoint") from None
    for line in lines:
        try:
            report = json.loads(line)
        except ValueError:
            continue  # the last line of a run that was killed
        if isinstance(report, dict) and {"items_in", "operators"} <= report.keys():
            yield report
