"""Standard output that is a pipe nobody reads, a full disk, closed, or a notebook's."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lxml import etree

import xmlstream as xs
from tests.campaigns.signals import QUERY
from xmlstream.sink.standard_output import StandardOutput
from xmlstream.sources.generators.sensors import write_sensors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

XMLSTREAM = f"'{sys.executable}' -m xmlstream"


def shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    (tmp_path / "slice-000000000.xml").write_text(f"<rows>{'<row><a>1</a></row>' * 100_000}</rows>")
    return tmp_path


def test_a_reader_that_has_seen_enough_ends_the_command_as_it_ends_any_other(output: Path) -> None:
    done = shell(f"{XMLSTREAM} cat '{output}' | head -c 10; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("command", ["cat '{}'", "generate sensors --hours 1 --out '{}/in'"])
def test_a_full_disk_is_named(command: str, output: Path) -> None:
    done = shell(f"{XMLSTREAM} {command.format(output)} > /dev/full")
    assert done.returncode == 1
    assert done.stderr == "standard output cannot be written: no space left on device\n"


@pytest.mark.parametrize("command", ["cat '{}'", "run '{}/query.sql' -o -"])
def test_a_closed_one_is_bad_usage(command: str, output: Path) -> None:
    table = "CREATE TABLE s (a INT) USING punctuated_xml OPTIONS (path '{}', rowTag 'row');"
    (output / "query.sql").write_text(f"{table.format(output / 'slice-000000000.xml')} SELECT a FROM s")
    done = shell(f"{XMLSTREAM} {command.format(output)} >&-")
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "standard output is closed"


def test_what_needs_none_does_without_any(output: Path) -> None:
    done = shell(f"{XMLSTREAM} generate sensors --hours 1 --out '{output}/in' >&- 2>&- <&-")
    assert done.returncode == 0
    assert list((output / "in").glob("*.xml"))


def test_bytes_become_text_where_there_is_only_text(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stdout", shown)
    out = StandardOutput()
    for byte in "<a>∀</a>".encode():
        out.write(bytes([byte]))
    out.flush()
    assert shown.getvalue() == "<a>∀</a>"


@pytest.mark.spark
def test_what_nobody_read_is_not_committed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sensors(tmp_path / "in", sensors=2, hours=3, reports_per_hour=20, seed=3)
    query = xs.from_sql(spark, QUERY, {"SENSORS": str(tmp_path / "in")})

    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            if self.getvalue().count("</row>"):
                raise BrokenPipeError
            return super().write(text)

    first, second = Gone(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", first)
    with pytest.raises(xs.XmlStreamError, match="the reader of standard output"):
        query.run("-", tmp_path / "state")
    monkeypatch.setattr(sys, "stdout", second)
    summary = query.run("-", tmp_path / "state")
    assert summary.closed
    hours = [row.findtext("hour") for row in etree.fromstring(second.getvalue().encode()).iterchildren("row")]
    seen = first.getvalue().count("</row>")
    # Of a slice that was printed in part all is printed again.
    assert 3 - seen <= len(hours) <= 3
    assert hours[-1] == "2"
