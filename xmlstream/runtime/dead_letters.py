"""Dead letters of slices: the items that a source, or an operator, has set aside, a file for each slice."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from operators.state.durable import make_directory, sync


def write_letters(directory: Path, name: str, slice_id: int, letters: Iterable[dict[str, Any]]) -> None:
    """Writes the dead letters of a slice of a source, or of an operator, to stay."""
    path = directory / f"{name}-{slice_id:09d}.jsonl"
    lines = (json.dumps(row, default=str) + "\n" for row in letters)
    if (first := next(lines, None)) is not None:
        make_directory(path.parent)
        with path.open("w", encoding="utf-8") as file:
            file.write(first)
            file.writelines(lines)
        sync([path, path.parent])


def forget_letters(directory: Path, committed: int) -> None:
    """Removes the dead letters of slices that were not committed."""
    for path in directory.glob("*-" + "[0-9]" * 9 + ".jsonl"):
        if int(path.stem[-9:]) > committed:
            path.unlink()
