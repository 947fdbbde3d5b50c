"""Measured rates: how many tuples the sources of a former run sent in a slice, and how long its operators kept tuples.

By them ways to join are compared (`xmlstream explain --plans`), where sources do not say their rates themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from punct_ns.errors import UsageError
from xmlstream.runtime.commit_log import CommitLog

MORE = 0.1
"""What a lazy purge may keep more than an eager one, of what that keeps."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of a run.

    Attributes:
        slices: In how many slices.
        rates: Of each source, and each operator, the tuples that it put out in a slice, by name.
        kept: Of each operator the tuples that it kept after a slice.
        came: Of each operator the tuples that came to it in a slice.
    """

    slices: int
    rates: Mapping[str, float]
    kept: Mapping[str, float]
    came: Mapping[str, float]

    def lazy(self, operator: str) -> int:
        """In every how many slices a purge of an operator keeps little more than one in each does; 1 for each.

        Between two purges all that comes is kept, half of it more in the mean. What is saved are the looks through all
        that is kept, in the slices between.
        """
        came = self.came.get(operator, 0)
        return 1 if not came else max(1, int(2 * MORE * self.kept.get(operator, 0) / came) + 1)


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
    return Measured(
        len(reports),
        _means(reports, "tuples_out"),
        _means(reports, "kept"),
        _means(reports, "tuples_in"),
    )


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
