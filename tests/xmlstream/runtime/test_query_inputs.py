"""The inputs of a run that goes on: a static table was read once, and is not read again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession


def test_a_run_that_goes_on_says_that_a_static_table_has_changed(
    in_process: InProcessSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    nights, names = tmp_path / "nights", tmp_path / "names.csv"
    nights.mkdir()
    query = f"""
    CREATE TABLE s (a INT) USING punctuated_xml OPTIONS (path '{nights}', rowTag 't');
    CREATE TABLE n (a INT, name STRING) USING csv OPTIONS (path '{names}');
    SELECT s.a, n.name FROM s JOIN n ON s.a = n.a;
    """

    def night(number: int) -> list[str]:
        """Runs over one more document; returns the lines about tables."""
        (nights / f"{number}.xml").write_text("<s><t><a>1</a></t></s>")
        caplog.clear()
        xs.from_sql(in_process, query).run(tmp_path / "out", tmp_path / "state", keep_open=True)
        return [record.getMessage() for record in caplog.records if record.name == "xmlstream.inputs"]

    names.write_text("1,one\n")
    assert not night(1)
    os.utime(names, (0, 0))
    assert not night(2)
    names.write_text("1,uno\n")
    (line,) = night(3)
    assert line.startswith(f"the files {names} of the static table n are not as they were when the query began: ")
    names.unlink()
    (line,) = night(4)
    assert "; there are none now: what it read then stays in use" in line
    written = "".join(path.read_text() for path in (tmp_path / "out").glob("slice-*.xml"))
    assert written.count("<name>one</name>") == 4
    assert "uno" not in written
