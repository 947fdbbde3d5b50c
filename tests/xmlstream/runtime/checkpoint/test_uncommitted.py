"""A slice that was not committed never was: what runs in its place finds nothing of it, whatever has changed since."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.xmlstream.runtime.checkpoint.test_restart import documents
from tests.xmlstream.runtime.killed_run import crash
from xmlstream.punct_ns.errors import XmlStreamError
from xmlstream.punct_ns.xml_form import PUNCT_NS

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

HEAD = f"<s xmlns:punct='{PUNCT_NS}'>"


def rows(*groups: int) -> str:
    return "".join(f"<t><a>{a}</a><b>{b}</b></t>" for a in groups for b in (1, 2))


def closed(a: int) -> str:
    return f"<punct:t><a>{a}</a><b>*</b></punct:t>"


def test_a_slice_that_is_run_again_over_another_static_table_takes_nothing_of_what_it_left(
    session: Session, tmp_path: Path
) -> None:
    """What it kept of the first table was written, and would be taken by a third run for what the second one kept."""
    nights, table = tmp_path / "nights", tmp_path / "names.csv"
    nights.mkdir()
    (nights / "1.xml").write_text(f"{HEAD}{rows(1, 2, 3)}</s>")
    query = f"""
    CREATE TABLE s (a INT, b INT) USING punctuated_xml OPTIONS (path '{nights}', rowTag 't', schemes 'a');
    CREATE TABLE names (a INT, name STRING) USING csv OPTIONS (path '{table}', header 'true');
    SELECT names.name, s.a, count(*) AS n FROM s JOIN names ON s.a = names.a GROUP BY names.name, s.a;
    """
    asked = xs.from_sql(session, query)
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    table.write_text("a,name\n1,one\n2,two\n")
    crash(lambda: asked.run(out, checkpoint, keep_open=True), "before the commit", 0)
    table.write_text("a,name\n1,uno\n3,tre\n")
    asked.run(out, checkpoint, keep_open=True)
    (nights / "2.xml").write_text(f"{HEAD}{closed(1)}{rows(2, 3)}{closed(2)}</s>")
    asked.run(out, checkpoint)
    told = sorted(re.findall(r"<name>(\w+)</name><a>\d</a><n>(\d)</n>", "".join(documents(out).values())))
    assert told == [("tre", "4"), ("uno", "2")]


def test_what_closes_a_query_is_decided_by_the_run_that_commits(session: Session, tmp_path: Path) -> None:
    """Only the run that fails was to close it; that of the next night keeps it open, and so later files are read."""
    nights = tmp_path / "nights"
    nights.mkdir()
    (nights / "1.xml").write_text(f"{HEAD}{rows(1)}{closed(1)}{rows(2)}")
    source = xs.read(session, nights, "a INT, b INT", rowTag="t", schemes="a")
    asked = source.group_by("a").agg("count(*) AS n")
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    with pytest.raises(XmlStreamError):
        asked.run(out, checkpoint)
    (nights / "1.xml").write_text(f"{HEAD}{rows(1)}{closed(1)}{rows(2)}</s>")
    assert not asked.run(out, checkpoint, keep_open=True).closed
    (nights / "2.xml").write_text(f"{HEAD}{rows(2)}{closed(2)}</s>")
    assert asked.run(out, checkpoint).closed
    told = "".join(documents(out).values())
    assert "<a>1</a><n>2</n>" in told
    assert "<a>2</a><n>4</n>" in told


@pytest.mark.parametrize("table", ["hottest.delta", "out"])
def test_a_run_that_dies_before_its_first_commit_leaves_its_tables_to_the_next(
    session: Session, tmp_path: Path, table: str
) -> None:
    (tmp_path / "1.xml").write_text(f"{HEAD}{rows(1)}{closed(1)}{rows(2)}</s>")
    asked = (
        xs.read(session, tmp_path / "1.xml", "a INT, b INT", rowTag="t", schemes="a").group_by("a").agg("count(*) AS n")
    )
    crash(lambda: asked.run(tmp_path / table, tmp_path / "checkpoint"), "before the commit", 0)
    assert (tmp_path / table).exists()
    assert asked.run(tmp_path / table, tmp_path / "checkpoint").closed
