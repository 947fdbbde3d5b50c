"""What a slice did, per operator: tuples and punctuations in and out, what is kept, and the time it took."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class OperatorReport:
    """One operator in one slice; `kept` and `punctuations_held` are what it holds after the slice."""

    name: str
    tuples_in: int
    tuples_out: int
    kept: int
    purged: int
    punctuations_in: int
    punctuations_out: int
    punctuations_held: int


@dataclass(frozen=True, slots=True)
class SliceReport:
    """One slice; `seconds` pass from its arrival to its commit.

    `items_in` counts tuples and punctuations of all sources, `set_aside` the items that their modes dropped or
    diverted; `closed` says that the input has ended for good; `findings` are all that was noticed up to here
    (`xmlstream.findings`).
    """

    slice: int
    seconds: float
    items_in: int
    tuples_out: int
    operators: tuple[OperatorReport, ...] = field(default=())
    set_aside: int = 0
    closed: bool = False
    findings: tuple[dict[str, Any], ...] = ()

    def json(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


class MetricsFile:
    """One JSON object per committed slice, one a line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._last = _last_slice(path)

    def append(self, report: dict[str, Any]) -> None:
        """Adds the slice's line unless it stands there already, from before a restart."""
        if self._last is not None and report["slice"] <= self._last:
            return
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(report) + "\n")
        self._last = report["slice"]


def _last_slice(path: Path) -> int | None:
    if not path.exists():
        return None
    lines = path.read_text(encoding="utf-8").splitlines()
    return int(json.loads(lines[-1])["slice"]) if lines else None
