"""Streams that are joined, as directories of small documents: each document is read in a slice of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from xmlstream.punct_ns.xml_form import PUNCT_NS

Shape = Literal["star", "path"]
"""All streams are joined on one key, or each on an attribute with the one before."""

EACH = 10
"""Tuples of each stream in a slice."""


def write_streams(directory: Path, streams: int, slices: int, kept_for: int = 2) -> None:
    """Writes the documents of streams; a tuple's keys are closed after so many slices."""
    for i in range(streams):
        (directory / f"s{i}").mkdir(parents=True)
        for number in range(slices):
            keys = range(number * EACH, (number + 1) * EACH)
            rows = "".join(f"<t><k{i}>{key}</k{i}><l{i}>{key}</l{i}><v{i}>{key * i}</v{i}></t>" for key in keys)
            last = (number + 1 - kept_for) * EACH - 1
            closed = "".join(f"<p:t><{name}{i}>(,{last}]</{name}{i}></p:t>" for name in "kl") if last > 0 else ""
            text = f"<s xmlns:p='{PUNCT_NS}'>{rows}{closed}</s>"
            (directory / f"s{i}" / f"{number:03d}.xml").write_text(text, encoding="utf-8")


def join_of(directory: Path, streams: int, shape: Shape) -> str:
    """The text of the query that joins the streams; each key gives one tuple."""
    options = "rowTag 't', maxFilesPerSlice '1'"
    tables = [
        f"CREATE TABLE s{i} (k{i} INT, l{i} INT, v{i} INT) USING punctuated_xml"
        f" OPTIONS (path '{directory}/s{i}', schemes 'k{i}; l{i}', {options});"
        for i in range(streams)
    ]
    left = ["s0.k0" if shape == "star" else f"s{i}.l{i}" for i in range(streams)]
    joins = " ".join(f"JOIN s{i} ON {left[i - 1]} = s{i}.k{i}" for i in range(1, streams))
    values = ", ".join(f"v{i}" for i in range(streams))
    return "\n".join([*tables, f"SELECT k0, {values} FROM s0 {joins};"])
