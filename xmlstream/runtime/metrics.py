"""Metrics of a slice, per operator: tuples and punctuations in and out, kept and purged, and the time it took."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

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
    are all that was noticed up to here (`xmlstream.runtime.findings`); `memory` is what processes take, in bytes
    (`xmlstream.session.memory`).
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
        self._path = path.absolute()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        _mend(self._path)

    def append(self, report: dict[str, Any]) -> None:
        """Adds the slice's line."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(_line(report))

    def restore(self, report: dict[str, Any]) -> None:
        """Adds the line of the last slice of an earlier run, unless that run came to it."""
        line = _line(report)
        if self._path.exists():
            with self._path.open(encoding="utf-8", errors="replace") as file:
                if any(found == line for found in file):
                    return
        self.append(report)


def _line(report: dict[str, Any]) -> str:
    return json.dumps(report) + "\n"


def _mend(path: Path) -> None:
    """Cuts off a line that a run ended in the middle of, so that the next begins a line."""
    if not path.exists():
        return
    with path.open("r+b") as file:
        whole, _, broken = file.read().rpartition(b"\n")
        if not broken:
            return
        if not broken.startswith(b"{"):
            raise UsageError(f"the metrics file {path} ends in something else", hint="name a file of its own for them")
        file.truncate(len(whole) + bool(whole))


def counted(number: int, word: str) -> str:
    """A number with its word.

    >>> counted(1, "tuple"), counted(2000, "tuple")
    ('1 tuple', '2,000 tuples')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"
