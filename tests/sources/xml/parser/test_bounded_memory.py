"""The parser never holds a document, however long it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from xmlstream.sources.generators.sensors import write_sensors

READ = """
import resource, sys
from xmlstream.sources.places import Document
from xmlstream.sources.xml.splits.byte_ranges import ByteRange
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import RangeParser
path, size = sys.argv[1], int(sys.argv[2])
options = SourceOptions.parse({"path": path, "rowTag": "tempdata", "schema": "sid STRING, hour INT, currtmp DOUBLE"})
for parsed in RangeParser(options).parse(ByteRange(Document.at(path), 0, 0, size, ends="root")):
    assert not parsed.malformed
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak(path: Path) -> int:
    """Megabytes that a process needs to read a document."""
    command = [sys.executable, "-c", READ, str(path), str(path.stat().st_size)]
    return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout) // 1024


def test_a_document_ten_times_as_long_takes_no_more_memory(tmp_path: Path) -> None:
    (short,) = write_sensors(tmp_path / "short", 1, 1000, 1, 60, seed=1)
    (long,) = write_sensors(tmp_path / "long", 1, 10_000, 1, 60, seed=1)
    assert peak(long) < peak(short) + 30
