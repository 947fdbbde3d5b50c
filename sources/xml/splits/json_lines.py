"""Logs of a source: files that only grow, each line an object of JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from punct_ns.errors import StateError


def logged(log: Path) -> list[Mapping[str, Any]]:
    """The lines of a log; none where there is no log. A line that was cut short is removed.

    Raises:
        StateError: A line is no object of JSON.
    """
    if not log.exists():
        return []
    text = log.read_bytes()
    whole, _, broken = text.rpartition(b"\n")
    if broken:
        # The process ended while it wrote; that line does not count yet.
        with log.open("r+b") as file:
            file.truncate(len(text) - len(broken))
    try:
        lines = [json.loads(line) for line in whole.splitlines()]
    except ValueError:
        raise no_log(log) from None
    if not all(isinstance(line, dict) for line in lines):
        raise no_log(log)
    return cast("list[Mapping[str, Any]]", lines)


def append(log: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Adds lines, to stay."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        file.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        file.flush()
        os.fsync(file.fileno())


def no_log(log: Path) -> StateError:
    """That a log has other lines than it should."""
    return StateError(f"{log} is no log of documents", hint="restore it, or begin with a new checkpoint")
