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


@pytest.mark.parametrize(
    ("text", "options", "what", "cure"),
    [
        (b"name,a\none,1\n", ", header 'true'", "has the columns name, a, and n declares a, name", None),
        ("1,K\xf6ln\n".encode("ISO-8859-1"), "", "is not in UTF-8", "encoding 'ISO-8859-1'"),
        (b"1;one\n", "", "has no ','", "sep ';'"),
        (b"1\tone\n", "", "has no ','", r"sep '\t'"),
    ],
)
def test_csv_that_does_not_fit_its_table_is_refused_with_what_to_write(
    in_process: InProcessSession, tmp_path: Path, text: bytes, options: str, what: str, cure: str | None
) -> None:
    (tmp_path / "n.csv").write_bytes(text)
    (tmp_path / "s.xml").write_text("<s><t><a>1</a></t></s>")
    query = f"""
    CREATE TABLE s (a INT) USING punctuated_xml OPTIONS (path '{tmp_path}/s.xml', rowTag 't');
    CREATE TABLE n (a INT, name STRING) USING csv OPTIONS (path '{tmp_path}/n.csv'{options});
    SELECT s.a, n.name FROM s JOIN n ON s.a = n.a;
    """
    with pytest.raises(xs.UsageError) as refused:
        xs.from_sql(in_process, query).to_arrow()
    assert what in refused.value.what
    if cure is not None:
        assert refused.value.hint is not None
        assert refused.value.hint.endswith(f"option {cure}")
        cured = query.replace("n.csv'", f"n.csv', {cure}")
    else:
        cured = query.replace("a INT, name STRING", "name STRING, a INT")
    assert xs.from_sql(in_process, cured).to_arrow().num_rows == 1
