"""Documents of sessions with random identifiers, each closed by a punctuation of its own."""

from __future__ import annotations

from pathlib import Path
from random import Random
from uuid import UUID

from xmlstream.punct_ns.xml_form import PUNCT_NS

SCHEMA = "sid STRING NOT NULL, n INT"
TAG = "view"


def identifiers(count: int, seed: int = 1) -> list[str]:
    """So many of them, which are no neighbours."""
    random = Random(seed)
    return [str(UUID(int=random.getrandbits(128), version=4)) for _ in range(count)]


def write_sessions(directory: Path, sids: list[str], per_document: int, *, views: int = 2, late: int = 0) -> Path:
    """A document for each slice: sessions begin with views and are closed `late` documents after their own."""
    directory.mkdir(parents=True)
    parts = [sids[begin : begin + per_document] for begin in range(0, len(sids), per_document)]
    for number in range(len(parts) + late):
        opened = parts[number] if number < len(parts) else []
        closed = parts[number - late] if number >= late else []
        lines = [f"<{TAG}><sid>{sid}</sid><n>{n}</n></{TAG}>" for n in range(views) for sid in opened]
        lines += [f"<p:{TAG}><sid>{sid}</sid></p:{TAG}>" for sid in closed]
        text = "\n".join([f'<s xmlns:p="{PUNCT_NS}">', *lines, "</s>"])
        (directory / f"{number:05}.xml").write_text(text, encoding="utf-8")
    return directory
